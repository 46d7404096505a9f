"""Times: what arrives as a clock comes back as times, in the caller's type."""

import json
import pickle
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

import dropdtw
from dropdtw.problem.clock import Clock, plain, spoken

Z, X = [0.0, 1.0, 2.0], [0.0, 0.1, 7.0, 1.0, 2.0]
ENDS = [(0, 2), (3, 4), (4, 5)]
SECONDS = np.array([0.0, 0.5, 2.0, 3.0, 7.0])  # irregular; the last lasts 1.25, the median gap
NOON = datetime(2024, 5, 1, 12)
ZONED = NOON.replace(tzinfo=timezone(timedelta(hours=2)))


def moments(start):
    return [start + timedelta(seconds=s) for s in SECONDS]


def frame(library, times, name="t"):
    if library == "pandas":
        return pytest.importorskip("pandas").DataFrame({name: times, "a": X})
    return pytest.importorskip("polars").DataFrame({name: times, "a": X})


def indexed(times):
    pandas = pytest.importorskip("pandas")
    return pandas.Series(X, index=pandas.Index(times))


GIVEN = {
    "seconds": (lambda: (X, SECONDS), 0.0, timedelta(seconds=1).__truediv__),
    "a list": (lambda: (X, SECONDS.tolist()), 0.0, None),
    "datetimes": (lambda: (X, moments(NOON)), NOON, None),
    "datetimes with a zone": (lambda: (X, moments(ZONED)), ZONED, None),
    "durations": (lambda: (X, moments(timedelta(0))), timedelta(0), None),
    "datetime64": (lambda: (X, np.array(moments(NOON), "M8[ms]")), np.datetime64(NOON, "ms"), None),
    "timedelta64": (lambda: (X, np.array(moments(timedelta(0)), "m8[ms]")), np.timedelta64(0, "ms"), None),
    "a column's name": (lambda: (frame("pandas", SECONDS), "t"), 0.0, None),
    "a column's name, polars": (lambda: (frame("polars", SECONDS), "t"), 0.0, None),
    "a column of dates": (lambda: (frame("pandas", moments(NOON)), None), "pandas", None),
    "a column of dates, polars": (lambda: (frame("polars", moments(NOON)), None), NOON, None),
    "a column of durations, polars": (lambda: (frame("polars", moments(timedelta(0))), None), timedelta(0), None),
    "a pandas index": (lambda: (indexed(moments(NOON)), None), "pandas", None),
    "a pandas index with a zone": (lambda: (indexed(moments(ZONED)), None), "pandas zoned", None),
    "a pandas index of durations": (lambda: (indexed(moments(timedelta(0))), None), "pandas duration", None),
    "a pandas series": (lambda: (X, indexed(moments(NOON)).index.to_series()), "pandas", None),
}


def wanted(zero, seconds):
    """The time that lies so many seconds after the first one."""
    if isinstance(zero, str):
        pandas = pytest.importorskip("pandas")
        zero = {"pandas": pandas.Timestamp(NOON), "pandas zoned": pandas.Timestamp(ZONED)}.get(
            zero, pandas.Timedelta(0)
        )
    step = np.timedelta64(int(1000 * seconds), "ms") if isinstance(zero, np.generic) else timedelta(seconds=seconds)
    return zero + (seconds if isinstance(zero, float) else step)


@pytest.mark.parametrize("name", GIVEN)
def test_segments_have_times_in_the_type_that_arrived(name):
    arrives, zero, _ = GIVEN[name]
    signal, times = arrives()
    a = dropdtw.align(Z, signal, drop_x=0.5, times=times)
    assert a.labels.tolist() == [0, 0, -1, 1, 2]
    assert [tuple(s)[1:] for s in a.segments()] == ENDS
    edges = [*SECONDS, 8.25]
    found = [(s.start_time, s.stop_time) for s in a.segments()]
    assert found == [(wanted(zero, edges[start]), wanted(zero, edges[stop])) for start, stop in ENDS]
    assert {type(t) for pair in found for t in pair} == {type(wanted(zero, 0.0))}
    assert (a.start_time, a.stop_time) == (wanted(zero, 0.0), wanted(zero, 8.25))
    assert a.times_x[4] == wanted(zero, 7.0) if not isinstance(zero, (datetime, timedelta)) else len(a.times_x) == 5
    for again in (pickle.loads(pickle.dumps(a)), dropdtw.Alignment.from_dict(json.loads(json.dumps(a.to_dict())))):
        assert [(s.start_time, s.stop_time) for s in again.segments()] == found
        assert type(again.start_time) is type(a.start_time)


