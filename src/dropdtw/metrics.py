"""Quality of an alignment: the step-localization metrics of the paper and related ones.

Conventions:

- *labels* are integers (N,), one per frame: a step id >= 0, or -1 for background (a dropped frame);
- intervals are half-open, [start, stop).

Label metrics score one video; `mean_over_videos` averages any of them. Recall pools the steps of all videos instead
(`pooled_recall`). Metrics that need dynamic programming call the library's own solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dropdtw.api import cost, solve
from dropdtw.orders.order import OrderLike, as_order
from dropdtw.problem.inputs import refuse_masked

__all__ = ["BACKGROUND", "edit_score", "frame_accuracy", "iou", "kendall_tau", "mean_over_videos"]
__all__ += ["one_frame_per_step", "pooled_recall", "recall", "recall_at_k", "segment_f1", "segments_of"]
__all__ += ["standard_error"]

BACKGROUND = -1
"""The label of frames that show no step."""


def one_frame_per_step(S: ArrayLike, order: OrderLike | None = None) -> NDArray[np.int64]:
    """Choose exactly one frame for every step, in order: argmax over j_1 < … < j_K of Σ_i S[i, j_i].

    S : (K, N) finite similarities, K <= N.
    order : the order of the steps, a list or a partial order, as in `dropdtw.solve`; None: the order of the rows.

    Returns (K,) the frame of each step; frames increase strictly along the order. Raises ValueError if S has fewer
    frames than steps, or values that are not finite, or if the order has alternatives or repeats.

    Source: the inference of CrossTask (Zhukov et al. 2019), computed as Drop-DTW on −S with free frame drops and
    one-to-one matches. If several choices are best, one of them is returned.

    >>> from dropdtw import metrics, orders
    >>> metrics.one_frame_per_step([[0, 1, 5], [0, 9, 4]])  # 5 + 9 would run backward; 1 + 4 < 0 + 9
    array([0, 1])
    >>> metrics.one_frame_per_step([[0, 1, 5], [0, 9, 4]], orders.any_order(0, 1))
    array([2, 1])
    """
    scores = _floats(S, "S", "KN")
    K, N = scores.shape
    if K > N:
        raise ValueError(
            f"S has {K} steps but only {N} frames, and every step needs a frame of its own; give K <= N "
            "(fewer steps or shorter clips)"
        )
    if order is not None and not as_order(order).is_partial:
        raise ValueError(
            f"order is {order!r}, in which a step may come twice or not at all; every step needs exactly one frame, so "
            "give a list or a partial order"
        )
    pairs = solve(-scores, drop_x=0.0, one_to_many=False, many_to_one=False, order=order).pairs
    frames = np.empty(K, np.int64)
    frames[pairs[:, 0]] = pairs[:, 1]
    return frames


def recall(
    S: ArrayLike,
    starts: ArrayLike,
    stops: ArrayLike,
    *,
    fps: float = 1.0,
    order: OrderLike | None = None,
) -> float:
    """Fraction of the steps of one video whose chosen frame lies inside the step's true interval.

    recall = 1/K Σ_i [starts_i <= (j_i + 1/2) / fps < stops_i],   j = one_frame_per_step(S)

    S : (K, N) similarities.   starts, stops : (K,) seconds, one interval per row of S (±inf: open-ended).
    fps : frames per second.   order : of the steps, see `one_frame_per_step`.

    Frame j covers the clip [j, j + 1) / fps, and its time is the center of that clip. An interval between two
    neighboring centers therefore cannot be hit. With fps=1, you can pass half-open intervals of frame
    indices as they are. Source: paper §4.2, metric Recall (Zhukov et al. 2019). For many videos use `pooled_recall`.

    Returns a float from 0 to 1. Raises ValueError if S or an interval is invalid, or if their numbers differ.

    >>> from dropdtw import metrics
    >>> metrics.recall([[9, 0, 0, 0], [0, 0, 9, 0]], starts=[0, 3], stops=[2, 4])  # frame 0 hits, frame 2 is too early
    0.5
    """
    _check_rate(fps)
    return float(_hits(S, starts, stops, fps, order).mean())


def pooled_recall(videos: Iterable[tuple[ArrayLike, ArrayLike, ArrayLike]], *, fps: float = 1.0) -> float:
    """Recall over several videos: steps found in all of them / steps in all of them (paper §4.2).

    videos : (S, starts, stops) for each video, as `recall` takes them.   fps : as in `recall`.

    The weight of a video is its number of steps.

    Returns a float from 0 to 1. Raises ValueError if there is no video, or if one is invalid.

    >>> from dropdtw import metrics
    >>> hit, missed = ([[1, 0]], [0], [1]), ([[0, 1, 0], [0, 0, 1]], [0, 0], [1, 1])
    >>> metrics.pooled_recall([hit, missed])  # 1 of 1 + 2 steps; the mean over videos would be 1/2
    0.3333333333333333
    """
    _check_rate(fps)
    hits = [_hits(*video, fps) for video in videos]
    if not hits:
        raise ValueError("videos is empty; give at least one (S, starts, stops)")
    return float(np.concatenate(hits).mean())


def frame_accuracy(predicted: ArrayLike, true: ArrayLike, *, background: bool = True) -> float:
    """Fraction of frames with the right label: 1/N Σ_j [predicted_j = true_j].

    predicted, true : (N,) labels.
    background : False counts only frames whose true label is a step.

    Source: paper §4.2, metric Acc. (Tang et al. 2019), which counts background.

    Returns a float from 0 to 1. Raises ValueError if the labels are invalid or if no frame counts.

    >>> from dropdtw import metrics
    >>> metrics.frame_accuracy([0, 0, -1, 1], [0, 0, 1, -1])
    0.5
    >>> metrics.frame_accuracy([0, 0, -1, 1], [0, 0, 1, -1], background=False)  # 2 of 3
    0.6666666666666666
    """
    p, t = _label_pair(predicted, true)
    counted = np.full(len(t), True) if background else t != BACKGROUND
    if not counted.any():
        raise ValueError(f"true has {len(t)} labels, of which 0 count ({background=}); leave this video out")
    return float((p == t)[counted].mean())


def iou(predicted: ArrayLike, true: ArrayLike) -> float:
    """Intersection over union, summed over the steps k of one video: Σ_k |P_k ∩ T_k| / Σ_k |P_k ∪ T_k|.

    predicted, true : (N,) labels; P_k and T_k are the frames labeled k, for every step k in either.

    Background is not a step. If neither side has a step, the score is 1.0.
    Source: paper §4.2, metric IoU (Zhou et al. 2018).

    Returns a float from 0 to 1. Raises ValueError if the labels are invalid, or if their numbers differ.

    >>> from dropdtw import metrics
    >>> metrics.iou([0, 0, 1, -1], [0, 1, 1, -1])  # intersections 1 + 1, unions 2 + 2
    0.5
    """
    p, t = _label_pair(predicted, true)
    shared = int(((p == t) & (t != BACKGROUND)).sum())
    # a frame has one label, so Σ|P_k| and Σ|T_k| count the frames that are not background
    union = int((p != BACKGROUND).sum() + (t != BACKGROUND).sum()) - shared
    return shared / union if union else 1.0


def mean_over_videos(
    metric: Callable[..., float], predicted: Sequence[ArrayLike], true: Sequence[ArrayLike], **options: object
) -> float:
    """Mean of a per-video metric: 1/V Σ_v metric(predicted_v, true_v, **options).

    metric : a function of two label sequences.   predicted, true : V videos each, of any lengths.
    options : further arguments of the metric.

    Returns a float. Raises ValueError if the numbers of videos differ or are 0. An error of the metric gets a note with
    the index of its video.

    >>> from dropdtw import metrics
    >>> metrics.mean_over_videos(metrics.frame_accuracy, [[0, 0], [1, -1, -1, 1]], [[0, 1], [1, -1, -1, 1]])
    0.75
    """
    if len(predicted) != len(true) or len(true) == 0:
        raise ValueError(
            f"predicted has {len(predicted)} videos and true has {len(true)}; give equally many of each, at least one"
        )
    values = []
    for index, (p, t) in enumerate(zip(predicted, true, strict=True)):
        try:
            values.append(metric(p, t, **options))
        except ValueError as error:
            error.add_note(f"in video {index}")
            raise
    return float(np.mean(values))


def kendall_tau(X: ArrayLike, Y: ArrayLike) -> float:
    """How well X and Y agree in order: Kendall's τ between the frames of X and their nearest neighbors in Y.

    X, Y : (N, d) and (M, d) finite frame embeddings, N, M >= 2.

    With n_i = argmin_m ‖X_i − Y_m‖ (ties: the smaller m), this is τ-b between 0 … N−1 and n_0 … n_{N−1}. A sequence
    against itself gives 1 if no row repeats; repeated neighbors keep τ-b below 1. If all n_i are equal, τ is 0/0;
    the result is then 0.0, because there is no order.
    Source: Dwibedi et al. 2019; used in paper §4.3.

    Returns a float from −1 to 1. Raises ImportError without SciPy, and ValueError if X or Y is invalid or has fewer
    than 2 rows.

    >>> from dropdtw import metrics
    >>> metrics.kendall_tau([[0.0], [1.0], [2.0]], [[2.1], [1.1], [0.1]])
    -1.0
    """
    try:
        from scipy.spatial.distance import cdist
        from scipy.stats import kendalltau
    except ImportError as error:
        raise ImportError("kendall_tau needs scipy: pip install 'dropdtw[metrics]'") from error
    x, y = _floats(X, "X", "Nd"), _floats(Y, "Y", "Md")
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"X has {x.shape[1]} columns and Y has {y.shape[1]}; give both the same number of columns")
    if min(len(x), len(y)) < 2:
        raise ValueError(f"X has {len(x)} rows and Y has {len(y)}; an order needs at least 2 in each")
    neighbors = cdist(x, y, "sqeuclidean").argmin(axis=1)
    if (neighbors == neighbors[0]).all():
        return 0.0
    return float(kendalltau(np.arange(len(x)), neighbors).statistic)


def recall_at_k(distances: ArrayLike, relevant: ArrayLike, k: int = 1) -> float:
    """Fraction of queries with a relevant item among the k nearest: 1/Q Σ_q [b_q < k].

    distances : (Q, D), smaller is nearer, inf allowed.   k : 1 … D.
    relevant : (Q,) column of the relevant item, or (Q, D) bool.

    b_q is the number of irrelevant items that are at least as near as q's nearest relevant item. Ties count against
    the query, so constant distances score nothing. A query with no relevant item is a miss.
    Source: paper §4.1.1, Recall@1.

    Returns a float from 0 to 1. Raises ValueError if k, a distance or an index is invalid.

    >>> from dropdtw import metrics
    >>> metrics.recall_at_k([[0.1, 0.7], [0.3, 0.3]], [0, 1])  # a hit, and a miss: tied with an irrelevant item
    0.5
    """
    d = _floats(distances, "distances", "QD", finite=False)
    Q, D = d.shape
    if k not in range(1, D + 1):
        raise ValueError(f"k is {k}, but distances has {D} items per query; give a whole number from 1 to {D}")
    wanted = _array(relevant, "relevant")
    if wanted.shape == (Q,) and wanted.dtype.kind in "iu":
        if wanted.min() < 0 or wanted.max() >= D:
            raise ValueError(
                f"relevant runs from {wanted.min()} to {wanted.max()}, but distances has {D} columns; "
                f"give indices from 0 to {D - 1}"
            )
        wanted = wanted[:, None] == np.arange(D)
    if wanted.shape != (Q, D) or wanted.dtype != bool:
        raise ValueError(
            f"relevant has shape {wanted.shape} and dtype {wanted.dtype}; "
            f"give {Q} column indices, one per query, or booleans of shape ({Q}, {D})"
        )
    nearest = np.where(wanted, d, np.inf).min(axis=1, keepdims=True)
    return float((((d <= nearest) & ~wanted).sum(axis=1) < k).mean())


def segments_of(labels: ArrayLike) -> list[tuple[int, int, int]]:
    """List the maximal runs of equal labels, without background, as (label, start, stop) with half-open [start, stop).

    labels : (N,). Two runs of one step with background between them stay separate.

    Returns a list, in temporal order. Raises ValueError if the labels are invalid.

    >>> from dropdtw import metrics
    >>> metrics.segments_of([-1, 4, 4, -1, 4, 0])
    [(4, 1, 3), (4, 4, 5), (0, 5, 6)]
    """
    a = _labels(labels, "labels")
    bounds = [0, *(np.flatnonzero(a[1:] != a[:-1]) + 1).tolist(), len(a)]
    runs = [(int(a[start]), start, stop) for start, stop in pairwise(bounds) if start < stop]
    return [run for run in runs if run[0] != BACKGROUND]


def segment_f1(predicted: ArrayLike, true: ArrayLike, overlap: float = 0.5) -> float:
    """Segmental F1@overlap of one video: 2 TP / (predicted segments + true segments).

    predicted, true : (N,) labels.   overlap : in (0, 1], the smallest IoU that counts as a hit.

    In temporal order, each predicted segment picks the true segment with its label that overlaps it most (ties: the
    earlier). It is a true positive if their IoU >= overlap and no earlier segment has claimed that true segment.
    If neither side has segments, the score is 1.0. Source: Lea et al. 2017; Farha & Gall 2019 (MS-TCN), whose tables
    pool TP and segments over videos instead of averaging F1.

    Returns a float from 0 to 1. Raises ValueError if the labels or the overlap are invalid.

    >>> from dropdtw import metrics
    >>> metrics.segment_f1([0, 0, -1, 1], [0, 0, 0, 0])  # segment 0 has IoU 2/4; segment 1 is false: 2 · 1 / (2 + 1)
    0.6666666666666666
    """
    if not 0 < overlap <= 1:
        raise ValueError(f"overlap is {overlap}; give an IoU in (0, 1], such as 0.1, 0.25 or 0.5")
    found, truth = (segments_of(labels) for labels in _label_pair(predicted, true))
    claimed = set()  # a second claim has no effect, so its size is the number of true positives
    for segment in found:
        best = max(truth, key=partial(_segment_iou, segment), default=None)
        if best and _segment_iou(segment, best) >= overlap:
            claimed.add(best)
    total = len(found) + len(truth)
    return 2 * len(claimed) / total if total else 1.0


def edit_score(predicted: ArrayLike, true: ArrayLike) -> float:
    """Edit score of the segments' order, whatever their lengths: 1 − levenshtein(p, t) / max(len p, len t).

    predicted, true : (N,) labels; p and t are the labels of their segments (see `segments_of`).

    The Levenshtein distance is Needleman–Wunsch with unit drop costs and D[i, j] = [p_i ≠ t_j]. If neither side has
    segments, the score is 1.0; if only one side has, it is 0.0. Source: Lea et al. 2016, 2017 (there times 100).

    Returns a float from 0 to 1. Raises ValueError if the labels are invalid, or if their numbers differ.

    >>> from dropdtw import metrics
    >>> metrics.edit_score([0, 0, 1, -1, 2], [0, 1, 1, 1, 1])  # "0 1 2" to "0 1": one deletion in three
    0.6666666666666667
    """
    p, t = ([run[0] for run in segments_of(labels)] for labels in _label_pair(predicted, true))
    if not p or not t:
        return float(len(p) == len(t))
    D = np.not_equal.outer(p, t).astype(np.float64)
    return 1 - cost(D, drop_x=1.0, drop_z=1.0, method="needleman_wunsch") / max(len(p), len(t))


def standard_error(values: ArrayLike) -> NDArray[np.float64]:
    """Standard error of the mean over the first axis, std(ddof=1) / √n; 0 if there is only one value.

    values : (n, …).

    Returns an array of the remaining shape. Raises ValueError if rows differ in length, or hold anything but numbers.

    >>> from dropdtw import metrics
    >>> metrics.standard_error([1.0, 3.0])
    array(1.)
    """
    v = _array(values, "values", np.float64)
    return np.asarray(v.std(axis=0, ddof=1) / np.sqrt(len(v)) if len(v) > 1 else np.zeros(v.shape[1:]))


def _check_rate(fps: float) -> None:
    if not 0 < fps < np.inf:
        raise ValueError(f"fps is {fps}; give the number of frames per second, a finite number > 0")


def _hits(
    S: ArrayLike, starts: ArrayLike, stops: ArrayLike, fps: float, order: OrderLike | None = None
) -> NDArray[np.bool_]:
    """For each step (K,), whether the center of its chosen frame lies inside its interval."""
    times = (one_frame_per_step(S, order) + 0.5) / fps
    a, b = (_floats(v, name, "K", finite=False) for v, name in ((starts, "starts"), (stops, "stops")))
    if not len(times) == len(a) == len(b):
        raise ValueError(
            f"S has {len(times)} steps, starts has {len(a)} and stops has {len(b)} values; "
            "give one interval per row of S"
        )
    if (a > b).any():
        i = int((a > b).argmax())
        raise ValueError(f"step {i} starts at {a[i]} and stops at {b[i]}; give starts <= stops, in seconds")
    return (a <= times) & (times < b)


def _segment_iou(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """IoU of two (label, start, stop) segments; 0 if their labels differ or they do not overlap."""
    shared = min(one[2], other[2]) - max(one[1], other[1])
    if one[0] != other[0] or shared <= 0:
        return 0.0
    return shared / (max(one[2], other[2]) - min(one[1], other[1]))


def _array(values: ArrayLike, name: str, dtype: type | None = None) -> NDArray[Any]:
    try:
        return np.asarray(values, dtype)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} has rows of different lengths, or values that are not numbers; give a rectangular array of numbers"
        ) from None


def _floats(values: ArrayLike, name: str, axes: str, *, finite: bool = True) -> NDArray[np.float64]:
    """Values as a non-empty float64 array, one dimension per letter of `axes`, without NaN (and inf if `finite`)."""
    refuse_masked(values, name)
    array = _array(values, name, np.float64)
    if array.ndim != len(axes) or array.size == 0:
        shape = ", ".join(axes) + "," * (len(axes) == 1)
        raise ValueError(f"{name} has shape {array.shape}; give a non-empty array of shape ({shape})")
    bad = ~np.isfinite(array) if finite else np.isnan(array)
    if bad.any():
        index = tuple(int(axis[0]) for axis in bad.nonzero())
        fits = "finite numbers" if finite else "numbers, not NaN"
        raise ValueError(f"{name} holds {array[index]} at index {index}; give {fits}, or leave this item out")
    return array


def _labels(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Values as labels (N,): integers >= -1. An empty list is valid, although NumPy gives it a float dtype."""
    refuse_masked(values, name)
    array = _array(values, name)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; give one label per frame, shape (N,)")
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} has dtype {array.dtype}; give integers: step ids >= 0, -1 for background")
    if array.size and array.min() < BACKGROUND:
        raise ValueError(f"{name} holds {array.min()}; give step ids >= 0, and -1 for background")
    return array.astype(np.int64)


def _label_pair(predicted: ArrayLike, true: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both label sequences, after checking that they have equal lengths."""
    p, t = _labels(predicted, "predicted"), _labels(true, "true")
    if len(p) != len(t):
        raise ValueError(f"predicted has {len(p)} labels and true has {len(t)}; label the same frames")
    return p, t
