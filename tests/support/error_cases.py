"""One call for each way to be wrong, and what its error must say."""

import numpy as np

import dropdtw
from dropdtw import align, cost, distance, pairwise, posterior, solve
from dropdtw.costs import Softmax, softmax
from dropdtw.drops import LogitPercentile, Percentile
from dropdtw.problem.spec import Spec
from error_calls import (
    ANY,
    FORBIDDEN,
    LOCKSTEP,
    MASKED,
    C,
    X,
    Z,
    banded,
    case,
    changed,
    on_a_picky_executor,
    plotting,
    with_holes,
    with_little_memory,
    without_matplotlib,
)

INPUT = {
    "C of strings": case(lambda: solve([["a", "b"]]), "C is list [['a', 'b']]", "give a rectangular array of real"),
    "C complex": case(lambda: solve(C * 1j), "C is an array of dtype complex128", "real numbers"),
    "C ragged": case(lambda: solve([[1, 2], [3]]), "C is list [[1, 2], [3]]", "give a rectangular array"),
    "C None": case(lambda: solve(None), "C is NoneType None", "give a rectangular array"),
    "C object": case(lambda: cost(np.array([[None, 1]])), "C is an array of dtype object", "rectangular array of real"),
    "C long": case(lambda: cost([["abcdefghij"] * 50]), "'abcdefghij',...;", "give a rectangular array"),
    "C scalar": case(lambda: solve(3), "C has shape ()", "give one matrix (K, N): a row per z_i, a column per x_j"),
    "C vector": case(lambda: solve([1, 2]), "C has shape (2,)", "give one matrix (K, N)"),
    "C batch": case(lambda: posterior(np.ones((2, 3, 4))), "C has shape (2, 3, 4)", "give one matrix (K, N)"),
    "C no rows": case(lambda: solve(np.ones((0, 3))), "C has shape (0, 3)", "give at least one row and one column"),
    "C no columns": case(lambda: cost(np.ones((3, 0))), "C has shape (3, 0)", "at least one row and one column"),
    "C NaN": case(lambda: solve(with_holes(np.nan)), "C has NaN at (1, 2)", "fill it in, or use +inf to forbid"),
    "C -inf": case(lambda: cost(with_holes(-np.inf)), "C has -inf at (1, 2)", "use a finite cost"),
    "Z of strings": case(lambda: align("abc", X), "Z is str 'abc'", "give a rectangular array of real numbers"),
    "X ragged": case(lambda: align(Z, [[1, 2], [3]]), "X is list [[1, 2], [3]]", "give a rectangular array"),
    "Z a batch": case(lambda: align([Z], X), "Z has shape (1, 2, 2)", "give one sequence, (length, d) or (length,)"),
    "Z a number": case(lambda: distance(1.0, X), "Z has shape ()", "give one sequence, (length, d) or (length,)"),
    "Z empty": case(lambda: align(np.ones((0, 2)), X), "Z has shape (0, 2)", "give at least one element"),
    "X featureless": case(lambda: align(Z, np.ones((3, 0))), "X has shape (3, 0)", "at least one feature"),
    "X NaN": case(
        lambda: distance(Z, [[1, 1], [1, np.nan]]), "X has NaN or infinity in element 1", "remove such elements or fill"
    ),
    "Z inf": case(lambda: align([[np.inf, 1]], X), "Z has NaN or infinity in element 0", "remove such elements"),
    "X masked": case(lambda: align(Z, MASKED), "X has masked values, the first at (1, 1)", "remove them or fill"),
    "Xs masked": case(lambda: pairwise([Z], [X, MASKED]), "Xs[1] has masked values, the first at (1, 1)", "fill"),
    "rows masked": case(lambda: distance(list(MASKED), Z), "Z has masked values, the first at (1, 1)", "fill them"),
    "corpus masked": case(lambda: dropdtw.Index([MASKED]), "corpus[0] has masked values", "remove them"),
    "frame masked": case(lambda: dropdtw.Online(Z).push(MASKED[1]), "frame 0 has masked values", "remove them"),
    "suggest masked": case(lambda: dropdtw.suggest_drop(Z, MASKED), "X has masked values", "remove them"),
    "warp masked": case(lambda: solve(C[:, :3]).warp_x(MASKED), "X has masked values", "remove them"),
    "features differ": case(lambda: align(Z, np.ones((3, 5))), "Z has 2 features and X has 5", "both need the same"),
    "features differ, numbers": case(lambda: align([1, 2], X), "Z has 1 features and X has 2", "as (length, d)"),
    "too large for rules": case(
        with_little_memory, "this needs all 2 × 3 match costs at once, 0.0 GiB", "give drop costs as numbers"
    ),
    "features differ, further on": case(
        lambda: pairwise([Z, Z, np.ones((3, 5))], match="euclidean"), "has 2 features and", "both need the same number"
    ),
    "Zs empty": case(lambda: pairwise([]), "Zs is empty", "give at least one sequence"),
    "Xs empty": case(lambda: pairwise([Z], []), "Xs is empty", "give at least one sequence"),
    "Zs[1] empty": case(lambda: pairwise([Z, Z[:0]]), "Zs[1] has shape (0, 2)", "give at least one element"),
    "Xs[1] NaN": case(lambda: pairwise([Z], [X, X * np.nan]), "Xs[1] has NaN or infinity in element 0", "fill them"),
    "Zs[0] ragged": case(lambda: pairwise([[[1, 2], [3]]]), "Zs[0] is list [[1, 2], [3]]", "give a rectangular array"),
}

