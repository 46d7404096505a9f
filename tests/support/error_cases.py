"""One call for each possible mistake, and what its error must say."""

from types import SimpleNamespace

import numpy as np

import dropdtw
from dropdtw import align, posterior, solve
from error_calls import ANY, FORBIDDEN, C, X, Z, banded, case, changed, plotting, without_matplotlib
from error_find import ENDS, FIND
from error_inputs import DROPS, INPUT, MATCH
from error_options import CHARGED, FIT, OPTIONS, WIDE
from error_ordered import ORDERED
from error_orders import ORDER_CASES
from error_symbols import SYMBOLS

NONE_LEFT = {
    "columns": case(
        lambda: align(SimpleNamespace(columns=["ax", "ay"]), SimpleNamespace(columns=["ax", "gy"])),
        "Z has the columns ax,ay and X has ax,gy",
        "give both the same columns",
    ),
    "an extra column": case(
        lambda: align(SimpleNamespace(columns=["ax", "ay"]), SimpleNamespace(columns=["ax", "ay", "az"])),
        "X also has the column az, which Z lacks",
        "give both the same columns",
    ),
    "a column of texts": case(
        lambda: align(Z, SimpleNamespace(columns=["at", "ax"], dtypes=[np.dtype(object), np.dtype(float)])),
        "column 'at' of X is not numeric",
        "make it the index",
    ),
    "another posterior": case(
        lambda: align(Z, X).to_csv(posterior=posterior([[0.0]])), "posterior is that of (1, 1) elements", "give its own"
    ),
    "solve": case(lambda: solve([[ANY]]), *FORBIDDEN),
    "posterior": case(lambda: posterior([[ANY, ANY]]), *FORBIDDEN),
    "align": case(lambda: align(Z, X, match=lambda Z, X: np.full((2, 3), ANY)), *FORBIDDEN),
    "a column": case(lambda: solve([[0, ANY, 0]]), *FORBIDDEN),
    "undroppable column": case(lambda: solve([[0, ANY, 0]], drop_x=[0, ANY, 0], drop_z=1), *FORBIDDEN),
    "window, no help": case(lambda: solve([[0, ANY], [0, ANY]], window=1), *FORBIDDEN),
    "window": case(
        lambda: solve(WIDE, window=1),
        "no alignment of 2 × 5 fits into this window",
        "the smallest window that allows one is 2",
    ),
    "share": case(
        lambda: posterior(WIDE, window=0.2), "no alignment of 2 × 5 fits into this window", "allows one is 2"
    ),
}

