"""One call for each wrong input: match costs, sequences, drop costs and match functions."""

import numpy as np

import dropdtw
from dropdtw import align, cost, distance, pairwise, posterior, solve
from dropdtw.costs import Softmax, of_scores, softmax
from dropdtw.drops import Background, LogitPercentile, Percentile
from error_calls import FORBIDDEN, MASKED, C, X, Z, case, with_holes, with_little_memory

INPUT = {
    "C of strings": case(lambda: solve([["a", "b"]]), "C is the list [['a', 'b']]", "give a rectangular array of real"),
    "C complex": case(lambda: solve(C * 1j), "C is an array of dtype complex128", "real numbers"),
    "C ragged": case(
        lambda: solve([[1, 2], [3]]), "C is a list with rows of different lengths, [[1, 2], [3]]", "give a rectangular"
    ),
    "C None": case(lambda: solve(None), "C is None", "give a rectangular array"),
    "C object": case(lambda: cost(np.array([[None, 1]])), "C is an array of dtype object", "rectangular array of real"),
    "C long": case(lambda: cost([["abcdefghij"] * 50]), "'abcdefghij',...;", "give a rectangular array"),
    "C scalar": case(lambda: solve(3), "C has shape ()", "give one matrix (K, N): a row per z_i, a column per x_j"),
    "C vector": case(lambda: solve([1, 2]), "C has shape (2,)", "give one matrix (K, N)"),
    "C batch": case(lambda: posterior(np.ones((2, 3, 4))), "C has shape (2, 3, 4)", "give one matrix (K, N)"),
    "C no rows": case(lambda: solve(np.ones((0, 3))), "C has shape (0, 3)", "give at least one row and one column"),
    "C no columns": case(lambda: cost(np.ones((3, 0))), "C has shape (3, 0)", "at least one row and one column"),
    "C NaN": case(lambda: solve(with_holes(np.nan)), "C has NaN at (1, 2)", "fill it in, or use +inf to forbid"),
    "C -inf": case(lambda: cost(with_holes(-np.inf)), "C has -inf at (1, 2)", "use a finite cost"),
    "Z of strings": case(lambda: align("abc", X), "Z is 'abc'", "give a rectangular array of real numbers"),
    "X ragged": case(
        lambda: align(Z, [[1, 2], [3]]), "rows of different lengths, [[1, 2], [3]]", "give a rectangular array"
    ),
    "Z a batch": case(lambda: align([Z], X), "Z has shape (1, 2, 2)", "give one sequence, (length, d) or (length,)"),
    "Z a number": case(lambda: distance(1.0, X), "Z has shape ()", "give one sequence, (length, d) or (length,)"),
    "Z empty": case(lambda: align(np.ones((0, 2)), X), "Z has shape (0, 2)", "give at least one element"),
    "X featureless": case(lambda: align(Z, np.ones((3, 0))), "X has shape (3, 0)", "at least one feature"),
    "X NaN": case(
        lambda: distance(Z, [[1, 1], [1, np.nan]]), "X has NaN or infinity in element 1", "remove such elements or fill"
    ),
    "NaN, the option": case(
        lambda: align(Z, [[1, 1], [1, np.nan]]), "X has NaN or infinity in element 1", "or give missing='drop' to leave"
    ),
    "Zs NaN, the option": case(lambda: pairwise([Z, Z * np.nan]), "Zs[1] has NaN", "or give missing='drop'"),
    "missing": case(lambda: align(Z, X, missing="skip"), "missing is 'skip'", "give 'drop' to leave out elements with"),
    "missing, inf": case(
        lambda: align(Z, [[1, np.inf], [np.nan, 1]], missing="drop"), "X has infinity in element 0", "remove such"
    ),
    "all missing": case(
        lambda: distance(Z, X * np.nan, missing="drop"), "every element of X has NaN", "one complete element"
    ),
    "all of one missing": case(
        lambda: pairwise([Z, Z * np.nan], missing="drop"), "every element of Zs[1] has NaN", "remove this sequence"
    ),
    "a step of an order missing": case(
        lambda: align([[1, 1], [np.nan, 1]], X, order=dropdtw.orders.any_order(0, 1), missing="drop"),
        "Z has NaN in element 1, a step that the order names",
        "fill it in, or leave it out of Z and the order",
    ),
    "ids of the kept alone": case(
        lambda: align([[1, 1], [np.nan, 1]], X, match=Softmax(ids=("a",)), missing="drop"),
        "ids has 1 entries, but Z has 2 elements",
        "give one id per z_i, missing or not",
    ),
    "drop costs of the kept alone": case(
        lambda: align(Z, [[1, 1], [np.nan, 1]], [0.1], missing="drop"),
        "drop_x has shape (1,), but there are 2 elements x_j",
        "give a number or one drop cost per x_j",
    ),
    "Z inf": case(lambda: align([[np.inf, 1]], X), "Z has NaN or infinity in element 0", "remove such elements"),
    "X masked": case(
        lambda: align(Z, MASKED), "X has masked values, the first at (1, 1)", "remove them or fill them in, or"
    ),
    "Xs masked": case(lambda: pairwise([Z], [X, MASKED]), "Xs[1] has masked values, the first at (1, 1)", "fill"),
    "rows masked": case(lambda: distance(list(MASKED), Z), "Z has masked values, the first at (1, 1)", "fill them"),
    "corpus masked": case(lambda: dropdtw.Index([MASKED]), "corpus[0] has masked values", "remove them"),
    "frame masked": case(lambda: dropdtw.Online(Z).push(MASKED[1]), "frame 0 has masked values", "remove them"),
    "suggest masked": case(lambda: dropdtw.suggest_drop(Z, MASKED), "X has masked values", "remove them"),
    "warp masked": case(lambda: solve(C[:, :3]).warp_x(MASKED), "X has masked values", "remove them"),
    "features differ": case(lambda: align(Z, np.ones((3, 5))), "Z has 2 features and X has 5", "both need the same"),
    "time along the second axis": case(
        lambda: align(np.ones((4, 9)), np.ones((4, 20))),
        "Z has 9 features and X has 20",
        "transpose both (Z.T",
    ),
    "features differ, numbers": case(lambda: align([1, 2], X), "Z has 1 features and X has 2", "as (length, d)"),
    "too large for rules": case(
        with_little_memory, "this request needs all 2 × 3 match costs at once, 0.0 GiB", "give drop costs as numbers"
    ),
    "features differ, further on": case(
        lambda: pairwise([Z, Z, np.ones((3, 5))], match="euclidean"), "has 2 features and", "both need the same number"
    ),
    "Zs empty": case(lambda: pairwise([]), "Zs is empty", "give at least one sequence"),
    "Xs empty": case(lambda: pairwise([Z], []), "Xs is empty", "give at least one sequence"),
    "Zs[1] empty": case(lambda: pairwise([Z, Z[:0]]), "Zs[1] has shape (0, 2)", "give at least one element"),
    "Xs[1] NaN": case(lambda: pairwise([Z], [X, X * np.nan]), "Xs[1] has NaN or infinity in element 0", "fill them"),
    "Zs[0] ragged": case(lambda: pairwise([[[1, 2], [3]]]), "Zs[0] is a list with rows of", "give a rectangular array"),
}

