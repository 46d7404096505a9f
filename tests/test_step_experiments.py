"""Step localization: the stand-in's videos, inference with every method, training that helps, and the tables."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: pip install dropdtw[experiments]")
pytest.importorskip("lightning_fabric", reason="training needs Lightning Fabric: pip install dropdtw[experiments]")

import dropdtw  # noqa: E402
from dropdtw import metrics  # noqa: E402
from dropdtw.data.steps import StepDataset, StepVideo, collate  # noqa: E402
from dropdtw.experiments import paper_tables, step_bars, step_data, step_tables, steps, tmnist_steps  # noqa: E402
from dropdtw.experiments.report import Table  # noqa: E402
from dropdtw.experiments.step_model import LOSSES, Objective, StepModel, Tensors  # noqa: E402
from dropdtw.experiments.training import Plan  # noqa: E402
from dropdtw.experiments.videos import Videos  # noqa: E402

D = 32
CLASSES = 14


def pool(seed):
    """Clips of made-up codes: each class has a direction of its own, blurred frames have none."""
    directions = np.random.default_rng(9).normal(size=(CLASSES, D))
    rng = np.random.default_rng(seed)

    def clips(strength, length):
        return [(strength * d + 0.5 * rng.normal(size=(length, D))).astype(np.float32) for d in directions]

    return Videos(clips(1.0, 30), clips(1.0, 20), clips(0.0, 20))


HOW = tmnist_steps.Procedures(tasks=8, videos=9, classes=CLASSES, imperfection=0.65)
POOL = [pool(k) for k in range(3)]


def splits(how=HOW, held_out=3):
    z = tmnist_steps.step_embeddings(POOL, how)
    made = [
        tmnist_steps.data_set(POOL[k : k + 1], z, replace(how, videos=n), k)
        for k, n in enumerate((how.videos, held_out, held_out))
    ]
    return step_data.Splits(*made)


DATA = splits()


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
    others = [codes.get(tuple(frame), (None, None))[0] for frame in video.frames[video.labels < 0].tolist()]
    assert not set(others) & set(video.step_ids.tolist())


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


# --- Inference ------------------------------------------------------------------------------------------------------


def video(labels, K=3, name="v"):
    """A video whose frames show the steps of `labels`, plainly."""
    labels = np.asarray(labels)
    eye = np.eye(K + 1, dtype=np.float32)
    segments = [(k, float(s), float(t)) for k, s, t in metrics.segments_of(labels)]
    return StepVideo(
        name,
        "task",
        eye[labels],
        np.arange(K),
        tuple("abcdefgh"[:K]),
        eye[:K],
        clip_seconds=1.0,
        segments=tuple(segments),
    )


def cosine_cost(v):
    return dropdtw.costs.cosine(v.steps, v.frames)


def test_scores_by_hand():
    v = video([0, 0, -1, 1, 2])
    S = np.array([[9, 0, 0, 0, 0], [0, 0, 9, 0, 0], [0, 0, 0, 0, 9]])
    found = steps.scores([(v, np.array([0, -1, -1, 1, 1]), S)])
    assert found.accuracy == 3 / 5
    assert found.iou == 2 / 5  # step 0: 1 of 2, step 1: 1 of 2, step 2: 0 of 1
    assert found.f1 == 2 * 2 / (3 + 4)
    assert found.recall == pytest.approx(2 / 3)  # the frame for step 1 is background
    both = steps.scores(
        [(v, np.array([0, -1, -1, 1, 1]), S), (video([0], K=2, name="w"), np.array([0]), np.zeros((2, 1)))]
    )
    assert both.recall == pytest.approx(2 / 5)  # two steps cannot have one frame each: missed
    assert both.accuracy == (3 / 5 + 1) / 2


@pytest.mark.parametrize("method", steps.METHODS_COMPARED)
def test_every_method_finds_plain_steps(method):
    v = video([-1, 0, 0, -1, 1, 1, -1, -1, 2, 2, -1])
    rows = steps.by_method(cosine_cost(v), method, 17.2)  # half way between the costs 0 (6 of 33) and 1
    assert rows.shape == (11,)
    assert set(rows.tolist()) <= {-1, 0, 1, 2}
    if method in ("drop_dtw", "greedy"):
        np.testing.assert_array_equal(rows, v.rows)
    else:
        assert (rows == v.rows).mean() >= 5 / 11


def test_more_steps_than_frames_one_step_and_one_frame():
    for C in (np.ones((4, 2)), np.ones((1, 5)), np.ones((3, 1)), np.ones((1, 1))):
        for method in steps.METHODS_COMPARED:
            assert steps.by_method(C, method, 50.0).shape == (C.shape[1],)
        assert steps.localize(C, 0.5).shape == (C.shape[1],)


def test_drop_dtw_is_ahead_and_percentiles_come_from_the_validation_videos():
    def noisy(seed):
        rng = np.random.default_rng(seed)
        v = video(np.repeat([-1, 0, -1, 1, -1, 2, -1], rng.integers(2, 6, 7)), name=f"v{seed}")
        return replace(v, frames=v.frames + 0.25 * rng.normal(size=v.frames.shape))

    sets = [
        StepDataset([f"v{k}" for k in part], ["t"] * len(part), lambda i, part=part: noisy(part[i]))
        for part in (range(8), range(8, 20))
    ]
    table = steps.compare_methods([steps.Fold(cosine_cost, *sets)])
    assert list(table) == ["all background", *steps.METHODS_COMPARED]
    best = table.pop("drop_dtw")
    assert best.scores.iou > 0.8
    assert all(best.scores.iou > other.scores.iou for other in table.values())
    assert table["all background"].scores.iou == 0
    assert table["dtw"].percentiles == ()
    tried = {
        p: np.mean([metrics.iou(v.ids_of(steps.by_method(cosine_cost(v), "drop_dtw", p)), v.labels) for v in sets[0]])
        for p in steps.PERCENTILES
    }
    assert tried[best.percentiles[0]] == max(tried.values())


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


def test_whitened_prototypes_tell_steps_apart():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(4, 4)) @ np.diag([1, 1, 1, 30.0])  # one direction drowns all others

    def mixed(seed):
        rng = np.random.default_rng(seed)
        v = video(np.repeat([-1, 0, 1, 2, -1], 8), name=f"v{seed}")
        return replace(v, frames=((v.frames + 0.2 * rng.normal(size=v.frames.shape)) @ mixing).astype(np.float32))

    train, test = [mixed(k) for k in range(6)], mixed(9)
    moved = step_data.whitened(train)(test)
    nearest = cosine_cost(moved).argmin(axis=0)
    inside = test.labels >= 0
    assert (nearest[inside] == test.labels[inside]).mean() > 0.9


# --- The commands ---------------------------------------------------------------------------------------------------


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run `dropdtw reproduce …` on the small data of this file."""
    runner = pytest.importorskip("typer.testing").CliRunner()
    from dropdtw.cli import reproduce_steps
    from dropdtw.cli.app import app

    monkeypatch.setattr(reproduce_steps.StandIn, "splits", lambda self, seed: DATA)

    def call(*words):
        return runner.invoke(app, ["reproduce", *words, "--out", str(tmp_path)])

    return call


def test_the_steps_command_trains_evaluates_and_resumes(run, tmp_path):
    done = run("steps", "--epochs", "2")
    assert done.exit_code == 0, done.output
    assert "72 videos to train on, 24 to choose on, 24 to test" in done.output
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["stand_in"] is True
    assert results["test"].keys() == {"recall", "accuracy", "iou", "f1"}
    assert 0 < results["test"]["recall"] <= 100
    more = run("steps", "--epochs", "3", "--resume")
    assert "goes on after epoch 2 of 3" in more.output
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
        (("table", "3"), "there is no table 3 of step localization; choose 1, 2, 4, 5 or 6"),
        (("table", "1", "--data", "utkinect"), "table 1 is trained on tmnist-steps"),
        (("table", "2", "--data", "nothing"), "--data is 'nothing'; choose tmnist-steps, utkinect or transcripts"),
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
    from dropdtw.cli.app import app

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
        "reproduce",
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
        steps.scores([])
