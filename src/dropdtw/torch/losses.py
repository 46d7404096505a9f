"""Alignment losses: sequences in, a number to minimize out (paper Eq. 7–8 and its baselines).

Each loss is a thin module over `drop_dtw` that fixes a match cost, a drop cost, a recurrence and a minimum. Call it as
`loss(Z, X, z_lengths=..., x_lengths=..., ids=..., order=..., x_mask=...)`, with padded batches Z (B, K, d) and
X (B, N, d), or with lists of sequences (K_b, d) and (N_b, d). Padding and masked frames affect no value and no
gradient. `loss.align` takes the same arguments and returns the alignments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from dropdtw import drops
from dropdtw.aligner import Aligner
from dropdtw.drops import LogitPercentile
from dropdtw.problem.clock import Fps, Times
from dropdtw.problem.errors import OptionError, refuse_unknown
from dropdtw.problem.spec import warn_of_drop
from dropdtw.results.alignment import Alignment
from dropdtw.results.posterior import Posterior
from dropdtw.torch import costs, fused, inference, options
from dropdtw.torch.batch import Ids, Pairs, pairs, refuse_overflow
from dropdtw.torch.functional import Batch, Drops, Lengths, check_request, drop_dtw, values_of
from dropdtw.torch.learned import LearnedDrop
from dropdtw.torch.masks import Mask, per_frame
from dropdtw.torch.options import WITHOUT_DROPS, DropCost, LossOptions
from dropdtw.torch.orders import Orders
from dropdtw.torch.reduction import Reduction, check_reduction, divisor, normalized, reduce


class AlignmentLoss(nn.Module):
    """The value of an alignment as a loss: base class of the other losses, which differ in method and defaults.

    Call a loss as `loss(Z, X, ...)`; `forward` explains the arguments. Instead of options, it takes a
    `dropdtw.Aligner`, whose options it then has. Options that the aligner leaves at "auto" (match) or at its default
    (reducer, gamma, normalize) are those of the loss, and may be given as well.

    drop_x, drop_z : drop costs. None forbids drops on that side. Otherwise a number; a tensor that broadcasts to (B, N)
        or (B, K), which may be learnable, or `drops.Background(p)` with such a tensor; "percentile:30" of each item's
        own match costs (Eq. 5), which passes no gradient; or a `LearnedDrop` (Eq. 6). With the softmax cost, drop_x can
        also be "logit:30" or a `LearnedDrop(output="logit")`: a drop logit, one more class of the softmax (the authors'
        recipe).
    match : "softmax" (Eq. 4), "cosine" (Eq. 3), "sqeuclidean", "cityblock", "chebyshev", "correlation", or a
        function of Z (B, K, d) and X (B, N, d), zero-padded, that returns C (B, K, N). If it is a module, its
        parameters are trained too. "softmax:10" has the temperature 10, which *divides* z·x; the authors train with
        10, on 512 standardized features.
    reducer, gamma : the minimum, "smooth", "soft" or "hard", and its γ, as in `drop_dtw`.
    method, one_to_many, many_to_one, contiguous, window, threshold : which matches are allowed, as in `dropdtw.solve`.
    open_x, open_z : extra cost of the first dropped x (z) of each run, on top of its drop cost; it favors few runs of
        drops. A number ≥ 0, or a tensor () or (B,). An `nn.Parameter` is learned with the other parameters.
    warp : extra cost of a match that repeats an element, likewise.
    order : which steps may follow which, if the call does not say so; see `forward`.
    normalize : "x", "z" or "both" divides the value of an item by N_b, K_b or their sum. The authors use "x". "pattern"
        divides as in `dropdtw.cost`.
    reduction : "mean", "sum" or "none" over the items.

    Raises ValueError if an option is invalid.

    >>> import torch
    >>> from dropdtw.torch import AlignmentLoss
    >>> Z, X = torch.tensor([[[0.0], [1.0]]]), torch.tensor([[[0.0], [1.0], [1.5]]])
    >>> AlignmentLoss(match="sqeuclidean", reducer="hard")(Z, X)                    # plain DTW
    tensor(0.2500)
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # the options

    defaults: ClassVar[dict[str, Any]] = options.DEFAULTS
    """The options and their defaults."""

    fixed: ClassVar[tuple[str, ...]] = ()
    """Options that callers cannot choose."""

    fuses: ClassVar[str | None] = "values"
    """What the fused CUDA operator may compute: "values", the loss of each item; "distances", only what `distances`
    combines; None, nothing."""

    def __init_subclass__(cls, *, fixed: Sequence[str] = (), **defaults: Any) -> None:
        """Set the defaults of a loss. Fusion is disabled if the caller's own class overrides what it replaces."""
        super().__init_subclass__()
        cls.defaults, cls.fixed = cls.defaults | defaults, (*cls.fixed, *fixed)
        ours = all(getattr(cls, name).__module__ == __name__ for name in ("costs", "distances", "charges"))
        cls.fuses = None if not ours else "values" if cls.distances is AlignmentLoss.distances else "distances"
        cls.__signature__ = options.said(cls.__init__, cls.defaults, cls.fixed)  # type: ignore[attr-defined]

    def __init__(
        self, drop_x: Aligner | DropCost = None, drop_z: DropCost = None, **given: Unpack[LossOptions]
    ) -> None:
        super().__init__()
        how = options.of_call(type(self).__name__, drop_x, drop_z, dict(given), self.defaults, self.fixed)
        self._set(**self.defaults | how)

    def _set(self, **chosen: Any) -> None:
        """Set options, and check all of them together."""
        for name, value in chosen.items():
            for registered in (self._parameters, self._modules):
                registered.pop(name, None)
            setattr(self, name, values_of(value))
        self.temperature = costs.temperature(self.match)
        for side in ("drop_x", "drop_z"):
            self._check_drop(getattr(self, side), side)
            warn_of_drop(side, getattr(self, side))
        check_request(self.drop_x, self.drop_z, self.threshold, **self.table(), **self.charges())
        self.divisor = divisor(self.normalize, self.method)
        check_reduction(self.reduction)

    def table(self) -> dict[str, Any]:
        """Return what `drop_dtw` and `dropdtw.solve` take alike: which table to run, and with which minimum."""
        return {
            "method": self.method,
            "one_to_many": self.one_to_many,
            "many_to_one": self.many_to_one,
            "contiguous": self.contiguous,
            "window": self.window,
            "reducer": self.reducer,
            "gamma": self.gamma,
        }

    def _check_drop(self, drop: DropCost, name: str) -> None:
        if isinstance(drop, bool) or not (drop is None or isinstance(drop, (int, float, str, Tensor, LearnedDrop))):
            raise ValueError(
                f"{name} is {drop!r}; give None, a number, a tensor, 'percentile:30', 'logit:30' or a LearnedDrop"
            )
        rule = drops.resolve(drop, name) if isinstance(drop, str) else drop
        logit = isinstance(rule, LogitPercentile) or (isinstance(rule, LearnedDrop) and rule.output == "logit")
        if logit and (name == "drop_z" or self.temperature is None):
            raise ValueError(
                f"{name} is a drop logit, which works only as drop_x with match='softmax', but this is {name} with "
                f"match={self.match!r}; use 'percentile:30' or LearnedDrop(dim, output='cost')"
            )

    @property
    def aligner(self) -> Aligner:
        """How the loss aligns, as a `dropdtw.Aligner` with the present values of learned numbers.

        A `LearnedDrop` needs the data; `loss.align` evaluates it. Raises ValueError if an option has one number per
        item, which only `loss.align` can use.
        """
        return options.as_aligner({name: getattr(self, name) for name in self.defaults if name != "reduction"})

    def changed(self, **changes: Any) -> Self:
        """A copy with other options, which shares the parameters."""
        refuse_unknown(changes, self.defaults, type(self).__name__)
        for name, value in changes.items():
            if is_parametrized(self, name):  # setting it would write into the parameter that the copy shares
                raise OptionError(
                    name, value, f"use loss.aligner.replace({name}=...)", ", but the loss parametrizes it"
                )
        found = type(self).__new__(type(self))
        found.__dict__.update(self.__dict__)
        for name in ("_parameters", "_buffers", "_modules"):
            found.__dict__[name] = dict(self.__dict__[name])
        found._set(**changes)
        return found

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
        ids : integers (B, K), or a list of B rows. For the softmax cost, all z with the same id count once. None means
            that equal z count once.
        order : which steps may follow which: one order for all items, or a list of B, as in `drop_dtw`. None keeps
            the order of each Z, or uses the order of the loss, if it has one.
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

    def align(
        self,
        Z: Batch,
        X: Batch,
        *,
        z_lengths: Lengths = None,
        x_lengths: Lengths = None,
        ids: Ids = None,
        order: Orders = None,
        x_mask: Mask = None,
        times: Sequence[Times] | None = None,
        fps: Fps = None,
        **changes: Any,
    ) -> list[Alignment]:
        """Find the best alignment of each item, with exactly the costs that the loss trains on, without gradients.

        Z, X, z_lengths, x_lengths, ids, order, x_mask : as in `forward`. A missing x keeps its position, with label −1.
        times, fps : when each x begins, a list with one entry per item, without padding; or how many x there are per
            second, in all items. As in `dropdtw.align`.
        changes : options of the loss that are different here, such as `method="steps"`. Drop costs may also be
            "suggest".

        Returns one `dropdtw.Alignment` per item. Their costs are sums, whatever `normalize` says. Raises ValueError if
        the batch is invalid or an item has no alignment.

        >>> import torch
        >>> from dropdtw.torch import DropDTWLoss
        >>> loss = DropDTWLoss("percentile:20")
        >>> (a,) = loss.align(torch.eye(2)[None], torch.tensor([[[4.0, 0.0], [1.0, 1.0], [0.0, 4.0]]]))
        >>> a.labels
        array([ 0, -1,  1])
        """
        p = pairs(Z, X, z_lengths, x_lengths, ids, x_mask=x_mask)
        return inference.alignments(self, p, order, changes, times, fps)

    def posterior(
        self,
        Z: Batch,
        X: Batch,
        *,
        z_lengths: Lengths = None,
        x_lengths: Lengths = None,
        ids: Ids = None,
        order: Orders = None,
        x_mask: Mask = None,
        times: Sequence[Times] | None = None,
        fps: Fps = None,
        **changes: Any,
    ) -> list[Posterior]:
        """Compute the probabilities of each item's matches and drops at the loss's γ, with exactly its costs.

        Z, X, z_lengths, x_lengths, ids, order, x_mask, times, fps, changes : as in `align`.

        Returns one `dropdtw.Posterior` per item. Raises ValueError if the batch is invalid, γ is 0, or an item has no
        alignment.
        """
        p = pairs(Z, X, z_lengths, x_lengths, ids, x_mask=x_mask)
        gamma = changes.get("gamma", self.gamma)
        problems = inference.problems(self, p, order, changes, times, fps)
        return inference.results(lambda problem: Posterior.of(problem, gamma), problems)

    def values(self, p: Pairs, order: Orders = None) -> Tensor:
        """Compute what `per_item` computes, for pairs that are already checked (`dropdtw.torch.batch.pairs`)."""
        return self._reduced(p, order, "none")

    def _reduced(self, p: Pairs, order: Orders, reduction: Reduction) -> Tensor:
        if torch.is_autocast_enabled(p.given_x.device.type):
            with torch.autocast(p.given_x.device.type, enabled=False):  # half precision would round the costs
                return self._reduced(p, order, reduction)
        order = self.order if order is None else order
        if order is None and self.fuses == "values":  # only the general path has kernels for graphs
            found = fused.values(self, p, self.divisor, reduction)
            if found is not None:
                return found
        return reduce(normalized(self.distances(p, order), p, self.divisor), reduction)

    def distances(self, p: Pairs, order: Orders = None) -> Tensor:
        """Compute D_{K,N} of each item: (B,)."""
        found = fused.values(self, p, None) if order is None and self.fuses else None
        if found is not None:
            return found
        C, drop_x, drop_z = self.costs(p)
        if self.temperature is not None:
            refuse_overflow(C)
        return drop_dtw(
            C,
            drop_x,
            drop_z,
            z_lengths=p.z_lengths,
            x_lengths=p.x_lengths,
            threshold=self.threshold,
            order=order,
            strict=p.strict,
            **self.table(),
            **self.charges_of(p),
        )

    def charges_of(self, p: Pairs) -> dict[str, Any]:
        """Return the charges of these items: those of z belong to the item of Z, the others to that of X."""
        return {name: p.of_items(value, "z" if name == "open_z" else "x", 1) for name, value in self.charges().items()}

    def charges(self) -> dict[str, Any]:
        """Return the charges as keyword arguments of `drop_dtw`."""
        return {"open_x": self.open_x, "open_z": self.open_z, "warp": self.warp}

    def costs(self, p: Pairs) -> tuple[Tensor, Drops, Drops]:
        """Compute match costs (B, K, N), and the drop costs of x and z for `drop_dtw`."""
        drop_z = self._drop(self.drop_z, p.turned()) if isinstance(self.drop_z, (Tensor, LearnedDrop)) else self.drop_z
        if self.temperature is None:
            return self._matched(p), self._drop(self.drop_x, p), drop_z
        logit = self._logit(p)
        if logit is None:
            C = costs.softmax_of_kinds(p.Z, p.X, p.first_of_kind(), self.temperature)
            return C, self._drop(self.drop_x, p), drop_z
        C, d_x = costs.softmax_with_drop_of_kinds(p.Z, p.X, p.first_of_kind(), logit, self.temperature)
        return C, d_x, drop_z

    def _matched(self, p: Pairs) -> Tensor:
        if not callable(self.match):
            return costs.MATCH_COSTS[self.match](p.Z, p.X)
        C = self.match(p.Z, p.X)
        expected = (*p.Z.shape[:2], p.X.shape[1])
        if not isinstance(C, Tensor) or C.shape != expected:
            arrived = f"shape {tuple(C.shape)}" if isinstance(C, Tensor) else repr(C)
            raise ValueError(
                f"match(Z, X) returned {arrived} for Z {tuple(p.Z.shape)} and X {tuple(p.X.shape)}; "
                f"it must return C of shape {expected}"
            )
        return C

    def _logit(self, p: Pairs) -> Tensor | Callable[[Tensor], Tensor] | None:
        """Return the drop logit of x for the softmax, or None if the drop cost is not a logit."""
        if isinstance(self.drop_x, LearnedDrop):
            return self.drop_x.logit(p) if self.drop_x.output == "logit" else None
        rule = drops.resolve(self.drop_x, "drop_x") if isinstance(self.drop_x, str) else None
        if not isinstance(rule, LogitPercentile):
            return None
        percent = rule.p
        return lambda S: costs.percentile_logit(S, percent, p.z_lengths, p.x_lengths)

    @staticmethod
    def _drop(drop: DropCost, p: Pairs) -> Drops:
        """Return the drop cost of the second sequences of p."""
        if isinstance(drop, LearnedDrop):
            return drop.of_pairs(p)
        return per_frame(p.of_items(drop, "x", 2), p.x_places) if isinstance(drop, Tensor) else drop

    def extra_repr(self) -> str:
        """Describe the settings for `repr`."""
        return options.shown({name: getattr(self, name) for name in self.defaults if name not in self.fixed})