DROPS = {
    "too short": case(
        lambda: solve(C, [1, 2]), "drop_x has shape (2,), but there are 4 elements x_j", "one drop cost per x_j"
    ),
    "too long": case(
        lambda: solve(C, drop_z=np.ones(4)), "drop_z has shape (4,), but there are 2 elements z_i", "shape (2,)"
    ),
    "matrix": case(lambda: solve(C, C), "drop_x has shape (2, 4), but there are 4 elements x_j", "give a number or"),
    "too large for a float": case(
        lambda: pairwise([Z], drop_x=10**400, match="euclidean"),
        "drop_x is int 1000",
        "give a rectangular array of real",
    ),
    "bool": case(lambda: solve(C, True), "drop_x is bool True", "the drop cost itself, a number, or None for no drops"),
    "bools": case(lambda: cost(C, drop_z=[True, False]), "drop_z is list [True, False]", "None for no drops"),
    "bool array": case(lambda: cost(C, np.ones(4, bool)), "drop_x is an array of dtype bool", "None for no drops"),
    "NaN": case(lambda: solve(C, np.nan), "drop_x has NaN at 0", "fill it in, or use +inf to forbid that choice"),
    "masked": case(
        lambda: solve(C, np.ma.masked_equal([1.0, 2.0, 9.0, 1.0], 9)),
        "drop_x has masked values, the first at 2",
        "fill them in",
    ),
    "NaN inside": case(lambda: solve(C, drop_z=[1, np.nan]), "drop_z has NaN at 1", "fill it in"),
    "-inf": case(lambda: posterior(C, [0, 0, -np.inf, 0]), "drop_x has -inf at 2", "use a finite cost"),
    "ragged": case(lambda: solve(C, [[1], [1, 2]]), "drop_x is list [[1], [1, 2]]", "give a rectangular array"),
    "object": case(lambda: solve(C, drop_z={}), "drop_z is dict {}", "give a rectangular array of real numbers"),
    "unknown rule": case(lambda: solve(C, "quantile:30"), "drop_x is 'quantile:30'", "'percentile:30' or 'logit:30'"),
    "percent out of range": case(lambda: solve(C, drop_z="percentile:101"), "drop_z is 'percentile:101'", "(0 to 100)"),
    "Percentile": case(lambda: Percentile(-3), "the percentile is -3", "a number from 0 to 100 (not 0 to 1)"),
    "LogitPercentile": case(lambda: LogitPercentile(130), "the percentile is 130", "a number from 0 to 100"),
    "rule gives a wrong shape": case(
        lambda: solve(C, lambda costs: [1, 2]), "drop_x has shape (2,), but there are 4", "one drop cost per x_j"
    ),
    "rule gives NaN": case(lambda: solve(C, drop_z=lambda costs: np.nan), "drop_z has NaN at 0", "fill it in"),
    "nothing to suggest from": case(
        lambda: cost(np.full((2, 3), np.inf), "suggest"),
        "every match is forbidden (+inf)",
        "to choose a drop cost from",
    ),
    "logit in solve": case(
        lambda: solve(C, "logit:30"), "drop_x is 'logit:30'", "drop_x of align, distance or pairwise"
    ),
    "logit for z": case(
        lambda: align(Z, X, drop_z=LogitPercentile(30), match="softmax"),
        "drop_z is 'logit:30'",
        "use it as drop_x",
    ),
    "logit in cosine": case(
        lambda: align(Z, X, "logit:30"),
        "drop_x is 'logit:30', a logit in the softmax cost, but match is 'cosine'",
        "use 'softmax'",
    ),
}

