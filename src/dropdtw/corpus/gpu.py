"""Values and alignments of many pairs on a GPU, by the kernels of `dropdtw.torch`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from dropdtw.problem.inputs import Array
from dropdtw.results.alignment import Segment, segments_of
from dropdtw.torch import cosine, drop_dtw, softmax, sqeuclidean
from dropdtw.torch.batch import Pairs

if TYPE_CHECKING:
    from dropdtw.corpus.how import How

CELLS: Final = 1 << 27
"""Match costs that are on the GPU at a time."""


def values(Zs: Sequence[Array], Xs: Sequence[Array], how: How) -> Array:
    """(n, m): the values of all pairs, +∞ where there is no alignment."""
    every = np.indices((len(Zs), len(Xs))).reshape(2, -1)
    out = np.empty(every.shape[1])
    with torch.no_grad():
        for some, p in _batches(Zs, Xs, every, how):
            out[some] = _value(_costs(p, how), p, how, how.drop_x).double().cpu().numpy()
    return out.reshape(len(Zs), len(Xs))


def align(
    Zs: Sequence[Array], Xs: Sequence[Array], how: How, drop_x: Sequence[float] | None = None
) -> list[tuple[float, list[Segment]]]:
    """The cost of the best alignment of each Z with its X, +∞ where there is none, and its segments.

    The derivative of the minimum is the alignment itself.   drop_x : one number for each pair, instead of how.drop_x.
    """
    out: list[tuple[float, list[Segment]]] = [(np.inf, [])] * len(Xs)
    steps = list({id(Z): Z for Z in Zs}.values())  # often the same for all
    place = {id(Z): k for k, Z in enumerate(steps)}
    which = np.array([[place[id(Z)] for Z in Zs], range(len(Xs))], np.int64)
    for some, p in _batches(steps, Xs, which, how):
        C = _costs(p, how).requires_grad_()
        prices = how.drop_x if drop_x is None else C.new_tensor([drop_x[k] for k in some])[:, None]
        value = _value(C, p, how, prices)
        (M,) = torch.autograd.grad(value.sum(), C)
        item, *places = (M > 0.5).nonzero().cpu().numpy().T
        ends = np.searchsorted(item, np.arange(len(some) + 1))
        for k, cost, a, b in zip(some.tolist(), value.tolist(), ends, ends[1:], strict=False):
            out[k] = cost, segments_of(np.stack([place[a:b] for place in places], axis=1))
    return out


def _batches(Zs: Sequence[Array], Xs: Sequence[Array], which: Array, how: How) -> Iterator[tuple[Array, Pairs]]:
    """The pairs (Zs[which[0]], Xs[which[1]]), some at a time, those of like length together.

    Each sequence goes to the GPU once. The longest come first: if memory does not suffice, that is found out at once.
    """
    if not which.size:
        return
    dtype = np.result_type(*{A.dtype for A in (*Zs, *Xs)})
    # Copies: what Arrow holds is not to be written to.
    z, x = (pad_sequence([torch.tensor(A.astype(dtype)) for A in each], True).to(how.device) for each in (Zs, Xs))
    rows, columns = (np.array([len(A) for A in each]) for each in (Zs, Xs))
    order = np.lexsort((-rows[which[0]], -columns[which[1]]))
    start, K = 0, z.shape[1]
    while start < len(order):
        longest = int(columns[which[1, order[start]]])
        some = order[start : start + max(1, CELLS // (K * longest))]
        a, b = which[:, some]
        at_z, at_x, K_of, N_of = (torch.from_numpy(n).to(how.device) for n in (a, b, rows[a], columns[b]))
        yield some, Pairs(z[at_z], x[at_x, :longest], K_of, N_of, None)
        start += len(some)


def _costs(p: Pairs, how: How) -> Tensor:
    name, _, gamma = how.match.partition(":")
    if name == "softmax":
        return softmax(p.Z, p.X, float(gamma or 1), ids=p.names())
    C = cosine(p.Z, p.X) if name == "cosine" else sqeuclidean(p.Z, p.X)
    return C.sqrt() if name == "euclidean" else C


def _value(C: Tensor, p: Pairs, how: How, drop_x: Any) -> Tensor:
    """The values. With lengths, a pair without an alignment has +∞ and does not keep the others from theirs."""
    given = how.options() | {"drop_x": drop_x}
    given.pop("match")
    return drop_dtw(C, z_lengths=p.z_lengths, x_lengths=p.x_lengths, reducer="hard", **given)
