"""`Aligner`: how two sequences are aligned, as one value with many verbs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from inspect import Parameter, signature
from math import inf
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy.typing as npt

from dropdtw import executors
from dropdtw.drops import Suggest
from dropdtw.executors import quick
from dropdtw.files.progress import Progress
from dropdtw.problem.clock import Fps, Times
from dropdtw.problem.errors import OptionError, refuse_keywords
from dropdtw.problem.inputs import Array
from dropdtw.problem.options import OPTIONS, Options, PairOptions
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec, warn_of_drop
from dropdtw.problem.warn import warn, warn_of_hard_gamma
from dropdtw.results.alignment import Alignment
from dropdtw.results.posterior import Posterior
from dropdtw.search.averages import barycenter
from dropdtw.search.find import find
from dropdtw.search.nearest import nearest
from dropdtw.search.online import Online
from dropdtw.search.pairwise import all_pairs
from dropdtw.search.paths import all_alignments
from dropdtw.search.suggest import TRUSTED, Suggestion, suggest_drop, suggestion

_MINIMUM = ("reducer", "gamma", "normalize")

P = ParamSpec("P")
T = TypeVar("T")


def _verb(
    function: Callable[P, T], *unused: str, given: Callable[[Aligner], dict[str, Any]] | None = None
) -> Callable[Concatenate[Aligner, P], T]:
    """A function as a method of `Aligner`, which gives it its options and takes its other arguments.

    It raises ValueError if the aligner has an option that the function does not take.

    unused : options of the aligner that it ignores.   given : other options that it needs.
    """
    said = signature(function)
    named = [each for each in said.parameters.values() if each.name not in OPTIONS]
    made = said.replace(parameters=[Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *named])

    def method(self: Aligner, /, *values: P.args, **keywords: P.kwargs) -> T:
        told = made.bind(self, *values, **keywords).arguments
        del told["self"]
        options = self._for(function, *unused) | ({} if given is None else given(self))
        return function(**told, **options)  # type: ignore[call-arg]

    method.__name__, method.__doc__ = function.__name__, f"`dropdtw.{function.__name__}` with the aligner's options."
    method.__signature__ = made  # type: ignore[attr-defined]
    return method


def _stretch(aligner: Aligner) -> dict[str, Any]:
    """What `find` gets in place of a method: which matches are allowed inside an occurrence."""
    if aligner.method != "steps":
        aligner._refuse("find", "method")
    return aligner.spec.matching._asdict()


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
        for name in ("drop_x", "drop_z"):
            warn_of_drop(name, getattr(self, name))

    @cached_property
    def spec(self) -> Spec:
        """The validated request."""
        return Spec.asked(self)

    @cached_property
    def _quick(self) -> Any:
        if self.method == "smith_waterman":  # the general path warns if it finds nothing
            return None
        return quick.request(self.spec)

    @cached_property
    def _quick_values(self) -> Any:
        plain = self.spec.reducer.name == "hard" and self.normalize is None
        return self._quick if plain else None

    def _by(self, executor: str | None) -> Spec:
        return self.spec if executor is None else replace(self.spec, executor=executor)

    def align(
        self,
        Z: npt.ArrayLike,
        X: npt.ArrayLike,
        *,
        times: Times = None,
        fps: Fps = None,
        executor: str | None = None,
    ) -> Alignment:
        """`dropdtw.align`."""
        if executor is None and times is None and fps is None and (request := self._quick) is not None:
            found = quick.trace(request, self.spec, Z, X)
            if found is not None:
                return Alignment.quickly(*found)
        return self._solved(Problem.of_sequences(self._by(executor), Z, X, times, fps))

    def solve(
        self, C: npt.ArrayLike, *, times: Times = None, fps: Fps = None, executor: str | None = None
    ) -> Alignment:
        """`dropdtw.solve`."""
        return self._solved(Problem.of_costs(self._by(executor), C, times, fps))

    def _solved(self, problem: Problem) -> Alignment:
        """The best alignment of a problem, with its suggested drop cost; warns if that is not to be trusted."""
        found = Alignment.of(problem)
        if found.cost == 0 and self.method == "smith_waterman":
            self._warn_of_costs(problem)
        if not isinstance(self.spec.drop_x, Suggest) and not isinstance(self.spec.drop_z, Suggest):
            return found
        given = problem.given
        advice = suggestion(given.match, given.band, self.drop_z is not None, self.spec.matching)
        if advice.confidence < TRUSTED:
            warn(
                f"the drop cost {advice.constant:.4g} is suggested with a confidence of {advice.confidence:.0%} only: "
                f"{advice.why}; check the alignment, or give a drop cost"
            )
        return replace(found, suggestion=advice)

    def _warn_of_costs(self, problem: Problem) -> None:
        if problem.given.match.least >= 0 or 0 <= problem.C.min() < inf:
            advice = "subtract from the match costs what a match may cost, or use 'drop_dtw'"
            if problem.symbols is not None:
                advice = "give equal symbols a negative cost, as in match=lambda a, b: -1 if a == b else 1"
            warn(
                "every match cost is ≥ 0, so under 'smith_waterman' no alignment is better than an empty one; " + advice
            )

    def distance(
        self,
        Z: npt.ArrayLike,
        X: npt.ArrayLike,
        *,
        max_cost: float | None = None,
        times: Times = None,
        fps: Fps = None,
        executor: str | None = None,
    ) -> float:
        """`dropdtw.distance`."""
        if executor is None and times is None and fps is None and (request := self._quick_values) is not None:
            limit = inf if max_cost is None else max_cost
            found = quick.value(request, Z, X, limit) if type(limit) is float and limit == limit else None
            if found is not None:
                return found
        spec = self._by(executor).limited(max_cost)
        return self._value(Problem.of_sequences(spec, Z, X, times, fps), spec)

    def cost(
        self,
        C: npt.ArrayLike,
        *,
        max_cost: float | None = None,
        times: Times = None,
        fps: Fps = None,
        executor: str | None = None,
    ) -> float:
        """`dropdtw.cost`."""
        spec = self._by(executor).limited(max_cost)
        return self._value(Problem.of_costs(spec, C, times, fps), spec)

    def _value(self, problem: Problem, spec: Spec) -> float:
        found = executors.value(problem, spec)
        if found == 0 and self.method == "smith_waterman":
            self._warn_of_costs(problem)
        return found

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
        """`dropdtw.pairwise`. Raises ValueError if the aligner has an option that cannot fit all pairs."""
        self._refuse_of_one_pair("pairwise")
        return all_pairs(self._by(executor).limited(max_cost), Zs, Xs, n_jobs, progress)

    def alignments(
        self,
        Zs: Sequence[npt.ArrayLike],
        Xs: Sequence[npt.ArrayLike] | None = None,
        *,
        fps: Fps = None,
        n_jobs: int | None = -1,
        progress: Progress = None,
        executor: str | None = None,
    ) -> list[list[Alignment]]:
        """`dropdtw.alignments`. Raises ValueError if the aligner has an option that cannot fit all pairs."""
        self._refuse_of_one_pair("alignments")
        align = partial(self.align, fps=fps, executor=executor)
        return all_alignments(align, Zs, Xs, n_jobs, progress)

    def posterior(
        self,
        C: npt.ArrayLike,
        X: npt.ArrayLike | None = None,
        *,
        times: Times = None,
        fps: Fps = None,
        executor: str | None = None,
    ) -> Posterior:
        """`dropdtw.posterior` of match costs C, or of sequences Z and X, at the temperature γ of the aligner."""
        if X is not None and not isinstance(X, Sized):
            raise TypeError(f"the second argument of posterior is {X!r}; give X, or drop costs by keyword, as drop_x=")
        spec = self._by(executor)
        if X is None:
            return Posterior.of(Problem.of_costs(spec, C, times, fps), self.gamma)
        return Posterior.of(Problem.of_sequences(spec, C, X, times, fps), self.gamma)

    find = _verb(find, "method", *_MINIMUM, given=_stretch)
    """`dropdtw.find`, with the method "drop_dtw" or "steps"."""

    nearest = _verb(nearest)
    """`dropdtw.nearest`."""

    barycenter = _verb(barycenter)
    """`dropdtw.barycenter`."""

    def online(
        self,
        Z: npt.ArrayLike,
        *,
        probabilities: bool = True,
        beam: float | None = None,
        keep_costs: bool = False,
        fps: float | None = None,
    ) -> Online:
        """`dropdtw.Online`; the temperature of its probabilities is γ of the aligner."""
        options = self._for(Online, *_MINIMUM)
        gamma = 1.0 if self.gamma is None else self.gamma
        return Online(Z, gamma=gamma if probabilities else None, beam=beam, keep_costs=keep_costs, fps=fps, **options)

    def suggest(self, Z: npt.ArrayLike, X: npt.ArrayLike | None = None) -> Suggestion:
        """`dropdtw.suggest_drop`: a drop cost for these sequences, or for match costs."""
        how = {"match": self.spec.match, "window": self.window, "missing": self.missing, **self.spec.matching._asdict()}
        return suggest_drop(Z, X, drop_z=self.drop_z is not None, **how)

    def _refuse_of_one_pair(self, verb: str) -> None:
        """Raise if an option is set that belongs to one pair of sequences."""
        self._refuse(
            verb, *(name for name in OPTIONS if name not in ("drop_x", "drop_z", *PairOptions.__annotations__))
        )

    def _refuse(self, verb: str, *refused: str) -> None:
        """Raise if an option is set that the verb cannot use."""
        for name in refused:
            if name in self.changed:
                value, remedy = self.changed[name], f"use replace({name}={OPTIONS[name].default!r})"
                raise OptionError(name, value, remedy, f", which {verb} cannot use")

    def _for(self, verb: Callable[..., Any], *unused: str) -> dict[str, Any]:
        """The options of a function, without `unused` ones. Raises if an option is set that it does not have."""
        known = signature(verb).parameters
        self._refuse(verb.__name__, *(name for name in OPTIONS if name not in known and name not in unused))
        return {name: value for name, value in self.changed.items() if name in known and name not in unused}


def _made(verb: Callable[..., Any], *drops: Any, **options: Any) -> Aligner:
    refuse_keywords(verb, options)
    made = Aligner(*drops, **options)
    if "reducer" in signature(verb).parameters:
        warn_of_hard_gamma(made.reducer, made.gamma)
    return made


_cached = lru_cache(maxsize=512, typed=True)(_made)


def aligner_of(verb: Callable[..., Any], drop_x: Any, drop_z: Any, options: Mapping[str, Any]) -> Aligner:
    """The aligner with the options that a function was given, cached if they can be hashed.

    verb : the function. Raises TypeError if it does not take an option.
    """
    try:
        return _cached(verb, drop_x, drop_z, **options)
    except TypeError:  # not hashable, such as one drop cost per element
        return _made(verb, drop_x, drop_z, **options)
