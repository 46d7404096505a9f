"""Shared experiment code: registries, to which a new loss or data set adds only an entry, and trainings."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")

from dropdtw.torch import DropDTWLoss, SmoothDTWLoss  # noqa: E402
from reproduction.common import losses  # noqa: E402
from reproduction.common.experiment import Dataset, Experiment, Outcome, Settings, Training  # noqa: E402
from reproduction.common.registry import find  # noqa: E402
from reproduction.common.report import Table, cells, rounded  # noqa: E402


@dataclass(frozen=True)
class Numbers:
    source: str


@dataclass(frozen=True)
class Guess(Experiment[Numbers, float, str]):
    """An experiment without training: a recipe is its own score, and a test gives the seed."""

    settings: Settings = field(default_factory=lambda: Settings(seed=5, seeds=2, epochs=7))

    name = "guess"
    title = "A guess"
    about = "Numbers are guessed."
    data_name = "numbers"
    code = ()
    datasets = {  # noqa: RUF012
        "made up": Dataset(lambda folder: folder is None, lambda folder, settings: Numbers("made up")),
        "any": Dataset(lambda folder: True, lambda folder, settings: Numbers(f"{folder}, seed {settings.seed}")),
    }

    def label(self, recipe, condition):
        return f"{recipe}-{condition}"

    def train(self, training, epochs, out):
        with (self.out / "trained.txt").open("a") as file:
            file.write(f"{training.recipe} {training.condition} {training.seed} {epochs} {out and out.name[:8]}\n")
        return torch.nn.Identity(), training.recipe

    def test(self, model, training):
        return {"value": np.array(training.seed)}

    def outcome(self, processes, say, progress):
        best = self.best({"a": [1.0, 3.0, 2.0], "b": [9.0]}, lambda place: place * 2, processes, progress)
        found = self.every_seed({place: (recipe, "x") for place, recipe in best.items()}, processes, progress)
        table = Table("Values", ["", "value"], [[name, str(len(some))] for name, some in found.items()])
        values = {name: [int(one["value"]) for one in some] for name, some in found.items()}
        return Outcome({"best": best, "values": values}, [table], lambda report: report.table(table))


def test_the_best_recipe_is_trained_with_every_seed_and_nothing_twice(tmp_path):
    said = []
    results = Guess.reproduce(Guess(None, tmp_path).settings, tmp_path, command="the command", say=said.append)
    assert results["best"] == {"a": 3.0, "b": 9.0}
    assert results["values"] == {"a": [5, 6], "b": [5, 6]}
    assert (results["experiment"], results["numbers"], results["settings"]["epochs"]) == ("guess", "made up", 7)
    lines = (tmp_path / "trained.txt").read_text().splitlines()
    choices = [f"{recipe} aa 5 3 None" for recipe in (1.0, 3.0, 2.0)]  # half the epochs; a single recipe is not trained
    assert lines == choices + [f"{r} x {s} 7 {r}-x-{s}-" for r in (3.0, 9.0) for s in (5, 6)]
    assert said[0] == "numbers: made up"
    assert "Values" in said[1]
    page = (tmp_path / "report.html").read_text()
    for part in ("A guess", "Numbers are guessed.", "the command", "Numbers: made up."):
        assert part in page
    assert Guess.reproduce(Guess(None, tmp_path).settings, tmp_path, say=said.append) == results
    assert (tmp_path / "trained.txt").read_text().splitlines() == lines


def test_the_first_data_set_that_fits_is_used(tmp_path):
    assert Guess(None, tmp_path).data.source == "made up"
    assert Guess("place", tmp_path).data.source == "place, seed 5"


def test_batches_cover_every_pair_of_an_epoch_once():
    settings = Settings(pairs=10, batch=4)
    assert settings.batches(0) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert settings.batches(1)[0] == [10, 11, 12, 13]


def test_a_training_is_a_value():
    assert Training("r", 0.5, 1) == Training("r", 0.5, 1) != Training("r", 0.5, 1, choice=True)


def test_an_entry_is_found_or_the_names_are_listed():
    assert find({"a": 1, "b": 2}, "b", "loss") == 2
    with pytest.raises(ValueError, match="--data is 'c'; choose one of a, b"):
        find({"a": 1, "b": 2}, "c", "--data")


def test_losses_are_built_with_drop_costs_only_where_they_take_them():
    drop = losses.DROP.build({"drop_x": 0.5, "method": "drop_dtw_paper"}, gamma=0.1)
    assert isinstance(drop, DropDTWLoss)
    assert (drop.drop_x, drop.method, drop.gamma) == (0.5, "drop_dtw_paper", 0.1)
    assert isinstance(losses.SMOOTH.build({"drop_x": 0.5}, gamma=0.1), SmoothDTWLoss)
    with pytest.raises(ValueError, match="'no alignment' does not align"):
        losses.NONE.build({})
    assert losses.Loss("Drop-DTW", None, variant="learned").label == "Drop-DTW, learned"


def test_registries_are_listed_without_pytorch():
    modules = "reproduction.steps.datasets, reproduction.steps.losses"
    code = f"import sys, {modules}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_means_and_standard_errors():
    values = np.array([[1.0, 0.5], [3.0, 0.5]])
    assert cells(values, 1) == ["2.0 ± 1.0", "0.5 ± 0.0"]
    assert cells(values[:1], 1, 100) == ["100.0", "50.0"]  # one value has no error
    assert rounded(values, 2, 100) == [{"mean": 200.0, "error": 100.0}, {"mean": 50.0, "error": 0.0}]


def test_no_section_imports_another():
    """Code that several sections need belongs in common/; orders and jigsaws may build on steps."""
    folder = Path(losses.__file__).parents[1]
    shared = {"common", "data"}
    sections = [
        place.name for place in folder.iterdir() if (place / "__init__.py").exists() and place.name != "commands"
    ]
    assert set(sections) >= {*shared, "tmnist", "steps", "penn", "ave"}
    for section in sections:
        varied = {"orders": "steps", "jigsaws": "steps"}.get(section)
        others = [f"reproduction.{name}" for name in sections if name not in {section, varied, *shared}]
        for path in (folder / section).glob("*.py"):
            assert not [name for name in others if f"{name} " in path.read_text() or f"{name}." in path.read_text()]
