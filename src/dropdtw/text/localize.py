"""Where each step of a written procedure is talked about: embeddings of sentences, and exclusive Drop-DTW."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from dropdtw import costs, drops
from dropdtw.api import solve
from dropdtw.drops import DropCost, Suggest
from dropdtw.orders.order import Order, OrderLike, as_order, as_step
from dropdtw.problem.charges import Opening
from dropdtw.problem.inputs import Array, as_floats
from dropdtw.text.evidence import FLOOR, SKIP, passages, probability, trimmed
from dropdtw.text.words import echo_costs


@dataclass(frozen=True)
class FoundStep:
    """Where a step is talked about.

    index, step : its number, from 0, and its text.
    start, stop : seconds; None where nobody talks about it, and where the talk has no times.
    confidence : the probability that it is talked about there, 0 to 1; None where it is not found.
    sentences : the sentences [first, last + 1) that it was found in; None where it is not found.
    left_out : why nobody has to talk about it, where it is not found: "optional"; "alternative": another one was taken;
        "" where somebody should.
    """

    index: int
    step: str
    start: float | None
    stop: float | None
    confidence: float | None
    sentences: tuple[int, int] | None
    left_out: str = ""

    @property
    def found(self) -> bool:
        """Whether somebody talks about it."""
        return self.sentences is not None


def localize(
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
    """Find where each step is talked about; what is off the topic is left out.

    A step is found where it is likely enough to be talked about (see `dropdtw.text.evidence` for what speaks for it
    and how that was calibrated); if most steps are missing, the talk is probably about something else.

    Returns the steps in their order. Where `order` is no list, those that are found come in time, a repeated one each
    time, and then those that are not.

    Parameters
    ----------
    steps : what is to be found, in its order.
    sentences : what is said, in its order.
    times : (N, 2) start and stop of each sentence in seconds, or (N,) starts alone; None: they have no times, and
        results then give the numbers of sentences alone.
    order : which steps may follow which, see `dropdtw.orders`; None: each follows the one before it.
    optional : the numbers of steps that may be left out for free.
    drop_x : what leaving out a sentence costs, see `dropdtw.drops`; lower drops more. With "suggest", sentences at the
        ends of a passage that are hardly about the step are left out as well.
    open_x : what each run of left-out sentences costs on top: a number ≥ 0, or "suggest"; higher leaves fewer, longer
        gaps between the passages.
    skip : what leaving out a step costs, in drop costs of a sentence (of suggested ones where no sentence may be
        dropped); lower reports more steps as not found. A step also needs a confidence of 0.25 ** (skip / 0.15).
        None: every step must be found.
    model : see `dropdtw.data.text.embed`. Confidences are calibrated for "wordllama" and lists of steps.
    """
    from dropdtw.data.text import embed

    steps, sentences = list(steps), list(sentences)
    if not steps or not sentences:
        raise ValueError(f"there are {len(steps)} steps and {len(sentences)} sentences; give at least one of each")
    spans = None if times is None else _spans(times, len(sentences))
    free = _optional(optional, len(steps))
    said = None if order is None else as_order(order)
    if said is not None:
        said.check_steps(len(steps))
    C = match_costs(steps, sentences, lambda texts: embed(texts, model))
    if skip is not None and not (isinstance(skip, Real) and 0 <= skip < np.inf):
        raise ValueError(f"skip is {skip!r}; give a number ≥ 0, in drop costs of a sentence, or None to skip no step")
    rule = drops.resolve(drop_x, "drop_x")
    price = (rule or Suggest())(C)
    drop_z: float | Array | None = None if skip is None else skip * float(np.mean(price))
    if free:
        drop_z = np.full(len(steps), np.inf if drop_z is None else drop_z)
        drop_z[free] = 0.0
    if said is not None and drop_z is not None:
        _check_loops(said)
    how: dict[str, Any] = {"open_x": open_x, "many_to_one": False, "contiguous": True}
    a = solve(C, None if rule is None else price, drop_z, order=said, **how)
    floor = 0.0 if skip is None else FLOOR ** (float(skip) / SKIP)
    found: list[FoundStep] = []
    for i, first, after, evidence in passages(C, a, free):
        sure = probability(evidence)
        if sure < floor:
            continue
        if isinstance(rule, Suggest):  # other drop costs are the caller's, and so is what they let in
            first, after = trimmed(C[i], first, after)
        start, stop = (None, None) if spans is None else (float(spans[first, 0]), float(spans[after - 1, 1]))
        found.append(FoundStep(i, steps[i], start, stop, round(sure, 3), (first, after)))
    there, passed = {f.index for f in found}, {int(i) for i in a.walk}
    for i in sorted(set(range(len(steps))) - there):
        why = "optional" if i in free else "" if i in passed else "alternative"
        found.append(FoundStep(i, steps[i], None, None, None, None, why))
    return sorted(found, key=lambda f: f.index) if said is None or said.is_plain else found


def _optional(optional: Sequence[int], K: int) -> list[int]:
    found = sorted({as_step(i) for i in optional})
    if found and found[-1] >= K:
        raise ValueError(f"optional names step {found[-1]}; the steps are numbered from 0 to {K - 1}")
    return found


def _check_loops(order: Order) -> None:
    """Refuse repeated steps in any order: steps can be left out, and it would not be said which time one was."""
    if order.kind == "repeat" and order.holds_partial:
        raise ValueError(
            "steps in any order are repeated: that cannot be combined with leaving out steps that nobody talks about; "
            "repeat steps that follow each other"
        )
    for part in order.parts:
        if isinstance(part, Order):
            _check_loops(part)


def match_costs(steps: Sequence[str], sentences: Sequence[str], embed: Callable[[Sequence[str]], Array]) -> Array:
    """How unlike steps and sentences are, (K, N): half by their meaning as a whole, half word by word."""
    return np.asarray((meaning_costs(embed(steps), embed(sentences)) + echo_costs(steps, sentences, embed)) / 2)


def meaning_costs(Z: Array, X: Array) -> Array:
    """Cosine costs of steps and sentences without what they have in common.

    Every sentence of a talk about bread is somewhat like every step about bread, and instructions are worded like
    instructions: so each side is taken relative to its own mean. The mean of a few steps is drawn to that of the talk,
    as if one more step were like it; of a single step nothing would be left otherwise.
    """
    talk = X.mean(axis=0)
    procedure = (Z.sum(axis=0) + talk) / (len(Z) + 1)
    return costs.cosine(Z - procedure, X - talk)


def _spans(times: npt.ArrayLike, n: int) -> Array:
    spans = as_floats(times, "times")
    if spans.shape == (n,):
        usual = float(np.median(np.diff(spans))) if n > 1 else 0.0
        spans = np.stack([spans, np.append(spans[1:], spans[-1] + usual)], axis=1)
    if spans.shape != (n, 2):
        raise ValueError(f"times has shape {spans.shape} for {n} sentences; give ({n}, 2) starts and stops, or ({n},)")
    if not np.isfinite(spans).all() or (np.diff(spans[:, 0]) < 0).any() or (spans[:, 1] < spans[:, 0]).any():
        raise ValueError("times must be finite seconds, starts in ascending order and each stop after its start")
    return spans
