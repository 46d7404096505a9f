"""Audio-visual localization: AVE's and GRID's files, the protocol, splices, the model, and the whole, quickly."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loader_cases import made_up_digits

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: pip install dropdtw[experiments]")
h5py = pytest.importorskip("h5py", reason="AVE's files need h5py: pip install dropdtw[experiments]")

from dropdtw.data import ave, grid, mnist  # noqa: E402
from dropdtw.experiments.ave import experiment, tasks  # noqa: E402
from dropdtw.experiments.ave import model as models  # noqa: E402
from dropdtw.experiments.ave.experiment import Recipe  # noqa: E402
from dropdtw.experiments.ave.model import Objective, TwoBranches, chance, evaluate, locate, splice  # noqa: E402

RNG = np.random.default_rng(0)
DIGITS = made_up_digits(RNG)
SPANS = [(0, 10), (6, 8), (0, 3), (5, 10), (2, 9), (0, 0), (4, 5), (1, 4)]


def write(path, name, array):
    with h5py.File(path, "w") as file:
        file[name] = array


@pytest.fixture
def folder(tmp_path):
    """Eight videos in AVE's published layout, with features."""
    lines = [f"Church bell&video{k}&good&{a}&{b}" for k, (a, b) in enumerate(SPANS)]
    (tmp_path / "Annotations.txt").write_text("\n".join(lines) + "\n")
    seconds = np.array([[a <= t < b for t in range(10)] for a, b in SPANS], np.float32)
    write(tmp_path / "labels_closs.h5", "avadataset", seconds)
    write(tmp_path / "audio_feature.h5", "avadataset", RNG.normal(size=(8, 10, 128)))
    write(tmp_path / "visual_feature_vec.h5", "avadataset", RNG.normal(size=(8, 10, 512)).astype(np.float32))
    for split, rows in (("train", [3, 0, 5, 1]), ("val", [2, 6]), ("test", [7, 4])):
        write(tmp_path / f"{split}_order_match.h5", "order", np.array(rows))
    return tmp_path


# --- Files ------------------------------------------------------------------------------------------------------


def test_the_published_files_of_ave_are_read(folder):
    found = ave.read_annotations(folder)
    assert [(a.start, a.stop) for a in found] == SPANS
    assert found[1] == ave.Annotation("Church bell", "video1", "good", 6, 8)
    with h5py.File(folder / "audio_feature.h5") as file:
        audio = file["avadataset"][()]
    parts = ave.load(folder)
    assert {split: len(part) for split, part in parts.items()} == {"train": 4, "val": 2, "test": 2}
    np.testing.assert_allclose(parts["train"].audio, audio[[3, 0, 5, 1]], rtol=1e-6)
    assert parts["train"].visual.shape == (4, 10, 512)
    assert [ave.event(row) for row in parts["test"].labels] == [(1, 4), (2, 9)]
    assert ave.event(parts["train"].labels[2]) is None  # a video without any event
    assert ave.event(np.array([True, False, True])) is None


def test_a_header_is_no_video(folder):
    path = folder / "Annotations.txt"
    path.write_text("Category&VideoID&Quality&StartTime&EndTime\n" + path.read_text())
    assert len(ave.read_annotations(folder)) == 8


def test_what_is_wrong_with_ave_is_said(folder, tmp_path_factory):
    with pytest.raises(FileNotFoundError, match=r"Annotations\.txt; name the folder of AVE"):
        ave.read_annotations(tmp_path_factory.mktemp("empty"))
    write(folder / "audio_feature.h5", "avadataset", np.zeros((8, 10, 64)))
    with pytest.raises(ValueError, match=r"audio_feature\.h5 has shape \(8, 10, 64\); \(8, 10, 128\) fits"):
        ave.load(folder)
    write(folder / "audio_feature.h5", "other", np.zeros((8, 10, 128)))
    with pytest.raises(ValueError, match=r"audio_feature\.h5 is not in the published layout.*'avadataset'"):
        ave.load(folder)
    assert ave.has_features(folder)
    (folder / "audio_feature.h5").unlink()
    assert not ave.has_features(folder)
    with pytest.raises(FileNotFoundError, match="features of AVE are published apart"):
        ave.load(folder)
    write(folder / "audio_feature.h5", "avadataset", np.zeros((8, 10, 128)))
    write(folder / "val_order_match.h5", "order", np.array([2, 8]))
    with pytest.raises(ValueError, match=r"val_order_match\.h5 names videos that are not among the 8"):
        ave.load(folder)
    (folder / "test_order_match.h5").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no .*test_order_match\.h5"):
        ave.orders(folder)
    (folder / "Annotations.txt").write_text("Bell&a&good&3&11\n")
    with pytest.raises(ValueError, match=r"line 1 .*seconds 3 to 11"):
        ave.read_annotations(folder)
    write(folder / "labels_closs.h5", "avadataset", np.zeros((8, 9)))
    with pytest.raises(ValueError, match=r"labels_closs\.h5 has shape \(8, 9\)"):
        ave.labels(folder)
    with pytest.raises(ValueError, match="as many sequences of the same length"):
        ave.Streams(np.zeros((2, 10, 3)), np.zeros((2, 9, 3)), np.zeros((2, 10), bool))


