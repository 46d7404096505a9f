"""Measure `dropdtw.text.find_steps` on cooking videos by cross-validation, then calibrate it on all of them.

python -m benchmarks.chapters --data DIR [--folds 5] [--seed 0] [--model FOLDER]

DIR has `yc2_transcripts.json.gz` (see `reproduction.data.transcripts`). Its videos are split into folds. All constants
of `dropdtw/text/evidence.py` are chosen on all folds but one and measured on that one, in turn. The last lines choose
them on all videos; the library uses these values. Steps are searched for in five settings:

own : all steps of a video, in its own transcript.
foreign : all steps of a video, in the transcript of another dish of the same fold.
mixed : half of a video's own steps, mixed with half of another's.
few own, few foreign : one to three consecutive steps.

"key" steps are an annotator's words for single sentences; they are right if the passage contains that sentence.
"recipe" steps are YouCook2's words for what is seen; they are right if the passage comes within 5 seconds of it.
"Order" is the baseline: one sentence per step, in order, without a drop cost. "Alone" is the alignment with drops,
without evidence, floor and edge. This takes about two minutes on one core.
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
from dropdtw.text.evidence import (
    FLOOR,
    GAMMA,
    SKIP,
    UNKNOWN,
    Passage,
    PassageEvidence,
    Weights,
    passages,
    probability,
    trimmed,
)
from dropdtw.text.find import match_costs
from reproduction.data import transcripts

Kind = Literal["key", "recipe"]
KINDS: tuple[Kind, ...] = ("key", "recipe")
SETTINGS = ("own", "foreign", "mixed", "few own", "few foreign")
LIMITS = {"foreign": 0.1, "mixed": 0.1, "few foreign": 0.2}
"""The fraction of foreign steps that may be found: what we ask for, which no data can choose."""
SKIPS = (0.1, 0.15, 0.2, 0.3)
GAMMAS = (0.04, 0.07, 0.12)
UNKNOWNS = (0.7, 0.8, 0.9)
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
class Task:
    """A list of steps to find in a video, with their match costs C (K, N)."""

    kind: Kind
    setting: str
    video: Video
    steps: list[Step]
    C: np.ndarray


@dataclass(frozen=True, slots=True)
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


class Aligned(NamedTuple):
    """The constants of `dropdtw.text.evidence` that the alignment and its evidence depend on."""

    skip: float
    gamma: float
    unknown: float


LIBRARY = Aligned(SKIP, GAMMA, UNKNOWN)


class Chosen(NamedTuple):
    """The other constants, and the limits' price: the mean share of own steps that they keep in the right place."""

    weights: Weights
    floor: float
    edge: float
    right: float


Searches = dict[Aligned, list[Search]]


# Searching


class Embedder:
    """Cached embeddings of texts.   model : see `embed`."""

    def __init__(self, model: str = "wordllama") -> None:
        self.model = model
        self.known: dict[str, np.ndarray] = {}

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """(n, d) embeddings."""
        new = [t for t in dict.fromkeys(texts) if t not in self.known]
        self.known.update(zip(new, embed(new, self.model), strict=True))
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


def tasks(fold: Sequence[Video], embed: Embedder, rng: np.random.Generator) -> Iterator[Task]:
    """The tasks of every setting for every video of a fold; foreign steps come from the same fold."""
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
            if steps:
                C = match_costs([s.text for s in steps], video.sentences, embed)
                yield Task(kind, setting, video, steps, C)


def searches(task: Task, how: Aligned = LIBRARY, opening: float = 0.0) -> list[Search]:
    """Search for the steps of a task.   opening : cost of a run of dropped sentences, in units of the drop cost."""
    price = float(np.mean(Suggest()(task.C)))
    a = solve(task.C, price, how.skip * price, method="steps", open_x=opening * price)
    return _searches(task, passages(task.C, a, gamma=how.gamma, unknown=how.unknown))


def by_order(task: Task) -> list[Search]:
    """The baseline: every step gets one sentence, in order. Steps share sentences only if there are too few."""
    K, N = task.C.shape
    a = solve(task.C, 0.0, one_to_many=False, many_to_one=K > N)
    return _searches(task, [Passage(*visit, PassageEvidence(np.nan, np.nan, np.nan)) for visit in a.visits])


def _searches(task: Task, found: Sequence[Passage]) -> list[Search]:
    there = {passage.step: passage for passage in found if passage.aligned}
    return [
        Search(task.kind, task.setting, task.video.name, step, there.get(i), task.C[i], task.video.times)
        for i, step in enumerate(task.steps)
    ]


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
    """Weights by maximum likelihood; the lowest floor that keeps the limits; the edge with the best overlap."""
    located = [(s, s.passage.evidence) for s in found if s.passage is not None]
    weights = fit(np.array([e for _, e in located]), np.array([s.right() for s, _ in located]))
    own: dict[tuple[str, str], list[float]] = defaultdict(list)
    foreign: dict[tuple[str, str], list[float]] = defaultdict(list)
    for s in found:
        if s.step.told is None:
            foreign[s.kind, s.setting].append(sure(s, weights))
        else:
            own[s.kind, s.setting].append(sure(s, weights) if s.right() else 0.0)
    floor = next(float(f) for f in FLOORS if all(above(p, f) <= LIMITS[setting] for (_, setting), p in foreign.items()))
    whole = {k: [s for s, _ in located if s.setting == "own" and s.kind == k and s.right()] for k in KINDS}
    edge = max(EDGES, key=lambda e: sum(float(np.mean([s.overlap(e) for s in part])) for part in whole.values()))
    return Chosen(weights, floor, edge, float(np.mean([above(p, floor) for p in own.values()])))


