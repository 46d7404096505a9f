"""Measure `dropdtw.text.find_steps` on cooking videos by cross-validation, then calibrate it on all of them.

python -m benchmarks.chapters --data DIR [--folds 5] [--seed 0]

DIR has `yc2_transcripts.json.gz` (see `reproduction.data.transcripts`). Its videos are split into folds. Weights, floor
and edge (see `dropdtw/text/evidence.py`) are chosen on all folds but one and measured on that one, in turn. The last
lines choose them on all videos; the library uses these values. Steps are searched for in five settings:

own : all steps of a video, in its own transcript.
foreign : all steps of a video, in the transcript of another dish of the same fold.
mixed : half of a video's own steps, mixed with half of another's.
few own, few foreign : one to three consecutive steps.

"key" steps are an annotator's words for single sentences; they are right if the passage contains that sentence.
"recipe" steps are YouCook2's words for what is seen; they are right if the passage comes within 5 seconds of it.
"Alignment alone" means without evidence, floor and edge.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from dropdtw import solve
from dropdtw.drops import Suggest
from dropdtw.text.embeddings import embed
from dropdtw.text.evidence import SKIP, Passage, Weights, passages, probability, trimmed
from dropdtw.text.find import match_costs
from reproduction.data import transcripts

Kind = Literal["key", "recipe"]
KINDS: tuple[Kind, ...] = ("key", "recipe")
SETTINGS = ("own", "foreign", "mixed", "few own", "few foreign")
FOREIGN = 0.1
"""Maximum fraction of foreign steps found when choosing the floor; with only one to three steps it is higher."""
FLOORS = np.arange(0.05, 1, 0.05).round(2)
EDGES = (0.0, 0.25, 0.5, 0.6, 2 / 3, 0.75, 0.85, 1.0)
NEAR = 5.0

Span = tuple[float, float]


class Step(NamedTuple):
    """A step, and the span in seconds where it is described; None if it belongs to another video."""

    text: str
    told: Span | None


@dataclass(frozen=True)
class Video:
    """The sentences of a video, and its steps of either kind."""

    name: str
    dish: str
    sentences: list[str]
    times: np.ndarray
    steps: dict[str, list[Step]]


@dataclass(frozen=True)
class Search:
    """The search for one step: where it was found (None: nowhere), and where it is."""

    kind: Kind
    setting: str
    video: str
    step: Step
    passage: Passage | None
    row: np.ndarray
    times: np.ndarray

    def right(self, edge: float = 0.0) -> bool:
        """Whether the passage is where the step is described."""
        if self.passage is None or self.step.told is None:
            return False
        start, stop = self.seconds(edge)
        if self.kind == "key":
            return start <= self.step.told[0] < stop
        return min(stop, self.step.told[1] + NEAR) > max(start, self.step.told[0] - NEAR)

    def seconds(self, edge: float) -> Span:
        """The start and stop of the passage in seconds."""
        assert self.passage is not None
        first, after = self.passage.first, self.passage.after
        if edge:
            first, after = trimmed(self.row, first, after, edge)
        return float(self.times[first, 0]), float(self.times[after - 1, 1])

    def overlap(self, edge: float) -> float:
        """Intersection over union of passage and ground truth, in seconds."""
        (start, stop), told = self.seconds(edge), self.step.told
        assert told is not None
        return max(0.0, min(stop, told[1]) - max(start, told[0])) / (max(stop, told[1]) - min(start, told[0]))


class Chosen(NamedTuple):
    """The constants of `dropdtw.text.evidence`."""

    weights: Weights
    floor: float
    edge: float


# Searching


class Embedder:
    """Cached embeddings of texts."""

    def __init__(self) -> None:
        self.known: dict[str, np.ndarray] = {}

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """(n, d) embeddings."""
        new = [t for t in dict.fromkeys(texts) if t not in self.known]
        self.known.update(zip(new, embed(new), strict=True))
        return np.array([self.known[t] for t in texts])


def videos(folder: Path) -> list[Video]:
    """The videos with key steps."""
    read = {kind: {t[0].name: t for t in transcripts.read(folder, steps=kind)} for kind in KINDS}
    found = []
    for name, (record, sentences, times) in read["key"].items():
        steps = {}
        for kind in KINDS:
            r = read[kind][name][0]
            steps[kind] = [Step(t, (start, stop)) for t, (_, start, stop) in zip(r.step_texts, r.segments, strict=True)]
        if record.step_ids:
            found.append(Video(name, record.task, sentences, times, steps))
    return found


def searches(
    fold: Sequence[Video], embed: Embedder, rng: np.random.Generator, opening: float = 0.0
) -> Iterator[Search]:
    """Search in every setting for every video of a fold; foreign steps come from the same fold.

    opening : the cost of opening a run of dropped sentences, in units of the drop cost.
    """
    for kind, video in product(KINDS, fold):
        own = video.steps[kind]
        others = [v for v in fold if v.dish != video.dish and v.steps[kind]]
        if not own or not others:
            continue
        foreign, second = (
            [s._replace(told=None) for s in others[k].steps[kind]] for k in rng.integers(len(others), size=2)
        )
        count = int(rng.integers(1, 4))
        wanted = {
            "own": own,
            "foreign": foreign,
            "mixed": mixed(own, second, rng),
            "few own": some(own, count, rng),
            "few foreign": some(second, count, rng),
        }
        for setting, steps in wanted.items():
            if not steps:
                continue
            C = match_costs([s.text for s in steps], video.sentences, embed)
            price = float(np.mean(Suggest()(C)))
            how = {"many_to_one": False, "contiguous": True, "open_x": opening * price}
            a = solve(C, price, SKIP * price, **how)  # type: ignore[arg-type]
            there = {passage.step: passage for passage in passages(C, a)}
            for i, step in enumerate(steps):
                yield Search(kind, setting, video.name, step, there.get(i), C[i], video.times)


def mixed(own: list[Step], foreign: list[Step], rng: np.random.Generator) -> list[Step]:
    """About half of each, in order."""
    placed = [
        (number / len(steps), step)
        for steps in (own, foreign)
        for number, step in enumerate(steps)
        if rng.random() < 0.5
    ]
    return [step for _, step in sorted(placed, key=lambda pair: pair[0])]


def some(steps: list[Step], count: int, rng: np.random.Generator) -> list[Step]:
    first = int(rng.integers(max(1, len(steps) - count + 1)))
    return steps[first : first + count]


# Choosing


def choose(found: Sequence[Search]) -> Chosen:
    """Weights by maximum likelihood; the lowest floor that keeps foreign steps out; the edge with the best overlap."""
    located = [(s, s.passage.evidence) for s in found if s.passage is not None]
    weights = fit(np.array([e for _, e in located]), np.array([s.right() for s, _ in located]))
    foreign: dict[tuple[str, str], list[float]] = defaultdict(list)
    for s in found:
        if s.step.told is None and s.setting in ("foreign", "mixed"):
            foreign[s.kind, s.setting].append(sure(s, weights))
    floor = next(float(f) for f in FLOORS if all(np.mean(np.array(p) >= f) <= FOREIGN for p in foreign.values()))
    whole = {k: [s for s, _ in located if s.setting == "own" and s.kind == k and s.right()] for k in KINDS}
    edge = max(EDGES, key=lambda e: sum(float(np.mean([s.overlap(e) for s in part])) for part in whole.values()))
    return Chosen(weights, floor, edge)


def fit(evidence: np.ndarray, right: np.ndarray, ridge: float = 0.01) -> Weights:
    """Logistic regression by Newton's method."""
    A = np.column_stack([np.ones(len(evidence)), evidence])
    w = np.zeros(A.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-A @ w))
        step = np.linalg.solve((A.T * (p * (1 - p))) @ A + ridge * np.eye(len(w)), A.T @ (right - p) - ridge * w)
        w += step
        if np.abs(step).max() < 1e-9:
            break
    return Weights(*w.tolist())


