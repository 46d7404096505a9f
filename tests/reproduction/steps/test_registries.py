"""Adding a loss or data set of step localization takes one entry: it is trained, listed and checked like others."""

import re
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")
pytest.importorskip("lightning_fabric", reason="training needs Lightning Fabric: make setup")

from dropdtw.tables.methods import METHODS  # noqa: E402
from dropdtw.torch import SoftDTWLoss  # noqa: E402
from reproduction.common.losses import Loss  # noqa: E402
from reproduction.common.training import Plan  # noqa: E402
from reproduction.steps import bars, datasets, tables, training  # noqa: E402
from reproduction.steps.datasets import DATASETS, NEEDS, Dataset, load_folds, load_splits  # noqa: E402
from reproduction.steps.losses import LOSSES  # noqa: E402
from reproduction.steps.model import Objective  # noqa: E402
from reproduction.steps.splits import Source  # noqa: E402
from step_cases import DATA  # noqa: E402

SOFT = Loss("soft-DTW", SoftDTWLoss, inference="dtw")


@pytest.fixture
def invoke():
    """Run `dropdtw …` and return the result, with line breaks removed from its output."""
    runner = pytest.importorskip("typer.testing").CliRunner()
    from reproduction.commands.app import app

    def call(*words):
        done = runner.invoke(app, list(words), env={"COLUMNS": "200"})
        return done, re.sub(r"[\s│]+", " ", done.output)

    return call


def test_a_new_loss_is_one_entry(monkeypatch, invoke, tmp_path):
    monkeypatch.setitem(LOSSES, "soft", SOFT)
    model, done = training.train_model(DATA.train, DATA.val, Objective("soft"), Plan(epochs=1), progress=False)
    assert isinstance(model.align, SoftDTWLoss)
    assert len(done.history) == 2
    _, text = invoke("steps", "--help")
    assert "otam, none, soft." in text
    shown = bars.same_method({"soft-DTW": model}, {"soft-DTW": 20.0}, DATA.test[0])
    assert (shown["soft-DTW"] >= 0).all()  # its own inference is DTW, which has no background
    with pytest.raises(ValueError, match=r"loss is 'hard'; choose one of drop-percentile, .*, none, soft"):
        Objective("hard")


def test_a_new_data_set_is_one_entry(monkeypatch, invoke, tmp_path):
    asked = []

    def splits(source, seed):
        asked.append((source.folder, seed))
        return DATA

    new = Dataset("mine", splits, folds=lambda source: [training.untrained(DATA)], needs=("folder",))
    monkeypatch.setitem(DATASETS, "mine", new)
    done, _ = invoke("steps", "--data", "mine", "--out", str(tmp_path))
    assert str(done.exception) == "mine needs --folder (the folder of its annotations)"
    words = ("--data", "mine", "--folder", str(tmp_path), "--out", str(tmp_path / "out"))
    done, text = invoke("steps", "--epochs", "1", "--seed", "4", *words)
    assert done.exit_code == 0, done.exception
    assert "mine, test: recall" in text
    assert asked == [(tmp_path, 4)]
    done, text = invoke("table", "2", *words)
    assert done.exit_code == 0, done.exception
    assert "Ours: mine, in %" in text
    _, text = invoke("steps", "--help")
    assert "crosstask, youcook2, mine." in text
    with pytest.raises(ValueError, match=r"--data is 'yours'; choose one of tmnist-steps, .*, mine"):
        load_splits("yours", Source(tmp_path), 0)


def test_what_a_data_set_needs_is_said_in_one_line(tmp_path):
    with pytest.raises(
        ValueError, match=r"^coin needs --folder \(.*\) and --features \(.*\) and --embeddings \(a file\)$"
    ):
        load_splits("coin", Source(tmp_path), 0)
    with pytest.raises(ValueError, match=r"^transcripts needs --folder \(the folder of its annotations\)$"):
        load_folds("transcripts", Source(tmp_path))
    with pytest.raises(ValueError, match=r"--data is 'transcripts'; choose one of tmnist-steps, .*, utkinect, coin"):
        load_splits("transcripts", Source(tmp_path), 0)
    with pytest.raises(ValueError, match=r"--data is 'coin'; choose one of tmnist-steps, .*, utkinect, transcripts"):
        load_folds("coin", Source(tmp_path))


def test_entries_are_whole():
    for loss in LOSSES.values():
        assert loss.inference in METHODS
        assert loss.title
    for entry in DATASETS.values():
        assert entry.splits or entry.folds
        assert set(entry.needs) <= set(NEEDS)
        assert not entry.key or entry.splits
    assert datasets.STAND_IN in datasets.trainable()


def test_table_1_has_every_loss_and_table_6_every_learned_drop_cost():
    aligned = {loss.label for loss in LOSSES.values() if loss.make}
    assert set(tables.ROWS["1"]) == {"MIL-NCE"} | aligned
    assert {name for name in tables.ROWS["6"] if not name.startswith("p = ")} == {
        "learned",
        "learned, in L_clust",
        "learned and anchored",
    }
    assert replace(LOSSES["drop-percentile"], variant="").label in tables.ROWS["4"]


def test_the_papers_names_are_those_of_the_losses():
    for number in ("1", "4"):
        assert {"SmoothDTW"} <= set(tables.PAPER[number]) & set(tables.ROWS[number])
    assert {"D³TW", "OTAM", "Drop-DTW, percentile", "Drop-DTW, learned"} <= set(tables.PAPER["1"]) & set(
        tables.ROWS["1"]
    )
    assert {"Drop-DTW", "Drop-DTW + L_clust"} <= set(tables.PAPER["4"]) & set(tables.ROWS["4"])