AlignmentLoss.__signature__ = options.said(AlignmentLoss.__init__, AlignmentLoss.defaults, ())  # type: ignore[attr-defined]


class DropDTWLoss(AlignmentLoss, drop_x="percentile:30"):
    """Drop-DTW as a loss (paper Eq. 8): L(Z, X) = D_{K,N}(Z, X), which drops junk of X (and of Z).

    drop_x, drop_z, options : those of `AlignmentLoss`. As in the paper, the defaults are softmax costs, smoothMin and
        the 30th percentile of the match costs. `method="drop_dtw_paper"` is Algorithm 2 as printed. It takes no opening
        costs and no warp penalty, and if both sides may be dropped, it counts some alignments several times
        (docs/algorithm.md).

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
        self, drop_x: Aligner | DropCost = "percentile:30", drop_z: DropCost = None, **given: Unpack[LossOptions]
    ) -> None:
        super().__init__(drop_x, drop_z, **given)


class SmoothDTWLoss(AlignmentLoss, method="dtw", fixed=WITHOUT_DROPS):
    """SmoothDTW (Hadji et al. 2021): DTW with smoothMin (Eq. 7) over the softmax cost (Eq. 4), without drops.

    options : those of `AlignmentLoss`.

    Call it as `loss(Z, X, ...)`, see `AlignmentLoss.forward`. Raises ValueError if an option is invalid.

    >>> import torch
    >>> from dropdtw.torch import SmoothDTWLoss
    >>> SmoothDTWLoss(normalize="x")(torch.zeros(1, 2, 3), torch.zeros(1, 4, 3))     # equal z count once: −log 1 = 0
    tensor(0.)
    """


class SoftDTWLoss(AlignmentLoss, method="dtw", match="sqeuclidean", reducer="soft", fixed=WITHOUT_DROPS):
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

    def _set(self, **chosen: Any) -> None:
        """Set options, and check all of them together."""
        super()._set(**chosen)
        if self.temperature is not None:
            raise ValueError("match is 'softmax', which treats z and x differently; use 'sqeuclidean' or 'cosine'")

    def distances(self, p: Pairs, order: Orders = None) -> Tensor:
        """Compute the divergence of each item: (B,)."""
        if order is not None:
            raise ValueError(
                "order applies to aligning Z with X, but the divergence also aligns Z with Z and X with X; use "
                "SoftDTWLoss, or leave out order"
            )
        zz, xx = p.alone()
        return super().distances(p) - 0.5 * super().distances(zz) - 0.5 * super().distances(xx)


class OTAMLoss(AlignmentLoss, method="otam", reducer="soft", fixed=WITHOUT_DROPS):
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
