"""`python -m reproduction steps`, `table` and `bars`."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")
pytest.importorskip("lightning_fabric", reason="training needs Lightning Fabric: make setup")

from reproduction.steps import inference  # noqa: E402
from reproduction.steps.datasets import DATASETS, STAND_IN  # noqa: E402
from reproduction.steps.training import untrained  # noqa: E402
from step_cases import DATA  # noqa: E402


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run `python -m reproduction …` on the small data of this file."""
    runner = pytest.importorskip("typer.testing").CliRunner()
    from reproduction.commands.app import app

    small = replace(DATASETS[STAND_IN], splits=lambda source, seed: DATA, folds=lambda source: [untrained(DATA)])
    monkeypatch.setitem(DATASETS, STAND_IN, small)

    def call(*words):
        return runner.invoke(app, [*words, "--out", str(tmp_path)])

    return call


@pytest.mark.parametrize(
    ("terminal", "loaded", "says"),
    [(True, False, "dropdtw: loading PyTorch\n"), (True, True, ""), (False, False, "")],
)
def test_a_terminal_is_told_that_loading_takes_a_while(terminal, loaded, says, monkeypatch, capsys):
    options = pytest.importorskip("reproduction.commands.options", reason="needs typer: pip install dropdtw[cli]")
    if not loaded:
        monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setattr(options, "MODULES", ())
    options.check_installed()
    assert capsys.readouterr().err == says


def test_the_steps_command_trains_evaluates_and_resumes(run, tmp_path):
    done = run("steps", "--epochs", "2")
    assert done.exit_code == 0, done.output
    assert "72 videos for training, 24 for validation, 24 for testing" in done.output
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["stand_in"] is True
    assert results["test"].keys() == {"recall", "accuracy", "iou", "f1"}
    assert 0 < results["test"]["recall"] <= 100
    more = run("steps", "--epochs", "3", "--resume")
    assert "resuming after epoch 2 of 3" in more.output
    none = run("steps", "--loss", "none", "--no-cluster")
    assert json.loads((tmp_path / "results.json").read_text())["best_epoch"] is None, none.output


def test_tables_are_printed_and_written(run, tmp_path):
    done = run("table", "2")
    assert done.exit_code == 0, done.output
    assert "tmnist-steps, a stand-in" in done.output
    assert (tmp_path / "table-2-tmnist-steps.txt").read_text() in done.output
    done = run("table", "5", "--seeds", "2", "--epochs", "1")
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "table-5-tmnist-steps.json").read_text())["rows"][0][0] == "soft minimum"


def test_bars_are_drawn(run, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    done = run("bars", "--epochs", "1")
    assert done.exit_code == 0, done.output
    for name in ("bars-same.png", "bars-drop.png", "report.html"):
        assert (tmp_path / name).stat().st_size > 5000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("table", "3"), "the table is '3'; choose one of 1, 2, 4, 5, 6, recipe, text"),
        (("table", "1", "--data", "utkinect"), "this table needs --data tmnist-steps, tmnist-steps-own"),
        (
            ("table", "2", "--data", "nothing"),
            "--data is 'nothing'; choose one of tmnist-steps, tmnist-steps-own, utkinect",
        ),
        (("table", "2", "--data", "utkinect"), "utkinect needs --folder"),
        (("steps", "--data", "nothing"), "--data is 'nothing'; choose one of tmnist-steps"),
        (("steps", "--data", "coin"), "coin needs --folder"),
        (("steps", "--data", "coin", "--folder", "."), "coin needs --features"),
        (("steps", "--loss", "sharp"), "loss is 'sharp'; choose one of"),
    ],
)
def test_mistakes_say_what_to_do(run, words, said):
    done = run(*words)
    assert done.exit_code != 0
    assert said in str(done.exception)


def test_a_published_data_set_trains_from_its_files(tmp_path, monkeypatch):
    """COIN's layout, tiny: annotations, a folder of features, step embeddings."""
    runner = pytest.importorskip("typer.testing").CliRunner()
    from reproduction.commands.app import app

    rng = np.random.default_rng(0)
    database = {}
    (tmp_path / "features").mkdir()
    for k in range(44):
        spans = [
            {"id": "1", "segment": [0.0, 6.4], "label": "cut"},
            {"id": "2", "segment": [12.8, 19.2], "label": "fry"},
        ]
        database[f"video{k}"] = {
            "subset": "testing" if k > 39 else "training", "class": f"task{k % 2}", "duration": 25.6,
            "recipe_type": k % 2, "annotation": spans, "video_url": "", "start": 0.0, "end": 25.6,
        }  # fmt: skip
        np.save(tmp_path / "features" / f"video{k}.npy", rng.normal(size=(8, 6)).astype(np.float32))
    (tmp_path / "COIN.json").write_text(json.dumps({"database": database}))
    np.savez(tmp_path / "steps.npz", step_id=np.array([1, 2]), features=rng.normal(size=(2, 6)).astype(np.float32))
    words = [
        "steps",
        "--data",
        "coin",
        "--folder",
        str(tmp_path),
        "--features",
        str(tmp_path / "features"),
    ]
    words += ["--embeddings", str(tmp_path / "steps.npz"), "--epochs", "1", "--out", str(tmp_path / "out")]
    done = runner.invoke(app, words)
    assert done.exit_code == 0, (done.output, done.exception)
    assert json.loads((tmp_path / "out" / "results.json").read_text())["stand_in"] is False
    (tmp_path / "features" / "video3.npy").unlink()
    broken = runner.invoke(app, words)
    assert "video3" in str(broken.exception)
    skipped = runner.invoke(app, [*words, "--skip-broken"])
    assert skipped.exit_code == 0, (skipped.output, skipped.exception)
    assert "left out video3" in skipped.output
    with pytest.raises(ValueError, match="there are no videos to score"):
        inference.scores([])
