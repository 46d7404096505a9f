"""Laws that hold for any input, tested on random inputs from Hypothesis."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pytest import approx

import dropdtw
from dropdtw.executors import EXECUTORS

finite = st.one_of(st.floats(-4, 4), st.integers(-2, 2).map(float))
EXECUTOR = st.sampled_from(list(EXECUTORS))


@st.composite
def problems(draw, elements=finite, max_side=7):
    """C, d_x and d_z of matching sizes."""
    K, N = draw(st.tuples(st.integers(1, max_side), st.integers(1, max_side)))
    return tuple(draw(hnp.arrays(float, shape, elements=elements)) for shape in ((K, N), (N,), (K,)))


moves = st.fixed_dictionaries({"one_to_many": st.booleans(), "many_to_one": st.booleans()})
options = st.fixed_dictionaries(
    {"one_to_many": st.booleans(), "many_to_one": st.booleans(), "contiguous": st.booleans()}
)
soft_or_hard = st.sampled_from([("hard", 1.0), ("soft", 0.3), ("soft", 2.0)])


def swapped(options):
    return {"one_to_many": options["many_to_one"], "many_to_one": options["one_to_many"]}


@given(problems(), options, EXECUTOR)
def test_path_costs_what_it_says(problem, options, executor):
    a = dropdtw.solve(*problem, **options, executor=executor)
    assert a.rescore() == approx(a.cost)
    C, d_x, d_z = problem
    assert C[a.M].sum() + d_x[a.dropped_x].sum() + d_z[a.dropped_z].sum() == approx(a.cost, abs=1e-9)


@given(problems(), EXECUTOR)
def test_dear_drops_give_dtw(problem, executor):
    C, _, _ = problem
    assert dropdtw.cost(C, 1e6, 1e6, executor=executor) == approx(dropdtw.cost(C, executor=executor))
    assert dropdtw.cost(C, executor=executor) == dropdtw.cost(C, method="dtw", executor=executor)


@given(problems(), moves, soft_or_hard, EXECUTOR)
def test_one_sided_is_two_sided_with_infinite_d_z(problem, moves, reducer, executor):
    C, d_x, d_z = problem
    assume(moves["many_to_one"] or len(d_z) <= len(d_x))
    kind = {"reducer": reducer[0], "gamma": reducer[1], "executor": executor, **moves}
    assert dropdtw.cost(C, d_x, **kind) == approx(dropdtw.cost(C, d_x, np.inf, **kind), abs=1e-9)


@given(problems(), moves, soft_or_hard, EXECUTOR)
def test_transposing_swaps_the_roles(problem, moves, reducer, executor):
    C, d_x, d_z = problem
    kind = {"reducer": reducer[0], "gamma": reducer[1], "executor": executor}
    there = dropdtw.cost(C, d_x, d_z, **moves, **kind)
    assert there == approx(dropdtw.cost(C.T, d_z, d_x, **swapped(moves), **kind), abs=1e-9)


@given(problems(), st.booleans(), EXECUTOR)
def test_transposing_one_sided_holds_for_every_reducer(problem, many, executor):
    C, d_x, _ = problem
    for reducer in ("hard", "soft", "smooth"):
        there = dropdtw.cost(C, d_x, one_to_many=many, reducer=reducer, executor=executor)
        back = dropdtw.cost(C.T, None, d_x, many_to_one=many, reducer=reducer, executor=executor)
        assert there == approx(back, abs=1e-9)


@given(problems(), options, EXECUTOR)
def test_gamma_to_zero_is_hard(problem, options, executor):
    hard = dropdtw.cost(*problem, **options, executor=executor)
    for reducer in ("soft", "smooth"):
        assert dropdtw.cost(*problem, **options, reducer=reducer, gamma=0, executor=executor) == approx(hard)
    soft = dropdtw.cost(*problem, **options, reducer="soft", gamma=1e-3, executor=executor)
    assert hard - 0.1 <= soft <= hard + 1e-9


@given(problems(), moves, soft_or_hard, st.floats(-3, 3), st.integers(0, 7), EXECUTOR)
def test_a_forbidden_column_adds_exactly_its_drop_cost(problem, moves, reducer, d, where, executor):
    C, d_x, d_z = problem
    where = min(where, len(d_x))
    more = (np.insert(C, where, np.inf, axis=1), np.insert(d_x, where, d), d_z)
    kind = {"reducer": reducer[0], "gamma": reducer[1], "executor": executor, **moves}
    assert dropdtw.cost(*more, **kind) == approx(dropdtw.cost(*problem, **kind) + d, abs=1e-9)


@given(problems(), options, EXECUTOR)
def test_more_freedom_never_costs_more(problem, options, executor):
    free = dropdtw.cost(*problem, executor=executor)
    assert free <= dropdtw.cost(*problem, **options, executor=executor) + 1e-9
    assert free <= dropdtw.cost(*problem, window=1, executor=executor) + 1e-9


@given(problems(), st.floats(0.1, 5), EXECUTOR)
def test_scaling_all_costs_scales_the_value(problem, s, executor):
    scaled = [s * part for part in problem]
    assert dropdtw.cost(*scaled, executor=executor) == approx(s * dropdtw.cost(*problem, executor=executor), abs=1e-9)
    assert dropdtw.cost(*scaled, reducer="soft", gamma=s, executor=executor) == approx(
        s * dropdtw.cost(*problem, reducer="soft", executor=executor), abs=1e-8
    )


@given(problems(), st.integers(0, 6), EXECUTOR)
def test_window_is_c_infinite_outside(problem, w, executor):
    C, d_x, d_z = problem
    K, N = C.shape
    if K > 1:
        line = np.arange(K)[:, None] * (N - 1) / (K - 1)
        masked = np.where(np.abs(np.arange(N) - line) <= w + 1e-9, C, np.inf)
    else:
        masked = C
    for reducer in ("hard", "soft", "smooth"):
        kind = {"reducer": reducer, "executor": executor}
        assert dropdtw.cost(C, d_x, d_z, window=w, **kind) == approx(dropdtw.cost(masked, d_x, d_z, **kind), abs=1e-9)


@given(problems(), EXECUTOR)
def test_soft_posterior_is_a_distribution(problem, executor):
    p = dropdtw.posterior(problem[0], drop_x=problem[1], drop_z=problem[2], gamma=0.7, executor=executor)
    for part in (p.match, p.drop_x, p.drop_z):
        assert part.min() >= -1e-12
        assert part.max() <= 1 + 1e-9
    assert (p.match.sum(axis=0) + p.drop_x).min() >= 1 - 1e-9  # each x is dropped or matched, possibly several times
    assert p.entropy >= 0
    assert p.cost <= dropdtw.cost(*problem) + 1e-9


@given(problems(elements=st.integers(-2, 2).map(float)), EXECUTOR)
def test_paper_table_is_the_default_table_for_hard_min(problem, executor):
    paper = dropdtw.solve(*problem, method="drop_dtw_paper", executor=executor)
    assert paper.cost == dropdtw.cost(*problem, executor=executor) == approx(paper.rescore())


@settings(max_examples=25)
@given(problems(max_side=5), st.integers(0, 2**31), EXECUTOR)
def test_identical_requests_give_identical_answers(problem, seed, executor):
    a, b = (dropdtw.solve(*problem, executor=executor) for _ in range(2))
    assert np.array_equal(a.pairs, b.pairs)
    p = dropdtw.posterior(problem[0], drop_x=problem[1], drop_z=problem[2], executor=executor)
    draws = [[s.pairs.tolist() for s in p.sample(3, seed=seed)] for _ in range(2)]
    assert draws[0] == draws[1]


def test_batches_of_any_mix_equal_single_runs(executor):
    """A problem has the same value alone and in a batch."""
    rng = np.random.default_rng(0)
    sequences = [rng.normal(size=(n, 3)) for n in (1, 7, 2, 33, 16)]
    matrix = dropdtw.pairwise(sequences, drop_x=0.4, drop_z=0.2, executor=executor)
    for a, Z in enumerate(sequences):
        for b, X in enumerate(sequences):
            assert matrix[a, b] == dropdtw.distance(Z, X, drop_x=0.4, drop_z=0.2, executor=executor)


@pytest.mark.parametrize("method", ["dtw", "drop_dtw"])
def test_long_problem_with_a_known_answer(method, executor):
    """A slow ramp against itself, with every x doubled and junk spliced in: exactly the junk is dropped."""
    Z = np.linspace(0, 1, 40)[:, None]
    X = np.repeat(Z, 2, axis=0)
    truth = np.repeat(np.arange(40), 2)
    if method == "drop_dtw":
        X, truth = np.insert(X, [20, 20, 55], 9.0, axis=0), np.insert(truth, [20, 20, 55], -1)
    drop = {"drop_x": 0.5} if method == "drop_dtw" else {}
    a = dropdtw.align(Z, X, match="euclidean", method=method, executor=executor, **drop)
    assert a.labels.tolist() == truth.tolist()
    assert a.cost == approx(1.5 if drop else 0)
