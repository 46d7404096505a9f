"""Anchors: against the list of all alignments that contain them, their laws, and what is refused."""

import json
import pickle

import numpy as np
import pytest
from pytest import approx

import dropdtw
import oracle
from dropdtw import orders

METHODS = {
    "drop_dtw": {},
    "one to one": {"method": "drop_dtw", "one_to_many": False, "many_to_one": False},
    "contiguous": {"method": "drop_dtw", "contiguous": True},
    "steps": {"method": "steps"},
    "ctc": {"method": "ctc"},
    "dtw": {"method": "dtw", "warp": 0.2},
    "subsequence": {"method": "subsequence"},
    "needleman_wunsch": {"method": "needleman_wunsch"},
    "lcss": {"method": "lcss", "threshold": 0.6},
    "greedy": {"method": "greedy"},
}
SIDES = [(True, True), (True, False), (False, True), (False, False)]


def problems(name, sides, seed):
    """Small problems with one or two anchors that do not cross, and all alignments that contain them."""
    rng = np.random.default_rng(seed)
    options = {"method": "drop_dtw"} | METHODS[name]
    entry = dropdtw.METHODS[options["method"]]
    for K, N in [(1, 1), (1, 4), (2, 3), (3, 3), (3, 5), (4, 3)]:
        C, d_x, d_z = rng.normal(size=(K, N)), rng.random(N), rng.random(K)
        drops = {"d_x": d_x if sides[0] and entry.takes_drops else None, "d_z": d_z if sides[1] else None}
        drops["d_z"] = drops["d_z"] if entry.takes_drops and not entry.takes_ids else None
        charges = {"open_x": 0.3} if drops["d_x"] is not None and entry.takes_opening else {}
        ids = {"ids": rng.integers(0, 2, K).tolist()} if entry.takes_ids else {}
        every = oracle.alignments(C, **drops, **options, **charges, **ids)
        first = int(rng.integers(0, K)), int(rng.integers(0, N))
        second = int(rng.integers(first[0], K)), int(rng.integers(first[1], N))
        for anchors in ([first], [second, first]):
            given = {"drop_x": drops["d_x"], "drop_z": drops["d_z"], "anchors": anchors, **options, **charges, **ids}
            yield C, given, [(M, cost) for M, cost in every if all(M[pair] for pair in anchors)]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("seeds", [(0, 1), pytest.param((2, 3), marks=pytest.mark.exhaustive)])
def test_only_alignments_with_all_anchors_count(name, sides, seeds, executor):
    some = 0
    for seed in seeds:
        for C, given, found in problems(name, sides, seed):
            given = given | {"executor": executor}
            if not found:
                with pytest.raises(ValueError, match=r"anchors|forbidden|cannot each"):
                    dropdtw.solve(C, **given)
                with pytest.raises(ValueError, match=r"anchors|forbidden|cannot each"):
                    dropdtw.cost(C, **given)
                continue
            some += 1
            costs = np.array([cost for _, cost in found])
            a = dropdtw.solve(C, **given)
            assert a.cost == approx(costs.min())
            assert a.rescore() == approx(costs.min())
            assert any(np.array_equal(a.M, M) and cost == approx(costs.min()) for M, cost in found)
            assert dropdtw.cost(C, **given) == approx(costs.min())
            low = costs.min()
            soft = low - 0.4 * np.log(np.exp((low - costs) / 0.4).sum())
            assert dropdtw.cost(C, reducer="soft", gamma=0.4, **given) == approx(soft)
            p = dropdtw.posterior(C, gamma=0.4, **given)
            share = np.exp((soft - costs) / 0.4)
            assert p.match == approx(np.einsum("n,nij->ij", share, np.array([M for M, _ in found])), abs=1e-9)
            assert p.drop_x == approx(share @ np.array([~M.any(0) for M, _ in found]), abs=1e-9)
            for draw in p.sample(3, seed=0):
                assert any(np.array_equal(draw.M, M) and draw.cost == approx(cost) for M, cost in found)
    assert some > 2