def sure(s: Search, weights: Weights) -> float:
    return 0.0 if s.passage is None else probability(s.passage.evidence, weights)


# Measuring


@dataclass(frozen=True)
class Outcome:
    """The outcome of one search, by the alignment alone and with the constants chosen on the other folds."""

    search: Search
    sure: float
    floor: float
    edge: float

    @property
    def found(self) -> bool:
        """Whether the step is reported as found."""
        return self.search.passage is not None and self.sure >= self.floor

    @property
    def right(self) -> bool:
        """Whether it is found in the right place."""
        return self.found and self.search.right(self.edge)

    def exact(self, *, alone: bool) -> bool:
        """Whether the passage begins exactly where the step does."""
        s = self.search
        if s.step.told is None or s.passage is None or not (alone or self.found):
            return False
        return s.seconds(0.0 if alone else self.edge)[0] == s.step.told[0]


def held_out(folds: Sequence[Sequence[Search]]) -> list[Outcome]:
    """Every search, judged with the constants chosen on the other folds."""
    outcomes = []
    for k, fold in enumerate(folds):
        weights, floor, edge = choose([s for j, part in enumerate(folds) if j != k for s in part])
        outcomes += [Outcome(s, sure(s, weights), floor, edge) for s in fold]
    return outcomes


def share(values: Sequence[bool]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def summary(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The main figures: key steps, whole videos."""
    own = [o for o in outcomes if (o.search.kind, o.search.setting) == ("key", "own")]
    foreign = [o for o in outcomes if (o.search.kind, o.search.setting) == ("key", "foreign")]
    return {
        "foreign found": share([o.found for o in foreign]),
        "own right": share([o.right for o in own]),
        "own right, alignment alone": share([o.search.right() for o in own]),
    }


def report(outcomes: Sequence[Outcome]) -> None:
    print(f"{'':20}{'':>8}  {'own steps in the right place':^34}  {'foreign steps found':^20}")
    print(f"{'steps':8}{'setting':12}{'steps':>8}  {'alone':>10}{'now':>8}{'kept':>8}{'':8}  {'alone':>10}{'now':>10}")
    for kind, setting in product(KINDS, SETTINGS):
        part = [o for o in outcomes if (o.search.kind, o.search.setting) == (kind, setting)]
        own, foreign = ([o for o in part if (o.search.step.told is not None) == told] for told in (True, False))
        alone, now = share([o.search.right() for o in own]), share([o.right for o in own])
        before, after = share([o.search.passage is not None for o in foreign]), share([o.found for o in foreign])
        right = f"{alone:10.1%}{now:8.1%}{now / alone:8.1%}" if own else " " * 26
        wrong = f"{before:10.1%}{after:10.1%}" if foreign else ""
        print(f"{kind:8}{setting:12}{len(part):8}  {right:34}  {wrong}".rstrip())
    own = [o for o in outcomes if (o.search.kind, o.search.setting) == ("key", "own")]
    alone, now = share([o.exact(alone=True) for o in own]), share([o.exact(alone=False) for o in own])
    print(f"own key steps whose passage begins with their sentence: {alone:.1%} alone, {now:.1%} now")
    print("\nconfidence and share right, all settings:")
    for low in np.arange(0, 1, 0.1):
        part = [o for o in outcomes if o.search.passage is not None and low <= o.sure < low + 0.1 + (low > 0.85)]
        right, of_keys = ([o.search.right() for o in part if o.search.kind in kinds] for kinds in (KINDS, ("key",)))
        print(
            f"{low:5.0%} – {low + 0.1:4.0%}: {len(part):6} steps, {np.mean([o.sure for o in part]):4.0%} sure, "
            f"{share(right):4.0%} right (key steps {share(of_keys):4.0%})"
        )


def measure(
    folder: Path, folds: int = 5, seed: int = 0, opening: float = 0.0, embed: Embedder | None = None
) -> list[list[Search]]:
    """The searches of every fold."""
    rng, embed = np.random.default_rng(seed), embed or Embedder()
    there = videos(folder)
    place = rng.permutation(len(there)) % folds
    parts = [[v for v, p in zip(there, place, strict=True) if p == k] for k in range(folds)]
    return [list(searches(part, embed, rng, opening)) for part in parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with yc2_transcripts.json.gz")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folds = measure(options.data, options.folds, options.seed)
    print(
        f"{len({s.video for part in folds for s in part})} videos, {options.folds} folds, seed {options.seed}, held out"
    )
    report(held_out(folds))
    weights, floor, edge = choose([s for part in folds for s in part])
    print("\nchosen on all videos:")
    print(f"WEIGHTS = Weights({', '.join(f'{name}={w:.2f}' for name, w in weights._asdict().items())})")
    print(f"FLOOR = {floor:g}\nEDGE = {edge:.4g}")


if __name__ == "__main__":
    main()
