"""The paper's match costs and drop costs on padded batches of tensors, differentiable.

Sequences are Z (B, K, d) and X (B, N, d); match costs are C (B, K, N). `dropdtw.costs` and `dropdtw.drops` are the
NumPy versions and document each cost in more detail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.functional import normalize

from dropdtw.costs import Softmax, resolve
from dropdtw.torch import kernels
from dropdtw.torch.ops import within


def cosine(Z: Tensor, X: Tensor) -> Tensor:
    """Cosine cost: 1 − cos(z_i, x_j) (paper Eq. 3). A zero vector has cost 1 with everything.

    Z, X : (B, K, d) and (B, N, d).

    Returns C (B, K, N). Raises RuntimeError (from PyTorch) if shapes or dtypes do not fit.

    >>> import torch
    >>> from dropdtw.torch import cosine
    >>> cosine(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[2.0, 0.0], [0.0, 3.0]]]))
    tensor([[[0., 1.]]])
    """
    return 1 - _units(Z) @ _units(X).mT


def _units(A: Tensor) -> Tensor:
    """Scale rows to length 1; zero rows stay zero."""
    largest = A.detach().abs().amax(-1, keepdim=True)  # otherwise squares could overflow or underflow
    return normalize(A / torch.where(largest > 0, largest, 1.0), dim=-1)


def sqeuclidean(Z: Tensor, X: Tensor) -> Tensor:
    """Squared Euclidean distance: ‖z_i − x_j‖², exactly 0 for equal elements.

    Z, X : (B, K, d) and (B, N, d).

    Returns C (B, K, N). Raises RuntimeError (from PyTorch) if shapes or dtypes do not fit.

    Up to 16 features, the differences are squared directly. Beyond that, one matrix product computes
    |z|² + |x|² − 2 z·x, which cancels where z ≈ x. On the CPU, close pairs are recomputed from their differences. On
    CUDA, where searching for such pairs would force a device synchronization, and under torch.compile, the product is
    computed in double precision, and results below its rounding error become 0.

    >>> import torch
    >>> from dropdtw.torch import sqeuclidean
    >>> sqeuclidean(torch.tensor([[[0.0], [3.0]]]), torch.tensor([[[0.0], [1.0]]]))
    tensor([[[0., 1.],
             [9., 4.]]])
    """
    found: Tensor = _Squares.apply(*_expanded(Z, X))  # type: ignore[no-untyped-call]
    return found


def euclidean(Z: Tensor, X: Tensor) -> Tensor:
    """Euclidean distance: ‖z_i − x_j‖ at any scale, exactly 0 for equal elements.

    It is not differentiable, and it synchronizes the device.

    Z, X : (B, K, d) and (B, N, d).

    Returns C (B, K, N). Raises ValueError if Z or X requires a gradient.

    The square root of `sqeuclidean` is accurate if the squares neither overflow nor underflow and the elements lie far
    apart. All other pairs are recomputed here from their differences, each at its own scale.

    >>> euclidean(torch.tensor([[[0.0], [3.0]]]), torch.tensor([[[0.0], [1e-30]]]))
    tensor([[[0.0000e+00, 1.0000e-30],
             [3.0000e+00, 3.0000e+00]]])
    """
    if Z.requires_grad or X.requires_grad:
        raise ValueError("Euclidean distances have no derivative where z = x; use sqeuclidean, or detach Z and X")
    Z, X = _expanded(Z, X)
    if Z.shape[-1] == 1:
        return torch.cdist(Z, X, p=1.0)  # |z − x| needs no squares
    if Z.shape[-1] <= 16:
        C = torch.cdist(Z, X, compute_mode="donot_use_mm_for_euclid_dist")
        sound = torch.inf > C
    else:
        origin = _middle(Z, X)
        C, scale = _products(Z.double() - origin, X.double() - origin)
        sound = 1e-2 * scale < C  # False for overflow too: C is NaN, or both sides are infinite
        C = C.sqrt()
    info = torch.finfo(C.dtype)
    sound &= info.tiny**0.5 / info.eps < C
    C = C.to(Z.dtype)
    _by_differences(C, ~sound, Z, X, _lengths)
    return C


def cityblock(Z: Tensor, X: Tensor) -> Tensor:
    """City-block distance: Σ_k |z_ik − x_jk|, with derivative 0 where z_ik = x_jk.

    Z, X : (B, K, d) and (B, N, d).

    Returns C (B, K, N). Raises RuntimeError (from PyTorch) if shapes or dtypes do not fit.

    >>> import torch
    >>> from dropdtw.torch import cityblock
    >>> cityblock(torch.tensor([[[0.0, 0.0], [3.0, 4.0]]]), torch.tensor([[[1.0, 1.0]]]))
    tensor([[[2.],
             [5.]]])
    """
    return _minkowski(Z, X, 1.0)


def chebyshev(Z: Tensor, X: Tensor) -> Tensor:
    """Chebyshev distance: max_k |z_ik − x_jk|.

    Z, X : (B, K, d) and (B, N, d).

    Returns C (B, K, N). Raises RuntimeError (from PyTorch) if shapes or dtypes do not fit.

    >>> import torch
    >>> from dropdtw.torch import chebyshev
    >>> chebyshev(torch.tensor([[[0.0, 0.0], [3.0, 4.0]]]), torch.tensor([[[1.0, 1.0]]]))
    tensor([[[1.],
             [3.]]])
    """
    return _minkowski(Z, X, torch.inf)


def _minkowski(Z: Tensor, X: Tensor, p: float) -> Tensor:
    if torch._C._are_functorch_transforms_active():  # under jacrev, the derivatives of cdist mix up items
        apart = (Z[..., :, None, :] - X[..., None, :, :]).abs()
        return apart.sum(-1) if p == 1 else apart.amax(-1)
    dtype = Z.dtype
    if dtype in (torch.float16, torch.bfloat16):
        Z, X = Z.float(), X.float()
    return torch.cdist(*_expanded(Z, X), p=p).to(dtype)


def correlation(Z: Tensor, X: Tensor) -> Tensor:
    """Correlation cost: 1 − the correlation of z_i and x_j. An element whose features are all equal has cost 1.

    Z, X : (B, K, d) and (B, N, d), d ≥ 2.

    Returns C (B, K, N). Raises ValueError if d = 1, and RuntimeError (from PyTorch) if shapes or dtypes do not fit.

    >>> import torch
    >>> from dropdtw.torch import correlation
    >>> correlation(torch.tensor([[[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]]]), torch.tensor([[[3.0, 2.0, 1.0]]])).round()
    tensor([[[2.],
             [1.]]])
    """
    if Z.shape[-1] == 1:
        raise ValueError(
            "match is 'correlation', which compares the features of two elements, but these have only one; "
            "use 'sqeuclidean', or give windows of the series as elements"
        )
    return cosine(_centered(Z), _centered(X))


def _centered(A: Tensor) -> Tensor:
    """Subtract row means. Constant rows become exactly 0; otherwise rounding errors would act as a direction."""
    largest = A.detach().abs().amax(-1, keepdim=True)
    A = A / torch.where(largest > 0, largest, 1.0)
    constant = (A[..., :1] == A).all(-1, keepdim=True)
    return torch.where(constant, 0.0, A - A.mean(-1, keepdim=True))


def _expanded(Z: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
    """Broadcast both to the same batch dimensions."""
    batch = torch.broadcast_shapes(Z.shape[:-2], X.shape[:-2])  # type: ignore[no-untyped-call]
    return Z.expand(*batch, -1, -1), X.expand(*batch, -1, -1)


class _Squares(torch.autograd.Function):
    """Squared distances. Two matrix products give the derivative, so the (B, K, N, d) differences are never stored."""

    @staticmethod
    def forward(Z: Tensor, X: Tensor) -> Tensor:
        dtype, d = Z.dtype, Z.shape[-1]
        if dtype in (torch.float16, torch.bfloat16):
            Z, X = Z.float(), X.float()
        if d <= 16:
            if kernels.run_on(Z):
                return _as(kernels.squares(Z, X), dtype)
            return _as(torch.cdist(Z, X, compute_mode="donot_use_mm_for_euclid_dist") ** 2, dtype)
        origin = _middle(Z, X)
        if Z.is_cuda or torch.compiler.is_compiling():
            C, scale = _products(Z.double() - origin, X.double() - origin)
            return _as(torch.where(2 * d**0.5 * torch.finfo(C.dtype).eps * scale >= C, 0, C), dtype)  # a NaN stays
        C, scale = _products(Z - origin, X - origin)
        _by_differences(C, ~(1e-2 * scale < C), Z, X, _squares)  # ~(<), not ≥, to include NaN from overflow
        return _as(C, dtype)

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


def _as(C: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert C if necessary. A conversion that does nothing, at the end of `forward`, makes derivatives 0 under
    torch.compile in PyTorch 2.11.
    """
    return C if C.dtype == dtype else C.to(dtype)


