"""`python -m reproduction orders`, a quick run on the stand-in."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")
pytest.importorskip("lightning_fabric", reason="training needs Lightning Fabric: make setup")
pytest.importorskip("matplotlib").use("Agg")

from reproduction.orders import PARTS, digits  # noqa: E402
from reproduction.orders.digits import ROWS  # noqa: E402
from reproduction.orders.experiment import Orders  # noqa: E402
from reproduction.orders.inference import WAYS  # noqa: E402
from reproduction.orders.settings import Settings  # noqa: E402

TINY = replace(Settings().quick(), clips=12, tested=3, tuned=1, percentiles=(18.0,), trained=3, judged=3, epochs=1)


@pytest.fixture
def scores(monkeypatch):
    """Fake scores for the rows of digits: training them would need an encoder."""
    asked = []

    def trained(self, item):
        asked.append(item)
        return (10.0, 20.0, 30.0 + item[1])

    monkeypatch.setattr(digits.Digits, "__call__", trained)
    return asked


def test_the_experiment_writes_a_report_and_is_not_run_twice(tmp_path, scores, monkeypatch):
    said = []
    results = Orders.reproduce(TINY, tmp_path, command="the command", say=said.append, progress=False)
    kept = json.loads((tmp_path / "results.json").read_text())
    assert all(kept[part] == results[part] for part in PARTS)
    assert set(results["inference"]["1.5"]) == set(WAYS)
    assert list(results["training"]) == ["untrained", "list", "graph", "true order (bound)"]
    assert results["digits"]["graph"]["iou"] == {"mean": 30.5, "error": 0.5}
    assert {name for name, _ in scores} == set(ROWS)
    page = (tmp_path / "report.html").read_text()
    assert "simulated features" in page
    assert "a stand-in, 6 random recipes, 12 recordings" in page
    for picture in ("bars.png", "inference.png"):
        assert (tmp_path / picture).stat().st_size > 5000
    for module in ("inference.Inference._run", "linear.train"):
        monkeypatch.setattr(f"reproduction.orders.{module}", lambda *a, **k: pytest.fail("this is kept"))
    again = Orders.reproduce(TINY, tmp_path, say=said.append, progress=False)
    assert again == results


def test_parts_run_alone(tmp_path, scores):
    for part in ("training", "digits"):
        settings = replace(TINY, parts=(part,))
        results = Orders.reproduce(settings, tmp_path / part, say=lambda text: None, progress=False)
        assert [name for name in PARTS if results[name]] == [part]
        assert bool(scores) == (part == "digits")


def test_the_gain_is_counted_seed_by_seed(tmp_path):
    work = Orders(None, tmp_path, "cpu", replace(TINY, parts=("inference",)))
    table = work.outcome(1, lambda text: None, False).tables[0]
    rows = {row[0]: row[2:] for row in table.rows}
    means = {name: np.array([float(cell.split(" ±")[0]) for cell in cells]) for name, cells in rows.items()}
    np.testing.assert_allclose(means["graph − list"], means["graph"] - means["list"], atol=0.11)
    assert (means["true order (bound)"] > means["list"]).all()


def test_the_command(tmp_path, scores):
    runner = pytest.importorskip("typer.testing").CliRunner()
    from reproduction.commands.app import app

    words = ["orders", "--quick", "--part", "digits", "--out", str(tmp_path)]
    done = runner.invoke(app, words)
    assert done.exit_code == 0, (done.output, done.exception)
    assert "tmnist-steps, a stand-in, with independent steps shuffled" in done.output
    wrong = runner.invoke(app, ["orders", "--part", "some"])
    assert "--part is 'some'; choose one of all, inference, training, digits" in str(wrong.exception)
    missing = runner.invoke(app, ["orders", "--data", str(tmp_path), "--out", str(tmp_path)])
    assert "task graphs of CaptainCook4D" in str(missing.exception)