def test_zones_are_kept():
    (first, *_) = dropdtw.align(Z, X, drop_x=0.5, times=moments(ZONED)).segments()
    assert first.start_time.utcoffset() == timedelta(hours=2)
    again = dropdtw.Alignment.from_dict(dropdtw.align(Z, X, drop_x=0.5, times=moments(ZONED)).to_dict())
    assert again.start_time.utcoffset() == timedelta(hours=2)
    pandas = pytest.importorskip("pandas")
    index = pandas.date_range("2024-10-27 00:30", periods=5, freq="h", tz="Europe/Zurich")  # clocks go back at 3:00
    a = dropdtw.align(Z, pandas.Series(X, index), drop_x=0.5)
    assert (a.times_x == index).all()
    assert [s.start_time for s in a.segments()] == [index[start] for start, _ in ENDS]
    assert str(dropdtw.Alignment.from_dict(a.to_dict()).start_time.tz) == "Europe/Zurich"


def test_rates_and_two_clocks():
    a = dropdtw.align(Z, X, drop_x=0.5, fps=(10, 4))
    assert a.times_z.tolist() == [0, 0.1, 0.2]
    assert [(s.start_time, s.stop_time) for s in a.segments()] == [(0, 0.5), (0.75, 1), (1, 1.25)]
    b = dropdtw.align(Z, X, drop_x=0.5, times=(moments(NOON)[:3], SECONDS))
    assert b.times_z[0] == np.datetime64(NOON)
    assert b.segments()[1].start_time == 3.0
    assert dropdtw.align(Z, X, drop_x=0.5, times=(None, SECONDS)).times_z is None
    assert dropdtw.align(Z, Z, drop_x=0.5, times=([1, 2, 3], [4, 5, 6])).start_time == 4.0
    assert dropdtw.align([1, 2], [1, 2], times=(0.5, 1.5)).stop_time == 2.5  # a tuple of two times is X's


def test_ends_can_be_given_so_that_gaps_belong_to_no_element():
    times = np.stack([SECONDS, SECONDS + 0.5], axis=1)
    a = dropdtw.align(Z, X, drop_x=0.5, times=times)
    assert [(s.start_time, s.stop_time) for s in a.segments()] == [(0, 1), (3, 3.5), (7, 7.5)]
    pandas = pytest.importorskip("pandas")
    index = pandas.IntervalIndex.from_arrays(SECONDS, SECONDS + 0.5, closed="left")
    assert [s.stop_time for s in dropdtw.align(Z, pandas.Series(X, index), drop_x=0.5).segments()] == [1, 3.5, 7.5]


def test_without_times_nothing_changes():
    a = dropdtw.align(Z, X, drop_x=0.5)
    assert (a.start_time, a.times_x, a.segments()[0].stop_time) == (None, None, None)
    assert repr(a.segments()[0]) == "Segment(label=0, start=0, stop=2)"
    timed = dropdtw.align(Z, X, drop_x=0.5, fps=1).segments()
    assert timed == a.segments()
    assert timed == [(0, 0, 2), (1, 3, 4), (2, 4, 5)]
    assert "times" not in a.to_dict()


def test_missing_elements_keep_their_times():
    a = dropdtw.align(Z, [*X[:2], np.nan, *X[3:]], drop_x=0.5, missing="drop", times=SECONDS)
    assert [(s.start_time, s.stop_time) for s in a.segments()] == [(0, 2), (3, 7), (7, 8.25)]


def test_times_of_match_costs_orders_and_visits():
    C = [[0, 9, 0, 9], [9, 0, 9, 0]]
    a = dropdtw.solve(C, order=dropdtw.orders.repeat([0, 1]), fps=2)
    assert [visit.start_time for visit in a.visits] == [0, 0.5, 1, 1.5]


