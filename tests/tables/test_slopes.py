"""Step patterns that drop: their laws. `test_methods.py` compares them with the oracle."""

import numpy as np
import pytest
from pytest import approx

import dropdtw

PATTERNS = {"symmetric2": np.inf, "symmetricP05": 3, "symmetricP1": 2, "symmetricP2": 1.5}
every_pattern = pytest.mark.parametrize("pattern", PATTERNS)


@every_pattern
@pytest.mark.parametrize("sides", [(0.6, None), (None, 0.6), (0.6, 0.7)])
def test_what_is_left_is_aligned_by_the_pattern(pattern, sides):
    rng = np.random.default_rng(0)
    dropped = 0
    for K, N in [(12, 9), (9, 12), (20, 20)]:
        C = rng.random((K, N))
        a = dropdtw.solve(C, *sides, open_x=0.1 if sides[0] else 0, method=pattern)
        left = C[~a.dropped_z][:, ~a.dropped_x]
        runs = (np.diff(np.r_[False, a.dropped_x].astype(int)) == 1).sum() if sides[0] else 0
        paid = (sides[0] or 0) * a.dropped_x.sum() + (sides[1] or 0) * a.dropped_z.sum() + 0.1 * runs
        assert a.cost == approx(dropdtw.cost(left, method=pattern) + paid)
        dropped += a.dropped_x.sum() + a.dropped_z.sum()
    assert dropped > 0


@every_pattern
def test_drops_that_cost_too_much_change_nothing(pattern):
    C = np.random.default_rng(1).random((20, 22))
    plain = dropdtw.solve(C, method=pattern)
    a = dropdtw.solve(C, 99, 99, method=pattern)
    assert (a.cost, a.pairs.tolist()) == (approx(plain.cost), plain.pairs.tolist())


def test_steeper_slopes_never_cost_less():
    C = np.random.default_rng(2).random((30, 30))
    costs = [dropdtw.cost(C, 0.8, 0.8, method=pattern) for pattern in PATTERNS]
    assert costs == sorted(costs)
    assert len(set(costs)) == 4


@pytest.mark.parametrize(("pattern", "most"), list(PATTERNS.items())[1:])
def test_lengths_that_no_path_fits_need_drops(pattern, most):
    K = 13
    N = int(most * (K - 1)) + 2
    with pytest.raises(ValueError, match=r"or drop costs"):
        dropdtw.cost(np.zeros((K, N)), method=pattern)
    assert dropdtw.cost(np.zeros((K, N - 1)), method=pattern) == 0
    assert dropdtw.solve(np.zeros((K, N)), drop_x=1, method=pattern).dropped_x.sum() == 1


def test_values_with_drops_have_no_pattern_to_divide_by():
    with pytest.raises(ValueError, match="differ in total weight; leave drop_x and drop_z out"):
        dropdtw.cost(np.zeros((3, 3)), 1, method="symmetricP1", normalize="pattern")
    with pytest.raises(ValueError, match="takes no warp penalty"):
        dropdtw.cost(np.zeros((3, 3)), 1, method="symmetricP1", warp=1)
    with pytest.raises(ValueError, match="takes no drop costs"):
        dropdtw.cost(np.zeros((3, 3)), 1, method="asymmetricP1")


@every_pattern
def test_retrieval_and_training_take_them(pattern):
    rng = np.random.default_rng(3)
    many, options = [rng.normal(size=(n, 3)) for n in (12, 14, 15, 13)], {"drop_x": 1.5, "drop_z": 1.5, "open_x": 0.5}
    pairs = dropdtw.pairwise(many, method=pattern, **options)
    found = dropdtw.nearest(many[0] + 0.1, many, 2, method=pattern, **options)
    exact = [dropdtw.distance(many[0] + 0.1, X, method=pattern, **options) for X in many]
    assert pairs == approx(np.array([[dropdtw.distance(Z, X, method=pattern, **options) for X in many] for Z in many]))
    assert found.costs == approx(np.sort(exact)[:2])
    torch = pytest.importorskip("torch")
    from dropdtw.torch import drop_dtw

    C = torch.tensor(rng.random((1, 6, 7)), requires_grad=True)
    value = drop_dtw(C, 0.6, 0.7, method=pattern, reducer="soft", gamma=0.2)
    value.sum().backward()
    p = dropdtw.posterior(C.detach().numpy()[0], drop_x=0.6, drop_z=0.7, method=pattern, gamma=0.2)
    assert value.item() == approx(p.cost)
    assert (C.grad.numpy()[0] > 0).sum() == (p.match > 0).sum()
