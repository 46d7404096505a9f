"""Find where a talk mentions each step of a written procedure.

Sentence embeddings give the match costs, and a sentence belongs to at most one step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dropdtw import costs, drops
from dropdtw.api import solve
from dropdtw.drops import DropCost, Suggest
from dropdtw.orders.order import Order, OrderLike, as_order, as_step
from dropdtw.problem.charges import Opening
from dropdtw.problem.inputs import Array, as_floats
from dropdtw.results.alignment import Alignment
from dropdtw.text.evidence import FLOOR, SKIP, passages, probability, trimmed
from dropdtw.text.words import echo_costs


class Closest(NamedTuple):
    """The most likely place of a step that was not found.

    start, stop : seconds; None if the talk has no times.
    confidence : the probability that the step is talked about there, 0 to 1.
    sentences : the sentences [first, last + 1).
    """

    start: float | None
    stop: float | None
    confidence: float
    sentences: tuple[int, int]


@dataclass(frozen=True)
class FoundStep:
    """Where a step is talked about.

    index, step : its number, from 0, and its text.
    start, stop : seconds; None if it was not found, or if the talk has no times.
    confidence : the probability that it is talked about there, 0 to 1; None if it was not found.
    sentences : the sentences [first, last + 1) in which it was found; None if it was not found.
    left_out : for a step that was not found: "optional" if it is optional, "alternative" if another alternative was
        taken, and "" if it is missing. For a found step, "".
    closest : the most likely place of a missing step, or None if the step is found, optional or an alternative.

    >>> from dropdtw.text import FoundStep
    >>> FoundStep(0, "Boil", start=30.0, stop=40.0, confidence=0.9, sentences=(3, 4)).found
    True
    """

    index: int
    step: str
    start: float | None
    stop: float | None
    confidence: float | None
    sentences: tuple[int, int] | None
    left_out: str = ""
    closest: Closest | None = None

    @property
    def found(self) -> bool:
        """Whether the step was found."""
        return self.sentences is not None


def find_steps(
    steps: Sequence[str],
    sentences: Sequence[str],
    times: npt.ArrayLike | None = None,
    *,
    order: OrderLike | None = None,
    optional: Sequence[int] = (),
    drop_x: DropCost = "suggest",
    open_x: Opening = 0.0,
    skip: float | None = SKIP,
    model: str = "wordllama",
) -> list[FoundStep]:
    """Find where each step is talked about, and drop off-topic sentences.

    An alignment assigns each step a passage of consecutive sentences, or none. The step counts as found if the passage
    is likely enough to be about it; `dropdtw.text.evidence` computes this probability. If most steps are not found, the
    talk is probably about something else.

    Parameters
    ----------
    steps : the texts of the steps to find, in order.
    sentences : the sentences of the talk, in order.
    times : (N, 2) start and stop of each sentence in seconds, or (N,) only starts. None: there are no times, and the
        results have only sentence indices.
    order : which steps may follow which, see `dropdtw.orders`; None: each follows the one before it.
    optional : the indices of steps that may be skipped for free.
    drop_x : cost of dropping a sentence, see `dropdtw.drops`; lower drops more. With "suggest", sentences at the ends
        of a passage that are hardly about the step are dropped as well.
        `drops.Background(p, scale=0.1)` takes a classifier's probability that each sentence is off-topic.
    open_x : extra cost of each run of dropped sentences: a number ≥ 0, or "suggest"; higher gives fewer, longer gaps
        between passages.
    skip : the cost of skipping a step, as a multiple of a sentence's drop cost. Lower values report more steps as not
        found. A found step also needs a confidence of at least 0.25 ** (skip / 0.15), which is 0.25 by default. None:
        no step may be skipped.
    model : the sentence embeddings: "wordllama", or the folder of a sentence-transformers model. Nothing is downloaded.
        Confidences are calibrated for "wordllama" and plain lists of steps.

    Returns
    -------
    A list of `FoundStep`, in the order of `steps`. If `order` is anything but a plain list of steps, the found steps
    come first, in order of time (a repeated step several times), and then those that were not found.

    Raises
    ------
    ValueError : if there are no steps or no sentences, if an argument is invalid, or if every alignment is forbidden.
    ImportError : if the model's package is not installed (`pip install 'dropdtw[text]'` for "wordllama").

    >>> from dropdtw import text
    >>> steps = ["Boil the water", "Put the tea leaves into the pot", "Pour the milk"]
    >>> said = ["Welcome to my channel.", "First we boil some water in the kettle.", "My dog is called Rex.",
    ...         "Now the tea leaves go into the pot.", "Thanks for watching."]
    >>> [(f.step, f.sentences) for f in text.find_steps(steps, said)]
    [('Boil the water', (1, 2)), ('Put the tea leaves into the pot', (3, 4)), ('Pour the milk', None)]
    """
    from dropdtw.text.embeddings import embed

    steps, sentences = list(steps), list(sentences)
    if not steps or not sentences:
        raise ValueError(f"there are {len(steps)} steps and {len(sentences)} sentences; give at least one of each")
    spans = None if times is None else _spans(times, len(sentences))
    free = _optional(optional, len(steps))
    parsed = None if order is None else as_order(order)
    if parsed is not None:
        parsed.check_steps(len(steps))
    C = match_costs(steps, sentences, lambda texts: embed(texts, model))
    if skip is not None and not (isinstance(skip, Real) and 0 <= skip < np.inf):
        raise ValueError(f"skip is {skip!r}; give a number ≥ 0 (a multiple of drop_x), or None to skip no step")
    rule = drops.resolve(drop_x, "drop_x")
    price = (rule or Suggest())(C)
    drop_z: float | Array | None = None if skip is None else skip * float(np.mean(price))
    if free:
        drop_z = np.full(len(steps), np.inf if drop_z is None else drop_z)
        drop_z[free] = 0.0
    if parsed is not None and drop_z is not None:
        _check_loops(parsed)
    how: dict[str, Any] = {"open_x": open_x, "many_to_one": False, "contiguous": True}
    a = solve(C, None if rule is None else price, drop_z, order=parsed, **how)
    trim = isinstance(rule, Suggest)  # the caller's own drop costs are taken literally
    found = located(C, a, steps, spans, optional=free, floor=least_confidence(skip), trim=trim)
    return sorted(found, key=lambda f: f.index) if parsed is None or parsed.is_plain else found


def least_confidence(skip: float | None) -> float:
    """The minimum confidence of a found step.   skip : see `find_steps`."""
    return 0.0 if skip is None else FLOOR ** (float(skip) / SKIP)


def located(
    C: Array,
    a: Alignment,
    steps: Sequence[str],
    spans: Array | None,
    *,
    optional: Sequence[int] = (),
    floor: float = 0.0,
    trim: bool = False,
) -> list[FoundStep]:
    """The steps that an alignment of the match costs C places: those found, in order of time, and then the others.

    floor : the minimum confidence of a found step.
    trim : drop sentences at the ends of a passage that are hardly about the step.
    """
    found: list[FoundStep] = []
    closest: dict[int, Closest] = {}
    for i, first, after, evidence, aligned in passages(C, a, optional):
        sure = probability(evidence)
        if trim:
            first, after = trimmed(C[i], first, after)
        start, stop = (None, None) if spans is None else (float(spans[first, 0]), float(spans[after - 1, 1]))
        place = Closest(start, stop, round(sure, 3), (first, after))
        if aligned and sure >= floor:
            found.append(FoundStep(i, steps[i], *place))
        elif i not in closest or closest[i].confidence < place.confidence:
            closest[i] = place
    there, passed = {f.index for f in found}, {int(i) for i in a.walk}
    for i in sorted(set(range(len(steps))) - there):
        why = "optional" if i in optional else "" if i in passed else "alternative"
        found.append(FoundStep(i, steps[i], None, None, None, None, why, None if why else closest[i]))
    return found


def _optional(optional: Sequence[int], K: int) -> list[int]:
    found = sorted({as_step(i) for i in optional})
    if found and found[-1] >= K:
        raise ValueError(f"optional names step {found[-1]}; the steps are numbered from 0 to {K - 1}")
    return found


def _check_loops(order: Order) -> None:
    """Raise if the order repeats steps that may come in any order: a dropped one could belong to any repetition."""
    if order.kind == "repeat" and order.holds_partial:
        raise ValueError(
            "steps in any order are repeated, which does not work if steps may be skipped; "
            "repeat only steps in a fixed order"
        )
    for part in order.parts:
        if isinstance(part, Order):
            _check_loops(part)


def match_costs(steps: Sequence[str], sentences: Sequence[str], embed: Callable[[Sequence[str]], Array]) -> Array:
    """Match costs of steps and sentences, (K, N): the mean of `meaning_costs` and `echo_costs`."""
    return np.asarray((meaning_costs(embed(steps), embed(sentences)) + echo_costs(steps, sentences, embed)) / 2)


def meaning_costs(Z: Array, X: Array) -> Array:
    """Cosine costs of steps and sentences, after subtracting what each side has in common.

    Every sentence of a talk about bread resembles every step about bread, and instructions are worded like
    instructions. So we subtract the mean of each side. The mean of the steps includes the mean of the talk as one extra
    step; otherwise a single step would become zero.
    """
    talk = X.mean(axis=0)
    procedure = (Z.sum(axis=0) + talk) / (len(Z) + 1)
    return costs.cosine(Z - procedure, X - talk)


def _spans(times: npt.ArrayLike, n: int) -> Array:
    spans = as_floats(times, "times")
    if spans.shape == (n,):
        typical = float(np.median(np.diff(spans))) if n > 1 else 0.0
        spans = np.stack([spans, np.append(spans[1:], spans[-1] + typical)], axis=1)
    if spans.shape != (n, 2):
        raise ValueError(f"times has shape {spans.shape} for {n} sentences; give ({n}, 2) starts and stops, or ({n},)")
    if not np.isfinite(spans).all() or (np.diff(spans[:, 0]) < 0).any() or (spans[:, 1] < spans[:, 0]).any():
        raise ValueError("times must be finite seconds, with ascending starts, and no stop before its start")
    return spans
