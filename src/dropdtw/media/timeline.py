"""Edit lists as timelines for video editors: OpenTimelineIO, CMX 3600 (EDL) and Final Cut Pro XML."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree as ET

from dropdtw.media.edits import NAMES, UNCOMPARED, Edits, Span

RATES: Final = tuple(
    Fraction(rate) for rate in ("24000/1001", "24", "25", "30000/1001", "30", "50", "60000/1001", "60")
)
"""The frame rates that editors know, in frames per second."""


SWAPPED: Final = 3
"""If the extras of A last this many times as long as those of B, the arguments look swapped."""


class Recording(NamedTuple):
    """One of the two recordings, as a timeline refers to it.

    name : what the clips are called.
    uri : where the file is.
    rate : the frame rate of its video; None for sound alone.
    """

    name: str
    uri: str = ""
    rate: Fraction | None = None


class Clip(NamedTuple):
    """A piece of a recording on a track, in frames. What a recording lacks is a gap: a clip whose `start` is None."""

    name: str
    start: int | None
    length: int
    confidence: float


def standard_rate(rate: Fraction | None) -> Fraction:
    """The frame rate of a timeline: the standard one nearest to that of the video, and 25 without video.

    >>> standard_rate(Fraction(2997, 100)), standard_rate(None)
    (Fraction(30000, 1001), Fraction(25, 1))
    """
    return Fraction(25) if rate is None else min(RATES, key=lambda known: abs(known - rate))


def to_cut(edits: Edits) -> int:
    """The recording to be cut to what both share: 1 (B) if it has extras or neither has any, otherwise 0 (A)."""
    return 0 if edits.only_a and not edits.only_b else 1


def look_swapped(edits: Edits) -> bool:
    """Whether A has much more that B lacks than the other way round: then A may be the one that was to be cut."""
    extras = [sum(row.duration for row in rows) for rows in (edits.only_a, edits.only_b)]
    return bool(edits.same) and extras[0] > SWAPPED * extras[1]


def kept(edits: Edits, side: int) -> list[Span]:
    """The spans of a recording that remain without what only it has. Raises ValueError if none would remain."""
    if not edits.segments:
        raise ValueError(f"{UNCOMPARED}, so there is nothing to cut; nothing was written")
    extras = [(s.a, s.b)[side] for s in (edits.only_a, edits.only_b)[side]]
    cuts = [(0.0, 0.0), *(span for span in extras if span is not None), (edits.durations[side],) * 2]
    found = [(before[1], after[0]) for before, after in pairwise(cuts) if after[0] - before[1] > 1e-3]
    if not found or not edits.same:
        me, other = "AB"[side], "BA"[side]
        raise ValueError(f"{me} shares nothing with {other}, so everything would be cut out; nothing was written")
    return found


def tracks(edits: Edits, rate: Fraction) -> tuple[list[Clip], list[Clip]]:
    """A track for each recording, with what both share side by side. The clips of a track are all of its recording.

    Differences that are too short for a row of their own get clips, too, if they last more than a frame.
    """
    found: tuple[list[Clip], list[Clip]] = ([], [])
    ends = [0, 0]

    def add(name: str, stops: tuple[int, int], confidence: float) -> None:
        lengths = [max(stop - end, 0) for stop, end in zip(stops, ends, strict=True)]
        for side, track in enumerate(found):
            if lengths[side]:
                track.append(Clip(name, ends[side], lengths[side], confidence))
                ends[side] += lengths[side]
            if lengths[side] < max(lengths):
                track.append(Clip("", None, max(lengths) - lengths[side], confidence))

    for row in [*edits.segments, None]:
        spans = [(t, t) for t in edits.durations] if row is None else [row.a, row.b]
        frames = [
            (end, end) if s is None else (round(s[0] * rate), round(s[1] * rate))
            for s, end in zip(spans, ends, strict=True)
        ]
        (start_a, stop_a), (start_b, stop_b) = frames
        confidence = 1.0 if row is None else row.confidence
        if start_a > ends[0] + 1:  # a single frame is no difference
            add(NAMES["only_a"], (start_a, ends[1]), confidence)
        if start_b > ends[1] + 1:
            add(NAMES["only_b"], (ends[0], start_b), confidence)
        if row is not None:
            add(NAMES[row.kind], (stop_a, stop_b), confidence)
    return found


def edl(edits: Edits, recordings: tuple[Recording, Recording]) -> str:
    """A CMX 3600 list of one track, in non-drop time code: what `kept` keeps of the recording that `to_cut` names."""
    side = to_cut(edits)
    which = recordings[side]
    rate = standard_rate(which.rate)
    lines, at = [f"TITLE: {_plain(which.name)}", "FCM: NON-DROP FRAME"], 0
    for n, span in enumerate(kept(edits, side), 1):
        start, stop = (round(t * rate) for t in span)
        codes = " ".join(_time_code(frame, rate) for frame in (start, stop, at, at + stop - start))
        lines += [f"{n:03}  AX       {'A' if which.rate is None else 'B'}     C        {codes}"]
        lines += [f"* FROM CLIP NAME: {_plain(which.name)}"]
        at += stop - start
    return "\n".join(lines) + "\n"


def _time_code(frame: int, rate: Fraction) -> str:
    """hh:mm:ss:ff, in which every second has the same number of frames."""
    seconds, frames = divmod(frame, round(rate))
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}:{frames:02}"


def _plain(name: str) -> str:
    """A name on one line."""
    return " ".join(name.split())


def otio(edits: Edits, recordings: tuple[Recording, Recording]) -> str:
    """An OpenTimelineIO timeline of `tracks`."""
    rate = _shared_rate(recordings)

    def time(frames: int) -> dict[str, Any]:
        return {"OTIO_SCHEMA": "RationalTime.1", "rate": float(rate), "value": float(frames)}

    def stretch(start: int, length: int) -> dict[str, Any]:
        return {"OTIO_SCHEMA": "TimeRange.1", "start_time": time(start), "duration": time(length)}

    def item(clip: Clip, side: int) -> dict[str, Any]:
        if clip.start is None:
            return {"OTIO_SCHEMA": "Gap.1", "name": "", "source_range": stretch(0, clip.length)}
        whole = stretch(0, round(edits.durations[side] * rate))
        url = recordings[side].uri
        media = {"OTIO_SCHEMA": "ExternalReference.1", "target_url": url, "available_range": whole}
        return {
            "OTIO_SCHEMA": "Clip.1",
            "name": f"{recordings[side].name}: {clip.name}",
            "source_range": stretch(clip.start, clip.length),
            "media_reference": media,
            "metadata": {"dropdtw": {"kind": clip.name, "confidence": round(clip.confidence, 4)}},
        }

    both = [
        {
            "OTIO_SCHEMA": "Track.1",
            "name": recordings[side].name,
            "kind": "Audio" if recordings[side].rate is None else "Video",
            "children": [item(clip, side) for clip in track],
        }
        for side, track in enumerate(tracks(edits, rate))
    ]
    stack = {"OTIO_SCHEMA": "Stack.1", "name": "tracks", "children": both}
    return json.dumps({"OTIO_SCHEMA": "Timeline.1", "name": _title(recordings), "tracks": stack}, indent=2) + "\n"


def fcpxml(edits: Edits, recordings: tuple[Recording, Recording]) -> str:
    """A Final Cut Pro timeline (FCPXML 1.8) of `tracks`: A is the storyline, and B is connected to it."""
    rate = _shared_rate(recordings)

    def time(frames: int) -> str:
        seconds = frames / rate
        return f"{seconds.numerator}s" if seconds.denominator == 1 else f"{seconds.numerator}/{seconds.denominator}s"

    root = ET.Element("fcpxml", version="1.8")
    resources = ET.SubElement(root, "resources")
    ET.SubElement(resources, "format", id="r1", frameDuration=f"{rate.denominator}/{rate.numerator}s")
    for side, which in enumerate(recordings):
        has = {"hasVideo": "1", "format": "r1"} if which.rate is not None else {}
        length = time(round(edits.durations[side] * rate))
        asset = {"id": f"r{side + 2}", "name": which.name, "src": which.uri, "start": "0s", "duration": length}
        ET.SubElement(resources, "asset", asset | {"hasAudio": "1"} | has)
    event = ET.SubElement(ET.SubElement(root, "library"), "event", name=_title(recordings))
    project = ET.SubElement(event, "project", name=_title(recordings))
    storyline, connected = tracks(edits, rate)
    sequence = ET.SubElement(project, "sequence", format="r1", duration=time(sum(clip.length for clip in storyline)))
    spine = ET.SubElement(sequence, "spine")

    def add(parent: ET.Element, clip: Clip, side: int, offset: int) -> ET.Element:
        place = {"offset": time(offset), "duration": time(clip.length)}
        if clip.start is None:
            return ET.SubElement(parent, "gap", {"name": "Gap", "start": "0s"} | place)
        which = recordings[side]
        named = {"name": f"{which.name}: {clip.name}", "ref": f"r{side + 2}", "start": time(clip.start)}
        return ET.SubElement(parent, "asset-clip", named | place)

    parents = [(offset, clip, add(spine, clip, 0, offset)) for offset, clip in _placed(storyline)]
    lane = "-1" if recordings[1].rate is None else "1"
    for offset, clip in _placed(connected):
        if clip.start is None:
            continue
        began, parent, element = next(each for each in reversed(parents) if each[0] <= offset)
        add(element, clip, 1, (parent.start or 0) + offset - began).set("lane", lane)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE fcpxml>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _placed(track: list[Clip]) -> Iterator[tuple[int, Clip]]:
    """The clips of a track, each with the frame where it begins."""
    at = 0
    for clip in track:
        yield at, clip
        at += clip.length


def _shared_rate(recordings: tuple[Recording, Recording]) -> Fraction:
    """The frame rate of a timeline of both."""
    return standard_rate(next((each.rate for each in recordings if each.rate is not None), None))


def _title(recordings: tuple[Recording, Recording]) -> str:
    return " and ".join(each.name for each in recordings)
