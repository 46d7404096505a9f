"""Tables and figures of step localization."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")
pytest.importorskip("lightning_fabric", reason="training needs Lightning Fabric: make setup")

from reproduction.common.report import Table
from reproduction.steps import bars, datasets, inference, paper, tables, training
from reproduction.steps.datasets import Dataset
from reproduction.steps.experiment import Settings, Steps
from reproduction.steps.model import Objective
from step_cases import DATA


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """The experiment on small data, with two rows."""
    small = Dataset("small", lambda source, seed: DATA, key=lambda source: "k")
    monkeypatch.setitem(datasets.DATASETS, "small", small)
    rows = {"features": Objective("none", cluster=False), "clust": Objective("none"), "drop": tables.BEST}
    monkeypatch.setitem(tables.ROWS, "4", rows)
    settings = Settings(seeds=2, epochs=1, tables=("4",), datasets=("small",))
    return lambda: Steps.reproduce(settings, tmp_path, say=lambda text: None, progress=False)


def test_rows_are_trained_once_and_kept(steps, tmp_path, monkeypatch):
    made = steps()
    scores = made["scores"]["4, small"]
    assert {name: np.shape(values) for name, values in scores.items()} == dict.fromkeys(tables.ROWS["4"], (2, 3))
    assert "small" in (tmp_path / "table-4-small.txt").read_text()
    monkeypatch.setattr(training, "train_model", lambda *a, **k: pytest.fail("this is kept"))
    assert steps() == made


def test_differences_are_paired_by_seed():
    """Seeds differ by much more than the rows do: the interval is that of the differences."""
    reference = np.array([[10.0], [50.0], [90.0]])
    ((mean, width),) = tables.paired(reference + np.array([[1.0], [2.0], [3.0]]), reference)
    assert mean == pytest.approx(2)
    assert width == pytest.approx(4.303 / 3**0.5, rel=1e-3)  # Student's t with two degrees of freedom
    assert tables.paired(reference[:1], reference[:1])[0][1] == np.inf


def test_one_seed_has_no_errors():
    ours = {"a loss": np.array([[1.0, 2.0, 3.0]])}
    table = tables.table("1", ours, "a stand-in", np.array([[2.0, 2.0, 2.0]]))
    (row,) = (row for row in table.rows if row[0] == "a loss")
    assert row[1:7] == ["1.0", "2.0", "3.0", "−1.0", "+0.0", "+1.0"]
    assert "in %, 1 seed; " in table.caption
    assert "±" not in table.caption


@pytest.mark.parametrize("number", ["1", "4", "5", "6"])
def test_tables_show_ours_beside_the_papers(number):
    ours = {name: np.array([[10.0, 20.0, 30.0], [12.0, 20.0, 30.0]]) for name in tables.ROWS[number]}
    table = tables.table(number, ours, "a stand-in", np.array([[10.0, 20.0, 30.0], [11.0, 20.0, 30.0]]))
    assert isinstance(table, Table)
    text = table.text()
    assert "a stand-in" in text
    assert "11.0 ± 1.0" in text
    assert "+0.5 ± 6.4" in text
    shown = {row[0].split(";")[0] for row in table.rows}
    assert set(tables.PAPER[number]) | set(ours) == shown
    first = next(
        cells
        for cells in tables.PAPER[number]["Drop-DTW, percentile" if number == "1" else next(iter(ours))]
        if cells != paper.NONE
    )
    assert " / ".join(f"{cell:.1f}" for cell in first) in text
    if number == "1":
        for name in ("MaxMargin", "UniVL", "NN-Viterbi", "ISBA", "ProcNet"):
            assert name in shown


def test_the_inference_table_has_every_method():
    one = inference.Inference((5.0, 10.0), inference.Scores(0, 0.5, 0.25, 0.4), np.zeros((2, 4)))
    table = tables.inference_table(
        {"all background": one, **dict.fromkeys(inference.METHODS_COMPARED, one)}, "a stand-in"
    )
    rows = {row[0]: row for row in table.rows}
    assert rows["drop_dtw"][1:] == ["5, 10", "50.0", "25.0", "40.0", "70.2 / 30.5", "52.7 / 27.7", "66.0 / 47.5"]
    assert rows["smith_waterman"][-1] == "–"


def test_bars_show_the_truth_and_every_method():
    pytest.importorskip("matplotlib").use("Agg")
    models = {"Drop-DTW": "drop-percentile", "OTAM": "otam", "SmoothDTW": "smooth"}
    made = {name: training.make_model(DATA.train, Objective(loss), 0) for name, loss in models.items()}
    settings = dict.fromkeys(made, 20.0)
    shown = bars.telling(list(DATA.test), 2)
    for rows_of in (bars.same_method, bars.drop_inference):
        rows = [rows_of(made, settings, v) for v in shown]
        assert [list(row) for row in rows] == [["truth", *models]] * 2
        np.testing.assert_array_equal(rows[0]["truth"], shown[0].labels)
        figure = bars.draw("what", shown, rows)
        assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["truth", *models]
    same = bars.same_method(made, settings, shown[0])
    assert (same["SmoothDTW"] >= 0).all()  # DTW has no background
    assert (bars.drop_inference(made, settings, shown[0])["SmoothDTW"] < 0).any()
    import matplotlib.pyplot as plt

    plt.close("all")
