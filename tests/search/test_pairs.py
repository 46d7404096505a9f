"""All pairs without Python between them: every request gives what `distance` gives, nearly always to the bit."""

import signal
import threading
from itertools import product

import numpy as np
import pytest

import dropdtw
import oracle
from dropdtw import distance, pairwise
from dropdtw.search import blocks
from dropdtw.search.pairwise import Comparison
from random_tables import random_table

pytest.importorskip("dropdtw.executors.cpu", reason="the compiled executor is not installed")

LENGTHS = (9, 12, 7, 12, 10, 8, 12, 11, 9, 12, 7, 10, 12, 8, 9, 12, 11, 12)  # more than a vector has lanes
RAGGED = [np.random.default_rng(k).normal(size=(n, 3)) for k, n in enumerate(LENGTHS)]
ALIKE = [np.random.default_rng(k).normal(size=(11, 3)) for k in range(18)]
FEW = RAGGED[:3]
GAMMAS = {"reducer": "soft", "gamma": 0.3}


def options_of(method):
    entry = dropdtw.METHODS[method]
    return (
        {"method": method}
        | ({"drop_x": 0.7, "drop_z": 0.8} if entry.takes_drops else {})
        | ({"threshold": 0.9} if entry.takes_threshold else {})
    )


BOTH = {"drop_x": 0.7, "drop_z": 0.8}
REQUESTS = {
    name: options_of(name) for name, entry in dropdtw.METHODS.items() if entry.slopes is None and not entry.takes_ids
} | {
    "x": {"drop_x": 0.7},
    "z": {"drop_z": 0.7},
    "one to one": BOTH | {"one_to_many": False, "many_to_one": False},
    "contiguous": BOTH | {"contiguous": True},
    "charges": BOTH | {"open_x": 0.2, "open_z": 0.3, "warp": 0.1},
    "warp": {"warp": 0.2},
    "percentiles": {"drop_x": "percentile:30", "drop_z": "percentile:60"},
    "percentile of x": {"drop_x": "percentile:0"},
    "percentile of z": {"drop_z": "percentile:100"},
    "suggest": {"drop_x": "suggest", "drop_z": "suggest"},
    "suggest z": {"drop_z": "suggest"},
    "threshold percentile": {"method": "lcss", "threshold": "percentile:40"},
    "threshold suggest": {"method": "lcss", "threshold": "suggest"},
    "opening": BOTH | {"open_x": "suggest", "open_z": 0.1},
    "openings": {"drop_x": "suggest", "drop_z": "percentile:30", "open_x": "suggest", "open_z": "suggest"},
    "opening of z": {"drop_z": 0.7, "open_z": "suggest"},
    "greedy percentile": {"method": "greedy", "drop_x": "percentile:30", "drop_z": "percentile:30"},
    "greedy z": {"method": "greedy", "drop_z": 0.4},
}
WINDOWS = {"": {}, "window 3": {"window": 3}, "window 40 %": {"window": 0.4}}
REDUCERS = {"hard": {}, "soft": GAMMAS, "smooth": GAMMAS | {"reducer": "smooth"}}
MATCHES = {
    "numbers": (1, "euclidean"),
    "squares": (1, "sqeuclidean"),
    "lengths": (3, "euclidean"),
    "cosine": (3, "cosine"),
    "many": (3, "sqeuclidean"),
    "wide": (13, "sqeuclidean"),
}


def widened(sequences, d, dtype):
    """The same sequences with d features."""
    return [np.tile(Z, (1, 5))[:, :d].astype(dtype) for Z in sequences]


def one_by_one(Zs, Xs, **options):
    return np.array([[distance(Z, X, **options) for X in Xs] for Z in Zs])


def assert_alike(found, expected, options, dtype):
    """To the bit, unless soft minima are computed in another way, or sums in another order: then to a few more."""
    soft = options.get("reducer") == "soft" and "window" not in options
    if soft or "suggest" in (options.get("open_x"), options.get("open_z")):
        digits = np.finfo(dtype).eps * 64
        np.testing.assert_allclose(found, expected, rtol=digits, atol=digits)
    else:
        np.testing.assert_array_equal(found, expected)


