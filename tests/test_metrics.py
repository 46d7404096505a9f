"""The metrics against hand-worked examples, laws, and oracles that share no code with them."""

from functools import cache
from itertools import combinations, groupby, pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dropdtw import orders
from dropdtw.metrics import (
    edit_score,
    frame_accuracy,
    iou,
    kendall_tau,
    mean_over_videos,
    one_frame_per_step,
    pooled_recall,
    recall,
    recall_at_k,
    segment_f1,
    segments_of,
    standard_error,
)

LABEL_METRICS = [frame_accuracy, iou, segment_f1, edit_score]
every_label_metric = pytest.mark.parametrize("metric", LABEL_METRICS)


def labels_of_length(n):
    return arrays(np.int64, n, elements=st.integers(-1, 3))


some_labels = st.integers(1, 14).flatmap(labels_of_length)
label_pairs = st.integers(1, 14).flatmap(lambda n: st.tuples(labels_of_length(n), labels_of_length(n)))
# K <= N, small integers: sums are exact and ties are common
similarities = st.tuples(st.integers(1, 4), st.integers(0, 4)).flatmap(
    lambda kn: arrays(np.float64, (kn[0], kn[0] + kn[1]), elements=st.integers(-5, 5))
)


def best_choice(S):
    K, N = S.shape
    return max(combinations(range(N), K), key=lambda frames: S[np.arange(K), frames].sum())


@given(similarities)
def test_one_frame_per_step_is_the_best_of_all_choices(S):
    frames = one_frame_per_step(S)
    assert frames.shape == (len(S),)
    assert (np.diff(frames) > 0).all()
    assert S[np.arange(len(S)), frames].sum() == S[np.arange(len(S)), best_choice(S)].sum()


@pytest.mark.parametrize("seed", range(5))
def test_one_frame_per_step_names_the_frames_when_the_best_choice_is_unique(seed):
    S = np.random.default_rng(seed).normal(size=(4, 9))
    before = S.copy()
    assert one_frame_per_step(S).tolist() == list(best_choice(S))
    assert np.array_equal(S, before)


def test_one_frame_per_step_has_no_choice_when_steps_fill_the_video():
    assert one_frame_per_step(-np.ones((5, 5))).tolist() == [0, 1, 2, 3, 4]


@given(similarities, st.integers(-9, 9))
def test_a_bonus_for_a_step_at_every_frame_changes_nothing(S, bonus):
    # each step takes exactly one frame, so a constant added to its row adds that constant to every choice
    raised = S.copy()
    raised[0] += bonus
    frames, same = one_frame_per_step(S), one_frame_per_step(raised)
    rows = np.arange(len(S))
    assert S[rows, frames].sum() == S[rows, same].sum()


DIAGONAL = np.array([[9.0, 0, 0, 0], [0, 0, 9, 0], [0, 0, 0, 9]])  # frames 0, 2, 3: centers 0.5, 2.5, 3.5


def test_recall_worked_by_hand():
    # 0.5 lies in [0, 1), 2.5 not in [1, 2) and 3.5 in [3, 4)
    assert recall(DIAGONAL, [0, 1, 3], [1, 2, 4]) == pytest.approx(2 / 3)


def test_recall_counts_a_center_at_the_start_and_not_at_the_stop():
    assert recall(DIAGONAL, [0.5, 2.5, 3.5], [1, 3, 4]) == 1
    assert recall(DIAGONAL, [0, 2, 3], [0.5, 2.5, 3.5]) == 0


def test_recall_in_clips_of_the_paper():
    # 3.2 s clips: centers 1.6, 8.0, 11.2.  [0, 1.5) misses the first, [7, 9) and [11, 12) contain the others.
    assert recall(DIAGONAL, [0, 7, 11], [1.5, 9, 12], fps=1 / 3.2) == pytest.approx(2 / 3)


def test_recall_asks_for_order_before_similarity():
    # each step alone would choose the other one's interval; in order, only 3 + 3, 3 − 9 and −9 + 3 are left
    S = [[3, -9, 5], [5, -9, 3]]
    assert recall(S, starts=[0, 2], stops=[1, 3]) == 1