MATCH = {
    "unknown": case(lambda: align(Z, X, match="cosin"), "match is 'cosin'", "choose one of 'cosine', 'softmax', "),
    "bad gamma": case(lambda: align(Z, X, match="softmax:-2"), "match is 'softmax:-2'", "'softmax:0.1' (any γ > 0)"),
    "softmax gamma 0": case(lambda: Softmax(0), "gamma is 0", "give a finite number > 0"),
    "softmax gamma < 0": case(lambda: softmax(Z, X, gamma=-1.0), "gamma is -1.0", "give a finite number > 0"),
    "softmax gamma inf": case(lambda: Softmax(np.inf), "gamma is inf", "give a finite number > 0"),
    "ids": case(lambda: softmax(Z, X, ids="abc"), "ids has 3 entries, but Z has 2 elements", "give one id per z_i"),
    "callable, wrong shape": case(
        lambda: align(Z, X, match=lambda Z, X: X @ Z.T),
        "match(Z, X) returned shape (3, 2) for 2 elements of Z and 3 of X",
        "it must return C of shape (2, 3)",
    ),
    "callable, NaN": case(
        lambda: align(Z, X, match=lambda Z, X: np.full((2, 3), np.nan)),
        "the result of match(Z, X) has NaN at (0, 0)",
        "fill it in",
    ),
    "softmax overflows": case(
        lambda: align(1e30 * np.eye(2, dtype=np.float32), 1e30 * np.eye(2, dtype=np.float32), match="softmax"),
        "z·x / 1 overflows float32",
        "scale Z and X down, raise gamma, or give them as float64",
    ),
    "softmax overflows by gamma": case(
        lambda: align(1e10 * Z, X, "logit:30", match=Softmax(1e-300)), "z·x / 1e-300 overflows float64", "raise gamma"
    ),
    "squares overflow": case(
        lambda: align(np.full((2, 9), 1e200), np.zeros((3, 9)), match="sqeuclidean"), FORBIDDEN[0], "scale down values"
    ),
    "callable, nothing": case(
        lambda: align(Z, X, match=lambda Z, X: None), "the result of match(Z, X) is NoneType None", "give a rectangular"
    ),
}

