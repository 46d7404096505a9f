"""The edit list of two recordings: which passages are the same, and which only one of them has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Literal

Kind = Literal["same", "only_a", "only_b"]
Span = tuple[float, float]

NAMES: dict[Kind, str] = {"same": "same", "only_a": "only A", "only_b": "only B"}
"""The kinds of rows, as they are printed."""

_SWAPPED: dict[Kind, Kind] = {"same": "same", "only_a": "only_b", "only_b": "only_a"}

NOTHING = "these have nothing in common"
"""The note on an edit list without a shared passage."""

UNCOMPARED = "nothing was compared"
"""What an edit list without rows says."""

OTHER_SPEED = "compare them with speed=True (--speed)"

TOUCHING = 1e-6
"""Tolerance for spans that overlap by rounding, in seconds."""


@dataclass(frozen=True)
class Segment:
    """One row of an edit list. Times are seconds; a span is (start, stop). (`dropdtw.Segment` is another class.)

    kind : "same" for a passage in both recordings, "only_a" or "only_b" for a passage in only one of them.
    a, b : the spans of the passage in A and in B; None for a recording that does not have it.
    confidence : the probability, 0 to 1, that the row is right; see `dropdtw.media.confidence`.
    speed : seconds of A per second of B; None if speeds were not compared.

    Raises ValueError if `kind` is unknown, if the spans do not fit it, or if a span is invalid.

    >>> from dropdtw import media
    >>> media.Segment("same", a=(0.0, 10.0), b=(5.0, 15.0), confidence=0.99).duration
    10.0
    """

    kind: Kind
    a: Span | None
    b: Span | None
    confidence: float = 1.0
    speed: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in NAMES:
            raise ValueError(f"kind is {self.kind!r}; give one of {', '.join(NAMES)}")
        has = (self.a is not None, self.b is not None)
        if has != (self.kind != "only_b", self.kind != "only_a"):
            raise ValueError(
                f"a segment {self.kind!r} has a = {self.a} and b = {self.b}; give spans for both a and b with 'same', "
                "only for a with 'only_a', and only for b with 'only_b'"
            )
        for name, span in (("a", self.a), ("b", self.b)):
            if span is not None and not 0 <= span[0] <= span[1]:
                raise ValueError(f"{name} is {span}; give seconds (start, stop) with 0 ≤ start ≤ stop")

    @property
    def duration(self) -> float:
        """Duration in seconds: in A if A has the passage, otherwise in B."""
        span = self.b if self.a is None else self.a
        assert span is not None
        return span[1] - span[0]

    def swap(self) -> Segment:
        """The same row with A and B swapped."""
        speed = None if self.speed is None else 1 / self.speed
        return Segment(_SWAPPED[self.kind], self.b, self.a, self.confidence, speed)

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data, with times rounded to milliseconds, and with `speed` if speeds were compared."""
        found: dict[str, Any] = {
            "kind": self.kind,
            "a": None if self.a is None else [round(t, 3) for t in self.a],
            "b": None if self.b is None else [round(t, 3) for t in self.b],
            "confidence": round(self.confidence, 4),
        }
        return found if self.speed is None else found | {"speed": round(self.speed, 5)}


