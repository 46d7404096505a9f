"""A stream ends with the batch result, whenever it ends, and committed segments never change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

import dropdtw
import oracle
from cases import VARIANTS, cases, costs, name, same
from dropdtw.search.online import Online

# Everything that a stream supports: no window, and no greedy drops of z.
LIVE = [v for v in VARIANTS if "window" not in v and not (v["method"] == "greedy" and v["sides"][1])]
LIVE = [v for v in LIVE if dropdtw.METHODS[v["method"]].streams]


def table(C):
    """A match cost that looks up C: element k of a sequence is the number k."""
    return lambda Z, X: np.asarray(C)[Z[:, 0].astype(int)][:, X[:, 0].astype(int)]


def stream(case, **more):
    """An aligner for a case, and the arguments for pushing frame j."""
    d = 0.0 if case.drop_x is not None else None
    o = Online(np.arange(len(case.C)), d, case.drop_z, match=table(case.C), **{"gamma": None} | case.options | more)
    prices = [None] * case.C.shape[1] if case.drop_x is None else case.drop_x
    return o, lambda j: o.push(j, drop_x=prices[j])


def batch(case, n):
    drop_x = None if case.drop_x is None else case.drop_x[:n]
    return dropdtw.solve(case.C[:, :n], drop_x, case.drop_z, **case.options)


def answer(ask):
    """The alignment, or the text of its error."""
    try:
        return ask()
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("variant", LIVE, ids=name)
def test_a_stream_that_ends_now_is_the_batch(variant):
    """All methods, options and kinds of costs; ties are broken the same way."""
    for case in cases(variant)[::3]:
        o, push = stream(case, keep_costs=True)
        for j in range(case.C.shape[1]):
            push(j)
            wanted, found = answer(lambda: batch(case, j + 1)), answer(o.finish)  # noqa: B023
            if isinstance(wanted, str):
                assert found == wanted
                continue
            assert same(found, wanted)
            assert found.segments() == wanted.segments()
            assert found.rescore() == wanted.rescore()


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(LIVE),
    st.integers(1, 4),
    st.integers(1, 24),
    st.sampled_from(["positive", "signed", "tied", "holes"]),
    st.sampled_from([None, 0.0, 0.5, 2.0]),
    st.integers(0, 2**32 - 1),
)
def test_what_is_committed_never_changes(variant, K, N, kind, beam, seed):
    rng = np.random.default_rng(seed)
    options = {k: v for k, v in variant.items() if k != "sides"}
    x, z = variant["sides"]
    C, d_z = costs(kind, (K, N), rng), costs(kind, (K,), rng)
    d_x = float(costs("positive", (), rng))
    o = Online(np.arange(K), d_x if x else None, d_z if z else None, match=table(C), gamma=None, beam=beam, **options)
    before, decided = [], 0
    for j in range(N):
        o.push(j)
        assert set(before) <= set(o.committed)
        assert decided <= o.decided <= j + 1
        before, decided = o.committed, o.decided
        assert all(s.stop < decided for s in before)
        try:
            a = o.finish()
        except ValueError:
            continue
        assert set(before) <= set(a.segments())
        assert {s for s in a.segments() if s.stop < decided} == set(before)
        if beam is None:
            wanted = dropdtw.solve(C[:, : j + 1], d_x if x else None, d_z if z else None, **options)
            assert same(a, wanted)


def test_background_at_the_beginning_is_decided_without_a_beam():
    o = Online(np.eye(3), drop_x=0.3, gamma=None)
    for x in [-np.ones(3)] * 40 + list(np.eye(3)):
        o.push(x)
    assert o.decided == 40
    assert len(o._stream.past) == 3
    assert o.committed == []


def test_a_beam_commits_segments_and_frees_memory():
    rng = np.random.default_rng(0)
    Z = np.eye(6)
    truth = np.repeat([-1, 0, -1, 1, 2, -1, 3, 4, -1, 5, -1], 30)
    X = np.where(truth[:, None] < 0, -0.4, Z[truth]) + 0.05 * rng.normal(size=(len(truth), 6))
    o = Online(Z, drop_x=0.3, many_to_one=False, contiguous=True, beam=5.0, gamma=None)
    undecided = 0
    for x in X:
        o.push(x)
        undecided = max(undecided, len(o._stream.past))
    assert undecided < 100 < len(X)
    a = dropdtw.align(Z, X, drop_x=0.3, many_to_one=False, contiguous=True)
    assert o.finish().labels.tolist() == a.labels.tolist() == truth.tolist()
    assert o.committed == a.segments()
    assert o.decided >= 305


def test_a_beam_that_is_too_narrow_says_so():
    o = Online(np.eye(3), drop_x=0.3, beam=0.1)
    for x in [np.eye(3)[0]] * 20:
        o.push(x)
    with pytest.raises(ValueError, match=r"no alignment with all of Z is left within the beam of 0\.1; .*Widen"):
        o.finish()


def test_memory_of_an_exact_stream_is_a_byte_for_each_state_and_row():
    o = Online(np.eye(5), drop_x=0.3, many_to_one=False, gamma=None)
    for k in range(200):
        o.push(np.eye(5)[k % 5])
    assert o.decided < 10
    sizes = {(p.choices.ways.nbytes, p.choices.arcs.nbytes, p.match.nbytes) for p in o._stream.past}
    assert sizes == {(3 * 6, 0, 0)}


@pytest.mark.parametrize("match", ["cosine", "euclidean", "sqeuclidean", "softmax", "softmax:0.1"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sequences_are_aligned_as_align_does(match, dtype):
    rng = np.random.default_rng(1)
    Z, X = rng.normal(size=(5, 12)).astype(dtype), rng.normal(size=(40, 12)).astype(dtype)
    o = Online(Z, drop_x=0.4, drop_z=0.9, match=match)
    Z_before = Z.copy()
    Z[:] = np.nan  # the aligner has its own copy
    for x in X:
        o.push(x)
    a, b = o.finish(), dropdtw.align(Z_before, X, drop_x=0.4, drop_z=0.9, match=match)
    assert a.pairs.tolist() == b.pairs.tolist()
    assert a.labels.tolist() == b.labels.tolist()
    assert a.cost == approx(b.cost, rel=1e-5 if dtype is np.float32 else 1e-12)
    assert a.problem is None


def test_a_method_with_a_match_cost_of_its_own_keeps_it():
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(4, 3)), rng.normal(size=(6, 3))
    o = Online(Z, method="edr", threshold=0.5)
    for x in X:
        o.push(x)
    a = dropdtw.align(Z, X, method="edr", threshold=0.5)
    assert a.cost != dropdtw.align(Z, X, method="edr", threshold=0.5, match="cosine").cost
    assert (o.finish().cost, o.finish().pairs.tolist()) == (a.cost, a.pairs.tolist())


def filtered(case, j, gamma):
    """P(z_i matches x_j), P(x_j is dropped), lowest cost of x_0..x_j with z_0..z_i for any i, by enumeration."""
    nothing = float(case.drop_x[: j + 1].sum()) + case.options.get("open_x", 0.0)
    found = [(np.zeros((case.C.shape[0], j + 1), bool), nothing)]
    for k in range(1, case.C.shape[0] + 1):
        d_z = None if case.drop_z is None else case.drop_z[:k]
        options = {o: v for o, v in case.oracle().items() if o not in ("C", "d_x", "d_z")}
        for M, cost in oracle.alignments(case.C[:k, : j + 1], case.drop_x[: j + 1], d_z, **options):
            found.append((np.pad(M, ((0, case.C.shape[0] - k), (0, 0))), cost))
    found = [(M, cost) for M, cost in found if np.isfinite(cost)]
    if not found:
        return np.zeros(len(case.C)), 0.0, np.inf
    energy = np.array([cost for _, cost in found]) / gamma
    p = np.exp(energy.min() - energy)
    p /= p.sum()
    M = np.stack([M[:, j] for M, _ in found])
    return p @ M, p @ ~M.any(axis=1), min(found, key=lambda f: f[1])[1]


@pytest.mark.parametrize(
    "variant", [v for v in LIVE if v["method"] in ("drop_dtw", "needleman_wunsch") and v["sides"][0]], ids=name
)
def test_probabilities_are_those_of_all_alignments_so_far(variant):
    for case in cases(variant)[::5]:
        _, push = stream(case, gamma=0.7)
        for j in range(case.C.shape[1]):
            now = push(j)
            match, dropped, cost = filtered(case, j, 0.7)
            assert now.match == approx(match, abs=1e-9)
            assert now.dropped == approx(dropped, abs=1e-9)
            assert now.cost == approx(cost, abs=1e-9)


@pytest.mark.parametrize("method", ["symmetric1", "symmetric2", "symmetricP1", "asymmetricP1"])
def test_probabilities_of_weighted_patterns_are_those_of_all_alignments_so_far(method):
    """A weight multiplies a match cost, not the probability of the match; a step in progress is no other alignment."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        C = rng.random((3, 5))
        o = Online(np.arange(3), match=table(C), method=method, gamma=0.7)
        for j in range(C.shape[1]):
            now = o.push(j)
            found = [(M, cost) for k in (1, 2, 3) for M, cost in oracle.alignments(C[:k, : j + 1], method=method)]
            p = np.exp([-cost / 0.7 for _, cost in found])
            matched = [np.pad(M[:, j], (0, 3 - len(M))) for M, _ in found]
            wanted = (p / p.sum()) @ np.array(matched) if found else np.zeros(3)
            assert now.match == approx(wanted, abs=1e-9)
            assert now.cost == approx(min((cost for _, cost in found), default=np.inf))