@given(similarities)
def test_recall_is_perfect_where_the_intervals_hold_the_frames(S):
    frames = one_frame_per_step(S)
    assert recall(S, frames, frames + 1) == 1
    assert recall(S, frames + 1, frames + 2) == 0
    assert recall(S, np.full(len(S), -np.inf), np.full(len(S), np.inf)) == 1


@given(similarities, st.data(), st.sampled_from([0.25, 0.5, 4.0]))
def test_recall_does_not_depend_on_the_unit_of_time(S, data, unit):
    starts = data.draw(arrays(np.float64, len(S), elements=st.integers(0, 8)))
    stops = starts + data.draw(arrays(np.float64, len(S), elements=st.integers(0, 8)))
    assert recall(S, starts * unit, stops * unit, fps=1 / unit) == recall(S, starts, stops)


def test_pooled_recall_weighs_steps_not_videos():
    one, three = ([[1.0, 0.0]], [0], [1]), (DIAGONAL, [0, 9, 9], [1, 10, 10])
    # 1 of 1 and 1 of 3 steps: 2 of 4 pooled, where the mean over videos would be 2/3
    assert pooled_recall([one, three]) == 0.5
    assert pooled_recall(iter([one, three])) == 0.5
    # with half-second clips the centers are 0.25, and 0.25, 1.25, 1.75
    assert pooled_recall([one, (DIAGONAL, [0, 1, 1], [1, 2, 2])], fps=2) == 1
    assert pooled_recall([three]) == recall(*three)


#            frame  0  1  2   3  4  5   6  7
TRUE = np.array([0, 0, 0, -1, 1, 1, -1, 2])
FOUND = np.array([0, 0, 1, 1, 1, -1, -1, 0])


def test_label_metrics_worked_by_hand():
    # right: frames 0, 1, 4, 6 of 8; of the six frames with a step: 0, 1, 4
    assert frame_accuracy(FOUND, TRUE) == 4 / 8
    assert frame_accuracy(FOUND, TRUE, background=False) == 3 / 6
    # step 0: {0,1} of {0,1,2,7}; step 1: {4} of {2,3,4,5}; step 2: none of {7}
    assert iou(FOUND, TRUE) == (2 + 1 + 0) / (4 + 4 + 1)
    # found 0:[0,2) 1:[2,5) 0:[7,8), true 0:[0,3) 1:[4,6) 2:[7,8); IoU 2/3, 1/4 and 0
    assert segment_f1(FOUND, TRUE) == pytest.approx(2 * 1 / (3 + 3))
    assert segment_f1(FOUND, TRUE, overlap=0.25) == pytest.approx(2 * 2 / (3 + 3))
    # "0 1 0" against "0 1 2": one substitution in three
    assert edit_score(FOUND, TRUE) == pytest.approx(1 - 1 / 3)
    assert segments_of(FOUND) == [(0, 0, 2), (1, 2, 5), (0, 7, 8)]


@every_label_metric
@given(labels=some_labels)
def test_a_perfect_prediction_scores_one(metric, labels):
    assert metric(labels, labels) == 1


@given(some_labels)
def test_a_perfect_prediction_scores_one_at_every_setting(labels):
    assert segment_f1(labels, labels, overlap=1) == 1
    assume((labels >= 0).any())
    assert frame_accuracy(labels, labels, background=False) == 1


@every_label_metric
@given(pair=label_pairs)
def test_scores_lie_between_zero_and_one(metric, pair):
    score = metric(*pair)
    assert type(score) is float
    assert 0 <= score <= 1


@pytest.mark.parametrize("metric", [frame_accuracy, iou, edit_score])
@given(pair=label_pairs)
def test_swapping_the_sides_or_reversing_time_changes_nothing(metric, pair):
    predicted, true = pair
    assert metric(true, predicted) == metric(predicted, true)
    assert metric(predicted[::-1], true[::-1]) == metric(predicted, true)


@every_label_metric
@given(pair=label_pairs, names=st.permutations(range(4)), rate=st.integers(1, 3))
def test_names_of_steps_and_frame_rate_change_nothing(metric, pair, names, rate):
    renamed = np.array([*names, -1])  # index -1 keeps background
    other = [np.repeat(renamed[labels] + 10 * (labels >= 0), rate) for labels in pair]
    assert metric(*other) == metric(*pair)


