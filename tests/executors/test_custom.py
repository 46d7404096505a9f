"""Users' own tables run on the compiled kernel that reads any table, and agree with the reference."""

import numpy as np
import pytest
from pytest import approx

import dropdtw
from cases import paid
from dropdtw import Recurrence, edges
from dropdtw.executors import choose, reference
from dropdtw.orders.graph import Arc, graph_of
from dropdtw.problem.band import band
from dropdtw.problem.charges import Charges
from dropdtw.problem.costs import Costs
from dropdtw.tables.reducers import hard_min, reducer
from random_tables import random_table

cpu = pytest.importorskip("dropdtw.executors.cpu", reason="the compiled executor is not installed")

SIZES = [(1, 1), (1, 9), (7, 1), (5, 4), (17, 40)]
REDUCERS = (hard_min, reducer("soft", 0.3), reducer("smooth", 0.3))


def problem(rng, K, N, *, whole, banded):
    draw = (lambda *n: rng.integers(-2, 6, n).astype(float)) if whole else (lambda *n: rng.normal(size=n))
    C, drop_x, drop_z = draw(K, N), draw(N), draw(K)
    C[rng.random((K, N)) < 0.05] = np.inf
    return paid(C, drop_x, drop_z, band(K, N, max(2, N // 2)) if banded else None, Charges(*draw(3)))


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(12, 150))])
def test_any_table_gives_the_values_and_derivatives_of_the_reference(seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng)
    assert cpu.supports(table)
    for K, N in SIZES:
        costs = problem(rng, K, N, whole=False, banded=bool(rng.integers(2)))
        for fold in REDUCERS:
            found, expected = (run(table, fold, costs, gradient=True) for run in (cpu.run, reference.run))
            assert found.value == approx(expected.value, abs=1e-9)
            assert cpu.run(table, fold, costs).value == approx(expected.value, abs=1e-9)
            if np.isfinite(expected.value):
                for part in ("match", "drop_x", "drop_z", "charges"):
                    np.testing.assert_allclose(getattr(found, part), getattr(expected, part), atol=1e-8)


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(12, 150))])
def test_ties_of_any_table_fall_as_in_the_reference(seed):
    """Whole costs are full of ties, and their sums are exact."""
    rng = np.random.default_rng(seed)
    table = random_table(rng)
    for K, N in SIZES:
        costs = problem(rng, K, N, whole=True, banded=bool(rng.integers(2)))
        found, expected = cpu.trace(table, costs), reference.trace(table, costs)
        assert found.value == expected.value
        assert cpu.within(table, costs, np.inf).value == expected.value
        if np.isfinite(expected.value):
            for part in ("pairs", "drop_x", "drop_z", "charges"):
                np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
            ones = np.ones(len(expected.pairs))
            weights = [ones if t.weights is None else t.weights for t in (found, expected)]
            np.testing.assert_array_equal(*weights)
            assert found.walked is None


@pytest.mark.parametrize("fold", REDUCERS, ids=lambda fold: fold.name)
def test_a_batch_of_any_table_is_its_members_one_by_one(fold):
    rng = np.random.default_rng(3)
    table = random_table(rng)
    sizes = np.array(SIZES)
    K, N = sizes.max(axis=0)
    costs = rng.random((5, K, N)), rng.random((5, N)), rng.random((5, K))
    batch = Costs(*costs, rng.random((5, 3)), tuple(sizes.T))
    value, match, *_ = cpu.run_batch(table, fold, batch, gradient=True, threads=2)
    for b, (k, n) in enumerate(SIZES):
        charges = Charges(*batch.charges[b])
        alone = paid(batch.match[b, :k, :n], batch.drop_x[b, :n], batch.drop_z[b, :k], None, charges)
        expected = reference.run(table, fold, alone, gradient=True)
        assert value[b] == approx(expected.value, abs=1e-9)
        if np.isfinite(expected.value):
            np.testing.assert_allclose(match[b, :k, :n], expected.match, atol=1e-8)
        assert not match[b, k:].any()
        assert not match[b, :, n:].any()


def test_states_of_the_origin_that_several_ways_reach_run_on_the_reference():
    """Their soft value is −γ log of the number of ways."""
    own = Recurrence(
        states=("a", "b", "c"),
        edges=edges("a", to="b", moves="same", cost="free")
        + edges("a b", to="c", moves="same", cost="free")
        + edges("c", to="a", moves="diag", cost="match"),
        start="a",
        final=("a",),
    )
    assert own.at_origin == {"a": 1, "b": 1, "c": 2}
    assert not cpu.supports(own)
    assert choose(own) is reference
    soft, costs = reducer("soft", 1.0), paid(np.zeros((1, 1)), np.zeros(1), np.zeros(1))
    assert choose(own).run(own, soft, costs).value == approx(-np.log(2))
    assert choose(own, graph=True).run_graph(own, graph_of([-1, 0], [Arc(0, 1)], (1,)), soft, costs).value == approx(
        -np.log(2)
    )


def test_a_table_with_a_border_runs_on_the_reference_if_steps_form_a_graph():
    own = Recurrence(
        states=("m",),
        edges=edges("m", to="m", moves="diag", cost="match"),
        border=edges("m", to="m", moves="left", cost="drop_x"),
        start="m",
        final=("m",),
    )
    assert dropdtw.cost(np.eye(2), method=own) == 2
    assert choose(own) is cpu
    assert choose(own, graph=True) is reference
    with pytest.raises(ValueError, match="executor 'cpp' has no kernel for 'custom'; run it with executor=None"):
        choose(own, "cpp", graph=True)
