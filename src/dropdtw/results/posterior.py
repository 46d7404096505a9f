"""All alignments at once: how probable each match and each drop is when cheap alignments are likelier than dear ones.

The Gibbs distribution at temperature γ gives an alignment M the probability exp(−cost(M)/γ) / Σ exp(−cost/γ). Its
marginals are the derivatives of the soft value −γ log Σ exp(−cost/γ), so the backward pass yields them exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dropdtw import executors
from dropdtw.executors import reference
from dropdtw.executors.protocol import Result
from dropdtw.problem.inputs import Array
from dropdtw.problem.problem import Problem
from dropdtw.results.alignment import Alignment, weighted_sum
from dropdtw.tables.reducers import Reducer, soft_min


@dataclass(frozen=True, eq=False)
class Posterior:
    """The Gibbs distribution over the alignments of one problem. Made by `dropdtw.posterior`.

    match : (K, N) probability that z_i matches x_j.
    drop_x, drop_z : (N,) and (K,) probability that x_j, that z_i, is dropped.
    log_partition : log Σ exp(−cost/γ) over all alignments.
    expected_cost : the mean cost of an alignment.
    gamma : the temperature.
    """

    match: Array
    drop_x: Array
    drop_z: Array
    log_partition: float
    expected_cost: float
    gamma: float
    problem: Problem = field(repr=False)

    @classmethod
    def of(cls, problem: Problem, gamma: float) -> Posterior:
        """The posterior of a problem at temperature `gamma`."""
        reducer = soft_min(gamma)
        if reducer.gamma == 0:
            raise ValueError("gamma is 0, where one alignment has all the probability; use dropdtw.solve for that one")
        found = executors.run(problem, reducer, gradient=True)
        if not np.isfinite(found.value):
            raise executors.no_alignment(problem)
        problem.given.match.own()  # draws are made from these costs, whatever becomes of the caller's arrays
        costs = problem.costs
        paid = (
            (found.match, costs.matrix),
            (found.drop_x, costs.drop_x),
            (found.drop_z, costs.drop_z),
            (np.array(found.charges), np.array(costs.charges)),
        )
        expected_cost = sum(weighted_sum(weights, prices) for weights, prices in paid)
        if not problem.table.weights <= {1.0}:  # a derivative counts a match as often as its weight says
            found = found._replace(match=reference.marginals(problem.table, reducer, costs))
        return cls(
            match=found.match,
            drop_x=_empty_columns(problem, reducer, found),
            drop_z=_empty_rows(problem, reducer, found),
            log_partition=-found.value / reducer.gamma,
            expected_cost=expected_cost,
            gamma=reducer.gamma,
            problem=problem,
        )

    @property
    def cost(self) -> float:
        """The soft value −γ log Σ exp(−cost/γ): below the hard cost by at most γ · log(number of alignments)."""
        return -self.gamma * self.log_partition

    @property
    def entropy(self) -> float:
        """−Σ p log p over alignments, in nats: 0 where one alignment has all the probability."""
        return max(0.0, self.log_partition + self.expected_cost / self.gamma)

    def sample(self, n: int = 1, *, seed: int | np.random.Generator | None = None) -> list[Alignment]:
        """Draw n independent alignments; the same seed gives the same draws.

        >>> import dropdtw
        >>> p = dropdtw.posterior([[0.0, 0.0]], drop_x=0.0)
        >>> [a.labels.tolist() for a in p.sample(3, seed=1)]
        [[0, -1], [0, -1], [-1, 0]]
        """
        if not isinstance(n, (int, np.integer)) or n < 0:
            raise ValueError(f"n is {n}; give the number of alignments to draw, 0 or more")
        rng = np.random.default_rng(seed)
        walks = reference.sample(self.problem.table, soft_min(self.gamma), self.problem.costs, n, rng)
        return [Alignment.from_walk(self.problem, walk) for walk in walks]


def _empty_columns(problem: Problem, reducer: Reducer, found: Result) -> Array:
    """The probability that x_j matches nothing. Where every drop is paid for, that is the derivative by d_x."""
    if not problem.table.skips_for_free:
        return found.drop_x
    if not problem.table.matches_by("top"):  # each x matches once at most
        return np.asarray(np.clip(1 - found.match.sum(axis=0), 0, 1))
    return np.array([_without(problem, reducer, found, (slice(None), j)) for j in range(problem.costs.shape[1])])


def _empty_rows(problem: Problem, reducer: Reducer, found: Result) -> Array:
    if not problem.table.skips_for_free:
        return found.drop_z
    if not problem.table.matches_by("left"):
        return np.asarray(np.clip(1 - found.match.sum(axis=1), 0, 1))
    return np.array([_without(problem, reducer, found, (i,)) for i in range(problem.costs.shape[0])])


def _without(problem: Problem, reducer: Reducer, found: Result, where: tuple[Any, ...]) -> float:
    """The share of the partition sum that is left when the matches `where` are forbidden."""
    match = problem.costs.matrix.copy()
    match[where] = np.inf
    rest = executors.run(problem.paying(problem.costs.with_match(match)), reducer).value
    return float(np.exp((found.value - rest) / reducer.gamma))
