"""One call for each wrong option: methods and their options, shapes that do not fit, and charges."""

import numpy as np

import dropdtw
from dropdtw import align, cost, distance, pairwise, posterior, solve
from dropdtw.problem.spec import Spec
from error_calls import LOCKSTEP, C, X, Z, case, on_a_picky_executor

OPTIONS = (
    {
        "method nearly right": case(
            lambda: solve(C, method="drop-dtw"),
            "method is 'drop-dtw'",
            "did you mean 'drop_dtw'? Or choose one of 'drop_dtw', ",
        ),
        "reducer nearly right": case(lambda: cost(C, reducer="smoth"), "reducer is 'smoth'", "did you mean 'smooth'?"),
        "method": case(lambda: solve(C, method="twed"), "method is 'twed'", "choose one of 'drop_dtw', "),
        "method None": case(lambda: solve(C, method=None), "method is None", "or give a dropdtw.Recurrence"),
        "method, pairwise": case(
            lambda: pairwise([Z], method="twed"), "method is 'twed'", "choose one of 'drop_dtw', "
        ),
        "method of sequences": case(
            lambda: solve(C, method="erp"), "method 'erp' needs the sequences themselves", "use align, distance or"
        ),
        "method of derivatives": case(
            lambda: posterior(C, method="ddtw"), "method 'ddtw' needs the sequences", "use align, distance or pairwise"
        ),
        "no derivatives": case(
            lambda: distance([1, 2], [1, 2, 3], method="ddtw"),
            "Z has 2 elements and X has 3",
            "derivatives need at least 3",
        ),
        "no derivatives among many": case(
            lambda: pairwise([[1, 2, 3], [1, 2]], method="ddtw"), "X has 2", "derivatives need at least 3"
        ),
        "g of other features": case(
            lambda: align(Z, X, method=dropdtw.erp((1.0, 2.0, 3.0))),
            "g has 3 numbers, but Z has 2 features",
            "one for all",
        ),
        "g infinite": case(lambda: dropdtw.wdtw(np.inf), "g is inf", "give a finite number"),
        "g no number": case(lambda: dropdtw.erp("0"), "g is '0'", "give a finite number"),
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
        "half a draw": case(lambda: posterior(C, drop_x=1.0).sample(1.5), "n is 1.5", "give the number of alignments"),
        "n_jobs 0": case(lambda: pairwise([Z], n_jobs=0), "n_jobs is 0", "−1 for all cores, or None for one"),
        "n_jobs 1.5": case(lambda: pairwise([Z], n_jobs=1.5), "n_jobs is 1.5", "give a number of threads"),
        "executor": case(
            lambda: solve(C, executor="gpu"),
            "executor is 'gpu'; this installation has '",
            "'reference' (None picks the best)",
        ),
        "rule where a number is needed": case(
            lambda: dropdtw.nearest(Z, [X], 1, "percentile:30"),
            "drop_x is 'percentile:30', which is computed from the match costs, so",
            "give a number (dropdtw.suggest_drop finds one)",
        ),
        "manifest of a function": case(
            lambda: Spec.of(match=max).settings(), "match is <built-in function max>", "give a name"
        ),
        "manifest of a vector": case(
            lambda: Spec.of([1.0, 2.0]).settings(),
            "drop_x is [1.0, 2.0]",
            "give a number, or a rule such as 'percentile:30', because records differ in length",
        ),
        "manifest of a drop logit": case(
            lambda: Spec.of(dropdtw.drops.LogitPercentile(30, 1e-3)).settings(),
            "drop_x is LogitPercentile(p=30, epsilon=0.001)",
            "because the manifest of a run cannot record this rule",
        ),
        "executor for other tables": case(
            on_a_picky_executor, "executor 'picky' has no kernel for 'drop_dtw", "run it with executor=None"
        ),
        "options of a table": case(
            lambda: solve(C, method=LOCKSTEP, one_to_many=False),
            "a table of your own, which states its own matches",
            "change the edges of 'lockstep' instead",
        ),
        "contiguous table": case(
            lambda: solve(C, method=LOCKSTEP, contiguous=True), "contiguous", "change the edges of"
        ),
        "no threshold": case(
            lambda: solve(C, method="lcss"), "method 'lcss' needs threshold=", "a number or 'percentile:30'"
        ),
        "threshold": case(
            lambda: solve(C, threshold=1), "method 'drop_dtw' takes no threshold", "or use 'lcss' or 'edr'"
        ),
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
        "mask of numbers": case(
            lambda: solve(C, mask=np.ones(C.shape)), "mask is an array of dtype float64", "booleans"
        ),
        "mask of a side": case(lambda: cost(C, mask=[True] * 4), "mask has shape (4,)", "give booleans (K, N)"),
        "mask of a list": case(lambda: cost(C, mask=[[1, 0]]), "mask is the list [[1, 0]]", "give booleans (K, N)"),
        "mask ragged": case(
            lambda: cost(C, mask=[[True], []]),
            "mask is a list with rows of different lengths, [[True], []]",
            "give booleans (K, N)",
        ),
        "mask of another shape": case(
            lambda: align(Z, X, mask=np.ones((3, 2), bool)), "mask has shape (3, 2), but there are 2 × 3", "one boolean"
        ),
        "mask of the elements that are left": case(
            lambda: align([1.0, 2.0], [1.0, np.nan, 2.0], mask=np.ones((2, 2), bool), missing="drop"),
            "mask has shape (2, 2), but there are 2 × 3 pairs",
            "including pairs with missing elements",
        ),
        "mask allows nothing": case(
            lambda: solve(C, mask=np.zeros(C.shape, bool)), "fits into this mask", "allow more pairs (True)"
        ),
    }
    | {
        f"window {w!r}": case(
            lambda w=w: solve(C, window=w),
            f"window is {w!r}",
            "give an int ≥ 0 (columns on each side of the diagonal), a float",
        )
        for w in (-1, True, 1.5, np.nan, "1", -0.5, 2.0)
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
TALLER = "Z has 5 elements and X has 2, so the z cannot each have an x of their own; "
WIDER = "X has 5 elements and Z has 2, so the x cannot each have a z of their own; "
TOO_TALL, TOO_WIDE = (
    (TALLER, f"{TALLER}pass many_to_one=True, or give drop_z"),
    (WIDER, f"{WIDER}pass one_to_many=True, or give drop_x"),
)
FIT = {
    "drop_dtw tall": case(lambda: solve(TALL, many_to_one=False), *TOO_TALL),
    "drop_dtw tall, x droppable": case(lambda: solve(TALL, 1, many_to_one=False), *TOO_TALL),
    "drop_dtw wide": case(lambda: cost(WIDE, one_to_many=False), *TOO_WIDE),
    "drop_dtw wide, z droppable": case(lambda: posterior(WIDE, drop_z=1, one_to_many=False), *TOO_WIDE),
    "paper tall": case(lambda: solve(TALL, 1, method="drop_dtw_paper", many_to_one=False), *TOO_TALL),
    "paper wide": case(lambda: solve(WIDE, None, 1, method="drop_dtw_paper", one_to_many=False), *TOO_WIDE),
    "greedy tall": case(lambda: solve(TALL, 1, method="greedy", many_to_one=False), *TOO_TALL),
    "greedy wide": case(lambda: solve(WIDE, None, 1, method="greedy", one_to_many=False), *TOO_WIDE),
    "dtw tall": case(lambda: solve(TALL, method="dtw", many_to_one=False), f"{TALLER}pass many_to_one=True"),
    "dtw wide": case(lambda: cost(WIDE, method="dtw", one_to_many=False), f"{WIDER}pass one_to_many=True"),
    "nw tall": case(lambda: solve(TALL, method="needleman_wunsch"), TALLER, "give drop_z, or use another method"),
    "nw tall, x droppable": case(lambda: solve(TALL, 1, method="needleman_wunsch"), TALLER, "; give drop_z, or use"),
    "nw wide": case(lambda: solve(WIDE, method="needleman_wunsch"), WIDER, "give drop_x, or use another method"),
    "nw wide, z droppable": case(lambda: cost(WIDE, None, 1, method="needleman_wunsch"), WIDER, "; give drop_x, or"),
    "otam tall": case(lambda: solve(TALL, method="otam", many_to_one=False), f"{TALLER}pass many_to_one=True"),
    "subsequence tall": case(
        lambda: posterior(TALL, method="subsequence", many_to_one=False), f"{TALLER}pass many_to_one=True"
    ),
    "distance": case(lambda: distance(TALL, WIDE.T[:2], many_to_one=False), *TOO_TALL),
    "pairwise": case(lambda: pairwise([TALL], [WIDE.T[:2]], many_to_one=False), *TOO_TALL),
    "pairwise, some": case(lambda: pairwise([Z, TALL], one_to_many=False), *TOO_WIDE),
}

CHARGED = {
    "negative": case(lambda: solve(C, 1, open_x=-1), "open_x is -1", "finite number ≥ 0, or 'suggest'"),
    "infinite": case(lambda: cost(C, 1, 1, open_z=np.inf), "open_z is inf", "a finite number ≥ 0"),
    "NaN": case(lambda: solve(C, 1, open_x=np.nan), "open_x is nan", "a finite number ≥ 0"),
    "bool": case(lambda: align(Z, X, 1, open_x=True), "open_x is True", "a finite number ≥ 0"),
    "vector": case(lambda: solve(C, 1, open_x=[1, 2, 3, 4]), "open_x is [1, 2, 3, 4]", "a finite number ≥ 0"),
    "array": case(lambda: solve(C, 1, open_x=np.ones(4)), "open_x is [1.0, 1.0, 1.0, 1.0]", "a finite number ≥ 0"),
    "too large": case(lambda: solve(C, 1, open_x=10**400), "open_x is too large for a float", "give a smaller number"),
    "too large for single": case(
        lambda: solve(C.astype(np.float32), 1, open_x=1e300),
        "open_x is 1e+300, which float32 cannot hold",
        "give the match costs as float64",
    ),
    "warp suggested": case(lambda: solve(C, warp="suggest"), "warp is 'suggest'", "give a finite number ≥ 0"),
    "no drop": case(lambda: solve(C, open_x=1), "open_x is 1, but no x may be dropped", "give drop_x as well"),
    "no drop of z": case(lambda: solve(C, 1, open_z=2), "open_z is 2, but no z may be dropped", "give drop_z"),
    "suggest without drop": case(lambda: solve(C, open_x="suggest"), "open_x is 'suggest', but no x", "give drop_x"),
    "own table": case(
        lambda: solve(C, 1, method=LOCKSTEP, open_x=1),
        "no edge of 'lockstep' charges it",
        "add plus='open_x' to an edge with cost='drop_x', or leave open_x out",
    ),
    "own table, warp": case(lambda: cost(C, method=LOCKSTEP, warp=1), "warp is 1, but no edge", "plus='warp'"),
    "stream": case(
        lambda: dropdtw.Online(Z, 1, open_x="suggest"), "open_x is 'suggest', which is computed from", "give a number"
    ),
    "nearest": case(
        lambda: dropdtw.nearest(Z, [X], drop_x=1, open_x="suggest"), "open_x is 'suggest', which is", "a number"
    ),
    "pattern with moves": case(
        lambda: solve(C, method="symmetric2", one_to_many=False),
        "'symmetric2' is a step pattern",
        "leave it out",
    ),
    "pattern that does not reach": case(
        lambda: solve(np.ones((2, 5)), method="symmetricP1"),
        "no path of method 'symmetricP1' leads through 2 × 5",
        "use 'symmetric2'",
    ),
    "max_cost": case(
        lambda: cost(C, max_cost="low"), "max_cost is 'low'", "give the largest cost of interest, a number"
    ),
    "normalize": case(lambda: cost(C, normalize="path length"), "normalize is 'path length'", "'pattern', 'path', or"),
    "soft path": case(
        lambda: cost(C, normalize="path", reducer="soft"), "reducer is 'soft', which combines", "use reducer='hard'"
    ),
    "path of counts": case(
        lambda: cost(C, method="lcss", threshold=1, normalize="path"),
        "method 'lcss' counts the pairs",
        "divide the result yourself",
    ),
    "per what": case(lambda: cost(C, 1, per="minute"), "per is 'minute'", "give 'second' to count costs by the"),
    "per second without times": case(
        lambda: cost(C, 1, per="second"), "but nothing says how long each x lasts", "give times or fps"
    ),
    "anchors, no pairs": case(lambda: cost(C, 1, anchors=[1]), "anchors is [1]", "give a list of pairs (i, j)"),
    "anchors, crossing": case(
        lambda: cost(C, 1, anchors=[(0, 1), (1, 0)]), "but (0, 1) and (1, 0) cross", "remove one of them"
    ),
    "anchors, outside": case(lambda: cost(C, 1, anchors=[(0, 99)]), "anchors is (0, 99), but there are", "from 0"),
    "anchors, forbidden": case(
        lambda: cost(np.full((2, 2), np.inf), 1, anchors=[(0, 1)]), "but z_0 may not match x_1", "allow this match"
    ),
    "anchors, missing": case(
        lambda: align([0.0, np.nan], [0.0, 1.0], 1, missing="drop", anchors=[(1, 1)]),
        "but z_1 or x_1 is missing",
        "remove it",
    ),
    "anchors, impossible": case(
        lambda: cost(np.zeros((2, 2)), 1, method="steps", anchors=[(1, 0)]),
        "no alignment leads from an end to (1, 0)",
        "move or remove an anchor",
    ),
    "anchors, an order": case(
        lambda: cost(C, order=dropdtw.orders.any_order(*range(len(C))), anchors=[(0, 0)]),
        "the steps have an order that is no list",
        "leave order out",
    ),
    "anchors, ctc": case(
        lambda: cost(C, 1, 1, method="ctc", anchors=[(0, 0)]), "which 'ctc' takes without drop_z", "leave drop_z out"
    ),
    "anchors, a pattern": case(
        lambda: cost(C, method="symmetric2", anchors=[(0, 0)]), "which 'symmetric2' does not take", "use 'drop_dtw'"
    ),
    "normalize, a pattern with drops": case(
        lambda: cost(C, 1, method="symmetricP1", normalize="pattern"),
        "normalize is 'pattern', but with drops, the paths of a step pattern differ in total weight",
        "leave drop_x and drop_z out",
    ),
    "no norm": case(
        lambda: distance(Z, X, normalize="pattern"),
        "the paths of method 'drop_dtw' differ in total weight",
        "use one of 'symmetric2'",
    ),
} | {
    f"{m} {charge}": case(
        lambda m=m, t=t, charge=charge: cost(C, method=m, threshold=t, **{charge: 1}),
        f"method {m!r} takes no {said}, but {charge} is 1",
        "leave it out",
    )
    for m, entry in dropdtw.METHODS.items()
    for charge, said, taken in (
        ("open_x", "opening costs", entry.takes_opening),
        ("warp", "warp penalty", entry.takes_warp),
    )
    if not taken
    for t in (1 if entry.takes_threshold else None,)
}