@dataclass(frozen=True)
class Edits:
    """The edit list of two recordings: what A and B have in common, and what only one of them has.

    segments : the rows, in order. Where a passage was replaced, "only_a" comes before "only_b".
    durations : the durations of A and B, in seconds.
    notes : remarks on the result, for example that the recordings have nothing in common.

    >>> from dropdtw import media
    >>> edits = media.Edits.of_same([((0, 10), (0, 10), 0.99), ((10, 30), (25, 45), 0.99)], (30, 45))
    >>> print(edits)
    same    0:00.000–0:10.000  0:00.000–0:10.000   99 %
    only B                     0:10.000–0:25.000   99 %
    same    0:10.000–0:30.000  0:25.000–0:45.000   99 %
    >>> edits.to_b(12.5), edits.to_a(12.5)
    (27.5, None)
    """

    segments: tuple[Segment, ...]
    durations: tuple[float, float]
    notes: tuple[str, ...] = ()

    @classmethod
    def of_same(
        cls,
        same: Iterable[Segment | tuple[Span, Span, float]],
        durations: tuple[float, float],
        *,
        min: float = 1.0,
        notes: Sequence[str] = (),
    ) -> Edits:
        """Build an edit list from the shared passages, and fill in the rows between them.

        same : the passages, as segments or as (span in A, span in B, confidence), in the same order in both.
        durations : the durations of A and B, in seconds.
        min : minimum duration, in seconds, of the rows between the passages.
        notes : remarks on the result.

        Returns the `Edits`. A row between two shared passages gets the lower of their confidences. Raises ValueError if
        passages overlap, run backward, or exceed the durations.

        >>> from dropdtw import media
        >>> edits = media.Edits.of_same([((0.0, 10.0), (5.0, 15.0), 0.99)], durations=(10.0, 15.0))
        >>> [(s.kind, s.a, s.b) for s in edits.segments]
        [('only_b', None, (0.0, 5.0)), ('same', (0.0, 10.0), (5.0, 15.0))]
        """
        rows = [s if isinstance(s, Segment) else Segment("same", *s) for s in same]
        found: list[Segment] = []
        ends, sure = (0.0, 0.0), None
        for row in [*rows, None]:
            starts = durations if row is None else (_of(row.a)[0], _of(row.b)[0])
            if starts[0] < ends[0] - TOUCHING or starts[1] < ends[1] - TOUCHING:
                raise ValueError(
                    f"passages overlap or run backwards at {ends[0]:.3f} s of A, {ends[1]:.3f} s of B; "
                    "list them in the same order in both recordings, and give the full durations"
                )
            beside = [c for c in (sure, None if row is None else row.confidence) if c is not None]
            confidence = 1.0
            for c in beside:
                confidence = c if c < confidence else confidence
            if starts[0] - ends[0] >= min:
                found.append(Segment("only_a", (ends[0], starts[0]), None, confidence))
            if starts[1] - ends[1] >= min:
                found.append(Segment("only_b", None, (ends[1], starts[1]), confidence))
            if row is not None:
                found.append(row)
                ends, sure = (_of(row.a)[1], _of(row.b)[1]), row.confidence
        return cls(tuple(found), durations, tuple(notes))

    @classmethod
    def uncompared(cls, durations: tuple[float, float], notes: Sequence[str]) -> Edits:
        """An edit list without rows, for what could not be compared; the last note says why.

        >>> from dropdtw import media
        >>> print(media.Edits.uncompared((0.0, 45.0), ["A is silent, so the recordings were not compared"]))
        nothing was compared
        """
        return cls((), durations, tuple(notes))

    @property
    def same(self) -> tuple[Segment, ...]:
        """The passages that both have."""
        return tuple(s for s in self.segments if s.kind == "same")

    @property
    def only_a(self) -> tuple[Segment, ...]:
        """The passages that only A has."""
        return tuple(s for s in self.segments if s.kind == "only_a")

    @property
    def only_b(self) -> tuple[Segment, ...]:
        """The passages that only B has."""
        return tuple(s for s in self.segments if s.kind == "only_b")

    @property
    def common(self) -> float:
        """The share of the shorter recording that both have, 0 to 1."""
        shorter = 0 if self.durations[0] <= self.durations[1] else 1
        length = self.durations[shorter]
        shared = sum(span[1] - span[0] for s in self.same for span in [_of((s.a, s.b)[shorter])])
        return shared / length if length > 0 else 0.0

    def to_b(self, t: float) -> float | None:
        """The time in B of what A has at `t` seconds; None where B does not have it."""
        return _moved(t, [(_of(s.a), _of(s.b)) for s in self.same])

    def to_a(self, t: float) -> float | None:
        """The time in A of what B has at `t` seconds; None where A does not have it."""
        return _moved(t, [(_of(s.b), _of(s.a)) for s in self.same])

    def swap(self) -> Edits:
        """The edit list with A and B swapped.

        >>> from dropdtw import media
        >>> edits = media.Edits.of_same([((0, 10), (5, 15), 0.99)], durations=(10, 15))
        >>> [s.kind for s in edits.swap().segments]
        ['only_a', 'same']
        """
        rows = [s.swap() for s in self.segments]
        for k in range(len(rows) - 1):  # at most one row of each kind lies between two passages
            if (rows[k].kind, rows[k + 1].kind) == ("only_b", "only_a"):
                rows[k], rows[k + 1] = rows[k + 1], rows[k]
        return replace(self, segments=tuple(rows), durations=(self.durations[1], self.durations[0]))

    def to_dict(self) -> dict[str, Any]:
        """The edit list as plain data: {"segments": [{"kind", "a", "b", "confidence"}, …]}, in seconds, in order.

        >>> from dropdtw import media
        >>> media.Edits.of_same([((0, 10), (0, 10), 0.99)], durations=(10, 10)).to_dict()
        {'segments': [{'kind': 'same', 'a': [0, 10], 'b': [0, 10], 'confidence': 0.99}]}
        """
        return {"segments": [s.to_dict() for s in self.segments]}

    def to_json(self) -> str:
        """`to_dict` as JSON text.

        >>> import json
        >>> from dropdtw import media
        >>> edits = media.Edits.of_same([((0, 10), (0, 10), 0.99)], durations=(10, 10))
        >>> json.loads(edits.to_json()) == edits.to_dict()
        True
        """
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        if not self.segments:
            return UNCOMPARED
        spans = [("" if s.a is None else span(s.a), "" if s.b is None else span(s.b)) for s in self.segments]
        wide = [max(len(pair[k]) for pair in spans) for k in (0, 1)]
        return "\n".join(
            f"{NAMES[s.kind]:<6}  {a:<{wide[0]}}  {b:<{wide[1]}}  {100 * s.confidence:3.0f} %"
            + ("" if s.speed is None else f"  speed {s.speed:.4f}")
            for s, (a, b) in zip(self.segments, spans, strict=True)
        )


