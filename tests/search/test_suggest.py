"""A suggested drop cost is close to the best one where the truth is known, and its confidence is honest."""

import numpy as np
import pytest

import dropdtw
from dropdtw.drops import MAX_SAMPLED, otsu

STEPS = {"many_to_one": False, "contiguous": True}


def recording(junk, noise=0.8, K=6, N=120, d=32, seed=0, zjunk=0):
    """Steps, frames that show them with junk in between, and the true labels."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(K, d))
    shown = np.arange(zjunk, K)
    signal = round((1 - junk) * N)
    lengths = np.diff(np.r_[0, np.sort(rng.choice(np.arange(1, signal), len(shown) - 1, replace=False)), signal])
    gaps = np.bincount(rng.integers(0, len(shown) + 1, N - signal), minlength=len(shown) + 1)
    truth = np.concatenate(
        [np.r_[np.full(g, -1), np.full(n, k)] for g, n, k in zip(gaps, lengths, shown, strict=False)]
        + [np.full(gaps[-1], -1)]
    )
    noisy = rng.normal(size=(N, d))
    return Z, np.where(truth[:, None] >= 0, Z[truth] + noise * noisy, noisy), truth


def accuracy(Z, X, truth, drop, drop_z=None):
    return float((dropdtw.align(Z, X, drop, drop_z, **STEPS).labels == truth).mean())


@pytest.mark.parametrize("junk", [0.0, 0.2, 0.5, 0.8, 0.93])
@pytest.mark.parametrize("K", [2, 6, 16])
def test_is_nearly_as_good_as_the_best_percentile(junk, K):
    Z, X, truth = recording(junk, K=K, N=240)
    best = max(accuracy(Z, X, truth, f"percentile:{p}") for p in (1, 2, 3, 5, 8, 12, 18, 25, 35, 50, 70))
    found = dropdtw.suggest_drop(Z, X, **STEPS)
    assert accuracy(Z, X, truth, found.constant) > best - 0.03
    assert accuracy(Z, X, truth, found.rule) == pytest.approx(accuracy(Z, X, truth, found.constant), abs=0.02)


def test_no_fixed_percentile_does_as_well():
    cases = [recording(junk, K=K, N=240, seed=3) for junk in (0.0, 0.5, 0.9) for K in (4, 16)]
    fixed = max(np.mean([accuracy(*c, f"percentile:{p}") for c in cases]) for p in (2, 5, 10, 15, 20, 30))
    ours = np.mean([accuracy(*c, dropdtw.suggest_drop(*c[:2], **STEPS).constant) for c in cases])
    assert ours > fixed + 0.01


def test_both_sides_can_share_the_cost():
    Z, X, truth = recording(0.5, zjunk=2)
    d = dropdtw.suggest_drop(Z, X, drop_z=True, **STEPS).constant
    a = dropdtw.align(Z, X, d, d, **STEPS)
    assert (a.labels == truth).mean() > 0.95


@pytest.mark.parametrize("scale", [2.0**-40, 2.0**-10, 2.0**30])
def test_scaling_all_costs_scales_the_suggestion(scale):
    """The unit of the costs does not matter; powers of two scale without rounding."""
    Z, X, _ = recording(0.5, d=3)
    C = ((Z[:, None] - X[None]) ** 2).sum(axis=-1)
    found, scaled = (dropdtw.solve(costs, "suggest", open_x="suggest", **STEPS) for costs in (C, C * scale))
    assert scaled.cost == found.cost * scale
    np.testing.assert_array_equal(scaled.labels, found.labels)
    series = [X[:60], X[40:100], X[30:]]
    options = {"match": "sqeuclidean", "drop_x": "suggest", "open_x": "suggest", "executor": None}
    root = float(np.sqrt(scale))
    plain, rescaled = (dropdtw.pairwise([f * s for s in series], **options) for f in (1.0, root))
    np.testing.assert_allclose(rescaled, plain * scale, rtol=1e-12)


def test_confidence_falls_with_the_evidence():
    sure = [dropdtw.suggest_drop(*recording(0.5, noise)[:2], **STEPS).confidence for noise in (0.2, 1.0, 2.5)]
    assert sure[0] > 0.8 > sure[1] > sure[2]
    rng = np.random.default_rng(0)
    assert dropdtw.suggest_drop(rng.normal(size=(8, 16)), rng.normal(size=(100, 16))).confidence < 0.4


def test_few_elements_are_never_sure():
    assert dropdtw.suggest_drop([[0.1, 0.9]]).confidence < 0.3


def test_costs_and_sequences_answer_alike():
    Z, X, _ = recording(0.4)
    assert dropdtw.suggest_drop(dropdtw.costs.cosine(Z, X)) == dropdtw.suggest_drop(Z, X)


def test_scaling_the_costs_scales_the_cost_alone():
    C = dropdtw.costs.cosine(*recording(0.4)[:2])
    one, ten = dropdtw.suggest_drop(C), dropdtw.suggest_drop(10 * C)
    assert ten.constant == pytest.approx(10 * one.constant)
    assert (ten.percentile, ten.confidence) == pytest.approx((one.percentile, one.confidence))


def test_percentile_means_the_same_as_the_constant():
    C = dropdtw.costs.cosine(*recording(0.4)[:2])
    found = dropdtw.suggest_drop(C)
    assert found.percentile == pytest.approx(100 * (found.constant >= C).mean(), abs=0.01)
    assert found.rule == f"percentile:{found.percentile:g}"


def test_warped_signals_keep_what_follows_the_query():
    t = np.linspace(0, 12, 60)
    Z = np.stack([np.sin(t), np.cos(1.3 * t)], axis=1)
    X = np.insert(np.repeat(Z, 2, axis=0), 50, np.full((20, 2), 4.0), axis=0)
    found = dropdtw.suggest_drop(Z, X, match="euclidean")
    a = dropdtw.align(Z, X, found.constant, match="euclidean")
    assert a.dropped_x.tolist() == [50 <= j < 70 for j in range(len(X))]


def test_neighbors_on_a_smooth_signal_do_not_compete():
    rng = np.random.default_rng(0)
    Z = np.cumsum(rng.normal(size=(100, 2)), axis=0)
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    X = Z + 0.3 * rng.normal(size=Z.shape)
    found = dropdtw.suggest_drop(Z, X, match="euclidean")
    assert dropdtw.align(Z, X, found.constant, match="euclidean").dropped_x.mean() < 0.1


def test_forbidden_and_windowed_pairs_have_no_say():
    C = dropdtw.costs.cosine(*recording(0.4, K=6, N=60)[:2])
    hidden = C.copy()
    i, j = np.indices(C.shape)
    hidden[abs(j - i * 59 / 5) > 12] = np.inf
    assert dropdtw.suggest_drop(C, window=12, drop_z=True) == dropdtw.suggest_drop(hidden, drop_z=True)


def test_where_not_every_z_fits_it_answers_all_the_same():
    C = np.random.default_rng(0).random((9, 5))
    assert np.isfinite(dropdtw.suggest_drop(C, many_to_one=False).constant)


def test_long_sequences_are_sampled():
    Z, X, truth = recording(0.5, K=6, N=6000)
    X, truth = np.repeat(X, 150, axis=0), np.repeat(truth, 150)
    assert len(Z) * len(X) > MAX_SAMPLED
    some = dropdtw.suggest_drop(Z, X)
    assert some.constant == pytest.approx(dropdtw.suggest_drop(Z, X[::150]).constant, abs=0.03)


def test_nothing_to_tell_apart():
    found = dropdtw.suggest_drop(np.full((3, 8), 0.5))
    assert (found.constant, found.percentile, found.confidence) == (0.5, 100.0, 0.0)
    assert "equally well" in found.why


def test_everything_forbidden():
    with pytest.raises(ValueError, match="every match is forbidden"):
        dropdtw.suggest_drop(np.full((3, 8), np.inf))


def test_reasons_name_both_groups():
    why = dropdtw.suggest_drop(*recording(0.5, 0.2)[:2]).why
    assert "good matches cost about" in why
    assert "the two groups are clearly separated" in why


def test_otsu_splits_where_variance_within_is_least():
    v = np.random.default_rng(0).normal(size=40)
    threshold, explained = otsu(v)
    within = [v[v <= t].var() * (v <= t).sum() + v[v > t].var() * (v > t).sum() for t in np.sort(v)[:-1]]
    ours = v[v <= threshold].var() * (v <= threshold).sum() + v[v > threshold].var() * (v > threshold).sum()
    assert ours == pytest.approx(min(within))
    assert explained == pytest.approx(1 - min(within) / (v.var() * len(v)))


def test_missing_elements_are_left_out():
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(4, 3)), rng.normal(size=(12, 3))
    holed = np.insert(X, [2, 7], np.nan, axis=0)
    assert dropdtw.suggest_drop(Z, holed, missing="drop") == dropdtw.suggest_drop(Z, X)
    assert dropdtw.Aligner(missing="drop").suggest(Z, holed) == dropdtw.suggest_drop(Z, X)
    with pytest.raises(ValueError, match=r"X has NaN .* or give missing='drop' to leave out those with NaN"):
        dropdtw.suggest_drop(Z, holed)
