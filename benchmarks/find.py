"""Find planted copies of a query with `dropdtw.find`, dtaidistance's subsequence search and stumpy's matches.

python benchmarks/find.py [--length 200000] [--count 20] [--seed 0]

Copies of a smooth query of 100 samples are planted in a random signal, each slower or faster by up to 25 % and with
noise. Into every second copy, 15 foreign samples are spliced. Each library has to return as many non-overlapping
matches as there are copies. A copy counts as found if a match overlaps it with an IoU above one half.
The environment of `make bench` has the other libraries; those that are not installed are skipped. Times are CPU seconds
of one process, after a small first call that compiles what needs compiling. The drop cost was chosen on seed 101.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

import dropdtw

Interval = tuple[int, int]


def planted(length: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray, list[Interval], list[bool]]:
    """A query, a signal, the intervals of the planted copies, and which of them contain a burst."""
    rng = np.random.default_rng(seed)
    at = np.linspace(0, 1, 100)
    query = np.sin(2 * np.pi * (3 * at**1.5)) * np.hanning(100) ** 0.3 * 2
    signal = np.convolve(rng.normal(size=length + 40), np.hanning(41) / np.linalg.norm(np.hanning(41)), mode="valid")
    places, burst = [], []
    for n in range(count):
        speed = rng.uniform(0.75, 1.25)
        copy = np.interp(np.linspace(0, 99, int(100 * speed)), np.arange(100), query)
        if n % 2:
            cut = rng.integers(30, len(copy) - 30)
            copy = np.concatenate([copy[:cut], 5 + rng.normal(size=15), copy[cut:]])
        start = n * (length // count) + rng.integers(0, length // count - len(copy))
        signal[start : start + len(copy)] = copy + 0.05 * rng.normal(size=len(copy))
        places.append((int(start), int(start + len(copy))))
        burst.append(bool(n % 2))
    return query, signal, places, burst


def ours(query: np.ndarray, signal: np.ndarray, k: int) -> list[Interval]:
    return [(o.start, o.stop) for o in dropdtw.find(query, signal, k, match="sqeuclidean", drop_x=0.1)]


def without_drops(query: np.ndarray, signal: np.ndarray, k: int) -> list[Interval]:
    return [(o.start, o.stop) for o in dropdtw.find(query, signal, k, match="sqeuclidean")]


def dtaidistance(query: np.ndarray, signal: np.ndarray, k: int) -> list[Interval]:
    from dtaidistance.subsequence.dtw import subsequence_alignment

    found = subsequence_alignment(query, signal, use_c=True).kbest_matches(k=k, overlap=0)
    return [(int(m.segment[0]), int(m.segment[1]) + 1) for m in found]


def stumpy(query: np.ndarray, signal: np.ndarray, k: int) -> list[Interval]:
    import stumpy

    stumpy.config.STUMPY_EXCL_ZONE_DENOM = 1  # matches do not overlap
    found = stumpy.match(query, signal, max_distance=np.inf, max_matches=k)
    return [(int(start), int(start) + len(query)) for _, start in found]


def shares(a: Interval, b: Interval) -> bool:
    common = min(a[1], b[1]) - max(a[0], b[0])
    return common > 0.5 * (max(a[1], b[1]) - min(a[0], b[0]))


def report(
    name: str, search: Callable[[np.ndarray, np.ndarray, int], list[Interval]], given: argparse.Namespace
) -> None:
    search(*planted(3000, 2, 1)[:2], 2)
    query, signal, places, burst = planted(given.length, given.count, given.seed)
    began = time.process_time()
    found = search(query, signal, given.count)
    took = time.process_time() - began
    hit = np.array([any(shares(place, one) for one in found) for place in places])
    spoiled = np.array(burst)
    print(
        f"{name:<28} {took:8.2f} s   whole {hit[~spoiled].sum()} of {(~spoiled).sum()}   "
        f"with a burst {hit[spoiled].sum()} of {spoiled.sum()}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=200_000)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    searches = {"dropdtw.find, drop_x=0.1": ours, "dropdtw.find, no drops": without_drops}
    searches |= {"dtaidistance": dtaidistance} if find_spec("dtaidistance") else {}
    searches |= {"stumpy": stumpy} if find_spec("stumpy") else {}
    for name, search in searches.items():
        report(name, search, given)


if __name__ == "__main__":
    main()