def check_min(min: float) -> None:
    """Raise unless the minimum duration of a row is a positive number."""
    if isinstance(min, bool) or not (isfinite(min) and min > 0):
        raise ValueError(f"min is {min!r}; give a number above 0")


def too_short(durations: tuple[float, float], min: float) -> str | None:
    """A note if one of the two is shorter than any row may be, so that they cannot be compared."""
    for name, duration in zip("AB", durations, strict=True):
        if duration < min:
            return f"{name} is {duration:g} long and min is {min:g}, so {UNCOMPARED}; give a smaller min (--min)"
    return None


def clock(t: float) -> str:
    """Format seconds as m:ss.mmm, or as h:mm:ss.mmm from one hour on.

    >>> clock(61.5), clock(3661.25)
    ('1:01.500', '1:01:01.250')
    """
    minutes, millis = divmod(round(1000 * t), 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{millis // 1000:02}.{millis % 1000:03}"
    return f"{hours}:{minutes:02}:{seconds}" if hours else f"{minutes}:{seconds}"


def span(of: Span) -> str:
    """A span as from–to, formatted by `clock`."""
    return f"{clock(of[0])}–{clock(of[1])}"


def _of(span: Span | None) -> Span:
    assert span is not None
    return span


def _moved(t: float, pairs: list[tuple[Span, Span]]) -> float | None:
    """Map `t` from the first spans to the second ones. On a boundary, the passage that begins there wins."""
    for closed in (False, True):
        for (start, stop), (onto, until) in pairs:
            if start <= t < stop or (closed and t == stop):
                return onto + (t - start) * (until - onto) / (stop - start) if stop > start else onto
    return None
