"""Values and alignments of many pairs on a GPU, with the kernels of `dropdtw.torch`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from dropdtw import costs
from dropdtw.drops import Rule, Suggest
from dropdtw.problem.band import band
from dropdtw.problem.charges import NO_CHARGES
from dropdtw.problem.inputs import Array
from dropdtw.problem.match import Matrix
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec
from dropdtw.results.alignment import Segment, segments_of_pairs
from dropdtw.torch import drop_dtw
from dropdtw.torch.batch import Pairs
from dropdtw.torch.costs import MATCH_COSTS, euclidean, softmax

CELLS: Final = 1 << 27
"""Maximum number of match costs on the GPU at a time."""


def values(Zs: Sequence[Array], Xs: Sequence[Array], spec: Spec, device: str) -> Array:
    """(n, m): the values of all pairs, +∞ where there is no alignment."""
    every = np.indices((len(Zs), len(Xs))).reshape(2, -1)
    out = np.full(every.shape[1], np.inf)
    with torch.no_grad():
        for some, p in _batches(Zs, Xs, every, spec, device):
            out[some] = _value(_costs(p, spec), p, spec).double().cpu().numpy()
    return out.reshape(len(Zs), len(Xs))


def align(Zs: Sequence[Array], Xs: Sequence[Array], spec: Spec, device: str) -> list[tuple[float, list[Segment]]]:
    """The cost of the best alignment of each Z with its X, +∞ where there is none, and its segments.

    The gradient of the minimum with respect to the match costs is the alignment itself.
    """
    out: list[tuple[float, list[Segment]]] = [(np.inf, [])] * len(Xs)
    steps = list({id(Z): Z for Z in Zs}.values())  # often the same for all
    place = {id(Z): k for k, Z in enumerate(steps)}
    which = np.array([[place[id(Z)] for Z in Zs], range(len(Xs))], np.int64)
    for some, p in _batches(steps, Xs, which, spec, device):
        C = _costs(p, spec).requires_grad_()
        value = _value(C, p, spec)
        (M,) = torch.autograd.grad(value.sum(), C)
        item, *places = (M > 0.5).nonzero().cpu().numpy().T
        ends = np.searchsorted(item, np.arange(len(some) + 1))
        for k, cost, a, b in zip(some.tolist(), value.tolist(), ends, ends[1:], strict=False):
            out[k] = cost, segments_of_pairs(np.stack([place[a:b] for place in places], axis=1))
    return out


def _batches(
    Zs: Sequence[Array], Xs: Sequence[Array], which: Array, spec: Spec, device: str
) -> Iterator[tuple[Array, Pairs]]:
    """The pairs (Zs[which[0]], Xs[which[1]]) in batches of similar length, without those that cannot be aligned.

    Each sequence is copied to the GPU once. The longest pairs come first, so that a lack of memory shows at once.
    """
    if not which.size:
        return
    dtype = np.result_type(*{A.dtype for A in (*Zs, *Xs)})
    # Copy: Arrow's buffers are read-only.
    z, x = (pad_sequence([torch.tensor(A.astype(dtype)) for A in each], True).to(device) for each in (Zs, Xs))
    rows, columns = (np.array([len(A) for A in each]) for each in (Zs, Xs))
    order = np.lexsort((-rows[which[0]], -columns[which[1]]))
    order = order[[spec.fits(int(rows[a]), int(columns[b])) for a, b in which[:, order].T]]
    start, K = 0, z.shape[1]
    while start < len(order):
        longest = int(columns[which[1, order[start]]])
        some = order[start : start + max(1, CELLS // (K * longest))]
        a, b = which[:, some]
        at_z, at_x, K_of, N_of = (torch.from_numpy(n).to(device) for n in (a, b, rows[a], columns[b]))
        yield some, Pairs(z[at_z], x[at_x, :longest], K_of, N_of, None)
        start += len(some)


def _costs(p: Pairs, spec: Spec) -> Tensor:
    match = costs.resolve(spec.match, p.Z.shape[2])
    if match.softmax is not None:
        return softmax(p.Z, p.X, match.softmax.gamma, ids=p.first_of_kind())
    return euclidean(p.Z, p.X) if match.name == "euclidean" else MATCH_COSTS[match.name](p.Z, p.X)


def _value(C: Tensor, p: Pairs, spec: Spec) -> Tensor:
    """The values. Lengths are passed, so a pair without an alignment gets +∞ and does not affect the others."""
    given = spec.settings()
    given.pop("match")
    if Suggest() in (spec.drop_x, spec.drop_z):
        prices = _suggested(Suggest(), C, p, spec.window)  # the same number for both sides
        given |= {name: prices for name in ("drop_x", "drop_z") if given[name] == "suggest"}
    if spec.charges.needs_costs:
        given |= _openings(C, p, spec)
    return drop_dtw(C, z_lengths=p.z_lengths, x_lengths=p.x_lengths, reducer="hard", **given)


def _openings(C: Tensor, p: Pairs, spec: Spec) -> dict[str, Tensor]:
    """The suggested opening costs, (B,), from each item's own match costs; 0 without an alignment."""
    lengths: Any = zip(p.z_lengths.tolist(), p.x_lengths.tolist(), strict=True)  # type: ignore[union-attr]
    items = [c[:K, :N] for c, (K, N) in zip(C.detach().cpu().numpy(), lengths, strict=True)]
    found = [Problem.of_costs(spec, c).given.charges if spec.fits(*c.shape) else NO_CHARGES for c in items]
    wanted = [name for name, value in spec.charges._asdict().items() if value == "suggest"]
    return {name: C.new_tensor([getattr(charges, name) for charges in found]) for name in wanted}


def _suggested(rule: Rule, C: Tensor, p: Pairs, window: float | None) -> Tensor:
    """(B, 1): the drop cost by a rule that `drop_dtw` lacks, from each item's own match costs."""
    lengths: Any = zip(p.z_lengths.tolist(), p.x_lengths.tolist(), strict=True)  # type: ignore[union-attr]
    limits = [(K, N, None if window is None else band(K, N, window)) for K, N in lengths]
    every = zip(C.detach().cpu().numpy(), limits, strict=True)
    return C.new_tensor([rule.price(Matrix(c[:K, :N]), "x", where) for c, (K, N, where) in every])[:, None]