OPTIONS = (
    {
        "method": case(lambda: solve(C, method="ddtw"), "method is 'ddtw'", "choose one of 'drop_dtw', "),
        "method None": case(lambda: solve(C, method=None), "method is None", "or give a dropdtw.Recurrence"),
        "method, pairwise": case(
            lambda: pairwise([Z], method="ddtw"), "method is 'ddtw'", "choose one of 'drop_dtw', "
        ),
        "method a list": case(lambda: solve(C, method=["dtw"]), "method is ['dtw']", "choose one of 'drop_dtw', "),
        "match a list": case(lambda: align(Z, Z, match=["cosine"]), "match is ['cosine']", "choose one of 'cosine', "),
        "executor a list": case(lambda: solve(C, executor=["cpp"]), "executor is ['cpp']", "(None picks the best)"),
        "reducer a list": case(lambda: cost(C, reducer=["soft"]), "reducer is ['soft']", "choose one of 'hard', "),
        "softmax of a word": case(lambda: dropdtw.costs.Softmax("a"), "gamma is 'a'", "give a finite number > 0"),
        "percentile of a word": case(lambda: dropdtw.drops.Percentile("a"), "is 'a'", "give a number from 0 to 100"),
        "no list": case(lambda: pairwise(3), "Zs is 3", "give a list of sequences"),
        "too large for single precision": case(
            lambda: solve(np.ones((2, 3), np.float32), drop_x=1e39), "drop_x has values that float32", "as float64"
        ),
        "half a draw": case(lambda: posterior(C, 1.0).sample(1.5), "n is 1.5", "give the number of alignments"),
        "n_jobs 0": case(lambda: pairwise([Z], n_jobs=0), "n_jobs is 0", "−1 for all cores, or None for one"),
        "n_jobs 1.5": case(lambda: pairwise([Z], n_jobs=1.5), "n_jobs is 1.5", "give a number of threads"),
        "executor": case(
            lambda: solve(C, executor="gpu"),
            "executor is 'gpu'; this installation has '",
            "'reference' (None picks the best)",
        ),
        "rule where a number is needed": case(
            lambda: dropdtw.nearest(Z, [X], 1, "percentile:30"),
            "drop_x is 'percentile:30', a rule that reads the match costs",
            "give a number (dropdtw.suggest_drop finds one)",
        ),
        "manifest of a function": case(
            lambda: Spec.of(match=max).settings(), "match is <built-in function max>", "give a name"
        ),
        "manifest of a vector": case(
            lambda: Spec.of([1.0, 2.0]).settings(),
            "drop_x is [1.0, 2.0]",
            "give a number, or a rule",
        ),
        "executor for other tables": case(
            on_a_picky_executor, "executor 'picky' has kernels for the built-in tables only", "run 'drop_dtw"
        ),
        "options of a table": case(
            lambda: solve(C, method=LOCKSTEP, one_to_many=False),
            "a Recurrence states its own matches",
            "change the edges of 'lockstep' instead",
        ),
        "contiguous table": case(
            lambda: solve(C, method=LOCKSTEP, contiguous=True), "contiguous", "change the edges of"
        ),
        "no threshold": case(
            lambda: solve(C, method="lcss"), "method 'lcss' needs threshold=", "a number or 'percentile:30'"
        ),
        "threshold": case(lambda: solve(C, threshold=1), "method 'drop_dtw' takes no threshold", "it is for 'lcss'"),
        "threshold of a table": case(
            lambda: solve(C, method=LOCKSTEP, threshold=1), "'lockstep' takes no threshold", "'lcss'"
        ),
        "reducer": case(lambda: cost(C, reducer="min"), "reducer is 'min'", "choose one of 'hard', 'soft', 'smooth'"),
        "gamma": case(lambda: cost(C, reducer="soft", gamma=-1), "gamma is -1", "give a finite number ≥ 0"),
        "gamma of hard": case(lambda: distance(Z, X, gamma=-1), "gamma is -1", "give a finite number ≥ 0"),
        "gamma, posterior": case(lambda: posterior(C, gamma=-0.5), "gamma is -0.5", "give a finite number ≥ 0"),
        "gamma inf": case(lambda: pairwise([Z], reducer="smooth", gamma=np.inf), "gamma is inf", "a finite number"),
        "gamma NaN": case(lambda: posterior(C, gamma=np.nan), "gamma is nan", "give a finite number ≥ 0"),
        "gamma of words": case(lambda: posterior(C, gamma="1"), "gamma is '1'", "give a finite number ≥ 0"),
        "gamma 0": case(lambda: posterior(C, gamma=0), "gamma is 0, where one alignment has all", "use dropdtw.solve"),
    }
    | {
        "threshold masked": case(
            lambda: solve(C, method="lcss", threshold=np.ma.masked), "threshold has masked values", "fill them in"
        )
    }
    | {
        f"threshold {t!r}": case(
            lambda t=t: solve(C, method="lcss", threshold=t), "threshold is ", "give a number or a rule"
        )
        for t in ([1, 2], np.nan, True, "logit:30", [[1], [1, 2]])
    }
    | {
        f"threshold {t!r}": case(
            lambda t=t: solve(C, method="lcss", threshold=t), f"threshold is {t!r}", "'percentile:30'"
        )
        for t in ("low", "percentile:-1")
    }
    | {
        f"window {w!r}": case(
            lambda w=w: solve(C, window=w),
            f"window is {w!r}",
            "give an int ≥ 0 (columns on each side of the diagonal), a float",
        )
        for w in (-1, True, 0.0, 1.5, np.nan, "1", -0.5, np.float64(2))
    }
    | {
        f"drops of {m}": case(
            lambda m=m, t=t, d=d: solve(C, **d, method=m, threshold=t),
            f"method {m!r} takes no drop costs",
            "leave out drop_x and drop_z, or use",
        )
        for m, entry in dropdtw.METHODS.items()
        if not entry.takes_drops
        for t, d in [(1 if entry.takes_threshold else None, d) for d in ({"drop_x": 1}, {"drop_z": "percentile:30"})]
    }
)