def test_the_annotations_of_ave_and_its_labels_agree():
    place = Path(os.environ.get("DROPDTW_DATA", "/nonexistent")) / "ave"
    if not place.exists():
        pytest.skip("AVE is not here: set DROPDTW_DATA to a folder with ave/")
    seconds = np.arange(10)
    spans = [(a.start <= seconds) & (seconds < a.stop) for a in ave.read_annotations(place)]
    np.testing.assert_array_equal(ave.labels(place), spans)
    splits = ave.orders(place)
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 3339, "val": 402, "test": 402}
    assert sorted(np.concatenate(list(splits.values()))) == list(range(4143))
    # Every test video of the localization task leaves something to find.
    events = [ave.event(row) for row in ave.labels(place)[splits["test"]]]
    assert all(event is not None and event != (0, 10) for event in events)


@pytest.fixture
def sentences(tmp_path):
    """A tiny GRID: the sound is a rotation of the lips' movement; one sentence lost its face."""
    n, T = 30, 40
    rng = np.random.default_rng(3)
    hidden = np.cumsum(rng.normal(size=(n, T, 6)), axis=1)
    lips = (hidden @ rng.normal(size=(6, 80))).reshape(n, T, 40, 2)
    sound = (hidden @ rng.normal(size=(6, 80))).reshape(n, 2 * T, 40)
    lips[4, 7] = np.nan
    words = np.array([["sil", "bin", "blue", "sp", "now", "sil"]] * n)
    frames = np.array([[[0, 8], [8, 14], [14, 21], [21, 21], [24, 30], [30, 40]]] * n)
    name = np.array([f"clip{k}" for k in range(n)])
    content = {"name": name, "lips": lips, "logmel": sound, "words": words, "word_frames": frames}
    np.savez(tmp_path / grid.FILE, **content)
    return tmp_path


def test_grid_is_read_without_silences_and_lost_faces(sentences):
    clips = grid.load(sentences)
    assert len(clips) == 29
    assert "clip4" not in clips.names
    assert clips.lips.shape == clips.sound.shape == (29, 40, 80)
    assert clips.words[0] == (("bin", 8, 14), ("blue", 14, 21), ("now", 24, 30))
    with np.load(sentences / grid.FILE) as file:
        content = dict(file)
    np.testing.assert_allclose(clips.sound[0, 3], content["logmel"][0, 6:8].ravel(), rtol=1e-6)
    with pytest.raises(FileNotFoundError, match="name the folder that holds grid_s1"):
        grid.load(sentences / "elsewhere")
    content["logmel"] = content["logmel"][:, ::2]
    np.savez(sentences / grid.FILE, **content)
    with pytest.raises(ValueError, match="two columns of sound a frame fit"):
        grid.load(sentences / grid.FILE)
    del content["words"]
    content["logmel"] = np.repeat(content["logmel"], 2, axis=1)
    np.savez(sentences / grid.FILE, **content)
    with pytest.raises(ValueError, match=r"not in the published layout.*words"):
        grid.load(sentences)


def test_context_is_the_neighbours():
    stream = np.arange(4.0)[None, :, None]
    assert grid.with_context(stream, 1)[0].tolist() == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 3]]


# --- The protocol -----------------------------------------------------------------------------------------------


