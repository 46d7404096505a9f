"""Timelines for video editors, read back by OpenTimelineIO and its adapters."""

import json
import xml.etree.ElementTree as ET
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dropdtw.media.edits import Edits
from dropdtw.media.output import Setting, write_edits
from dropdtw.media.timeline import RATES, Recording, kept, look_swapped, standard_rate, to_cut, tracks

FILM = Recording("monday.mp4", "file:///films/monday.mp4", Fraction(25))
CUT = Recording("cut & final.mp4", "file:///films/cut%20%26%20final.mp4", Fraction(25))
BOTH = Setting((FILM, CUT))
EDITS = Edits.of_same(
    [((0, 9), (0.4, 9.4), 0.99), ((15, 27), (9.4, 21.4), 0.9), ((27, 35), (30, 38), 0.8)], (40, 38)
)  # B begins 0.4 s earlier; only A 9–15 and 35–40, only B 21.4–30


def random_edits(rng):
    """Passages of random lengths, with and without differences between them, some too short for a row."""
    at, same = [0.0, 0.0], []
    for _ in range(int(rng.integers(1, 8))):
        start = [t + rng.choice([0, 0.3, 2.7]) * rng.random() for t in at]
        at = [t + d for t, d in zip(start, [float(rng.uniform(1, 9))] * 2, strict=True)]
        same.append(((start[0], at[0]), (start[1], at[1]), 0.9))
    return Edits.of_same(same, (at[0] + float(rng.uniform(0, 3)), at[1] + float(rng.uniform(0, 3))))


@pytest.mark.parametrize("seed", range(20))
def test_each_track_has_all_of_its_recording_and_what_is_shared_is_side_by_side(seed):
    edits = random_edits(np.random.default_rng(seed))
    rate = RATES[seed % len(RATES)]
    found = tracks(edits, rate)
    for track, duration in zip(found, edits.durations, strict=True):
        clips = [clip for clip in track if clip.start is not None]
        ends = [0, *(clip.start + clip.length for clip in clips)]
        assert [clip.start for clip in clips] == ends[:-1]
        assert 0 <= round(duration * rate) - ends[-1] <= 1
    begins = [[], []]
    for side, track in enumerate(found):
        at = 0
        for clip in track:
            if clip.name == "same":
                begins[side].append((clip.start, at))
            at += clip.length
        assert at == sum(clip.length for clip in found[0])
    assert len(edits.same) == len(begins[0])
    for row, (start_a, at_a), (start_b, at_b) in zip(edits.same, *begins, strict=True):
        assert at_a == at_b
        assert 0 <= round(row.a[0] * rate) - start_a <= 1
        assert 0 <= round(row.b[0] * rate) - start_b <= 1


def test_the_recording_with_extras_is_cut_and_of_two_it_is_b():
    longer = Edits.of_same([((0, 10), (0, 10), 0.9), ((20, 30), (10, 20), 0.9)], (30, 20))
    assert (to_cut(longer), to_cut(longer.swap()), to_cut(EDITS)) == (0, 1, 1)
    assert kept(longer, 0) == [(0, 10), (20, 30)]
    assert kept(EDITS, 1) == [(0, 21.4), (30, 38)]
    assert "atrim=start=20.000" in write_edits(longer, "ffmpeg")


def test_arguments_look_swapped_if_a_has_nearly_all_extras():
    def extras(a, b):
        return Edits.of_same([((0, 10), (0, 10), 0.9), ((10 + a, 30 + a), (10 + b, 30 + b), 0.9)], (30 + a, 30 + b))

    assert look_swapped(extras(20, 2))
    assert look_swapped(extras(20, 0))
    assert not any(map(look_swapped, (extras(20, 20), extras(2, 20), extras(5, 2), extras(0, 0))))
    assert not look_swapped(Edits.of_same([], (60, 5)))


def test_frame_rates_are_those_of_editors():
    assert standard_rate(None) == 25
    assert standard_rate(Fraction(24)) == 24
    assert standard_rate(Fraction(23976, 1000)) == Fraction(24000, 1001)
    assert standard_rate(Fraction(15)) == Fraction(24000, 1001)


def test_an_edl_has_source_and_record_times():
    assert write_edits(EDITS, "edl", BOTH).splitlines() == [
        "TITLE: cut & final.mp4", "FCM: NON-DROP FRAME",
        "001  AX       B     C        00:00:00:00 00:00:21:10 00:00:00:00 00:00:21:10",
        "* FROM CLIP NAME: cut & final.mp4",
        "002  AX       B     C        00:00:30:00 00:00:38:00 00:00:21:10 00:00:29:10",
        "* FROM CLIP NAME: cut & final.mp4",
    ]  # fmt: skip


def test_at_ntsc_rates_the_time_code_counts_frames():
    hour = Edits.of_same([((0, 3600), (0, 3600), 1.0)], (3600, 3600))
    text = write_edits(hour, "edl", Setting((FILM, CUT._replace(rate=Fraction(30000, 1001)))))
    assert "00:00:00:00 00:59:56:12" in text  # 107,892 frames, 30 to a second of time code


