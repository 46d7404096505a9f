"""`method="ctc"` with ids, drops of z and orders, against the oracle, and against PyTorch's loss."""

import json

import numpy as np
import pytest
from pytest import approx

import dropdtw
import oracle
from dropdtw import orders

GAMMA = 0.7
NAMES = (["a"], ["a", "a"], ["a", "b"], ["a", "a", "a"], ["a", "b", "a"], ["a", "b", "b"], ["b", "a", "b", "a"])


def costs(ids, N, seed=0):
    rng = np.random.default_rng(seed)
    K = len(ids)
    return rng.normal(size=(K, N)), rng.normal(size=N), rng.normal(size=K)


def check(C, given, every, executor):
    """Every : the alignments (M, cost) of the oracle."""
    given = given | {"executor": executor}
    if not every:
        assert dropdtw.cost(C, **given) == np.inf
        return
    paid = np.array([cost for _, cost in every])
    share = np.exp((paid.min() - paid) / GAMMA)
    soft = paid.min() - GAMMA * np.log(share.sum())
    share /= share.sum()
    a, p = dropdtw.solve(C, **given), dropdtw.posterior(C, **given, gamma=GAMMA)
    assert [a.cost, dropdtw.cost(C, **given)] == approx([paid.min()] * 2, abs=1e-12)
    assert (every[int(paid.argmin())][0] == a.M).all()
    assert a.rescore() == approx(a.cost, abs=1e-12)
    assert [dropdtw.cost(C, **given, reducer="soft", gamma=GAMMA), p.cost] == approx([soft] * 2, abs=1e-12)
    M = np.array([M for M, _ in every])
    assert p.match == approx(np.einsum("n,nij->ij", share, M), abs=1e-12)
    assert p.drop_x == approx(share @ ~M.any(axis=1), abs=1e-12)
    assert p.expected_cost == approx(share @ paid, abs=1e-12)
    assert (a.paid_x == a.dropped_x).all()
    if given.get("order") is None:
        assert p.drop_z == approx(share @ ~M.any(axis=2), abs=1e-12)
        assert p.visit.tolist() == [1.0] * len(C)
        assert (a.paid_z == a.dropped_z).all()
    else:
        assert not p.drop_z.any()
        assert not a.paid_z.any()
        assert np.minimum(p.visit, 1) == approx(share @ M.any(axis=2), abs=1e-12)  # a repeated z counts twice


@pytest.mark.parametrize("match", ["euclidean", "cosine"])
@pytest.mark.parametrize("drop_z", [None, 0.9, "percentile:60"])
def test_many_pairs_with_equal_z_are_each_pair_alone(match, drop_z):
    rng = np.random.default_rng(1)
    Zs = [rng.normal(size=(4, 2))[[0, 1, 1, 3]] for _ in range(3)]
    Xs = [rng.normal(size=(n, 2)) for n in (5, 7, 6, 9)]
    given = {"drop_x": 0.8, "drop_z": drop_z, "match": match, "method": "ctc"}
    alone = np.array([[dropdtw.align(Z, X, **given).cost for X in Xs] for Z in Zs])
    steps = np.array([[dropdtw.distance(Z, X, **given | {"method": "steps"}) for X in Xs] for Z in Zs])
    assert (alone > steps + 1e-9).any()  # equal z matter here
    assert dropdtw.pairwise(Zs, Xs, **given) == approx(alone, rel=1e-12)
    if drop_z != "percentile:60":  # `nearest` takes no rules
        near = dropdtw.nearest(Zs[0], Xs, k=2, **given)
        assert near.costs == approx(np.sort(alone[0])[:2], rel=1e-12)


@pytest.mark.parametrize("drops_z", [False, True])
@pytest.mark.parametrize("ids", NAMES)
def test_ids_say_which_z_are_the_same(ids, drops_z, executor):
    for N in (1, 2, 4, 5):
        C, d_x, d_z = costs(ids, N, seed=N)
        if not drops_z and len(ids) > N:
            continue
        given = {"drop_x": d_x, "drop_z": d_z if drops_z else None, "method": "ctc", "ids": ids}
        check(C, given, oracle.alignments(C, d_x, d_z if drops_z else None, method="ctc", ids=ids), executor)