@pytest.mark.parametrize("method", [name for name, m in dropdtw.METHODS.items() if m.streams])
def test_probabilities_are_probabilities(method):
    rng = np.random.default_rng(0)
    more = {"threshold": 0.3} if dropdtw.METHODS[method].takes_threshold else {}
    drop = 0.3 if dropdtw.METHODS[method].takes_drops else None
    o = Online(np.arange(3), drop, match=table(rng.random((3, 8))), method=method, gamma=0.2, **more)
    for j in range(8):
        now = o.push(j)
        assert -1 <= now.step < 3
        assert now.label <= now.step
        assert (now.match >= 0).all()
        assert (now.match <= 1 + 1e-12).all()
        assert 0 <= now.dropped <= 1 + 1e-12
        assert now.match.sum() + now.dropped >= 1 - 1e-9 or now.cost == np.inf


def test_where_the_stream_stands():
    o = Online(np.eye(3), drop_x=0.3, gamma=0.05)
    junk = -np.ones(3)
    frames = [junk, np.eye(3)[0], junk, np.eye(3)[1]]
    stands = [o.push(x) for x in frames]
    assert [now.step for now in stands] == [-1, 0, 0, 1]
    assert [now.label for now in stands] == [-1, 0, -1, 1]
    assert [round(now.cost, 6) for now in stands] == [0.3, 0.3, 0.6, 0.6]
    assert stands[3].match.argmax() == 1
    assert stands[3].match[1] > 0.9
    assert stands[2].dropped > 0.9
    assert o.frames == 4


