"""Step localization: the stand-in's videos, training that helps, tables and bars."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: pip install dropdtw[experiments]")
pytest.importorskip("lightning_fabric", reason="training needs Lightning Fabric: pip install dropdtw[experiments]")

from dropdtw.data.steps import collate  # noqa: E402
from dropdtw.experiments.common.report import Table  # noqa: E402
from dropdtw.experiments.common.training import Plan  # noqa: E402
from dropdtw.experiments.steps import bars as step_bars  # noqa: E402
from dropdtw.experiments.steps import experiment as steps  # noqa: E402
from dropdtw.experiments.steps import paper as paper_tables  # noqa: E402
from dropdtw.experiments.steps import stand_in as tmnist_steps  # noqa: E402
from dropdtw.experiments.steps import tables as step_tables  # noqa: E402
from dropdtw.experiments.steps.model import LOSSES, Objective, StepModel, Tensors  # noqa: E402
from step_cases import CLASSES, DATA, HOW, POOL, splits  # noqa: E402

# --- The stand-in ---------------------------------------------------------------------------------------------------


def test_tasks_have_three_to_eight_steps_and_some_repeat_one():
    tasks = tmnist_steps.tasks(replace(HOW, tasks=300), 80)
    different = [len(set(task.events)) for task in tasks]
    assert min(different) == 3
    assert max(different) == 8
    repeated = [len(task.events) > n for task, n in zip(tasks, different, strict=True)]
    assert 0.3 < np.mean(repeated) < 0.5
    for task in tasks:  # the second time is not directly after the first, or it would be no second time
        assert all(a != b for a, b in zip(task.events, task.events[1:], strict=False))
    assert tasks == tmnist_steps.tasks(replace(HOW, tasks=300), 80)


def test_videos_follow_the_statistics_of_coin():
    z = tmnist_steps.step_embeddings(POOL, HOW)
    videos = list(tmnist_steps.data_set(POOL, z, replace(HOW, tasks=40, videos=8), 0))
    background = np.mean([(video.labels < 0).mean() for video in videos])
    assert 0.45 < background < 0.68  # COIN: 57.5 %
    seconds = [stop - start for video in videos for _, start, stop in video.segments]
    assert 6 < np.median(seconds) < 13  # COIN: 9 s
    assert all(video.clip_seconds == 3.2 for video in videos)


def test_frames_of_a_step_come_from_its_class_in_order():
    video = DATA.train[4]
    codes = {
        tuple(row): (k, t)
        for videos in POOL
        for k, clip in enumerate(videos.full)
        for t, row in enumerate(clip.tolist())
    }
    for row, start, stop in video.frame_segments:
        places = [codes[tuple(frame)] for frame in video.frames[start:stop].tolist()]
        assert {k for k, _ in places} == {video.step_ids[row]}
        assert [t for _, t in places] == sorted(t for _, t in places)
    parts = {tuple(row): k for videos in POOL for k, clip in enumerate(videos.part) for row in clip.tolist()}
    others = {parts.get(tuple(frame)) for frame in video.frames[video.labels < 0].tolist()}
    assert len(others) > 2
    assert not others & set(video.step_ids.tolist())
    seen = {parts.get(tuple(frame)) for v in DATA.train for frame in v.frames[v.labels < 0].tolist()}
    assert seen >= set(range(CLASSES)) | {None}  # None: blurred
    for v in DATA.train:
        assert not {parts.get(tuple(frame)) for frame in v.frames.tolist()} & set(v.step_ids.tolist())


def test_splits_have_other_videos_of_the_same_tasks():
    assert set(DATA.train.tasks) == set(DATA.val.tasks) == set(DATA.test.tasks)
    names = [video.frames.tobytes() for part in (DATA.train, DATA.val, DATA.test) for video in part]
    assert len(set(names)) == len(names)
    again = splits()
    np.testing.assert_array_equal(DATA.test[5].frames, again.test[5].frames)


def test_imperfection_moves_embeddings_away():
    exact, half, none = (tmnist_steps.step_embeddings(POOL, replace(HOW, imperfection=i)) for i in (0.0, 0.5, 1.0))
    np.testing.assert_allclose(np.linalg.norm(half, axis=1), 1, rtol=1e-6)
    kept = (exact * half).sum(axis=1)
    assert 0.4 < kept.mean() < 0.95
    assert abs((exact * none).sum(axis=1).mean()) < 0.3


# --- Training -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("cluster", [False, True])
def test_every_loss_gives_one_number_per_video_whatever_the_batch(loss, cluster):
    model = steps.make_model(DATA.train, Objective(loss, cluster), 0)
    batch = Tensors.of(collate(DATA.train.load([0, 9, 17])))
    torch.manual_seed(0)
    together = model(batch)
    assert together.shape == (3,)
    assert torch.isfinite(together).all()
    if loss == "none" and not cluster:
        assert not together.any()
        return
    if loss == "d3tw":  # shuffles of its own
        return
    alone = torch.cat([model(Tensors.of(collate(DATA.train.load([k])))) for k in (0, 9, 17)])
    assert torch.allclose(together, alone, rtol=1e-4)
    together.sum().backward()
    moved = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert {"network.2.weight", "network.2.bias"} <= moved  # the first layer follows when the last is no longer 0
    if loss in ("drop-learned", "drop-anchored"):
        assert "drop.network.0.weight" in moved


def test_an_unknown_loss_is_refused():
    with pytest.raises(ValueError, match="loss is 'sharp'; choose one of drop-percentile, drop-learned"):
        Objective("sharp")


def test_frames_and_steps_of_different_sizes():
    model = StepModel(5, 3, Objective())
    assert model.embed(torch.zeros(2, 7, 5)).shape == (2, 7, 3)
    fresh = StepModel(4, 4, Objective())
    x = torch.rand(3, 4)
    assert torch.equal(fresh.embed(x), x)  # training starts from the features as they are


@pytest.mark.parametrize("loss", ["drop-percentile", "drop-learned", "drop-anchored"])
def test_costs_in_use_are_those_of_training(loss):
    """The drop costs that inference uses are those that the loss trains, at the same temperature."""
    model = steps.make_model(DATA.train, Objective(loss, gamma_match=30.0, gamma_test=30.0), 0)
    if model.drop is not None:
        for parameter in model.drop.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
    v = DATA.train[3]
    Z, X = model.vectors(v)
    from dropdtw.torch.batch import pairs

    p = pairs(*(torch.from_numpy(part)[None] for part in (Z, X)), None, None, torch.from_numpy(v.step_ids)[None])
    C, drop_x, _ = model.align.costs(p)
    ours, ours_x = model.costs(v)
    np.testing.assert_allclose(ours, C[0].detach().numpy(), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ours_x, drop_x[0].detach().numpy(), rtol=1e-3, atol=1e-4)


def test_an_epoch_lowers_the_loss_and_beats_untrained_features(tmp_path):
    before = steps.make_model(DATA.train, Objective("none", cluster=False), 0)
    untrained = steps.evaluate(before, DATA.test, steps.choose_percentile(before, DATA.val))
    model, done = steps.train_model(
        DATA.train, DATA.val, Objective(), Plan(epochs=8, lr=3e-3), out=tmp_path, progress=False
    )
    losses = [line["loss"] for line in done.history[1:]]
    assert losses[-1] < losses[0]
    trained = steps.evaluate(model, DATA.test, steps.choose_percentile(model, DATA.val))
    assert trained.recall > untrained.recall
    assert trained.iou > untrained.iou
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert max(line["recall"] for line in lines) == done.best["recall"]


# --- Tables and pictures --------------------------------------------------------------------------------------------


def test_rows_are_trained_once_and_kept(tmp_path, monkeypatch):
    rows = {"features": Objective("none", cluster=False), "clust": Objective("none")}
    plan = Plan(epochs=1)
    made = step_tables.trained_rows(rows, lambda seed: DATA, "k", range(2), tmp_path, plan=plan, progress=False)
    assert {name: len(r.scores) for name, r in made.items()} == {"features": 2, "clust": 2}
    monkeypatch.setattr(step_tables, "_train_row", lambda *a: pytest.fail("this is kept"))
    again = step_tables.trained_rows(
        rows, lambda seed: pytest.fail("not needed"), "k", range(2), tmp_path, plan=plan, progress=False
    )
    assert again == made


@pytest.mark.parametrize("number", [1, 4, 5, 6])
def test_tables_show_ours_beside_the_papers(number):
    ours = {name: step_tables.Result(((10.0, 20.0, 30.0), (12.0, 20.0, 30.0))) for name in step_tables.ROWS[number]}
    table = step_tables.table(number, ours, "a stand-in", 2)
    assert isinstance(table, Table)
    text = table.text()
    assert "a stand-in" in text
    assert "11.0 ± 1.0" in text
    shown = {row[0].split(";")[0] for row in table.rows}
    assert set(step_tables.PAPER[number]) | set(ours) == shown
    first = next(
        cells
        for cells in step_tables.PAPER[number]["Drop-DTW, percentile" if number == 1 else next(iter(ours))]
        if cells != paper_tables.NONE
    )
    assert " / ".join(f"{cell:.1f}" for cell in first) in text
    if number == 1:
        for name in ("MaxMargin", "UniVL", "NN-Viterbi", "ISBA", "ProcNet"):
            assert name in shown


def test_the_inference_table_has_every_method():
    one = steps.Inference((5.0, 10.0), steps.Scores(0, 0.5, 0.25, 0.4))
    table = step_tables.inference_table(
        {"all background": one, **dict.fromkeys(steps.METHODS_COMPARED, one)}, "a stand-in"
    )
    rows = {row[0]: row for row in table.rows}
    assert rows["drop_dtw"][1:] == ["5, 10", "50.0", "25.0", "40.0", "70.2 / 30.5", "52.7 / 27.7", "66.0 / 47.5"]
    assert rows["smith_waterman"][-1] == "–"


def test_bars_show_the_truth_and_every_method():
    pytest.importorskip("matplotlib").use("Agg")
    models = {"Drop-DTW": "drop-percentile", "OTAM": "otam", "SmoothDTW": "smooth"}
    made = {name: steps.make_model(DATA.train, Objective(loss), 0) for name, loss in models.items()}
    percentiles = dict.fromkeys(made, 20.0)
    shown = step_bars.telling(list(DATA.test), 2)
    for rows_of in (step_bars.same_method, step_bars.drop_inference):
        rows = [rows_of(made, percentiles, v) for v in shown]
        assert [list(row) for row in rows] == [["truth", *models]] * 2
        np.testing.assert_array_equal(rows[0]["truth"], shown[0].labels)
        figure = step_bars.draw("what", shown, rows)
        assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["truth", *models]
    same = step_bars.same_method(made, percentiles, shown[0])
    assert (same["SmoothDTW"] >= 0).all()  # DTW has no background
    assert (step_bars.drop_inference(made, percentiles, shown[0])["SmoothDTW"] < 0).any()
    import matplotlib.pyplot as plt

    plt.close("all")
