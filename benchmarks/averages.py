"""Measure how junk spoils an average: DBA of tslearn and aeon, and ours without and with drops.

python -m benchmarks.averages [--data DIR] [--only made utkinect penn] [--seeds 5] [--drop percentile:20]

Run it in the environment of `make bench`, which has the other libraries. DIR holds the folders `utkinect` and
`pennaction`; without it, only synthetic series are measured.

made : 16 warped copies of one curve. A fifth of each is junk: two passages of noise at random levels. The error is the
    root mean square distance to the curve, along the best warping.
utkinect : ten actions, each recorded up to 16 times (20 joints, 3D). A passage from between the actions of the same
    recording is spliced into each series; it is a quarter as long as the action.
penn : the seven actions of Penn Action that are not cyclic. 16 videos (13 joints, 2D) are drawn, every second frame is
    kept, and a passage of another action is spliced into each.

The error on real series compares two averages by the same library: of the series with junk and of the clean series. It
is their distance along the best warping, divided by the spread of the clean average around its mean. 0 means that junk
had no effect, 1 that a constant would do as well. One rule for the drop cost serves all data sets; it was fixed before
we looked at the real series. aeon takes only series of equal length, so we stretch them to the median length for aeon.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import dropdtw
from reproduction.data import penn, utkinect

Array = np.ndarray
Series = list[Array]
Average = Callable[[Series], Array]


def averages(drop: str | float) -> dict[str, Average]:
    """What is compared, by name; each takes series (t, d) and gives their average (K, d)."""
    from aeon.clustering.averaging import elastic_barycenter_average
    from tslearn.barycenters import dtw_barycenter_averaging
    from tslearn.utils import to_time_series_dataset

    def length(series: Series) -> int:
        return int(np.median([len(X) for X in series]))

    def by_tslearn(series: Series) -> Array:
        return dtw_barycenter_averaging(to_time_series_dataset(series), barycenter_size=length(series), max_iter=50)

    def by_aeon(series: Series) -> Array:
        stack = np.stack([stretched(X, length(series)).T for X in series])
        return elastic_barycenter_average(stack, distance="dtw", max_iters=50).T

    def by_us(**how: object) -> Average:
        return lambda series: dropdtw.barycenter(series, length=length(series), **how).average

    return {
        "tslearn, DBA": by_tslearn,
        "aeon, DBA": by_aeon,
        "dropdtw, DBA": by_us(),
        f"dropdtw, drop_x={drop!r}": by_us(drop_x=drop),
    }


def stretched(X: Array, length: int) -> Array:
    """X (t, d) at another length, interpolated."""
    at = np.linspace(0, len(X) - 1, length)
    return np.stack([np.interp(at, np.arange(len(X)), x) for x in X.T], axis=1)


def error(found: Array, truth: Array) -> float:
    """The root mean square distance of two series along their best warping."""
    a = dropdtw.align(found, truth, method="dtw", match="sqeuclidean")
    return float(np.sqrt(a.cost / len(a.pairs)))


def spread(A: Array) -> float:
    """How far the frames of a series are from their mean, root mean square."""
    return float(np.sqrt(((A - A.mean(axis=0)) ** 2).sum(axis=1).mean()))


def spliced(X: Array, junk: Array, rng: np.random.Generator) -> Array:
    """X with some junk inside it."""
    at = int(rng.integers(1, len(X)))
    return np.concatenate([X[:at], junk, X[at:]])


def passage(frames: Array, length: int, rng: np.random.Generator) -> Array:
    """So many frames in a row."""
    start = int(rng.integers(0, max(1, len(frames) - length + 1)))
    return frames[start : start + length]


def curve(t: Array) -> Array:
    """What the made series are copies of."""
    return np.sin(2 * np.pi * t) * np.exp(-t) + 0.6 * np.exp(-(((t - 0.7) / 0.06) ** 2))


def made(seed: int, count: int = 16, length: int = 80, share: float = 0.2) -> Series:
    """Warped, noisy copies of the curve with junk in them."""
    rng = np.random.default_rng(seed)
    series = []
    for _ in range(count):
        steps = rng.gamma(2.0, size=int(rng.integers(0.8 * length, 1.2 * length))).cumsum()
        X = curve((steps - steps[0]) / (steps[-1] - steps[0])) + 0.05 * rng.normal(size=len(steps))
        for part in rng.multinomial(round(share / (1 - share) * len(X)), [0.5, 0.5]):
            X = spliced(X, rng.normal(0, 1.5) + 0.5 * rng.normal(size=part), rng)
        series.append(X[:, None])
    return series


def actions_of_utkinect(folder: Path) -> Iterator[tuple[str, Callable[[np.random.Generator], tuple[Series, Series]]]]:
    """Each action, and what draws its clean and its spoiled series."""
    known = []
    for recording in utkinect.recordings(folder):
        poses, spans = utkinect.clips(recording, 1, velocity=False)
        inside = {name: (start <= spans[:, 0]) & (spans[:, 0] < stop)
                  for name, (start, stop) in recording.segments.items()}  # fmt: skip
        between = poses[~np.any(list(inside.values()), axis=0)]
        known.append(({name: poses[there] for name, there in inside.items() if there.sum() >= 8}, between))

    def draw(action: str, rng: np.random.Generator) -> tuple[Series, Series]:
        both = [(shown[action], between) for shown, between in known if action in shown]
        clean = [X.astype(float) for X, _ in both]
        return clean, [
            spliced(X, passage(junk, len(X) // 4, rng), rng) for X, (_, junk) in zip(clean, both, strict=True)
        ]

    for action in utkinect.STEPS:
        yield action, lambda rng, action=action: draw(action, rng)


def actions_of_penn(folder: Path) -> Iterator[tuple[str, Callable[[np.random.Generator], tuple[Series, Series]]]]:
    """The same for Penn Action."""
    videos = [(v.action, v.poses().reshape(len(v), -1).astype(float)[::2]) for v in penn.load(folder) if v.train]

    def draw(action: str, rng: np.random.Generator) -> tuple[Series, Series]:
        own = [X for name, X in videos if name == action]
        others = [X for name, X in videos if name != action]
        clean = [own[k] for k in rng.choice(len(own), 16, replace=False)]
        return clean, [spliced(X, passage(others[rng.integers(len(others))], len(X) // 4, rng), rng) for X in clean]

    for action in penn.NON_CYCLIC:
        yield action, lambda rng, action=action: draw(action, rng)


def table(title: str, rows: dict[str, list[float]], seconds: dict[str, float]) -> None:
    """Print the errors of each way: the mean, the worst, and the time it took."""
    print(f"\n{title}\n")
    print(f"| {'average':38s} | error | worst | seconds each |\n|{'-' * 40}|---|---|---|")
    for name, errors in rows.items():
        print(f"| {name:38s} | {np.mean(errors):.3f} | {np.max(errors):.3f} | {seconds[name] / len(errors):.2f} |")


def measure_made(ways: dict[str, Average], seeds: range) -> None:
    truth = curve(np.linspace(0, 1, 80))[:, None]
    rows, seconds = {name: [] for name in ways}, dict.fromkeys(ways, 0.0)
    for seed in seeds:
        series = made(seed)
        for name, average in ways.items():
            start = time.process_time()
            rows[name].append(error(average(series), truth))
            seconds[name] += time.process_time() - start
    table(f"made: 16 warped series, 20 % junk, {len(seeds)} seeds", rows, seconds)


def measure_real(title: str, actions: Iterator, ways: dict[str, Average], seeds: range) -> None:
    rows, seconds = {name: [] for name in ways}, dict.fromkeys(ways, 0.0)
    cases = 0
    for _, draw in actions:
        cases += 1
        for seed in seeds:
            clean, spoiled = draw(np.random.default_rng(seed))
            for name, average in ways.items():
                untouched = average(clean) if "drop_x" not in name else ways["dropdtw, DBA"](clean)
                start = time.process_time()
                found = average(spoiled)
                seconds[name] += time.process_time() - start
                rows[name].append(error(found, untouched) / spread(untouched))
    table(f"{title}: {cases} actions, {len(seeds)} seeds", rows, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="+", default=["made", "utkinect", "penn"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--drop", default="percentile:20")
    told = parser.parse_args()
    warnings.simplefilter("ignore")
    ways = averages(told.drop)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("tslearn", "aeon"))
    print(f"dropdtw {dropdtw.__version__}, {versions}")
    if "made" in told.only:
        measure_made(ways, range(100, 100 + told.seeds))
    if told.data is None:
        print("\nno --data: real series are not measured")
        return
    if "utkinect" in told.only:
        measure_real("utkinect", actions_of_utkinect(told.data / "utkinect"), ways, range(told.seeds))
    if "penn" in told.only:
        measure_real("penn", actions_of_penn(told.data / "pennaction"), ways, range(told.seeds))


if __name__ == "__main__":
    main()
