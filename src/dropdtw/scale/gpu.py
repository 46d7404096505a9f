"""Values and alignments of many pairs on a GPU, by the kernels of `dropdtw.torch`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor

from dropdtw.alignment import Segment, segments_of
from dropdtw.arrays import Array, as_pair
from dropdtw.torch import cosine, drop_dtw, softmax, sqeuclidean
from dropdtw.torch.batch import Pairs, pairs

if TYPE_CHECKING:
    from dropdtw.scale.how import How

CELLS: Final = 1 << 27
"""Match costs that are on the GPU at a time."""


def values(Zs: Sequence[Array], Xs: Sequence[Array], how: How) -> Array:
    """(n,): the value of each Z with its X."""
    out = np.empty(len(Xs))
    with torch.no_grad():
        for some in _batches(Zs, Xs):
            p = _pairs([Zs[k] for k in some], [Xs[k] for k in some], how)
            out[some] = _value(_costs(p, how), p, how, how.drop_x).double().cpu().numpy()
    return out


def align(
    Zs: Sequence[Array], Xs: Sequence[Array], how: How, drop_x: Sequence[float] | None = None
) -> list[tuple[float, list[Segment]]]:
    """The cost of each best alignment, +∞ where there is none, and its segments.

    The derivative of the minimum is the alignment itself.   drop_x : one number for each pair, instead of how.drop_x.
    """
    out: list[tuple[float, list[Segment]]] = [(np.inf, [])] * len(Xs)
    for some in _batches(Zs, Xs):
        p = _pairs([Zs[k] for k in some], [Xs[k] for k in some], how)
        C = _costs(p, how).requires_grad_()
        prices = how.drop_x if drop_x is None else C.new_tensor([drop_x[k] for k in some])[:, None]
        value = _value(C, p, how, prices)
        (M,) = torch.autograd.grad(value.sum(), C)
        item, *places = (M > 0.5).nonzero().cpu().numpy().T
        ends = np.searchsorted(item, np.arange(len(some) + 1))
        for k, cost, a, b in zip(some, value.tolist(), ends, ends[1:], strict=False):
            out[k] = cost, segments_of(np.stack([place[a:b] for place in places], axis=1))
    return out


def _batches(Zs: Sequence[Array], Xs: Sequence[Array]) -> Iterator[list[int]]:
    """Pairs of like size together, the largest first: if memory does not suffice, that is found out at once."""
    order = sorted(range(len(Xs)), key=lambda k: (-len(Xs[k]), -len(Zs[k]), k))
    start = 0
    while start < len(order):
        K = max(len(Zs[k]) for k in order)
        stop = start + max(1, CELLS // (K * len(Xs[order[start]])))
        yield order[start:stop]
        start = stop


def _pairs(Zs: Sequence[Array], Xs: Sequence[Array], how: How) -> Pairs:
    checked = [as_pair(Z, X) for Z, X in zip(Zs, Xs, strict=True)]
    # A copy: what Arrow holds is not to be written to.
    z, x = ([torch.tensor(pair[side]).to(how.device) for pair in checked] for side in (0, 1))
    return pairs(z, x)


def _costs(p: Pairs, how: How) -> Tensor:
    name, _, gamma = how.match.partition(":")
    if name == "softmax":
        return softmax(p.Z, p.X, float(gamma or 1), ids=p.names())
    C = cosine(p.Z, p.X) if name == "cosine" else sqeuclidean(p.Z, p.X)
    return C.sqrt() if name == "euclidean" else C


def _value(C: Tensor, p: Pairs, how: How, drop_x: Any) -> Tensor:
    given = how.options() | {"drop_x": drop_x}
    given.pop("match")
    # With lengths, a pair that has no alignment has the value +∞ and does not keep the others from theirs.
    lengths = torch.full((len(C),), C.shape[2]) if p.x_lengths is None else p.x_lengths
    return drop_dtw(C, z_lengths=p.z_lengths, x_lengths=lengths, reducer="hard", **given)
