"""`ClusteringLoss`: every step should have frames of its own, in any order (the paper's L_clust)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from dropdtw.torch import fused_clustering
from dropdtw.torch.batch import Ids, Pairs, pairs, real, refuse_overflow
from dropdtw.torch.costs import first_of_kind, is_first
from dropdtw.torch.functional import Batch, Lengths
from dropdtw.torch.learned import LearnedDrop
from dropdtw.torch.masks import Mask
from dropdtw.torch.reduction import Reduction, check_number, check_reduction, reduce


class ClusteringLoss(nn.Module):
    """The paper's L_clust, a regularizer for alignment losses that ignores the order of the steps.

    Alignment losses on their own tend to match everything to a few steps. Here, attention pools the frames for each
    *unique* step, x̂_i = Σ_j x_j softmax_j(x_j · z_i / γ). The loss is low when each pooled frame fits its own step and
    no other. γ divides: a larger γ pools more evenly.

    form : "frobenius" (the paper's appendix): ‖I − X̂ Zᵀ‖, the Frobenius norm over the unique steps of an item. At
        its minimum x̂_i · z_i = 1, so normalize the features, or let the encoder learn their scale. "contrastive"
        (InfoNCE, as in the authors' experiments): the mean over steps of
        −log softmax_k(x̂_i · z_k / γ_contrast) at k = i.
    gamma : temperature of the pooling. None means 1 for "frobenius" and 10 for "contrastive".
    gamma_contrast : temperature of the contrast; it divides, too. None means 30. For 512 standardized features, whose
        products are in the hundreds, 10 and 30 work well for the two temperatures; for features of length 1, start
        with 0.1.
    negatives : "item" contrasts a step with the other steps of its item, so that items are independent of each other.
        "batch" contrasts it with all steps of the batch; `ids` then identify steps across items.
    background : for "contrastive", the `LearnedDrop(output="logit")` of the alignment loss. Its vector is one more
        class: it pools frames as a step does, and these must fit it and no step. Otherwise only the alignment loss
        trains the drop costs, and that loss falls as drops get cheaper. With negatives="batch", the class is the mean
        over the items, the same for all.
    reduction : "mean", "sum" or "none" over items.

    Call it as `loss(Z, X, ...)`, see `forward`. Raises ValueError if an option is invalid.

    >>> import torch
    >>> from dropdtw.torch import ClusteringLoss
    >>> steps = torch.eye(3)[None]
    >>> ClusteringLoss(gamma=0.01)(steps, steps)                        # each step has its own frame
    tensor(0.)
    >>> ClusteringLoss(gamma=0.01)(steps, steps[:, :1])                 # only the first has one
    tensor(2.)
    """

    def __init__(
        self,
        form: Literal["frobenius", "contrastive"] = "frobenius",
        *,
        gamma: float | None = None,
        gamma_contrast: float | None = None,
        negatives: Literal["item", "batch"] = "item",
        background: LearnedDrop | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        if form not in ("frobenius", "contrastive"):
            raise ValueError(f"form is {form!r}; choose 'frobenius' (the paper's) or 'contrastive' (InfoNCE)")
        if form == "frobenius" and not (gamma_contrast is None and negatives == "item" and background is None):
            raise ValueError(
                "gamma_contrast, negatives and background belong to form='contrastive', but form is 'frobenius'; leave "
                "them out"
            )
        if negatives not in ("item", "batch"):
            raise ValueError(f"negatives is {negatives!r}; choose 'item' (the steps of an item) or 'batch' (all steps)")
        if background is not None and not (isinstance(background, LearnedDrop) and background.output == "logit"):
            raise ValueError(f"background is {background!r}; give a LearnedDrop(dim, output='logit'), or None")
        self.form, self.negatives, self.background = form, negatives, background
        self.gamma = check_number((1.0 if form == "frobenius" else 10.0) if gamma is None else gamma, "gamma")
        self.gamma_contrast = check_number(30.0 if gamma_contrast is None else gamma_contrast, "gamma_contrast")
        self.reduction = check_reduction(reduction)

    def forward(
        self,
        Z: Batch,
        X: Batch,
        *,
        z_lengths: Lengths = None,
        x_lengths: Lengths = None,
        ids: Ids = None,
        x_mask: Mask = None,
    ) -> Tensor:
        """Compute the loss of steps Z (B, K, d) and frames X (B, N, d).

        Z, X, z_lengths, x_lengths, ids, x_mask : as in `AlignmentLoss.forward`.

        Returns a tensor (), or (B,) with `reduction="none"`. Raises ValueError if the batch is invalid.
        """
        return reduce(self.values(pairs(Z, X, z_lengths, x_lengths, ids, x_mask=x_mask)), self.reduction)

    def values(self, p: Pairs) -> Tensor:
        """Compute the loss of each pair (B,), see `dropdtw.torch.batch.pairs`."""
        if self.negatives == "item" and self.background is None:
            found = fused_clustering.values(p, self.gamma, self.gamma_contrast if self.form == "contrastive" else None)
            if found is not None:
                return found
        with torch.autocast(p.given_x.device.type, enabled=False):
            if self.form == "frobenius":
                found = frobenius(p, self.gamma)
            else:
                extra = None if self.background is None else self.background.direction(p)
                found = contrastive(p, self.gamma, self.gamma_contrast, across=self.negatives == "batch", extra=extra)
            refuse_overflow(found)
            return found

    def extra_repr(self) -> str:
        """Describe the settings for `repr`."""
        more = f"gamma_contrast={self.gamma_contrast}, negatives={self.negatives!r}, " * (self.form == "contrastive")
        return f"{self.form!r}, gamma={self.gamma}, {more}reduction={self.reduction!r}"


def attention_pool(Z: Tensor, X: Tensor, gamma: float, x_lengths: Tensor | None = None) -> Tensor:
    """Pool frames by attention: x̂_i = Σ_j x_j softmax_j(x_j · z_i / γ), (B, K, d), without the padding."""
    S = (Z @ X.mT / gamma).masked_fill(~real(X, x_lengths)[:, None], -torch.inf)
    return S.softmax(dim=-1) @ X


def frobenius(p: Pairs, gamma: float) -> Tensor:
    """‖I − X̂ Zᵀ‖ over the unique z of each item: (B,)."""
    one = is_first(p.first_of_kind())
    distance = torch.eye(p.Z.shape[1], dtype=p.Z.dtype, device=p.Z.device) - (
        attention_pool(p.Z, p.X, gamma, p.x_lengths) @ p.Z.mT
    )
    both = one[:, :, None] & one[:, None, :]
    norms: Tensor = torch.linalg.vector_norm(torch.where(both, distance, 0.0), dim=(1, 2))  # its derivative at 0 is 0
    return norms


def contrastive(p: Pairs, gamma: float, gamma_contrast: float, *, across: bool, extra: Tensor | None = None) -> Tensor:
    """The mean of −log softmax_k(x̂_i · z_k / γ_contrast)_i over the unique z of each item: (B,).

    across : whether k runs over the unique z of the whole batch rather than of the item.
    extra : (B, d), one more class i and k for each item; `across` uses its mean over the items.
    """
    B, K, d = p.Z.shape
    one = is_first(p.first_of_kind())
    pooling, classes, counted = p.Z, p.Z, one
    own = torch.arange(K, device=classes.device).expand(B, K)
    if across:  # concatenate the steps of all items
        classes, own = classes.reshape(1, B * K, d), torch.arange(B * K, device=classes.device).reshape(B, K)
        first = first_of_kind(classes, None if p.ids is None else p.ids.reshape(1, B * K))
        first = first_of_kind(classes, torch.where(real(p.Z, p.z_lengths).expand(B, K).reshape(1, B * K), first, -1))
        classes = classes.gather(1, first.clamp(min=0)[..., None].expand_as(classes))
        counted = is_first(first)
    if extra is not None:
        extra = extra.mean(dim=0, keepdim=True) if across else extra
        own = torch.cat([own, own.new_full((B, 1), classes.shape[1])], dim=1)
        classes = torch.cat([classes, extra[:, None]], dim=1)
        counted = torch.cat([counted, counted.new_ones(len(counted), 1)], dim=1)
        pooling = torch.cat([pooling, extra[:, None].expand(B, 1, d)], dim=1)
        one = torch.cat([one, one.new_ones(B, 1)], dim=1)
    S = attention_pool(pooling, p.X, gamma, p.x_lengths) @ classes.mT / gamma_contrast
    total = S.masked_fill(~counted[:, None], -torch.inf).logsumexp(dim=-1)
    apart = total - S.gather(2, own[..., None]).squeeze(2)
    return torch.where(one, apart, 0.0).sum(dim=1) / one.sum(dim=1)