TALL, WIDE = np.ones((5, 2)), np.ones((2, 5))
TOO_TALL = ("5 elements of Z cannot each have an x of their own among 2", "allow many_to_one, give drop_z, or exchange")
TOO_WIDE = ("5 elements of X cannot each have a z of their own among 2", "allow one_to_many, give drop_x, or exchange")
FIT = {
    "drop_dtw tall": case(lambda: solve(TALL, many_to_one=False), *TOO_TALL),
    "drop_dtw tall, x droppable": case(lambda: solve(TALL, 1, many_to_one=False), *TOO_TALL),
    "drop_dtw wide": case(lambda: cost(WIDE, one_to_many=False), *TOO_WIDE),
    "drop_dtw wide, z droppable": case(lambda: posterior(WIDE, drop_z=1, one_to_many=False), *TOO_WIDE),
    "paper tall": case(lambda: solve(TALL, 1, method="drop_dtw_paper", many_to_one=False), *TOO_TALL),
    "paper wide": case(lambda: solve(WIDE, None, 1, method="drop_dtw_paper", one_to_many=False), *TOO_WIDE),
    "greedy tall": case(lambda: solve(TALL, 1, method="greedy", many_to_one=False), *TOO_TALL),
    "greedy wide": case(lambda: solve(WIDE, None, 1, method="greedy", one_to_many=False), *TOO_WIDE),
    "dtw tall": case(lambda: solve(TALL, method="dtw", many_to_one=False), *TOO_TALL),
    "dtw wide": case(lambda: cost(WIDE, method="dtw", one_to_many=False), *TOO_WIDE),
    "nw tall": case(lambda: solve(TALL, method="needleman_wunsch"), *TOO_TALL),
    "nw tall, x droppable": case(lambda: solve(TALL, 1, method="needleman_wunsch"), *TOO_TALL),
    "nw wide": case(lambda: solve(WIDE, method="needleman_wunsch"), *TOO_WIDE),
    "nw wide, z droppable": case(lambda: cost(WIDE, None, 1, method="needleman_wunsch"), *TOO_WIDE),
    "otam tall": case(lambda: solve(TALL, method="otam", many_to_one=False), *TOO_TALL),
    "subsequence tall": case(lambda: posterior(TALL, method="subsequence", many_to_one=False), *TOO_TALL),
    "distance": case(lambda: distance(TALL, WIDE.T[:2], many_to_one=False), *TOO_TALL),
    "pairwise": case(lambda: pairwise([TALL], [WIDE.T[:2]], many_to_one=False), *TOO_TALL),
    "pairwise, some": case(lambda: pairwise([Z, TALL], one_to_many=False), *TOO_WIDE),
}