def test_find_and_streams_have_times():
    signal = [9, 1, 2, 3, 9, 9, 1, 7, 2, 3, 9]
    start = np.datetime64("2024-05-01T00:00", "s")
    times = start + np.arange(11)
    places = dropdtw.find([1, 2, 3], signal, k=2, drop_x=0.5, times=times)
    assert [(o.start_time, o.stop_time) for o in places] == [(times[1], times[4]), (times[6], times[10])]
    assert [o.alignment.start_time for o in places] == [times[1], times[6]]
    assert places[0].alignment.stop_time == times[4]
    stream = dropdtw.Online(Z, drop_x=0.5, beam=0.6, gamma=None)
    for x, t in zip(X, SECONDS, strict=True):
        stream.push(x, time=t)
    same = dropdtw.align(Z, X, drop_x=0.5, times=SECONDS)
    assert [s.start_time for s in stream.finish().segments()] == [s.start_time for s in same.segments()]
    assert stream.committed[0].stop_time == 2.0
    rated = dropdtw.Aligner(0.5).online(Z, fps=4)
    for x in X:
        rated.push(x)
    assert rated.finish().stop_time == 1.25


def test_columns_of_times_are_no_features():
    pandas = pytest.importorskip("pandas")
    there = frame("pandas", moments(NOON))
    query = pandas.DataFrame({"a": Z})
    wanted = dropdtw.distance(Z, X, drop_x=0.5)
    assert dropdtw.distance(query, there, drop_x=0.5) == wanted
    assert dropdtw.pairwise([query], [there], drop_x=0.5) == wanted
    assert dropdtw.nearest(query, [there], drop_x=0.5).costs == wanted
    two = pandas.DataFrame({"t": moments(NOON), "b": X, "a": X})
    assert dropdtw.align(two[["a", "b", "t"]][:3], two, drop_x=0.5).clocks.z is not None  # columns by name


def test_plots_show_times():
    pytest.importorskip("matplotlib")
    from dropdtw import plot

    a = dropdtw.align(Z, X, drop_x=0.5, times=(moments(NOON)[:3], SECONDS))
    ax = plot.alignment(a)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x (seconds)", "z (time)")
    ticks = dict(zip((t.get_text() for t in ax.get_xticklabels()), ax.get_xticks(), strict=True))
    assert (ticks["0"], ticks["2"], ticks["8"]) == (-0.5, 1.5, 4.3)  # 8 s: 1 s into an x that lasts 1.25 s
    assert plot.linked(Z, X, a).get_xlabel() == "x (seconds)"
    assert plot.occurrences(X, dropdtw.find([0, 0.1], X, drop_x=1, fps=2)).get_xlabel() == "seconds"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"times": [0, 1, 1, 2, 3]}, "times must increase, but x_1 is at 1.0 and x_2 at 1.0; sort"),
        ({"times": [0, 1, 0.5, 2, 3]}, "times must increase, but x_1 is at 1.0 and x_2 at 0.5"),
        ({"times": [0, 1, 2]}, "times has 3 entries for X, which has 5 elements; give one time per x"),
        ({"times": ([0], SECONDS)}, "times has 1 entries for Z, which has 3 elements"),
        ({"times": [0, 1, np.nan, 2, 3]}, "times of x_2 is nan; give every element a time"),
        ({"times": ["noon"] * 5}, "times of X is the list .*; give seconds, datetime64"),
        ({"times": "t"}, "times is 't', but neither has such a column"),
        ({"times": np.zeros((5, 3))}, "times of X is .*; give seconds"),
        ({"times": [[0, 2], [1, 1.5], [2, 3], [3, 4], [4, 5]]}, "times of x_1 end at 1.5; no element may end before"),
        ({"fps": 0}, "fps is 0; give the number of elements per second, > 0"),
        ({"fps": True}, "fps is True; give"),
        ({"fps": 2, "times": SECONDS}, "fps is 2, and times are given as well; give only one"),
    ],
)
def test_wrong_times_are_refused(how, said):
    for call in (dropdtw.align, dropdtw.find):
        with pytest.raises(ValueError, match=said.replace("of X", "of .")):
            call(Z, X, drop_x=0.5, **how)


