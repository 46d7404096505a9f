"""The stand-in's videos: procedures of TMNIST clips with the statistics of COIN."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")
pytest.importorskip("lightning_fabric", reason="training needs Lightning Fabric: make setup")

from reproduction.steps import stand_in
from step_cases import CLASSES, DATA, HOW, POOL, splits


def test_tasks_have_three_to_eight_steps_and_some_repeat_one():
    tasks = stand_in.tasks(replace(HOW, tasks=300), 80)
    different = [len(set(task.events)) for task in tasks]
    assert min(different) == 3
    assert max(different) == 8
    repeated = [len(task.events) > n for task, n in zip(tasks, different, strict=True)]
    assert 0.3 < np.mean(repeated) < 0.5
    for task in tasks:  # the second time is not directly after the first, or it would be no second time
        assert all(a != b for a, b in zip(task.events, task.events[1:], strict=False))
    assert tasks == stand_in.tasks(replace(HOW, tasks=300), 80)


def test_videos_follow_the_statistics_of_coin():
    z = stand_in.step_embeddings(POOL, HOW)
    videos = list(stand_in.data_set(POOL, z, replace(HOW, tasks=40, videos=8), 0))
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
    exact, half, none = (stand_in.step_embeddings(POOL, replace(HOW, imperfection=i)) for i in (0.0, 0.5, 1.0))
    np.testing.assert_allclose(np.linalg.norm(half, axis=1), 1, rtol=1e-6)
    kept = (exact * half).sum(axis=1)
    assert 0.4 < kept.mean() < 0.95
    assert abs((exact * none).sum(axis=1).mean()) < 0.3


def test_a_background_of_its_own_is_never_a_step():
    how = replace(HOW, own=0.3)
    z = stand_in.step_embeddings(POOL, how)
    data = stand_in.data_set(POOL, z, how, 0)
    events = round(CLASSES * 0.7)
    assert {int(k) for video in data for k in video.step_ids} <= set(range(events))
    codes = {tuple(row) for videos in POOL for kind in (videos.part, videos.blurred) for clip in kind[events:]
             for row in clip.tolist()}  # fmt: skip
    assert all(tuple(frame) in codes for video in data for frame in video.frames[video.labels < 0].tolist())
