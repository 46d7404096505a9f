"""Alignment losses: sequences in, a number to minimize out (paper Eq. 7–8 and its baselines).

Each loss is a thin module over `drop_dtw` that fixes a match cost, a drop cost, a recurrence and a minimum. Call it as
`loss(Z, X, z_lengths=..., x_lengths=..., ids=..., order=..., x_mask=...)`, with padded batches Z (B, K, d) and
X (B, N, d), or with lists of sequences (K_b, d) and (N_b, d). Padding and masked frames affect no value and no
gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypedDict, Unpack

import torch
from torch import Tensor, nn

from dropdtw import drops
from dropdtw.drops import LogitPercentile
from dropdtw.problem.band import window_width
from dropdtw.problem.spec import Spec
from dropdtw.tables.reducers import reducer as find_reducer
from dropdtw.torch import charges, costs, fused
from dropdtw.torch.batch import Ids, Pairs, pairs, refuse_overflow
from dropdtw.torch.charges import Charge
from dropdtw.torch.functional import Batch, Drops, Lengths, drop_dtw
from dropdtw.torch.learned import LearnedDrop
from dropdtw.torch.masks import Mask, per_frame
from dropdtw.torch.orders import Orders
from dropdtw.torch.reduction import (
    Normalize,
    Reduction,
    check_normalize,
    check_number,
    check_reduction,
    normalized,
    reduce,
)

MatchCost = (
    Literal["softmax", "cosine", "sqeuclidean", "cityblock", "chebyshev", "correlation"]
    | Callable[[Tensor, Tensor], Tensor]
)
"""What `match=` of a loss takes: a name, or a function of Z (B, K, d) and X (B, N, d) that returns C (B, K, N)."""

DropCost = None | float | str | Tensor | LearnedDrop
"""What `drop_x=` and `drop_z=` of a loss take: None (drops are forbidden), a number, a tensor, "percentile:30",
"logit:30" or a `LearnedDrop`."""


class LossOptions(TypedDict, total=False):
    """Options of every alignment loss; `AlignmentLoss` explains them."""

    match: MatchCost
    gamma_match: float | None
    reducer: Literal["smooth", "soft", "hard"]
    gamma: float
    one_to_many: bool
    many_to_one: bool
    contiguous: bool
    window: float | None
    warp: Charge
    normalize: Normalize
    reduction: Reduction


class AlignmentLoss(nn.Module):
    """The value of an alignment as a loss: base class of the other losses, which differ in recurrence and defaults.

    Call a loss as `loss(Z, X, ...)`; `forward` explains the arguments.

    match : "softmax" (Eq. 4), "cosine" (Eq. 3), "sqeuclidean", "cityblock", "chebyshev", "correlation", or a
        function of Z (B, K, d) and X (B, N, d), zero-padded, that returns C (B, K, N). If it is a module, its
        parameters are trained too.
    gamma_match : temperature γ of the softmax cost, which *divides* z·x. None means 1. The authors train with 10, on
        512 standardized features.
    reducer, gamma : the minimum, "smooth", "soft" or "hard", and its γ, as in `drop_dtw`.
    one_to_many, many_to_one, contiguous, window : which matches are allowed, as in `dropdtw.solve`.
    warp : extra cost of a match that repeats an element. A number ≥ 0, or a tensor () or (B,), which may be an
        `nn.Parameter`.
    normalize : "x", "z" or "both" divides the value of an item by N_b, K_b or their sum. The authors use "x".
    reduction : "mean", "sum" or "none" over the items.

    Raises ValueError if an option is invalid.

    >>> import torch
    >>> from dropdtw.torch import AlignmentLoss
    >>> Z, X = torch.tensor([[[0.0], [1.0]]]), torch.tensor([[[0.0], [1.0], [1.5]]])
    >>> AlignmentLoss(match="sqeuclidean", reducer="hard")(Z, X)                    # plain DTW
    tensor(0.2500)
    """

    method: str = "dtw"
    fuses: Literal["values", "align", None] = "values"
    """What the fused CUDA operator may compute: "values", the loss of each item; "align", only what `align` combines;
    None, nothing."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Disable fusion if the caller's own class overrides `costs`, `align` or `charges`."""
        super().__init_subclass__(**options)
        ours = all(getattr(cls, name).__module__ == __name__ for name in ("costs", "align", "charges"))
        cls.fuses = None if not ours else "values" if cls.align is AlignmentLoss.align else "align"

    def __init__(
        self,
        *,
        match: MatchCost = "softmax",
        gamma_match: float | None = None,
        reducer: Literal["smooth", "soft", "hard"] = "smooth",
        gamma: float = 1.0,
        one_to_many: bool = True,
        many_to_one: bool = True,
        contiguous: bool = False,
        window: float | None = None,
        warp: Charge = 0.0,
        normalize: Normalize = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        if not callable(match) and match not in ("softmax", *costs.MATCH_COSTS):
            raise ValueError(
                f"match is {match!r}; choose 'softmax', {', '.join(map(repr, costs.MATCH_COSTS))}, or give a function "
                "of Z (B, K, d) and X (B, N, d) that returns C (B, K, N)"
            )
        if gamma_match is not None and match != "softmax":
            raise ValueError(f"gamma_match applies to match='softmax' only, but match is {match!r}; leave it out")
        self.match = match
        self.gamma_match = check_number(1.0 if gamma_match is None else gamma_match, "gamma_match")
        find_reducer(reducer, gamma)  # raise errors now, not on the first batch
        self.reducer, self.gamma = reducer, gamma
        if window is not None:
            window_width(1, window)
        self.moves: dict[str, Any] = {
            "one_to_many": one_to_many, "many_to_one": many_to_one, "contiguous": contiguous, "window": window,
        }  # fmt: skip
        charges.described(warp, "warp")  # raises if it is invalid
        self.warp = warp
        self.normalize, self.reduction = check_normalize(normalize), check_reduction(reduction)

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
    ) -> Tensor:
        """Compute the loss of a batch of steps Z and frames X.

        Z, X : (B, K, d) and (B, N, d), or lists of B sequences (K_b, d) and (N_b, d).
        z_lengths, x_lengths : (B,) lengths of padded sequences.
        ids : (B, K) or a list of B rows, integers. For the softmax cost, all z with the same id count once. None means
            that equal z count once.
        order : which steps may follow which: one order for all items, or a list of B, as in `drop_dtw`. None keeps
            the order of each Z.
        x_mask : (B, N) bool, or a list of B vectors: False where x_j is missing. A missing x_j is treated as if it had
            been deleted and gets gradient 0. For example, `x_mask=~X.isnan().any(-1)` leaves out frames with NaN.

        Returns a tensor (), or (B,) with `reduction="none"`. Raises ValueError if the batch is invalid; on CUDA, where
        checking would force a device synchronization, NaN in an item makes its value NaN instead.
        """
        return self._reduced(pairs(Z, X, z_lengths, x_lengths, ids, x_mask=x_mask), order, self.reduction)

    def per_item(
        self,
        Z: Batch,
        X: Batch,
        *,
        z_lengths: Lengths = None,
        x_lengths: Lengths = None,
        ids: Ids = None,
        order: Orders = None,
        x_mask: Mask = None,
    ) -> Tensor:
        """Compute the value of each item, normalized but not reduced.

        Z, X, z_lengths, x_lengths, ids, order, x_mask : as in `forward`.

        Returns a tensor (B,). Raises ValueError if the batch is invalid.
        """
        return self.values(pairs(Z, X, z_lengths, x_lengths, ids, x_mask=x_mask), order)

    def values(self, p: Pairs, order: Orders = None) -> Tensor:
        """Compute what `per_item` computes, for pairs that are already checked (`dropdtw.torch.batch.pairs`)."""
        return self._reduced(p, order, "none")

    def _reduced(self, p: Pairs, order: Orders, reduction: Reduction) -> Tensor:
        if torch.is_autocast_enabled(p.given_x.device.type):
            with torch.autocast(p.given_x.device.type, enabled=False):  # half precision would round the costs
                return self._reduced(p, order, reduction)
        if order is None and self.fuses == "values":  # only the general path has kernels for graphs
            found = fused.values(self, p, self.normalize, reduction)
            if found is not None:
                return found
        return reduce(normalized(self.align(p, order), p, self.normalize), reduction)

    def align(self, p: Pairs, order: Orders = None) -> Tensor:
        """Compute D_{K,N} of each item: (B,)."""
        found = fused.values(self, p, None) if order is None and self.fuses else None
        if found is not None:
            return found
        C, drop_x, drop_z = self.costs(p)
        if self.match == "softmax":
            refuse_overflow(C)
        return drop_dtw(
            C,
            drop_x,
            drop_z,
            z_lengths=p.z_lengths,
            x_lengths=p.x_lengths,
            method=self.method,
            reducer=self.reducer,
            gamma=self.gamma,
            order=order,
            **self.moves,
            strict=p.strict,
            **self.charges_of(p),
        )

    def charges_of(self, p: Pairs) -> dict[str, Any]:
        """Return the charges of these items: those of z belong to the item of Z, the others to that of X."""
        return {name: p.of_items(value, "z" if name == "open_z" else "x", 1) for name, value in self.charges().items()}

    def charges(self) -> dict[str, Any]:
        """Return the charges as keyword arguments of `drop_dtw`."""
        return {"warp": self.warp}

    def dropped(self) -> tuple[DropCost, DropCost]:
        """Return the drop costs of both sides as the caller gave them."""
        return None, None

    def costs(self, p: Pairs) -> tuple[Tensor, Drops, Drops]:
        """Compute match costs (B, K, N), and the drop costs of x and z for `drop_dtw`."""
        if self.match == "softmax":
            return costs.softmax_of_kinds(p.Z, p.X, p.first_of_kind(), self.gamma_match), None, None
        if not callable(self.match):
            return costs.MATCH_COSTS[self.match](p.Z, p.X), None, None
        C = self.match(p.Z, p.X)
        expected = (*p.Z.shape[:2], p.X.shape[1])
        if not isinstance(C, Tensor) or C.shape != expected:
            arrived = f"shape {tuple(C.shape)}" if isinstance(C, Tensor) else repr(C)
            raise ValueError(
                f"match(Z, X) returned {arrived} for Z {tuple(p.Z.shape)} and X {tuple(p.X.shape)}; "
                f"it must return C of shape {expected}"
            )
        return C, None, None

    def extra_repr(self) -> str:
        """Describe the settings for `repr`."""
        shown: dict[str, Any] = {"gamma_match": self.gamma_match} if self.match == "softmax" else {}
        shown |= {"reducer": self.reducer, "gamma": self.gamma, **self.moves, "normalize": self.normalize}
        shown |= {name: v for name, v in self.charges().items() if charges.given(v) and not isinstance(v, nn.Parameter)}
        match = "" if isinstance(self.match, nn.Module) else f"match={self.match!r}, "
        return match + ", ".join(f"{k}={v!r}" for k, v in shown.items()) + f", reduction={self.reduction!r}"


