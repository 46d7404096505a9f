"""Match costs and drop costs of the paper on padded batches of tensors, with derivatives.

Sequences are Z (B, K, d) and X (B, N, d), match costs C (B, K, N), as everywhere. `dropdtw.costs` and `dropdtw.drops`
are the same for NumPy, and say more about each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.functional import normalize

from dropdtw.torch import kernels


def cosine(Z: Tensor, X: Tensor) -> Tensor:
    """1 − cos(z_i, x_j) (paper Eq. 3). A zero vector is like nothing: its cost is 1.

    >>> cosine(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[2.0, 0.0], [0.0, 3.0]]]))
    tensor([[[0., 1.]]])
    """
    return 1 - _units(Z) @ _units(X).mT


def _units(A: Tensor) -> Tensor:
    """Rows of length 1; zero rows stay zero."""
    largest = A.detach().abs().amax(-1, keepdim=True)  # without it, squares would overflow or vanish
    return normalize(A / torch.where(largest > 0, largest, 1.0), dim=-1)


def sqeuclidean(Z: Tensor, X: Tensor) -> Tensor:
    """‖z_i − x_j‖², exactly 0 for equal elements.

    Up to 16 features the differences are squared; beyond, one matrix product does the work, |z|² + |x|² − 2 z·x, which
    cancels where z ≈ x. On the CPU close pairs are computed anew from their differences. On CUDA, where looking for
    them would mean waiting for the device, and under a compiler the product is taken in double precision, and what
    lies below its rounding error is 0.

    >>> sqeuclidean(torch.tensor([[[0.0], [3.0]]]), torch.tensor([[[0.0], [1.0]]]))
    tensor([[[0., 1.],
             [9., 4.]]])
    """
    found: Tensor = _Squares.apply(*_expanded(Z, X))  # type: ignore[no-untyped-call]
    return found


def euclidean(Z: Tensor, X: Tensor) -> Tensor:
    """‖z_i − x_j‖ at any scale, exactly 0 for equal elements; without a derivative, and it waits for the device.

    The root of `sqeuclidean` would do for values whose squares neither overflow nor vanish, and which lie far apart.
    Here all other pairs are computed anew from their differences, each at its own scale.

    >>> euclidean(torch.tensor([[[0.0], [3.0]]]), torch.tensor([[[0.0], [1e-30]]]))
    tensor([[[0.0000e+00, 1.0000e-30],
             [3.0000e+00, 3.0000e+00]]])
    """
    if Z.requires_grad or X.requires_grad:
        raise ValueError("Euclidean distances have no slope where z = x; use sqeuclidean, or detach Z and X")
    Z, X = _expanded(Z, X)
    if Z.shape[-1] == 1:
        return torch.cdist(Z, X, p=1.0)  # |z − x|: no squares at all
    if Z.shape[-1] <= 16:
        C = torch.cdist(Z, X, compute_mode="donot_use_mm_for_euclid_dist")
        sound = torch.inf > C
    else:
        origin = _middle(Z, X)
        C, scale = _products(Z.double() - origin, X.double() - origin)
        sound = 1e-2 * scale < C  # neither what overflowed: it is NaN, or both are infinite
        C = C.sqrt()
    info = torch.finfo(C.dtype)
    sound &= info.tiny**0.5 / info.eps < C
    C = C.to(Z.dtype)
    _by_differences(C, ~sound, Z, X, _lengths)
    return C


def cityblock(Z: Tensor, X: Tensor) -> Tensor:
    """Σ_k |z_ik − x_jk|; its slope is taken to be 0 where z_ik = x_jk.

    >>> cityblock(torch.tensor([[[0.0, 0.0], [3.0, 4.0]]]), torch.tensor([[[1.0, 1.0]]]))
    tensor([[[2.],
             [5.]]])
    """
    return _minkowski(Z, X, 1.0)


def chebyshev(Z: Tensor, X: Tensor) -> Tensor:
    """max_k |z_ik − x_jk|.

    >>> chebyshev(torch.tensor([[[0.0, 0.0], [3.0, 4.0]]]), torch.tensor([[[1.0, 1.0]]]))
    tensor([[[1.],
             [3.]]])
    """
    return _minkowski(Z, X, torch.inf)


def _minkowski(Z: Tensor, X: Tensor, p: float) -> Tensor:
    dtype = Z.dtype
    if dtype in (torch.float16, torch.bfloat16):
        Z, X = Z.float(), X.float()
    return torch.cdist(*_expanded(Z, X), p=p).to(dtype)


def correlation(Z: Tensor, X: Tensor) -> Tensor:
    """1 − the correlation of z_i and x_j over their features. Where all features are alike, the cost is 1.

    >>> correlation(torch.tensor([[[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]]]), torch.tensor([[[3.0, 2.0, 1.0]]])).round()
    tensor([[[2.],
             [1.]]])
    """
    if Z.shape[-1] == 1:
        raise ValueError(
            "match is 'correlation', which compares the features of two elements, but these have only one; "
            "use 'sqeuclidean', or give windows of the series as elements"
        )
    return cosine(_centred(Z), _centred(X))


def _centred(A: Tensor) -> Tensor:
    """Rows minus their means, exactly 0 where a row is constant: rounding would make a direction of it."""
    largest = A.detach().abs().amax(-1, keepdim=True)
    A = A / torch.where(largest > 0, largest, 1.0)
    constant = (A[..., :1] == A).all(-1, keepdim=True)
    return torch.where(constant, 0.0, A - A.mean(-1, keepdim=True))


def _expanded(Z: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
    """Both with the same batch dimensions."""
    batch = torch.broadcast_shapes(Z.shape[:-2], X.shape[:-2])  # type: ignore[no-untyped-call]
    return Z.expand(*batch, -1, -1), X.expand(*batch, -1, -1)


class _Squares(torch.autograd.Function):
    """Squared distances, and their derivative by two matrix products: no (B, K, N, d) differences are kept for it."""

    @staticmethod
    def forward(Z: Tensor, X: Tensor) -> Tensor:
        dtype, d = Z.dtype, Z.shape[-1]
        if dtype in (torch.float16, torch.bfloat16):
            Z, X = Z.float(), X.float()
        if d <= 16:
            if kernels.run_on(Z):
                return kernels.squares(Z, X).to(dtype)
            return (torch.cdist(Z, X, compute_mode="donot_use_mm_for_euclid_dist") ** 2).to(dtype)
        origin = _middle(Z, X)
        if Z.is_cuda or torch.compiler.is_compiling():
            C, scale = _products(Z.double() - origin, X.double() - origin)
            return torch.where(2 * d**0.5 * torch.finfo(C.dtype).eps * scale >= C, 0, C).to(dtype)  # a NaN stays
        C, scale = _products(Z - origin, X - origin)
        _by_differences(C, ~(1e-2 * scale < C), Z, X, _squares)  # not ≥: what overflowed is NaN
        return C.to(dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        return sqeuclidean_back(grad, *ctx.saved_tensors)

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], *given: Tensor) -> tuple[Tensor, int]:
        moved = [
            A.expand(info.batch_size, *A.shape) if dim is None else A.movedim(dim, 0)
            for A, dim in zip(given, dims, strict=True)
        ]
        found: Tensor = _Squares.apply(*moved)  # type: ignore[no-untyped-call]
        return found, 0


def sqeuclidean_back(grad: Tensor, Z: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
    """The derivatives by Z and X of a function whose derivative by their squared distances is `grad`."""
    origin = _middle(Z, X)
    Z, X = Z - origin, X - origin
    by_z = 2 * (grad.sum(-1)[..., None] * Z - grad @ X)
    return by_z, 2 * (grad.sum(-2)[..., None] * X - grad.mT @ Z)


def _middle(Z: Tensor, X: Tensor) -> Tensor:
    """A point among most elements, from which products cancel least: (..., 1, d).

    For each feature the median of the first z, the first x and the x halfway: one of these may be far away, or padding.
    """
    half = X.shape[-2] // 2
    a, b, c = Z[..., :1, :].detach(), X[..., :1, :].detach(), X[..., half : half + 1, :].detach()
    return torch.maximum(torch.minimum(a, b), torch.minimum(torch.maximum(a, b), c))


def _products(Z: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
    """Squared distances by a matrix product, and |z|² + |x|², to which their rounding error is in proportion."""
    scale = (Z**2).sum(-1)[..., :, None] + (X**2).sum(-1)[..., None, :]
    return scale - 2 * Z @ X.mT, scale


def _by_differences(C: Tensor, chosen: Tensor, Z: Tensor, X: Tensor, cost: Callable[[Tensor], Tensor]) -> None:
    """Replace the `chosen` entries of C by the cost of the differences z − x, some thousands of pairs at a time."""
    C, chosen, Z, X = (A.reshape(-1, *A.shape[-2:]) for A in (C, chosen, Z, X))
    for part in chosen.nonzero().split(1 << 14):  # type: ignore[no-untyped-call]
        b, i, j = part.unbind(1)
        C[b, i, j] = cost(Z[b, i] - X[b, j])


def _squares(differences: Tensor) -> Tensor:
    return (differences**2).sum(-1)


def _lengths(differences: Tensor) -> Tensor:
    """The Euclidean length of each row, each at its own scale; infinite where a difference is."""
    scale = differences.abs().amax(-1)
    units = differences / torch.where(scale > 0, scale, 1)[:, None]
    return torch.where(scale < torch.inf, _squares(units).sqrt() * scale, scale)


def softmax(Z: Tensor, X: Tensor, gamma: float = 1.0, *, ids: Tensor | None = None) -> Tensor:
    """−log softmax over i of (z_i · x_j / γ) (paper Eq. 4), the sum over the *unique* z only (its appendix).

    gamma : temperature; smaller makes the softmax sharper.
    ids : (B, K) whole numbers, what makes z unique: of rows of the same id the first counts and stands for all, and a
        negative id is padding. None: equal rows count once.

    >>> Z = torch.tensor([[[1.0], [1.0], [0.0]]])
    >>> softmax(Z, torch.zeros(1, 1, 1)).mT            # two unique rows: each has probability 1/2
    tensor([[[0.6931, 0.6931, 0.6931]]])
    """
    return softmax_of_kinds(Z, X, first_of_kind(Z, ids), gamma)


def softmax_of_kinds(Z: Tensor, X: Tensor, first: Tensor, gamma: float) -> Tensor:
    """The same where the first z of each kind is known, as `first_of_kind` gives it."""
    S, counted = _similarities(Z, X, first)
    S = S / gamma
    return S.masked_fill(~counted, -torch.inf).logsumexp(dim=-2, keepdim=True) - S


def softmax_with_drop(
    Z: Tensor,
    X: Tensor,
    logit: Tensor | Callable[[Tensor], Tensor],
    gamma: float = 1.0,
    *,
    ids: Tensor | None = None,
    epsilon: float = 1e-5,
) -> tuple[Tensor, Tensor]:
    """C (B, K, N) and d_x (B, N) where a drop logit competes in the softmax of Eq. 4: −log(p + ε) of each.

    logit : broadcasts to (B, N); `LearnedDrop` gives one. Or a function of the similarities S (B, K, N), −∞ in rows
        that do not count, such as `percentile_logit` with its p.

    >>> Z, X = torch.tensor([[[1.0], [0.0]]]), torch.tensor([[[2.0], [0.0]]])
    >>> C, d = softmax_with_drop(Z, X, lambda S: percentile_logit(S, 50))       # the 2nd largest of 2, 0, 0, 0
    >>> (-d).exp()                                                              # the probability of a drop
    tensor([[0.1065, 0.3333]])
    """
    return softmax_with_drop_of_kinds(Z, X, first_of_kind(Z, ids), logit, gamma, epsilon)


def softmax_with_drop_of_kinds(
    Z: Tensor,
    X: Tensor,
    first: Tensor,
    logit: Tensor | Callable[[Tensor], Tensor],
    gamma: float = 1.0,
    epsilon: float = 1e-5,
) -> tuple[Tensor, Tensor]:
    """The same where the first z of each kind is known, as `first_of_kind` gives it."""
    S, counted = _similarities(Z, X, first)
    drop = logit(S.masked_fill(~counted, -torch.inf)) if callable(logit) else logit
    drop = drop.expand(S.shape[0], S.shape[2])[:, None] / gamma
    S = S / gamma
    total = torch.logaddexp(S.masked_fill(~counted, -torch.inf).logsumexp(dim=-2, keepdim=True), drop)
    C = -torch.log(torch.exp(S - total) + epsilon)
    return C, -torch.log(torch.exp(drop - total) + epsilon)[:, 0]


def _similarities(Z: Tensor, X: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """S = Z Xᵀ (B, K, N), each row that of the first z of its kind, and which rows count (B, K, 1)."""
    S = Z @ X.mT
    # A row of padding becomes a copy of the first row: whatever stood there cannot overflow.
    return S.gather(-2, first.clamp(min=0)[..., None].expand_as(S)), is_first(first)[..., None]


def first_of_kind(Z: Tensor, ids: Tensor | None = None) -> Tensor:
    """(B, K): for each row of Z the first row of its kind, by id (negative: padding, −1) or by equality."""
    if ids is not None:
        return torch.where(ids < 0, -1, _first_equal(ids))
    Z = Z.detach()
    if Z.ndim == 3 and kernels.run_on(Z) and not torch.compiler.is_compiling():
        return kernels.first_rows(Z)
    first = _first_equal(_fingerprints(Z))
    same = (Z.gather(-2, first[..., None].expand_as(Z)) == Z).all(-1)  # a NaN equals nothing, even itself
    return torch.where(same, first, torch.arange(Z.shape[-2], device=Z.device))


def _first_equal(names: Tensor) -> Tensor:
    return (names[..., :, None] == names[..., None, :]).to(torch.uint8).argmax(-1)


def _fingerprints(Z: Tensor) -> Tensor:
    """A whole number per row, the same for equal rows: all pairs of rows, by element, would be K² d comparisons."""
    odd = 6364136223846793005  # whole numbers multiply modulo 2⁶⁴, so that only odd factors lose nothing
    bits = (Z + 0.0).view({2: torch.int16, 4: torch.int32, 8: torch.int64}[Z.element_size()]).long() * odd  # −0 is 0
    powers = torch.full(Z.shape[-1:], odd, device=Z.device).cumprod(0)
    return ((bits ^ (bits >> 32)) * powers).sum(-1)  # the low bits of a number such as 1.0 are all 0


def is_first(first: Tensor) -> Tensor:
    """(B, K): which rows are the first of their kind, by what `first_of_kind` gives."""
    return first == torch.arange(first.shape[-1], device=first.device)


def percentile_drop(C: Tensor, p: float, z_lengths: Tensor | None = None, x_lengths: Tensor | None = None) -> Tensor:
    """The p-th percentile (0 to 100, ascending) of each item's finite match costs (paper Eq. 5): (B, 1).

    Differentiable; `.detach()` it to keep the threshold out of the derivative.

    >>> percentile_drop(torch.tensor([[[1.0, 2.0], [3.0, torch.inf]]]), 50)
    tensor([[2.]])
    """
    there = torch.isfinite(C) & within(C, z_lengths, x_lengths)
    ordered = torch.where(there, C, torch.inf).flatten(1).sort(dim=1).values
    count = there.flatten(1).sum(dim=1, keepdim=True)
    place = (count - 1).clamp(min=0).double() * (p / 100)
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
    k = (there.flatten(1).sum(dim=1, keepdim=True).double() * p / 100).long().clamp(min=1)
    return ordered.gather(1, k - 1).detach()


def within(C: Tensor, z_lengths: Tensor | None, x_lengths: Tensor | None) -> Tensor:
    """Which entries of a padded batch C (B, K, N) are no padding, as a mask that broadcasts to it."""
    mask = torch.ones(1, 1, 1, dtype=torch.bool, device=C.device)
    for lengths, dim in ((z_lengths, 1), (x_lengths, 2)):
        if lengths is not None:
            here = torch.arange(C.shape[dim], device=C.device) < lengths.to(C.device)[:, None]
            mask = mask & here.unsqueeze(3 - dim)
    return mask


MATCH_COSTS: Final[dict[str, Callable[[Tensor, Tensor], Tensor]]] = {
    "cosine": cosine,
    "sqeuclidean": sqeuclidean,
    "cityblock": cityblock,
    "chebyshev": chebyshev,
    "correlation": correlation,
}
"""Match costs with derivatives, of a z and an x alone, by name."""