def test_own_tables_and_prices_of_frames():
    tail = dropdtw.Recurrence(
        name="open end",
        states=("match", "tail"),
        edges=dropdtw.edges("match", to="match", moves="diag left", cost="match")
        + dropdtw.edges("match tail", to="tail", moves="left", cost="free"),
        start="match",
        final=("match", "tail"),
    )
    C = np.array([[0, 1, 9, 9], [9, 9, 0, 9]])
    o = Online([0, 1], match=table(C), method=tail)
    for j in range(4):
        now = o.push(j)
    assert same(o.finish(), dropdtw.solve(C, method=tail))
    assert now.dropped == approx(1 - now.match.sum())
    with pytest.raises(ValueError, match="drop_x was given for a frame, but not to Online"):
        o.push(0, drop_x=0.1)


def test_an_end_from_which_nothing_goes_on_is_not_forgotten():
    lockstep = dropdtw.Recurrence(
        name="lockstep, then the rest of Z dropped",
        states=("match", "end"),
        edges=dropdtw.edges("match", to="match", moves="diag", cost="match")
        + dropdtw.edges("match", to="end", moves="same", cost="free")
        + dropdtw.edges("end", to="end", moves="top", cost="drop_z"),
        start="match",
        final=("end",),
    )
    C = np.ones((4, 3))
    o = Online(np.arange(4), None, 0.5, match=table(C), method=lockstep)
    for j in range(3):
        o.push(j)
        assert o.decided == j  # except for the drops that may follow
        assert same(o.finish(), dropdtw.solve(C[:, : j + 1], None, 0.5, method=lockstep))
    assert o.committed == dropdtw.solve(C, None, 0.5, method=lockstep).segments()[:1]


