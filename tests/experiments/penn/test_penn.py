"""Penn Action and representation learning: labels, poses, contamination, encoders, and the whole, quickly."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loader_cases import made_up_digits

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: pip install dropdtw[experiments]")
pytest.importorskip("scipy", reason="Kendall's tau needs scipy: pip install dropdtw[experiments]")

from dropdtw.data import mnist, penn  # noqa: E402
from dropdtw.experiments.penn import experiment, videos  # noqa: E402
from dropdtw.experiments.penn import model as models  # noqa: E402
from dropdtw.experiments.penn import stand_in as standin  # noqa: E402
from dropdtw.experiments.penn.model import Aligner, Clips, Objective, Pair, Windows, contaminate, make_pair  # noqa: E402

RNG = np.random.default_rng(0)
DIGITS = made_up_digits(RNG)


def person(T, seed=0):
    """Joints (T, 13, 2) somewhere in an image."""
    return 50 + 100 * np.random.default_rng(seed).random((T, 13, 2))


@pytest.fixture
def folder(tmp_path):
    """Six videos in the published layout."""
    from scipy.io import savemat

    (tmp_path / "labels").mkdir()
    for k in range(6):
        xy = person(20 + k, k)
        label = {
            "action": "tennis_serve" if k % 2 else "pull_ups",
            "pose": "front",
            "train": 1 if k < 4 else -1,
            "dimensions": np.array([[270, 480, 20 + k]]),
            "nframes": 20 + k,
            "x": xy[..., 0],
            "y": xy[..., 1],
            "visibility": np.ones((20 + k, 13)),
            "bbox": np.zeros((20 + k, 4)),
        }
        savemat(tmp_path / "labels" / f"{k + 1:04d}.mat", label)
    return tmp_path


# --- Labels and poses -------------------------------------------------------------------------------------------


def test_the_published_labels_are_read(folder):
    videos = penn.load(folder)
    assert [v.name for v in videos] == [f"{k + 1:04d}" for k in range(6)]
    assert [v.action for v in videos] == ["pullup", "tennis_serve"] * 3  # one name, whatever the file calls it
    assert [v.train for v in videos] == [True] * 4 + [False] * 2
    assert [len(v) for v in videos] == [20, 21, 22, 23, 24, 25]
    assert videos[0].size == (270, 480)
    np.testing.assert_allclose(videos[2].xy, person(22, 2), rtol=1e-6)
    assert videos[2].visible.all()


def test_the_packed_labels_are_the_same(folder):
    videos = penn.load(folder)
    packed = {
        "xy": np.concatenate([v.xy for v in videos]),
        "visibility": np.concatenate([v.visible for v in videos]).astype(np.uint8),
        "length": np.array([len(v) for v in videos]),
        "action": np.array([v.action for v in videos]),
        "train": np.array([v.train for v in videos]),
        "frame_hw": np.array([v.size for v in videos]),
        "video": np.array([v.name for v in videos]),
    }
    other = folder / "packed"
    other.mkdir()
    path = other / "pennaction_keypoints.npz"
    np.savez(path, **packed)
    for place in (other, path):
        for a, b in zip(penn.load(place), videos, strict=True):
            assert (a.name, a.action, a.train, a.size) == (b.name, b.action, b.train, b.size)
            np.testing.assert_array_equal(a.xy, b.xy)
    np.savez(path, **{**packed, "length": packed["length"] + 1})
    with pytest.raises(ValueError, match=r"lengths sum to 141, but there are 135 frames"):
        penn.load(path)
    del packed["visibility"]
    np.savez(path, **packed)
    with pytest.raises(ValueError, match=r"not in the published layout.*visibility"):
        penn.load(path)


def test_what_is_wrong_with_labels_is_said(folder, tmp_path_factory):
    from scipy.io import loadmat, savemat

    with pytest.raises(FileNotFoundError, match="name Penn Action's folder"):
        penn.load(tmp_path_factory.mktemp("empty"))
    path = folder / "labels" / "0003.mat"
    good = {k: v for k, v in loadmat(path).items() if not k.startswith("__")}
    for change, message in (
        ({"action": "knitting"}, "'knitting'; the actions are"),
        ({"x": good["x"][:, :5]}, "not in the published layout"),
        ({"x": good["x"] * np.nan}, "no finite numbers"),
        ({"visibility": good["visibility"][:4]}, r"visibility of shape \(4, 13\)"),
    ):
        savemat(path, {**good, **change})
        with pytest.raises(ValueError, match=message):
            penn.load(folder)
    path.write_bytes(b"no mat file at all")
    with pytest.raises(ValueError, match=r"0003\.mat is not in the published layout"):
        penn.load(folder)


def video(xy):
    return penn.Video("0001", "bowl", True, np.asarray(xy, np.float32), np.ones(xy.shape[:2], bool), (300, 300))


def test_neither_place_nor_size_of_the_person_matters():
    xy = person(12)
    poses = video(xy).poses()
    np.testing.assert_allclose(video(2.5 * xy + [40, 7]).poses(), poses, atol=1e-5)
    np.testing.assert_allclose(poses.max(axis=1) + poses.min(axis=1), 0, atol=1e-5)  # the middle of the box
    sides = (poses.max(axis=1) - poses.min(axis=1)).max(axis=1)
    assert np.median(sides) == pytest.approx(1, abs=1e-5)


def test_joints_without_a_place_are_interpolated_and_do_not_stretch_the_box():
    xy = person(9)
    xy[:, 4] = np.linspace(60, 140, 9)[:, None]  # moves evenly, well inside
    xy[:, 0], xy[:, 1] = (50, 50), (150, 150)  # the box is the same in all frames
    whole = video(xy).poses()
    lost = xy.copy()
    lost[3:6, 4] = 1
    np.testing.assert_allclose(video(lost).poses(), whole, atol=1e-5)
    lost[:, 4] = 1
    never = video(lost).poses()
    assert not never[:, 4].any()
    np.testing.assert_allclose(np.delete(never, 4, axis=1), np.delete(whole, 4, axis=1), atol=1e-5)
    assert not video(np.ones((5, 13, 2))).poses().any()


def test_frames_are_read_as_squares(folder):
    image = pytest.importorskip("PIL.Image")
    place = folder / "frames" / "0001"
    place.mkdir(parents=True)
    for k in range(3):
        image.fromarray(np.full((20, 30, 3), 80 * k, np.uint8)).save(place / f"{k + 1:06d}.jpg")
    first = penn.load(folder)[0]
    found = penn.frames(folder, first, [2, 0], side=8)
    assert found.shape == (2, 8, 8, 3)
    assert found.dtype == np.uint8
    np.testing.assert_allclose(found.mean(axis=(1, 2, 3)), [160, 0], atol=3)
    with pytest.raises(FileNotFoundError, match=r"000006\.jpg; get the frames"):
        penn.frames(folder, first, [5])


# --- Pairs and their contamination ------------------------------------------------------------------------------


def made_up(actions=3, each=6, T=(24, 40), seed=0, d=5, noise=0.05):
    """Each action is a path of its own; a frame tells where on it we are."""
    rng = np.random.default_rng(seed)
    paths = np.random.default_rng(9).normal(size=(actions, 6, d))
    frames, phases, names = [], [], []
    for action in range(actions):
        for _ in range(each):
            length = int(rng.integers(*T))
            phase = np.sort(rng.random(length))
            points = np.stack([np.interp(phase, np.linspace(0, 1, 6), paths[action, :, k]) for k in range(d)], axis=1)
            frames.append((points + noise * rng.normal(size=points.shape)).astype(np.float32))
            phases.append(phase)
            names.append(f"action {action}")
    return Clips(tuple(names), tuple(map(len, frames)), lambda k, at: frames[k][at], tuple(phases))


@pytest.mark.parametrize(
    ("share", "share_of", "count"), [(0.0, "mixed", 0), (0.3, "mixed", 9), (0.5, "mixed", 20), (0.5, "own", 10)]
)
def test_contamination_adds_frames_of_another_action_to_y_alone(share, share_of, count):
    clips = made_up()
    for number in range(30):
        clean = make_pair(clips, number, 0.0, seed=3)
        pair = make_pair(clips, number, share, seed=3, share_of=share_of)
        np.testing.assert_array_equal(pair.x, clean.x)
        np.testing.assert_array_equal(pair.y[~pair.outlier], clean.y)  # all there, in order
        assert pair.outlier.sum() == count
        assert len(pair.y) == 20 + count
        assert len(set(pair.x[:, 0]) | set(clean.y[:, 0])) == 2  # two different videos
        one = {clips.actions[k] for k in pair.x[:, 0]} | {clips.actions[k] for k in clean.y[:, 0]}
        assert len(one) == 1
        strange = {clips.actions[k] for k in pair.y[pair.outlier, 0]}
        assert len(strange) == bool(count)
        assert not strange & one
        for video, frame in np.concatenate([pair.x, pair.y]).tolist():
            assert 4 <= frame < clips.lengths[video] - 4
        for part in (clean.x, clean.y):
            assert (np.diff(part[:, 1]) >= 0).all()
            assert part[-1, 1] - part[0, 1] > 0.8 * (clips.lengths[part[0, 0]] - 8)  # from beginning to end


def test_the_seed_decides_and_outliers_are_everywhere():
    clips = made_up()
    a, b, c = (make_pair(clips, 5, 0.5, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(a.y, b.y)
    assert a.y.shape != c.y.shape or (a.y != c.y).any()
    places = np.mean([make_pair(clips, n, 0.5, seed=1).outlier for n in range(300)], axis=0)
    assert (abs(places - 0.5) < 0.15).all()
    mixed, outlier = contaminate(np.arange(4), np.arange(10, 13), np.random.default_rng(0))
    assert mixed[~outlier].tolist() == [0, 1, 2, 3]
    assert sorted(mixed[outlier].tolist()) == [10, 11, 12]


def test_pairs_that_cannot_be_made_are_refused():
    with pytest.raises(ValueError, match=r"share of outliers is 1; give a number from 0"):
        models.outliers(1)
    with pytest.raises(ValueError, match="share_of is 'all'"):
        models.outliers(0.5, share_of="all")
    alone = made_up(actions=1)
    assert not make_pair(alone, 0, 0.0, seed=0).outlier.any()
    with pytest.raises(ValueError, match="one action only"):
        make_pair(alone, 0, 0.3, seed=0)
    with pytest.raises(ValueError, match="has 8 frames, and none of them has neighbours"):
        replace(alone, lengths=(8,) * len(alone)).inside(0)


def test_windows_are_frames_with_their_neighbours():
    clips = Clips(("a",) * 2, (20, 20), lambda k, at: 100 * k + np.asarray(at, np.float32)[:, None])
    assert clips.windows(1, np.array([4, 9]))[..., 0].tolist() == [[100, 102, 104, 106, 108], [105, 107, 109, 111, 113]]
    assert clips.inside(0).tolist() == list(range(4, 16))
    x = np.array([[0, 5], [0, 6]])
    y = np.array([[1, 5], [0, 8], [1, 4]])
    batch = Windows.of(clips, [Pair(x, y, np.zeros(3, bool))])
    assert batch.x.shape == (1, 2, 5, 1)
    assert batch.y[0, :, 2, 0].tolist() == [105, 8, 104]
    some = made_up().only([7, 2])
    assert some.actions == ("action 1", "action 0")
    np.testing.assert_array_equal(some.read(0, np.arange(3)), made_up().read(7, np.arange(3)))


# --- Encoders, training, evaluation -----------------------------------------------------------------------------


def test_encoders_have_one_interface():
    poses = models.PoseEncoder(6)(torch.randn(2, 3, 5, 6))
    images = torch.randint(0, 256, (2, 3, 5, 16, 16, 3), dtype=torch.uint8)
    encoder = models.ImageEncoder(channels=16, size=24)
    seen = encoder(images)
    assert poses.shape == (2, 3, 64)
    assert seen.shape == (2, 3, 24)
    for found in (poses, seen):
        torch.testing.assert_close(found.norm(dim=-1), torch.ones(2, 3))
    single = encoder(images[1:, 2:])
    torch.testing.assert_close(single[0, 0], seen[1, 2])
    loss = Aligner(encoder, Objective("drop"))(Windows(images, images))
    loss.sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in encoder.parameters())


@pytest.mark.parametrize("loss", ["smooth", "drop"])
def test_training_lowers_the_loss_and_raises_tau(loss):
    clips = made_up(each=8)
    splits = videos.Splits(clips, made_up(each=3, seed=1), made_up(each=3, seed=2), {}, "made up")
    settings = experiment.Settings(epochs=4, pairs=64, batch=16, lr=3e-3)
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


def test_an_unknown_loss_is_refused():
    with pytest.raises(ValueError, match="loss is 'l2'; choose 'smooth' or 'drop'"):
        Objective("l2").module()


def test_videos_that_are_the_same_have_tau_one_and_no_error():
    frames = np.arange(30, dtype=np.float32)[:, None]
    clips = Clips(("a",) * 3, (30,) * 3, lambda k, at: frames[at], (np.linspace(0, 1, 30),) * 3)
    pairs = videos.pairs_of(clips, 10)
    assert sorted(pairs["a"]) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    found = videos.evaluate(lambda k: frames[clips.inside(k)], clips, pairs)
    assert found.tau == {"a": 1.0}
    assert found.error == {"a": 0.0}
    backwards = videos.evaluate(
        lambda k: frames[clips.inside(k)] if k == 0 else 29 - frames[clips.inside(k)], clips, {"a": [(0, 1)]}
    )
    assert backwards.tau["a"] == pytest.approx(-1)
    assert videos.raw(clips, pairs).tau == {"a": 1.0}


def test_a_fifth_of_each_action_is_held_out():
    clips = made_up(actions=2, each=10)
    train, held = videos.held_out(clips, range(20), seed=0)
    assert sorted(train + held) == list(range(20))
    assert [clips.actions[k] for k in held] == ["action 0"] * 2 + ["action 1"] * 2
    with pytest.raises(ValueError, match="action 0 has 3 training videos; at least 4"):
        videos.held_out(clips, [0, 1, 2, *range(10, 20)], seed=0)


def test_the_stand_in_moves_at_changing_speed_and_knows_its_phase():
    splits = standin.splits(5, seed=1, digits=DIGITS)
    assert (len(splits.train), len(splits.validation), len(splits.test)) == (24, 16, 16)
    for k in range(len(splits.test)):
        phase = splits.test.phases[k]
        assert phase[0] == 0
        assert phase[-1] == pytest.approx(1)
        steps = np.diff(phase)
        assert (steps > 0).all()
        assert steps.max() > 1.05 * steps.min()
    frames, phase = standin.moving(np.full((28, 28), 255), "/", np.random.default_rng(0))
    places = (frames.reshape(-1, 16, 16).sum(axis=1) * np.arange(16)).sum(axis=1) / frames.sum(axis=1)
    np.testing.assert_allclose((places - places[0]) / (places[-1] - places[0]), phase, atol=0.03)


# --- The whole --------------------------------------------------------------------------------------------------

TINY = experiment.Settings(
    seeds=2, levels=(0.0, 0.5), epochs=1, pairs=16, batch=8, test_pairs=2, clips=4,
    temperatures=(0.1, 0.3), percentiles=(10.0, 30.0), drop_temperatures=(0.1,),
)  # fmt: skip


ONE_WAY = replace(TINY, temperatures=(0.1,), percentiles=(10.0,))


def test_the_experiment_runs_on_the_stand_in_and_is_not_run_twice(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(mnist, "load", lambda folder=None: DIGITS)
    said = []
    results = experiment.reproduce(TINY, tmp_path, command="the command", say=said.append)
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
    assert experiment.reproduce(TINY, tmp_path, say=said.append) == results


def test_settings_are_chosen_at_each_level_by_validation_and_fairly(tmp_path, monkeypatch):
    settings = replace(experiment.Settings(), levels=(0.0, 0.5), epochs=7)
    options = experiment.tried(settings)
    assert len(options["smooth"]) == len(options["drop"])
    asked = []

    def train(splits, objective, level, settings, seed, *, epochs=None, **rest):
        asked.append((objective, level, seed, epochs))
        wanted = {("smooth", 0.0): 0.2, ("smooth", 0.5): 0.5, ("drop", 0.0): 170.0, ("drop", 0.5): 10.0}
        value = objective.gamma_match if objective.loss == "smooth" else objective.percentile
        return None, -abs(value - wanted[objective.loss, level])

    monkeypatch.setattr(experiment, "train", train)
    monkeypatch.setattr(experiment.Trainings, "splits", videos.Splits(*[made_up()] * 3, {}, "made up"))
    chosen = experiment.choose(experiment.Trainings(None, tmp_path, "cpu", settings))
    assert [o.gamma_match for o in chosen["smooth"]] == [0.2, 0.5]
    assert [o.percentile for o in chosen["drop"]] == [70.0, 10.0]
    assert len(asked) == 2 * (len(options["smooth"]) + len(options["drop"]))
    assert {(seed, epochs) for _, _, seed, epochs in asked} == {(0, 3)}


def test_the_command_runs_on_labels_in_the_published_layout(folder, tmp_path, monkeypatch):
    from scipy.io import loadmat, savemat

    cli = pytest.importorskip("dropdtw.cli.reproduce_video", reason="needs typer: pip install dropdtw[cli]")
    with pytest.raises(ValueError, match="tennis_serve has 1 video to evaluate on"):
        videos.pairs_of(Clips(("tennis_serve",), (20,), lambda k, at: at), 3)
    for k in range(6, 12):  # four videos of each action to train on, two to test
        source = folder / "labels" / f"{(1, 2, 3, 4, 5, 6)[k - 6]:04d}.mat"
        label = {n: v for n, v in loadmat(source).items() if not n.startswith("__")}
        savemat(folder / "labels" / f"{k + 1:04d}.mat", label)
    monkeypatch.setattr(experiment.Settings, "quick", lambda self: replace(ONE_WAY, seeds=self.seeds))
    cli.penn(data=folder, quick=True, seeds=2, out=tmp_path / "out")
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert "poses of 13 joints, 4 + 4 videos" in results["videos"]
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
    settings = experiment.Settings(epochs=1, pairs=2, batch=2, images=8)
    model, tau = experiment.train(splits, Objective("drop"), 0.3, settings, seed=0)
    assert isinstance(model.encoder, models.ImageEncoder)
    assert -1 <= tau <= 1


def test_raw_poses_of_penn_action():
    place = Path(os.environ.get("DROPDTW_DATA", "/nonexistent")) / "pennaction"
    if not place.exists():
        pytest.skip("Penn Action is not here: set DROPDTW_DATA to a folder with pennaction/")
    splits = videos.penn_splits(place)
    assert len(splits.train) + len(splits.validation) == 1258
    assert len(splits.test) == 1068
    base = videos.raw(splits.test, videos.pairs_of(splits.test, 40))
    assert base.over(splits.groups["cyclic"]) == pytest.approx(0, abs=0.06)
    assert base.over(splits.groups["non-cyclic"]) == pytest.approx(0.35, abs=0.08)
