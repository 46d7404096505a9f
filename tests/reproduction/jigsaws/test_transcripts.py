"""Training from transcripts: junk, the losses, and a quick end-to-end run."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")
pytest.importorskip("scipy", reason="intervals need scipy: make setup")
pytest.importorskip("lightning_fabric", reason="training needs Lightning Fabric: make setup")

from dropdtw import metrics  # noqa: E402
from jigsaws_trials import write_trials  # noqa: E402
from reproduction.jigsaws import report, training, trials  # noqa: E402
from reproduction.jigsaws.experiment import Settings, Transcripts  # noqa: E402
from reproduction.jigsaws.model import LOSSES, GestureModel, Labeled, Objective, cross_entropy, flat_labels  # noqa: E402
from reproduction.jigsaws.trials import Jigsaws, contaminated  # noqa: E402

TINY = Settings(
    seeds=2, epochs=2, flat=1, percentiles=(10.0, 30.0), clusters=(0.1, 0.5), junk=(0.4,), few=(0.2,), subjects=1
)


@pytest.fixture
def data(tmp_path):
    """14 trials of 4 subjects, of whom S07 has one task only."""
    write_trials(tmp_path)
    return Jigsaws.load(str(tmp_path), "S03")


def rows(frames):
    return {frame.tobytes() for frame in frames}


def test_a_trial_becomes_a_video_of_half_seconds(data):
    video, trial = data.videos[0], data.trials[0]
    assert video.frames.shape == (len(trial.kinematics) // 5, 10)
    np.testing.assert_allclose(video.frames.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(video.frames.std(axis=0), 1, atol=1e-3)
    for row, (gesture, start, stop) in enumerate(trial.segments):
        assert data.gestures[video.step_ids[row]] == gesture
        assert set(video.rows[start // 5 : stop // 5]) == {row}
    np.testing.assert_array_equal(video.steps, np.eye(5)[video.step_ids])


@pytest.mark.parametrize("share", [0.2, 0.4, 0.75])
def test_junk_is_runs_of_other_tasks_between_gestures(data, share):
    for video in data.videos:
        mixed = contaminated(video, data.videos, share)
        assert abs(share * len(mixed.frames) - (len(mixed.frames) - len(video.frames))) <= 0.5
        own = np.array([frame.tobytes() in rows(video.frames) for frame in mixed.frames])
        np.testing.assert_array_equal(mixed.frames[own], video.frames)  # all of them, in order
        np.testing.assert_array_equal(mixed.rows[own], video.rows)
        assert set(mixed.rows[~own]) == {-1}
        others = [v for v in data.videos if v.task != video.task]
        fitting = rows(np.concatenate([v.frames[~np.isin(v.labels, video.step_ids)] for v in others]))
        assert rows(mixed.frames[~own]) <= fitting
        assert len(mixed.frame_segments) == len(video.frame_segments)  # no gesture is torn
        again = contaminated(video, data.videos, share)
        np.testing.assert_array_equal(mixed.frames, again.frames)


def test_what_cannot_be_junk_is_refused(data):
    video = data.videos[0]
    assert contaminated(video, [], 0.0) is video
    with pytest.raises(ValueError, match="the share of junk is 1"):
        contaminated(video, data.videos, 1.0)
    with pytest.raises(ValueError, match="no trial of another task shows other gestures"):
        contaminated(video, [v for v in data.videos if v.task == video.task], 0.4)


@pytest.mark.parametrize("subject", ["S02", "S07"])
def test_nothing_of_a_tested_trial_is_trained_on(data, subject):
    splits = data.splits(subject, 0.4)
    named = [set(part.names) for part in (splits.train, splits.val, splits.test)]
    assert sorted(set.union(*named)) == sorted(t.name for t in data.trials)
    assert sum(map(len, named)) == len(data.trials)
    assert {name.split("_")[-2] for name in named[1]} == {"S03"}
    assert {name.split("_")[-2] for name in named[2]} == {subject}
    trained = rows(np.concatenate([v.frames for v in splits.train]))
    for part in (splits.val, splits.test):
        assert not trained & rows(np.concatenate([v.frames for v in part]))
    (first, *_) = data.recorded(subject)
    assert len(first.frames) < len(splits.test[0].frames)


def test_the_subject_for_choices_must_be_there(tmp_path):
    write_trials(tmp_path, subjects=("S02", "S04", "S05"))
    with pytest.raises(ValueError, match="chosen on subject S03, but the trials are of S02, S04, S05"):
        Jigsaws.load(str(tmp_path), "S03")
    write_trials(tmp_path, subjects=("S02", "S03"))
    with pytest.raises(ValueError, match="two or more others"):
        Jigsaws.load(str(tmp_path), "S03")


def test_flat_labels_divide_a_trial_evenly(data):
    video = data.videos[0]
    short = replace(video, frames=video.frames[:10], segments=None)
    assert flat_labels(short).tolist() == np.repeat(video.step_ids, [3, 2, 3, 2]).tolist()


def test_cross_entropy_is_the_mean_over_real_frames():
    log_p = torch.log_softmax(torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0)), dim=-1)
    labels = torch.tensor([[0, -1, 1, 0], [1, -2, -2, -2]])
    first = -(log_p[0, 0, 0] + log_p[0, 1, 2] + log_p[0, 2, 1] + log_p[0, 3, 0]) / 4
    torch.testing.assert_close(cross_entropy(log_p, labels, 2), torch.stack([first, -log_p[1, 0, 1]]))


def batch(data, numbers):
    return Labeled.of([data.videos[k] for k in numbers])


@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "flat"])
def test_padding_changes_nothing(data, loss):
    torch.manual_seed(0)
    model = GestureModel(10, 5, Objective(loss, cluster=0.0 if LOSSES[loss].loss is None else 0.5)).eval()
    order = sorted(range(4), key=lambda k: len(data.videos[k].frames))
    both = batch(data, order[:2])
    longer = batch(data, [order[0], order[1], order[3]])
    more = Labeled(
        replace(longer.tensors, frames=longer.tensors.frames[:2], steps=longer.tensors.steps[:2],
                ids=longer.tensors.ids[:2], x_lengths=longer.tensors.x_lengths[:2],
                z_lengths=longer.tensors.z_lengths[:2]),
        longer.labels[:2],
    )  # fmt: skip
    assert more.labels.shape[1] > both.labels.shape[1]
    if LOSSES[loss].contrast or loss == "d3tw":  # the wrong order is drawn
        torch.manual_seed(1)
        expected = model(both)
        torch.manual_seed(1)
    else:
        expected = model(both)
    torch.testing.assert_close(model(more), expected, rtol=1e-4, atol=1e-5)


def test_ctc_is_drop_dtw_with_a_background_class(data):
    """No gesture follows itself here, so both sum over the same alignments."""
    torch.manual_seed(0)
    model = GestureModel(10, 5, Objective("ctc")).eval()
    other = GestureModel(10, 5, Objective("drop-background")).eval()
    other.load_state_dict(model.state_dict())
    some = batch(data, range(4))
    torch.testing.assert_close(model(some), other(some), rtol=1e-4, atol=1e-5)


def test_a_gesture_that_is_everywhere_is_not_cheap(data):
    torch.manual_seed(0)
    model = GestureModel(10, 5, Objective("smooth"))
    with torch.no_grad():
        model.embeddings.copy_(model.embeddings[:1].expand_as(model.embeddings))
    model.count(data.recorded("S02"))
    C, drop = model.costs(data.videos[0])
    assert drop is None
    np.testing.assert_allclose(C, 0, atol=1e-5)  # all gestures alike
    torch.manual_seed(0)
    model = GestureModel(10, 5, Objective("smooth"))
    model.count(data.recorded("S02"))
    p = np.exp(-np.concatenate([_all_costs(model, video) for video in data.recorded("S02")], axis=1))
    np.testing.assert_allclose(p.mean(axis=1), 1, rtol=1e-4)  # p(g | x) / p(g) has mean 1 for each gesture


def _all_costs(model, video):
    return model.costs(replace(video, step_ids=np.arange(5), step_texts="abcde", steps=np.eye(5), segments=()))[0]


def test_training_finds_gestures_of_uneven_length(data):
    parts = data.splits("S02", 0.4)
    found = {}
    for loss, epochs in (("flat", 1), ("drop-contrast", 15)):
        model = training.trained(parts.train, Objective(loss), TINY, 4, 0, epochs)
        setting, validated = training.choose_setting(model, parts.val)
        tested = training.found(model, parts.test, setting)
        found[loss] = np.mean([metrics.iou(v.ids_of(some), v.labels) for v, some, _ in tested])
        assert 0 <= validated <= 1
    assert found["drop-contrast"] > found["flat"] + 0.1


def test_rows_are_compared_with_their_own_reference():
    assert report.reference("OTAM") == "Drop-DTW, percentile"
    assert report.reference("D³TW + L_clust") == "Drop-DTW, percentile, contrast of orders + L_clust"


def test_the_experiment_runs_and_is_not_run_twice(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    folder = tmp_path / "trials"
    folder.mkdir()
    write_trials(folder)
    some = {name: LOSSES[name] for name in ("flat", "otam", "drop-percentile", "ctc")}
    monkeypatch.setattr("reproduction.jigsaws.experiment.LOSSES", some)
    monkeypatch.setattr("reproduction.jigsaws.experiment.FEW", ("flat", "drop-percentile"))
    said = []
    results = Transcripts.reproduce(TINY, tmp_path / "out", folder=str(folder), command="the command", say=said.append)
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == json.loads(json.dumps(results))
    assert "the command" in (tmp_path / "out" / "report.html").read_text()
    titles = ["flat start", "OTAM", "Drop-DTW, percentile", "CTC"]
    assert list(results["junk"]) == ["20", "40"]
    assert list(results["junk"]["20"]) == ["flat start", "Drop-DTW, percentile"]
    some = results["junk"]["40"]
    assert list(some) == [*titles, "OTAM + L_clust", "Drop-DTW, percentile + L_clust"]
    row = some["Drop-DTW, percentile"]
    assert np.shape(row["by_subject"]) == (1, 4)
    assert np.shape(row["by_seed"]) == (2, 4)
    assert row["percentiles"][0] in TINY.percentiles
    assert some["Drop-DTW, percentile + L_clust"]["percentiles"] == row["percentiles"]
    assert some["OTAM"]["percentiles"] == []

    def never(*args, **options):
        raise AssertionError("trained again")

    monkeypatch.setattr("reproduction.jigsaws.experiment.trained", never)
    again = Transcripts.reproduce(TINY, tmp_path / "out", folder=str(folder), say=said.append)
    assert again == results


def test_a_run_needs_a_folder(tmp_path):
    with pytest.raises(ValueError, match="needs --folder"):
        Transcripts.reproduce(TINY, tmp_path, say=lambda text: None)


def test_runs_have_the_lengths_that_are_said():
    assert trials.RUNS[0] * trials.POOLED / 10 == 2
    assert (trials.RUNS[1] - 1) * trials.POOLED / 10 == 8