@pytest.mark.parametrize("metric", [iou, segment_f1, edit_score])
@given(pair=label_pairs, n=st.integers(0, 3))
def test_background_known_to_both_changes_no_step_metric(metric, pair, n):
    assert metric(*(np.pad(labels, n, constant_values=-1) for labels in pair)) == metric(*pair)


@given(label_pairs)
def test_iou_is_the_ratio_of_its_sums_and_the_stricter_metric(pair):
    predicted, true = ([{j for j, k in enumerate(side) if k == step} for step in range(4)] for side in pair)
    intersections = sum(len(p & t) for p, t in zip(predicted, true, strict=True))
    unions = sum(len(p | t) for p, t in zip(predicted, true, strict=True))
    assert iou(*pair) == (intersections / unions if unions else 1)
    assume((pair[1] >= 0).any())
    assert iou(*pair) <= frame_accuracy(*pair, background=False)


@pytest.mark.parametrize("metric", [iou, segment_f1, edit_score])
@pytest.mark.parametrize("nothing", [[-1, -1, -1], []])
def test_without_any_step_silence_is_right_and_speech_is_wrong(metric, nothing):
    assert metric(nothing, nothing) == 1
    assert metric([-1, -1, -1], [0, 0, -1]) == 0
    assert metric([0, 0, -1], [-1, -1, -1]) == 0


def test_mean_over_videos_weighs_videos_and_passes_options_on():
    predicted, true = [[0], [0, -1, 1, 1]], [[0], [1, -1, 0, 1]]
    assert mean_over_videos(frame_accuracy, predicted, true) == (1 + 2 / 4) / 2
    assert mean_over_videos(frame_accuracy, predicted, true, background=False) == pytest.approx((1 + 1 / 3) / 2)


def test_mean_over_videos_says_which_video_failed():
    with pytest.raises(ValueError, match="of which 0 count") as caught:
        mean_over_videos(frame_accuracy, [[0], [0]], [[0], [-1]], background=False)
    assert caught.value.__notes__ == ["in video 1"]


@given(some_labels)
def test_segments_are_maximal_and_paint_the_labels_back(labels):
    painted = np.full_like(labels, -1)
    segments = segments_of(labels)
    for label, start, stop in segments:
        assert (painted[start:stop] == -1).all()
        painted[start:stop] = label
    assert np.array_equal(painted, labels)
    for (label, _, stop), (following, start, _) in pairwise(segments):
        assert stop < start or label != following


def test_segments_are_plain_integers_of_any_integer_input():
    assert repr(segments_of(np.array([3, 3, 0], dtype=np.uint8))) == "[(3, 0, 2), (0, 2, 3)]"
    assert segments_of([]) == []


def test_an_overlap_equal_to_the_threshold_counts():
    # one segment each, IoU 2/4
    assert segment_f1([0, 0, -1, -1], [0, 0, 0, 0], overlap=0.5) == 1
    assert segment_f1([0, 0, -1, -1], [0, 0, 0, 0], overlap=0.51) == 0


def test_a_segment_broken_in_two_is_found_once():
    # found [0,3) and [4,6), true [0,6): IoU 3/6 claims it; 2/6 comes too late: 2 · 1 / (2 + 1)
    assert segment_f1([0, 0, 0, -1, 0, 0], [0] * 6, overlap=0.3) == pytest.approx(2 / 3)


def test_a_segment_whose_best_match_is_claimed_does_not_settle_for_another():
    # true [0,4) and [5,7); found [0,1) has 1/4 with the first. found [2,6) has 2/6 with the first,
    # which is claimed; its 1/5 with the second is above the threshold too, but not its best
    true, found = [0, 0, 0, 0, -1, 0, 0], [0, -1, 0, 0, 0, 0, -1]
    assert segment_f1(found, true, overlap=0.1) == 2 * 1 / (2 + 2)


def test_of_two_best_matches_the_earlier_is_taken():
    # true [0,3) and [5,8); found [0,1) claims the first, found [2,6) has 1/6 with either
    true, found = [0, 0, 0, -1, -1, 0, 0, 0], [0, -1, 0, 0, 0, 0, -1, -1]
    assert segment_f1(found, true, overlap=0.1) == 2 * 1 / (2 + 2)


@given(label_pairs)
def test_a_higher_overlap_never_scores_higher(pair):
    scores = [segment_f1(*pair, overlap=overlap) for overlap in (0.1, 0.25, 0.5, 0.75, 1)]
    assert scores == sorted(scores, reverse=True)


