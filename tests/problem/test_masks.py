"""Masks: False is equivalent to +∞ in C, for every function; a mask in the form of a band becomes a band."""

import numpy as np
import pytest
from pytest import approx

import dropdtw
from dropdtw import orders, windows
from dropdtw.problem.band import limits_of

REQUESTS = {
    "drop_dtw": {"drop_x": 0.4},
    "both sides": {"drop_x": 0.4, "drop_z": 0.3},
    "percentile": {"drop_x": "percentile:40", "drop_z": 0.5},
    "suggest": {"drop_x": "suggest", "drop_z": "suggest"},
    "of a vector": {"drop_x": np.linspace(0.2, 0.6, 9), "drop_z": 0.5},
    "opening": {"drop_x": 0.2, "drop_z": 0.2, "open_x": 0.3, "open_z": "suggest"},
    "dtw": {"method": "dtw"},
    "subsequence": {"method": "subsequence"},
    "needleman_wunsch": {"drop_x": 0.3, "drop_z": 0.3, "method": "needleman_wunsch"},
    "lcss": {"method": "lcss", "threshold": "percentile:50"},
    "greedy": {"drop_x": 0.3, "drop_z": 0.3, "method": "greedy"},
    "only z": {"drop_z": 0.3},
    "any order": {"drop_x": 0.3, "order": orders.any_order(*range(6))},
}
every_request = pytest.mark.parametrize("options", [pytest.param(v, id=k) for k, v in REQUESTS.items()])
K, N = 6, 9


def masks():
    """Bands, masks that are not bands, and one with an empty row and column."""
    rng = np.random.default_rng(0)
    yield windows.sakoe_chiba(K, N, 1, kind="tslearn")
    yield windows.sakoe_chiba(K, N, 0.5, kind="aeon")
    yield windows.itakura(K, N)
    yield rng.random((K, N)) < 0.8
    holed = rng.random((K, N)) < 0.9
    holed[2], holed[:, 5] = False, False
    yield holed
    yield np.ones((K, N), bool)


def solved(door, *given, **options):
    """The alignment; None if every alignment is forbidden, after checking the error."""
    if np.isfinite((dropdtw.distance if door is dropdtw.align else dropdtw.cost)(*given, **options)):
        return door(*given, **options)
    with pytest.raises(ValueError, match="fits into this mask" if "mask" in options else "alignment is forbidden"):
        door(*given, **options)
    return None


@every_request
def test_a_mask_is_infinity_in_the_match_costs(options, executor):
    rng = np.random.default_rng(1)
    for mask in masks():
        C = rng.random((K, N))
        by_hand = np.where(mask, C, np.inf)
        told = {**options, "executor": executor}
        value = dropdtw.cost(C, **told, mask=mask)
        assert value == approx(dropdtw.cost(by_hand, **told))
        a, b = solved(dropdtw.solve, C, **told, mask=mask), solved(dropdtw.solve, by_hand, **told)
        assert (a is None) == (b is None) == np.isinf(value)
        if a is not None:
            assert a.pairs.tolist() == b.pairs.tolist()
            assert a.cost == approx(value) == approx(a.rescore())
            assert mask[tuple(a.pairs.T)].all()
            again = dropdtw.Alignment.from_dict(a.to_dict(costs=True))
            assert again.rescore() == approx(a.cost)
            p, q = (dropdtw.posterior(D, **told, gamma=0.3, **more) for D, more in ((C, {"mask": mask}), (by_hand, {})))
            np.testing.assert_allclose(p.match, q.match, atol=1e-12)
            assert not p.match[~mask].any()


@every_request
def test_sequences_take_masks_as_match_costs_do(options, executor):
    rng = np.random.default_rng(2)
    for mask in masks():
        Z, X = rng.normal(size=(K, 3)), rng.normal(size=(N, 3))
        told = {**options, "mask": mask, "executor": executor}
        C = dropdtw.costs.sqeuclidean(Z, X)
        assert dropdtw.distance(Z, X, match="sqeuclidean", **told) == approx(dropdtw.cost(C, **told))
        a = solved(dropdtw.align, Z, X, match="sqeuclidean", **told)
        if a is not None:
            assert a.pairs.tolist() == dropdtw.solve(C, **told).pairs.tolist()
            assert a.cost == approx(a.rescore())


@pytest.mark.parametrize("width", [0, 1, 3, 0.3, 1.0])
def test_a_window_is_the_mask_of_its_cells(width, executor):
    rng = np.random.default_rng(3)
    for k, n in ((6, 9), (9, 6), (7, 7), (1, 4)):
        C = rng.random((k, n))
        told = {"drop_x": 0.4, "drop_z": 0.4, "executor": executor}
        mask = windows.sakoe_chiba(k, n, width)
        assert dropdtw.cost(C, **told, window=width) == dropdtw.cost(C, **told, mask=mask)
        random = rng.random((k, n)) < 0.7
        for other in (random, windows.sakoe_chiba(k, n, 1, kind="tslearn")):
            both = dropdtw.cost(C, **told, window=width, mask=other)
            assert both == approx(dropdtw.cost(C, **told, mask=mask & other))


def test_masks_that_are_bands_are_told_from_others():
    for mask in masks():
        limits = limits_of(mask)
        j = np.arange(N)
        if limits is not None:
            start, stop = (limit[:, None] for limit in limits)
            np.testing.assert_array_equal((start <= j) & (j < stop), mask)
            assert (np.diff(limits) >= 0).all()
    bands = [limits_of(mask) is not None for mask in masks()]
    assert bands == [True, True, True, False, False, True]
    falling = np.tri(4, 4, dtype=bool)[::-1]  # unbroken rows, but the stop decreases
    assert limits_of(falling) is None


def test_a_band_leaves_the_match_costs_uncomputed():
    Z, X = np.random.default_rng(4).normal(size=(2, 50, 2))
    near = windows.sakoe_chiba(50, 50, 5, kind="tslearn")
    told = {"drop_x": 0.5, "drop_z": 0.5, "match": "euclidean"}
    assert dropdtw.align(Z, X, **told, mask=near).problem.costs.match.sequences is not None
    assert dropdtw.align(Z, X, **told, mask=~near).problem.costs.match.sequences is None


def test_masks_are_not_kept_by_reference_in_a_result():
    C = np.random.default_rng(5).random((5, 8))
    mask = np.random.default_rng(6).random((5, 8)) < 0.8
    a = dropdtw.solve(C, 0.3, 0.3, mask=mask)
    cost = a.rescore()
    mask[:] = False
    assert a.rescore() == cost
