"""The schema of step localization: which frame belongs to which step, splits, batches, and broken videos."""

import warnings
from collections import Counter

import numpy as np
import pytest

import dropdtw
from dropdtw import metrics
from reproduction.data.steps import (
    BrokenVideoError,
    StepDataset,
    StepVideo,
    balanced_batches,
    check,
    collate,
    prototypes,
    replace_steps,
)


def video(name="v", task="tea", N=4, K=2, d=3, **options):
    rng = np.random.default_rng(N + 10 * K)
    options.setdefault("clip_seconds", None if "frame_times" in options else 1.0)
    ids = options.pop("ids", range(5, 5 + K))
    frames, steps = rng.normal(size=(N, d)), rng.normal(size=(K, d))
    return StepVideo(name, task, frames, np.array(ids, int), [f"step {k}" for k in range(K)], steps, **options)


# Which frame belongs to which step


def test_a_frame_belongs_to_the_segment_that_contains_its_center():
    v = video(N=5, clip_seconds=3.2, segments=[(0, 1.5, 4.7), (1, 4.9, 14.5)])  # centers 1.6, 4.8, 8, 11.2, 14.4
    assert v.labels.tolist() == [5, -1, 6, 6, 6]
    edges = video(K=1, clip_seconds=2.0, segments=[(0, 1, 5)])  # centers 1, 3, 5, 7: start <= center < stop
    assert edges.labels.tolist() == [5, 5, -1, -1]
    assert v.frame_segments == ((0, 0, 1), (1, 2, 5))
    assert v.times[1].tolist() == [3.2, 6.4]
    assert v.frames.dtype == v.steps.dtype == np.float32


