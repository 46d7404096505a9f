"""ERP, EDR, DDTW and WDTW of sequences, against the definitions in their papers, as plain recursions or laws."""

import functools
import pickle

import numpy as np
import pytest
from pytest import approx

import dropdtw
from dropdtw import align, distance, nearest, pairwise

RELATIVES = {
    "erp": {"method": "erp"},
    "erp with g": {"method": dropdtw.erp(g=0.7)},
    "edr": {"method": "edr", "threshold": 0.5},
    "ddtw": {"method": "ddtw"},
    "wdtw": {"method": "wdtw"},
    "wdtw, steep": {"method": dropdtw.wdtw(g=0.8)},
}
every_relative = pytest.mark.parametrize("options", [pytest.param(v, id=k) for k, v in RELATIVES.items()])
LENGTHS = [(3, 3), (3, 7), (8, 5), (12, 12), (30, 21)]


def series(seed, *features):
    rng = np.random.default_rng(seed)
    for K, N in LENGTHS:
        yield rng.normal(size=(K, *features)), rng.normal(size=(N, *features))


def edited(z, x, replace, drop):
    """The edit distance of two series, computed by its recursion."""

    @functools.cache
    def of(i, j):
        ways = [0.0] if i == j == 0 else []
        if i and j:
            ways.append(of(i - 1, j - 1) + replace(z[i - 1], x[j - 1]))
        if i:
            ways.append(of(i - 1, j) + drop(z[i - 1]))
        if j:
            ways.append(of(i, j - 1) + drop(x[j - 1]))
        return min(ways)

    return of(len(z), len(x))


@pytest.mark.parametrize("g", [0.0, 0.7, -2.0])
def test_erp_is_an_edit_distance_whose_gaps_cost_the_distance_to_g(g, executor):
    for z, x in series(0):
        truth = edited(z, x, lambda a, b: abs(a - b), lambda a: abs(a - g))
        assert distance(z, x, method=dropdtw.erp(g), executor=executor) == approx(truth)
    apart = lambda a, b: float(np.linalg.norm(a - b))  # noqa: E731
    for z, x in series(1, 2):
        for gap in (g, (g, 1.0)):
            truth = edited(z, x, apart, lambda a, gap=gap: apart(a, np.broadcast_to(gap, 2)))
            assert distance(z, x, method=dropdtw.erp(gap), executor=executor) == approx(truth)


def test_erp_obeys_the_triangle_inequality():
    rng = np.random.default_rng(2)
    D = pairwise([rng.normal(size=n) for n in (4, 6, 6, 9, 3, 7)], method="erp")
    assert (D[:, None] <= D[:, :, None] + D[None] + 1e-12).all()
    assert (D.diagonal() == 0).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_edr_counts_insertions_deletions_and_replacements(epsilon, executor):
    rng = np.random.default_rng(3)
    for K, N in [(1, 1), (1, 5), *LENGTHS]:
        z, x = rng.integers(0, 4, K) / 2, rng.integers(0, 4, N) / 2  # many exactly at the threshold
        truth = edited(z, x, lambda a, b: float(abs(a - b) > epsilon), lambda a: 1.0)
        assert distance(z, x, method="edr", threshold=epsilon, executor=executor) == truth
    z, x = np.array([[0.0, 0.0]]), np.array([[0.5, 0.5]])  # close in every feature, as in the paper
    assert distance(z, x, method="edr", threshold=0.5, executor=executor) == 0


def test_edr_of_letters_is_their_edit_distance():
    kitten, sitting = (np.array([ord(c) for c in word]) for word in ("kitten", "sitting"))
    assert distance(kitten, sitting, method="edr", threshold=0) == 3


def test_ddtw_is_dtw_of_the_slopes_inside(executor):
    for z, x in [*series(4), *series(5, 2)]:
        slopes = [((a[1:-1] - a[:-2]) + (a[2:] - a[:-2]) / 2) / 2 for a in (z, x)]
        inside = align(*slopes, method="dtw", match="sqeuclidean", executor=executor)
        a = align(z, x, method="ddtw", executor=executor)
        assert a.cost == approx(inside.cost)
        assert a.pairs.tolist() == (inside.pairs + 1).tolist()
        assert np.flatnonzero(a.dropped_x).tolist() == [0, len(x) - 1]
        assert np.flatnonzero(a.dropped_z).tolist() == [0, len(z) - 1]
        assert distance(z + 5, x - 3, method="ddtw", executor=executor) == approx(a.cost)  # offsets have no slope


