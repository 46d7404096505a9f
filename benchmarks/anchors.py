"""Measure how anchors change the time of an alignment.

    python benchmarks/anchors.py

Prints the time with anchors divided by the time without, and the time without, for `align`, `solve`, `cost`, a soft
`cost` and `posterior`. Drop costs on both sides, float64; the minimum of several rounds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import dropdtw
from dropdtw import Aligner

SHAPES = ((60, 60, 3), (300, 400, 3), (1000, 1500, 8), (10, 5000, 16))


def seconds(job: Callable[[], object], rounds: int) -> float:
    """The minimum time of several rounds."""
    job()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="how often to repeat each measurement (default 7)")
    rounds = parser.parse_args().rounds
    plain = Aligner(1.0, 1.0)
    soft = plain.replace(reducer="soft")
    for K, N, d in SHAPES:
        rng = np.random.default_rng(0)
        Z, X = rng.normal(size=(K, d)), rng.normal(size=(N, d))
        C = dropdtw.costs.euclidean(Z, X)
        for parts in (2, 4):
            anchors = [(K * k // parts, N * k // parts) for k in range(1, parts)]
            verbs: dict[str, tuple[Aligner, Callable[[Aligner], object]]] = {
                "align": (plain, lambda a, Z=Z, X=X: a.align(Z, X)),
                "solve": (plain, lambda a, C=C: a.solve(C)),
                "cost": (plain, lambda a, C=C: a.cost(C)),
                "soft": (soft, lambda a, C=C: a.cost(C)),
                "posterior": (plain, lambda a, C=C: a.posterior(C)),
            }
            line = f"{K:5} x {N:<5} {len(anchors)} anchors"
            for name, (aligner, verb) in verbs.items():
                cut = aligner.replace(anchors=anchors)
                before = seconds(lambda verb=verb, aligner=aligner: verb(aligner), rounds)
                after = seconds(lambda verb=verb, cut=cut: verb(cut), rounds)
                line += f"   {name} {after / before:5.2f} of {1e3 * before:.2f} ms"
            print(line, flush=True)


if __name__ == "__main__":
    main()
