"""From a trained loss to the alignments of a batch: one NumPy problem per item, with exactly the loss's costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from dropdtw import drops, executors
from dropdtw.executors.protocol import Trace
from dropdtw.problem.charges import Charges
from dropdtw.problem.clock import Fps, Times, clocks_of
from dropdtw.problem.errors import OptionError, naming_item
from dropdtw.problem.inputs import Array
from dropdtw.problem.missing import Kept
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec
from dropdtw.results.alignment import Alignment
from dropdtw.torch import ops
from dropdtw.torch.batch import Pairs
from dropdtw.torch.functional import Drops, drop_costs, executor_of, request, threshold_of
from dropdtw.torch.orders import Orders, of_items

if TYPE_CHECKING:
    from dropdtw.torch.losses import AlignmentLoss

Given = TypeVar("Given")
Result = TypeVar("Result")


def alignments(
    loss: AlignmentLoss, p: Pairs, order: Orders, changes: Any, times: Sequence[Times] | None = None, fps: Fps = None
) -> list[Alignment]:
    """Return the best alignment of each pair; see `problems`. On CUDA, the kernels find them for the whole batch."""
    loss = loss.changed(**changes) if changes else loss
    found = problems(loss, p, order, {}, times, fps)
    there = None
    if executor_of(p.X) == "triton" and all(problem.graph is None for problem in found):
        there = traces(loss, p)
    if there is None:
        return results(Alignment.of, found)
    return results(_traced, list(zip(found, there, strict=True)))


def _traced(given: tuple[Problem, Trace]) -> Alignment:
    problem, found = given
    return Alignment.of(problem, executors.without_gates(problem, found))


@torch.no_grad()
def traces(loss: AlignmentLoss, p: Pairs) -> list[Trace] | None:
    """Find the best alignments of a batch of lists by the kernels; None if a drop cost is a rule of single problems.

    They are the derivatives of the hard minimum, so all are read back at once.
    """
    with torch.autocast(p.given_x.device.type, enabled=False):
        C, *given = loss.costs(p)
    if any(_is_of_one(drop, side) for drop, side in zip(given, ("drop_x", "drop_z"), strict=True)):
        return None
    how = {**loss.table(), **loss.charges_of(p), "reducer": "hard", "gamma": 1.0, "threshold": loss.threshold}
    asked = request(
        C, *given, z_lengths=p.z_lengths, x_lengths=p.x_lengths, strict=False, executor="triton", **how
    )  # fmt: skip
    values, solved = ops.solved(asked.given, asked.operation)
    item, j, i = (solved[0].mT > 0).nonzero().unbind(1)
    weights = None if ops.table(asked.operation.table).weights <= {1.0} else _array(solved[0][item, i, j])
    ends = np.cumsum(np.bincount(_array(item), minlength=len(C)))[:-1]
    pairs = np.split(np.stack([_array(i), _array(j)], axis=1), ends)
    weighed = [None] * len(C) if weights is None else np.split(weights.astype(np.float64), ends)
    z_lengths, x_lengths = ([None] * len(C) if n is None else n.tolist() for n in (p.z_lengths, p.x_lengths))
    paid_x, paid_z = (
        np.zeros(part.shape, np.int64) if by is None else np.rint(_array(by)).astype(np.int64)
        for part, by in zip(asked.given[1:3], solved[1:3], strict=True)
    )
    charged = np.zeros((len(C), 3)) if solved[3] is None else _array(solved[3])
    return [
        Trace(
            value,
            pairs[b],
            paid_x[b, : x_lengths[b]],
            paid_z[b, : z_lengths[b]],
            weighed[b],
            Charges(*charged[b].tolist()),
        )
        for b, value in enumerate(values.tolist())
    ]


def _is_of_one(drop: Drops, name: str) -> bool:
    """Whether a drop cost is a rule that only single problems have."""
    return isinstance(drop, str) and not isinstance(drops.resolve(drop, name), drops.Percentile)


@torch.no_grad()
def problems(
    loss: AlignmentLoss, p: Pairs, order: Orders, changes: Any, times: Sequence[Times] | None = None, fps: Fps = None
) -> list[Problem]:
    """Return the problem of each pair that a loss aligns.

    order : as in `AlignmentLoss.forward`.   changes : options that differ from those of the loss.
    times, fps : as in `AlignmentLoss.align`.
    """
    loss = loss.changed(**changes) if changes else loss
    with torch.autocast(p.given_x.device.type, enabled=False):  # half precision would round the costs
        C, drop_x, drop_z = loss.costs(p)
    B, K, N = C.shape
    lengths = None
    if p.z_lengths is not None or p.x_lengths is not None:
        full = (torch.full((B,), n, device=C.device) for n in (K, N))
        z, x = (n if given is None else given for n, given in zip(full, (p.z_lengths, p.x_lengths), strict=True))
        lengths = (z, x)
    of_x, of_z = (_of_items(drop, side, C, lengths) for drop, side in ((drop_x, "drop_x"), (drop_z, "drop_z")))
    threshold = None if loss.threshold is None else threshold_of(loss.threshold, C, lengths)
    per_item = {"threshold": threshold, **loss.charges_of(p)}
    numbers = {
        name: _array(value).reshape(-1) if isinstance(value, Tensor) else value for name, value in per_item.items()
    }
    orders = (
        of_items(loss.order if order is None else order, B) if order is not None or loss.order is not None else (None,)
    )
    matrices, table = _array(C), loss.table()
    z_lengths, x_lengths, whole = (
        [full] * B if given is None else given.tolist()
        for given, full in ((p.z_lengths, K), (p.x_lengths, N), (p.x_whole, N))
    )
    if times is not None and (not isinstance(times, (list, tuple)) or len(times) != B):
        raise OptionError("times", times, f"give a list of {B}, the times of each item, or fps")
    found = []
    for b, (k, n) in enumerate(zip(z_lengths, x_lengths, strict=True)):
        own = {name: _of(value, b) for name, value in numbers.items()}
        d_x, d_z = _of(of_x, b, n), _of(of_z, b, k)
        there = None if p.x_places is None else Kept(np.arange(k), _array(p.x_places[b, :n]), (k, whole[b]))
        with naming_item(b, B):
            clocks = clocks_of((k, whole[b]), None if times is None else times[b], fps)
            spec = Spec.of(d_x, d_z, order=orders[b % len(orders)], **table, **own).timed(clocks, there)
            problem = replace(Problem.of_costs(spec, matrices[b, :k, :n]), kept=there, clocks=clocks)
        found.append(problem)
    return found


def results(make: Callable[[Given], Result], given: Sequence[Given]) -> list[Result]:
    """Return the result of each problem, or of what else is given. Errors name the item."""
    found = []
    for b, each in enumerate(given):
        with naming_item(b, len(given)):
            found.append(make(each))
    return found


def _of_items(drop: Drops, name: str, C: Tensor, lengths: Any) -> Any:
    """Return the drop costs of all items as an array, or a rule that only single problems have."""
    if drop is None or _is_of_one(drop, name):
        return drop
    return _array(drop_costs(drop, name, C, lengths))


def _of(values: Any, b: int, length: int | None = None) -> Any:
    """Return what belongs to item b."""
    if not isinstance(values, np.ndarray):
        return values
    return float(values[b % len(values)]) if length is None else values[b, :length]


def _array(A: Tensor) -> Array:
    return A.detach().cpu().numpy()
