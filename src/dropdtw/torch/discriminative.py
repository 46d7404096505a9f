"""Losses that compare the right alignment with a wrong one: D³TW, and the paper's margin loss."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import torch
from torch import Tensor, nn

from dropdtw.aligner import Aligner
from dropdtw.results.alignment import Alignment
from dropdtw.results.posterior import Posterior
from dropdtw.torch.batch import Ids, Pairs, pairs, real
from dropdtw.torch.functional import Batch, Lengths
from dropdtw.torch.losses import AlignmentLoss
from dropdtw.torch.masks import Mask
from dropdtw.torch.ops import can_look
from dropdtw.torch.options import WITHOUT_DROPS, LossOptions
from dropdtw.torch.orders import Orders, select
from dropdtw.torch.reduction import Reduction, check_number, check_reduction, reduce


class D3TWLoss(AlignmentLoss, method="dtw", reducer="soft", fixed=WITHOUT_DROPS):
    """D³TW (Chang et al. 2019): max(0, margin + D(Z, X) − D(Ẑ, X)), softmin DTW of the right order and of a wrong one.

    Unless you pass a wrong order, the steps of each item are shuffled so that the result differs from the right order.
    An item whose steps are all equal (or, with the softmax cost, all have the same id) has no wrong order, and its loss
    is the margin.

    margin : a number ≥ 0.   aligner : a `dropdtw.Aligner` instead of options.
    options : those of `AlignmentLoss`. The default reducer is the soft minimum.

    Call it as `loss(Z, X, ...)`, see `forward`. Raises ValueError if an option is invalid.

    >>> import torch
    >>> from dropdtw.torch import D3TWLoss
    >>> Z = torch.eye(2)[None]
    >>> D3TWLoss(reducer="hard", match="sqeuclidean")(Z, Z)                    # right 0, wrong 4
    tensor(0.)
    """

    def __init__(self, margin: float = 1.0, aligner: Aligner | None = None, **options: Unpack[LossOptions]) -> None:
        super().__init__(aligner, **options)
        self.margin = check_number(margin, "margin", "≥ 0")

    def forward(
        self,
        Z: Batch,
        X: Batch,
        *,
        z_lengths: Lengths = None,
        x_lengths: Lengths = None,
        ids: Ids = None,
        order: Orders = None,
        x_mask: Mask = None,
        wrong: Batch | None = None,
        wrong_lengths: Lengths = None,
        wrong_ids: Ids = None,
        wrong_order: Orders = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Compute the loss of a batch.

        Z, X, z_lengths, x_lengths, ids, x_mask : as in `AlignmentLoss.forward`.
        wrong : integers (B, K), a wrong order of the z of each item; or other sequences (B, K', d) or a list of them,
            such as another video's steps. None shuffles the steps.
        wrong_lengths, wrong_ids, wrong_order : lengths, ids and orders of the sequences `wrong`; as z_lengths, ids and
            order for Z.
        order : which steps may follow which, as in `AlignmentLoss.forward`. Shuffled steps are aligned under
            the same order. If that order allows the shuffle, as `any_order(0, 1)` does, both alignments cost the same,
            and the item teaches nothing; then pass `wrong`.
        generator : random generator for the shuffles. None uses PyTorch's default generator.

        Returns a tensor (), or (B,) with `reduction="none"`. Raises ValueError if the batch is invalid.
        """
        p = pairs(Z, X, z_lengths, x_lengths, ids, x_mask=x_mask)
        if wrong is None or (isinstance(wrong, Tensor) and not wrong.is_floating_point()):
            _refuse_without_wrong(wrong_lengths, wrong_ids, wrong_order)
            places = shuffled(p, generator) if wrong is None else _order(wrong, p)
            q = Pairs(
                p.given_z.gather(1, places[..., None].expand_as(p.given_z)),
                p.given_x,
                p.z_lengths,
                p.x_lengths,
                None if p.names is None else p.names.gather(1, places),
                p.x_places,
                clean=(False, False),
            )
            wrong_order = order
        else:
            q = _wrong(self, p, wrong, wrong_lengths, wrong_ids)
        right = self.values(p, order)
        return reduce(torch.relu(self.margin + right - self.values(q, wrong_order)), self.reduction)

    def extra_repr(self) -> str:
        """Describe the settings for `repr`."""
        return f"margin={self.margin}, {super().extra_repr()}"


