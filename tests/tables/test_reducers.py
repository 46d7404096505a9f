"""Minima and their derivatives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

import dropdtw
from dropdtw.tables.reducers import hard_min, reducer, smooth_min, soft_min

values = st.lists(
    st.one_of(st.floats(-50, 50), st.just(np.inf), st.integers(-2, 2).map(float)), min_size=1, max_size=6
).map(lambda v: np.array(v)[:, None])
gammas = st.floats(0.01, 10)
EVERY = [lambda g: hard_min, soft_min, smooth_min]


@given(values, gammas, st.sampled_from(EVERY))
def test_infinities_never_make_nan(v, gamma, make):
    fold = make(gamma)
    value, weights = fold.value(v), fold.weights(v)
    assert not np.isnan(value).any()
    assert not np.isnan(weights).any()
    assert (weights[np.isinf(v)] == 0).all()
    if np.isinf(v).all():
        assert value == np.inf
    else:
        assert weights.sum() == approx(1)


@given(values, gammas)
def test_order_of_the_minima(v, gamma):
    """Soft ≤ hard ≤ smooth, because −γ log Σ exp(−v/γ) ≤ min v ≤ any mean of v."""
    soft, hard, smooth = (float(make(gamma).value(v)[0]) for make in (soft_min, EVERY[0], smooth_min))
    if np.isfinite(hard):
        assert soft <= hard + 1e-9 <= smooth + 2e-9


@given(values)
def test_small_gamma_is_hard(v):
    v = np.round(v, 1)  # alternatives are equal, or 0.1 apart
    for make in (soft_min, smooth_min):
        assert make(1e-300).value(v) == approx(hard_min.value(v), abs=1e-9)
        assert make(1e-4).value(v) == approx(hard_min.value(v), abs=1e-3)
        assert make(0) is hard_min


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=5), st.floats(0.1, 10), st.sampled_from([soft_min, smooth_min]))
def test_weights_are_the_derivative(v, gamma, make):
    fold, v, h = make(gamma), np.array(v)[:, None], 1e-5
    step = np.eye(len(v)) * h
    slope = (fold.value(v + step) - fold.value(v - step)) / (2 * h)
    assert fold.weights(v)[:, 0] == approx(slope, abs=1e-6)


def test_first_of_equals_wins():
    v = np.array([[2.0, 1.0], [1.0, 1.0], [1.0, 3.0]])
    assert hard_min.weights(v).tolist() == [[0, 1], [1, 0], [0, 0]]


def test_cells_do_not_disturb_each_other():
    v = np.array([[1.0, 1e300, np.inf], [2.0, 1e300, np.inf]])
    for make in (soft_min, smooth_min):
        assert make(1.0).value(v)[0] == make(1.0).value(v[:, :1])[0]


def test_by_name():
    assert [reducer(n, 0.5).name for n in ("hard", "soft", "smooth")] == ["hard", "soft", "smooth"]
    with pytest.raises(ValueError, match="reducer is 'mean'; choose one of 'hard', 'soft', 'smooth'"):
        reducer("mean")


@pytest.mark.parametrize("gamma", [-1, np.nan, np.inf, "1", None, 1j])
def test_bad_gamma(gamma):
    for name in ("hard", "soft", "smooth"):
        with pytest.raises(ValueError, match=r"gamma is .*; give a finite number ≥ 0"):
            reducer(name, gamma)


@pytest.mark.parametrize("gamma", [1e38, 3.5e38, 1e300])
def test_a_huge_gamma_is_the_mean_in_single_precision_too(gamma, executor):
    C = np.random.default_rng(0).random((2, 3))
    single, double = (
        dropdtw.cost(A, 0.3, reducer="smooth", gamma=gamma, executor=executor) for A in (C.astype(np.float32), C)
    )
    assert single == pytest.approx(double, rel=1e-6)
