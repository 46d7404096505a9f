"""`align` and `posterior`: the best alignments of a batch and their probabilities, on its device, item by item nowhere.

Both are derivatives. That of a hard minimum with respect to the match costs is the alignment itself, and that of a soft
minimum is the probability of each match.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from inspect import Parameter, signature
from typing import Any, NamedTuple, Unpack

import torch
from torch import Tensor

from dropdtw.costs import FEW
from dropdtw.problem.errors import refuse_unknown
from dropdtw.tables import recurrence
from dropdtw.torch import costs, ops
from dropdtw.torch.batch import Ids, Pairs, pairs
from dropdtw.torch.functional import Batch, Drops, Lengths, Request, drop_dtw, request
from dropdtw.torch.losses import AlignmentLoss
from dropdtw.torch.masks import Mask
from dropdtw.torch.operators import Tensors, operator
from dropdtw.torch.options import LossOptions


class BatchAlignment:
    """The best alignments of a batch, on its device. Returned by `align`.

    values : (B,) their costs; +∞ for an item without an alignment.
    matched : (B, K, N) the weight of each match: 1, or another number in step patterns with weights; 0 elsewhere.

    What is not listed here is computed when it is first used.
    """

    def __init__(self, values: Tensor, matched: Tensor, C: Tensor) -> None:
        self.values, self.matched, self._C = values, matched, C

    def __repr__(self) -> str:
        B, K, N = self.matched.shape
        return f"<BatchAlignment of {B} × {K} z with {N} x, on {self.matched.device}>"

    @cached_property
    def M(self) -> Tensor:
        """(B, K, N) bool: whether z_i matches x_j."""
        return self.matched > 0

    @cached_property
    def labels(self) -> Tensor:
        """(B, N): the index of the z that each x matches, −1 where it is dropped, missing or padding.

        If an x matches several z, the label is the cheapest of them (ties: the smallest index).
        """
        best = self._C.masked_fill(~self.M, torch.inf).argmin(1)
        return torch.where(self.M.any(1), best, -1)

    @cached_property
    def durations(self) -> Tensor:
        """(B, K): how many x each z matches."""
        return self.M.sum(2)

    @property
    def pairs(self) -> list[Tensor]:
        """For each item, the matched pairs (i, j), sorted by x. This reads their numbers from the device."""
        item, j, i = self.M.mT.nonzero().unbind(1)
        counts = torch.bincount(item, minlength=len(self.M)).tolist()
        return list(torch.split(torch.stack([i, j], 1), counts))


class BatchPosterior(NamedTuple):
    """The probabilities of the alignments of a batch, on its device. Returned by `posterior`.

    values : (B,) the soft values −γ log Σ exp(−cost/γ).
    match : (B, K, N) the probability that z_i matches x_j.
    drop_x, drop_z : (B, N) and (B, K) the probability that an element pays its drop cost. Elements that a method leaves
        out for free, missing and padded ones have 0.
    """

    values: Tensor
    match: Tensor
    drop_x: Tensor
    drop_z: Tensor


def align(
    C: Batch,
    X: Batch | None = None,
    drop_x: Drops = None,
    drop_z: Drops = None,
    *,
    z_lengths: Lengths = None,
    x_lengths: Lengths = None,
    ids: Ids = None,
    x_mask: Mask = None,
    strict: bool = True,
    executor: str | None = None,
    **options: Unpack[LossOptions],
) -> BatchAlignment:
    """Find the best alignment of each item of a batch, on its device and without a loop over items.

    Parameters
    ----------
    C : match costs, (B, K, N) or a list of B matrices. Or, with X, the sequences Z, (B, K, d) or a list.
    X : (B, N, d) or a list of B sequences; None if C holds match costs.
    drop_x, drop_z, z_lengths, x_lengths, x_mask, strict, executor : as in `drop_dtw`. Positions in the result are those
        of the caller's x, whatever `x_mask` leaves out.
    ids : with sequences, which z are the same, as in `AlignmentLoss.forward`.
    options : the other options of `drop_dtw` but `reducer` and `gamma`. With sequences also `match`, as in
        `AlignmentLoss`; "auto", the default, is Euclidean for up to 15 features and cosine for more.

    Returns a `BatchAlignment` with values, labels, pairs and M. An item without an alignment has the value +∞ and no
    matches, where `dropdtw.solve` raises: to raise, a batch would have to wait for its device. Raises ValueError if an
    argument is invalid, or with `strict` if lengths that can be seen leave no alignment.

    >>> import torch
    >>> from dropdtw.torch import align
    >>> found = align(torch.tensor([[[0.1, 0.9, 0.2]], [[0.5, 0.1, 0.1]]]), drop_x=0.3)
    >>> found.values, found.labels
    (tensor([0.6000, 0.5000]), tensor([[ 0, -1,  0],
            [-1,  0,  0]]))
    """
    _refuse(options, align, X)
    told = {"strict": strict, "executor": executor, "reducer": "hard"}
    asked = _asked(C, X, drop_x, drop_z, z_lengths, x_lengths, ids, x_mask, {**options, **told})
    return found(asked)


def found(asked: Request) -> BatchAlignment:
    """Solve a request with the hard minimum."""
    with torch.no_grad():
        values, matched, *_ = _derivatives(asked, filled=False)
        return BatchAlignment(values, _spread(matched, asked), _spread(asked.given.match, asked))


def posterior(
    C: Batch,
    X: Batch | None = None,
    drop_x: Drops = None,
    drop_z: Drops = None,
    *,
    z_lengths: Lengths = None,
    x_lengths: Lengths = None,
    ids: Ids = None,
    x_mask: Mask = None,
    strict: bool = True,
    executor: str | None = None,
    **options: Unpack[LossOptions],
) -> BatchPosterior:
    """Compute the probabilities of matches and drops of a batch, on its device, differentiable.

    Parameters
    ----------
    C, X, drop_x, drop_z, z_lengths, x_lengths, ids, x_mask, strict, executor, options : as in `align`. Besides, gamma,
        1 by default, is the temperature γ > 0: an alignment has probability exp(−cost/γ), up to a factor. Unlike
        `dropdtw.posterior`, this function does not choose γ from the costs.

    Returns a `BatchPosterior`. Its derivatives come from plain PyTorch operations and are slower than the
    probabilities. Raises ValueError if an argument is invalid, or if the method weighs its matches.

    >>> import torch
    >>> from dropdtw.torch import posterior
    >>> p = posterior(torch.tensor([[[0.1, 0.9, 0.2]]]), drop_x=0.3, gamma=0.1)
    >>> p.match, p.drop_x
    (tensor([[[0.9099, 0.0026, 0.7552]]]), tensor([[0.0901, 0.9974, 0.2448]]))
    """
    _refuse(options, posterior, X)
    gamma: Any = options.get("gamma", 1.0)
    if gamma is None or not gamma > 0:
        raise ValueError(
            f"gamma is {gamma!r}; give a number > 0, or use dropdtw.torch.align to find the best alignment"
        )
    told = {"strict": strict, "executor": executor, "reducer": "soft", "gamma": gamma}
    asked = _asked(C, X, drop_x, drop_z, z_lengths, x_lengths, ids, x_mask, {**options, **told})
    if not ops.table(asked.operation.table).weights <= {1.0}:
        raise ValueError(
            f"method is {options['method']!r}, which weighs its matches; use dropdtw.posterior, one problem at a time"
        )
    given = asked.given
    values, match, of_x, of_z = _differentiable(given.match, given.drop_x, given.drop_z, given.charges, asked)
    if (
        ops.table(asked.operation.table).name == recurrence.ctc().name
    ):  # its table books as drops of z that one z follows another at once
        of_z = torch.zeros_like(of_z)
    return BatchPosterior(values, _spread(match, asked), _spread(of_x, asked), of_z)


def _refuse(options: Any, function: Any, X: Batch | None) -> None:
    """Raise for options that the function does not take."""
    refuse_unknown(options, _known(function, X is not None), function.__name__)


@cache
def _known(function: Any, sequences: bool) -> list[str]:
    """The arguments of a function; match costs take no `match`."""
    return [name for name in signature(function).parameters if sequences or name not in ("match", "ids")]


def _asked(
    C: Batch,
    X: Batch | None,
    drop_x: Any,
    drop_z: Any,
    z_lengths: Lengths,
    x_lengths: Lengths,
    ids: Ids,
    x_mask: Mask,
    options: dict[str, Any],
) -> Request:
    """The request for costs, or for sequences by way of a loss."""
    if X is None:
        if ids is not None:
            raise ValueError("ids belong to sequences, but C holds match costs; leave them out")
        return request(C, drop_x, drop_z, z_lengths=z_lengths, x_lengths=x_lengths, x_mask=x_mask, **options)
    p = pairs(C, X, z_lengths, x_lengths, ids, x_mask=x_mask)
    own = {name: options.pop(name, None) for name in ("strict", "executor", "order")}
    match = options.pop("match", "auto")
    if match == "auto":
        match = "euclidean" if p.X.shape[-1] <= FEW else "cosine"
    loss = AlignmentLoss(drop_x, drop_z, match=costs.euclidean if match == "euclidean" else match, **options)
    return of_pairs(loss, p, **own)


def of_pairs(loss: AlignmentLoss, p: Pairs, **own: Any) -> Request:
    """The request of a loss for pairs that are already checked."""
    with torch.autocast(p.given_x.device.type, enabled=False):  # half precision would round the costs
        C, drop_x, drop_z = loss.costs(p)
    own |= {"z_lengths": p.z_lengths, "x_lengths": p.x_lengths, "threshold": loss.threshold}
    asked = request(C, drop_x, drop_z, **loss.table(), **loss.charges_of(p), **own)
    return asked._replace(places=p.x_places)


def _derivatives(asked: Request, *, again: bool = False, filled: bool = True) -> tuple[Any, ...]:
    """The values, and the derivatives of their sum with respect to C, drop_x, drop_z and charges, if there are any.

    again : whether the result can be differentiated, with respect to the tensors of the request.
    filled : whether costs that nothing pays have derivatives 0; otherwise None.
    """
    parts = [part for part in asked.given[:4] if part is not None]
    if asked.plan is None and asked.operation.executor != "wavefront":
        values, solved = ops.solved(asked.given, asked.operation)
        each = [one for one, part in zip(solved, asked.given[:4], strict=True) if part is not None]
        return values, *(_filled(parts, each) if filled else each)
    with torch.enable_grad():
        leaves = parts if again else [part.detach().requires_grad_() for part in parts]
        given = asked.given._replace(**dict(zip(NAMES, leaves, strict=False)))
        values = asked._replace(given=given).values()
        total = values.where(values.isfinite(), 0.0).sum()
        by = torch.autograd.grad(total, leaves, create_graph=again, allow_unused=True)
    return values if again else values.detach(), *_filled(parts, by)


def _filled(parts: Sequence[Tensor], by: Sequence[Tensor | None]) -> list[Tensor]:
    """Derivatives, with zeros where there are none."""
    return [torch.zeros_like(part) if each is None else each for part, each in zip(parts, by, strict=True)]


NAMES = ("match", "drop_x", "drop_z", "charges")


def _forward(tensors: Tensors, asked: Request) -> tuple[tuple[Tensor, ...], Tensors, Request]:
    return _derivatives(asked)[:4], tensors, asked


def _backward(grads: tuple[Tensor, ...], tensors: Tensors, asked: Request) -> Tensors:
    named = zip(NAMES, tensors, strict=True)
    leaves: dict[str, Any] = {name: each.detach().requires_grad_() for name, each in named if each is not None}
    plain = asked._replace(
        given=asked.given._replace(**leaves),
        operation=asked.operation._replace(executor="wavefront"),
        plan=None if asked.plan is None else asked.plan._replace(executor="wavefront"),
    )
    with torch.enable_grad():
        found = _derivatives(plain, again=True)[:4]
        parts = zip(found, grads, strict=True)
        total = torch.stack([torch.where(g != 0, part * g, 0.0).sum() for part, g in parts]).sum()
        by = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    each = dict(zip(leaves, by, strict=True))
    return tuple(each.get(name) for name in NAMES)


_differentiable = operator(_forward, _backward, "the probabilities of a batch can be differentiated only once")
"""The values and probabilities by the kernels; their derivatives by plain operations."""


def _spread(A: Tensor, asked: Request) -> Tensor:
    """Move the last dimension of A to the places of the caller's x; those that are missing get 0."""
    if asked.places is None:
        return A
    lengths = asked.given.lengths
    assert lengths is not None
    there = torch.arange(A.shape[-1], device=A.device) < lengths[1][:, None]
    where = (slice(None), None) if A.ndim == 3 else (slice(None),)
    at = asked.places[where].expand_as(A)
    return torch.zeros_like(A).scatter(-1, at, A.where(there[where], 0.0))


def _said(f: Any, without: tuple[str, ...]) -> Any:
    """The signature of `f` with the options of `drop_dtw` in place of `**options`."""
    own = [each for each in signature(f).parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    known = {each.name for each in own} | {"C", "unknown", *without}
    rest = [each for each in signature(drop_dtw).parameters.values() if each.name not in known]
    match = Parameter("match", Parameter.KEYWORD_ONLY, default="auto")
    return signature(f).replace(parameters=[*own, match, *rest])


align.__signature__ = _said(align, ("reducer", "gamma"))  # type: ignore[attr-defined]
posterior.__signature__ = _said(posterior, ("reducer",))  # type: ignore[attr-defined]