def _wrong(loss: AlignmentLoss, p: Pairs, wrong: Batch, lengths: Lengths, ids: Ids) -> Pairs:
    """The pairs of the caller's wrong sequences with the X of p. An alignment need not fit them."""
    drop_z = loss.drop_z
    if isinstance(drop_z, Tensor) and drop_z.ndim == 2 and min(drop_z.shape) > 1:
        raise ValueError(
            f"drop_z has shape {tuple(drop_z.shape)}, one cost per z of each item, but `wrong` holds other sequences; "
            "give a number, a rule, a tensor (B, 1) or a LearnedDrop"
        )
    q = pairs(wrong, p.given_x, lengths, p.x_lengths, ids, "wrong")
    q.x_places, q.strict = p.x_places, False
    return q


def _refuse_without_wrong(lengths: Lengths, ids: Ids, order: Orders) -> None:
    if lengths is not None or ids is not None or order is not None:
        raise ValueError(
            "wrong_lengths, wrong_ids and wrong_order describe wrong sequences, but none were given; leave them out"
        )


def shuffled(p: Pairs, generator: torch.Generator | None = None) -> Tensor:
    """(B, K): a random order of each item's z that differs from the right one; padding stays in place."""
    B, K, _ = p.given_z.shape
    place = torch.arange(K, device=p.given_z.device).expand(B, K)
    first, there = p.first_of_kind(), real(p.given_z, p.z_lengths).expand(B, K)
    device = p.given_z.device if generator is None else generator.device
    key = torch.rand(B, K, generator=generator, device=device).to(p.given_z.device)
    drawn = torch.where(there, key, 2.0 + place).argsort(dim=1)
    # If any shuffle changes the order, then so does a rotation by one.
    turned = torch.where(there, (place + 1) % there.sum(dim=1, keepdim=True), place)
    same = (first.gather(1, drawn) == first).all(dim=1, keepdim=True)
    return torch.where(same, turned, drawn)


def _order(wrong: Tensor, p: Pairs) -> Tensor:
    B, K, _ = p.given_z.shape
    place = torch.arange(K, device=p.given_z.device)
    fits = wrong.shape == (B, K)
    if fits:
        wrong = torch.where(real(p.given_z, p.z_lengths), wrong.to(p.given_z.device, torch.int64), place)
        fits = not can_look(wrong) or bool((wrong.sort(dim=1).values == place).all())
    if not fits:
        raise ValueError(
            f"wrong has shape {tuple(wrong.shape)} and is not an order of {B} × {K} elements; give each of "
            "0, …, K_b − 1 once per item (B, K), or other sequences (B, K', d)"
        )
    return wrong


