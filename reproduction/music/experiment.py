"""Score against performance on match files: `python -m reproduction music --folder DIR`.

Constants are chosen on the performances of one piece and tested on all others, with each piece in turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar, Final

from dropdtw.files.progress import Progress
from dropdtw.problem.inputs import Array
from reproduction.common.experiment import Outcome, Run
from reproduction.common.report import Report, Table
from reproduction.data import match
from reproduction.data.match import Performance
from reproduction.music.matching import Constants, as_list, by_pitch, matched
from reproduction.music.notes import Notes
from reproduction.music.scores import KINDS, Counts

GRID: Final = [Constants(*some) for some in product((1.0, 0.5, 2.0), (4, 3, 6), (4.0, 1.0, 16.0))]
"""The constants to choose from; of equally good ones the first is taken."""


@dataclass(frozen=True)
class Settings:
    """plain : whether the baseline that takes the score as a list is run, too."""

    plain: bool = True


@dataclass(frozen=True)
class Music(Run):
    """Match the notes of performances to their scores, and count errors."""

    name: ClassVar[str] = "music"
    title: ClassVar[str] = "Score against performance, note by note"
    about: ClassVar[str] = (
        "A score is a list of chords whose notes are played in any order. Dropped notes of the score were left out, "
        "dropped notes of the performance are not in the score."
    )
    data_name: ClassVar[str] = "performances"

    @cached_property
    def performances(self) -> list[Performance]:
        """The performances of the folder."""
        return match.load(self.folder or ".")

    @property
    def source(self) -> str:
        """A description of the data, with the number of items."""
        pieces = {p.piece for p in self.performances}
        notes = sum(len(p.pitch) for p in self.performances)
        return f"{len(self.performances)} performances of {len(pieces)} pieces, {notes:,} score notes"

    def outcome(self, processes: int, say: Callable[[str], None], progress: Progress) -> Outcome:
        """Run the baselines, choose on each piece, and test on the others."""
        pieces: dict[str, list[tuple[Notes, Array, float]]] = {}
        baselines: dict[str, list[Counts]] = {}
        for p in self.performances:
            notes = Notes.sort(p)
            first, seconds = timed(by_pitch, notes)
            pieces.setdefault(p.piece, []).append((notes, first, seconds))
            found = {"any order in a chord, by pitch": (first, seconds)}
            if self.settings.plain:
                found["a list of notes, by pitch"] = timed(as_list, notes)
            for name, (pairs, taken) in found.items():
                baselines.setdefault(name, []).append(Counts.of(p, notes.rows(pairs), taken))
        say(f"choosing from {len(GRID)} settings")
        counts = [{piece: total(some, constants) for piece, some in pieces.items()} for constants in GRID]
        return self._compose(baselines, counts, list(pieces))

    def _compose(
        self,
        baselines: Mapping[str, Sequence[Counts]],
        counts: Sequence[Mapping[str, Counts]],
        pieces: Sequence[str],
    ) -> Outcome:
        rows = [[name, "–", *Counts.sum(some).cells()] for name, some in baselines.items()][::-1]
        turns = {}
        for piece in pieces if len(pieces) > 1 else []:
            k = max(range(len(GRID)), key=lambda k: counts[k][piece].f1())  # the first of the best
            turns[piece] = (GRID[k], Counts.sum(some for other, some in counts[k].items() if other != piece))
            rows.append([f"chosen on {piece}, tested on the others", shown(GRID[k]), *turns[piece][1].cells()])
        rows.append(["the first setting, all pieces", shown(GRID[0]), *Counts.sum(counts[0].values()).cells()])
        head = ["", "chosen", *(f"{kind}: precision / recall / F1" for kind in KINDS), "seconds per 1,000 notes"]
        table = Table("Pooled over performances, in %", head, rows)
        results: dict[str, object] = {
            "baselines": {name: Counts.sum(some).scores() for name, some in baselines.items()},
            "turns": {
                piece: {"constants": asdict(constants), **found.scores()} for piece, (constants, found) in turns.items()
            },
            "first setting": {piece: found.scores() for piece, found in counts[0].items()},
        }

        def compose(report: Report) -> None:
            report.table(table)

        return Outcome(results, [table], compose)


def total(some: Iterable[tuple[Notes, Array, float]], constants: Constants) -> Counts:
    """The counts of several performances. some : notes, with their pairs of `by_pitch` and the seconds these took."""
    found = []
    for notes, first, before in some:
        pairs, seconds = timed(matched, notes, constants, first)
        found.append(Counts.of(notes.of, notes.rows(pairs), before + seconds))
    return Counts.sum(found)


def timed(method: Callable[..., Array], *given: object) -> tuple[Array, float]:
    """What a method finds, and the seconds that it takes."""
    start = time.perf_counter()
    found = method(*given)
    return found, time.perf_counter() - start


def shown(constants: Constants) -> str:
    """Constants, short."""
    return f"{constants.seconds:g} s, {constants.reach} events, velocity {constants.soft:g}"
