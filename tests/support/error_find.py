"""Mistakes with free ends and occurrences."""

import numpy as np

import dropdtw
from dropdtw import distance, find, free_ends, pairwise, solve
from error_calls import C, X, Z, case, plotting

SIGNAL = np.arange(8.0)

ENDS = {
    "word": case(lambda: free_ends("all"), "x is 'all'", "give a pair (begin, end), or one for both: True"),
    "negative": case(lambda: free_ends(x=(1, -1)), "x is (1, -1)", "a whole number ≥ 0"),
    "share": case(lambda: free_ends(z=0.5), "z is 0.5", "a whole number ≥ 0"),
    "three": case(lambda: free_ends(z=(1, 2, 3)), "z is (1, 2, 3)", "give a pair"),
    "steps": case(lambda: free_ends(steps="drop_dtw"), "steps is 'drop_dtw'", "choose one of 'dtw', 'asymmetric'"),
    "too much of X": case(
        lambda: solve(C, method=free_ends(x=(2, 2))), "x=(2, 2) could skip all 4 elements of X", "add up to at most 3"
    ),
    "too much of Z": case(
        lambda: pairwise([Z], [X], method=free_ends(False, 1)),
        "z=(1, 1) could skip all 2 elements of Z",
        "True for no limit",
    ),
    "drop cost": case(lambda: solve(C, 1, method=free_ends()), "takes no drop costs", "leave out drop_x"),
    "moves of a pattern": case(
        lambda: distance(Z, X, method=free_ends(steps="asymmetric"), one_to_many=False),
        "steps='asymmetric')\" is a step pattern",
        "leave it out",
    ),
    "stream": case(
        lambda: dropdtw.Online(Z, method=free_ends(2)), "method free_ends(x=(2, 2)) limits", "use 'subsequence'"
    ),
}

FIND = {
    "k": case(lambda: find([1, 2], SIGNAL, 0), "k is 0", "give a whole number ≥ 1"),
    "half": case(lambda: find([1, 2], SIGNAL, 2.5), "k is 2.5", "give a whole number ≥ 1"),
    "cost": case(lambda: find([1, 2], SIGNAL, max_cost=np.nan), "max_cost is nan", "give a number, or None"),
    "overlap": case(
        lambda: find([1, 2], SIGNAL, overlap=50), "overlap is 50", "give a fraction from 0 (none) to 1 (any)"
    ),
    "long": case(lambda: find(SIGNAL, [1, 2]), "query has 8 elements and signal has 2", "swap them, or use align"),
    "features": case(lambda: find(Z, SIGNAL), "query has 2 features and signal has 1", "both need the same number"),
    "empty": case(lambda: find([], SIGNAL), "query has shape (0, 1)", "give at least one element"),
    "shape": case(lambda: find([1], np.ones((2, 2, 2))), "signal has shape (2, 2, 2)", "give one sequence"),
    "NaN": case(lambda: find([1, np.nan], SIGNAL), "query has NaN or infinity in element 1", "missing='drop'"),
    "NaN of the signal": case(lambda: find([1], [0, np.nan, 1]), "signal has NaN or infinity", "missing='drop'"),
    "drop": case(
        lambda: find([1], SIGNAL, drop_x=[1, 2]), "drop_x has shape (2,), but there are 8", "one drop cost per"
    ),
    "too few": case(lambda: find([1, 2], SIGNAL, open_x=1), "open_x is 1, but no x may be dropped", "give drop_x"),
    "drawn signal": case(
        lambda: plotting("occurrences", np.ones((2, 2, 2)), []), "signal has shape (2, 2, 2)", "(N, d)"
    ),
    "other signal": case(
        lambda: plotting("occurrences", SIGNAL[:3], find([6.0], SIGNAL, 1)),
        "ends beyond the 3 elements of signal",
        "give",
    ),
}