NO = {
    "a percentile": (
        {"drop_x": "percentile:30"},
        r"drop_x is 'percentile:30', .* does not know all of them until it ends",
    ),
    "a logit": (
        {"drop_x": "logit:30", "match": "softmax"},
        "drop_x is 'logit:30', which is computed from the match costs",
    ),
    "a suggestion": ({"drop_x": "suggest"}, "drop_x is 'suggest', which is computed from"),
    "a function": (
        {"drop_x": 1.0, "drop_z": lambda C: 1.0},
        "drop_z is <function .* which is computed from the match costs",
    ),
    "a vector": (
        {"drop_x": [0.1, 0.2]},
        r"drop_x has shape \(2,\), but the length of a stream is not known.*push\(x, drop",
    ),
    "a wrong vector": ({"drop_x": 0.1, "drop_z": [0.1]}, r"drop_z has shape \(1,\), but there are 2 elements z_i"),
    "NaN": ({"drop_x": np.nan}, "drop_x has NaN"),
    "a window": ({"window": 2}, "window is 2, a band that depends on the length of X"),
    "greedy": ({"drop_x": 1.0, "drop_z": 1.0, "method": "greedy"}, "method 'greedy' decides whether to drop a z after"),
    "limited ends": (
        {"method": dropdtw.free_ends(x=(2, True))},
        r"method free_ends\(x=\(2, True\)\) limits how much may be skipped, which Online does not support; use 'sub",
    ),
    "threshold": ({"method": "lcss", "threshold": "percentile:3"}, r"threshold is 'percentile:3', .* give a number$"),
    "no threshold": ({"method": "lcss"}, "needs threshold="),
    "match": ({"match": "cosinus"}, "match is 'cosinus'"),
    "method": ({"method": "dwt"}, "method is 'dwt'"),
    "gamma": ({"gamma": 0}, "gamma is 0"),
    "beam": ({"beam": -1.0}, r"beam is -1\.0; give a cost ≥ 0"),
    "no beam": ({"beam": "wide"}, "beam is 'wide'; give a cost ≥ 0"),
}


@pytest.mark.parametrize(("given", "words"), NO.values(), ids=NO)
def test_what_a_stream_cannot_do_is_refused_at_once(given, words):
    with pytest.raises(ValueError, match=words):
        Online(np.eye(2), **given)