def sqeuclidean_back(grad: Tensor, Z: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
    """Given the gradient `grad` with respect to the squared distances, return the gradients with respect to Z and X."""
    origin = _middle(Z, X)
    Z, X = Z - origin, X - origin
    by_z = 2 * (grad.sum(-1)[..., None] * Z - grad @ X)
    return by_z, 2 * (grad.sum(-2)[..., None] * X - grad.mT @ Z)


def _middle(Z: Tensor, X: Tensor) -> Tensor:
    """Return a point (..., 1, d) near most elements, which reduces cancellation in the products.

    For each feature, it is the median of the first z, the first x and the middle x; one of them may be an outlier or
    padding.
    """
    half = X.shape[-2] // 2
    a, b, c = Z[..., :1, :].detach(), X[..., :1, :].detach(), X[..., half : half + 1, :].detach()
    return torch.maximum(torch.minimum(a, b), torch.minimum(torch.maximum(a, b), c))


def _products(Z: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
    """Compute squared distances by a matrix product, and |z|² + |x|², which their rounding error is proportional to."""
    scale = (Z**2).sum(-1)[..., :, None] + (X**2).sum(-1)[..., None, :]
    return scale - 2 * Z @ X.mT, scale


def _by_differences(C: Tensor, chosen: Tensor, Z: Tensor, X: Tensor, cost: Callable[[Tensor], Tensor]) -> None:
    """Recompute the `chosen` entries of C in place from the differences z − x, a few thousand pairs at a time."""
    C, chosen, Z, X = (A.reshape(-1, *A.shape[-2:]) for A in (C, chosen, Z, X))
    for part in chosen.nonzero().split(1 << 14):  # type: ignore[no-untyped-call]
        b, i, j = part.unbind(1)
        C[b, i, j] = cost(Z[b, i] - X[b, j])


def _squares(differences: Tensor) -> Tensor:
    return (differences**2).sum(-1)


def _lengths(differences: Tensor) -> Tensor:
    """Compute the Euclidean length of each row at its own scale; infinite if a difference is."""
    scale = differences.abs().amax(-1)
    units = differences / torch.where(scale > 0, scale, 1)[:, None]
    return torch.where(scale < torch.inf, _squares(units).sqrt() * scale, scale)


def softmax(Z: Tensor, X: Tensor, gamma: float = 1.0, *, ids: Tensor | None = None) -> Tensor:
    """Softmax cost: −log softmax over i of (z_i · x_j / γ) (paper Eq. 4), summed over *unique* z only (its appendix).

    Z, X : (B, K, d) and (B, N, d).
    gamma : temperature γ > 0; a smaller value makes the softmax sharper.
    ids : (B, K) integers that identify the z. Of all rows with the same id, the first one represents them all. A
        negative id marks padding. None means that equal rows count once.

    Returns C (B, K, N). Raises RuntimeError (from PyTorch) if shapes or dtypes do not fit.

    >>> import torch
    >>> from dropdtw.torch import softmax
    >>> Z = torch.tensor([[[1.0], [1.0], [0.0]]])
    >>> softmax(Z, torch.zeros(1, 1, 1)).mT            # two unique rows: each has probability 1/2
    tensor([[[0.6931, 0.6931, 0.6931]]])
    """
    return softmax_of_kinds(Z, X, first_of_kind(Z, ids), gamma)


def softmax_of_kinds(Z: Tensor, X: Tensor, first: Tensor, gamma: float) -> Tensor:
    """Compute the same if the first z of each kind is known from `first_of_kind`."""
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
    """Softmax cost with drops: a drop logit competes with the steps in the softmax of paper Eq. 4.

    Z, X : (B, K, d) and (B, N, d).
    logit : a tensor that broadcasts to (B, N), for example from `LearnedDrop`; or a function of the similarities
        S (B, K, N), such as `percentile_logit` with its p. S is −∞ in rows that do not count.
    gamma, ids : as in `softmax`.   epsilon : ε below.

    Returns the match costs C (B, K, N) and the drop costs d_x (B, N). Each is −log(p + ε) of its probability p. Raises
    RuntimeError (from PyTorch) if shapes or dtypes do not fit.

    >>> import torch
    >>> from dropdtw.torch import percentile_logit, softmax_with_drop
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
    """Compute the same if the first z of each kind is known from `first_of_kind`."""
    S, counted = _similarities(Z, X, first)
    drop = logit(S.masked_fill(~counted, -torch.inf)) if callable(logit) else logit
    drop = drop.expand(S.shape[0], S.shape[2])[:, None] / gamma
    S = S / gamma
    total = torch.logaddexp(S.masked_fill(~counted, -torch.inf).logsumexp(dim=-2, keepdim=True), drop)
    C = -torch.log(torch.exp(S - total) + epsilon)
    return C, -torch.log(torch.exp(drop - total) + epsilon)[:, 0]


def _similarities(Z: Tensor, X: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """Return S = Z Xᵀ (B, K, N), with each row copied from the first z of its kind, and which rows count (B, K, 1)."""
    S = Z @ X.mT
    # Rows of padding become copies of the first row, so their contents cannot overflow.
    return S.gather(-2, first.clamp(min=0)[..., None].expand_as(S)), is_first(first)[..., None]


def first_of_kind(Z: Tensor, ids: Tensor | None = None) -> Tensor:
    """(B, K): for each row of Z, the index of the first row with the same id or, without ids, the same values.

    A negative id marks padding, for which the result is −1.
    """
    if ids is not None:
        return torch.where(ids < 0, -1, _first_equal(ids))
    Z = Z.detach()
    if Z.ndim == 3 and kernels.run_on(Z) and not torch.compiler.is_compiling():
        return kernels.first_rows(Z)
    transformed = torch._C._are_functorch_transforms_active()  # vmap of PyTorch 2.11 cannot view numbers as integers
    first = _first_equal_row(Z) if transformed else _first_equal(_fingerprints(Z))
    same = (Z.gather(-2, first[..., None].expand_as(Z)) == Z).all(-1)  # NaN is not equal to itself
    return torch.where(same, first, torch.arange(Z.shape[-2], device=Z.device))


def _first_equal(names: Tensor) -> Tensor:
    return (names[..., :, None] == names[..., None, :]).to(torch.uint8).argmax(-1)


def _first_equal_row(Z: Tensor) -> Tensor:
    return (Z[..., :, None, :] == Z[..., None, :, :]).all(-1).to(torch.uint8).argmax(-1)


def _fingerprints(Z: Tensor) -> Tensor:
    """Hash each row to an integer. Comparing all pairs of rows element by element would take K² d comparisons."""
    odd = 6364136223846793005  # integers multiply modulo 2⁶⁴, where only odd factors are invertible
    bits = (Z + 0.0).view({2: torch.int16, 4: torch.int32, 8: torch.int64}[Z.element_size()]).long() * odd  # −0 is 0
    powers = torch.full(Z.shape[-1:], odd, device=Z.device).cumprod(0)
    return ((bits ^ (bits >> 32)) * powers).sum(-1)  # the low bits of a number such as 1.0 are all 0


def is_first(first: Tensor) -> Tensor:
    """(B, K): which rows are the first of their kind, given the result of `first_of_kind`."""
    return first == torch.arange(first.shape[-1], device=first.device)


def percentile_drop(C: Tensor, p: float, z_lengths: Tensor | None = None, x_lengths: Tensor | None = None) -> Tensor:
    """Compute the p-th percentile of each item's finite match costs (paper Eq. 5).

    C : (B, K, N) match costs.   p : 0 to 100; a lower p drops more.   z_lengths, x_lengths : (B,), if C is padded.

    Returns (B, 1); +∞ for an item without finite costs. It is differentiable; call `.detach()` to pass no gradient
    through the drop cost. Raises ValueError if p is not from 0 to 100.

    >>> import torch
    >>> from dropdtw.torch import percentile_drop
    >>> percentile_drop(torch.tensor([[[1.0, 2.0], [3.0, torch.inf]]]), 50)
    tensor([[2.]])
    """
    _check_percentile(p)
    there = torch.isfinite(C) & within(C, z_lengths, x_lengths)
    ordered = torch.where(there, C, torch.inf).flatten(1).sort(dim=1).values
    count = there.flatten(1).sum(dim=1, keepdim=True)
    place = (count - 1).clamp(min=0).double() * (p / 100)
    low = place.floor().long()
    a, b = ordered.gather(1, low), ordered.gather(1, torch.minimum(low + 1, (count - 1).clamp(min=0)))
    part = (place - low).to(C.dtype)
    return torch.where(part > 0, a + part * (b - a), a)


def percentile_logit(S: Tensor, p: float, z_lengths: Tensor | None = None, x_lengths: Tensor | None = None) -> Tensor:
    """Compute the drop logit of each item: the k-th largest similarity, k = max(1, ⌊p/100 · number of pairs⌋).

    S : (B, K, N) similarities Z Xᵀ, −∞ in rows that do not count.   p : 0 to 100; a larger p drops less.
    z_lengths, x_lengths : (B,), if S is padded.

    Returns (B, 1), detached: it passes no gradient. `dropdtw.drops.LogitPercentile` explains its use. Raises ValueError
    if p is not from 0 to 100.

    >>> import torch
    >>> from dropdtw.torch import percentile_logit
    >>> percentile_logit(torch.tensor([[[2.0, 0.0], [1.0, 0.0]]]), 50)              # the 2nd largest of 4
    tensor([[1.]])
    """
    _check_percentile(p)
    there = torch.isfinite(S) & within(S, z_lengths, x_lengths)
    ordered = torch.where(there, S, -torch.inf).flatten(1).sort(dim=1, descending=True).values
    k = (there.flatten(1).sum(dim=1, keepdim=True).double() * p / 100).long().clamp(min=1)
    return ordered.gather(1, k - 1).detach()


def _check_percentile(p: float) -> None:
    if not 0 <= p <= 100:
        raise ValueError(f"p is {p!r}; give a percentile from 0 to 100")


def temperature(match: Any) -> float | None:
    """Return γ of the softmax cost; None if `match` is another cost by name, or a function of the caller's own."""
    if isinstance(match, Softmax) and match.ids is not None:
        raise ValueError("match has ids, which belong to a batch; pass them to the loss, as in loss(Z, X, ids=...)")
    if isinstance(match, Softmax) or (isinstance(match, str) and match.startswith("softmax:")):
        found = resolve(match, 1).softmax
        assert found is not None
        return float(found.gamma)
    if match in ("softmax", "auto"):
        return 1.0
    if not callable(match) and match not in MATCH_COSTS:
        raise ValueError(
            f"match is {match!r}; choose 'softmax', 'softmax:10' (any temperature), "
            f"{', '.join(map(repr, MATCH_COSTS))}, or give a function of Z (B, K, d) and X (B, N, d) that returns "
            "C (B, K, N)"
        )
    return None


MATCH_COSTS: Final[dict[str, Callable[[Tensor, Tensor], Tensor]]] = {
    "cosine": cosine,
    "sqeuclidean": sqeuclidean,
    "cityblock": cityblock,
    "chebyshev": chebyshev,
    "correlation": correlation,
}
"""Differentiable match costs that depend on one z and one x only, by name."""
