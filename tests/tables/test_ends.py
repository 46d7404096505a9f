"""Free ends with and without limits, against exhaustive enumeration, and ties between equally good occurrences."""

import pickle
from itertools import product

import numpy as np
import pytest
from pytest import approx

import dropdtw
import oracle
from cases import KINDS, costs
from dropdtw.executors.emit import locate
from dropdtw.problem.spec import Spec

ANY = 99  # longer than any sequence here
ENDS = [
    ((True, False), False),
    ((True, 1), False),
    ((1, True), False),
    ((2, 1), False),
    ((0, 2), False),
    (False, True),
    (False, (2, 0)),
    (True, True),
    (2, 1),
    ((1, 2), (0, 1)),
    ((True, 0), (1, True)),
]
MOVES = [{}, {"one_to_many": False}, {"many_to_one": False}, {"warp": 0.25}]
ENOUGH = [(ends, moves) for n, ends in enumerate(ENDS) for m, moves in enumerate(MOVES) if m == 0 or (m - n) % 3 == 1]
SHAPES = [(1, 1), (1, 4), (4, 1), (4, 4), (3, 5)]


def counted(limit):
    pair = limit if isinstance(limit, tuple) else (limit, limit)
    return tuple(ANY if one is True else int(one) for one in pair)


def told_apart(length, limit):
    """Limits at both ends must leave at least one element between them."""
    pair = limit if isinstance(limit, tuple) else (limit, limit)
    return not all(one is not True and one > 0 for one in pair) or sum(pair) < length


def problems(x, z, seed=0):
    """Every kind of costs in every shape that satisfies the limits, with and without a window."""
    rng = np.random.default_rng(seed)
    for (K, N), kind, window in product(SHAPES, KINDS, (None, 1)):
        if told_apart(N, x) and told_apart(K, z):
            given = {} if window is None else {"window": window}
            enumerated = {} if window is None else {"band": oracle.band(K, N, window)}
            yield costs(kind, (K, N), rng), given, enumerated


@pytest.mark.parametrize(("ends", "moves"), ENOUGH, ids=str)
def test_values_and_alignments_are_the_best_of_all_that_the_limits_allow(ends, moves, executor):
    method = dropdtw.free_ends(*ends)
    fits = 0
    for C, given, enumerated in problems(*ends):
        found = oracle.alignments(C, method="free_ends", ends=tuple(map(counted, ends)), **enumerated, **moves)
        ours = {"method": method, "executor": executor, **given, **moves}
        try:
            Spec.of(method=method, **moves).check_fit(*C.shape)
        except ValueError:
            assert not found
            continue
        least = min((cost for _, cost in found), default=np.inf)
        assert dropdtw.cost(C, **ours) == approx(least, abs=1e-12)
        if not found:
            with pytest.raises(ValueError, match=r"forbidden|window"):
                dropdtw.solve(C, **ours)
            continue
        fits += 1
        a = dropdtw.solve(C, **ours)
        assert [cost for M, cost in found if np.array_equal(M, a.M)] == [approx(least, abs=1e-12)]
        assert a.rescore() == approx(a.cost, abs=1e-12)
    assert fits > 5


@pytest.mark.parametrize("ends", ENDS[::2], ids=str)
def test_soft_values_count_every_alignment_once(ends, executor):
    method = dropdtw.free_ends(*ends)
    for C, given, enumerated in problems(*ends, seed=1):
        wanted = oracle.soft(C, method="free_ends", ends=tuple(map(counted, ends)), gamma=0.5, **enumerated)
        value = dropdtw.cost(C, method=method, reducer="soft", gamma=0.5, executor=executor, **given)
        assert value == approx(wanted, abs=1e-11)


@pytest.mark.parametrize("ends", ENDS[1::3], ids=str)
def test_probabilities_are_those_of_all_alignments(ends, executor):
    method = dropdtw.free_ends(*ends)
    for C, _, _ in list(problems(*ends, seed=2))[::4]:
        truth = oracle.marginals(C, method="free_ends", ends=tuple(map(counted, ends)), gamma=0.7)
        if np.isneginf(truth["log_partition"]):
            continue
        p = dropdtw.posterior(C, method=method, gamma=0.7, executor=executor)
        for part in ("match", "drop_x", "drop_z"):
            assert getattr(p, part) == approx(truth[part], abs=1e-10), part


