"""Values and alignments of many pairs on a GPU, by the kernels of `dropdtw.torch`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor

from dropdtw.alignment import Segment, segments_of
from dropdtw.arrays import Array
from dropdtw.torch import cosine, drop_dtw, softmax, sqeuclidean
from dropdtw.torch.batch import Pairs, pairs

if TYPE_CHECKING:
    from dropdtw.scale.how import How

CELLS: Final = 1 << 27
"""Match costs that are on the GPU at a time."""


def values(Zs: Sequence[Array], Xs: Sequence[Array], how: How) -> Array:
    """(n,): the value of each Z with its X, +∞ where there is no alignment."""
    out = np.empty(len(Xs))
    with torch.no_grad():
        for some, p in _batches(Zs, Xs, how):
            out[some] = _value(_costs(p, how), p, how, how.drop_x).double().cpu().numpy()
    return out


def align(
    Zs: Sequence[Array], Xs: Sequence[Array], how: How, drop_x: Sequence[float] | None = None
) -> list[tuple[float, list[Segment]]]:
    """The cost of each best alignment, +∞ where there is none, and its segments.

    The derivative of the minimum is the alignment itself.   drop_x : one number for each pair, instead of how.drop_x.
    """
    out: list[tuple[float, list[Segment]]] = [(np.inf, [])] * len(Xs)
    for some, p in _batches(Zs, Xs, how):
        C = _costs(p, how).requires_grad_()
        prices = how.drop_x if drop_x is None else C.new_tensor([drop_x[k] for k in some])[:, None]
        value = _value(C, p, how, prices)
        (M,) = torch.autograd.grad(value.sum(), C)
        item, *places = (M > 0.5).nonzero().cpu().numpy().T
        ends = np.searchsorted(item, np.arange(len(some) + 1))
        for k, cost, a, b in zip(some, value.tolist(), ends, ends[1:], strict=False):
            out[k] = cost, segments_of(np.stack([place[a:b] for place in places], axis=1))
    return out


def _batches(Zs: Sequence[Array], Xs: Sequence[Array], how: How) -> Iterator[tuple[list[int], Pairs]]:
    """Pairs of like size together, the largest first: if memory does not suffice, that is found out at once."""
    if not Xs:
        return
    dtype = np.result_type(*{A.dtype for A in (*Zs, *Xs)})
    there: dict[int, Tensor] = {}

    def sent(A: Array) -> Tensor:
        """A sequence on the GPU; each goes there once."""
        if id(A) not in there:
            there[id(A)] = torch.tensor(A.astype(dtype)).to(how.device)
        return there[id(A)]

    order = sorted(range(len(Xs)), key=lambda k: (-len(Xs[k]), -len(Zs[k]), k))
    K = max(len(Z) for Z in Zs)
    start = 0
    while start < len(order):
        some = order[start : start + max(1, CELLS // (K * len(Xs[order[start]])))]
        yield some, pairs([sent(Zs[k]) for k in some], [sent(Xs[k]) for k in some])
        start += len(some)


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