def choose_all(found: Searches) -> tuple[Aligned, Chosen]:
    """All constants: the ones that keep most own steps in the right place, within the limits."""
    return max(((how, choose(part)) for how, part in found.items()), key=lambda pair: pair[1].right)


def above(probabilities: Sequence[float], floor: float) -> float:
    """The fraction of probabilities of at least the floor."""
    return float(np.mean(np.array(probabilities) >= floor))


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


def held_out(folds: Sequence[Searches]) -> list[Outcome]:
    """Every search, judged with the constants chosen on the other folds."""
    outcomes = []
    for k, fold in enumerate(folds):
        how, chosen = choose_all(merged([part for j, part in enumerate(folds) if j != k]))
        outcomes += [Outcome(s, sure(s, chosen.weights), chosen.floor, chosen.edge) for s in fold[how]]
    return outcomes


def merged(folds: Sequence[Searches]) -> Searches:
    return {how: [s for part in folds for s in part[how]] for how in folds[0]}


def share(values: Sequence[bool]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def report(outcomes: Sequence[Outcome], baseline: Sequence[Search]) -> None:
    """Print the outcomes beside the baseline, then the calibration."""
    print(f"{'':28}  {'own steps in the right place':^32}  {'foreign steps found':^24}")
    print(f"{'steps':8}{'setting':12}{'steps':>8}  {'order':>8}{'alone':>8}{'now':>8}{'kept':>8}  ", end="")
    print(f"{'order':>8}{'alone':>8}{'now':>8}")
    for kind, setting in product(KINDS, SETTINGS):
        part = [o for o in outcomes if (o.search.kind, o.search.setting) == (kind, setting)]
        own, foreign = ([o for o in part if (o.search.step.told is not None) == told] for told in (True, False))
        plain = [s for s in baseline if (s.kind, s.setting) == (kind, setting)]
        placed = share([s.right() for s in plain if s.step.told is not None])
        always = share([s.passage is not None for s in plain if s.step.told is None])
        alone, now = share([o.search.right() for o in own]), share([o.right for o in own])
        before, after = share([o.search.passage is not None for o in foreign]), share([o.found for o in foreign])
        right = f"{placed:8.1%}{alone:8.1%}{now:8.1%}{now / alone:8.1%}" if own else ""
        wrong = f"{always:8.1%}{before:8.1%}{after:8.1%}" if foreign else ""
        print(f"{kind:8}{setting:12}{len(part):8}  {right:32}  {wrong}".rstrip())
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


def split(folder: Path, folds: int = 5, seed: int = 0, model: str = "wordllama") -> list[list[Task]]:
    """The tasks of every fold."""
    rng, embed = np.random.default_rng(seed), Embedder(model)
    there = videos(folder)
    place = rng.permutation(len(there)) % folds
    parts = [[v for v, p in zip(there, place, strict=True) if p == k] for k in range(folds)]
    return [list(tasks(part, embed, rng)) for part in parts]


def skipping(parts: Sequence[Sequence[Task]]) -> None:
    """Print what the alignment alone gains and loses if skipping a step costs more."""
    print("\ncost of skipping a step; own steps in the right place, and foreign steps found, by the alignment alone")
    for skip, kind in product((*SKIPS, 0.5, 1.0), KINDS):
        these = [task for part in parts for task in part if task.kind == kind and task.setting in ("own", "mixed")]
        found = [s for task in these for s in searches(task, LIBRARY._replace(skip=skip))]
        own, mixed = ([s.right() for s in found if s.setting == name and s.step.told] for name in ("own", "mixed"))
        foreign = [s.passage is not None for s in found if s.step.told is None]
        print(
            f"{skip:4g} {kind:6} own {share(own):.1%}, half own {share(mixed):.1%}, half foreign {share(foreign):.1%}"
        )


def nearest(parts: Sequence[Sequence[Task]]) -> None:
    """Print how often the closest place of a step that the library does not find is right."""
    print("\nclosest place of own steps that were not found")
    for kind in KINDS:
        right = []
        for task in (task for part in parts for task in part if (task.kind, task.setting) == (kind, "own")):
            price = float(np.mean(Suggest()(task.C)))
            for passage in passages(task.C, solve(task.C, price, SKIP * price, method="steps")):
                if not passage.aligned or probability(passage.evidence) < FLOOR:
                    row, step = task.C[passage.step], task.steps[passage.step]
                    right.append(Search(kind, "own", task.video.name, step, passage, row, task.video.times).right())
        print(f"{kind:6} {share(right):.1%} of {len(right)} right")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with yc2_transcripts.json.gz")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="wordllama", help="the embeddings to fit the constants to, see `embed`")
    options = parser.parse_args()
    parts = split(options.data, options.folds, options.seed, options.model)
    candidates = [Aligned(*values) for values in product(SKIPS, GAMMAS, UNKNOWNS)]
    folds = [{how: [s for task in part for s in searches(task, how)] for how in candidates} for part in parts]
    count = len({task.video.name for part in parts for task in part})
    print(f"{count} videos, {options.folds} folds, seed {options.seed}, held out")
    report(held_out(folds), [s for part in parts for task in part for s in by_order(task)])
    skipping(parts)
    nearest(parts)
    how, chosen = choose_all(merged(folds))
    weights = ", ".join(f"{name}={w:.2f}" for name, w in chosen.weights._asdict().items())
    print("\nchosen on all videos:")
    print(f"SKIP = {how.skip:g}\nGAMMA = {how.gamma:g}\nUNKNOWN = {how.unknown:g}")
    print(f"WEIGHTS = Weights({weights})\nFLOOR = {chosen.floor:g}\nEDGE = {chosen.edge:.4g}")


if __name__ == "__main__":
    main()