CHARGED = (
    {
        "negative": case(lambda: solve(C, 1, open_x=-1), "open_x is -1", "finite number ≥ 0, or 'suggest'"),
        "infinite": case(lambda: cost(C, 1, 1, open_z=np.inf), "open_z is inf", "a finite number ≥ 0"),
        "NaN": case(lambda: solve(C, 1, open_x=np.nan), "open_x is nan", "a finite number ≥ 0"),
        "bool": case(lambda: align(Z, X, 1, open_x=True), "open_x is True", "a finite number ≥ 0"),
        "vector": case(lambda: solve(C, 1, open_x=[1, 2, 3, 4]), "open_x is [1, 2, 3, 4]", "a finite number ≥ 0"),
        "array": case(
            lambda: solve(C, 1, open_x=np.ones(4)), "open_x is array([1., 1., 1., 1.])", "a finite number ≥ 0"
        ),
        "too large": case(
            lambda: solve(C, 1, open_x=10**400), "open_x is a number that no float", "give a smaller one"
        ),
        "too large for single": case(
            lambda: solve(C.astype(np.float32), 1, open_x=1e300),
            "values that float32 cannot hold",
            "give float64 costs",
        ),
        "warp suggested": case(lambda: solve(C, warp="suggest"), "warp is 'suggest'", "give a finite number ≥ 0"),
        "no drop": case(lambda: solve(C, open_x=1), "open_x is 1, but no x may be dropped", "give drop_x as well"),
        "no drop of z": case(lambda: solve(C, 1, open_z=2), "open_z is 2, but no z may be dropped", "give drop_z"),
        "suggest without drop": case(
            lambda: solve(C, open_x="suggest"), "open_x is 'suggest', but no x", "give drop_x"
        ),
        "own table": case(
            lambda: solve(C, 1, method=LOCKSTEP, open_x=1),
            "no edge of 'lockstep' charges it",
            "plus='open_x', or leave",
        ),
        "own table, warp": case(lambda: cost(C, method=LOCKSTEP, warp=1), "warp is 1, but no edge", "plus='warp'"),
        "stream": case(
            lambda: dropdtw.Online(Z, 1, open_x="suggest"), "open_x is 'suggest', which reads", "give a number"
        ),
        "nearest": case(
            lambda: dropdtw.nearest(Z, [X], drop_x=1, open_x="suggest"), "open_x is 'suggest', which reads", "a number"
        ),
        "pattern with moves": case(
            lambda: solve(C, method="symmetric2", one_to_many=False),
            "'symmetric2' is a step pattern",
            "leave out one_to",
        ),
        "pattern that does not reach": case(
            lambda: solve(np.ones((2, 5)), method="symmetricP1"),
            "no path of method 'symmetricP1' leads through 2 × 5",
            "use 'symmetric2'",
        ),
        "normalize": case(lambda: cost(C, normalize="path length"), "normalize is 'path length'", "give 'pattern', or"),
        "no norm": case(
            lambda: distance(Z, X, normalize="pattern"),
            "the paths of method 'drop_dtw' have no common weight",
            "choose",
        ),
    }
    | {
        f"{m} opening": case(
            lambda m=m, t=t: cost(C, method=m, threshold=t, open_x=1),
            f"method {m!r} takes no opening costs",
            "leave it out",
        )
        for m, entry in dropdtw.METHODS.items()
        if not entry.takes_opening
        for t in (1 if entry.takes_threshold else None,)
    }
    | {
        f"{m} warp": case(
            lambda m=m, t=t: cost(C, method=m, threshold=t, warp=1),
            f"method {m!r} takes no warp penalty",
            "leave it out",
        )
        for m, entry in dropdtw.METHODS.items()
        if not entry.takes_warp
        for t in (1 if entry.takes_threshold else None,)
    }
)

