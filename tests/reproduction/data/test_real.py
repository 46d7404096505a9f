"""The real annotations and data sets of step localization; needs DROPDTW_DATA, the folder that has them."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import dropdtw
from dropdtw import metrics
from reproduction.data import coin, crosstask, transcripts, utkinect, youcook2
from reproduction.data.features import step_embeddings
from reproduction.data.records import Record, in_subset, statistics
from reproduction.data.steps import StepVideo, check, prototypes, replace_steps


def place(name):
    root = os.environ.get("DROPDTW_DATA")
    if root is None or not (Path(root) / name).is_dir():
        pytest.skip(f"DROPDTW_DATA has no folder {name}")
    return Path(root) / name


def as_video(record: Record) -> StepVideo:
    """A record with one-dimensional frames, long enough for the last step."""
    end = max(stop for _, _, stop in record.segments)
    N, K = int(np.ceil((record.duration or end) / 3.2)), len(record.step_ids)
    ids = np.array(record.step_ids)
    return StepVideo(
        record.name, record.task, np.ones((N, 1)), ids, record.step_texts, np.ones((K, 1)), 3.2, None, record.segments
    )


def test_coin():
    records = coin.records(place("coin"))
    train, test = (statistics(in_subset(records, subset)) for subset in ("train", "test"))
    assert (train.videos, train.segments, test.videos, test.segments) == (7064, 27826, 3006, 11583)
    assert statistics(records).background == pytest.approx(0.575, abs=0.001)
    files = [step_embeddings(path, coin.STEP_IDS) for path in sorted(place("coin").glob("*text.np*"))]
    assert [f.vectors.shape for f in files] == [(778, 768), (778, 512)]
    for record in records:
        assert set(record.step_ids) <= set(files[1])
    videos = [as_video(record) for record in records[:500]]
    background = np.mean([(v.labels < 0).mean() for v in videos])
    assert background == pytest.approx(statistics(records[:500]).background, abs=0.02)  # clips agree with seconds


def test_a_real_video_of_coin_with_its_features():
    """S3D features and MIL-NCE texts of one video: the costs by hand, and what they were when we compared them."""
    path = place("coin") / "coin_sample_s3d.npz"
    if not path.exists():
        pytest.skip(f"there is no {path.name} in the folder coin")
    with np.load(path, allow_pickle=False) as data:
        Z, X = (data[name].astype(np.float64) for name in ("step_features", "frame_features"))
        ids, starts, stops = (data[name] for name in ("step_ids", "starts_sec", "ends_sec"))
    _, first, row = np.unique(ids, return_index=True, return_inverse=True)
    S = Z[first] @ X.T
    logit = np.sort(S.ravel())[::-1][int(0.3 * S.size) - 1]
    assert logit == pytest.approx(7.8458434)
    E = np.exp(np.vstack([S, np.full(S.shape[1], logit)]) / 30)
    P = -np.log(E / E.sum(axis=0) + 1e-5)
    assert (P[:-1][row].sum(), P[-1].sum()) == pytest.approx((1481.03764, 233.30130))

    match = dropdtw.costs.Softmax(30.0, tuple(ids.tolist()))
    a = dropdtw.align(Z, X, match=match, drop_x="logit:30", method="steps")
    assert a.cost == pytest.approx(dropdtw.solve(P[:-1][row], P[-1], method="steps").cost)
    assert a.cost == pytest.approx(228.182977)
    assert np.bincount(a.labels + 1).tolist() == [85, 1, 1, 43, 1, 19, 1]
    assert metrics.one_frame_per_step(Z @ X.T).tolist() == [39, 40, 54, 80, 93, 100]
    assert metrics.recall(Z @ X.T, starts, stops, fps=1 / 3.2) == pytest.approx(2 / 6)


def test_crosstask():
    records = crosstask.records(place("crosstask"))
    found = statistics(records)
    assert (found.videos, found.tasks, found.segments, found.different_steps) == (2750, 18, 20919, 133)
    assert Counter(r.subset for r in records) == {"train": 2390, "val": 360}
    tasks = crosstask.tasks(place("crosstask")).values()
    assert Counter(task.primary for task in tasks) == {True: 18, False: 65}
    assert max(task.first_id + len(task.steps) for task in tasks) == 133 + 571
    everything = crosstask.records(place("crosstask"), unannotated=True)
    assert Counter(r.segments is None for r in everything) == {False: 2750, True: 1950}
    for record in records:
        labels = as_video(record).labels
        assert set(labels.tolist()) <= {-1, *record.step_ids}


def test_youcook2():
    records = youcook2.records(place("youcook2_text"))
    found = statistics(records)
    assert (found.videos, found.tasks, found.segments, found.steps_per_video[::2]) == (1790, 89, 13829, (3, 16))
    assert found.background == pytest.approx(0.512, abs=0.001)
    assert Counter(r.subset for r in records) == {"train": 1333, "val": 457}
    assert [step for r in records for step in r.step_ids] == list(range(13829))


def test_drop_dtw_finds_the_key_sentences_of_transcripts():
    pytest.importorskip("wordllama", reason="sentence embeddings need wordllama")
    folder = place("youcook2_text")
    assert len(transcripts.load(folder, empty=True)) == 272
    assert len(transcripts.load(folder, steps="recipe")) == 238
    data = transcripts.load(folder, cache=300)
    assert len(data) == 259
    assert not any(map(check, data))
    true = [v.labels for v in data]
    dtw = [v.ids_of(dropdtw.align(v.steps, v.frames, method="dtw").labels) for v in data]
    drop = [
        v.ids_of(dropdtw.align(v.steps, v.frames, drop_x="percentile:5", one_to_many=False, many_to_one=False).labels)
        for v in data
    ]
    scores = [metrics.mean_over_videos(metrics.iou, found, true) for found in (dtw, drop)]
    assert scores[0] < 0.3
    assert scores[1] > 0.7


def test_drop_dtw_finds_actions_of_people_unseen_in_training():
    data = utkinect.load(place("utkinect"), embed=lambda texts: np.eye(len(texts)))
    assert data.names[::15] == ("s01_e01", "s08_e02")
    assert [v.step_ids.tolist().index(7) - v.step_ids.tolist().index(6) for v in data].count(-1) == 2  # pull, push
    assert np.mean([(v.labels < 0).mean() for v in data]) == pytest.approx(0.61, abs=0.01)
    parts = utkinect.leave_out(data, ["s07", "s08"])
    vectors = prototypes(list(parts["train"]))
    assert sorted(vectors) == list(range(10))
    videos = [replace_steps(v, vectors) for v in parts["test"]]
    true = [v.labels for v in videos]
    dtw = [v.ids_of(dropdtw.align(v.steps, v.frames, method="dtw").labels) for v in videos]
    drop = [v.ids_of(dropdtw.align(v.steps, v.frames, drop_x="percentile:10").labels) for v in videos]
    accuracy = [metrics.mean_over_videos(metrics.frame_accuracy, found, true) for found in (dtw, drop)]
    assert accuracy[1] > accuracy[0] + 0.15


def test_averages_of_real_movements_are_closer_to_the_clean_one_with_drops():
    """Frames between the actions of UTKinect are spliced into each action; with drops, the averages suffer less."""
    known = []
    for recording in utkinect.recordings(place("utkinect")):
        poses, spans = utkinect.clips(recording, 1, velocity=False)
        inside = {name: (start <= spans[:, 0]) & (spans[:, 0] < stop)
                  for name, (start, stop) in recording.segments.items()}  # fmt: skip
        known.append((poses.astype(float), inside, ~np.any(list(inside.values()), axis=0)))
    errors = {None: [], "percentile:20": []}
    for action in utkinect.STEPS:
        rng = np.random.default_rng(0)
        clean, spoiled = [], []
        for poses, inside, between in known:
            if action in inside and inside[action].sum() >= 8:
                X, junk = poses[inside[action]], poses[between]
                start, at = rng.integers(len(junk) - len(X) // 4), rng.integers(1, len(X))
                clean.append(X)
                spoiled.append(np.concatenate([X[:at], junk[start : start + len(X) // 4], X[at:]]))
        truth = dropdtw.barycenter(clean).average
        for drop, found in errors.items():
            a = dropdtw.align(dropdtw.barycenter(spoiled, drop_x=drop).average, truth, match="sqeuclidean")
            found.append((a.cost / len(a.pairs)) ** 0.5)
    assert np.mean(errors["percentile:20"]) < 0.75 * np.mean(errors[None])
