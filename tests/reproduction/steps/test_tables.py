"""Tables and figures of step localization."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")
pytest.importorskip("lightning_fabric", reason="training needs Lightning Fabric: make setup")

from reproduction.common.report import Table
from reproduction.common.training import Plan
from reproduction.steps import bars, experiment, inference, paper, tables
from reproduction.steps.model import Objective
from step_cases import DATA


def test_rows_are_trained_once_and_kept(tmp_path, monkeypatch):
    rows = {"features": Objective("none", cluster=False), "clust": Objective("none")}
    plan = Plan(epochs=1)
    made = tables.trained_rows(rows, lambda seed: DATA, "k", range(2), tmp_path, plan=plan, progress=False)
    assert {name: len(r.scores) for name, r in made.items()} == {"features": 2, "clust": 2}
    monkeypatch.setattr(tables, "_train_row", lambda *a: pytest.fail("this is kept"))
    again = tables.trained_rows(
        rows, lambda seed: pytest.fail("not needed"), "k", range(2), tmp_path, plan=plan, progress=False
    )
    assert again == made


@pytest.mark.parametrize("number", [1, 4, 5, 6])
def test_tables_show_ours_beside_the_papers(number):
    ours = {name: tables.Result(((10.0, 20.0, 30.0), (12.0, 20.0, 30.0))) for name in tables.ROWS[number]}
    table = tables.table(number, ours, "a stand-in", 2)
    assert isinstance(table, Table)
    text = table.text()
    assert "a stand-in" in text
    assert "11.0 ± 1.0" in text
    shown = {row[0].split(";")[0] for row in table.rows}
    assert set(tables.PAPER[number]) | set(ours) == shown
    first = next(
        cells
        for cells in tables.PAPER[number]["Drop-DTW, percentile" if number == 1 else next(iter(ours))]
        if cells != paper.NONE
    )
    assert " / ".join(f"{cell:.1f}" for cell in first) in text
    if number == 1:
        for name in ("MaxMargin", "UniVL", "NN-Viterbi", "ISBA", "ProcNet"):
            assert name in shown


def test_the_inference_table_has_every_method():
    one = inference.Inference((5.0, 10.0), inference.Scores(0, 0.5, 0.25, 0.4))
    table = tables.inference_table(
        {"all background": one, **dict.fromkeys(inference.METHODS_COMPARED, one)}, "a stand-in"
    )
    rows = {row[0]: row for row in table.rows}
    assert rows["drop_dtw"][1:] == ["5, 10", "50.0", "25.0", "40.0", "70.2 / 30.5", "52.7 / 27.7", "66.0 / 47.5"]
    assert rows["smith_waterman"][-1] == "–"


def test_bars_show_the_truth_and_every_method():
    pytest.importorskip("matplotlib").use("Agg")
    models = {"Drop-DTW": "drop-percentile", "OTAM": "otam", "SmoothDTW": "smooth"}
    made = {name: experiment.make_model(DATA.train, Objective(loss), 0) for name, loss in models.items()}
    percentiles = dict.fromkeys(made, 20.0)
    shown = bars.telling(list(DATA.test), 2)
    for rows_of in (bars.same_method, bars.drop_inference):
        rows = [rows_of(made, percentiles, v) for v in shown]
        assert [list(row) for row in rows] == [["truth", *models]] * 2
        np.testing.assert_array_equal(rows[0]["truth"], shown[0].labels)
        figure = bars.draw("what", shown, rows)
        assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["truth", *models]
    same = bars.same_method(made, percentiles, shown[0])
    assert (same["SmoothDTW"] >= 0).all()  # DTW has no background
    assert (bars.drop_inference(made, percentiles, shown[0])["SmoothDTW"] < 0).any()
    import matplotlib.pyplot as plt

    plt.close("all")