def test_anchors_on_the_best_path_change_nothing():
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(30, 3)), rng.normal(size=(50, 3))
    for options in ({"drop_x": 1.5, "drop_z": 1.0, "open_x": 0.5}, {"window": 30}, {"drop_x": "percentile:20"}):
        a = dropdtw.align(Z, X, **options)
        anchors = a.pairs[:: len(a.pairs) // 4].tolist()
        b = dropdtw.align(Z, X, anchors=anchors, **options)
        assert b.cost == approx(a.cost)
        assert b.pairs.tolist() == a.pairs.tolist()
        assert dropdtw.distance(Z, X, anchors=anchors, **options) == approx(a.cost)
    elsewhere = dropdtw.align(Z, X, 1.5, anchors=[(0, 25)])
    assert elsewhere.labels[25] == 0
    assert elsewhere.cost > dropdtw.distance(Z, X, 1.5)


def test_more_anchors_never_cost_less():
    C = np.random.default_rng(1).random((10, 20))
    pairs = [(2, 4), (2, 9), (6, 9), (8, 15)]
    costs = [dropdtw.cost(C, 0.3, 0.3, anchors=pairs[:n]) for n in range(5)]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]


def test_smooth_minima_are_taken_piece_by_piece():
    C = np.random.default_rng(2).random((4, 6))
    whole = dropdtw.cost(C, 0.3, anchors=[(1, 2)], reducer="smooth", gamma=0.3)
    above, below = C[:2, :3], C[1:, 2:]
    d = np.full(6, 0.3)
    parts = dropdtw.cost(above, np.r_[d[:2], np.inf], reducer="smooth", gamma=0.3)
    parts += dropdtw.cost(below, np.r_[np.inf, d[3:]], reducer="smooth", gamma=0.3)
    assert whole == approx(parts - C[1, 2])


def test_an_alignment_keeps_its_anchors():
    C = np.random.default_rng(3).random((4, 9))
    a = dropdtw.solve(C, 0.3, 0.3, anchors=[(1, 5)])
    again = dropdtw.Alignment.from_dict(json.loads(json.dumps(a.to_dict(costs=True))))
    for b in (again, pickle.loads(pickle.dumps(a))):
        assert b.problem.anchors == ((1, 5),)
        assert b.explain(2).alternative_cost == approx(a.explain(2).alternative_cost)
    assert 1 in a.explain(5).matched
    for j in range(9):
        assert a.explain(j).margin >= -1e-12
    data = a.to_dict(costs=True)
    data["problem"]["anchors"] = [[4, 0]]
    with pytest.raises(ValueError, match="anchors do not lie in its shape"):
        dropdtw.Alignment.from_dict(data)
    aligner = dropdtw.Aligner(0.3, anchors=[(2, 3), np.array([1, 1])])
    assert dropdtw.Aligner.from_dict(json.loads(json.dumps(aligner.to_dict()))) == aligner
    assert aligner.anchors == ((1, 1), (2, 3))


def test_anchors_count_the_elements_that_are_given():
    Z, X = [0.0, np.nan, 1.0, 2.0], [5.0, 0.0, np.nan, 1.0, 1.0, 2.0]
    a = dropdtw.align(Z, X, 0.5, missing="drop", anchors=[(2, 4)])
    assert a.labels[4] == 2
    for pair in ((1, 1), (2, 2)):
        with pytest.raises(ValueError, match=rf"but z_{pair[0]} or x_{pair[1]} is missing; remove it"):
            dropdtw.align(Z, X, 0.5, missing="drop", anchors=[pair])


def test_anchors_count_seconds_too():
    C, times = np.random.default_rng(4).random((3, 8)), np.cumsum(np.arange(1.0, 9.0))
    a = dropdtw.solve(C, 0.2, anchors=[(1, 6)], times=times, per="second")
    assert a.labels[6] == 1
    assert a.rescore() == approx(a.cost)