DROPS = {
    "no probability": case(
        lambda: Background([0.5, 1.2]), "background lie between 0.5 and 1.2", "from 0 to 1, or use Background.of_scores"
    ),
    "no scale": case(lambda: Background([0.5], scale=0), "scale is 0", "give a finite number > 0"),
    "no offset": case(lambda: Background([0.5], offset=np.inf), "offset is inf", "give a finite number"),
    "scores as a vector": case(
        lambda: of_scores([0.5, 0.5], [0]), "scores has shape (2,)", "give (N, classes) without"
    ),
    "no such class": case(lambda: of_scores([[0.5, 0.5]], [2]), "classes is [2]", "columns of the scores, 0 to 1"),
    "too short": case(
        lambda: solve(C, [1, 2]), "drop_x has shape (2,), but there are 4 elements x_j", "one drop cost per x_j"
    ),
    "too long": case(
        lambda: solve(C, drop_z=np.ones(4)), "drop_z has shape (4,), but there are 2 elements z_i", "shape (2,)"
    ),
    "matrix": case(lambda: solve(C, C), "drop_x has shape (2, 4), but there are 4 elements x_j", "give a number or"),
    "too large for a float": case(
        lambda: pairwise([Z], drop_x=10**400, match="euclidean"),
        "drop_x is 1000",
        "give a rectangular array of real",
    ),
    "bool": case(lambda: solve(C, True), "drop_x is True", "the drop cost itself, a number, or None for no drops"),
    "bools": case(lambda: cost(C, drop_z=[True, False]), "drop_z is the list [True, False]", "None for no drops"),
    "bool array": case(lambda: cost(C, np.ones(4, bool)), "drop_x is an array of dtype bool", "None for no drops"),
    "NaN": case(lambda: solve(C, np.nan), "drop_x has NaN at 0", "fill it in, or use +inf to forbid that choice"),
    "masked": case(
        lambda: solve(C, np.ma.masked_equal([1.0, 2.0, 9.0, 1.0], 9)),
        "drop_x has masked values, the first at 2",
        "fill them in",
    ),
    "NaN inside": case(lambda: solve(C, drop_z=[1, np.nan]), "drop_z has NaN at 1", "fill it in"),
    "-inf": case(lambda: posterior(C, drop_x=[0, 0, -np.inf, 0]), "drop_x has -inf at 2", "use a finite cost"),
    "ragged": case(
        lambda: solve(C, [[1], [1, 2]]), "drop_x is a list with rows of different", "give a rectangular array"
    ),
    "object": case(lambda: solve(C, drop_z={}), "drop_z is {}", "give a rectangular array of real numbers"),
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
        "drop_x is 'logit:30', a logit in the softmax cost, but match is 'euclidean'",
        "use 'softmax'",
    ),
}