def test_the_protocol_on_an_example_by_hand():
    audio = np.array([[0, 1, 5, 6, 0], [7, 7, 7, 7, 7]], float)[..., None]
    visual = np.array([[5, 6, 0, 5, 7], [7, 7, 7, 7, 7]], float)[..., None]
    # The query 5, 6 of the audio lies 0 away from the start and 1 from place 3: found at 0 instead of 2.
    assert locate(audio[0, 2:4], visual[0]) == 0
    # The query 0, 5 of the picture is 0, 1 in the audio but for 4, and 1, 5 but for 1: found at 1 instead of 2.
    assert locate(visual[0, 2:4], audio[0]) == 1
    events = [(0, 2, 4), (1, 0, 5)]  # the second fills its stream
    assert evaluate(audio, visual, events, (0, 1, 2)) == {"A2V": [0, 0, 1], "V2A": [0, 1, 1]}
    # Four starts, of which the tolerances take in one, three and all four.
    assert chance(events, 5, (0, 1, 2)) == [0.25, 0.75, 1.0]
    with pytest.raises(ValueError, match="none of 1 events leaves anything to find"):
        evaluate(audio, visual, events[1:])
    with pytest.raises(ValueError, match="the query has 6 elements and the stream 5"):
        locate(np.zeros((6, 1)), audio[0])


def test_the_sum_of_distances_decides_not_of_squares():
    stream = np.array([0.0, 3.0, 9.0, 1.6, 1.6])[:, None]
    assert locate(np.zeros((2, 1)), stream) == 0  # 0 + 3 < 1.6 + 1.6, though 9 > 5.12


# --- Splices, batches, model ------------------------------------------------------------------------------------


def test_splices_keep_the_order_and_are_whole_passages():
    rng = np.random.default_rng(0)
    own, strange = np.arange(20)[:, None], np.arange(100, 130)[:, None]
    starts = set()
    for _ in range(50):
        mixed, marked = splice(own, strange, 2, 6, rng)
        assert len(mixed) == 32
        assert marked.sum() == 12
        assert mixed[~marked, 0].tolist() == list(range(20))
        passages = mixed[marked, 0].reshape(2, 6)
        assert (np.diff(passages, axis=1) == 1).all()
        assert passages.min() >= 100
        starts.add(int(np.flatnonzero(marked)[0]))
    assert len(starts) > 10
    with pytest.raises(ValueError, match="passage of 31 does not fit into a stream of 30"):
        splice(own, strange, 1, 31, rng)


def test_batches_follow_from_their_numbers(sentences):
    task = tasks.of_grid(sentences, reach=1)
    assert (len(task.train), len(task.validation), len(task.test)) == (20, 3, 6)
    assert task.test.events[:3] == ((0, 8, 14), (0, 14, 21), (0, 24, 30))
    np.testing.assert_allclose(task.train.audio.mean(axis=(0, 1)), 0, atol=1e-4)
    np.testing.assert_allclose(task.train.audio.std(axis=(0, 1)), 1, atol=1e-3)
    whole = task.load([3, 4, 5], "both", 1, 24)
    torch.testing.assert_close(task.load([4], "both", 1, 24).audio[0], whole.audio[1])
    assert whole.audio.shape == (3, 24 + 8, 240)
    visual = task.load([3, 4, 5], "visual", 1, 24)
    assert visual.audio.shape[1] == 24
    assert visual.visual.shape[1] == 32
    clean = task.load([3, 4, 5], "none", 1, 24)
    torch.testing.assert_close(clean.audio, visual.audio)
    for k, video in enumerate(task._videos([3, 4, 5], seed=1)):  # both crops are of the same frames
        spans = [
            [s for s in range(17) if np.array_equal(stream[video, s : s + 24], crop[k].numpy())]
            for stream, crop in ((task.train.audio, clean.audio), (task.train.visual, clean.visual))
        ]
        assert len(spans[0]) == 1
        assert spans[0] == spans[1]
    for k in range(3):  # what belongs together is together: the clean crop lies in the spliced one, in order
        rows = iter(visual.visual[k].tolist())
        assert all(row in rows for row in clean.visual[k].tolist())
    halved = replace(task, crops=(18, 36))  # twice the frames have twice the passages
    assert halved.load([3], "both", 1, 36).audio.shape[1] == 36 + 2 * 8
    assert halved.load([3], "none", 1).audio.shape[1] == 40
    every = task._videos(range(20), seed=1)
    assert sorted(every) == list(range(20))
    assert every != task._videos(range(20), seed=2)


@pytest.mark.parametrize("loss", models.LOSSES)
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


