"""Finding steps with every method of the registry, on given costs and features."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")
pytest.importorskip("lightning_fabric", reason="training needs Lightning Fabric: make setup")

from dropdtw import metrics  # noqa: E402
from reproduction.data.steps import StepDataset  # noqa: E402
from reproduction.steps import inference, utkinect  # noqa: E402
from step_cases import cosine_cost, video  # noqa: E402


def test_scores_by_hand():
    v = video([0, 0, -1, 1, 2])
    S = np.array([[9, 0, 0, 0, 0], [0, 0, 9, 0, 0], [0, 0, 0, 0, 9]])
    found = inference.scores([(v, np.array([0, -1, -1, 1, 1]), S)])
    assert found.accuracy == 3 / 5
    assert found.iou == 2 / 5  # step 0: 1 of 2, step 1: 1 of 2, step 2: 0 of 1
    assert found.f1 == 2 * 2 / (3 + 4)
    assert found.recall == pytest.approx(2 / 3)  # the frame for step 1 is background
    both = inference.scores(
        [(v, np.array([0, -1, -1, 1, 1]), S), (video([0], K=2, name="w"), np.array([0]), np.zeros((2, 1)))]
    )
    assert both.recall == pytest.approx(2 / 5)  # more steps than frames: counted as missed
    assert both.accuracy == (3 / 5 + 1) / 2


@pytest.mark.parametrize("method", inference.METHODS_COMPARED)
def test_every_method_finds_plain_steps(method):
    v = video([-1, 0, 0, -1, 1, 1, -1, -1, 2, 2, -1])
    rows = inference.by_method(cosine_cost(v), method, 17.2)  # halfway between the costs 0 (6 of 33) and 1
    assert rows.shape == (11,)
    assert set(rows.tolist()) <= {-1, 0, 1, 2}
    if method in ("drop_dtw", "greedy"):
        np.testing.assert_array_equal(rows, v.rows)
    else:
        assert (rows == v.rows).mean() >= 5 / 11


def test_more_steps_than_frames_one_step_and_one_frame():
    for C in (np.ones((4, 2)), np.ones((1, 5)), np.ones((3, 1)), np.ones((1, 1))):
        for method in inference.METHODS_COMPARED:
            assert inference.by_method(C, method, 50.0).shape == (C.shape[1],)
        assert inference.localize(C, 0.5).shape == (C.shape[1],)


def test_drop_dtw_is_ahead_and_percentiles_come_from_the_validation_videos():
    def noisy(seed):
        rng = np.random.default_rng(seed)
        v = video(np.repeat([-1, 0, -1, 1, -1, 2, -1], rng.integers(2, 6, 7)), name=f"v{seed}")
        return replace(v, frames=v.frames + 0.25 * rng.normal(size=v.frames.shape))

    sets = [
        StepDataset([f"v{k}" for k in part], ["t"] * len(part), lambda i, part=part: noisy(part[i]))
        for part in (range(8), range(8, 20))
    ]
    table = inference.compare_methods([inference.Fold(cosine_cost, *sets, inference.cosine_similarity)])
    extra = (inference.AS_PRINTED, *inference.NEGATED)
    assert list(table) == ["all background", *inference.METHODS_COMPARED, *extra]
    # On −similarity, OTAM gives each step more than its cheapest frame.
    assert table["otam, on −similarity"].scores.iou > table["otam"].scores.iou
    best = table.pop("drop_dtw")
    assert best.scores.iou > 0.8
    assert all(best.scores.iou > other.scores.iou for other in table.values())
    assert table["all background"].scores.iou == 0
    assert table["dtw"].chosen == ()
    tried = {
        p: np.mean(
            [metrics.iou(v.ids_of(inference.by_method(cosine_cost(v), "drop_dtw", p)), v.labels) for v in sets[0]]
        )
        for p in inference.PERCENTILES
    }
    assert tried[best.chosen[0]] == max(tried.values())


def repeated():
    """Clips of 2 s; step 7 from 1.5 to 4.5 s and again from 10.5 to 11.5 s, step 2 from 5 to 8 s."""
    v = video([0, 0, 0, 1, 1, 2])
    return replace(
        v, step_ids=np.array([7, 2, 7]), clip_seconds=2.0, segments=((0, 1.5, 4.5), (1, 5.0, 8.0), (2, 10.5, 11.5))
    )


def test_by_occurrence_a_segment_has_every_clip_it_touches():
    v = repeated()  # clips are centered at 1, 3, 5, 7, 9 and 11 s
    assert v.rows.tolist() == [-1, 0, 1, 1, -1, 2]
    assert v.touched.tolist() == [0, 0, 1, 1, -1, 2]  # the clip from 4 to 6 s has both steps; the later start wins
    edges = replace(v, segments=((0, 2.0, 4.0), (1, 4.0, 4.0)))
    assert edges.touched.tolist() == [-1, 0, -1, -1, -1, -1]  # touching an edge is not enough, nor is no duration


def test_by_occurrence_each_one_counts_by_itself():
    v = repeated()
    swapped = np.array([2, 2, 1, 1, -1, 0])  # the two occurrences of step 7 are exchanged
    step, occurrence = (inference.scores([(v, swapped, None)], mode) for mode in ("step", "occurrence"))
    assert (step.accuracy, step.iou) == (5 / 6, 4 / 5)  # only the clip at 1 s is wrong
    assert (occurrence.accuracy, occurrence.iou) == (
        3 / 6,
        2 / 8,
    )  # rows 0 and 2 share no clip: 3 + 3 + 2 in the unions
    assert (step.f1, occurrence.f1) == (2 * 4 / (5 + 4), 2 * 2 / (5 + 5))
    right = inference.scores([(v, v.touched, None)], "occurrence")
    assert (right.accuracy, right.iou, right.f1) == (1, 1, 1)


def test_methods_are_compared_in_either_mode():
    data = StepDataset(["v"], ["t"], lambda _: repeated())
    fold = inference.Fold(cosine_cost, data, data, inference.cosine_similarity)
    step, occurrence = (
        inference.compare_methods([fold], mode=mode)["all background"] for mode in ("step", "occurrence")
    )
    assert (step.scores.accuracy, occurrence.scores.accuracy) == (2 / 6, 1 / 6)


def test_a_step_is_one_run_and_a_frame_has_one_step():
    assert inference.localize(np.array([[0.0, 0.9, 0.0]]), 0.5).tolist() == [0, 0, 0]  # two runs would cost 0.5
    assert inference.localize(np.array([[0.0, 9.0], [0.1, 0.6]]), 9.0).tolist() == [
        0,
        1,
    ]  # sharing a frame would cost 0.1


def test_as_many_steps_as_frames_can_have_one_each():
    assert inference.scores([(video([0, 1, 2]), np.array([0, 1, 2]), np.eye(3))]).recall == 1


def test_whitened_prototypes_tell_steps_apart():
    direction = np.random.default_rng(0).normal(size=4)  # the direction of largest variance is unrelated to the steps

    def mixed(seed):
        rng = np.random.default_rng(seed)
        v = video(np.repeat([-1, 0, 1, 2, -1], 8), name=f"v{seed}")
        noise = 0.1 * rng.normal(size=v.frames.shape) + 4 * rng.normal(size=(len(v.frames), 1)) * direction
        return replace(v, frames=(v.frames + noise).astype(np.float32))

    train, test = [mixed(k) for k in range(6)], mixed(9)
    moved = utkinect.whitened(train, shrink=0.001)(test)
    nearest = cosine_cost(moved).argmin(axis=0)
    inside = test.labels >= 0
    assert (nearest[inside] == test.labels[inside]).mean() > 0.9
