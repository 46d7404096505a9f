"""Match costs and drop costs of the paper on padded batches of tensors, with derivatives.

Sequences are Z (B, K, d) and X (B, N, d), match costs C (B, K, N), as everywhere. `dropdtw.costs` and `dropdtw.drops`
are the same for NumPy, and say more about each.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize


def cosine(Z: Tensor, X: Tensor) -> Tensor:
    """1 − cos(z_i, x_j) (paper Eq. 3). A zero vector is like nothing: its cost is 1.

    >>> cosine(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[2.0, 0.0], [0.0, 3.0]]]))
    tensor([[[0., 1.]]])
    """
    return 1 - normalize(Z, dim=-1) @ normalize(X, dim=-1).mT


def sqeuclidean(Z: Tensor, X: Tensor) -> Tensor:
    """‖z_i − x_j‖².

    One matrix product over centred sequences, |z|² + |x|² − 2 z·x; no pair comes out below 0.

    >>> sqeuclidean(torch.tensor([[[0.0], [3.0]]]), torch.tensor([[[0.0], [1.0]]]))
    tensor([[[0., 1.],
             [9., 4.]]])
    """
    centre = X.mean(dim=-2, keepdim=True).detach()
    Z, X = Z - centre, X - centre
    squares = (Z**2).sum(-1)[..., :, None] + (X**2).sum(-1)[..., None, :]
    return (squares - 2 * Z @ X.mT).clamp(min=0)


def softmax(Z: Tensor, X: Tensor, gamma: float = 1.0, *, ids: Tensor | None = None) -> Tensor:
    """−log softmax over i of (z_i · x_j / γ) (paper Eq. 4), the sum over the *unique* z only (its appendix).

    gamma : temperature; smaller makes the softmax sharper.
    ids : (B, K) whole numbers, what makes z unique: rows of the same id count once, and a negative id is padding.
        None: equal rows count once (a comparison of all pairs of rows).

    >>> Z = torch.tensor([[[1.0], [1.0], [0.0]]])
    >>> softmax(Z, torch.zeros(1, 1, 1)).mT            # two unique rows: each has probability 1/2
    tensor([[[0.6931, 0.6931, 0.6931]]])
    """
    S = Z @ X.mT / gamma
    counted = first_of_each(Z, ids)[..., None]
    return S.masked_fill(~counted, -torch.inf).logsumexp(dim=-2, keepdim=True) - S


def softmax_with_drop(
    Z: Tensor,
    X: Tensor,
    logit: Tensor,
    gamma: float = 1.0,
    *,
    ids: Tensor | None = None,
    epsilon: float = 1e-5,
) -> tuple[Tensor, Tensor]:
    """C (B, K, N) and d_x (B, N) where a drop logit competes in the softmax of Eq. 4: −log(p + ε) of each.

    logit : broadcasts to (B, N); `percentile_logit` or `LearnedDrop` gives one.
    """
    S = Z @ X.mT
    counted = first_of_each(Z, ids)[..., None]
    drop = logit.expand(S.shape[0], S.shape[2])[:, None] / gamma
    total = torch.logaddexp((S / gamma).masked_fill(~counted, -torch.inf).logsumexp(dim=-2, keepdim=True), drop)
    C = -torch.log(torch.exp(S / gamma - total) + epsilon)
    return C, -torch.log(torch.exp(drop - total) + epsilon)[:, 0]


def first_of_each(Z: Tensor, ids: Tensor | None = None) -> Tensor:
    """(B, K) bool: which rows of Z are the first of their kind, by id (negative: padding, never) or by equality."""
    if ids is None:
        same = (Z[..., :, None, :] == Z[..., None, :, :]).all(-1)
    else:
        same = ids[..., :, None] == ids[..., None, :]
    earlier = torch.tril(same, diagonal=-1).any(-1)
    return ~earlier if ids is None else ~earlier & (ids >= 0)


def percentile_drop(C: Tensor, p: float, z_lengths: Tensor | None = None, x_lengths: Tensor | None = None) -> Tensor:
    """The p-th percentile (0 to 100, ascending) of each item's finite match costs (paper Eq. 5): (B, 1).

    Differentiable; `.detach()` it to keep the threshold out of the derivative.

    >>> percentile_drop(torch.tensor([[[1.0, 2.0], [3.0, torch.inf]]]), 50)
    tensor([[2.]])
    """
    there = torch.isfinite(C) & within(C, z_lengths, x_lengths)
    ordered = torch.where(there, C, torch.inf).flatten(1).sort(dim=1).values
    count = there.flatten(1).sum(dim=1, keepdim=True)
    place = (count - 1).clamp(min=0) * (p / 100)
    low = place.floor().long()
    a, b = ordered.gather(1, low), ordered.gather(1, torch.minimum(low + 1, (count - 1).clamp(min=0)))
    part = (place - low).to(C.dtype)
    return torch.where(part > 0, a + part * (b - a), a)


def percentile_logit(S: Tensor, p: float, z_lengths: Tensor | None = None, x_lengths: Tensor | None = None) -> Tensor:
    """The k-th largest similarity of each item, k = max(1, ⌊p/100 · number of pairs⌋), detached: (B, 1).

    S : (B, K, N) similarities Z Xᵀ, −∞ where a row must not count. As `dropdtw.drops.LogitPercentile`.
    """
    there = torch.isfinite(S) & within(S, z_lengths, x_lengths)
    ordered = torch.where(there, S, -torch.inf).flatten(1).sort(dim=1, descending=True).values
    k = (there.flatten(1).sum(dim=1, keepdim=True) * p / 100).long().clamp(min=1)
    return ordered.gather(1, k - 1).detach()


def within(C: Tensor, z_lengths: Tensor | None, x_lengths: Tensor | None) -> Tensor:
    """Which entries of a padded batch C (B, K, N) are no padding, as a mask that broadcasts to it."""
    mask = torch.ones(1, 1, 1, dtype=torch.bool, device=C.device)
    for lengths, dim in ((z_lengths, 1), (x_lengths, 2)):
        if lengths is not None:
            here = torch.arange(C.shape[dim], device=C.device) < lengths.to(C.device)[:, None]
            mask = mask & here.unsqueeze(3 - dim)
    return mask
