"""`dropdtw bench`: measure this library on this machine, and compare it with other DTW libraries if installed."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module, util
from typing import TYPE_CHECKING, Final

from dropdtw.cli import screen

if TYPE_CHECKING:
    from dropdtw.problem.inputs import Array

BUDGET: Final = 14.0
"""Start no further peer after this many seconds; the first call of some is slow."""

PATIENCE: Final = 0.7
"""Seconds per measurement, not counting the first call."""


def bench() -> None:
    """Measure how fast this library is on this machine; takes 5 to 20 seconds.

    Shows cells per second, and compares with other DTW libraries if they are installed.
    """
    began = time.perf_counter()
    screen.table(["what", "size", ">time", ">million cells/s"], [_row(*case) for case in _cases()])
    rows = []
    for name, time_of in PEERS.items():
        if not util.find_spec(name):
            continue
        if time.perf_counter() - began > BUDGET:
            rows.append([name, "skipped: no time left", "", ""])
            continue
        rows.append([name, *_beside(time_of)])
    print()
    if not rows:
        print(f"no other DTW library is installed; to compare, install one of {', '.join(PEERS)}")
        return
    print("DTW distance of two series of 1,000 numbers, compared with other installed libraries:")
    screen.table(["library", ">its time", ">ours", ">ours is faster by"], rows)


def _cases() -> list[tuple[str, str, int, Callable[[], object]]]:
    import numpy as np

    import dropdtw

    rng = np.random.default_rng(0)

    def costs(K: int, N: int) -> Array:
        return rng.random((K, N), np.float32)

    small, wide, square = costs(10, 200), costs(50, 2000), costs(1000, 1000)
    series = [rng.normal(size=100) for _ in range(100)]
    Z, X = rng.normal(size=(50, 128)).astype(np.float32), rng.normal(size=(2000, 128)).astype(np.float32)
    return [
        ("path, one-sided", "10 × 200", small.size, lambda: dropdtw.solve(small, 0.3)),
        ("path, one-sided", "50 × 2000", wide.size, lambda: dropdtw.solve(wide, 0.3)),
        ("path, two-sided", "1000 × 1000", square.size, lambda: dropdtw.solve(square, 0.3, 0.3)),
        ("value, two-sided", "1000 × 1000", square.size, lambda: dropdtw.cost(square, 0.3, 0.3)),
        ("align features, d = 128", "50 × 2000", wide.size, lambda: dropdtw.align(Z, X, "percentile:30")),
        ("posterior, one-sided", "50 × 2000", wide.size, lambda: dropdtw.posterior(wide, 0.3, gamma=0.1)),
        (
            "all pairs, two-sided",
            "100 series of 100",
            5050 * 100 * 100,
            lambda: dropdtw.pairwise(series, drop_x=0.3, drop_z=0.3, match="euclidean", progress=False),
        ),
    ]


def _row(what: str, size: str, cells: int, call: Callable[[], object]) -> list[str]:
    seconds = best_time(call)
    return [what, size, _time(seconds), f"{cells / seconds / 1e6:,.0f}"]


def best_time(call: Callable[[], object]) -> float:
    """The time of the fastest of several calls, after a warm-up call; other processes may slow down some calls."""
    call()
    best, until = float("inf"), time.perf_counter() + PATIENCE
    for _ in range(200):
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > until:
            break
    return best


def _time(seconds: float) -> str:
    return f"{1e6 * seconds:.0f} µs" if seconds < 1e-3 else f"{1e3 * seconds:.2f} ms"


def _beside(peer: Callable[[Array, Array], Callable[[], object]]) -> list[str]:
    import numpy as np

    import dropdtw

    rng = np.random.default_rng(1)
    a, b = rng.normal(size=1000), rng.normal(size=1000)
    try:
        theirs = best_time(peer(a, b))
    except Exception as error:  # a failing peer must not hide our own numbers
        return [f"failed: {type(error).__name__}", "", ""]
    ours = best_time(lambda: dropdtw.distance(a, b, match="sqeuclidean", method="dtw"))
    return [_time(theirs), _time(ours), f"{theirs / ours:.1f} ×"]


def _dtaidistance(a: Array, b: Array) -> Callable[[], object]:
    dtw = import_module("dtaidistance.dtw")
    return lambda: dtw.distance_fast(a, b)


def _tslearn(a: Array, b: Array) -> Callable[[], object]:
    metrics = import_module("tslearn.metrics")
    return lambda: metrics.dtw(a, b)


def _aeon(a: Array, b: Array) -> Callable[[], object]:
    distances = import_module("aeon.distances")
    return lambda: distances.dtw_distance(a, b)


def _librosa(a: Array, b: Array) -> Callable[[], object]:
    sequence = import_module("librosa.sequence")
    return lambda: sequence.dtw(a[None], b[None], backtrack=False)


def _dtw_python(a: Array, b: Array) -> Callable[[], object]:
    package = import_module("dtw")
    return lambda: package.dtw(a, b, distance_only=True)


PEERS: Final[dict[str, Callable[[Array, Array], Callable[[], object]]]] = {
    "dtaidistance": _dtaidistance,
    "aeon": _aeon,
    "tslearn": _tslearn,
    "librosa": _librosa,
    "dtw": _dtw_python,
}
"""How each peer computes the distance, by import name."""
