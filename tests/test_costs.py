"""Match costs against their formulas, written as plain loops in double precision."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

import dropdtw
from dropdtw.costs import MATCH_COSTS, Softmax, correlation, cosine, euclidean, resolve, softmax, sqeuclidean
from dropdtw.drops import LogitPercentile
from dropdtw.problem import compiled
from dropdtw.problem.match import Pair


@pytest.fixture(autouse=True, params=["compiled", "numpy"])
def way(request, monkeypatch):
    """Run each test with the compiled kernel and with NumPy."""
    if request.param == "numpy":
        monkeypatch.setattr(compiled, "_cpp", None)
    elif compiled._cpp is None:
        pytest.skip("the compiled executor is not installed")


every_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.uint8])
every_size = pytest.mark.parametrize("d", [1, 2, 8, 9, 64])
every_name = pytest.mark.parametrize("name", MATCH_COSTS)


def rows(seed, n, d, dtype=np.float64):
    low = 0 if np.issubdtype(dtype, np.unsignedinteger) else -3
    return np.random.default_rng(seed).uniform(low, 4, (n, d)).astype(dtype)


def dot(z, x):
    return math.fsum(float(a) * float(b) for a, b in zip(z, x, strict=True))


def naive_cosine(z, x):
    lengths = math.sqrt(dot(z, z) * dot(x, x))
    return 1 - dot(z, x) / lengths if lengths else 1.0


def naive_sqeuclidean(z, x):
    return math.fsum((float(a) - float(b)) ** 2 for a, b in zip(z, x, strict=True))


def naive_differences(z, x):
    return [abs(float(a) - float(b)) for a, b in zip(z, x, strict=True)]


def naive_correlation(z, x):
    z, x = ([float(v) - math.fsum(map(float, a)) / len(a) for v in a] for a in (z, x))
    return naive_cosine(z, x)


def naive_softmax(Z, X, gamma=1.0, ids=None):
    """−log softmax over the first row of each id (by default, equal rows share an id)."""
    ids = [tuple(z.tolist()) for z in Z] if ids is None else ids
    first = {name: ids.index(name) for name in ids}
    C = np.empty((len(Z), len(X)))
    for j, x in enumerate(X):
        logit = {name: dot(Z[i], x) / gamma for name, i in first.items()}
        top = max(logit.values())
        total = math.fsum(math.exp(s - top) for s in logit.values())
        C[:, j] = [top + math.log(total) - logit[name] for name in ids]
    return C


def naive(name, Z, X):
    if name == "softmax":
        return naive_softmax(Z, X)
    pair = {
        "cosine": naive_cosine,
        "euclidean": lambda z, x: math.sqrt(naive_sqeuclidean(z, x)),
        "sqeuclidean": naive_sqeuclidean,
        "cityblock": lambda z, x: math.fsum(naive_differences(z, x)),
        "chebyshev": lambda z, x: max(naive_differences(z, x)),
        "correlation": naive_correlation,
        "equal": lambda z, x: float(any(a != b for a, b in zip(z, x, strict=True))),
    }[name]
    return np.array([[pair(z, x) for x in X] for z in Z])


@pytest.mark.sweep
@every_name
@every_size
@every_dtype
@pytest.mark.filterwarnings("ignore:the cosine of one-dimensional")
def test_cost_is_its_formula(name, d, dtype):
    Z, X = rows(0, 4, d, dtype), rows(1, 5, d, dtype)
    if name == "correlation" and d == 1:
        with pytest.raises(ValueError, match="these have only one"):
            MATCH_COSTS[name](Z, X)
        return
    C = MATCH_COSTS[name](Z, X)
    half = np.dtype(dtype) in (np.float32, np.float16)
    assert C.dtype == (np.float32 if half else np.float64)
    expected = naive(name, Z, X)
    scale = max(1, np.abs(expected).max())
    np.testing.assert_allclose(C, expected, rtol=0, atol=scale * (1e-5 if half else 1e-13))


@every_name
def test_one_double_makes_both_double(name):
    Z, X = rows(0, 3, 4, np.float32), rows(1, 5, 4)
    np.testing.assert_allclose(MATCH_COSTS[name](Z, X), naive(name, Z, X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["euclidean", "sqeuclidean", "softmax", "cityblock", "chebyshev"])
def test_numbers_are_one_dimensional_elements(name):
    C = MATCH_COSTS[name]([0, 3], [1, 1, 2])
    np.testing.assert_array_equal(C, MATCH_COSTS[name]([[0], [3]], [[1], [1], [2]]))


@pytest.mark.parametrize("name", [name for name in MATCH_COSTS if name != "softmax"])
def test_distance_like_costs_are_symmetric(name):
    Z, X = rows(0, 4, 12), rows(1, 6, 12)
    np.testing.assert_allclose(MATCH_COSTS[name](Z, X), MATCH_COSTS[name](X, Z).T, rtol=1e-12)


@pytest.mark.parametrize("name", ["cityblock", "chebyshev", "correlation"])
def test_every_door_takes_a_cost_by_name(name):
    """A name gives the same result as the function itself."""
    function = MATCH_COSTS[name]
    Z, X = rows(2, 6, 3), rows(3, 300, 3)
    for drop in (0.5, "percentile:20", "suggest"):
        a = dropdtw.align(Z, X, drop, match=name)
        assert a.pairs.tolist() == dropdtw.align(Z, X, drop, match=function).pairs.tolist()
        assert a.cost == pytest.approx(a.rescore())
        assert dropdtw.distance(Z, X, drop, match=name) == pytest.approx(a.cost)
    corpus = [rows(seed, 5 + seed, 3) for seed in range(9)]
    values = dropdtw.pairwise([Z], corpus, 0.5, 0.5, match=name)
    np.testing.assert_allclose(values, dropdtw.pairwise([Z], corpus, 0.5, 0.5, match=function))
    among = dropdtw.pairwise(corpus, drop_x=0.5, drop_z=0.5, match=name)
    np.testing.assert_allclose(among, dropdtw.pairwise(corpus, corpus, 0.5, 0.5, match=function))
    found = dropdtw.nearest(Z, corpus, 3, 0.5, 0.5, match=name)
    np.testing.assert_array_equal(found.indices, np.argsort(values[0], kind="stable")[:3])
    stream = dropdtw.Online(Z, 0.5, match=name)
    for x in X:
        stream.push(x)
    assert stream.finish().cost == pytest.approx(dropdtw.distance(Z, X, 0.5, match=name))


def test_elements_whose_features_are_all_alike_correlate_with_nothing():
    Z = np.array([[0.1, 0.1, 0.1], [0.7, 0.7, 0.7 + 1e-9], [0, 0, 0]])
    np.testing.assert_array_equal(correlation(Z, [[1, 2, 3.0]])[[0, 2]], 1)
    assert correlation(Z, [[1, 2, 3.0]])[1] == pytest.approx(1 - math.sqrt(3) / 2)  # nearly equal, but not all equal


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e300])
def test_correlation_knows_neither_scale_nor_offset(scale):
    Z, X = rows(4, 5, 7), rows(5, 6, 7)
    np.testing.assert_allclose(correlation(Z * scale, X + 100), correlation(Z, X), atol=1e-11)


@pytest.mark.parametrize("name", ["cityblock", "chebyshev"])
def test_differences_that_overflow_are_infinite_and_small_ones_stay(name):
    tiny, huge = np.float32(1e-38), np.float32(3e38)
    C = MATCH_COSTS[name](np.array([[tiny], [huge]]), np.array([[0], [-huge]], np.float32))
    np.testing.assert_array_equal(C, np.array([[tiny, huge], [huge, np.inf]], np.float32))


# --- Cosine -----------------------------------------------------------------------------------------------------


def test_zero_vector_is_like_nothing():
    C = cosine([[0, 0], [1, 0]], [[0, 0], [3, 0], [-2, 0]])
    np.testing.assert_array_equal(C, [[1, 1, 1], [1, 0, 2]])


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e308])
def test_cosine_knows_no_scale(scale):
    Z, X = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[2.0, 0.0], [0.0, -0.5], [1.0, 1.0]])
    np.testing.assert_allclose(cosine(Z * scale, X / 2), cosine(Z, X), atol=1e-3 if scale < 1e-300 else 1e-15)


@pytest.mark.parametrize("d", [2, 9, 512])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cosine_stays_between_0_and_2(d, dtype):
    Z = rows(d, 50, d, dtype)
    C = cosine(Z, np.concatenate([3 * Z, -Z]))
    assert C.min() >= 0
    assert C.max() <= 2


def test_cosine_of_numbers_warns_and_blames_the_caller():
    with pytest.warns(UserWarning, match=r"only their signs; match='euclidean' compares values") as caught:
        C = cosine([1, -2], [3])
    np.testing.assert_array_equal(C, [[0], [2]])
    assert caught[0].filename == __file__


NUMBERS = [np.arange(n) - 1.5 for n in (3, 4, 5, 6)]


@pytest.mark.parametrize(
    "call",
    [
        lambda **how: dropdtw.align(*NUMBERS[:2], **how),
        lambda **how: dropdtw.distance(*NUMBERS[:2], **how),
        lambda **how: dropdtw.pairwise(NUMBERS, NUMBERS, n_jobs=2, **how),
        lambda **how: dropdtw.pairwise(NUMBERS, reducer="soft", n_jobs=1, **how),
        lambda **how: dropdtw.nearest(NUMBERS[0], NUMBERS, 2, 0.5, **how),
        lambda **how: dropdtw.suggest_drop(*NUMBERS[:2], **how),
        lambda **how: [o.push(x) for o in [dropdtw.Online(NUMBERS[0], **how)] for x in (1.0, 2.0)],
    ],
    ids=["align", "distance", "pairwise", "pairwise soft", "nearest", "suggest", "online"],
)
def test_a_request_for_signs_warns_once_at_the_callers_line(call, monkeypatch):
    monkeypatch.setattr("dropdtw.problem.match.STRIP", 4)  # costs in many strips
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(match="cosine")
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, call.__code__.co_firstlineno)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(match="auto")


def test_cosine_of_vectors_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cosine([[1, 2]], [[3, 4]])


# --- Euclidean --------------------------------------------------------------------------------------------------


@every_size
@pytest.mark.parametrize("offset", [0, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rows_are_exactly_0_apart(d, offset, dtype):
    Z = (rows(d, 30, d) + offset).astype(dtype)
    assert (np.diag(sqeuclidean(Z, Z)) == 0).all()
    assert (np.diag(euclidean(Z, Z.copy())) == 0).all()


@every_size
def test_close_rows_far_from_0_do_not_cancel(d):
    Z = rows(d, 20, d) + 1e6
    X = np.concatenate([Z + 1e-3 * rows(1, 20, d), rows(2, 3, d) + 1e6])
    np.testing.assert_allclose(sqeuclidean(Z, X), naive("sqeuclidean", Z, X), rtol=1e-11)


@pytest.mark.parametrize("d", [8, 9])
def test_two_clusters_do_not_cancel(d):
    # more close pairs than one block of the correction holds
    Z = np.repeat([-1e4, 1e4], 70)[:, None] + rows(d, 140, d)
    expected = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(sqeuclidean(Z, Z), expected, rtol=1e-11)


@pytest.mark.parametrize("d", [8, 9])
def test_an_outlier_does_not_spoil_the_others(d):
    Z = np.ones((1, d))
    X = np.stack([np.zeros(d), np.full(d, 1e17)])
    np.testing.assert_allclose(sqeuclidean(Z, X), [[d, d * 1e34]], rtol=1e-12)


@pytest.mark.parametrize("d", [2, 9])
@pytest.mark.parametrize(
    ("dtype", "scale"), [(np.float64, 1e200), (np.float64, 1e-200), (np.float32, 1e30), (np.float32, 1e-30)]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_distance_is_right_where_its_square_would_overflow_or_vanish(d, dtype, scale, sign):
    Z, X = np.full((1, d), sign * scale, dtype), np.array([[0] * d, [3 * sign * scale] * d], dtype)
    np.testing.assert_allclose(euclidean(Z, X) / scale, np.sqrt(d) * np.array([[1, 2]]), rtol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 9])
@pytest.mark.parametrize(
    ("dtype", "huge"), [(np.float32, -3.4e38), (np.float32, 1e25), (np.float64, 1e200), (np.float64, -1e308)]
)
def test_a_huge_element_leaves_the_other_distances_alone(d, dtype, huge):
    Z, X = rows(0, 6, d, dtype), rows(1, 70, d, dtype)
    X[3] = Z[2]
    X[5, -1] = huge
    expected = [[math.dist(z, x) for x in X.astype(float)] for z in Z.astype(float)]
    C = euclidean(Z, X)
    assert C.dtype == dtype
    np.testing.assert_allclose(C, expected, rtol=4 * np.finfo(dtype).eps)
    assert C[2, 3] == 0
    assert dropdtw.align(Z, X, 1e9, match="euclidean").cost == pytest.approx(dropdtw.cost(expected, 1e9), rel=1e-6)


@pytest.mark.parametrize("d", [1, 2, 9])
@pytest.mark.parametrize(("dtype", "power"), [(np.float32, 100), (np.float32, -100), (np.float64, -1000)])
def test_distance_scales_with_its_elements(d, dtype, power):
    Z, X = rows(0, 5, d, dtype), rows(1, 7, d, dtype)
    found = euclidean(np.ldexp(Z, power), np.ldexp(X, power))
    np.testing.assert_allclose(found, np.ldexp(euclidean(Z, X), power), rtol=1e-6)


@pytest.mark.parametrize("d", [2, 8, 9, 40])
@pytest.mark.parametrize(("dtype", "huge"), [(np.float64, 1e200), (np.float32, 1e25), (np.float64, 1.7e308)])
def test_squares_that_overflow_are_infinite_and_leave_the_others_alone(d, dtype, huge):
    Z, X = rows(0, 4, d, dtype), rows(1, 6, d, dtype)
    X[2] = Z[3] = huge
    C = sqeuclidean(Z, X)
    assert C[3, 2] == 0
    assert (np.delete(C[3], 2) == np.inf).all()
    assert (C[:3, 2] == np.inf).all()
    others = np.ix_([0, 1, 2], [0, 1, 3, 4, 5])
    expected = naive("sqeuclidean", Z[:3], X[[0, 1, 3, 4, 5]])
    np.testing.assert_allclose(C[others], expected, rtol=1e-5 if dtype == np.float32 else 1e-12)


@every_name
def test_costs_of_some_pairs_are_those_of_all(name):
    Z, X = rows(0, 2100, 2), rows(1, 2100, 2)  # more pairs than one chunk holds
    i, j = np.random.default_rng(2).integers(0, 2100, (2, 50))
    match = resolve(name, 2)
    for some in (Pair(Z, X, match), Pair(Z, X, replace(match, in_kernels=False))):
        np.testing.assert_allclose(some.at(i, j), MATCH_COSTS[name](Z, X)[i, j], rtol=1e-9, atol=1e-12)


# --- Softmax ----------------------------------------------------------------------------------------------------


def test_probabilities_of_unique_rows_sum_to_1():
    Z, X = rows(0, 6, 3), rows(1, 4, 3)
    C = softmax(Z[[0, 1, 2, 3, 4, 5, 0, 0, 3]], X)
    np.testing.assert_allclose(np.exp(-C[:6]).sum(axis=0), 1)
    np.testing.assert_array_equal(C[[6, 7, 8]], C[[0, 0, 3]])


def test_equal_rows_count_once():
    Z, X = rows(0, 4, 3)[[2, 0, 2, 1, 0, 3]], rows(1, 5, 3)
    np.testing.assert_allclose(softmax(Z, X), naive_softmax(Z, X), rtol=1e-12)


def test_minus_zero_equals_zero():
    np.testing.assert_array_equal(softmax([[0.0], [-0.0], [1.0]], [[1.0]]), softmax([[0.0], [0.0], [1.0]], [[1.0]]))


@pytest.mark.parametrize("ids", [["b", "a", "b", "c"], [7, 7, 7, 7], [0, 1, 2, 3], [(1, 2), "x", (1, 2), None]])
def test_rows_of_one_id_count_once_as_the_first_of_them(ids):
    Z, X = rows(0, 4, 3), rows(1, 5, 3)
    np.testing.assert_allclose(softmax(Z, X, ids=ids), naive_softmax(Z, X, ids=ids), rtol=1e-12)


def test_ids_overrule_equality():
    X = rows(1, 5, 2)
    np.testing.assert_allclose(softmax([[1, 2], [1, 2]], X, ids=[0, 1]), np.full((2, 5), math.log(2)))


@pytest.mark.parametrize("gamma", [0.01, 0.5, 30])
def test_gamma_divides_the_similarities(gamma):
    Z, X = rows(0, 4, 3), rows(1, 5, 3)
    np.testing.assert_allclose(softmax(Z, X, gamma=gamma), naive_softmax(Z, X, gamma), rtol=1e-11)
    np.testing.assert_allclose(softmax(Z, X, gamma=gamma), softmax(Z / gamma, X), rtol=1e-11)


def test_softmax_of_huge_similarities_does_not_overflow():
    C = softmax([[1e150], [0.0], [-1e150]], [[1e150]])
    np.testing.assert_allclose(C, [[0], [1e300], [2e300]], rtol=1e-15)


@pytest.mark.parametrize("p", [0, 10, 30, 50, 99, 100])
@pytest.mark.parametrize("gamma", [1.0, 0.5])
def test_drop_logit_is_one_more_row_of_the_softmax(p, gamma):
    Z, X = rows(0, 4, 3)[[0, 1, 1, 2, 3, 0]], rows(1, 5, 3)
    a = dropdtw.align(Z, X, f"logit:{p}", match=f"softmax:{gamma}")

    unique = sorted({tuple(z.tolist()) for z in Z})
    descending = sorted((dot(z, x) for z in unique for x in X), reverse=True)
    drop_logit = descending[max(1, p * len(descending) // 100) - 1]
    for j, x in enumerate(X):
        competitors = [*(dot(z, x) for z in unique), drop_logit]
        total = math.fsum(math.exp(s / gamma) for s in competitors)
        cost = {z: -math.log(math.exp(dot(z, x) / gamma) / total + 1e-5) for z in unique}
        np.testing.assert_allclose(a.problem.C[:, j], [cost[tuple(z.tolist())] for z in Z], rtol=1e-9)
        drop = -math.log(math.exp(drop_logit / gamma) / total + 1e-5)
        assert a.problem.costs.drop_x[j] == pytest.approx(drop)


@pytest.mark.parametrize("p", [0, 1, 29, 50, 57, 58, 99, 100])  # 0.29 * 100 < 29 in floating point
def test_drop_logit_is_the_kth_largest_similarity(p):
    S = np.random.default_rng(p).permutation(100).reshape(10, 10)
    assert LogitPercentile(p).logits(S) == 100 - max(1, p)


def test_epsilon_bounds_the_cost():
    Z, X = 100 * rows(0, 4, 3), rows(1, 5, 3)
    for epsilon in (1e-2, 1e-5):
        a = dropdtw.align(Z, X, LogitPercentile(30, epsilon), match="softmax")
        assert a.problem.C.max() == pytest.approx(-math.log(epsilon))


# --- What `match=` may be ---------------------------------------------------------------------------------------


@every_name
def test_name_means_its_function(name):
    Z, X = rows(0, 3, 2), rows(1, 4, 2)
    C = MATCH_COSTS[name](Z, X)
    assert dropdtw.distance(Z, X, 0.5, match=name) == pytest.approx(dropdtw.cost(C, 0.5))
    assert dropdtw.align(Z, X, 0.5, match=name).cost == pytest.approx(dropdtw.cost(C, 0.5))
    np.testing.assert_array_equal(getattr(dropdtw.costs, name)(Z, X), C)


def test_cosine_is_the_default_of_long_vectors():
    Z, X = rows(0, 3, 16), rows(1, 4, 16)
    np.testing.assert_array_equal(dropdtw.align(Z, X).problem.C, cosine(Z, X))


@pytest.mark.parametrize("text", ["0.1", "3", "1e-1"])
def test_softmax_takes_its_gamma_after_a_colon(text):
    assert resolve(f"softmax:{text}", 2).softmax == Softmax(float(text))


def test_softmax_object_is_a_match_cost():
    Z, X = rows(0, 3, 2), rows(1, 4, 2)
    a = dropdtw.align(Z, X, match=Softmax(0.3, ids=(5, 6, 5)))
    np.testing.assert_array_equal(a.problem.C, softmax(Z, X, gamma=0.3, ids=[5, 6, 5]))


def test_callable_gets_two_dimensional_sequences_and_may_return_lists():
    seen = []

    def match(Z, X):
        seen.append((Z.shape, X.shape))
        return [[abs(float(z[0]) - float(x[0])) for x in X] for z in Z]

    a = dropdtw.align([0, 1], [0, 1, 2], match=match)
    assert seen == [((2, 1), (3, 1))]
    np.testing.assert_array_equal(a.problem.C, [[0, 1, 2], [1, 0, 1]])


@pytest.mark.parametrize(
    "match", ["cosin", "", "softmax:", "softmax:0", "softmax:-1", "softmax:nan", "cosine:1", None, 3]
)
def test_unknown_match_is_refused_with_the_choices(match):
    choices = r"(; |Or )choose one of 'cosine', .*'softmax:0\.1'.* or give a function"
    with pytest.raises(ValueError, match=f"match is .*{choices}"):
        dropdtw.align([[1.0, 2.0]], [[1.0, 2.0]], match=match)