def test_a_bad_frame_is_refused_and_changes_nothing():
    o = Online(np.eye(2), drop_x=0.3)
    with pytest.raises(ValueError, match="there are no frames yet"):
        o.finish()
    assert (o.committed, o.decided) == ([], 0)
    o.push([1, 0])
    for x, words in (
        ([np.nan, 0], "frame 1 has NaN or infinity; skip it or fill it in"),
        ([1, 2, 3], r"frame 1 has 3 features, but Z has 2; give a vector \(2,\)"),
        (1, "frame 1 has 1 features, but Z has 2"),
        ("ab", "frame 1 is 'ab'"),
    ):
        with pytest.raises(ValueError, match=words):
            o.push(x)
    with pytest.raises(ValueError, match="drop_x has NaN"):
        o.push([1, 0], drop_x=np.nan)
    o.push(np.array([0, 1]))
    assert o.finish().labels.tolist() == [0, 1]


def test_constant_rules_are_numbers():
    o = Online(np.eye(2), dropdtw.drops.Constant(0.3), dropdtw.drops.PerElement((0.1, 0.2)))
    o.push([-1, -1])
    assert o.finish().cost == approx(0.6)


def test_a_stream_drops_at_the_prices_it_was_given_first():
    drop_z = np.array([0.5, 0.5, 0.5])
    o = dropdtw.Online([0.0, 5.0, 1.0], 0.3, drop_z, gamma=None)
    drop_z[:] = 9
    for x in (0.0, 1.0):
        o.push(x)
    assert o.finish().cost == 0.5


SYMBOLIC = {
    "equal": ("GATTACA", "GATCATA", "equal"),
    "auto": ("GATTACA", "GCATTTACA", "auto"),
    "words": (["we", "choose", "to", "go"], ["um", "we", "choose", "um", "to", "go"], "auto"),
    "table": ("GATA", "AGATTA", {("A", "G"): 0.3, ("A", "T"): 0.6, ("G", "T"): np.inf}),
    "function": ("gata", "GATTA", lambda z, x: 0.1 * (z.upper() != x) + 0.01 * (z > "b")),
    "numbers as symbols": (
        [1, 2, 3],
        [1, 5, 2, 3],
        {(2, 5): 0.1, (1, 2): 1, (1, 5): 1, (1, 3): 1, (2, 3): 1, (3, 5): 1},
    ),
}


@pytest.mark.parametrize(("Z", "X", "match"), SYMBOLIC.values(), ids=SYMBOLIC)
@pytest.mark.parametrize("how", [{"drop_x": 0.4, "drop_z": 0.5}, {"drop_x": 0.4, "method": "steps"}], ids=str)
def test_a_stream_of_symbols_ends_as_align_does(Z, X, match, how):
    o = Online(Z, match=match, keep_costs=True, **how)
    for x in X:
        o.push(x)
    found, expected = o.finish(), dropdtw.align(Z, X, match=match, **how)
    assert (found.cost, found.pairs.tolist()) == (expected.cost, expected.pairs.tolist())
    assert found.symbols == (tuple(Z), tuple(X))
    assert found.text() == expected.text()
    assert found.rescore() == pytest.approx(expected.cost)


@pytest.mark.parametrize(
    ("match", "bad", "words"),
    [
        ("auto", ["G"], r"element 0 of frame 1 is .* not hashable"),
        ("auto", None, "frame 1 is None, a missing symbol; skip it"),
        ({("G", "A"): 1}, "T", r"no cost for 'G' with 'T'"),
        ("auto", 3, r"Z is .*holds symbols, and frame 1 is .*\(3,\), which does not"),
    ],
)
def test_a_symbol_that_cannot_be_compared_is_refused_and_changes_nothing(match, bad, words):
    o = Online("GA", drop_x=0.4, match=match)
    o.push("G")
    with pytest.raises(ValueError, match=words):
        o.push(bad)
    o.push("A")
    assert o.finish().pairs.tolist() == [[0, 0], [1, 1]]


def test_numbers_are_no_symbols_of_bytes_as_in_align():
    message = "Z is b'GAT', which holds symbols, and .*, which does not"
    with pytest.raises(ValueError, match=message):
        dropdtw.align(b"GAT", [71, 65], drop_x=0.4)
    with pytest.raises(ValueError, match=message):
        dropdtw.Online(b"GAT", drop_x=0.4).push(71)
