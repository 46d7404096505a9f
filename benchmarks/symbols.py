"""Alignments of letters and words, with paths: `python benchmarks/symbols.py`, with parasail if it is installed."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import dropdtw

LETTERS, WORDS, REPEATS = 10_000, 1_000, 5
TRACEBACKS = ("nw_trace_striped_16", "nw_trace_scan_16", "nw_trace_diag_16", "nw_trace_diag_32")


def timed(name: str, work: Callable[[], Any]) -> Any:
    """Run some work several times, print the shortest time, and return its result."""
    times, found = [], None
    for _ in range(REPEATS):
        start = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - start)
    print(f"{name:44} {1000 * min(times):8.1f} ms")
    return found


def main() -> None:
    """Print a line per call."""
    rng = np.random.default_rng(0)
    z, x = ("".join(rng.choice(list("ACGT"), LETTERS)) for _ in range(2))
    how: dict[str, Any] = {"drop_x": 1, "drop_z": 1, "method": "needleman_wunsch"}
    a = timed(f"dropdtw, {LETTERS} x {LETTERS} letters", lambda: dropdtw.align(z, x, **how))
    words = [f"w{k}" for k in range(300)]
    script, talk = (rng.choice(words, WORDS).tolist() for _ in range(2))
    timed(f"dropdtw, {WORDS} x {WORDS} words", lambda: dropdtw.align(script, talk, **how))
    try:
        parasail = import_module("parasail")
    except ImportError:
        return
    matrix = parasail.matrix_create("ACGT", 0, -1)
    for name in TRACEBACKS:
        found = timed(f"parasail.{name}", lambda name=name: traced(getattr(parasail, name)(z, x, 1, 1, matrix)))
        if found.score != -a.cost:
            print(f"parasail.{name} overflowed: {found.score} instead of {-a.cost:g}")


def traced(found: Any) -> Any:
    """The result, with its path."""
    _ = found.cigar
    return found


if __name__ == "__main__":
    main()