class MarginLoss(nn.Module):
    """max(0, β + D(Z, X) − D(Ẑ, X)) (the paper's appendix): the right Z should be cheaper than a wrong one by β.

    loss : the alignment loss whose values D are compared. Its `normalize` applies.
    beta : the margin; 0.5 in the paper.
    negatives : where Ẑ comes from if `wrong` is not given. "roll" takes it from the previous item, one per item as in
        the paper's triplets, and computes 2 B alignments. If the data are shuffled in each epoch, the pairs change.
        "all" takes it from every other item and averages the hinge losses of each item; it computes B² alignments.
        A Z that no alignment fits to X costs +∞ and adds 0. Both need items that differ. If items can be alike, as with
        videos of the same recipe, pass `wrong`.
    reduction : "mean", "sum" or "none" over items.

    Call it as `loss(Z, X, ...)`, see `forward`. Raises ValueError if an option is invalid.

    >>> import torch
    >>> from dropdtw.torch import DropDTWLoss, MarginLoss
    >>> loss = MarginLoss(DropDTWLoss(drop_x=1.0, match="sqeuclidean", reducer="hard"))
    >>> X = torch.tensor([[[0.0], [0.0]], [[3.0], [3.0]]])
    >>> loss(X, X), loss(X.flip(0), X)
    (tensor(0.), tensor(18.5000))
    """

    def __init__(
        self,
        loss: AlignmentLoss,
        beta: float = 0.5,
        *,
        negatives: Literal["roll", "all"] = "roll",
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        if not isinstance(loss, AlignmentLoss):
            raise ValueError(f"loss is {loss!r}; give an alignment loss, for example DropDTWLoss(0.3, 0.3)")
        if negatives not in ("roll", "all"):
            raise ValueError(f"negatives is {negatives!r}; choose 'roll' (previous item) or 'all' (all other items)")
        self.loss, self.negatives = loss, negatives
        self.beta, self.reduction = check_number(beta, "beta", "≥ 0"), check_reduction(reduction)

    def forward(
        self,
        Z: Batch,
        X: Batch,
        *,
        z_lengths: Lengths = None,
        x_lengths: Lengths = None,
        ids: Ids = None,
        order: Orders = None,
        x_mask: Mask = None,
        wrong: Batch | None = None,
        wrong_lengths: Lengths = None,
        wrong_ids: Ids = None,
        wrong_order: Orders = None,
    ) -> Tensor:
        """Compute the loss of a batch.

        Z, X, z_lengths, x_lengths, ids, order, x_mask : as in `AlignmentLoss.forward`.
        wrong : wrong sequences (B, K', d), or a list of B (K'_b, d). None takes the Z of other items. Each Z keeps the
            order, ids, drop costs and opening costs of its own item; so does each X.
        wrong_lengths, wrong_ids, wrong_order : lengths, ids and orders of the sequences `wrong`.

        Returns a tensor (), or (B,) with `reduction="none"`. Raises ValueError if the batch is invalid, or if it has
        only one item and no `wrong`.
        """
        p = pairs(Z, X, z_lengths, x_lengths, ids, x_mask=x_mask)
        right = self.loss.values(p, order)
        if wrong is None:
            _refuse_without_wrong(wrong_lengths, wrong_ids, wrong_order)
            if len(right) < 2:
                raise ValueError(
                    "the batch has only one item, so no other item can supply a wrong Z; give wrong, or more items"
                )
            other = others(len(right), right.device, every=self.negatives == "all")
            own = torch.arange(len(right), device=right.device)[:, None].expand_as(other)
            theirs = select(order, _others(len(right), every=self.negatives == "all"))
            cost = self.loss.values(p.select(other.flatten(), own.flatten()), theirs).view_as(other)
        else:
            q = _wrong(self.loss, p, wrong, wrong_lengths, wrong_ids)
            cost = self.loss.values(q, wrong_order)[:, None]
        return reduce(torch.relu(right[:, None] - cost + self.beta).mean(dim=1), self.reduction)

    @property
    def aligner(self) -> Aligner:
        """How it aligns, see `AlignmentLoss.aligner`."""
        return self.loss.aligner

    def align(self, Z: Batch, X: Batch, **options: Any) -> list[Alignment]:
        """Find the best alignment of each Z with its X, see `AlignmentLoss.align`."""
        return self.loss.align(Z, X, **options)

    def posterior(self, Z: Batch, X: Batch, **options: Any) -> list[Posterior]:
        """Compute the probabilities of each item's matches and drops, see `AlignmentLoss.posterior`."""
        return self.loss.posterior(Z, X, **options)

    def extra_repr(self) -> str:
        """Describe the settings for `repr`."""
        return f"beta={self.beta}, negatives={self.negatives!r}, reduction={self.reduction!r}"


def others(B: int, device: torch.device, *, every: bool) -> Tensor:
    """Return the previous item of each item (B, 1), or all other items (B, B − 1), starting with the previous one."""
    steps = torch.arange(1, B if every else 2, device=device)
    return (torch.arange(B, device=device)[:, None] - steps) % B


def _others(B: int, *, every: bool) -> list[int]:
    """Return the same as a flat list of numbers, item by item."""
    return [(b - n) % B for b in range(B) for n in range(1, B if every else 2)]