def test_a_path_of_derivatives_is_as_long_as_its_matches():
    z, x = np.random.default_rng(6).normal(size=(2, 9))
    a = align(z, x, method="ddtw")
    assert distance(z, x, method="ddtw", normalize="path") == approx(a.cost / len(a.pairs))


@pytest.mark.parametrize("g", [0.0, 0.05, 1.0, 5e3, -0.3])
def test_wdtw_is_dtw_of_weighted_costs(g, executor):
    for z, x in series(7):
        K, N = len(z), len(x)
        apart = np.abs(np.subtract.outer(np.arange(K), np.arange(N))) - max(K, N) / 2
        weights = np.exp(-np.logaddexp(0, -g * apart))
        C = dropdtw.costs.sqeuclidean(z, x)
        truth = dropdtw.cost(weights * C, method="dtw")
        for method in (dropdtw.wdtw(g), *(["wdtw"] if g == 0.05 else [])):
            assert distance(z, x, method=method, executor=executor) == approx(truth)
            assert dropdtw.cost(C, method=method, executor=executor) == approx(truth)
    assert distance(z, x, method=dropdtw.wdtw(0)) == approx(distance(z, x, method="dtw", match="sqeuclidean") / 2)


def test_what_is_forbidden_stays_so():
    assert dropdtw.cost([[np.inf]], method="edr", threshold=np.inf) == 2  # both are dropped
    C = np.array([[1.0, np.inf], [np.inf, 1.0]])
    assert dropdtw.cost(C, method=dropdtw.wdtw(1e6)) == 0
    assert dropdtw.cost(np.full((2, 2), np.inf), method=dropdtw.wdtw(1e6)) == np.inf


@every_relative
def test_doors_of_sequences_agree(options, executor):
    told = options | {"executor": executor}
    rng = np.random.default_rng(8)
    many = [rng.normal(size=n) for n in (5, 8, 8, 11)]
    values = pairwise(many, **told)
    for a, z in enumerate(many):
        for b, x in enumerate(many):
            found = align(z, x, **told)
            assert values[a, b] == approx(distance(z, x, **told), abs=1e-12) == approx(found.cost, abs=1e-12)
            assert found.rescore() == approx(found.cost, abs=1e-12)
    np.testing.assert_allclose(values, values.T, atol=1e-12)
    found = nearest(many[0], many, 3, **told)
    np.testing.assert_array_equal(found.indices, np.lexsort((range(4), values[0]))[:3])
    np.testing.assert_allclose(found.costs, np.sort(values[0])[:3], atol=1e-12)
    single = [a.astype(np.float32) for a in many]
    np.testing.assert_allclose(pairwise(single, **told), values, rtol=1e-4, atol=1e-4)


@every_relative
def test_match_says_another_cost_and_auto_the_method_s_own(options):
    z, x = np.random.default_rng(9).normal(size=(2, 9, 2))
    entry = options["method"] if isinstance(options["method"], str) else options["method"].name
    own = dropdtw.METHODS[entry.partition("(")[0]].match
    assert distance(z, x, **options) == distance(z, x, **options, match=own)
    if entry != "edr":
        assert distance(z, x, **options, match="cityblock") != distance(z, x, **options)


@every_relative
def test_relatives_travel_to_other_processes(options):
    entry = dropdtw.METHODS[options["method"]] if isinstance(options["method"], str) else options["method"]
    again = pickle.loads(pickle.dumps(entry))
    assert again is entry
    z, x = np.random.default_rng(10).normal(size=(2, 7))
    assert distance(z, x, **options | {"method": again}) == distance(z, x, **options)


@every_relative
def test_windows_and_masks_limit_relatives_too(options, executor):
    z, x = np.random.default_rng(11).normal(size=(2, 9))
    told = options | {"executor": executor}
    near = dropdtw.windows.sakoe_chiba(9, 9, 1)
    narrow = distance(z, x, **told, window=1)
    assert narrow == approx(distance(z, x, **told, mask=near))
    assert narrow >= distance(z, x, **told)
    assert near[tuple(align(z, x, **told, window=1).pairs.T)].all()


@pytest.mark.parametrize("method", ["erp", "ddtw", "wdtw"])
def test_streams_refuse_what_needs_all_of_x(method):
    with pytest.raises(ValueError, match="needs all of X to compute the cost"):
        dropdtw.Online([0.0, 1.0, 2.0], method=method)
