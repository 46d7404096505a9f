"""From a trained loss to the alignments of a batch: one NumPy problem per item, with exactly the loss's costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from dropdtw import drops
from dropdtw.problem.clock import Fps, Times, clocks_of
from dropdtw.problem.errors import OptionError, naming_item
from dropdtw.problem.inputs import Array
from dropdtw.problem.missing import Kept
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec
from dropdtw.torch.batch import Pairs
from dropdtw.torch.functional import Drops, drop_costs, threshold_of
from dropdtw.torch.orders import Orders, of_items

if TYPE_CHECKING:
    from dropdtw.torch.losses import AlignmentLoss

Result = TypeVar("Result")


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


def results(make: Callable[[Problem], Result], problems: Sequence[Problem]) -> list[Result]:
    """Return the result of each problem. Errors name the item."""
    found = []
    for b, problem in enumerate(problems):
        with naming_item(b, len(problems)):
            found.append(make(problem))
    return found


def _of_items(drop: Drops, name: str, C: Tensor, lengths: Any) -> Any:
    """Return the drop costs of all items as an array, or a rule that only single problems have."""
    if drop is None or (isinstance(drop, str) and not isinstance(drops.resolve(drop, name), drops.Percentile)):
        return drop
    return _array(drop_costs(drop, name, C, lengths))


def _of(values: Any, b: int, length: int | None = None) -> Any:
    """Return what belongs to item b."""
    if not isinstance(values, np.ndarray):
        return values
    return float(values[b % len(values)]) if length is None else values[b, :length]


def _array(A: Tensor) -> Array:
    return A.detach().cpu().numpy()