ANSWERS = {
    "explain beyond": case(
        lambda: solve(C).explain(4), "j is 4, but X has 4", "give 0 to 3, or −4 to −1", error=IndexError
    ),
    "explain before": case(
        lambda: solve(C).explain(-5), "j is -5, but X has 4", "give 0 to 3, or −4 to", error=IndexError
    ),
    "explain a z beyond": case(
        lambda: solve(C).explain(z=2), "z is 2, but Z has 2", "give 0 to 1, or −2 to −1", error=IndexError
    ),
    "explain both": case(
        lambda: solve(C).explain(1, z=1),
        "explain takes one element",
        "give j, the index of an x, or z=",
        error=TypeError,
    ),
    "a posterior without costs": case(
        lambda: dropdtw.Posterior.from_dict({}), "not a posterior with its costs", "give what Posterior.to_dict"
    ),
    "too few symbols": case(
        lambda: dropdtw.Alignment.from_dict(align("ab", "ab").to_dict() | {"symbols": {"z": ["a"], "x": ["a", "b"]}}),
        "its symbols are not 2 and 2 strings",
        "give a dictionary that Alignment.to_dict wrote",
    ),
    "occurrences without costs": case(
        lambda: dropdtw.Occurrences.from_dict({"occurrences": [{"start": 0}]}),
        "these are not occurrences with costs",
        "give what Occurrences.to_dict",
    ),
    "an occurrence that is not its alignment's": case(
        lambda: dropdtw.Occurrences.from_dict(
            {"occurrences": [{"start": 0, "stop": 9, "cost": 0, "alignment": solve([[0.0]]).to_dict(costs=True)}]}
        ),
        "the occurrence [0, 9) contradicts its alignment",
        "write it again",
    ),
    "level": case(lambda: posterior(C).intervals(90), "level is 90", "give a probability between 0 and 1, such as 0.9"),
    "sample": case(lambda: posterior(C).sample(-1), "n is -1", "give the number of alignments to draw, 0 or more"),
    "warp Z": case(
        lambda: solve(C).warp_z(np.ones((3, 2))), "Z has shape (3, 2), but 2 elements", "give Z as it was aligned"
    ),
    "warp X": case(lambda: solve(C).warp_x([1, 2, 3]), "X has shape (3,), but 4 elements", "give X as it was aligned"),
    "warp a number": case(lambda: solve(C).warp_z(1), "Z has shape (), but 2 elements", "give Z as it was aligned"),
    "warp words": case(lambda: solve(C).warp_z(["a", "b"]), "Z is the list ['a', 'b']", "give a rectangular array"),
    "warp fill": case(
        lambda: solve(C).warp_z([1, 2], fill="cubic"),
        "fill is 'cubic'",
        "give a number for dropped elements, or 'linear'",
    ),
    "axes": case(lambda: plotting("compare", {"a": solve(C)}, axes=[]), "axes has 0 entries for 1 al", "one for each"),
    "film": case(lambda: plotting("strip", np.zeros((2, 3))), "frames has shape (2, 3)", "give a video (T, H, W)"),
    "frames": case(
        lambda: plotting("with_frames", solve(C), np.zeros((1, 4, 4)), np.zeros((1, 4, 4))),
        "have 1 and 1 frames",
        "give the frames of the videos that were aligned",
    ),
    "bars": case(lambda: plotting("step_bars", {"a": [0], "b": [0, 1]}), "rows have [1, 2] frames", "same number"),
    "no bars": case(lambda: plotting("step_bars", {}), "rows is empty", "give at least one row of labels"),
    "compare nothing": case(lambda: plotting("compare", {}), "alignments is empty", "give at least one alignment"),
    "linked": case(
        lambda: plotting("linked", Z, X, solve(C)),
        "Z and X have 2 and 3 elements, but the alignment has 2 and 4",
        "give the sequences that were aligned",
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

WRITTEN = "give a dictionary that Alignment.to_dict wrote"


def retabled(**more):
    """Read an alignment whose table was changed."""
    data = solve(np.zeros((2, 2)), 0.5).to_dict(costs=True)
    data["problem"]["table"] |= more
    return dropdtw.Alignment.from_dict(data)


READ = (
    {
        "nothing": case(
            lambda: dropdtw.Alignment.from_dict({}), "not an alignment in format 1 (format missing)", WRITTEN
        ),
        "None": case(lambda: dropdtw.Alignment.from_dict(None), "not an alignment in format 1", WRITTEN),
        "no pairs": case(lambda: changed(pairs=None), "not an alignment in format 1 (pairs missing)", WRITTEN),
        "no cost": case(lambda: changed(cost=None), "not an alignment in format 1 (cost missing)", WRITTEN),
        "format": case(lambda: changed(format=2), "not an alignment in format 1 (its format is 2)", WRITTEN),
        "row outside": case(lambda: changed(pairs=[[2, 0]]), "a pair lies outside shape (2, 4)", WRITTEN),
        "column outside": case(lambda: changed(pairs=[[0, 4]]), "a pair lies outside shape (2, 4)", WRITTEN),
        "negative": case(lambda: changed(pairs=[[-1, 0]]), "a pair lies outside shape (2, 4)", WRITTEN),
        "crossing": case(lambda: changed(pairs=[[1, 0], [0, 1]]), "its pairs cross, or repeat", WRITTEN),
        "repeating": case(lambda: changed(pairs=[[0, 0], [0, 0]]), "its pairs cross, or repeat", WRITTEN),
        "labels": case(lambda: changed(labels=[1, 1, 0, 0]), "labels contradict pairs", WRITTEN),
        "match": case(lambda: changed(match=3), "its match is 3, which is no name", WRITTEN),
        "cost": case(lambda: changed(cost=np.nan), "its cost is nan", WRITTEN),
        "cost as text": case(lambda: changed(cost="nan"), "its cost is 'nan', which is not numbers", WRITTEN),
        "method": case(lambda: changed(method=5), "its method is 5, which is not a string", WRITTEN),
        "charged, a number": case(lambda: changed(charged=5), "charged is 5, which is not a dictionary", WRITTEN),
        "charged, too many": case(lambda: changed(charged={"warp": 99}), "charged has numbers that do not", WRITTEN),
        "segments": case(lambda: changed(segments=[]), "segments contradict labels", WRITTEN),
        "segments by name": case(lambda: changed(segments={}), "its segments are {}, which is no list", WRITTEN),
        "edges": case(lambda: retabled(edges=5), "its table has the edges 5", WRITTEN),
        "weights": case(lambda: changed(weights=[0.0] * 4), "its weights are not all finite and > 0", WRITTEN),
        "charged": case(
            lambda: changed(charged={"warp": -1}), "charged has numbers that are not finite and ≥ 0", WRITTEN
        ),
        "another cost": case(lambda: changed(cost=7.5), "its cost is 7.5, but its pairs and drops cost 1.4", WRITTEN),
        "an empty shape": case(
            lambda: changed(shape=[2, 0], labels=[], pairs=[], paid_x=[]), "its shape is (2, 0)", WRITTEN
        ),
        "half a pair": case(lambda: changed(pairs=[[0.5, 0]]), "its pairs are not whole numbers", WRITTEN),
        "half a label": case(lambda: changed(labels=[0.5] * 4), "its labels are not whole numbers", WRITTEN),
        "paid twice": case(lambda: changed(paid_x=[2, 0, 0, 0]), "paid_x is not all 0 or 1", WRITTEN),
        "missing beyond": case(
            lambda: changed(missing_x=[4], missing_z=[]), "missing_x has indices outside shape (2, 4)", WRITTEN
        ),
        "missing, one side": case(lambda: changed(missing_x=[1]), "(missing_z missing)", WRITTEN),
        "missing, all": case(lambda: changed(missing_x=[], missing_z=[0, 1]), "every z is missing", WRITTEN),
        "missing, but matched": case(
            lambda: changed(missing_x=[1], missing_z=[], problem=None), "its missing elements are matched or", WRITTEN
        ),
        "a label without a pair": case(lambda: changed(labels=[0, 1, 1, -1]), "labels contradict pairs", WRITTEN),
    }
    | {
        f"band {band}": case(lambda band=band: banded(band), says, WRITTEN)
        for band, says in [
            ([[0, 0], [4, 5]], "its band does not lie in its shape"),
            ([[0, -1], [4, 4]], "its band does not lie in its shape"),
            ([[3, 0], [2, 4]], "its band does not lie in its shape"),
            ([[1, 0], [4, 4]], "its band moves back from one row to the next"),
            ([[0, 0], [4, 3]], "its band moves back from one row to the next"),
            ([[0.5, 0], [4, 4]], "its band is not whole numbers"),
            ([[1, 1], [4, 4]], "a pair lies outside the band"),
        ]
    }
    | {
        f"{name} {value}": case(
            lambda name=name, value=value: changed(**{name: value}),
            "not an alignment in format 1 (cannot reshape",
            WRITTEN,
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
        "ordered": ORDERED,
        "orders": ORDER_CASES,
        "ends": ENDS,
        "find": FIND,
        "symbols": SYMBOLS,
    }.items()
    for name, row in table.items()
}
