"""Derivatives against finite differences in float64, for every method and reducer."""

import numpy as np
import pytest
from pytest import approx

from cases import VARIANTS, charges, costs, name, paid, spec_of
from dropdtw import METHODS
from dropdtw.executors import choose
from dropdtw.problem.match import Matrix
from dropdtw.problem.problem import Problem
from dropdtw.tables.reducers import reducer

# The derivative with respect to the costs paid; a preceding threshold or greedy choice has none.
SMOOTH = [v for v in VARIANTS if METHODS[v["method"]].pair is None and METHODS[v["method"]].narrow is None]


def problem(variant, K, N, seed):
    rng = np.random.default_rng(seed)
    x, z = variant["sides"]
    drops = (rng.normal(size=N) if x else None, rng.normal(size=K) if z else None)
    return Problem.of_costs(spec_of(variant, *drops), costs("signed", (K, N), rng))


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["soft", "smooth"])
@pytest.mark.parametrize("variant", SMOOTH, ids=name)
def test_gradient_is_the_slope(variant, kind, executor):
    p = problem(variant, 3, 3, 1)
    fold, h = reducer(kind, 0.7), 1e-6
    found = choose(p.table, executor).run(p.table, fold, p.costs, gradient=True)
    for part in ("match", "drop_x", "drop_z"):
        given, slope = getattr(p.costs, "matrix" if part == "match" else part), getattr(found, part)
        assert slope.shape == given.shape
        for index in np.ndindex(given.shape):
            if np.isinf(given[index]):
                assert slope[index] == 0
                continue
            ends = []
            for sign in (1, -1):
                moved = given.copy()
                moved[index] += sign * h
                there = p.costs._replace(**{part: Matrix(moved) if part == "match" else moved})
                ends.append(choose(p.table, executor).run(p.table, fold, there).value)
            assert slope[index] == approx((ends[0] - ends[1]) / (2 * h), abs=2e-7)
    for charge, slope in found.charges._asdict().items():
        if not p.table.pays_charge(charge):
            assert slope == 0
            continue
        ends = []
        for sign in (1, -1):
            moved = p.costs.charges._replace(**{charge: getattr(p.costs.charges, charge) + sign * h})
            ends.append(choose(p.table, executor).run(p.table, fold, p.costs._replace(charges=moved)).value)
        assert slope == approx((ends[0] - ends[1]) / (2 * h), abs=2e-7)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["hard", "soft", "smooth"])
@pytest.mark.parametrize("variant", SMOOTH, ids=name)
def test_gradients_with_infinite_costs_are_finite(variant, kind, executor):
    p = problem(variant, 4, 4, 2)
    match = p.costs.matrix.copy()
    match[1, 2] = match[3, 0] = np.inf
    costs = p.costs.with_match(match)
    found = choose(p.table, executor).run(p.table, reducer(kind, 0.5), costs, gradient=True)
    for part in found[1:5]:
        assert np.isfinite(part).all()
    assert found.match[1, 2] == found.match[3, 0] == 0


@pytest.mark.parametrize("kind", ["hard", "soft", "smooth"])
@pytest.mark.parametrize("charged", [False, True])
def test_value_is_linear_in_what_it_pays(kind, charged, executor):
    """Σ costs · gradient is the value for hard min, and the mean cost of all alignments for soft min."""
    p = problem(VARIANTS[0] | (charges("drop_dtw", (True, True)) if charged else {}), 6, 9, 3)
    found = choose(p.table, executor).run(p.table, reducer(kind, 0.5), p.costs, gradient=True)
    prices = (p.costs.matrix, p.costs.drop_x, p.costs.drop_z, np.array(p.costs.charges))
    mean = sum((g * c).sum() for g, c in zip(found[1:5], prices, strict=True))
    if kind == "hard":
        assert mean == approx(found.value)
    elif kind == "soft":
        assert mean > found.value


def test_float32_is_computed_in_float32(executor):
    p = problem(VARIANTS[0], 5, 6, 4)
    small = paid(*(part.astype(np.float32) for part in (p.costs.matrix, p.costs.drop_x, p.costs.drop_z)))
    a = choose(p.table, executor).run(p.table, reducer("soft", 0.5), p.costs, gradient=True)
    b = choose(p.table, executor).run(p.table, reducer("soft", 0.5), small, gradient=True)
    assert b.match.dtype == b.drop_x.dtype == b.drop_z.dtype == np.float32
    assert b.value == approx(a.value, abs=1e-5)
    assert b.match == approx(a.match, abs=1e-5)