@cache
def levenshtein(p, t):
    if not p or not t:
        return len(p) + len(t)
    return min(levenshtein(p[1:], t) + 1, levenshtein(p, t[1:]) + 1, levenshtein(p[1:], t[1:]) + (p[0] != t[0]))


@given(label_pairs)
def test_edit_score_is_levenshtein_by_definition(pair):
    p, t = (tuple(int(label) for label, _ in groupby(side) if label >= 0) for side in pair)
    assume(p or t)
    assert edit_score(*pair) == pytest.approx(1 - levenshtein(p, t) / max(len(p), len(t)))


def test_edit_score_ignores_how_long_segments_last():
    assert edit_score([0, 0, 0, 0, 1, 2], [0, 1, 2, 2, 2, 2]) == 1
    # "1 0" to "0 1": delete and insert, or substitute twice
    assert edit_score([1, 1, 0, 0], [0, 0, 1, 1]) == 0


S = np.zeros((2, 3))
ERRORS = {
    "alternatives": (
        lambda: one_frame_per_step(np.eye(3), orders.one_of(0, 1, 2)),
        r"order is one_of\(0, 1, 2\), .* not at all; .* give a list or a partial order",
    ),
    "repeats": (lambda: one_frame_per_step(np.eye(3), orders.repeat([0, 1, 2])), "in which a step may come twice"),
    "S 1-d": (lambda: one_frame_per_step([1.0, 2.0]), r"S has shape \(2,\); give a non-empty .* \(K, N\)"),
    "S empty": (lambda: one_frame_per_step(np.zeros((0, 3))), r"S has shape \(0, 3\); give a non-empty"),
    "S NaN": (lambda: recall([[0, 1], [np.nan, 2]], [], []), r"S holds nan at index \(1, 0\); give finite"),
    "S inf": (lambda: recall([[0, -np.inf]], [0], [1]), r"S holds -inf at index \(0, 1\); give finite"),
    "K > N": (lambda: one_frame_per_step(S.T), r"S has 3 steps but only 2 frames.*give K <= N"),
    "starts 2-d": (lambda: recall(S, S, [1, 1]), r"starts has shape \(2, 3\); give .* shape \(K,\)"),
    "stops NaN": (lambda: recall(S, [0, 0], [1, np.nan]), r"stops holds nan at index \(1,\); .* not NaN"),
    "starts short": (lambda: recall(S, [0], [1, 1]), r"S has 2 steps, starts has 1 and stops has 2"),
    "stops long": (lambda: recall(S, [0, 0], [1, 1, 1]), r"starts has 2 and stops has 3 values; give one"),
    "backwards": (lambda: recall(S, [0, 3], [1, 2]), r"step 1 starts at 3\.0 and stops at 2\.0"),
    "clip 0": (lambda: recall(S, [0, 0], [1, 1], fps=0), r"fps is 0; give .* > 0"),
    "clip inf": (lambda: pooled_recall([], fps=np.inf), r"fps is inf; give .* finite"),
    "clip NaN": (lambda: pooled_recall([], fps=np.nan), r"fps is nan; give"),
    "no recall": (lambda: pooled_recall([]), r"videos is empty; give at least one \(S, starts, stops\)"),
    "no frames": (lambda: frame_accuracy([], []), r"true has 0 labels, of which 0 count .*; leave"),
    "no steps": (
        lambda: frame_accuracy([0], [-1], background=False),
        r"1 labels, of which 0 count \(background=False\)",
    ),
    "no videos": (lambda: mean_over_videos(iou, [], []), r"has 0 videos and true has 0; give"),
    "video missing": (lambda: mean_over_videos(iou, [[0]], [[0], [1]]), r"has 1 videos and true has 2"),
    "X 1-d": (lambda: kendall_tau([1, 2], [[1], [2]]), r"X has shape \(2,\); give .* shape \(N, d\)"),
    "Y NaN": (lambda: kendall_tau([[1], [2]], [[1], [np.nan]]), r"Y holds nan at index \(1, 0\)"),
    "other d": (lambda: kendall_tau(S, S[:, :2]), r"X has 3 columns and Y has 2; give both the same number of columns"),
    "one x": (lambda: kendall_tau(S[:1], S), r"X has 1 rows and Y has 2; an order needs at least 2"),
    "one y": (lambda: kendall_tau(S, S[:1]), r"X has 2 rows and Y has 1; an order needs at least 2"),
    "distances 1-d": (lambda: recall_at_k([1, 2], [0]), r"distances has shape \(2,\); give .* \(Q, D\)"),
    "distances NaN": (lambda: recall_at_k([[np.nan]], [0]), r"distances holds nan at index \(0, 0\)"),
    "k 0": (lambda: recall_at_k(S, [0, 0], 0), r"k is 0, but distances has 3 items.*from 1 to 3"),
    "k large": (lambda: recall_at_k(S, [0, 0], 4), r"k is 4, but distances has 3 items.*from 1 to 3"),
    "k broken": (lambda: recall_at_k(S, [0, 0], 1.5), r"k is 1\.5, but .* whole number"),
    "relevant high": (lambda: recall_at_k(S, [0, 3]), r"relevant runs from 0 to 3, .* from 0 to 2"),
    "relevant low": (lambda: recall_at_k(S, [-1, 1]), r"relevant runs from -1 to 1, .* from 0 to 2"),
    "relevant short": (lambda: recall_at_k(S, [0]), r"has shape \(1,\) and dtype int64; give 2"),
    "relevant 1-d bool": (lambda: recall_at_k(S, [True, False]), r"dtype bool; give .* shape \(2, 3\)"),
    "relevant float": (lambda: recall_at_k(S, S), r"dtype float64; give .* booleans of shape \(2, 3\)"),
    "overlap 0": (lambda: segment_f1([0], [0], 0), r"overlap is 0; give an IoU in \(0, 1\]"),
    "overlap 50": (lambda: segment_f1([0], [0], 50), r"overlap is 50; give an IoU in \(0, 1\]"),
    "segments 2-d": (lambda: segments_of([[0, 1]]), r"labels has shape \(1, 2\); give one label per frame"),
    "S text": (lambda: one_frame_per_step([["a"]]), r"S has .* values that are not numbers; give a rectangular array"),
    "S ragged": (lambda: one_frame_per_step([[1.0], [1.0, 2.0]]), r"S has rows of different lengths"),
    "stops ragged": (lambda: recall(S, [0, 1], [[1], [2, 3]]), r"stops has rows of different lengths"),
    "relevant ragged": (lambda: recall_at_k(S, [[True], [True, False]]), r"relevant has rows of different lengths"),
    "values ragged": (lambda: standard_error([[1], [2, 3]]), r"values has rows of different lengths"),
    "segments ragged": (lambda: segments_of([[0], [1, 2]]), r"labels has rows of different lengths"),
    "segments bool": (lambda: segments_of([True]), r"labels has dtype bool; give integers: step ids >= 0"),
}