MATCH = {
    "unknown": case(lambda: align(Z, X, match="cosin"), "match is 'cosin'", "choose one of 'cosine', 'softmax', "),
    "correlation of numbers": case(
        lambda: distance([1, 2], [3], match="correlation"), "these have only one", "use 'euclidean', or give windows"
    ),
    "bad gamma": case(lambda: align(Z, X, match="softmax:-2"), "match is 'softmax:-2'", "'softmax:0.1' (any γ > 0)"),
    "softmax gamma 0": case(lambda: Softmax(0), "gamma is 0", "give a finite number > 0"),
    "softmax gamma < 0": case(lambda: softmax(Z, X, gamma=-1.0), "gamma is -1.0", "give a finite number > 0"),
    "softmax gamma inf": case(lambda: Softmax(np.inf), "gamma is inf", "give a finite number > 0"),
    "ids": case(lambda: softmax(Z, X, ids="abc"), "ids has 3 entries, but Z has 2 elements", "give one id per z_i"),
    "callable of one": case(lambda: align(Z, X, match=lambda Z: Z), "takes 1 positional", "that returns C (K, N)"),
    "callable of two elements": case(
        lambda: align([1, 2], [1, 2, 3], match=lambda z, x: abs(z - x)),
        "match(Z, X) failed for Z of shape (2, 1) and X of shape (3, 1): operands could not be broadcast",
        "give a function of all Z (K, d) and all X (N, d)",
    ),
    "nearly right": case(lambda: align(Z, X, match="euclidian"), "did you mean 'euclidean'?", "choose one of"),
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
        lambda: align(1e10 * Z, X, "logit:30", match=Softmax(1e-300)),
        "z·x / 1e-300 overflows float64",
        "down, or raise",
    ),
    "squares overflow": case(
        lambda: align(np.full((2, 9), 1e200), np.zeros((3, 9)), match="sqeuclidean"), FORBIDDEN[0], "scale down values"
    ),
    "callable, nothing": case(
        lambda: align(Z, X, match=lambda Z, X: None), "the result of match(Z, X) is None", "give a rectangular"
    ),
}
