"""The search: it is the library's alignment, in strips; runs are what it matched."""

import numpy as np
import pytest

import dropdtw
from dropdtw.executors import cpu
from dropdtw.media.features import Frames, frames_of_rows
from dropdtw.media.matching import ROWS, Stretch, level, match, merged, nearest_view, stretches, without_overlaps


def quiet(done, total):
    pass


def frames(views, d=4):
    n = len(views)
    silent = np.zeros(n, bool)
    return Frames(views.astype(np.float32), silent, np.zeros((n, d), np.float32), silent, 1, 1.0, float(n), 3)


def rows(seed, n, d=12):
    x = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("K", [1, 5, ROWS, 2 * ROWS + 3])
def test_cost_is_that_of_the_nearest_view(K):
    Z, X = (np.random.default_rng(n).normal(size=(n, d)).astype(np.float32) for n, d in ((K, 6), (7, 2)))
    views = np.stack([Z[:, k : k + 2] @ X.T for k in (0, 2, 4)])
    np.testing.assert_allclose(nearest_view(Z, X), 1 - views.max(axis=0), rtol=0, atol=1e-5)


@pytest.mark.parametrize("speed", [False, True])
def test_search_is_drop_dtw_with_opening_costs(speed):
    rng = np.random.default_rng(2)
    A, B = frames(rng.normal(size=(40, 12)) * 0.3), frames(rng.normal(size=(50, 12)) * 0.3)
    C = nearest_view(A.search, B.search[:, 4:8])
    options = {"warp": 1.0} if speed else {"one_to_many": False, "many_to_one": False}
    best = dropdtw.solve(C, 0.45, 0.45, open_x=0.5, open_z=0.5, **options)
    found = match(A, B, drop=0.45, opening=0.5, speed=speed, report=quiet)
    assert found.tolist() == best.pairs.tolist()
    assert len(found) > 1


def test_silence_that_both_have_is_no_reason_to_match():
    unit, silence = np.eye(5, dtype=np.float32), [0] * 30  # with another sound before and behind it
    A, B = unit[[*[1] * 9, *silence, *[2] * 9]], unit[[*[3] * 9, *silence, *[4] * 9]]
    for quiet_too, matched in ((False, 30), (True, 0)):
        sides = [Frames(x, still := quiet_too & (x[:, 0] > 0), x, still, 1, 1.0, float(len(x))) for x in (A, B)]
        assert len(match(*sides, drop=0.2, opening=1.0, speed=False, report=quiet)) == matched


def test_level_is_that_of_the_sounds_without_the_silence():
    unit = np.eye(3, dtype=np.float32)
    near = np.array([0.8, 0.6, 0], np.float32)
    A, B = unit[[0, 0, 2, 2, 2, 2]], np.stack([near, near, *unit[[2, 2, 2, 2]]])
    still = np.array([False, False, True, True, True, True])
    sides = [Frames(x, still, x, still, 1, 1.0, 6.0) for x in (A, B)]
    pairs = np.stack([np.arange(6)] * 2, axis=1)
    assert level(*sides, pairs, 0.5) == pytest.approx(0.2)
    assert level(*sides, pairs[2:], 0.5) == 0.0


def test_strips_find_what_the_whole_matrix_does(monkeypatch):
    x = rows(3, 400)
    A, B = frames_of_rows(x, 10.0), frames_of_rows(np.delete(x, range(100, 180), axis=0), 10.0)
    whole = match(A, B, drop=0.2, opening=5.0, speed=False, report=quiet)
    for name, value in (("STRIPS_FROM", 0), ("STRIP", 1), ("BUDGET", 1 << 10)):
        monkeypatch.setattr(cpu, name, value)
    calls = []
    strips = match(A, B, drop=0.2, opening=5.0, speed=False, report=lambda done, total: calls.append((done, total)))
    assert whole.tolist() == strips.tolist()
    assert stretches(strips, 1, False) == [Stretch(0, 100, 0, 100), Stretch(180, 400, 100, 320)]
    assert len(calls) > 1
    assert calls == sorted(calls)
    assert calls[-1][0] == calls[-1][1] > calls[-2][0] >= 400 * 320


def test_interrupt_leaves_the_search_at_once(monkeypatch):
    for name, value in (("STRIPS_FROM", 0), ("STRIP", 1)):
        monkeypatch.setattr(cpu, name, value)
    x = frames_of_rows(rows(4, 600), 10.0)
    calls = []

    def interrupt(done, total):
        calls.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        match(x, x, drop=0.2, opening=5.0, speed=False, report=interrupt)
    assert len(calls) == 1


def test_runs_are_cut_where_something_is_dropped():
    pairs = np.array([(0, 0), (1, 1), (2, 2), (5, 3), (6, 4), (7, 9)])
    assert stretches(pairs, 10, False) == [Stretch(0, 30, 0, 30), Stretch(50, 70, 30, 50), Stretch(70, 80, 90, 100)]
    assert stretches(np.zeros((0, 2), int), 10, False) == []


def path(n, place):
    """Pairs along a line, as an alignment goes: every frame of both, some of them twice."""
    pairs = [(0, 0)]
    for i in range(1, n):
        target = round(place(i))
        pairs += [(i, j) for j in range(min(pairs[-1][1] + 1, target), target + 1)]
    return np.array(pairs)


def test_straight_run_has_the_slope_of_its_path():
    (run,) = stretches(path(500, lambda i: 1.01 * i), 10, True)
    assert run.slope == pytest.approx(1.01, abs=2e-4)
    assert run.at(2500) == pytest.approx(2525, abs=6)


def test_bent_run_is_taken_for_two():
    found = stretches(path(1000, lambda i: max(i, 500 + 1.03 * (i - 500))), 10, True)
    assert len(found) > 1
    assert found[0].slope == pytest.approx(1.0, abs=2e-3)
    assert found[-1].slope == pytest.approx(1.03, abs=2e-3)


def test_run_of_one_repeated_frame_is_none():
    assert stretches(np.array([(3, 4), (3, 5), (3, 6)]), 10, True) == []


def test_runs_on_one_line_are_joined_and_others_are_not():
    first, gap, cut = Stretch(0, 100, 0, 100), Stretch(130, 200, 130, 200), Stretch(200, 300, 260, 360)
    assert merged([first, gap, cut], gap=50, shift=5) == [Stretch(0, 200, 0, 200), cut]
    assert merged([first, gap, cut], gap=20, shift=5) == [first, gap, cut]
    late = Stretch(130, 200, 150, 220)
    assert merged([first, late], gap=60, shift=5) == [first, late]


def test_short_run_does_not_bend_the_line_that_it_joins():
    long, behind, before = Stretch(100, 600, 100, 600), Stretch(610, 620, 600, 610), Stretch(80, 90, 90, 100)
    assert merged([long, behind], gap=50, shift=10) == [Stretch(100, 620, 100, 620)]
    assert merged([before, long], gap=50, shift=10) == [Stretch(80, 600, 80, 600)]
    assert merged([long, Stretch(610, 700, 600, 690)], gap=50, shift=10) == [Stretch(100, 700, 100, 690)]


def test_runs_that_overlap_are_cut_in_the_middle_and_others_stay():
    first, second, third = Stretch(0, 100, 0, 102), Stretch(98, 200, 100, 200), Stretch(210, 300, 205, 300)
    assert without_overlaps([first, second, third]) == [Stretch(0, 99, 0, 101), Stretch(99, 200, 101, 200), third]
