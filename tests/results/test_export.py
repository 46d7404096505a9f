"""Alignments, occurrences and posteriors as data frames, tables and files."""

import builtins
import csv
import io
import json
from datetime import datetime, timedelta

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas is not installed")
import pandas as pd

import dropdtw
from cases import same
from dropdtw import Alignment, Occurrences, Posterior

SIGNAL = [9, 1, 7, 2, 9, 1, 2]
CLOCK = [datetime(2024, 5, 1) + timedelta(seconds=k) for k in range(7)]


def results():
    """A result of each kind, without times and with them."""
    symbols = dropdtw.align("GATTACA", "GATCA", 1, 1, method="needleman_wunsch")
    timed = dropdtw.align([1.0, 2.0], SIGNAL, 0.5, times=CLOCK, method="steps")
    missing = dropdtw.align([1.0, 2.0], [1.0, np.nan, 2.0], 0.5, fps=2, missing="drop")
    softmax = dropdtw.align(np.eye(2), np.eye(2)[[0, 0, 1]], 0.5, match="softmax")
    order = dropdtw.solve(np.eye(3)[::-1], 0.5, order=dropdtw.orders.any_order(0, 1, 2))
    alignments = [symbols, timed, missing, softmax, order]
    found = [dropdtw.find([1, 2], SIGNAL, 2, drop_x=0.5, **more) for more in ({}, {"fps": 2}, {"times": CLOCK})]
    return [*alignments, *(a.posterior() for a in alignments), *found, Occurrences()]


@pytest.mark.parametrize("result", results(), ids=repr)
def test_a_saved_result_comes_back(result, tmp_path):
    path = tmp_path / "result.json"
    result.save(path)
    again = type(result).load(path)
    assert repr(again) == repr(result)
    assert again.to_csv() == result.to_csv()
    assert json.loads(again.to_json(costs=True)) == json.loads(result.to_json(costs=True))
    if isinstance(result, Alignment):
        assert same(again, result)
        assert again.rescore() == result.rescore()
        assert again.symbols == result.symbols
    elif isinstance(result, Posterior):
        assert np.array_equal(again.match, result.match)
        assert again.intervals() == result.intervals()
        assert [a.cost for a in again.sample(3, seed=0)] == [a.cost for a in result.sample(3, seed=0)]
    else:
        assert again == result
        assert [o.stop_time for o in again] == [o.stop_time for o in result]
        assert all(same(a.alignment, b.alignment) for a, b in zip(again, result, strict=True))


@pytest.mark.parametrize("result", results(), ids=repr)
def test_frame_and_csv_hold_the_same_table(result, tmp_path):
    frame, columns = result.to_frame(), result.to_columns()
    rows = list(csv.DictReader(io.StringIO(result.to_csv())))
    assert result.to_csv(tmp_path / "t.csv") is result.to_json(tmp_path / "t.json") is None
    assert [(tmp_path / name).read_text() for name in ("t.csv", "t.json")] == [result.to_csv(), result.to_json()]
    assert list(frame.columns) == list(columns)
    assert len(frame) == len(rows) == len(next(iter(columns.values())))
    for name, values in columns.items():
        for value, cell, row in zip(values, frame[name], rows, strict=True):
            assert (value is None and pd.isna(cell) and row[name] == "") or value == cell
    assert all(str(frame[name].dtype) != "object" for name in ("x", "z") if name in frame)


def test_a_table_lists_every_element_once():
    a = dropdtw.align("GATTACA", "GATCAT", 1, 1, method="needleman_wunsch")
    frame = a.to_frame()
    assert sorted(frame.z.dropna()) == list(range(7))
    assert sorted(frame.x.dropna()) == list(range(6))
    assert frame[frame.what == "match"][["z", "x"]].to_numpy().tolist() == a.pairs.tolist()
    assert "".join(frame.z_symbol.dropna()) == "GATTACA"


def test_a_symbol_that_json_cannot_hold_is_left_out(tmp_path):
    a = dropdtw.align([("a", 1), ("b", 2)], [("a", 1), ("b", 2)])
    a.save(tmp_path / "a.json")
    assert Alignment.load(tmp_path / "a.json").symbols is None


def test_polars_is_used_without_pandas(monkeypatch):
    class Polars:
        DataFrame = dict

    real = dropdtw.results.export.import_module
    there = {"polars": Polars}

    def importing(name):
        if name in ("pandas", "polars"):
            if name not in there:
                raise ImportError(name)
            return there[name]
        return real(name)

    monkeypatch.setattr(dropdtw.results.export, "import_module", importing)
    p = dropdtw.posterior([[0.0, 0.0]], drop_x=0.0)
    assert builtins.dict(p.to_frame()) == p.to_columns()
    there.clear()
    with pytest.raises(ImportError, match="run pip install pandas, or use to_csv"):
        p.to_frame()


@pytest.mark.parametrize(
    ("kind", "content", "says"),
    [
        (Alignment, "{", "is not JSON"),
        (Alignment, "[" * 100_000, "is not JSON"),
        (Alignment, "[]", "this is not an alignment"),
        (Posterior, "{}", "not a posterior with its costs"),
        (Posterior, "[]", "not a posterior with its costs"),
        (Posterior, '{"alignment": {}, "gamma": 1}', "this is not an alignment"),
        (Occurrences, "[]", "not occurrences with costs"),
        (Occurrences, '{"occurrences": [{"start": 0}]}', "not occurrences with costs"),
    ],
)
def test_damaged_files_are_refused(kind, content, says, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=says):
        kind.load(path)


def test_occurrences_that_contradict_their_alignment_are_refused():
    found = dropdtw.find([1, 2], SIGNAL, 2, drop_x=0.5)
    for change in ({"stop": 9}, {"cost": 7.0}, {"start": -1, "stop": 1}):
        data = json.loads(found.to_json(costs=True))
        data["occurrences"][0] |= change
        with pytest.raises(ValueError, match="contradicts its alignment"):
            Occurrences.from_dict(data)


def test_only_json_is_saved(tmp_path):
    a = dropdtw.solve([[0.0]])
    with pytest.raises(ValueError, match=r"a.pkl does not end in .json"):
        a.save(tmp_path / "a.pkl")
    plain = Alignment.from_dict(a.to_dict())
    plain.save(tmp_path / "a.json")
    assert Alignment.load(tmp_path / "a.json").problem is None
