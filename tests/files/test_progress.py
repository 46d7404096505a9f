"""The progress line while nothing is reported; what it says otherwise is tested with `pairwise`."""

import time
from types import SimpleNamespace

import pytest

from dropdtw.files import progress


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that is moved by hand, and ticks that come quickly."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(progress, "TICK", 0.01)
    monkeypatch.setattr(progress._Line, "shown", None)
    monkeypatch.setattr(progress._Line, "width", 0)
    return clock


def drawn(capsys, least):
    """What is drawn, once there are so many drawings."""
    text = ""
    for _ in range(1000):
        text += capsys.readouterr().err
        if text.count("\r") >= least:
            break
        time.sleep(0.01)
    return [part.rstrip(" ") for part in text.split("\r")[1:]]


def test_long_work_is_not_silent(capsys, clock):
    report = progress.reporter("trainings", True)
    with progress.ticking(report):
        time.sleep(0.1)
        assert capsys.readouterr().err == ""  # too short to be shown
        clock.now += 7
        assert drawn(capsys, 2)[-1] == "trainings: 7 s so far"
        report(0, 4)
        assert drawn(capsys, 2)[-1] == "trainings: 0 of 4 (0 %), 7 s so far"
        report(1, 4)
        assert drawn(capsys, 2)[-1] == "trainings: 1 of 4 (25 %), 7 s each, about 21 s left"
        report(4, 4)
    assert capsys.readouterr().err.split("\r")[-1] == "trainings: 4 of 4 (100 %), in 7 s".ljust(51) + "\n"


def test_a_part_of_the_work_is_not_written_over(capsys, clock):
    whole, part = progress.reporter("rows", True), progress.reporter("training", True)
    clock.now += 7
    part(3, 8)
    with progress.ticking(whole):
        time.sleep(0.1)
    assert "rows" not in capsys.readouterr().err
    clock.now += 3  # the part has been silent for a while
    with progress.ticking(whole):
        assert drawn(capsys, 1)[-1] == "rows: 10 s so far"


def test_it_stops_with_the_work_even_if_that_fails(capsys, clock):
    report = progress.reporter("trainings", True)
    clock.now += 7
    with pytest.raises(ValueError, match="no"), progress.ticking(report):
        raise ValueError("no")
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("seconds", "said"), [(1, ""), (9, "testing: in 9 s")])
def test_one_piece_of_work_has_a_line(capsys, clock, seconds, said):
    with progress.working("testing", True):
        clock.now += seconds
    assert capsys.readouterr().err.split("\r")[-1].strip() == said


def test_functions_and_silence_need_no_ticks(capsys):
    told = []
    for report in (progress.reporter("a", False), progress.reporter("a", lambda *at: told.append(at))):
        with progress.ticking(report):
            report(1, 2)
    with progress.working("b", lambda *at: told.append(at)):
        pass
    assert told == [(1, 2)]
    assert capsys.readouterr().err == ""


def test_a_command_writes_a_line_a_minute_to_a_log(clock, monkeypatch, capsys):
    """Where there is no terminal, nobody can see a line that changes; a library writes nothing at all."""
    monkeypatch.setattr(progress._LogLine, "wanted", False)
    progress.reporter("diff")(50, 100)
    progress.log_progress()
    report = progress.reporter("diff")
    for second in range(0, 201, 5):
        clock.now = 1000.0 + second
        report(second, 200)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        *(f"diff: {n} of 200 ({n // 2} %)" for n in (60, 120, 180)),
        "diff: 200 of 200 (100 %)",
    ]
    assert progress.reporter("diff", False)(1, 2) is None
    assert capsys.readouterr().err == ""