def some_of(request_, window, reducer):
    """Two match costs and a precision, in rotation: each request meets all of them over its windows and reducers."""
    number = list(REQUESTS).index(request_) + 3 * list(WINDOWS).index(window) + 4 * list(REDUCERS).index(reducer)
    return [((np.float64, np.float32)[number % 2], match) for match in list(MATCHES.values())[number % 3 :: 3]]


@pytest.mark.sweep
@pytest.mark.parametrize("thorough", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("reducer", REDUCERS)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("request_", REQUESTS)
def test_every_request_gives_what_distance_gives(request_, window, reducer, thorough):
    options = REQUESTS[request_] | WINDOWS[window] | REDUCERS[reducer]
    all_of = list(product((np.float64, np.float32), MATCHES.values()))
    for dtype, (d, match) in all_of if thorough else some_of(request_, window, reducer):
        Zs, Xs = widened(FEW, d, dtype), widened(RAGGED, d, dtype)
        found = pairwise(Zs, Xs, match=match, n_jobs=1, **options)
        some = slice(None) if match == "euclidean" and d == 1 else slice(1, None, 7)
        assert_alike(found[:, some], one_by_one(Zs, Xs[some], match=match, **options), options, dtype)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("method", [name for name, entry in dropdtw.METHODS.items() if entry.slopes is not None])
def test_patterns_that_need_like_lengths(method, window):
    options = {"method": method, "match": "sqeuclidean"} | WINDOWS[window]
    np.testing.assert_array_equal(pairwise(ALIKE, **options), one_by_one(ALIKE, ALIKE, **options))


@pytest.fixture
def asked(monkeypatch):
    """The pairs that go through Python one by one."""
    found = []
    usual = Comparison.value
    monkeypatch.setattr(Comparison, "value", lambda self, Z, X: found.append(1) or usual(self, Z, X))
    return found


@pytest.mark.parametrize("match", ["cosine", "euclidean", "correlation"])
@pytest.mark.parametrize("request_", REQUESTS)
def test_nothing_is_done_pair_by_pair(request_, match, asked):
    for reducer, window in product(REDUCERS.values(), WINDOWS.values()):
        if request_ in ("erp", "ddtw") and window:
            continue  # see below
        asked.clear()
        sequences = ALIKE[:3] if request_ == "wdtw" else FEW
        pairwise(sequences, match=match, n_jobs=1, **REQUESTS[request_] | window | reducer)
        assert len(asked) <= 1  # one pair the usual way checks what the caller said


IN_BLOCKS = {
    "cityblock": {"match": "cityblock", "drop_x": 0.7, "drop_z": 0.8},
    "chebyshev": {"match": "chebyshev", "drop_z": 0.7},
    "cityblock, charged": {"match": "cityblock", "drop_x": 0.7, "open_x": 0.2, "warp": 0.1},
    "cityblock, a window": {"match": "cityblock", "window": 4},
    "edr": {"method": "edr", "threshold": 0.9},
    "greedy": {"method": "greedy", "match": "cityblock", "drop_x": 1.5, "drop_z": 1.2},
    "erp": {"method": "erp"},
    "erp, another gap": {"method": dropdtw.erp((0.5, 0.1, 1.0)), "match": "cityblock"},
    "free ends": {"method": dropdtw.free_ends(x=(2, 1), z=(1, 0)), "match": "euclidean"},
    "by path": {"normalize": "path", "drop_x": 0.7, "match": "euclidean"},
    "by path, weighted": {"normalize": "path", "method": "symmetric2", "match": "cosine"},
    "by path, a limit": {"normalize": "path", "match": "cosine", "max_cost": 0.9},
    "soft": {"method": "erp", "reducer": "soft", "gamma": 0.3},
    "smooth": {"match": "chebyshev", "reducer": "smooth", "gamma": 0.3, "drop_x": 0.7},
}
ALIKE_ALONE = {
    "wdtw": {"method": "wdtw"},
    "wdtw, a window": {"method": dropdtw.wdtw(0.2), "window": 3, "warp": 0.1},
    "prices of each": {"match": "cityblock", "drop_x": np.linspace(0.1, 2.0, 11)},
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [*IN_BLOCKS, *ALIKE_ALONE])
def test_costs_that_kernels_cannot_compute_come_in_blocks(name, dtype, asked, monkeypatch):
    """To the bit, of one list and of two, whether a block has one pair or many."""
    options = (IN_BLOCKS | ALIKE_ALONE)[name]
    Xs = widened(ALIKE if name in ALIKE_ALONE else RAGGED, 3, dtype)
    for cells, threads in ((1, 1), (500, 2), (1 << 16, 1)):
        monkeypatch.setattr(blocks, "CELLS", cells)
        asked.clear()
        found = pairwise(Xs[:5], Xs, n_jobs=threads, **options)
        both = pairwise(Xs[:5], n_jobs=threads, **options)
        assert len(asked) <= 2
        np.testing.assert_array_equal(found, one_by_one(Xs[:5], Xs, **options))
        np.testing.assert_allclose(both, found[:, :5], rtol=10 * np.finfo(dtype).eps)


PAIR_BY_PAIR = {
    "a function": {"match": lambda Z, X: np.abs(Z[:, None, 0] - X[None, :, 0])},
    "a rule": {"drop_x": lambda C: C.min(axis=0)},
    "softmax": {"match": "softmax"},
    "a drop logit": {"match": "softmax", "drop_x": "logit:30"},
    "a percentile of other costs": {"match": "cityblock", "drop_x": "percentile:30"},
    "weights of other lengths": {"method": "wdtw"},
    "runs outside a window": {"method": "erp", "window": 3},
    "slopes in a window": {"method": "ddtw", "window": 3},
    "slopes of other costs": {"method": "ddtw", "match": "cityblock"},
}


@pytest.mark.parametrize("options", PAIR_BY_PAIR.values(), ids=PAIR_BY_PAIR)
def test_what_python_has_to_say_about_each_pair_is_asked(options, asked):
    """A cost or a rule of the caller's, and what has no kernel, goes the general way."""
    found = pairwise(FEW, FEW, **options)
    assert len(asked) == 9
    np.testing.assert_array_equal(found, one_by_one(FEW, FEW, **options))


def test_large_pairs_and_extreme_values_do_not_come_in_blocks(asked, monkeypatch):
    erp = {"method": "erp"}
    tiny = [FEW[0], FEW[1] * 1e-90, FEW[2]]
    np.testing.assert_array_equal(pairwise(tiny, tiny, **erp), one_by_one(tiny, tiny, **erp))
    assert len(asked) == 9
    asked.clear()
    monkeypatch.setattr(blocks, "LARGEST", 100)
    np.testing.assert_array_equal(pairwise(FEW, FEW, **erp), one_by_one(FEW, FEW, **erp))
    assert len(asked) == 9


def test_prices_that_do_not_fit_are_refused():
    for match in ("euclidean", "cityblock"):
        with pytest.raises(ValueError, match="drop_x has shape"):
            pairwise(FEW, drop_x=np.ones(9), match=match)
    with pytest.raises(ValueError, match="g has 2 numbers"):
        pairwise(FEW, method=dropdtw.erp((0.0, 1.0)))


@pytest.mark.parametrize("match", ["cosine", "correlation"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_zero_vector_changes_no_bit_of_other_sequences(match, dtype):
    Zs = widened(RAGGED, 3, dtype)
    Zs[4][2] = 0
    np.testing.assert_array_equal(pairwise(Zs, Zs, match=match), one_by_one(Zs, Zs, match=match))


def test_prices_of_each_element():
    rng = np.random.default_rng(1)
    options = {"drop_x": rng.random(11), "drop_z": list(rng.random(11)), "match": "euclidean"}
    for more in ({}, {"window": 2}, GAMMAS):
        found = pairwise(ALIKE, **options | more)
        assert_alike(found, one_by_one(ALIKE, ALIKE, **options | more), more, np.float64)


@pytest.mark.filterwarnings("ignore:drop_x is .* less than one percent", "ignore:drop_z is .* less than one percent")
@pytest.mark.parametrize("p", [0, 0.1, 30, 50, 77.7, 99.99, 100])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.filterwarnings("ignore:drop_. is .percentile.0.1., less than one percent")
def test_percentiles_of_many_costs_are_numpys(p, dtype):
    """Many, so that most of them are sifted out; ties and outliers among them."""
    rng = np.random.default_rng(int(p * 100))
    plain, tied = rng.normal(size=(70, 1)), rng.integers(0, 3, size=(90, 1)).astype(float)
    sequences = [S.astype(dtype) for S in (plain, tied, np.zeros((40, 1)), np.vstack([plain, [[1e6]]]), plain[:9])]
    options = {"drop_x": f"percentile:{p}", "drop_z": f"percentile:{p}", "match": "euclidean"}
    np.testing.assert_array_equal(pairwise(sequences, **options), one_by_one(sequences, sequences, **options))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_squares_too_small_for_their_digits(dtype):
    """√(v²) is not |v| where v² loses digits; `distance` and `pairwise` agree on it."""
    tiny = np.finfo(dtype).tiny ** 0.5
    Zs = [np.array([0, tiny, 1, 1 + tiny], dtype), np.array([3 * tiny, 0, 1], dtype), np.array([1, 2], dtype)]
    options = {"match": "euclidean", "drop_x": 0.5}
    np.testing.assert_array_equal(pairwise(Zs, **options), one_by_one(Zs, Zs, **options))


@pytest.mark.parametrize("reducer", ["hard", "soft"])
@pytest.mark.parametrize("method", ["drop_dtw", "dtw", "subsequence", "needleman_wunsch", "lcss", "smith_waterman"])
def test_small_pairs_are_as_the_oracle_has_them(method, reducer):
    rng = np.random.default_rng(0)
    Zs = [rng.normal(size=(n, 2)) for n in (3, 4, 3)]
    options = options_of(method)
    soft = {"gamma": 0.5} if reducer == "soft" else {}
    for width in (None, 1):
        found = pairwise(Zs, match="euclidean", reducer=reducer, window=width, **options, **soft)
        for a, Z in enumerate(Zs):
            for b, X in enumerate(Zs):
                C = np.sqrt(((Z[:, None] - X[None]) ** 2).sum(axis=2))
                d_x, d_z = options.get("drop_x"), options.get("drop_z")
                more = {"method": method, "threshold": options.get("threshold")}
                band = None if width is None else oracle.band(len(Z), len(X), width)
                expected = getattr(oracle, reducer)(C, d_x, d_z, band=band, **more, **soft)
                assert found[a, b] == pytest.approx(expected, abs=1e-12)


def test_a_window_is_symmetric_between_sequences_of_one_length():
    def count(Zs, **options):
        seen = []
        pairwise(Zs, match="euclidean", progress=lambda done, total: seen.append(total), **options)
        return seen[-1]

    n = len(ALIKE)
    assert count(ALIKE, window=2) == n * (n + 1) // 2
    assert count(ALIKE, window=0.3, drop_x=0.5, drop_z=0.5) == n * (n + 1) // 2
    assert count(RAGGED, window=2) == n * n
    assert count(ALIKE, window=2, drop_x=0.5) == n * n
    found = pairwise(ALIKE, match="euclidean", window=2, drop_x=0.5, drop_z=0.5)
    np.testing.assert_array_equal(found, found.T)


def test_a_window_that_leaves_no_alignment_is_infinitely_far():
    Zs = [np.arange(9.0), np.arange(2.0)]
    found = pairwise(Zs, match="euclidean", window=0)
    np.testing.assert_array_equal(found, one_by_one(Zs, Zs, match="euclidean", window=0))
    assert np.isinf(found[0, 1])


@pytest.mark.parametrize(("K", "N"), [(2, 40), (40, 2), (1, 5), (5, 1), (17, 23), (33, 8)])
def test_windows_of_unlike_lengths_are_those_of_one_pair(K, N):
    rng = np.random.default_rng(K * N)
    Z, X = rng.normal(size=K), rng.normal(size=N)
    for window in (0, 1, 3, 7, 1000, 0.05, 0.5, 1.0):
        for drops in ({}, {"drop_x": 0.3}, {"drop_z": 0.3}, {"drop_x": 0.3, "drop_z": 0.2}):
            options = {"match": "euclidean", "window": window} | drops
            expected = [[distance(Z, X, **options)]]
            np.testing.assert_array_equal(pairwise([Z], [X], **options), expected)


@pytest.mark.parametrize("gamma", [1e-9, 1e-4, 1.0, 1e4])
def test_soft_values_of_any_scale(gamma):
    """Sums of exp(−cost/γ) leave the range of floats far behind."""
    Zs = [100 * Z for Z in ALIKE[:4]]
    options = {"match": "sqeuclidean", "reducer": "soft", "gamma": gamma, "drop_x": 300.0}
    expected = one_by_one(Zs, Zs, **options)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(pairwise(Zs, **options), expected, rtol=1e-13, atol=1e-13 * gamma)


SLOW = {
    "lanes": {"window": 900},
    "soft lanes": {"reducer": "soft"},
    "one by one": {"reducer": "smooth", "drop_x": 0.3},
    "percentile": {"drop_x": "percentile:30"},
    "in Python": {"match": "softmax"},
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("options", SLOW.values(), ids=SLOW)
def test_an_interrupt_is_answered_long_before_the_end(options, threads):
    series, seen = np.random.default_rng(0).normal(size=(200, 1500)), [(0, 1)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            pairwise(
                series, n_jobs=threads, progress=lambda *done: seen.append(done), **{"match": "sqeuclidean"} | options
            )
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    done, total = seen[-1]
    assert done < total / 2


READ_AT_RUN_TIME = {
    "paper": {"method": "drop_dtw_paper"} | BOTH,
    "paper, one-to-one": {"method": "drop_dtw_paper", "one_to_many": False, "many_to_one": False} | BOTH,
    "free begin": {"method": "free_begin"},
    "free ends": {"method": dropdtw.free_ends(x=(True, False), z=(False, True))},
    "subsequence": {"method": "subsequence", "warp": 0.1},
    "Smith–Waterman": {"method": "smith_waterman", "drop_x": 0.4, "drop_z": 0.3, "open_x": 0.2, "open_z": 0.1},
}


@pytest.mark.parametrize("match", ["sqeuclidean", "euclidean"])  # squares are computed with the cells
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("options", READ_AT_RUN_TIME.values(), ids=READ_AT_RUN_TIME)
def test_tables_read_at_run_time_cost_in_lanes_what_they_cost_alone(options, dtype, match):
    """Lanes compute sixteen rows at a time, or eight: lengths just below, at and above multiples of that."""
    random = np.random.default_rng(3)
    Zs = [random.normal(size=n).astype(dtype) for n in (1, 6, 7, 8, 9, 15, 16, 17, 23, 24, 31, 32, 33, 50)]
    Xs = [random.normal(size=n).astype(dtype) for n in (1, 2, 7, 8, 9, 14, 15, 16, 17, 18, 30, 31, 32, 33, 49, 51, 90)]
    expected = one_by_one(Zs, Xs, match=match, **options)
    np.testing.assert_array_equal(pairwise(Zs, Xs, match=match, n_jobs=1, **options), expected)
    limit = float(np.median(expected[np.isfinite(expected)]))
    found = pairwise(Zs, Xs, match=match, n_jobs=1, max_cost=limit, **options)
    np.testing.assert_array_equal(found, np.where(expected <= limit, expected, np.inf))


@pytest.mark.parametrize("match", ["sqeuclidean", "cosine"])
@pytest.mark.parametrize("options", [{"drop_x": "percentile:30"}, {"drop_z": "percentile:60", "drop_x": 0.3}])
def test_percentiles_of_one_list_are_those_of_each_pair(options, match):
    """Pairs of one list have the same percentile in both orders, so it is found once."""
    random = np.random.default_rng(5)
    Zs = [random.normal(size=(n, 3)) for n in LENGTHS] + [np.ones((4, 3)), np.ones((5, 3))]  # a percentile may be 0
    options = {"match": match} | options
    expected = pairwise(Zs, list(Zs), n_jobs=1, **options)
    for n_jobs in (1, 2):
        np.testing.assert_array_equal(pairwise(Zs, n_jobs=n_jobs, **options), expected)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_any_table_costs_in_lanes_what_it_costs_alone(seed, d):
    random = np.random.default_rng(seed)
    table = random_table(random)
    lengths = (1, 7, 8, 15, 16, 34), (1, 2, 8, 9, 15, 16, 17, 33, 40)
    Zs, Xs = ([random.normal(size=(n, d)) for n in some] for some in lengths)
    asked = {"match": "sqeuclidean", "method": table}
    if {"drop_x", "drop_z"} & {e.cost for e in table.every_edge}:
        asked |= {"drop_x": 0.7, "drop_z": -0.2}
    np.testing.assert_array_equal(pairwise(Zs, Xs, n_jobs=1, **asked), one_by_one(Zs, Xs, **asked))
