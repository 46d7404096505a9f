"""How good an alignment is: the paper's step-localization metrics and those used beside them.

Two conventions run through the file:

- *labels* are integers (N,), one per frame: a step id >= 0, or -1 for background (a dropped frame);
- intervals are half-open, [start, stop).

Label metrics score one video; :func:`mean_over_videos` averages any of them. Recall pools its steps instead
(:func:`pooled_recall`). Where a metric needs dynamic programming it calls the library's own solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dropdtw.api import cost, solve
from dropdtw.orders.order import OrderLike
from dropdtw.problem.inputs import refuse_masked

BACKGROUND = -1


def one_frame_per_step(S: ArrayLike, order: OrderLike | None = None) -> NDArray[np.int64]:
    """Exactly one frame for every step, in order: argmax over j_1 < … < j_K of Σ_i S[i, j_i].

    S : (K, N) finite similarities, K <= N.   Returns (K,) strictly increasing frame indices.
    order : of the steps, as in `dropdtw.solve`: a list or a partial order. Frames then increase along it.

    Source: the inference of CrossTask (Zhukov et al. 2019), here Drop-DTW on −S with free frame drops and
    one-to-one matches. Where several choices are best, one of them.

    >>> one_frame_per_step([[0, 1, 5], [0, 9, 4]])  # 5 + 9 would run backwards; 1 + 4 < 0 + 9
    array([0, 1])
    >>> from dropdtw import orders
    >>> one_frame_per_step([[0, 1, 5], [0, 9, 4]], orders.any_order(0, 1))
    array([2, 1])
    """
    scores = _floats(S, "S", "KN")
    K, N = scores.shape
    if K > N:
        raise ValueError(
            f"S has {K} steps but only {N} frames, and every step needs a frame of its own; give K <= N "
            "(fewer steps or shorter clips)"
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
    clip_seconds: float = 1.0,
    order: OrderLike | None = None,
) -> float:
    """Share of the steps of one video whose chosen frame falls inside the step's true interval.

    recall = 1/K Σ_i [starts_i <= (j_i + 1/2) · clip_seconds < stops_i],   j = one_frame_per_step(S)

    S : (K, N) similarities.   starts, stops : (K,) seconds, one interval per row of S (±inf: open-ended).
    order : of the steps, see `one_frame_per_step`.

    Frame j shows the clip [j, j + 1) · clip_seconds and stands at its centre; so an interval between two
    neighbouring centres cannot be hit. With clip_seconds=1, half-open intervals of frame indices work as they
    are. Source: paper §4.2, metric Recall (Zhukov et al. 2019). For many videos use :func:`pooled_recall`.

    >>> recall([[9, 0, 0, 0], [0, 0, 9, 0]], starts=[0, 3], stops=[2, 4])  # frame 0 is in, frame 2 early
    0.5
    """
    _check_seconds(clip_seconds)
    return float(_hits(S, starts, stops, clip_seconds, order).mean())


def pooled_recall(videos: Iterable[tuple[ArrayLike, ArrayLike, ArrayLike]], *, clip_seconds: float = 1.0) -> float:
    """Recall over several videos: steps found in all of them / steps in all of them (paper §4.2).

    videos : (S, starts, stops) of each video, as in :func:`recall`. A video weighs as much as it has steps.

    >>> hit, missed = ([[1, 0]], [0], [1]), ([[0, 1, 0], [0, 0, 1]], [0, 0], [1, 1])
    >>> pooled_recall([hit, missed])  # 1 of 1 + 2 steps; the mean over videos would be 1/2
    0.3333333333333333
    """
    _check_seconds(clip_seconds)
    hits = [_hits(*video, clip_seconds) for video in videos]
    if not hits:
        raise ValueError("videos is empty; give at least one (S, starts, stops)")
    return float(np.concatenate(hits).mean())


def frame_accuracy(predicted: ArrayLike, true: ArrayLike, *, background: bool = True) -> float:
    """Share of frames with the right label: 1/N Σ_j [predicted_j = true_j].

    predicted, true : (N,) labels.   background=False counts only frames whose true label is a step.

    Source: paper §4.2, metric Acc. (Tang et al. 2019), which counts background.

    >>> frame_accuracy([0, 0, -1, 1], [0, 0, 1, -1])
    0.5
    >>> frame_accuracy([0, 0, -1, 1], [0, 0, 1, -1], background=False)  # 2 of 3
    0.6666666666666666
    """
    p, t = _label_pair(predicted, true)
    counted = np.full(len(t), True) if background else t != BACKGROUND
    if not counted.any():
        raise ValueError(f"true has {len(t)} labels, of which 0 count ({background=}); leave this video out")
    return float((p == t)[counted].mean())


def iou(predicted: ArrayLike, true: ArrayLike) -> float:
    """Intersection over union, summed over the steps k of one video: Σ_k |P_k ∩ T_k| / Σ_k |P_k ∪ T_k|.

    predicted, true : (N,) labels; P_k and T_k are the frames labelled k, k any step in either.

    Background is no step. Without any step in either the prediction is right: 1.0.
    Source: paper §4.2, metric IoU (Zhou et al. 2018).

    >>> iou([0, 0, 1, -1], [0, 1, 1, -1])  # intersections 1 + 1, unions 2 + 2
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

    metric : any function here of two sequences.   predicted, true : V videos each, of any lengths.

    >>> mean_over_videos(frame_accuracy, [[0, 0], [1, -1, -1, 1]], [[0, 1], [1, -1, -1, 1]])
    0.75
    """
    if len(predicted) != len(true) or len(true) == 0:
        raise ValueError(
            f"predicted has {len(predicted)} videos and true has {len(true)}; give as many of each, and at least one"
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
    """Kendall's τ of the order of X's nearest neighbours in Y: (concordant − discordant) / pairs.

    X : (N, d) and Y : (M, d) finite frame embeddings, N, M >= 2.   Returns a value in [−1, 1].

    n_i = argmin_m ‖X_i − Y_m‖ (ties: the smaller m); τ (scipy's τ-b) of 0 … N−1 against n. A sequence against
    itself gives 1 if no row repeats; repeated neighbours keep τ-b below 1. If all neighbours are one and the same,
    τ is 0/0, and 0.0 is returned: no order was found. Needs scipy.
    Source: Dwibedi et al. 2019; used in paper §4.3.

    >>> kendall_tau([[0.0], [1.0], [2.0]], [[2.1], [1.1], [0.1]])
    -1.0
    """
    try:
        from scipy.spatial.distance import cdist
        from scipy.stats import kendalltau
    except ImportError as error:
        raise ImportError("kendall_tau needs scipy: pip install dropdtw[metrics]") from error
    x, y = _floats(X, "X", "Nd"), _floats(Y, "Y", "Md")
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"X has {x.shape[1]} columns and Y has {y.shape[1]}; give both the same d")
    if min(len(x), len(y)) < 2:
        raise ValueError(f"X has {len(x)} rows and Y has {len(y)}; an order needs at least 2 in each")
    neighbours = cdist(x, y, "sqeuclidean").argmin(axis=1)
    if (neighbours == neighbours[0]).all():
        return 0.0
    return float(kendalltau(np.arange(len(x)), neighbours).statistic)


def recall_at_k(distances: ArrayLike, relevant: ArrayLike, k: int = 1) -> float:
    """Share of queries with a relevant item among the k nearest: 1/Q Σ_q [b_q < k].

    distances : (Q, D), smaller is nearer, inf allowed.   k : 1 … D.
    relevant : (Q,) column of the right item, or (Q, D) bool.
    b_q : how many irrelevant items are as near as q's nearest relevant item, or nearer.

    Ties count against the query, so constant distances do not score. A query with no relevant item is a miss.
    Source: paper §4.1.1, Recall@1.

    >>> recall_at_k([[0.1, 0.7], [0.3, 0.3]], [0, 1])  # found; tied with an irrelevant item
    0.5
    """
    d = _floats(distances, "distances", "QD", finite=False)
    Q, D = d.shape
    if k not in range(1, D + 1):
        raise ValueError(f"k is {k}, but distances has {D} items a query; give a whole number from 1 to {D}")
    wanted = np.asarray(relevant)
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
    """Maximal runs of equal labels, background left out, as (label, start, stop) over [start, stop).

    labels : (N,).   Background between two runs of one step keeps them apart.

    >>> segments_of([-1, 4, 4, -1, 4, 0])
    [(4, 1, 3), (4, 4, 5), (0, 5, 6)]
    """
    a = _labels(labels, "labels")
    bounds = [0, *(np.flatnonzero(a[1:] != a[:-1]) + 1).tolist(), len(a)]
    runs = [(int(a[start]), start, stop) for start, stop in pairwise(bounds) if start < stop]
    return [run for run in runs if run[0] != BACKGROUND]


def segment_f1(predicted: ArrayLike, true: ArrayLike, overlap: float = 0.5) -> float:
    """Segmental F1@overlap of one video: 2 TP / (predicted segments + true segments).

    predicted, true : (N,) labels.   overlap : in (0, 1], the IoU that makes a hit.

    In order of time, each predicted segment looks up the true segment of its label that overlaps it most
    (ties: the earlier); it is a true positive if their IoU >= overlap and that true segment is unclaimed as
    yet. No segments on either side: 1.0. Source: Lea et al. 2017; Farha & Gall 2019 (MS-TCN), whose tables
    pool TP and segments over videos instead of averaging F1.

    >>> segment_f1([0, 0, -1, 1], [0, 0, 0, 0])  # segment 0 has IoU 2/4; segment 1 is false: 2 · 1 / (2 + 1)
    0.6666666666666666
    """
    if not 0 < overlap <= 1:
        raise ValueError(f"overlap is {overlap}; give an IoU in (0, 1], such as 0.1, 0.25 or 0.5")
    found, truth = (segments_of(labels) for labels in _label_pair(predicted, true))
    claimed = set()  # a second claim changes nothing, so its size is the number of true positives
    for segment in found:
        best = max(truth, key=partial(_segment_iou, segment), default=None)
        if best and _segment_iou(segment, best) >= overlap:
            claimed.add(best)
    total = len(found) + len(truth)
    return 2 * len(claimed) / total if total else 1.0


def edit_score(predicted: ArrayLike, true: ArrayLike) -> float:
    """Order of segments, whatever their lengths: 1 − levenshtein(p, t) / max(len p, len t), in [0, 1].

    predicted, true : (N,) labels; p and t are the labels of their segments (see :func:`segments_of`).

    Levenshtein's distance is Needleman–Wunsch with unit drops and D[i, j] = [p_i ≠ t_j]. No segments on
    either side: 1.0; on one side only: 0.0. Source: Lea et al. 2016, 2017 (there times 100).

    >>> edit_score([0, 0, 1, -1, 2], [0, 1, 1, 1, 1])  # "0 1 2" to "0 1": one deletion in three
    0.6666666666666667
    """
    p, t = ([run[0] for run in segments_of(labels)] for labels in _label_pair(predicted, true))
    if not p or not t:
        return float(len(p) == len(t))
    D = np.not_equal.outer(p, t).astype(np.float64)
    return 1 - cost(D, drop_x=1.0, drop_z=1.0, method="needleman_wunsch") / max(len(p), len(t))


def standard_error(values: ArrayLike) -> NDArray[np.float64]:
    """Standard error of the mean over the first axis, std(ddof=1) / √n; 0 where there is only one value.

    >>> standard_error([1.0, 3.0])
    array(1.)
    """
    v = np.asarray(values, np.float64)
    return np.asarray(v.std(axis=0, ddof=1) / np.sqrt(len(v)) if len(v) > 1 else np.zeros(v.shape[1:]))


def _check_seconds(clip_seconds: float) -> None:
    if not 0 < clip_seconds < np.inf:
        raise ValueError(f"clip_seconds is {clip_seconds}; give the length of one clip, a finite number > 0")


def _hits(
    S: ArrayLike, starts: ArrayLike, stops: ArrayLike, clip_seconds: float, order: OrderLike | None = None
) -> NDArray[np.bool_]:
    """Which steps (K,) have the centre of their chosen frame inside their interval."""
    times = (one_frame_per_step(S, order) + 0.5) * clip_seconds
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
    """IoU of two (label, start, stop) segments; 0 where the labels differ or nothing overlaps."""
    shared = min(one[2], other[2]) - max(one[1], other[1])
    if one[0] != other[0] or shared <= 0:
        return 0.0
    return shared / (max(one[2], other[2]) - min(one[1], other[1]))


def _floats(values: ArrayLike, name: str, axes: str, *, finite: bool = True) -> NDArray[np.float64]:
    """Values as a non-empty float64 array with one dimension per letter of axes, free of NaN (and of inf)."""
    refuse_masked(values, name)
    array = np.asarray(values, dtype=np.float64)
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
    """Values as labels (N,): integers >= -1. An empty list, which numpy takes for floats, has no labels."""
    refuse_masked(values, name)
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; give one label per frame, shape (N,)")
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} has dtype {array.dtype}; give integers: step ids >= 0, -1 for background")
    if array.size and array.min() < BACKGROUND:
        raise ValueError(f"{name} holds {array.min()}; give step ids >= 0, and -1 for background")
    return array.astype(np.int64)


def _label_pair(predicted: ArrayLike, true: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both label sequences, checked to cover the same frames."""
    p, t = _labels(predicted, "predicted"), _labels(true, "true")
    if len(p) != len(t):
        raise ValueError(f"predicted has {len(p)} labels and true has {len(t)}; label the same frames")
    return p, t