class DropDTWLoss(AlignmentLoss):
    """Drop-DTW as a loss (paper Eq. 8): L(Z, X) = D_{K,N}(Z, X), which drops junk of X (and of Z).

    drop_x, drop_z : drop costs. None forbids drops on that side. Otherwise a number; a tensor that broadcasts to (B, N)
        or (B, K), which may be learnable; "percentile:30" of each item's own match costs (Eq. 5), which passes no
        gradient; or a `LearnedDrop` (Eq. 6). With the softmax cost, drop_x can also be "logit:30" or a
        `LearnedDrop(output="logit")`: a drop logit, one more class of the softmax (the authors' recipe).
    open_x, open_z : extra cost of the first dropped x (z) of each run, on top of its drop cost; it favors few runs of
        drops. A number ≥ 0, or a tensor () or (B,). An `nn.Parameter` is learned with the other parameters.
    method : "drop_dtw", or "drop_dtw_paper" for Algorithm 2 as printed. The latter takes no opening costs and no warp
        penalty. If both sides may be dropped, it counts some alignments several times (docs/algorithm.md).
    options : those of `AlignmentLoss`. As in the paper, the defaults are softmax costs and smoothMin.

    Call it as `loss(Z, X, ...)`, see `AlignmentLoss.forward`. Raises ValueError if an option is invalid.

    >>> import torch
    >>> from dropdtw.torch import DropDTWLoss
    >>> Z = torch.eye(2)[None]
    >>> X = torch.tensor([[[4.0, 0.0], [-9.0, -9.0], [0.0, 4.0]]])              # the second fits nothing
    >>> DropDTWLoss(drop_x=0.1, reducer="hard", match="cosine")(Z, X)
    tensor(0.1000)
    >>> DropDTWLoss(drop_x=None, reducer="hard", match="cosine")(Z, X)
    tensor(1.7071)
    >>> DropDTWLoss(drop_x=0.1, open_x=0.5, reducer="hard", match="cosine")(Z, X)       # a run costs 0.5 more
    tensor(0.6000)
    """

    def __init__(
        self,
        drop_x: DropCost = "percentile:30",
        drop_z: DropCost = None,
        *,
        open_x: Charge = 0.0,
        open_z: Charge = 0.0,
        method: Literal["drop_dtw", "drop_dtw_paper"] = "drop_dtw",
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(**options)
        if method not in ("drop_dtw", "drop_dtw_paper"):
            raise ValueError(f"method is {method!r}; choose 'drop_dtw', or 'drop_dtw_paper' for Algorithm 2 as printed")
        self.method = method
        self.drop_x, self.drop_z = self._checked(drop_x, "drop_x"), self._checked(drop_z, "drop_z")
        self.open_x, self.open_z = open_x, open_z
        charged: dict[str, Any] = {
            name: charges.for_spec(charges.described(value, name)) for name, value in self.charges().items()
        }
        Spec.of(None if drop_x is None else 0.0, None if drop_z is None else 0.0, method=method, **charged)

    def _checked(self, drop: DropCost, name: str) -> DropCost:
        if isinstance(drop, bool) or not (drop is None or isinstance(drop, (int, float, str, Tensor, LearnedDrop))):
            raise ValueError(
                f"{name} is {drop!r}; give None, a number, a tensor, 'percentile:30', 'logit:30' or a LearnedDrop"
            )
        rule = drops.resolve(drop, name) if isinstance(drop, str) else drop
        logit = isinstance(rule, LogitPercentile) or (isinstance(rule, LearnedDrop) and rule.output == "logit")
        if logit and (name == "drop_z" or self.match != "softmax"):
            raise ValueError(
                f"{name} is a drop logit, which works only as drop_x with match='softmax', but this is {name} with "
                f"match={self.match!r}; use 'percentile:30' or LearnedDrop(dim, output='cost')"
            )
        return drop

    def charges(self) -> dict[str, Any]:
        """Return the charges as keyword arguments of `drop_dtw`."""
        return {"open_x": self.open_x, "open_z": self.open_z, **super().charges()}

    def dropped(self) -> tuple[DropCost, DropCost]:
        """Return the drop costs of both sides as the caller gave them."""
        return self.drop_x, self.drop_z

    def costs(self, p: Pairs) -> tuple[Tensor, Drops, Drops]:
        """Compute match costs (B, K, N), and the drop costs of x and z for `drop_dtw`."""
        logit = self._logit(p)
        if logit is None:
            C, drop_x = super().costs(p)[0], self._drop(self.drop_x, p)
        else:
            C, drop_x = costs.softmax_with_drop_of_kinds(p.Z, p.X, p.first_of_kind(), logit, self.gamma_match)
        return C, drop_x, self._drop(self.drop_z, p.turned())

    def _logit(self, p: Pairs) -> Tensor | Callable[[Tensor], Tensor] | None:
        """Return the drop logit of x for the softmax, or None if the drop cost is not a logit."""
        if isinstance(self.drop_x, LearnedDrop):
            return self.drop_x.logit(p) if self.drop_x.output == "logit" else None
        rule = drops.resolve(self.drop_x, "drop_x") if isinstance(self.drop_x, str) else None
        if not isinstance(rule, LogitPercentile):
            return None
        percent = rule.p
        return lambda S: costs.percentile_logit(S, percent, p.z_lengths, p.x_lengths)

    def extra_repr(self) -> str:
        """Describe the settings for `repr`."""
        learned = (LearnedDrop, nn.Parameter)
        drop_costs = {"drop_x": self.drop_x, "drop_z": self.drop_z}
        shown = [f"{k}={v!r}" for k, v in drop_costs.items() if not isinstance(v, learned)]
        return ", ".join([*shown, f"method={self.method!r}", super().extra_repr()])

    @staticmethod
    def _drop(drop: DropCost, p: Pairs) -> Drops:
        """Return the drop cost of the second sequences of p."""
        if isinstance(drop, LearnedDrop):
            return drop.of_pairs(p)
        return per_frame(p.of_items(drop, "x", 2), p.x_places) if isinstance(drop, Tensor) else drop


class SmoothDTWLoss(AlignmentLoss):
    """SmoothDTW (Hadji et al. 2021): DTW with smoothMin (Eq. 7) over the softmax cost (Eq. 4), without drops.

    options : those of `AlignmentLoss`.

    Call it as `loss(Z, X, ...)`, see `AlignmentLoss.forward`. Raises ValueError if an option is invalid.

    >>> import torch
    >>> from dropdtw.torch import SmoothDTWLoss
    >>> SmoothDTWLoss(normalize="x")(torch.zeros(1, 2, 3), torch.zeros(1, 4, 3))     # equal z count once: −log 1 = 0
    tensor(0.)
    """


class SoftDTWLoss(AlignmentLoss):
    """soft-DTW (Cuturi & Blondel 2017): −γ log Σ exp(−cost/γ) over all DTW alignments, of squared distances.

    It is not a distance: it is negative for equal sequences, and equal sequences do not minimize it.
    `SoftDTWDivergence` corrects that.

    options : those of `AlignmentLoss`. The defaults are squared distances and the soft minimum.

    Call it as `loss(Z, X, ...)`, see `AlignmentLoss.forward`. Raises ValueError if an option is invalid.

    >>> import torch
    >>> from dropdtw.torch import SoftDTWLoss
    >>> SoftDTWLoss(gamma=1.0)(torch.zeros(1, 2, 1), torch.zeros(1, 2, 1))           # three alignments of cost 0
    tensor(-1.0986)
    """

    def __init__(self, **options: Unpack[LossOptions]) -> None:
        super().__init__(**(LossOptions(match="sqeuclidean", reducer="soft") | options))


class SoftDTWDivergence(SoftDTWLoss):
    """soft-DTW without its bias (Blondel et al. 2021): D(Z, X) − ½ D(Z, Z) − ½ D(X, X).

    The sequences may differ in length. For equal sequences it is exactly 0. Blondel et al. prove that it is ≥ 0 under
    conditions on the match cost; for squared distances no counterexample is known.

    options : those of `AlignmentLoss`. The match cost must be symmetric, so "softmax" raises an error.

    Call it as `loss(Z, X, ...)`, see `AlignmentLoss.forward`, but without `order`. Raises ValueError if an option is
    invalid.

    >>> import torch
    >>> from dropdtw.torch import SoftDTWDivergence
    >>> loss = SoftDTWDivergence()
    >>> Z = torch.tensor([[[0.0], [1.0], [2.0]]])
    >>> loss(Z, Z), loss(Z, Z[:, :2])
    (tensor(0.), tensor(1.1241))
    """

    def __init__(self, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        if self.match == "softmax":
            raise ValueError("match is 'softmax', which treats z and x differently; use 'sqeuclidean' or 'cosine'")

    def align(self, p: Pairs, order: Orders = None) -> Tensor:
        """Compute the divergence of each item: (B,)."""
        if order is not None:
            raise ValueError(
                "order applies to aligning Z with X, but the divergence also aligns Z with Z and X with X; use "
                "SoftDTWLoss, or leave out order"
            )
        zz, xx = p.alone()
        return super().align(p) - 0.5 * super().align(zz) - 0.5 * super().align(xx)


class OTAMLoss(AlignmentLoss):
    """OTAM (Cao et al. 2020): softmin DTW in which both ends of X are free.

    By default a step can match a run of frames, as in the Drop-DTW paper. `one_to_many=False` gives Cao's recursion.

    options : those of `AlignmentLoss`. The default reducer is the soft minimum.

    Call it as `loss(Z, X, ...)`, see `AlignmentLoss.forward`. Raises ValueError if an option is invalid.

    >>> import torch
    >>> from dropdtw.torch import OTAMLoss
    >>> X = torch.tensor([[[9.0], [1.0], [9.0]]])
    >>> OTAMLoss(match="sqeuclidean", reducer="hard")(torch.ones(1, 1, 1), X)
    tensor(0.)
    """

    method = "otam"

    def __init__(self, **options: Unpack[LossOptions]) -> None:
        super().__init__(**(LossOptions(reducer="soft") | options))