NONE_LEFT = {
    "solve": case(lambda: solve([[ANY]]), *FORBIDDEN),
    "posterior": case(lambda: posterior([[ANY, ANY]]), *FORBIDDEN),
    "align": case(lambda: align(Z, X, match=lambda Z, X: np.full((2, 3), ANY)), *FORBIDDEN),
    "a column": case(lambda: solve([[0, ANY, 0]]), *FORBIDDEN),
    "undroppable column": case(lambda: solve([[0, ANY, 0]], drop_x=[0, ANY, 0], drop_z=1), *FORBIDDEN),
    "window, no help": case(lambda: solve([[0, ANY], [0, ANY]], window=1), *FORBIDDEN),
    "window": case(
        lambda: solve(WIDE, window=1),
        "no alignment of 2 × 5 fits into this window",
        "the least window that leaves one is 2",
    ),
    "share": case(
        lambda: posterior(WIDE, window=0.2), "no alignment of 2 × 5 fits into this window", "leaves one is 2"
    ),
}

ANSWERS = {
    "explain beyond": case(
        lambda: solve(C).explain(4), "j is 4, but X has 4", "give 0 to 3, or −4 to −1", error=IndexError
    ),
    "explain before": case(
        lambda: solve(C).explain(-5), "j is -5, but X has 4", "give 0 to 3, or −4 to", error=IndexError
    ),
    "sample": case(lambda: posterior(C).sample(-1), "n is -1", "give the number of alignments to draw, 0 or more"),
    "warp Z": case(
        lambda: solve(C).warp_z(np.ones((3, 2))), "Z has shape (3, 2), but 2 elements", "give Z as it was aligned"
    ),
    "warp X": case(lambda: solve(C).warp_x([1, 2, 3]), "X has shape (3,), but 4 elements", "give X as it was aligned"),
    "warp a number": case(lambda: solve(C).warp_z(1), "Z has shape (), but 2 elements", "give Z as it was aligned"),
    "warp words": case(lambda: solve(C).warp_z(["a", "b"]), "Z is list ['a', 'b']", "give a rectangular array"),
    "warp fill": case(
        lambda: solve(C).warp_z([1, 2], fill="cubic"),
        "fill is 'cubic'",
        "give a number for dropped elements, or 'linear'",
    ),
    "axes": case(lambda: plotting("compare", {"a": solve(C)}, axes=[]), "there are 0 axes for 1 align", "one for each"),
    "film": case(lambda: plotting("strip", np.zeros((2, 3))), "frames has shape (2, 3)", "give a video (T, H, W)"),
    "frames": case(
        lambda: plotting("with_frames", solve(C), np.zeros((1, 4, 4)), np.zeros((1, 4, 4))), "have 1 and 1 frames", ""
    ),
    "bars": case(lambda: plotting("step_bars", {"a": [0], "b": [0, 1]}), "rows have [1, 2] frames", "as many labels"),
    "linked": case(
        lambda: plotting("linked", Z, X, solve(C)), "Z and X have 2 and 3 elements, but 2 and 4 were", "both as aligned"
    ),
    "plot": case(without_matplotlib, "plots need matplotlib", "pip install 'dropdtw[plot]'", error=ImportError),
} | {
    f"{do} without costs": case(
        lambda do=do, args=args: getattr(changed(problem=None), do)(*args),
        "this alignment came without its costs",
        "write it with to_dict(costs=True)",
    )
    for do, args in (("rescore", ()), ("explain", (0,)))
}

