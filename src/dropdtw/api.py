"""The public functions: they take sequences or match costs and return an alignment, a cost or a distribution.

`align` and `distance` take two sequences, `alignments` and `pairwise` take lists of sequences, `solve` and `cost` take
match costs, and `posterior` takes either. They share their options, which `solve` explains: each is a method of
`Aligner(**options)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy.typing as npt

from dropdtw.aligner import aligner_of
from dropdtw.drops import DropCost
from dropdtw.files.progress import Progress
from dropdtw.problem.clock import Fps, Times
from dropdtw.problem.inputs import Array
from dropdtw.problem.options import (
    CostOptions,
    DistanceOptions,
    PairOptions,
    PathOptions,
    PathsOptions,
    SequenceOptions,
    takes,
)
from dropdtw.results.alignment import Alignment
from dropdtw.results.posterior import Posterior


@takes(PathOptions)
def solve(
    C: npt.ArrayLike,
    drop_x: DropCost = None,
    drop_z: DropCost = None,
    *,
    times: Times = None,
    fps: Fps = None,
    executor: str | None = None,
    **options: Unpack[PathOptions],
) -> Alignment:
    r"""Find the best alignment for given match costs.

    It minimizes (paper Eq. 2)

        Σ_ij M_ij C_ij  +  Σ_j [column j of M is empty] d_x[j]  +  Σ_i [row i of M is empty] d_z[i]

    over all binary matrices M that the options allow. M_ij is 1 if z_i matches x_j. Without an `order`, matches do not
    cross. Opening costs add open_x for each run of empty columns and open_z for each run of empty rows. The warp
    penalty adds `warp` for each match that repeats an element.

    Parameters
    ----------
    C : (K, N), the cost of matching z_i with x_j. Any sign is allowed. +∞ forbids the match.
    drop_x, drop_z : d_x and d_z, the cost of dropping x_j or z_i. None forbids dropping. Otherwise a number, one number
        per element (+∞ forbids dropping that element), or a rule from `dropdtw.drops`, such as "percentile:30", the
        30th percentile of C. Without any drop cost the result is DTW.
    method : a name in `dropdtw.METHODS` (`METHODS[name].summary` says what it does), a method with parameters (from
        `dropdtw.free_ends`, `dropdtw.wdtw` or `dropdtw.erp`), or your own `dropdtw.Recurrence`. "ddtw" and
        "erp" need the sequences, not only C: use `dropdtw.align`.
    one_to_many : whether one z may match several x.
    many_to_one : whether one x may match several z.
    contiguous : True forbids dropping an x that lies between two matches of the same z. Step localization usually needs
        both this and `many_to_one=False`: `method="steps"`.
    open_x, open_z : the cost that each run of dropped x, or of dropped z, adds to its drop costs. It favors a few long
        runs over many short ones. A number ≥ 0, or "suggest", which chooses one from C.
    warp : the cost that a match adds if its z or its x is already matched (the penalty of ADTW). A number ≥ 0.
    window : forbids matches far from the diagonal, |j − i (N−1)/(K−1)| > w. An int is w in columns; a float in [0, 1]
        is a fraction of N. Drops are not limited, and neither are the matches of a single z (K = 1).
    mask : (K, N) bool, True where z_i may match x_j. False has the same effect as +∞ in C. `dropdtw.windows` builds
        common masks.
    threshold : only for "lcss" and "edr", which require it: pairs that cost at most this count as equal. A number, or a
        rule that gives one number, such as "percentile:30".
    order : which steps (z_i) may follow which, built with `dropdtw.orders`: a partial order, alternatives, repeats or
        jumps. None keeps the order of Z.
    ids : only for "ctc", which has to know which z are the same: K numbers or names, equal for the same z. None: z
        with equal rows of C are the same.
    anchors : pairs (i, j) that are certain: z_i matches x_j, and neither is dropped. They cut the problem into pieces,
        so it is solved faster. Rules such as "percentile:30" read all of C. Not with an order, or step patterns.
    per : "second" multiplies the match costs and the drop cost of each x by its duration in seconds, according to
        `times` or `fps`, so that recordings with irregular samples, or at different rates, cost the same. drop_z and
        opening costs are not multiplied. Rules such as "percentile:30" read the costs before. None: each x counts once.
    times, fps : when each x begins, or how many x there are per second; see `dropdtw.align`.
    executor : "cpp" (compiled) or "reference". None picks the fastest one available.

    Returns
    -------
    A `dropdtw.Alignment`: the cost, the matched pairs, and the dropped elements.

    Raises
    ------
    ValueError : if an argument is invalid, or if every alignment is forbidden.

    >>> import dropdtw
    >>> a = dropdtw.solve([[0.1, 0.2, 0.9, 0.8], [0.9, 0.8, 0.9, 0.1]], drop_x=0.3)
    >>> a.labels                        # x_2 resembles neither z_0 nor z_1
    array([ 0,  0, -1,  1])
    >>> round(a.cost, 6)                # 0.1 + 0.2 + 0.3 + 0.1
    0.7
    >>> dropdtw.METHODS["dtw"].summary
    'dynamic time warping: everything is matched'
    """
    return aligner_of(solve, drop_x, drop_z, options).solve(C, times=times, fps=fps, executor=executor)


@takes(SequenceOptions)
def align(
    Z: npt.ArrayLike,
    X: npt.ArrayLike,
    drop_x: DropCost = None,
    drop_z: DropCost = None,
    *,
    times: Times = None,
    fps: Fps = None,
    executor: str | None = None,
    **options: Unpack[SequenceOptions],
) -> Alignment:
    """Find the best alignment of two sequences.

    Parameters
    ----------
    Z : (K, d), the query or the steps; (K,) is a sequence of numbers. A string or a list of words or other hashable
        objects is a sequence of symbols.
    X : (N, d) or (N,), the signal or the frames; symbols if Z holds symbols.
    drop_x, drop_z : the cost of dropping an element of X or Z; a lower cost drops more. None: nothing may be dropped.
        Otherwise a number, one number per element, "suggest" (chosen from the data), "percentile:30" (of the match
        costs), or a rule of `dropdtw.drops`.
        With `match="softmax"`, drop_x can also be "logit:30", which adds "drop" as one more class to the softmax. Its
        logit is the similarity that 30 % of all pairs reach; see `dropdtw.drops.LogitPercentile`.
    match : the match cost, a name of `dropdtw.costs` ("cosine", "softmax", "euclidean", "sqeuclidean", "cityblock",
        "chebyshev", "correlation"), or a function of Z and X that returns C (K, N). "softmax:0.1" sets the temperature
        of the softmax. "auto" is Euclidean for up to 15 features and cosine for more, unless the method has a
        match cost of its own ("ddtw", "wdtw", "erp", "edr"). `Alignment.match` says which one was used. For symbols:
        "equal" (0 if they are equal, otherwise 1; what "auto" means), costs as a dictionary of pairs or a data frame
        (see `dropdtw.costs.Lookup`), the name of a score matrix of Biopython such as "BLOSUM62" (costs are its scores,
        negated), or a function of one symbol of Z and one of X.
    missing : what to do with elements with NaN (or masked values). None raises an error. "drop" leaves them out: they
        match nothing and cost nothing, as if they had been deleted, but all indices still refer to your sequences (see
        `Alignment.missing_x`).
    times : when each x begins: (N,) seconds, dates or durations, as numbers, NumPy arrays, datetimes, or an index or a
        column of pandas or polars; or the name of a column of X, which is then no feature. (N, 2) gives ends, too;
        otherwise an x ends where the next one begins, and the last one lasts as long as the median. A tuple (z, x)
        gives the times of both. Without it, time indexes of pandas and the only column of dates or durations of a data
        frame are used. Segments then have `start_time` and `stop_time`, in your type of time.
    fps : instead of times, how many x there are per second; a tuple (z, x) for both.
    method, one_to_many, many_to_one, contiguous, open_x, open_z, warp, window, mask, threshold, order, ids, anchors,
        per, executor : as in `dropdtw.solve`.

    Returns
    -------
    A `dropdtw.Alignment`: the cost, the matched pairs, and the dropped elements.

    Raises
    ------
    ValueError : if an argument is invalid, or if every alignment is forbidden.

    >>> import dropdtw
    >>> Z = [0.0, 1.0, 2.0]
    >>> X = [0.1, 0.0, 7.0, 1.1, 2.0, -5.0, 2.1]
    >>> dropdtw.align(Z, X, drop_x=0.5).labels
    array([ 0,  0, -1,  1,  2, -1,  2])
    >>> print(dropdtw.align("GATTACA", "GATCA", 1, 1, method="needleman_wunsch").text())
    GATTACA
    || | ||
    GA-T-CA
    <BLANKLINE>
    identity 5/7 (71%), cost 2
    """
    return aligner_of(align, drop_x, drop_z, options).align(Z, X, times=times, fps=fps, executor=executor)


@takes(CostOptions)
def cost(
    C: npt.ArrayLike,
    drop_x: DropCost = None,
    drop_z: DropCost = None,
    *,
    max_cost: float | None = None,
    times: Times = None,
    fps: Fps = None,
    executor: str | None = None,
    **options: Unpack[CostOptions],
) -> float:
    """Compute the cost of the best alignment for given match costs, without its path.

    Parameters
    ----------
    C : (K, N), the cost of matching z_i with x_j.
    reducer : "hard" for the minimum, "soft" for −γ log Σ exp(−cost/γ) over all alignments, "smooth" for the paper's
        smoothMin (Eq. 7).
    gamma : γ of "soft" and "smooth", a number ≥ 0; 0 gives the hard minimum. None: 1.
    normalize : divides the value, so that values of different lengths can be compared: "x", "z" and "both" by the
        lengths N, K and K + N, as the losses of `dropdtw.torch` do. "pattern" divides by K + N for
        the symmetric step patterns without drop costs, and by K for "asymmetric" and "asymmetricP1". "path" divides
        by the number of matches and paid drops on the best path. This path is chosen before the division, so another
        one may have a smaller quotient.
    max_cost : the largest value of interest. Any larger value becomes +∞, and its computation stops as soon as it is
        certain to be larger. Values up to the limit are exact. With `normalize`, the limit applies to the normalized
        value. With soft minima, an `order` or `normalize="path"`, it saves no work.
    drop_x, drop_z, method, one_to_many, many_to_one, contiguous, open_x, open_z, warp, window, mask, threshold, order,
        ids, anchors, per, times, fps, executor : as in `dropdtw.solve`.

    Returns
    -------
    A float. It is +∞ if every alignment is forbidden, or if the value exceeds `max_cost`. For "lcss", it is minus the
    number of matched pairs.

    Raises
    ------
    ValueError : if an argument is invalid, or if the lengths K and N rule out every alignment.

    >>> import dropdtw
    >>> C = [[0.1, 0.9, 0.2]]
    >>> round(dropdtw.cost(C, drop_x=0.3), 6), round(dropdtw.cost(C, drop_x=0.3, reducer="soft", gamma=0.1), 6)
    (0.6, 0.558984)
    """
    return aligner_of(cost, drop_x, drop_z, options).cost(C, max_cost=max_cost, times=times, fps=fps, executor=executor)


@takes(DistanceOptions)
def distance(
    Z: npt.ArrayLike,
    X: npt.ArrayLike,
    drop_x: DropCost = None,
    drop_z: DropCost = None,
    *,
    max_cost: float | None = None,
    times: Times = None,
    fps: Fps = None,
    executor: str | None = None,
    **options: Unpack[DistanceOptions],
) -> float:
    """Compute the cost of the best alignment of two sequences, without its path.

    With the defaults it is the plain sum of all costs on the path. No root is taken, even for squared distances.

    Parameters
    ----------
    Z, X : (K, d) and (N, d), or (K,) and (N,) for numbers.
    match, missing : as in `dropdtw.align`.
    reducer, gamma, normalize, max_cost : as in `dropdtw.cost`.
    drop_x, drop_z, method, one_to_many, many_to_one, contiguous, open_x, open_z, warp, window, mask, threshold, order,
        ids, anchors, per, times, fps, executor : as in `dropdtw.solve`.

    Returns
    -------
    A float. It is +∞ if every alignment is forbidden, or if the value exceeds `max_cost`.

    Raises
    ------
    ValueError : if an argument is invalid, or if the lengths K and N rule out every alignment.

    >>> import dropdtw
    >>> dropdtw.distance([0, 1, 2], [0, 1, 9, 2], drop_x=0.5)
    0.5
    >>> dropdtw.distance([0, 1, 2], [0, 1, 9, 2], drop_x=0.5, max_cost=0.4)
    inf
    """
    aligner = aligner_of(distance, drop_x, drop_z, options)
    return aligner.distance(Z, X, max_cost=max_cost, times=times, fps=fps, executor=executor)


@takes(SequenceOptions)
def posterior(
    C: npt.ArrayLike,
    X: npt.ArrayLike | None = None,
    *,
    drop_x: DropCost = None,
    drop_z: DropCost = None,
    gamma: float | None = None,
    times: Times = None,
    fps: Fps = None,
    executor: str | None = None,
    **options: Unpack[SequenceOptions],
) -> Posterior:
    """Compute the probability of each match and each drop under P(M) ∝ exp(−cost(M)/γ).

    With `method="drop_dtw_paper"`, several paths can describe the same alignment, and each of them counts, so the
    probabilities differ from those of "drop_dtw".

    Parameters
    ----------
    C : (K, N), the cost of matching z_i with x_j; or, with X, the sequence Z.
    X : (N, d) or (N,), the sequence that Z is aligned with. None: C holds match costs.
    gamma : the temperature γ, > 0. A small γ concentrates the probability on the best alignments; a large γ spreads it
        over all of them. None: two thirds of the standard deviation of the match costs, or 1 if the costs are −log of
        probabilities (`match="softmax"`, `method="ctc"`). `Posterior.gamma` says which one was used.
    match, missing : as in `dropdtw.align`, with sequences only.
    drop_x, drop_z, method, one_to_many, many_to_one, contiguous, open_x, open_z, warp, window, mask, threshold, order,
        ids, anchors, per, times, fps, executor : as in `dropdtw.solve`.

    Returns
    -------
    A `dropdtw.Posterior`: the probabilities of matches (K, N) and of drops (N,) and (K,), and samples on request.

    Raises
    ------
    ValueError : if an argument is invalid, if gamma is 0, or if every alignment is forbidden.

    >>> import dropdtw
    >>> p = dropdtw.posterior([[0.1, 0.9, 0.2]], drop_x=0.3, gamma=0.1)
    >>> p.match.round(2), p.drop_x.round(2)
    (array([[0.91, 0.  , 0.76]]), array([0.09, 1.  , 0.24]))
    """
    return aligner_of(posterior, drop_x, drop_z, options | {"gamma": gamma}).posterior(
        C, X, times=times, fps=fps, executor=executor
    )


@takes(PairOptions)
def pairwise(
    Zs: Sequence[npt.ArrayLike],
    Xs: Sequence[npt.ArrayLike] | None = None,
    drop_x: DropCost = None,
    drop_z: DropCost = None,
    *,
    max_cost: float | None = None,
    n_jobs: int | None = -1,
    progress: Progress = None,
    executor: str | None = None,
    **options: Unpack[PairOptions],
) -> Array:
    """Compute the costs of all pairs of sequences: entry [a, b] is `distance(Zs[a], Xs[b], ...)`.

    Parameters
    ----------
    Zs, Xs : lists of n and m sequences, (K, d) and (N, d), or (K,) and (N,) for numbers. Lengths may differ; d may not.
        Without Xs, Zs is compared with itself, and each unordered pair is computed once if values are symmetric.
    n_jobs : the number of threads, as in scikit-learn: −1 for all cores (the default), −2 for all but one, None for
        one. If costs need Python code (for example your own match cost or rule, or "softmax"), pairs with fewer than
        about 65,000 cells (K × N) run in one thread, because of Python's global interpreter lock. So do all pairs with
        `executor="reference"`.
    progress : None shows a progress line on a terminal if the work takes longer than two seconds; True always shows it,
        on standard error; False never does. A function is called with (done, total) instead.
    reducer, gamma, normalize, max_cost : as in `dropdtw.cost`.
    match, missing : as in `dropdtw.align`.
    drop_x, drop_z, method, one_to_many, many_to_one, contiguous, open_x, open_z, warp, window, threshold, executor : as
        in `dropdtw.solve`.

    Returns
    -------
    An array (n, m). An entry is +∞ if every alignment of its pair is forbidden, or if its value exceeds `max_cost`.

    Raises
    ------
    ValueError : if an argument or a sequence is invalid, or if the lengths of a pair rule out every alignment.

    >>> import dropdtw
    >>> dropdtw.pairwise([[0, 1], [0, 1, 1], [5]])
    array([[ 0.,  0.,  9.],
           [ 0.,  0., 13.],
           [ 9., 13.,  0.]])
    """
    return aligner_of(pairwise, drop_x, drop_z, options).pairwise(
        Zs, Xs, max_cost=max_cost, n_jobs=n_jobs, progress=progress, executor=executor
    )


@takes(PathsOptions)
def alignments(
    Zs: Sequence[npt.ArrayLike],
    Xs: Sequence[npt.ArrayLike] | None = None,
    drop_x: DropCost = None,
    drop_z: DropCost = None,
    *,
    fps: Fps = None,
    n_jobs: int | None = -1,
    progress: Progress = None,
    executor: str | None = None,
    **options: Unpack[PathsOptions],
) -> list[list[Alignment]]:
    """Find the best alignments of all pairs of sequences: entry `[a][b]` is `align(Zs[a], Xs[b], ...)`.

    If you need only the costs, `dropdtw.pairwise` is much faster. All alignments are kept in memory.

    Parameters
    ----------
    Zs, Xs : lists of n and m sequences, as in `dropdtw.align`. Without Xs, Zs is aligned with itself.
    fps : elements per second of all X; a tuple (z, x) for both sides. Data frames keep their times without it.
    n_jobs, progress : as in `dropdtw.pairwise`. Pairs with fewer than about 65,000 cells run in one thread.
    match, missing : as in `dropdtw.align`.
    drop_x, drop_z, method, one_to_many, many_to_one, contiguous, open_x, open_z, warp, window, threshold, executor : as
        in `dropdtw.solve`. Rules such as "percentile:30" are evaluated for each pair.

    Returns
    -------
    A list of n lists of m `dropdtw.Alignment`s.

    Raises
    ------
    ValueError : if an argument or a sequence is invalid, or if a pair has no alignment; the message names the pair.

    >>> import dropdtw
    >>> found = dropdtw.alignments(["GATTACA", "GATCA"], drop_x=1, drop_z=1, method="needleman_wunsch")
    >>> [[a.cost for a in row] for row in found]
    [[0.0, 2.0], [2.0, 0.0]]
    >>> found[0][1].dropped_z.nonzero()[0]
    array([2, 4])
    """
    aligner = aligner_of(alignments, drop_x, drop_z, options)
    return aligner.alignments(Zs, Xs, fps=fps, n_jobs=n_jobs, progress=progress, executor=executor)