WALKS = {
    "a list": ([2, 0, 1], [[2, 0, 1]]),
    "any order": (orders.any_order(0, 1, 2), [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]),
    "one of": ([0, orders.one_of(1, 2), 3], [[0, 1, 3], [0, 2, 3]]),
    "one of two lists": (orders.one_of([0, 1], [2, 3, 0]), [[0, 1], [2, 3, 0]]),
    "a part in any order": ([orders.any_order(0, [1, 2]), 3], [[0, 1, 2, 3], [1, 0, 2, 3], [1, 2, 0, 3]]),
    "a repeated step": ([0, 1, 0], [[0, 1, 0]]),
    "walks": (
        orders.walks([0, 1, 2], [(0, 1), (1, 2), (0, 2), (2, 3), (1, 3)], [3]), [[0, 1, 2], [0, 2], [1, 2]]
    ),
}  # fmt: skip


@pytest.mark.parametrize("ids", ["aaaa", "abab", "aabb", "abcd", "abba"])
@pytest.mark.parametrize("name", WALKS)
def test_equal_z_that_an_order_puts_in_a_row_need_a_dropped_x(name, ids, executor):
    order, walks = WALKS[name]
    K = 1 + max(map(max, walks))
    C, d_x, _ = costs(range(K), 5)
    every = []
    for walk in walks:
        for rows, cost in oracle.alignments(C[walk], d_x, method="ctc", ids=[ids[i] for i in walk]):
            M = np.zeros(C.shape, bool)
            np.logical_or.at(M, walk, rows)
            every.append((M, cost))
    check(C, {"drop_x": d_x, "method": "ctc", "ids": list(ids[:K]), "order": order}, every, executor)


@pytest.mark.parametrize("tokens", [[1, 2, 3], [1, 1, 2], [2, 2, 2]])
def test_with_skips_and_garbage_forbidden_it_is_the_loss_of_pytorch(tokens):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    p = torch.randn(9, 4, dtype=torch.float64).log_softmax(-1)
    wanted = torch.nn.functional.ctc_loss(
        p[:, None], torch.tensor([tokens]), torch.tensor([9]), torch.tensor([len(tokens)]), reduction="sum"
    )
    C, blank = -p.numpy()[:, tokens].T, -p.numpy()[:, 0]
    for drop_z in (None, np.inf):
        found = dropdtw.cost(C, blank, drop_z, method="ctc", ids=tokens, reducer="soft")
        assert found == approx(float(wanted), abs=1e-12)
    assert found == dropdtw.cost(C, blank, drop_z, method="ctc", reducer="soft")  # equal rows are equal tokens


def test_equal_rows_of_sequences_are_the_same_z():
    Z, X = [[0.0], [1.0], [1.0]], [[0.1], [1.1], [0.9], [1.2]]
    a = dropdtw.align(Z, X, 0.5, method="ctc")
    assert a.labels.tolist() == [0, 1, -1, 2]
    assert dropdtw.align(Z, X, 0.5, method="ctc", ids=[0, 1, 2]).dropped_x.sum() == 0
    assert dropdtw.align(Z, X, 0.5, method="steps").dropped_x.sum() == 0
    both = [np.array(Z), np.array(Z[:2])]
    assert dropdtw.pairwise(both, [np.array(X)], 0.5, 0.7, method="ctc")[:, 0].tolist() == [
        dropdtw.distance(each, X, 0.5, 0.7, method="ctc") for each in both
    ]


@pytest.mark.parametrize("drop_z", [None, 0.6])
def test_samples_follow_the_posterior(drop_z):
    ids = ["a", "b", "b"]
    C, d_x, _ = costs(ids, 6)
    p = dropdtw.posterior(C, drop_x=d_x, drop_z=drop_z, method="ctc", ids=ids)
    drawn = p.sample(3000, seed=0)
    assert np.mean([a.M for a in drawn], axis=0) == approx(p.match, abs=0.04)
    assert np.mean([a.dropped_z for a in drawn], axis=0) == approx(p.drop_z, abs=0.04)
    assert all((a.paid_z == a.dropped_z).all() for a in drawn[:50])
    assert np.mean([a.cost for a in drawn]) == approx(p.expected_cost, abs=0.1)