WRITTEN = "give what Alignment.to_dict wrote"
READ = (
    {
        "nothing": case(lambda: dropdtw.Alignment.from_dict({}), "no alignment in format 1 (format missing)", WRITTEN),
        "None": case(lambda: dropdtw.Alignment.from_dict(None), "no alignment in format 1", WRITTEN),
        "no pairs": case(lambda: changed(pairs=None), "no alignment in format 1 (pairs missing)", WRITTEN),
        "no cost": case(lambda: changed(cost=None), "no alignment in format 1 (cost missing)", WRITTEN),
        "format": case(lambda: changed(format=2), "no alignment in format 1 (its format is 2)", WRITTEN),
        "row outside": case(lambda: changed(pairs=[[2, 0]]), "a pair lies outside shape (2, 4)", WRITTEN),
        "column outside": case(lambda: changed(pairs=[[0, 4]]), "a pair lies outside shape (2, 4)", WRITTEN),
        "negative": case(lambda: changed(pairs=[[-1, 0]]), "a pair lies outside shape (2, 4)", WRITTEN),
        "crossing": case(lambda: changed(pairs=[[1, 0], [0, 1]]), "its pairs cross, or repeat", WRITTEN),
        "repeating": case(lambda: changed(pairs=[[0, 0], [0, 0]]), "its pairs cross, or repeat", WRITTEN),
        "labels": case(lambda: changed(labels=[1, 1, 0, 0]), "its labels are not those of its pairs", WRITTEN),
        "cost": case(lambda: changed(cost="nan"), "its cost is nan", WRITTEN),
        "weights": case(lambda: changed(weights=[0.0] * 4), "its weights are not all finite and above 0", WRITTEN),
        "charged": case(lambda: changed(charged={"warp": -1}), "its charged are not all finite and ≥ 0", WRITTEN),
        "another cost": case(lambda: changed(cost=7.5), "its cost is 7.5, but its pairs and drops cost 1.4", WRITTEN),
        "an empty shape": case(
            lambda: changed(shape=[2, 0], labels=[], pairs=[], paid_x=[]), "its shape is (2, 0)", WRITTEN
        ),
        "half a pair": case(lambda: changed(pairs=[[0.5, 0]]), "its pairs are not whole numbers", WRITTEN),
        "half a label": case(lambda: changed(labels=[0.5] * 4), "its labels are not whole numbers", WRITTEN),
        "paid twice": case(lambda: changed(paid_x=[2, 0, 0, 0]), "its paid_x are not all 0 or 1", WRITTEN),
        "a label without a pair": case(lambda: changed(labels=[0, 1, 1, -1]), "its labels are not those of", WRITTEN),
    }
    | {
        f"band {band}": case(lambda band=band: banded(band), f"its band {says}", WRITTEN)
        for band, says in [
            ([[0, 0], [4, 5]], "does not lie in its shape"),
            ([[0, -1], [4, 4]], "does not lie in its shape"),
            ([[3, 0], [2, 4]], "does not lie in its shape"),
            ([[1, 0], [4, 4]], "falls from one row to the next"),
            ([[0, 0], [4, 3]], "falls from one row to the next"),
            ([[0.5, 0], [4, 4]], "is not whole numbers"),
            ([[1, 1], [4, 4]], "does not hold its pairs"),
        ]
    }
    | {
        f"{name} {value}": case(
            lambda name=name, value=value: changed(**{name: value}), "no alignment in format 1 (cannot reshape", WRITTEN
        )
        for name, value in [("shape", [2, 5]), ("shape", [3, 4]), ("labels", [0]), ("paid_x", [0]), ("paid_z", [0] * 3)]
    }
)

CASES = {
    f"{part}: {name}": row
    for part, table in {
        "input": INPUT,
        "drops": DROPS,
        "match": MATCH,
        "options": OPTIONS,
        "fit": FIT,
        "charges": CHARGED,
        "none left": NONE_LEFT,
        "answers": ANSWERS,
        "read": READ,
    }.items()
    for name, row in table.items()
}