@pytest.mark.parametrize("kind", ["edl", "ffmpeg"])
def test_where_nothing_is_shared_nothing_is_cut(kind):
    with pytest.raises(ValueError, match="B shares nothing with A, so everything would be cut out"):
        write_edits(Edits.of_same([], (60, 50)), kind, BOTH)
    with pytest.raises(ValueError, match="nothing was compared, so there is nothing to cut"):
        write_edits(Edits.uncompared((60, 50), ["A is silent"]), kind, BOTH)


def spans(track, otio):
    """The items of a track that was read: kind, start in the source (0 for a gap) and duration, in seconds."""
    starts = [item.source_range.start_time.to_seconds() if isinstance(item, otio.schema.Clip) else 0 for item in track]
    lengths = [item.duration().to_seconds() for item in track]
    return list(zip([type(item).__name__ for item in track], starts, lengths, strict=True))


EXPECTED = (
    [
        ("Gap", 0, 0.4), ("Clip", 0, 9), ("Clip", 9, 6), ("Clip", 15, 12),
        ("Gap", 0, 8.6), ("Clip", 27, 8), ("Clip", 35, 5),
    ],
    [
        ("Clip", 0, 0.4), ("Clip", 0.4, 9), ("Gap", 0, 6), ("Clip", 9.4, 12),
        ("Clip", 21.4, 8.6), ("Clip", 30, 8), ("Gap", 0, 5),
    ],
)  # fmt: skip


def test_opentimelineio_reads_the_timeline():
    otio = pytest.importorskip("opentimelineio", reason="opentimelineio is not installed")
    found = otio.adapters.read_from_string(write_edits(EDITS, "otio", BOTH), "otio_json")
    assert [track.kind for track in found.tracks] == ["Video", "Video"]
    for track, expected in zip(found.tracks, EXPECTED, strict=True):
        for item, wanted in zip(spans(track, otio), expected, strict=True):
            assert item == (wanted[0], pytest.approx(wanted[1]), pytest.approx(wanted[2]))
    clip = found.tracks[1][3]
    assert clip.media_reference.target_url == CUT.uri
    assert clip.metadata["dropdtw"]["confidence"] == 0.9
    assert clip.available_range().duration.to_seconds() == 38


def test_the_adapter_for_edls_reads_the_list():
    otio = pytest.importorskip("opentimelineio", reason="opentimelineio is not installed")
    pytest.importorskip("otio_cmx3600_adapter", reason="otio-cmx3600-adapter is not installed")
    found = otio.adapters.read_from_string(write_edits(EDITS, "edl", BOTH), "cmx_3600", rate=25).tracks
    assert [track.kind for track in found] == ["Video", "Audio"]
    for track in found:
        assert spans(track, otio) == [("Clip", 0, 21.4), ("Clip", 30, 8)]
        assert {item.name for item in track} == {"cut & final.mp4"}


def test_the_adapter_for_final_cut_reads_the_timeline():
    otio = pytest.importorskip("opentimelineio", reason="opentimelineio is not installed")
    pytest.importorskip("otio_fcpx_xml_adapter", reason="otio-fcpx-xml-adapter is not installed")
    found = otio.adapters.read_from_string(write_edits(EDITS, "fcpxml", BOTH), "fcpx_xml")
    (timeline,) = found
    for track, expected in zip(timeline.tracks, EXPECTED, strict=True):
        for item, wanted in zip(spans(track, otio), expected, strict=False):  # it reads no gap at the end of a lane
            assert item == (wanted[0], pytest.approx(wanted[1]), pytest.approx(wanted[2]))


def test_final_cut_gets_exact_fractions_of_seconds():
    rate = Fraction(30000, 1001)
    text = write_edits(EDITS, "fcpxml", Setting((FILM._replace(rate=rate), CUT._replace(rate=rate))))
    root = ET.fromstring(text.split("<!DOCTYPE fcpxml>")[1])
    assert root.find("resources/format").get("frameDuration") == "1001/30000s"
    assert root.find("resources/asset[2]").get("src") == CUT.uri
    for part in root.iter():
        for name in ("offset", "start", "duration"):
            if name in part.attrib:
                assert (Fraction(part.get(name)[:-1]) * rate).denominator == 1
    spine = root.find("library/event/project/sequence/spine")
    ends = [(Fraction(each.get("offset")[:-1]), Fraction(each.get("duration")[:-1])) for each in spine]
    assert all(start + length == after for (start, length), (after, _) in pairwise(ends))
    connected = [each for item in spine for each in item]
    assert len(connected) == 5
    assert all(each.get("lane") == "1" for each in connected)


def test_sound_alone_is_on_audio_tracks():
    sound = Setting((Recording("a.mp3", "file:///a.mp3"), Recording("b.mp3", "file:///b.mp3")))
    assert [t["kind"] for t in json.loads(write_edits(EDITS, "otio", sound))["tracks"]["children"]] == ["Audio"] * 2
    assert "hasVideo" not in write_edits(EDITS, "fcpxml", sound)
    assert " A     C " in write_edits(EDITS, "edl", sound)
