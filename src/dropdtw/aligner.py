"""`Aligner`: how two sequences are aligned, as one value with many verbs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy.typing as npt

from dropdtw import api
from dropdtw.files.progress import Progress
from dropdtw.problem.errors import OptionError
from dropdtw.problem.inputs import Array
from dropdtw.problem.options import OPTIONS, Options
from dropdtw.problem.spec import Spec
from dropdtw.results.alignment import Alignment
from dropdtw.results.posterior import Posterior
from dropdtw.search.averages import Barycenter, Init, barycenter
from dropdtw.search.find import Occurrence, find
from dropdtw.search.index import Index
from dropdtw.search.nearest import Nearest, nearest
from dropdtw.search.online import Online
from dropdtw.search.suggest import Suggestion, suggest_drop

_MINIMUM = ("reducer", "gamma", "normalize")


@dataclass(frozen=True, eq=False, repr=False)
class Aligner(Options):
    """How two sequences are aligned: match cost, drop costs, method, order and minimum. Immutable.

    Its methods are the functions of `dropdtw` with these options: `aligner.align(Z, X)` is
    `dropdtw.align(Z, X, ...)`. `dropdtw.solve` and `dropdtw.align` explain the options; `reducer`, `gamma` and
    `normalize` concern values and probabilities, as in `dropdtw.cost`, and `align` and `solve` always find the best
    alignment.

    Aligners with the same options are equal and have the same hash. Arrays are copied, and compared by content.
    Functions and modules are compared by identity.

    Raises ValueError if an option is invalid, or if two options cannot be combined; TypeError if one is unknown.

    >>> import dropdtw
    >>> aligner = dropdtw.Aligner("percentile:30", match="sqeuclidean")
    >>> aligner.align([0, 1, 2], [0, 1, 9, 2]).labels
    array([ 0,  1, -1,  2])
    >>> aligner.replace(drop_x=0.5)
    Aligner(drop_x=0.5, match='sqeuclidean')
    >>> dropdtw.Aligner.from_dict(aligner.to_dict()) == aligner
    True
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.spec  # raise errors now

    @cached_property
    def spec(self) -> Spec:
        """The validated request."""
        return Spec.of(**self.changed)

    def align(self, Z: npt.ArrayLike, X: npt.ArrayLike, *, executor: str | None = None) -> Alignment:
        """`dropdtw.align`."""
        return api.align(Z, X, executor=executor, **self._without("align", but=_MINIMUM))

    def solve(self, C: npt.ArrayLike, *, executor: str | None = None) -> Alignment:
        """`dropdtw.solve`."""
        return api.solve(C, executor=executor, **self._without("solve", but=("match", "missing", *_MINIMUM)))

    def distance(
        self, Z: npt.ArrayLike, X: npt.ArrayLike, *, max_cost: float | None = None, executor: str | None = None
    ) -> float:
        """`dropdtw.distance`."""
        return api.distance(Z, X, max_cost=max_cost, executor=executor, **self.changed)

    def cost(self, C: npt.ArrayLike, *, max_cost: float | None = None, executor: str | None = None) -> float:
        """`dropdtw.cost`."""
        return api.cost(C, max_cost=max_cost, executor=executor, **self._without("cost", but=("match", "missing")))

    def pairwise(
        self,
        Zs: Sequence[npt.ArrayLike],
        Xs: Sequence[npt.ArrayLike] | None = None,
        *,
        max_cost: float | None = None,
        n_jobs: int | None = -1,
        progress: Progress = None,
        executor: str | None = None,
    ) -> Array:
        """`dropdtw.pairwise`. Raises ValueError if the aligner has a mask or an order, which cannot fit every pair."""
        options = self._without("pairwise", "mask", "order")
        return api.pairwise(Zs, Xs, max_cost=max_cost, n_jobs=n_jobs, progress=progress, executor=executor, **options)

    def posterior(self, *given: npt.ArrayLike, executor: str | None = None) -> Posterior:
        """`dropdtw.posterior` of match costs C, or of sequences Z and X."""
        from dropdtw.problem.problem import Problem

        if len(given) not in (1, 2):
            raise TypeError(f"posterior got {len(given)} arguments; give match costs C, or sequences Z and X")
        if len(given) == 1:
            return Posterior.of(Problem.of_costs(self.spec, *given), self.gamma)
        return Posterior.of(Problem.of_sequences(self.spec, *given), self.gamma)

    def find(
        self,
        query: npt.ArrayLike,
        signal: npt.ArrayLike,
        k: int | None = None,
        max_cost: float | None = None,
        overlap: float = 0.0,
        *,
        progress: Progress = None,
        executor: str | None = None,
    ) -> list[Occurrence]:
        """`dropdtw.find`. Raises ValueError if the aligner has an option that `find` does not take."""
        options = self._without("find", "method", "window", "mask", "threshold", "order", "normalize", but=_MINIMUM)
        return find(query, signal, k, max_cost, overlap, progress=progress, executor=executor, **options)

    def nearest(
        self,
        query: npt.ArrayLike,
        corpus: Index | Sequence[npt.ArrayLike],
        k: int = 10,
        *,
        n_jobs: int | None = -1,
        progress: Progress = None,
        executor: str | None = None,
    ) -> Nearest:
        """`dropdtw.nearest`. Raises ValueError if the aligner has an option that `nearest` does not take."""
        options = self._without("nearest", "mask", "order", "missing", *_MINIMUM)
        return nearest(query, corpus, k, n_jobs=n_jobs, progress=progress, executor=executor, **options)

    def barycenter(
        self,
        series: Sequence[npt.ArrayLike],
        weights: npt.ArrayLike | None = None,
        *,
        init: Init = "mean",
        length: int | None = None,
        max_iter: int = 50,
        tol: float = 1e-6,
        n_jobs: int | None = -1,
        progress: Progress = None,
        executor: str | None = None,
    ) -> Barycenter:
        """`dropdtw.barycenter`. `match="auto"` is "sqeuclidean" here, so that the mean is the cheapest average.

        Raises ValueError if the aligner has an option that `barycenter` does not take.
        """
        options = self._without("barycenter", "drop_z", "open_z", "mask", "threshold", "order", *_MINIMUM)
        return barycenter(
            series,
            weights,
            init=init,
            length=length,
            max_iter=max_iter,
            tol=tol,
            n_jobs=n_jobs,
            progress=progress,
            executor=executor,
            **options,
        )

    def online(
        self, Z: npt.ArrayLike, *, probabilities: bool = True, beam: float | None = None, keep_costs: bool = False
    ) -> Online:
        """`dropdtw.Online`; the temperature of its probabilities is γ of the aligner."""
        options = self._without("online", "mask", "missing", but=_MINIMUM)
        gamma = self.gamma if probabilities else None
        return Online(Z, gamma=gamma, beam=beam, keep_costs=keep_costs, **options)

    def suggest(self, Z: npt.ArrayLike, X: npt.ArrayLike | None = None) -> Suggestion:
        """`dropdtw.suggest_drop`: a drop cost for these sequences, or for match costs."""
        names = ("match", "one_to_many", "many_to_one", "contiguous", "window")
        options = {name: value for name, value in self.changed.items() if name in names}
        return suggest_drop(Z, X, drop_z=self.drop_z is not None, **options)

    def _without(self, verb: str, *refused: str, but: Sequence[str] = ()) -> dict[str, Any]:
        """The options for a verb, without those in `but`, which do not concern it. Raises if `refused` ones are set."""
        for name in refused:
            if name in self.changed and name not in but:
                shown = OPTIONS[name].default
                raise OptionError(
                    name, self.changed[name], f"use replace({name}={shown!r})", f", which {verb} cannot use"
                )
        return {name: value for name, value in self.changed.items() if name not in but}