def test_drop_dtw_is_the_papers_two_sided_one():
    loss = Objective("drop").alignment()
    assert loss.method == "drop_dtw_paper"
    assert (loss.drop_x, loss.drop_z, loss.match) == ("percentile:70", "percentile:70", "cosine")
    with pytest.raises(ValueError, match="loss is 'mean'; choose one of otam"):
        Objective("mean").alignment()


def test_linear_cca_finds_what_two_streams_share():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(2000, 2))
    a = np.concatenate([hidden, 5 * rng.normal(size=(2000, 3))], axis=1)
    b = np.concatenate([9 * rng.normal(size=(2000, 2)), -hidden], axis=1)
    to_a, to_b = models.cca(a, b, components=2)
    both = np.corrcoef((a @ to_a).T, (b @ to_b).T)
    assert both[0, 2] > 0.99
    assert both[1, 3] > 0.99


# --- The whole --------------------------------------------------------------------------------------------------

TINY = experiment.Settings(
    seeds=2, epochs=1, pairs=8, batch=4, spliced=("none", "both"), lrs=(1e-3,), gammas=(0.1,), percentiles=(30.0, 50.0),
    clips=6,
)  # fmt: skip


def test_the_experiment_runs_on_the_stand_in_and_is_not_run_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(mnist, "load", lambda folder=None: DIGITS)
    said = []
    results = experiment.reproduce(TINY, tmp_path, command="the command", say=said.append)
    assert json.loads((tmp_path / "results.json").read_text()) == json.loads(json.dumps(results))
    page = (tmp_path / "report.html").read_text()
    assert "the command" in page
    assert "not the paper&#x27;s data but stand-in" in page
    assert set(results["found"]) == {"none", "both"}
    rows = list(results["found"]["both"])
    assert rows == ["OTAM", "SmoothDTW", "Drop-DTW", experiment.PAPERS]
    chosen = {name: recipe["objective"]["percentile"] for name, recipe in results["chosen"].items()}
    assert chosen["Drop-DTW"] in (30.0, 50.0)
    assert chosen[experiment.PAPERS] == 70.0

    def never(*args, **options):
        raise AssertionError("trained again")

    monkeypatch.setattr(experiment, "train", never)
    assert experiment.reproduce(TINY, tmp_path, say=said.append) == results


def test_settings_are_chosen_by_validation_with_the_same_budget(sentences, tmp_path, monkeypatch):
    settings = experiment.Settings(epochs=9)
    work = experiment.Trainings(str(sentences), tmp_path, "cpu", settings)
    rows = experiment.tried(work.task, settings)
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


def test_linear_cca_has_its_crop_chosen_too(sentences, monkeypatch):
    task = replace(tasks.of_grid(sentences, reach=0), crops=(20, 40))
    crops = []

    def evaluated(audio, visual, part, tolerances):
        crops.append(len(crops))
        return np.full((2, 2), [0.5, 0.1, 0.4, 0.2][len(crops) - 1])  # validation and test, of each crop

    monkeypatch.setattr(tasks, "evaluated", evaluated)
    assert tasks.linear(task, "visual", 0)[0, 0] == 0.1  # its streams are of unequal length


def test_the_command_prints_the_papers_rows_beside_those_of_ave(folder, tmp_path, monkeypatch, capsys):
    cli = pytest.importorskip("dropdtw.cli.reproduce_video", reason="needs typer: pip install dropdtw[cli]")
    monkeypatch.setattr(experiment.Settings, "quick", lambda self: TINY)
    cli.ave(data=folder, quick=True, out=tmp_path / "out")
    shown = capsys.readouterr().out
    for line in ("paper: OTAM", "paper: SmoothDTW", "paper: Drop-DTW", "paper: supervised"):
        assert line in shown
    assert re.search(r"paper: Drop-DTW +41\.1 +35\.8", shown)
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert list(results["found"]) == ["none"]
    assert list(results["found"]["none"]) == ["OTAM", "SmoothDTW", "Drop-DTW"]
    of_ave = experiment.tried(experiment.task_of(str(folder), TINY), TINY)
    assert of_ave["Drop-DTW"] == [Recipe(Objective("drop", 70.0, normalize=None), TINY.lr)]


def test_grid_is_known_by_its_file(sentences):
    assert experiment.task_of(str(sentences), TINY).kind == "GRID"
    assert experiment.task_of(str(sentences / grid.FILE), TINY).kind == "GRID"