@pytest.mark.parametrize("given", [{}, {"drop_z": [0.1, 0.2, np.inf]}, {"order": orders.any_order(0, 1, 2)}])
def test_alignments_are_written_read_and_explained(given):
    ids = ["a", "b", "b"]
    C, d_x, _ = costs(ids, 6)
    a = dropdtw.solve(C, d_x, method="ctc", ids=ids, **given)
    same = dropdtw.Alignment.from_dict(json.loads(json.dumps(a.to_dict(costs=True))))
    assert same.rescore() == approx(a.cost, abs=1e-12)
    assert same.posterior().match == approx(a.posterior().match, abs=1e-12)
    for j in range(6):
        assert a.explain(j).margin >= 0
        assert same.explain(j).margin == approx(a.explain(j).margin, abs=1e-12)


def test_an_aligner_keeps_ids():
    aligner = dropdtw.Aligner(0.5, method="ctc", ids=np.array([0, 1, 1]))
    assert aligner == dropdtw.Aligner(0.5, method="ctc", ids=[0, 1, 1])
    assert dropdtw.Aligner.from_dict(json.loads(json.dumps(aligner.to_dict()))) == aligner


def test_missing_elements_take_their_ids_along():
    Z, X = [0.0, np.nan, 0.0], [0.0, 0.1, 0.2, 0.3]
    given = {"drop_x": 0.5, "method": "ctc", "missing": "drop"}
    assert dropdtw.align(Z, X, **given, ids=["a", "b", "a"]).dropped_x.sum() == 1
    assert dropdtw.align(Z, X, **given, ids=["a", "b", "c"]).dropped_x.sum() == 0


def test_a_window_limits_matches_beside_drops_of_z():
    ids = ["a", "a", "b", "a"]
    C, d_x, d_z = costs(ids, 6)
    given = {"drop_x": d_x, "drop_z": d_z, "method": "ctc", "ids": ids}
    every = oracle.alignments(C, d_x, d_z, method="ctc", ids=ids, band=oracle.band(4, 6, 1))
    check(C, given | {"window": 1}, every, None)


def test_paths_are_normalized_by_matches_and_drops():
    C = np.array([[0.0, 5.0, 5.0], [9.0, 9.0, 9.0]])
    found = dropdtw.cost(C, 1.0, 2.0, method="ctc", normalize="path")
    assert found == approx((0 + 1 + 1 + 2) / 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ids": ["a"]}, r"ids is \['a'\], but Z has 3 elements; give one per element of Z"),
        ({"ids": [{}, {}, {}]}, "give one number or string per element of Z"),
        ({"ids": [1, 2, 3], "method": "steps"}, r"ids is \[1, 2, 3\], which 'steps' does not take; .* use 'ctc'"),
        ({"order": orders.repeat([0, 1, 2])}, "'ctc' supports no repeats and jumps"),
        ({"order": [2, 1, 0], "drop_z": 0.5}, "drop_z is 0.5, which method 'ctc' combines with a list only"),
        ({"ids": [1, 1, 1], "drop_x": None}, "alignment is forbidden"),
    ],
)
def test_errors_say_what_to_do(given, message):
    C, d_x, _ = costs(range(3), 4)
    with pytest.raises(ValueError, match=message):
        dropdtw.solve(C, **({"drop_x": d_x, "method": "ctc"} | given))


def test_probabilities_of_precedence_are_refused():
    C, d_x, _ = costs(range(2), 4)
    with pytest.raises(ValueError, match=r"'ctc' does not support `before`.*sample"):
        _ = dropdtw.posterior(C, drop_x=d_x, method="ctc").before


def test_streams_are_refused():
    with pytest.raises(ValueError, match="'ctc' needs all of X"):
        dropdtw.Online(np.eye(3), 0.5, method="ctc")
