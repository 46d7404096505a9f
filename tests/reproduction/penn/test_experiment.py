"""Representation learning: training, tuning, and a quick end-to-end run."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")
pytest.importorskip("scipy", reason="Kendall's tau needs scipy: make setup")

from dropdtw.torch import OTAMLoss  # noqa: E402
from loader_cases import made_up_digits  # noqa: E402
from penn_cases import made_up  # noqa: E402
from penn_labels import write_labels  # noqa: E402
from reproduction.common import losses  # noqa: E402
from reproduction.data import mnist, penn  # noqa: E402
from reproduction.penn import experiment, videos  # noqa: E402
from reproduction.penn import model as models  # noqa: E402
from reproduction.penn.experiment import Penn  # noqa: E402
from reproduction.penn.model import Aligner, Clips, Objective, Windows, make_pair  # noqa: E402
from reproduction.penn.settings import Settings  # noqa: E402

DIGITS = made_up_digits(np.random.default_rng(0))

TINY = Settings(
    seeds=2, levels=(0.0, 0.5), epochs=1, pairs=16, batch=8, test_pairs=2, clips=4,
    temperatures=(0.1, 0.3), percentiles=(10.0, 30.0), drop_temperatures=(0.1,),
)  # fmt: skip


ONE_WAY = replace(TINY, temperatures=(0.1,), percentiles=(10.0,))


@pytest.fixture
def folder(tmp_path):
    """Six videos in the published layout."""
    return write_labels(tmp_path)


@pytest.mark.parametrize("loss", models.LOSSES)
def test_training_lowers_the_loss_and_raises_tau(loss):
    clips = made_up(each=8)
    splits = videos.Splits(clips, made_up(each=3, seed=1), made_up(each=3, seed=2), {}, "made up")
    settings = Settings(epochs=4, pairs=64, batch=16, lr=3e-3)
    torch.manual_seed(0)
    model, tau = experiment.train(splits, Objective(loss), 0.3, settings, seed=0)
    pairs = videos.pairs_of(splits.test, 6)
    trained = videos.evaluate(lambda k: model.embed(splits.test, k), splits.test, pairs)
    untrained = Aligner(models.PoseEncoder(5), Objective(loss))
    before = videos.evaluate(lambda k: untrained.embed(splits.test, k), splits.test, pairs)
    actions = sorted(trained.tau)
    assert tau > 0.8
    assert trained.over(actions) > before.over(actions)
    assert np.mean(list(trained.error.values())) < 0.1

    batch = Windows.of(clips, [make_pair(clips, n, 0.3, seed=8) for n in range(32)])
    fresh = Aligner(models.PoseEncoder(5), Objective(loss))
    assert model(batch).mean() < 0.9 * fresh(batch).mean()


def test_the_experiment_runs_on_the_stand_in_and_is_not_run_twice(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(mnist, "load", lambda folder=None: DIGITS)
    said = []
    results = Penn.reproduce(TINY, tmp_path, command="the command", say=said.append)
    assert json.loads((tmp_path / "results.json").read_text()) == json.loads(json.dumps(results))
    page = (tmp_path / "report.html").read_text()
    assert "the command" in page
    assert "a stand-in" in page
    assert {path.name for path in tmp_path.glob("*.png")} == {"tau.png", "contamination.png"}
    curves = results["tau"]["trajectories"]
    assert {name: len(values) for name, values in curves.items()} == {"smooth": 2, "drop": 2}
    assert {name: len(some) for name, some in results["chosen"].items()} == {"smooth": 2, "drop": 2}
    assert all(some["percentile"] in (10.0, 30.0) for some in results["chosen"]["drop"])
    assert len(results["phase_error"]["drop"]) == 2

    def never(*args, **options):
        raise AssertionError("trained again")

    monkeypatch.setattr(experiment, "train", never)
    assert Penn.reproduce(TINY, tmp_path, say=said.append) == results


def test_settings_are_chosen_at_each_level_by_validation_and_fairly(tmp_path, monkeypatch):
    settings = replace(Settings(), levels=(0.0, 0.5), epochs=7)
    options = experiment.tried(settings)
    assert len(options["smooth"]) == len(options["drop"])
    asked = []

    def train(splits, objective, level, settings, seed, *, epochs=None, **rest):
        asked.append((objective, level, seed, epochs))
        wanted = {("smooth", 0.0): 0.2, ("smooth", 0.5): 0.5, ("drop", 0.0): 170.0, ("drop", 0.5): 10.0}
        value = objective.gamma_match if objective.loss == "smooth" else objective.percentile
        return None, -abs(value - wanted[objective.loss, level])

    monkeypatch.setattr(experiment, "train", train)
    monkeypatch.setattr(Penn, "data", videos.Splits(*[made_up()] * 3, {}, "made up"))
    chosen = experiment.choose(Penn(None, tmp_path, "cpu", settings))
    assert [o.gamma_match for o in chosen["smooth"]] == [0.2, 0.5]
    assert [o.percentile for o in chosen["drop"]] == [70.0, 10.0]
    assert len(asked) == 2 * (len(options["smooth"]) + len(options["drop"]))
    assert {(seed, epochs) for _, _, seed, epochs in asked} == {(0, 3)}


def test_a_new_loss_is_one_entry(monkeypatch):
    monkeypatch.setitem(models.LOSSES, "otam", losses.OTAM)
    options = experiment.tried(Settings())["otam"]
    assert [o.gamma_match for o in options] == list(Settings().temperatures)  # no drops: no percentiles
    assert isinstance(options[0].module(), OTAMLoss)
    with pytest.raises(ValueError, match="loss is 'l2'; choose one of smooth, drop, otam"):
        Objective("l2").module()


def test_a_new_data_set_is_one_entry(tmp_path, monkeypatch):
    mine = videos.Splits(*[made_up()] * 3, {}, "mine")
    new = experiment.Dataset(lambda folder: folder == "mine", lambda folder, settings: mine)
    monkeypatch.setattr(Penn, "datasets", {"mine": new, **experiment.DATASETS})
    assert Penn("mine", tmp_path).data.source == "mine"
    with pytest.raises(FileNotFoundError):
        assert Penn("yours", tmp_path).data


def test_the_command_runs_on_labels_in_the_published_layout(folder, tmp_path, monkeypatch):
    from scipy.io import loadmat, savemat

    cli = pytest.importorskip("reproduction.commands.video", reason="needs typer: pip install dropdtw[cli]")
    with pytest.raises(ValueError, match="tennis_serve has 1 video to evaluate on"):
        videos.pairs_of(Clips(("tennis_serve",), (20,), lambda k, at: at), 3)
    for k in range(6, 12):  # four videos of each action to train on, two to test
        source = folder / "labels" / f"{(1, 2, 3, 4, 5, 6)[k - 6]:04d}.mat"
        label = {n: v for n, v in loadmat(source).items() if not n.startswith("__")}
        savemat(folder / "labels" / f"{k + 1:04d}.mat", label)
    monkeypatch.setattr(Settings, "quick", lambda self: replace(ONE_WAY, seeds=self.seeds))
    cli.penn(data=folder, quick=True, seeds=2, out=tmp_path / "out")
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert "poses of 13 joints, videos: 4 for training, 4 for validation, 4 for testing" in results["videos"]
    assert set(results["tau"]) == {"non-cyclic", "cyclic", "all"}


def test_images_take_the_place_of_poses(folder):
    image = pytest.importorskip("PIL.Image")
    for v in penn.load(folder):
        place = folder / "frames" / v.name
        place.mkdir(parents=True)
        for k in range(len(v)):
            image.fromarray(np.full((6, 6, 3), 10 * k, np.uint8)).save(place / f"{k + 1:06d}.jpg")
    with pytest.raises(ValueError, match="pullup has 2 training videos"):
        videos.penn_splits(folder, images=8)
    found = penn.load(folder)
    clips = Clips(
        tuple(v.action for v in found), tuple(map(len, found)), lambda k, at: penn.frames(folder, found[k], at, 8)
    )
    splits = videos.Splits(clips, clips, clips, {}, "images")
    settings = Settings(epochs=1, pairs=2, batch=2, images=8)
    model, tau = experiment.train(splits, Objective("drop"), 0.3, settings, seed=0)
    assert isinstance(model.encoder, models.ImageEncoder)
    assert -1 <= tau <= 1