def test_what_cannot_be_an_anchor_is_refused():
    C = np.zeros((3, 4))
    C[1, 1] = np.inf
    for anchors, options, says in (
        ([(0, 2), (1, 1)], {}, r"but \(0, 2\) and \(1, 1\) cross; remove one"),
        ([(3, 0)], {}, "but there are 3 z and 4 x; give indices"),
        ([(0, 4)], {}, "but there are 3 z and 4 x"),
        ([(1, 1)], {}, "but z_1 may not match x_1; allow this match"),
        ([(2, 0)], {"window": 1}, "but z_2 may not match x_0"),
        ([(0, 3)], {"mask": np.eye(3, 4, dtype=bool)}, "but z_0 may not match x_3"),
        ([(-1, 0)], {}, r"give a list of pairs \(i, j\)"),
        ([1, 2], {}, "give a list of pairs"),
        ([(0.5, 1)], {}, "give a list of pairs"),
        ([(True, 1)], {}, "give a list of pairs"),
        ([(0, 0)], {"order": orders.any_order(0, 1, 2)}, "the steps have an order that is no list; leave order out"),
        ([(0, 0)], {"method": "symmetricP1"}, "which 'symmetricP1' does not take; use 'drop_dtw'"),
        ([(0, 0)], {"method": "smith_waterman"}, "which 'smith_waterman' does not take"),
        ([(0, 0)], {"method": "ctc", "drop_z": 1}, "which 'ctc' takes without drop_z; leave drop_z out"),
        ([(2, 0)], {"method": "steps"}, r"no alignment leads from an end to \(2, 0\); move or remove an anchor"),
        ([(0, 1), (0, 2), (1, 2)], {"method": "steps"}, r"no alignment leads from \(0, 2\) to \(1, 2\)"),
    ):
        for verb in (dropdtw.solve, dropdtw.cost, dropdtw.posterior):
            with pytest.raises(ValueError, match=says):
                verb(C, drop_x=1, anchors=anchors, **options)
    for call in ("pairwise", "find"):
        with pytest.raises(ValueError, match=rf"anchors is \(\(0, 0\),\), which {call} cannot use"):
            getattr(dropdtw.Aligner(1, anchors=[(0, 0)]), call)([[1.0], [2.0]], [[1.0], [2.0]])
    assert dropdtw.Aligner(anchors=[]) == dropdtw.Aligner()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "how",
    [
        {"drop_x": 0.6, "drop_z": 0.5, "open_x": 0.2},
        {"drop_z": 0.5, "many_to_one": False, "window": 30},
        {"drop_x": "percentile:30", "method": "steps"},
        {"method": "dtw", "warp": 0.1, "window": 0.6},
        {"method": "needleman_wunsch", "drop_x": 0.4, "drop_z": 0.4, "match": "cosine"},
    ],
    ids=str,
)
def test_pieces_in_one_compiled_call_are_those_one_by_one(how, dtype, monkeypatch):
    cpu = pytest.importorskip("dropdtw.executors.cpu", reason="the compiled executor is not installed")
    rng = np.random.default_rng(5)
    Z, X = rng.normal(size=(24, 3)).astype(dtype), rng.normal(size=(40, 3)).astype(dtype)
    for anchors in ([(0, 0)], [(23, 39)], [(11, 19)], [(0, 0), (5, 9), (6, 12), (14, 24), (23, 39)]):
        aligner = dropdtw.Aligner(**how, anchors=anchors)
        found = []
        for at_once in (True, False):
            monkeypatch.setattr(cpu, "in_pieces", lambda costs, at_once=at_once: at_once)
            p = aligner.posterior(Z, X)
            a = aligner.align(Z, X)
            assert a.rescore() == approx(a.cost, rel=1e-5)
            soft = aligner.replace(reducer="soft", gamma=0.3).distance(Z, X)
            found.append((a.cost, soft, a.charged, a.pairs.tolist(), p.match, p.drop_x, p.drop_z))
        for one, other in zip(*found, strict=True):
            if isinstance(one, list):
                assert one == other
            else:
                assert np.asarray(one) == approx(np.asarray(other), rel=1e-4, abs=1e-5)


def test_symbols_are_cut_by_kernels_too():
    costs = {("A", "G"): 0.5, ("A", "T"): 1, ("A", "C"): 1, ("C", "G"): 1, ("C", "T"): 0.5, ("G", "T"): 1}
    for match in ("equal", costs):
        a, b = (
            dropdtw.align("GATTACA", "GCATTTACA", 0.7, 0.7, match=match, anchors=[(1, 2), (4, 6)], executor=executor)
            for executor in (None, "reference")
        )
        assert (a.cost, a.pairs.tolist()) == (approx(b.cost), b.pairs.tolist())
