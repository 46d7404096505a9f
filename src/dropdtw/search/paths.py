"""The alignments of all pairs from two lists of sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy.typing as npt

from dropdtw.files.progress import Progress, reporter
from dropdtw.problem.errors import described
from dropdtw.results.alignment import Alignment
from dropdtw.search.pairwise import Row, in_threads, thread_count, useful_threads


def all_alignments(
    align: Callable[[Any, Any], Alignment],
    Zs: Sequence[npt.ArrayLike],
    Xs: Sequence[npt.ArrayLike] | None,
    n_jobs: int | None,
    progress: Progress,
) -> list[list[Alignment]]:
    """See `dropdtw.alignments`. align : the alignment of one Z with one X."""
    left = _listed(Zs, "Zs")
    right, name = (left, "Zs") if Xs is None else (_listed(Xs, "Xs"), "Xs")

    def row(a: int) -> Iterator[tuple[int, Alignment]]:
        for b, X in enumerate(right):
            try:
                yield b, align(left[a], X)
            except ValueError as error:
                raise ValueError(f"Zs[{a}] with {name}[{b}]: {error}") from error

    cells = (sum(map(_length, left)) / len(left)) * (sum(map(_length, right)) / len(right))
    threads = useful_threads(thread_count(n_jobs), cells)
    rows: list[Row] = [(a, partial(row, a)) for a in range(len(left))]
    report = reporter("dropdtw.alignments", progress)
    found: list[list[Alignment]] = in_threads(rows, (len(left), len(right)), False, threads, report, object).tolist()
    return found


def _listed(sequences: Sequence[npt.ArrayLike], name: str) -> list[Any]:
    if not isinstance(sequences, Iterable) or isinstance(sequences, str):
        raise ValueError(f"{name} is {described(sequences)}; give a list of sequences")
    found = list(sequences)
    if not found:
        raise ValueError(f"{name} is empty; give at least one sequence")
    return found


def _length(sequence: Any) -> int:
    return len(sequence) if hasattr(sequence, "__len__") else 1  # `align` refuses it