@pytest.mark.parametrize(("call", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_errors_say_what_arrived_and_what_fits(call, message):
    if "kendall_tau" in call.__code__.co_names:
        pytest.importorskip("scipy", reason="SciPy is not installed")
    with pytest.raises(ValueError, match=message):
        call()


@every_label_metric
@pytest.mark.parametrize(
    ("predicted", "true", "message"),
    [
        ([0, 1], [0, 1, 1], r"predicted has 2 labels and true has 3; label the same frames"),
        ([0.0, 1.0], [0, 1], r"predicted has dtype float64; give integers"),
        ([0, 1], ["a", "b"], r"true has dtype <U1; give integers"),
        ([0, 1], [0, -2], r"true holds -2; give step ids >= 0, and -1 for background"),
        (0, [0], r"predicted has shape \(\); give one label per frame, shape \(N,\)"),
    ],
)
def test_every_label_metric_checks_its_labels(metric, predicted, true, message):
    with pytest.raises(ValueError, match=message):
        metric(predicted, true)


def test_masked_labels_and_numbers_are_refused():
    labels = np.ma.masked_equal([0, 1, 9], 9)
    with pytest.raises(ValueError, match="predicted has masked values, the first at 2; remove them or fill them in"):
        frame_accuracy(labels, [0, 1, 1])
    with pytest.raises(ValueError, match=r"S has masked values, the first at \(0, 1\)"):
        one_frame_per_step(np.ma.masked_equal([[0.0, 9.0]], 9))