def test_the_rule_is_that_of_recall():
    """A frame chosen for a step counts as a hit exactly if the labels give it that step."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        edges = np.sort(rng.uniform(0, 20, 4))
        v = video(N=6, clip_seconds=3.2, segments=[(0, *edges[:2]), (1, *edges[2:])])
        S = rng.normal(size=(2, 6))
        chosen = metrics.one_frame_per_step(S)
        hits = np.mean([v.rows[j] == row for row, j in enumerate(chosen)])
        assert metrics.recall(S, edges[[0, 2]], edges[[1, 3]], fps=1 / 3.2) == hits


def test_frames_may_have_times_of_their_own():
    v = video(N=3, frame_times=[[0, 1], [1, 9], [20, 22]], segments=[(0, 4.9, 5.1), (1, 21, 30)])
    assert v.labels.tolist() == [-1, 5, 6]
    assert v.clip_seconds is None
    np.testing.assert_array_equal(v.times, [[0, 1], [1, 9], [20, 22]])


def test_where_segments_overlap_the_one_that_starts_last_has_the_frame():
    inside = video(N=6, segments=[(1, 2, 4), (0, 0, 6)])
    assert inside.rows.tolist() == [0, 0, 1, 1, 0, 0]
    ties = video(N=3, segments=[(0, 0, 3), (1, 0, 2)])
    assert ties.rows.tolist() == [1, 1, 0]


def test_a_step_may_happen_twice():
    v = video(N=6, K=3, ids=[7, 2, 7], segments=[(0, 0, 1), (1, 2, 4), (2, 5, 6)])
    assert v.rows.tolist() == [0, -1, 1, 1, -1, 2]
    assert v.labels.tolist() == [7, -1, 2, 2, -1, 7]
    a = dropdtw.align(v.steps, v.frames, drop_x="percentile:30")
    assert v.ids_of(a.labels).tolist() == [-1 if row < 0 else [7, 2, 7][row] for row in a.labels]


def test_a_video_without_ground_truth_says_so():
    v = video()
    assert check(v) == []
    with pytest.raises(ValueError, match="v has no ground truth: its segments are None; give some"):
        _ = v.labels


@pytest.mark.parametrize(
    ("v", "said"),
    [
        (video(N=0, segments=[(0, 1, 2)]), ["no frames", "more steps", "beyond the video, 0 to 0 s", "no frame", "1"]),
        (video(K=0, segments=[]), ["no steps"]),
        (video(N=2, K=3), [r"more steps \(3\) than frames \(2\): not every step can have a frame of its own"]),
        (video(K=1, segments=[(0, 2, 9)]), [r"step 0 \(2 to 9 s\) extends beyond the video, 0 to 4 s"]),
        (video(K=1, segments=[(0, 1.6, 2.4)]), ["contains no frame's center"]),
        (video(segments=[(1, 0, 3)]), ["no segment for step 0"]),
        (video(segments=[(0, 0, 3), (1, 2, 4)]), ["1 segments overlap the next one"]),
        (video(segments=[(0, 2, 4), (1, 0, 2)]), ["steps happen in a different order than listed"]),
        (video(K=1, segments=[(0, 0, 4)]), []),
    ],
)
def test_oddities_are_named(v, said):
    found = check(v)
    assert len(found) == len(said), found
    for text, pattern in zip(found, said, strict=True):
        with pytest.raises(AssertionError, match=pattern):
            raise AssertionError(text)
    if v.segments is not None:
        assert v.labels.shape == (len(v.frames),)  # oddities do not prevent use


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: video(segments=[(2, 0, 1)]), "has row 2 of a step list with 2 rows; count rows from 0"),
        (lambda: video(segments=[(0, 3, 1)]), "lasts from 3 to 1 s; give finite start <= stop"),
        (lambda: video(segments=[(0, 0, np.nan)]), "give finite start <= stop"),
        (lambda: video(ids=[1, -1]), r"step_ids of v are \[1, -1\]; give integers >= 0"),
        (lambda: video(ids=[1]), "2 step embeddings, 1 ids and 2 texts; give one of each"),
        (lambda: video(clip_seconds=0.0), "clip_seconds of v is 0.0; give a finite number > 0"),
        (lambda: video(clip_seconds=None), "either clip_seconds or frame_times; give one"),
        (lambda: video(clip_seconds=1.0, frame_times=np.zeros((4, 2))), "either clip_seconds or frame_times"),
        (lambda: video(frame_times=np.zeros((3, 2))), r"shape \(3, 2\); give the start and stop .* \(4, 2\)"),
        (lambda: video(frame_times=[[0, 1], [1, 2], [2, 1], [3, 4]]), "go backward; sort the frames"),
        (lambda: video(frame_times=[[0, 1], [3, 4], [2, 3], [5, 6]]), "go backward; sort the frames"),
        (
            lambda: StepVideo("v", "t", [[np.nan]], np.array([0]), ["a"], [[1.0]], clip_seconds=1.0),
            "frames of v hold NaN or infinity in row 0",
        ),
        (
            lambda: StepVideo("v", "t", [1.0], np.array([0]), ["a"], [[1.0]], clip_seconds=1.0),
            r"frames of v have shape \(1,\); give \(length, d\)",
        ),
    ],
)
def test_errors_say_what_to_do(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_prototypes_are_the_mean_frames_of_the_steps():
    a, b = video("a", N=4, segments=[(0, 0, 2), (1, 3, 4)]), video("b", N=3, segments=[(0, 1, 2)])
    found = prototypes([a, b])
    assert sorted(found) == [5, 6]
    np.testing.assert_allclose(found[5], np.mean([*a.frames[:2], b.frames[1]], axis=0), rtol=1e-6)
    np.testing.assert_allclose(found[6], a.frames[3], rtol=1e-6)
    np.testing.assert_array_equal(replace_steps(b, found).steps, [found[5], found[6]])
    with pytest.raises(ValueError, match="no embedding for step 6 of b; "):
        replace_steps(b, {5: found[5]})


# Collation


def test_collation_keeps_every_video_and_pads_the_rest():
    videos = [video("a", N=4, K=2), video("b", "jam", N=7, K=1), video("c", N=1, K=5)]
    batch = collate(videos)
    assert len(batch) == 3
    assert batch.names == ("a", "b", "c")
    assert batch.tasks == ("tea", "jam", "tea")
    assert batch.frames.shape == (3, 7, 3)
    assert batch.steps.shape == (3, 5, 3)
    assert batch.x_lengths.tolist() == [4, 7, 1]
    assert batch.z_lengths.tolist() == [2, 1, 5]
    assert batch.step_ids.tolist() == [[5, 6, -1, -1, -1], [5, -1, -1, -1, -1], [5, 6, 7, 8, 9]]
    for b, v in enumerate(videos):
        np.testing.assert_array_equal(batch.frames[b, : len(v.frames)], v.frames)
        np.testing.assert_array_equal(batch.steps[b, : len(v.steps)], v.steps)
        assert not batch.frames[b, len(v.frames) :].any()
        assert not batch.steps[b, len(v.steps) :].any()


@pytest.mark.parametrize(
    ("videos", "message"),
    [
        ([], "no videos to collate"),
        ([video(), video("b", K=0)], "b has 4 frames and 0 steps; leave empty videos out"),
        ([video("a"), video("b", d=2)], "frame embeddings have 3 features in a and 2 in b"),
    ],
)
def test_what_cannot_be_collated(videos, message):
    with pytest.raises(ValueError, match=message):
        collate(videos)


# Data sets


def data_set(count=20, broken=(), cache=4, tasks=3):
    calls = []

    def read(index):
        calls.append(index)
        if index in broken:
            raise BrokenVideoError(f"{index}.npy is missing; download it again")
        return video(f"v{index}", f"task {index % tasks}", N=3 + index)

    names = [f"v{k}" for k in range(count)]
    return StepDataset(names, [f"task {k % tasks}" for k in range(count)], read, cache=cache), calls


def test_videos_are_read_when_asked_for_and_the_last_ones_kept():
    data, calls = data_set()
    assert len(data) == 20
    assert data.names[7] == "v7"
    assert data.tasks[7] == "task 1"
    assert repr(data) == "<StepDataset of 20 videos of 3 tasks>"
    assert calls == []
    assert data[3] is data[3]
    assert data[-17] is data[3]
    assert calls == [3]
    for k in (4, 5, 3, 6, 7):  # 3 was used more recently than 4 and 5
        _ = data[k]
    _ = data[3], data[4]
    assert calls == [3, 4, 5, 6, 7, 4]
    assert [v.name for v in data] == list(data.names)
    with pytest.raises(IndexError, match="there is no video 20; there are 20 videos"):
        _ = data[20]


def test_subsets_share_what_is_in_memory():
    data, calls = data_set()
    part = data.subset([5, 2, -1])
    assert part.names == ("v5", "v2", "v19")
    assert part.tasks == ("task 2", "task 2", "task 1")
    assert part[0] is data[5]
    assert part[2].name == "v19"
    assert part.subset([2])[0] is data[19]
    assert calls == [5, 19]
    with pytest.raises(IndexError):
        data.subset([20])


def test_broken_videos_are_an_error_or_reported():
    data, _ = data_set(5, broken=(1, 3))
    with pytest.raises(BrokenVideoError, match=r"1\.npy is missing; download it again"):
        data.load([0, 1])
    said = []
    assert [v.name for v in data.load([0, 1, 2], on_error="skip", report=said.append)] == ["v0", "v2"]
    assert said == ["left out v1: 1.npy is missing; download it again"]
    with pytest.warns(UserWarning, match=r"left out v3: 3\.npy is missing"):
        assert data.load([3], on_error="skip") == []
    said.clear()
    good = data.usable(report=said.append)
    assert good.names == ("v0", "v2", "v4")
    assert [line.split(":")[0] for line in said] == ["left out v1", "left out v3"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(good.usable()) == 3
    batches = list(data.batches([[0, 1], [3], [2, 4]], on_error="skip", report=said.append))
    assert [batch.names for batch in batches] == [("v0",), ("v2", "v4")]
    with pytest.raises(BrokenVideoError):
        list(data.batches([[0, 1]]))
    with pytest.raises(ValueError, match="on_error is 'ignore'; choose 'raise' or 'skip'"):
        data.load([0], on_error="ignore")


def test_other_errors_are_never_skipped():
    data = StepDataset(["a"], ["t"], lambda index: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        data.load([0], on_error="skip")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StepDataset(["a", "b"], ["t"], video), "2 names and 1 tasks"),
        (lambda: StepDataset(["a", "a"], ["t", "t"], video), "2 videos are named a; give each a unique name"),
        (lambda: StepDataset(["a"], ["t"], video, cache=-1), "cache is -1"),
        (lambda: data_set()[0].split({"train": 0.5}), "give fractions >= 0 that sum to 1"),
        (
            lambda: data_set()[0].split_by({"train": ["x"]}),
            "part 'train' has a video 'x', which is not in this data",
        ),
        (lambda: data_set()[0].split_by({"a": ["v1"], "b": ["v1"]}), "'v1' is in part 'a' and in part 'b'; choose one"),
        (lambda: balanced_batches(["t"], classes=0), "classes is 0; give an integer"),
    ],
)
def test_data_set_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_splits():
    data, _ = data_set(200, tasks=4)
    named = data.split_by({"train": ["v3", "v1"], "test": ["v0"]})
    assert named["train"].names == ("v1", "v3")
    assert named["test"].names == ("v0",)
    parts = data.split(seed=5)
    assert list(parts) == ["train", "val", "test"]
    assert sorted(name for part in parts.values() for name in part.names) == sorted(data.names)
    for part, share in (("train", 35), ("val", 7.5), ("test", 7.5)):
        counts = Counter(parts[part].tasks)
        assert all(abs(counts[task] - share) <= 1 for task in set(data.tasks))
    assert data.split(seed=5)["test"].names == parts["test"].names
    assert data.split(seed=6)["test"].names != parts["test"].names
    assert data.split({"all": 1.0})["all"].names == data.names


def test_shares_come_out_even_when_all_tasks_are_small():
    data, _ = data_set(400, tasks=400)
    sizes = [len(part) for part in data.split().values()]
    assert sum(sizes) == 400
    assert np.abs(np.array(sizes) / 400 - [0.7, 0.15, 0.15]).max() < 0.07


# Balanced batches

TASKS = [f"t{k}" for k in range(20) for _ in range(3 + 2 * k)] + ["one"] + ["two"] * 2


@pytest.mark.parametrize("complete", [False, True])
def test_batches_are_balanced(complete):
    batches = balanced_batches(TASKS, seed=1, complete=complete)
    used = [index for batch in batches for index in batch]
    assert len(used) == len(set(used))
    if not complete:
        assert sorted(used) == list(range(len(TASKS)))
    for batch in batches:
        counts = Counter(TASKS[index] for index in batch)
        assert len(counts) <= 8
        assert max(counts.values()) <= 3
        if complete:
            assert len(counts) == 8
            assert set(counts.values()) == {3}
    full = sum(len({TASKS[index] for index in batch}) == 8 for batch in batches)
    assert full >= len(batches) - 1  # tasks are so even that only one batch may lack tasks
    small = [Counter(TASKS[i] for i in batch) for batch in batches if any(TASKS[i] in ("one", "two") for i in batch)]
    assert (sum(c["one"] for c in small), sum(c["two"] for c in small)) == ((0, 0) if complete else (1, 2))


def test_seed_and_epoch_decide_the_batches():
    once = balanced_batches(TASKS, seed=1, epoch=0)
    assert balanced_batches(TASKS, seed=1, epoch=0) == once
    assert balanced_batches(TASKS, seed=1, epoch=1) != once
    assert balanced_batches(TASKS, seed=2, epoch=0) != once
    assert balanced_batches([]) == []
