"""Audio-visual localization: training, tuning, and a quick end-to-end run."""

import json
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")

from ave_cases import write_ave, write_grid  # noqa: E402
from loader_cases import made_up_digits  # noqa: E402
from reproduction.ave import experiment, tasks  # noqa: E402
from reproduction.ave.experiment import Ave  # noqa: E402
from reproduction.ave.model import LOSSES, Objective, Recipe, TwoBranches, chance  # noqa: E402
from reproduction.common.losses import D3TW  # noqa: E402
from reproduction.data import grid, mnist  # noqa: E402

DIGITS = made_up_digits(np.random.default_rng(0))

TINY = experiment.Settings(
    seeds=2, epochs=1, pairs=8, batch=4, spliced=("none", "both"), lrs=(1e-3,), gammas=(0.1,), percentiles=(30.0, 50.0),
    clips=6,
)  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """Eight videos in AVE's published layout, with features."""
    return write_ave(tmp_path)


@pytest.fixture
def sentences(tmp_path):
    """A tiny version of GRID."""
    return write_grid(tmp_path)


@pytest.mark.parametrize("loss", LOSSES)
def test_training_lowers_the_loss_and_finds_what_chance_does_not(loss, sentences):
    task = tasks.of_grid(sentences, reach=0)
    settings = experiment.Settings(epochs=4, pairs=80, batch=8)
    objective = Objective(loss, normalize="x")
    model, _ = experiment.train(task, Recipe(objective, 5e-3, 24), "none", settings, seed=0)
    torch.manual_seed(0)
    fresh = TwoBranches(80, 80, objective)
    batch = task.load(range(900, 908), "none", 0, 24)
    assert model(batch).shape == (8,)
    assert model(batch).mean() < 0.8 * fresh(batch).mean()
    found = experiment.scores(model, task.test, (2,))
    assert (found[:, 0] > chance(task.test.events, 40, (2,))[0]).all()
    a, v = model.embed(task.test.audio, task.test.visual)
    np.testing.assert_allclose(np.linalg.norm(a, axis=-1), 1, rtol=1e-5)
    assert v.shape == (6, 40, 64)


def test_the_experiment_runs_on_the_stand_in_and_is_not_run_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(mnist, "load", lambda folder=None: DIGITS)
    said = []
    results = Ave.reproduce(TINY, tmp_path, command="the command", say=said.append)
    assert json.loads((tmp_path / "results.json").read_text()) == json.loads(json.dumps(results))
    page = (tmp_path / "report.html").read_text()
    assert "the command" in page
    assert "a stand-in: 6 + 2 + 3 videos" in page
    assert set(results["found"]) == {"none", "both"}
    rows = list(results["found"]["both"])
    assert rows == ["OTAM", "SmoothDTW", "Drop-DTW", experiment.PAPERS]
    chosen = {name: recipe["objective"]["percentile"] for name, recipe in results["chosen"].items()}
    assert chosen["Drop-DTW"] in (30.0, 50.0)
    assert chosen[experiment.PAPERS] == 70.0

    def never(*args, **options):
        raise AssertionError("trained again")

    monkeypatch.setattr(experiment, "train", never)
    assert Ave.reproduce(TINY, tmp_path, say=said.append) == results


def test_settings_are_chosen_by_validation_with_the_same_budget(sentences, tmp_path, monkeypatch):
    settings = experiment.Settings(epochs=9)
    work = Ave(str(sentences), tmp_path, "cpu", settings)
    rows = experiment.tried(work.data, settings)
    assert {len(some) for some in rows.values()} == {16}
    assert all(len(set(some)) == 16 for some in rows.values())
    wanted = {"otam": (1e-3, 24, 1.0), "smooth": (5e-4, 48, 0.3), "drop": (5e-4, 24, 10.0)}
    asked = []

    def train(task, recipe, spliced, settings, seed, *, epochs=None, **rest):
        asked.append((spliced, seed, epochs))
        o = recipe.objective
        parts = (recipe.lr, recipe.crop, o.percentile if o.loss == "drop" else o.gamma)
        return None, float(parts == wanted[o.loss])

    def never(*args):
        raise AssertionError("looked at test events")

    monkeypatch.setattr(experiment, "train", train)
    monkeypatch.setattr(experiment, "scores", never)
    chosen = experiment.choose(work)
    assert {(r.objective.loss, r.lr, r.crop) for r in chosen.values()} == {(k, *v[:2]) for k, v in wanted.items()}
    assert chosen["OTAM"].objective.gamma == 1.0
    assert chosen["Drop-DTW"].objective.percentile == 10.0
    assert str(chosen["Drop-DTW"]) == "10th percentile, γ 0.1, learning rate 0.0005, crops of 24"
    assert set(asked) == {("both", 0, 4)}
    assert len(asked) == 48


def test_a_new_loss_is_one_entry(sentences, tmp_path, monkeypatch):
    monkeypatch.setitem(LOSSES, "d3tw", D3TW)
    settings = experiment.Settings()
    rows = experiment.tried(Ave(str(sentences), tmp_path, settings=settings).data, settings)
    assert list(rows) == ["OTAM", "SmoothDTW", "Drop-DTW", "D³TW"]
    assert {recipe.objective.gamma for recipe in rows["D³TW"]} == set(settings.gammas)
    assert {recipe.objective.percentile for recipe in rows["D³TW"]} == {70.0}  # no drops: not tuned


def test_the_command_prints_the_papers_rows_beside_those_of_ave(folder, tmp_path, monkeypatch, capsys):
    cli = pytest.importorskip("reproduction.commands.video", reason="needs typer: pip install dropdtw[cli]")
    monkeypatch.setattr(experiment.Settings, "quick", lambda self: TINY)
    cli.ave(data=folder, quick=True, out=tmp_path / "out")
    shown = capsys.readouterr().out
    for line in (
        "OTAM (quoted from",
        "SmoothDTW (quoted from",
        "Drop-DTW (quoted from",
        "supervised (Tian et al.) (quoted",
    ):
        assert line in shown
    assert re.search(r"Drop-DTW \(quoted from the paper\) +41\.1 +35\.8", shown)
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert list(results["found"]) == ["none"]
    assert list(results["found"]["none"]) == ["OTAM", "SmoothDTW", "Drop-DTW"]
    of_ave = experiment.tried(Ave(str(folder), tmp_path, settings=TINY).data, TINY)
    assert of_ave["Drop-DTW"] == [Recipe(Objective("drop", 70.0, normalize=None), TINY.lr)]


def test_grid_is_known_by_its_file(sentences):
    assert Ave(str(sentences), sentences, settings=TINY).data.kind == "GRID"
    assert Ave(str(sentences / grid.FILE), sentences, settings=TINY).data.kind == "GRID"
