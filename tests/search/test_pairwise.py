"""All pairs at once: the same values as one by one, each pair once where order cannot matter, and a progress line."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import dropdtw
from dropdtw import distance, pairwise
from dropdtw.search.pairwise import thread_count, useful_threads

SEQUENCES = [np.random.default_rng(n).normal(size=(n, 2)) for n in (3, 5, 4)]  # of different lengths
OTHERS = [np.random.default_rng(n).normal(size=(n, 2)) for n in (6, 4)]


def options_of(method):
    entry = dropdtw.METHODS[method]
    return (
        {"method": method}
        | ({"drop_x": 0.4, "drop_z": 0.4} if entry.takes_drops else {})
        | ({"threshold": 0.6} if entry.takes_threshold else {})
    )


def one_by_one(Zs, Xs, **options):
    return [[distance(Z, X, **options) for X in Xs] for Z in Zs]


def count_of(*lists, **options):
    """How many pairs are computed."""
    calls = []
    pairwise(*lists, progress=lambda done, total: calls.append((done, total)), **options)
    done, totals = zip(*calls, strict=True)
    assert list(done) == sorted(done)
    assert set(totals) == {done[-1]}  # what was promised was done
    return done[-1]


def forgetful(Z, X):
    """A match cost of its own, which a library cannot know to be symmetric."""
    return np.abs(Z[:, None] - 2 * X[None]).sum(axis=2)


REACHING = {name: entry for name, entry in dropdtw.METHODS.items() if entry.slopes is None}
SYMMETRIC = {name: options_of(name) for name, entry in REACHING.items() if entry.symmetric} | {
    "charged": {"drop_x": 0.4, "drop_z": 0.4, "open_x": 0.3, "open_z": 0.3, "warp": 0.1},
    "warp": {"warp": 0.1},
    "no drops": {},
    "percentile": {"drop_x": "percentile:30", "drop_z": "percentile:30"},
    "euclidean": {"match": "euclidean", "drop_x": 1, "drop_z": 1},
    "sqeuclidean": {"match": "sqeuclidean"},
    "soft": {"reducer": "soft", "gamma": 0.1, "drop_x": 0.4, "drop_z": 0.4},
    "smooth, no drops": {"reducer": "smooth", "gamma": 0.1},
    "one to one": {"one_to_many": False, "many_to_one": False, "drop_x": 0.4, "drop_z": 0.4},
}
ASYMMETRIC = {name: options_of(name) for name, entry in REACHING.items() if not entry.symmetric} | {
    "charged on one side": {"drop_x": 0.4, "drop_z": 0.4, "open_x": 0.3},
    "suggested": {"drop_x": 0.4, "drop_z": 0.4, "open_x": "suggest", "open_z": "suggest"},
    "drop x": {"drop_x": 0.4},
    "drop costs": {"drop_x": 0.4, "drop_z": 0.5},
    "percentiles": {"drop_x": "percentile:30", "drop_z": "percentile:40"},
    "rule": {"drop_x": lambda C: C.min(axis=0), "drop_z": 0.4},
    "softmax": {"match": "softmax"},
    "callable": {"match": forgetful},
    "drop logits": {"match": "softmax", "drop_x": "logit:30"},
    "one to many": {"many_to_one": False, "drop_z": 0.4, "drop_x": 0.4},
    "contiguous": {"contiguous": True, "drop_x": 0.4, "drop_z": 0.4},
    "window": {"window": 1, "drop_x": 0.4, "drop_z": 0.4},
    "smooth": {"reducer": "smooth", "gamma": 0.1, "drop_x": 0.4, "drop_z": 0.4},
    "threshold rule": {"method": "lcss", "threshold": lambda C: C[0].max()},
    "table": {"method": dropdtw.Recurrence(
        states=("m",), start="m", final=("m",), edges=dropdtw.edges("m", to="m", moves="diag left top", cost="match")
    )},
}  # fmt: skip
for ways in (SYMMETRIC, ASYMMETRIC):  # Euclidean costs have kernels of their own
    ways |= {f"{name}, euclidean": way | {"match": "euclidean"} for name, way in ways.items() if "match" not in way}
every_way = pytest.mark.parametrize("options", (SYMMETRIC | ASYMMETRIC).values(), ids=SYMMETRIC | ASYMMETRIC)


@every_way
def test_one_list_is_all_its_pairs(options):
    np.testing.assert_allclose(pairwise(SEQUENCES, **options), one_by_one(SEQUENCES, SEQUENCES, **options), rtol=1e-12)


@every_way
def test_two_lists_are_all_their_pairs(options):
    values = pairwise(SEQUENCES, OTHERS, **options)
    assert values.shape == (3, 2)
    np.testing.assert_allclose(values, one_by_one(SEQUENCES, OTHERS, **options), rtol=1e-12)
    assert count_of(SEQUENCES, OTHERS, **options) == 6


@pytest.mark.parametrize("options", SYMMETRIC.values(), ids=SYMMETRIC)
def test_symmetric_pairs_are_computed_once(options):
    assert count_of(SEQUENCES, **options) == 6
    values = pairwise(SEQUENCES, **options)
    np.testing.assert_array_equal(values, values.T)


@pytest.mark.parametrize("options", ASYMMETRIC.values(), ids=ASYMMETRIC)
def test_other_pairs_are_computed_both_ways(options):
    assert count_of(SEQUENCES, **options) == 9


def test_the_same_list_twice_is_two_lists():
    assert count_of(SEQUENCES, SEQUENCES) == 9


@pytest.mark.sweep
@every_way
@pytest.mark.parametrize("n_jobs", [None, 1, 3, -1, -2])
def test_threads_change_nothing(options, n_jobs, monkeypatch):
    alone = pairwise(SEQUENCES, n_jobs=1, **options)
    monkeypatch.setattr("dropdtw.search.pairwise.ENOUGH", 0)  # threads for small sequences, too
    np.testing.assert_array_equal(pairwise(SEQUENCES, n_jobs=n_jobs, **options), alone)


def test_small_pairs_are_left_to_one_thread():
    assert [useful_threads(4, K * N) for K, N in ((100, 100), (255, 256), (256, 256), (10, 10_000))] == [1, 1, 4, 4]


@pytest.mark.parametrize(("n_jobs", "threads"), [(None, 1), (1, 1), (3, 3), (9, 9), (-1, 4), (-2, 3), (-9, 1)])
def test_jobs_are_counted_as_scikit_learn_does(monkeypatch, n_jobs, threads):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 2, 4, 6}, raising=False)
    assert thread_count(n_jobs) == threads


def test_reference_reports_every_pair():
    done = []
    pairwise(SEQUENCES, OTHERS, executor="reference", progress=lambda *at: done.append(at))
    assert done == [(n, 6) for n in range(1, 7)]


@pytest.mark.parametrize("match", ["euclidean", "cosine"])
@pytest.mark.parametrize(("dtype", "huge"), [(np.float64, 1e200), (np.float32, 1e30)])
def test_huge_sequences_are_as_far_apart_as_one_by_one(match, dtype, huge):
    sequences = [np.array([[huge, 0], [0, huge]], dtype), np.array([[1, 2]], dtype)]
    values = pairwise(sequences, match=match)
    assert np.isfinite(values).all()
    np.testing.assert_allclose(values, one_by_one(sequences, sequences, match=match), rtol=1e-6)


def test_a_three_dimensional_array_is_a_list_of_sequences():
    stack = np.random.default_rng(0).normal(size=(4, 5, 2))
    np.testing.assert_array_equal(pairwise(stack, drop_x=0.3), pairwise(list(stack), drop_x=0.3))
    assert pairwise(stack, stack[:1]).shape == (4, 1)


def test_a_matrix_is_a_list_of_sequences_of_numbers():
    series = np.random.default_rng(0).normal(size=(3, 6))
    expected = pairwise([s[:, None] for s in series], match="euclidean")
    np.testing.assert_array_equal(pairwise(series, match="euclidean"), expected)


def test_float32_gives_double_values():
    values = pairwise([Z.astype(np.float32) for Z in SEQUENCES], drop_x=0.4, drop_z=0.4)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, pairwise(SEQUENCES, drop_x=0.4, drop_z=0.4), atol=1e-5)


def test_sequences_are_not_modified():
    given = [Z.copy() for Z in SEQUENCES]
    for Z in given:
        Z.flags.writeable = False
    np.testing.assert_array_equal(pairwise(given, drop_x=0.4), pairwise(SEQUENCES, drop_x=0.4))
    for Z, was in zip(given, SEQUENCES, strict=True):
        np.testing.assert_array_equal(Z, was)


def test_shapes_are_checked_before_any_work():
    done = []
    with pytest.raises(ValueError, match="cannot each have"):
        pairwise([np.eye(2), np.ones((9, 2))], one_to_many=False, progress=lambda *at: done.append(at))
    assert done == []


# --- The progress line ------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """A clock that each reading moves on by `step` seconds."""
    clock = SimpleNamespace(now=1000.0, step=0.0)

    def monotonic():
        clock.now += clock.step
        return clock.now

    monkeypatch.setattr("dropdtw.files.progress.time", SimpleNamespace(monotonic=monotonic))
    return clock


def screen(text):
    """The lines that a terminal shows: a carriage return writes over what is there."""
    lines = []
    for line in text.split("\n"):
        shown = ""
        for part in line.split("\r"):
            shown = part + shown[len(part) :]
        lines.append(shown)
    return lines


def test_long_work_shows_what_is_done_and_what_is_left(clock, capsys):
    clock.step = 30.0
    pairwise(SEQUENCES, OTHERS, progress=True, executor="reference")
    shown = [part.rstrip() for part in capsys.readouterr().err.split("\r")[1:]]
    assert shown == [
        "dropdtw.pairwise: 1 of 6 (16 %), 30 s each, about 150 s left",
        "dropdtw.pairwise: 2 of 6 (33 %), 30 s each, about 120 s left",
        "dropdtw.pairwise: 3 of 6 (50 %), 30 s each, about 90 s left",
        "dropdtw.pairwise: 4 of 6 (66 %), 30 s each, about 60 s left",
        "dropdtw.pairwise: 5 of 6 (83 %), 30 s each, about 30 s left",
        "dropdtw.pairwise: 6 of 6 (100 %), in 180 s",
    ]


def test_finished_line_leaves_nothing_of_the_longer_one(clock, capsys):
    clock.step = 30.0
    pairwise(SEQUENCES, OTHERS, progress=True, executor="reference")
    line, after = screen(capsys.readouterr().err)
    assert line.rstrip() == "dropdtw.pairwise: 6 of 6 (100 %), in 180 s"
    assert after == ""


def test_line_is_drawn_five_times_a_second_at_most(clock, capsys):
    clock.step = 0.07
    pairwise(SEQUENCES * 8, SEQUENCES * 2, progress=True, executor="reference")  # 144 pairs in 10 s
    drawn = capsys.readouterr().err.count("\r")
    assert 20 < drawn <= 8 / 0.2 + 1


@pytest.mark.parametrize(("seconds", "shown"), [(0.1, False), (1.9, False), (2.1, True)])
def test_work_of_less_than_two_seconds_shows_nothing(clock, capsys, seconds, shown):
    clock.step = seconds / 6
    pairwise(SEQUENCES, OTHERS, progress=True, executor="reference")
    assert bool(capsys.readouterr().err) is shown


@pytest.mark.parametrize(("progress", "terminal", "shown"), [
    (None, True, True), (None, False, False), (True, False, True), (False, True, False),
])  # fmt: skip
def test_line_is_for_terminals_unless_asked_for(clock, capsys, monkeypatch, progress, terminal, shown):
    clock.step = 30.0
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    pairwise(SEQUENCES, progress=progress, n_jobs=1)
    captured = capsys.readouterr()
    assert bool(captured.err) is shown
    assert captured.out == ""