def test_wrong_times_of_frames_and_streams_are_refused():
    late = indexed(moments(NOON)[::-1])
    with pytest.raises(
        ValueError, match=r"the index of X must increase, but x_0 .*convert the sequence to a plain array"
    ):
        dropdtw.align(Z, late)
    with pytest.raises(ValueError, match=r"x_0 is at 2024-05-01T1.* UTC and x_1 at .* UTC; sort"):
        dropdtw.align(Z, indexed(moments(ZONED)[::-1]))
    two = frame("pandas", moments(NOON)).assign(u=moments(NOON))
    with pytest.raises(ValueError, match=r"times is None, and X has several columns of times; choose one of t, u"):
        dropdtw.align(Z, two)
    with pytest.raises(ValueError, match=r"times is 'v', which is no column of X; choose one of 't', 'a', 'u'"):
        dropdtw.align(Z, two, times="v")
    stream = dropdtw.Online(Z, drop_x=0.5)
    stream.push(0.0, time=1.0)
    with pytest.raises(ValueError, match=r"time must increase"):
        stream.push(0.0, time=1.0)
    with pytest.raises(ValueError, match=r"time is None for frame 1; give every frame a time, or none"):
        stream.push(0.0)
    with pytest.raises(ValueError, match=r"time is 2.0, but fps=5 already sets the times of frames; leave it out"):
        dropdtw.Online(Z, drop_x=0.5, fps=5).push(0.0, time=2.0)
    damaged = dropdtw.align(Z, X, drop_x=0.5, fps=5).to_dict()
    damaged["times"]["x"]["begin"][2] = 0
    with pytest.raises(ValueError, match=r"this is not an alignment in format 1 .times must increase"):
        dropdtw.Alignment.from_dict(damaged)


def test_times_as_text():
    assert plain(datetime(2024, 5, 1, tzinfo=UTC)) == "2024-05-01T00:00:00+00:00"
    assert spoken(1.0) == "1.00 s"
    assert spoken(NOON) == "2024-05-01 12:00:00"
    assert Clock.of([3.0], "x").durations.tolist() == [0]
    assert Clock.at_rate(10, 5).uniform == pytest.approx(0.1)
    assert Clock.of(SECONDS, "x").uniform is None


def test_estimators_and_corpora_leave_times_out(tmp_path):
    pytest.importorskip("sklearn")
    from dropdtw.sklearn import as_series

    there = frame("pandas", moments(NOON))
    by_index = there.set_index("t")
    for given in (there, by_index):
        (series,) = as_series([given])
        assert series.tolist() == [[x] for x in X]
    pytest.importorskip("pyarrow")
    pytest.importorskip("fsspec")
    from dropdtw import corpus

    assert corpus.write(f"{tmp_path}/a.parquet", [("a", there), ("b", by_index)]) == 2
    run = corpus.localize(Z, f"{tmp_path}/a.parquet", f"{tmp_path}/found", drop_x=0.5)
    assert (run.rows, run.errors) == (2, 0)


def test_files_may_have_columns_of_times_with_different_names(tmp_path):
    from dropdtw.files import formats

    (tmp_path / "z.csv").write_text("uptime,b,a\n3.5,1,2\n4.5,3,4\n")
    (tmp_path / "x.csv").write_text("a,time,b\n2,2024-05-01T12:00:00,1\n4,2024-05-01T12:00:01,3\n")
    files = tmp_path / "z.csv", tmp_path / "x.csv"
    Z, found, clocks = formats.read_pair(*files, time="uptime,time")
    assert Z.tolist() == found.tolist() == [[1, 2], [3, 4]]
    assert clocks.z.times.tolist() == [3.5, 4.5]
    assert clocks.x.span(0, 1) == (NOON, NOON + timedelta(seconds=1))
    with pytest.raises(ValueError, match=r"z.csv.* has no column 'up'"):
        formats.read_pair(*files, time="up,time")


def test_ticks_that_a_gap_brings_together_are_left_out():
    pytest.importorskip("matplotlib")
    from dropdtw import plot

    times = np.r_[np.arange(0, 18.0), np.arange(61.0, 80)]  # the last x before the gap lasts 43 s, and is 1 wide
    ax = plot.alignment(dropdtw.solve(np.ones((3, 37)), 0.5, times=times))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0", "20", "80"]  # 40 and 60 lie beside 20


def test_runs_of_drops_have_times():
    a = dropdtw.align([1.0, 2.0], [9.0, 1.0, 9.0, np.nan, 9.0, 2.0], 0.5, missing="drop", times=np.arange(6) * 10.0)
    found = [(*run, run.start_time, run.stop_time) for run in a.dropped_runs()]
    assert found == [(-1, 0, 1, 0.0, 10.0), (-1, 2, 3, 20.0, 30.0), (-1, 4, 5, 40.0, 50.0)]
    assert dropdtw.align([1.0], [1.0]).dropped_runs() == []