def test_every_way_to_free_ends_of_dtw_has_a_compiled_kernel():
    for ends, moves in product(ENDS, MOVES):
        assert locate(Spec.of(method=dropdtw.free_ends(*ends), **moves).table) is not None


def test_free_ends_without_limits_are_the_methods_of_the_registry(executor):
    rng = np.random.default_rng(3)
    names = {(True, True): "subsequence", (True, False): "free_begin", (False, True): "free_end", (False, False): "dtw"}
    for ends, name in names.items():
        for K, N in ((3, 9), (6, 6), (7, 4)):
            C = rng.random((K, N))
            a, b = (dropdtw.solve(C, method=m, executor=executor) for m in (dropdtw.free_ends(ends), name))
            assert a.cost == b.cost
            assert np.array_equal(a.pairs, b.pairs)


def test_exchanging_z_and_x_exchanges_their_ends(executor):
    rng = np.random.default_rng(4)
    for x, z in ENDS:
        C = rng.random((6, 7))
        ours, mirrored = dropdtw.free_ends(x, z), dropdtw.free_ends(z, x)
        value = dropdtw.cost(C, method=ours, executor=executor)
        assert value == approx(dropdtw.cost(C.T, method=mirrored, executor=executor), abs=1e-12)


def test_limits_of_the_sequences_lengths_are_no_limits(executor):
    C = np.random.default_rng(5).random((4, 8))
    for limit, free in (((8, 0), (True, False)), ((0, 20), (False, True))):
        a, b = (dropdtw.cost(C, method=dropdtw.free_ends(ends), executor=executor) for ends in (limit, free))
        assert a == b


def test_all_pairs_and_single_ones_agree():
    rng = np.random.default_rng(6)
    Zs, Xs = [rng.normal(size=n) for n in (4, 9, 6)], [rng.normal(size=n) for n in (8, 5)]
    for ends in ENDS[::2]:
        method = dropdtw.free_ends(*ends)
        alone = [[dropdtw.distance(Z, X, method=method) for X in Xs] for Z in Zs]
        assert dropdtw.pairwise(Zs, Xs, method=method) == approx(np.array(alone), abs=1e-12)
    both = dropdtw.free_ends(1, 1)
    assert dropdtw.pairwise(Zs, method=both) == approx(dropdtw.pairwise(Zs, Zs, method=both), abs=1e-12)


def test_a_method_with_parameters_is_one_object_that_travels():
    method = dropdtw.free_ends(x=(2, True))
    assert dropdtw.free_ends((2, True), False) is method
    assert pickle.loads(pickle.dumps(method)) is method
    assert repr(method) == "free_ends(x=(2, True))"
    assert dropdtw.free_ends(1) is not dropdtw.free_ends(True)


# --- Ties ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["subsequence", "otam", "free_end", dropdtw.free_ends(x=(9, True))], ids=str)
def test_of_equally_good_occurrences_the_one_that_ends_first_is_taken(method, executor):
    Z = np.array([1.0, 2.0])
    X = np.array([1.0, 2, 2, 5, 5, 1, 2, 5, 5, 1, 2, 2, 2, 5, 5, 5, 5, 5])
    a = dropdtw.align(Z, X, method=method, executor=executor)
    assert a.cost == 0
    assert a.pairs.tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("method", ["subsequence", "otam"])
def test_no_best_occurrence_ends_earlier(method, executor):
    rng = np.random.default_rng(7)
    for _ in range(40):
        C = rng.integers(0, 3, (3, 5)).astype(float)
        found = oracle.alignments(C, method=method)
        least = min(cost for _, cost in found)
        first = min(np.flatnonzero(M.any(axis=0)).max() for M, cost in found if cost == least)
        for solve in (dropdtw.solve, lambda C, **how: dropdtw.align(np.eye(3), C.T, match=lambda Z, X: C, **how)):
            assert solve(C, method=method, executor=executor).pairs[-1, 1] == first
