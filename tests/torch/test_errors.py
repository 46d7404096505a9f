"""Every error message of the losses says what arrived and what to do. A new message needs a new row."""

import ast
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
import torch
from torch.nn import Parameter, Softplus
from torch.nn.utils.parametrize import register_parametrization

import dropdtw
from dropdtw import orders
from dropdtw import torch as dt
from dropdtw.costs import Softmax
from dropdtw.drops import LogitPercentile

MODULES = ["batch", "charges", "clustering", "costs", "discriminative", "learned", "losses", "masks", "orders"]
MODULES += ["options", "reduction"]
Z, X = torch.ones(2, 3, 4), torch.ones(2, 5, 4)
LOSS = dt.DropDTWLoss()


def spoilt(A, value):
    """The batch with a value at the end of the second-to-last or last element of item 1."""
    A = A.clone()
    A[1, min(3, A.shape[1] - 1), -1] = value
    return A


def case(call, says, does=""):
    """A row: the call, the part of its message about what arrived, and the part about what to do."""
    return call, says, does


INPUT = {
    "one sequence": case(lambda: LOSS(Z[0], X), "Z has shape (3, 4)", "For a single sequence, pass Z[None]"),
    "empty": case(lambda: LOSS(Z, X[:, :0]), "X has shape (2, 0, 4)", "with no dimension of size 0"),
    "integers": case(lambda: LOSS(Z.int(), X), "Z has dtype torch.int32", "for example Z.float()"),
    "NumPy": case(lambda: LOSS(np.ones((2, 3, 4)), X), "Z is a ndarray", "give a tensor (B, length, d), or a list"),
    "nothing": case(lambda: LOSS([], X), "Z is a list, but not of sequences", "at least one"),
    "list of lists": case(lambda: LOSS(Z, [[1.0], [2.0]]), "X is a list, but not of sequences", "tensor (length, d)"),
    "list of vectors": case(lambda: LOSS([Z[0, 0]], X), "Z is a list, but not of sequences", "tensor (length, d)"),
    "list of many d": case(
        lambda: LOSS([Z[0], Z[0, :, :2]], X), "Z is a list, but not of sequences", "all with the same d"
    ),
    "list with an empty one": case(lambda: LOSS(Z, [X[0], X[0, :0]]), "X[1] is empty", "at least one element"),
    "list and lengths": case(
        lambda: LOSS([*Z], X, z_lengths=[3, 3]), "z_lengths belong to a padded batch, but Z is a list", "leave them out"
    ),
    "batch sizes": case(lambda: LOSS(Z[:1], X), "Z has 1 items and X has 2", "one sequence of each per item"),
    "features": case(lambda: LOSS(Z[..., :2], X), "Z has 2 features and X has 4", "both need the same number"),
    "devices": case(lambda: LOSS(Z.to("meta"), X), "Z is on meta and X is on cpu", "move them to the same device"),
    "NaN": case(
        lambda: LOSS(Z, spoilt(X, torch.nan)), "X[1] has NaN or infinity in element 3", "remove such elements or"
    ),
    "NaN, the mask": case(lambda: LOSS(Z, spoilt(X, torch.nan)), "X[1] has NaN", "or leave them out by x_mask"),
    "mask of floats": case(
        lambda: LOSS(Z, X, x_mask=torch.ones(2, 5)),
        "x_mask has shape (2, 5) and dtype torch.float32",
        "give bool (2, 5)",
    ),
    "mask of another length": case(
        lambda: LOSS(Z, X, x_mask=torch.ones(2, 4, dtype=torch.bool)),
        "x_mask has shape (2, 4)",
        "or a list of 2 vectors",
    ),
    "mask of numbers": case(
        lambda: LOSS(Z, X, x_mask=[[True] * 5] * 2), "x_mask is a list, but not of vectors", "a bool tensor (N_b,) per"
    ),
    "mask of all": case(
        lambda: LOSS(Z, X, x_mask=torch.arange(2)[:, None].expand(2, 5) > 0),
        "x_mask masks every frame of item 0",
        "leave that",
    ),
    "infinity": case(lambda: LOSS(spoilt(Z, torch.inf), X), "Z[1] has NaN or infinity in element 2", "fill them in"),
    "wrong NaN": case(
        lambda: dt.D3TWLoss()(Z, X, wrong=spoilt(Z, torch.nan)), "wrong[1] has NaN or infinity in element 2", "fill"
    ),
    "overflow": case(
        lambda: LOSS(1e30 * Z, 1e30 * X), "products z·x overflow float32", "scale the features down, or give"
    ),
    "overflow in double": case(
        lambda: dt.SmoothDTWLoss()(1e200 * Z.double(), -1e200 * X.double()), "products z·x overflow float64", "down"
    ),
    "clustering overflow": case(
        lambda: dt.ClusteringLoss()(1e30 * Z, 1e30 * X), "products z·x overflow float32", "scale the features down"
    ),
    "too few lengths": case(lambda: LOSS(Z, X, x_lengths=[5]), "x_lengths has shape (1,)", "give 2 whole numbers"),
    "lengths in part": case(lambda: LOSS(Z, X, z_lengths=[1.0, 2.0]), "dtype torch.float32", "2 whole numbers"),
    "masks": case(lambda: LOSS(Z, X, z_lengths=[True, True]), "dtype torch.bool", "2 whole numbers, one per item"),
    "too long": case(
        lambda: LOSS(Z, X, z_lengths=[1, 4]), "z_lengths range from 1 to 4, but Z has room for 3", "lengths from 1 to 3"
    ),
    "too short": case(lambda: LOSS(Z, X, x_lengths=torch.tensor([0, 5])), "x_lengths range from 0 to 5", "from 1 to 5"),
    "ids of another shape": case(
        lambda: LOSS(Z, X, ids=torch.ones(2, 4, dtype=torch.int64)),
        "ids has shape (2, 4) and dtype torch.int64, but there are 2 sequences of at most 3 z_i",
        "one whole number per z_i",
    ),
    "ids in part": case(lambda: LOSS(Z, X, ids=torch.ones(2, 3)), "dtype torch.float32", "one whole number per z_i"),
    "ids of other lengths": case(
        lambda: LOSS([Z[0], Z[0, :2]], X, ids=[[1, 2], [1, 2, 3]]),
        "ids has rows of (2,) (torch.int64), (3,)",
        "a list of one row",
    ),
    "ids of words": case(
        lambda: LOSS(Z, X, ids=[["a", "b"], ["a", "c"]]), "ids has values that are no numbers", "first"
    ),
    "ids, not whole": case(lambda: LOSS(Z, X, ids=[[0.0] * 3] * 2), "ids has rows of (3,) (torch.float32)", "whole"),
    "no ids": case(lambda: LOSS(Z, X, ids=[]), "ids has rows of nothing", "one row per item"),
}

OPTIONS = {
    "slope of a distance": case(
        lambda: dt.costs.euclidean(Z.clone().requires_grad_(), X),
        "have no derivative where z = x",
        "use sqeuclidean, or detach",
    ),
    "match": case(
        lambda: dt.SmoothDTWLoss(match="euclidean"), "match is 'euclidean'", "'correlation', or give a function of Z"
    ),
    "correlation of numbers": case(
        lambda: dt.SoftDTWLoss(match="correlation")(Z[..., :1], X[..., :1]), "these have only one", "use 'sqeuclidean'"
    ),
    "ids in the match cost": case(
        lambda: dt.DropDTWLoss(match=Softmax(10.0, (0, 1, 0))), "match has ids", "pass them to the loss"
    ),
    "misspelled": case(lambda: dt.DropDTWLoss(windw=3), "DropDTWLoss has no option windw", "did you mean window?"),
    "drops of DTW": case(
        lambda: dt.SmoothDTWLoss(0.3), "drop_x is 0.3, but SmoothDTWLoss drops nothing", "DropDTWLoss"
    ),
    "aligner and options": case(
        lambda: dt.DropDTWLoss(dropdtw.Aligner(0.3), window=3), "an aligner and also window", "aligner.replace(window="
    ),
    "mask of an aligner": case(
        lambda: dt.DropDTWLoss(dropdtw.Aligner(0.3, missing="drop")), "missing is 'drop', which losses", "x_mask="
    ),
    "LearnedDrop alone": case(
        lambda: dropdtw.align([0.0], [1.0], dt.LearnedDrop(1)),
        "a LearnedDrop is a network on both sequences",
        "use loss.align",
    ),
    "parametrized": case(
        lambda: register_parametrization(dt.DropDTWLoss(open_x=Parameter(torch.ones(()))), "open_x", Softplus()).align(
            Z, X, open_x=0.5
        ),
        "open_x is 0.5, but the loss parametrizes it",
        "use loss.aligner.replace(open_x=...)",
    ),
    "drops of an aligner": case(
        lambda: dt.OTAMLoss(dropdtw.Aligner(0.3)), "drop_x is 0.3, which OTAMLoss cannot use", "use DropDTWLoss"
    ),
    "charges as an aligner": case(
        lambda: dt.DropDTWLoss(0.3, warp=torch.ones(2)).aligner, "warp is tensor([1., 1.]), with numbers", "loss.align"
    ),
    "orders as an aligner": case(
        lambda: dt.DropDTWLoss(0.3, order=[[0, 1], None]).aligner, "one order per item", "use loss.align"
    ),
    "reducer": case(lambda: dt.OTAMLoss(reducer="min"), "reducer is 'min'", "choose one of 'hard', 'soft', 'smooth'"),
    "gamma": case(lambda: dt.SoftDTWLoss(gamma=-1), "gamma is -1", "give a finite number ≥ 0"),
    "window": case(lambda: dt.SmoothDTWLoss(window=1.5), "window is 1.5", "give an int ≥ 0"),
    "reduction": case(lambda: dt.SmoothDTWLoss(reduction="avg"), "reduction is 'avg'", "'mean', 'sum' or 'none'"),
    "normalize": case(lambda: dt.DropDTWLoss(normalize="N"), "normalize is 'N'", "choose 'x', 'z' or 'both'"),
    "method": case(lambda: dt.DropDTWLoss(method="dtw"), "method 'dtw' takes no drop costs", "leave out drop_x"),
    "match gives another shape": case(
        lambda: dt.SmoothDTWLoss(match=lambda Z, X: X @ Z.mT)(Z, X),
        "match(Z, X) returned shape (2, 5, 3) for Z (2, 3, 4) and X (2, 5, 4)",
        "it must return C of shape (2, 3, 5)",
    ),
    "match gives nothing": case(
        lambda: dt.SmoothDTWLoss(match=lambda Z, X: None)(Z, X), "match(Z, X) returned None", "must return C of shape"
    ),
    "softmax divergence": case(
        lambda: dt.SoftDTWDivergence(match="softmax"), "treats z and x differently", "use 'sqeuclidean' or 'cosine'"
    ),
    "K > N": case(
        lambda: dt.SmoothDTWLoss(many_to_one=False)(X, Z), "the z cannot each have an x", "pass many_to_one=True"
    ),
    "K > N in lists": case(
        lambda: dt.SmoothDTWLoss(many_to_one=False)([*X], [*Z]), "the z cannot each have an x", "pass many_to_one"
    ),
} | {
    f"temperature {value}": case(
        lambda value=value: dt.DropDTWLoss(match=f"softmax:{value}"), f"softmax:{value}", "> 0"
    )
    for value in (0, -1.0, np.inf, np.nan, "ten")
}

DROPS = {
    "word": case(lambda: dt.DropDTWLoss("quantile:30"), "drop_x is 'quantile:30'", "'percentile:30' or 'logit:30'"),
    "percent": case(lambda: dt.DropDTWLoss(0.1, "percentile:101"), "drop_z is 'percentile:101'", "(0 to 100)"),
    "bool": case(lambda: dt.DropDTWLoss(True), "drop_x is True", "give None, a number, a tensor"),
    "object": case(
        lambda: dt.DropDTWLoss(LogitPercentile(30)), "drop_x is LogitPercentile(", "'logit:30' or a Learned"
    ),
    "list": case(lambda: dt.DropDTWLoss(0.1, [0.1]), "drop_z is [0.1]", "give None, a number, a tensor"),
    "logit of z": case(
        lambda: dt.DropDTWLoss(0.1, "logit:30"), "drop_z is a drop logit", "'percentile:30' or LearnedDrop("
    ),
    "learned logit of z": case(
        lambda: dt.DropDTWLoss(0.1, dt.LearnedDrop(4)), "drop_z is a drop logit", "LearnedDrop(dim, output='cost')"
    ),
    "logit in cosine": case(
        lambda: dt.DropDTWLoss("logit:30", match="cosine"), "drop_x with match='cosine'", "use 'percentile:30' or"
    ),
    "learned logit in cosine": case(
        lambda: dt.DropDTWLoss(dt.LearnedDrop(4), match="cosine"), "drop_x with match='cosine'", "output='cost'"
    ),
    "learned dim": case(lambda: dt.LearnedDrop(0), "dim is 0", "give a whole number, 1 or more"),
    "learned depth": case(lambda: dt.LearnedDrop(4, 1.5), "depth is 1.5", "give a whole number, 1 or more"),
    "learned hidden": case(lambda: dt.LearnedDrop(4, 2, False), "hidden is False", "give a whole number, 1 or more"),
    "learned as": case(
        lambda: dt.LearnedDrop(4, output="price"), "output is 'price'", "choose 'logit' (in the softmax"
    ),
    "percentile function": case(lambda: dt.percentile_drop(C, 101), "p is 101", "a percentile from 0 to 100"),
    "learned anchor": case(lambda: dt.LearnedDrop(4, anchor=101), "anchor is 101", "a percentile from 0 to 100"),
    "learned anchor of costs": case(
        lambda: dt.LearnedDrop(4, output="cost", anchor=30), "output is 'cost'", "with output='logit'"
    ),
    "learned scale": case(lambda: dt.LearnedDrop(4, scale=0), "scale is 0", ""),
    "learned for others": case(
        lambda: dt.LearnedDrop(5)(Z, X), "Z has 4 features, but this LearnedDrop was made for 5", ""
    ),
}

C = torch.ones(2, 3, 5)
CHARGES = {
    "without drops": case(lambda: dt.drop_dtw(C, open_x=0.5), "open_x is 0.5, but no x may be dropped", "give drop_x"),
    "of tensors without drops": case(
        lambda: dt.drop_dtw(C, 0.5, open_z=torch.zeros(2)), "open_z is a tensor, but no z may be dropped", "give drop_z"
    ),
    "where the method takes none": case(
        lambda: dt.drop_dtw(C, 0.5, 0.5, method="drop_dtw_paper", open_x=torch.tensor(0.1)),
        "method 'drop_dtw_paper' takes no opening costs, but open_x is a tensor",
        "leave it out, or use 'drop_dtw'",
    ),
    "of repeats where nothing repeats": case(
        lambda: dt.drop_dtw(C, 0.5, 0.5, method="needleman_wunsch", warp=0.1),
        "method 'needleman_wunsch' takes no warp penalty",
        "use 'drop_dtw' or 'dtw'",
    ),
    "of a pattern": case(
        lambda: dt.drop_dtw(C, method="symmetric2", warp=torch.zeros(())),
        "method 'symmetric2' takes no",
        "leave it out",
    ),
    "suggested": case(
        lambda: dt.drop_dtw(C, 0.5, open_x="suggest"),
        "open_x is 'suggest', which works for single problems only",
        "for a batch, give a finite number ≥ 0, or a tensor () or (B,)",
    ),
    "below 0": case(lambda: dt.drop_dtw(C, 0.5, open_x=-0.5), "open_x is -0.5", "a finite number ≥ 0"),
    "infinite": case(lambda: dt.drop_dtw(C, warp=torch.inf), "warp is inf", "a finite number ≥ 0"),
    "NaN": case(lambda: dt.drop_dtw(C, warp=torch.nan), "warp is nan", "a finite number ≥ 0"),
    "bool": case(lambda: dt.drop_dtw(C, warp=True), "warp is True", "a finite number ≥ 0"),
    "huge": case(lambda: dt.drop_dtw(C, warp=10**400), "warp is 1000", "a finite number ≥ 0"),
    "too large for the costs": case(
        lambda: dt.drop_dtw(C, warp=1e300), "warp is 1e+300, which float32 cannot hold", "the match costs as float64"
    ),
    "of another batch": case(
        lambda: dt.drop_dtw(C, 0.5, open_x=torch.zeros(3)), "open_x has shape (3,)", "a tensor () or (2,)"
    ),
    "per element": case(
        lambda: dt.drop_dtw(C, 0.5, open_x=torch.zeros(2, 5)), "open_x has shape (2, 5)", "a tensor () or (2,)"
    ),
    "masks": case(
        lambda: dt.drop_dtw(C, warp=torch.tensor(True)), "warp has shape () and dtype torch.bool", "of numbers"
    ),
    "tensor below 0": case(
        lambda: dt.drop_dtw(C, 0.5, open_x=torch.tensor([0.5, -0.5])), "open_x is -0.5 for item 1", "numbers ≥ 0"
    ),
    "tensor of NaN": case(
        lambda: dt.drop_dtw(C, 0.5, warp=torch.tensor(torch.nan), executor="wavefront"), "warp is nan for item 0", "≥ 0"
    ),
    "tensor too large": case(
        lambda: dt.drop_dtw(C, 0.5, open_x=torch.tensor(1e300, dtype=torch.float64)), "open_x is inf for item 0", "≥ 0"
    ),
    "loss without drops": case(
        lambda: dt.DropDTWLoss(0.1, open_z=0.2), "open_z is 0.2, but no z may be dropped", "give drop_z as well"
    ),
    "loss as printed": case(
        lambda: dt.DropDTWLoss(0.1, 0.1, method="drop_dtw_paper", warp=torch.zeros(())),
        "method 'drop_dtw_paper' takes no warp penalty, but warp is a tensor",
        "leave it out",
    ),
    "loss that suggests": case(lambda: dt.DropDTWLoss(0.1, open_x="suggest"), "open_x is 'suggest'", "a finite number"),
    "loss of repeats": case(lambda: dt.SoftDTWLoss(warp=-1), "warp is -1", "a finite number ≥ 0"),
}

FREE = orders.any_order(0, 1, 2)
ORDERS = {
    "of a tensor": case(
        lambda: dt.drop_dtw(C, order=torch.tensor([0, 1, 2])), "order is a tensor of shape (3,)", "order.tolist()"
    ),
    "of another batch": case(
        lambda: dt.drop_dtw(C, 0.5, order=[FREE] * 3),
        "order is a list of 3 orders, one per item, but the batch has 2 items",
        "orders.as_order([...]) joins parts into one order",
    ),
    "of other steps": case(
        lambda: dt.drop_dtw(C, 0.5, order=orders.any_order(0, 1)), "Z has 3 steps", "name each step of Z"
    ),
    "of too many steps": case(
        lambda: dt.drop_dtw(C, 0.5, z_lengths=[3, 2], order=[[0, 1, 2], [0, 1, 2, 3]]),
        "Z has no step 3",
        "leave it out",
    ),
    "of another item": case(
        lambda: dt.drop_dtw(C, 0.5, z_lengths=[3, 2], order=FREE),
        "item 1: Z has 2 steps, 0 to 1, but the order is any_order(0, 1, 2)",
        "Z has no step 2; leave it out",
    ),
    "that is none": case(lambda: dt.drop_dtw(C, 0.5, order="abc"), "order is 'abc'", "an order from dropdtw.orders"),
    "with a window": case(
        lambda: dt.drop_dtw(C, 0.5, window=2, order=FREE), "window is 2, a band along the diagonal", "leave it out"
    ),
    "with runs of z": case(
        lambda: dt.drop_dtw(C, 0.5, 0.5, open_z=torch.zeros(2), order=FREE),
        "open_z is a tensor, but in a partial order there are no runs",
        "leave it out",
    ),
    "of the paper's table": case(
        lambda: dt.DropDTWLoss(0.1, 0.1, method="drop_dtw_paper")(Z, X, order=FREE),
        "method 'drop_dtw_paper' takes no order of steps",
        "use one of 'drop_dtw'",
    ),
    "of a divergence": case(
        lambda: dt.SoftDTWDivergence()(Z, X, order=FREE), "also aligns Z with Z and X with X", "use SoftDTWLoss"
    ),
    "of wrong sequences that are not there": case(
        lambda: dt.D3TWLoss()(Z, X, order=FREE, wrong_order=FREE),
        "wrong_order describe wrong sequences",
        "leave them out",
    ),
}

WRONG = {
    "margin": case(lambda: dt.D3TWLoss(-1), "margin is -1", "give a finite number ≥ 0"),
    "beta": case(lambda: dt.MarginLoss(LOSS, np.nan), "beta is nan", "give a finite number ≥ 0"),
    "order of another shape": case(
        lambda: dt.D3TWLoss()(Z, X, wrong=torch.tensor([[1, 0, 2]])), "wrong has shape (1, 3)", "other sequences (B, K'"
    ),
    "no order": case(
        lambda: dt.D3TWLoss()(Z, X, wrong=torch.tensor([[0, 0, 2]] * 2)),
        "not an order of 2 × 3",
        "each of 0, …, K_b − 1",
    ),
    "order beyond the length": case(
        lambda: dt.D3TWLoss()(Z, X, z_lengths=[3, 2], wrong=torch.tensor([[2, 1, 0]] * 2)),
        "not an order of 2 × 3 elements",
        "once per item",
    ),
    "lengths of an order": case(
        lambda: dt.D3TWLoss()(Z, X, wrong=torch.tensor([[1, 0, 2]] * 2), wrong_lengths=[3, 3]),
        "wrong_lengths, wrong_ids and wrong_order describe wrong sequences",
        "none were given",
    ),
    "ids of nothing": case(
        lambda: dt.MarginLoss(LOSS)(Z, X, wrong_ids=[[1, 2, 3]] * 2),
        "wrong_lengths, wrong_ids and wrong_order describe wrong sequences",
        "none were given",
    ),
    "wrong features": case(
        lambda: dt.D3TWLoss()(Z, X, wrong=Z[..., :3]), "wrong has 3 features and X has 4", "both need the same number"
    ),
    "wrong ids": case(
        lambda: dt.MarginLoss(LOSS)(Z, X, wrong=Z, wrong_ids=[[1]]),
        "wrong_ids has rows of (1,) (torch.int64)",
        "one whole number",
    ),
    "wrong lengths": case(
        lambda: dt.MarginLoss(LOSS)(Z, X, wrong=Z, wrong_lengths=[9, 9]),
        "wrong_lengths range from 9 to 9",
        "from 1 to 3",
    ),
    "drop costs of other sequences": case(
        lambda: dt.MarginLoss(dt.DropDTWLoss(None, torch.ones(2, 3), match="cosine"))(Z, X, wrong=Z),
        "drop_z has shape (2, 3), one cost per z of each item",
        "a tensor (B, 1)",
    ),
    "no loss": case(lambda: dt.MarginLoss(dt.ClusteringLoss()), "loss is ClusteringLoss", "give an alignment loss"),
    "negatives": case(
        lambda: dt.MarginLoss(LOSS, negatives="hard"), "negatives is 'hard'", "choose 'roll' (previous item"
    ),
    "one item": case(
        lambda: dt.MarginLoss(LOSS)(Z[:1], X[:1]), "the batch has only one item", "give wrong, or more items"
    ),
    "form": case(lambda: dt.ClusteringLoss("l2"), "form is 'l2'", "choose 'frobenius' (the paper's) or 'contrastive'"),
    "contrast of frobenius": case(
        lambda: dt.ClusteringLoss(gamma_contrast=30), "but form is 'frobenius'", "leave them out"
    ),
    "clustering background": case(
        lambda: dt.ClusteringLoss("contrastive", background=dt.LearnedDrop(4, output="cost")),
        "background is LearnedDrop(",
        "give a LearnedDrop(dim, output='logit')",
    ),
    "background of frobenius": case(
        lambda: dt.ClusteringLoss(background=dt.LearnedDrop(4)), "but form is 'frobenius'", "leave them out"
    ),
    "clustering negatives": case(
        lambda: dt.ClusteringLoss("contrastive", negatives="all"), "negatives is 'all'", "choose 'item'"
    ),
    "clustering gamma": case(lambda: dt.ClusteringLoss(gamma=0), "gamma is 0", "give a finite number > 0"),
    "clustering contrast": case(
        lambda: dt.ClusteringLoss("contrastive", gamma_contrast=-1), "gamma_contrast is -1", "give a finite number > 0"
    ),
    "clustering reduction": case(lambda: dt.ClusteringLoss(reduction=None), "reduction is None", "choose 'mean'"),
}

CASES = {
    f"{part}: {name}": row
    for part, table in {
        "input": INPUT,
        "options": OPTIONS,
        "drops": DROPS,
        "charges": CHARGES,
        "orders": ORDERS,
        "wrong": WRONG,
    }.items()
    for name, row in table.items()
}


@pytest.mark.parametrize(("call", "says", "does"), CASES.values(), ids=CASES)
def test_message_says_what_arrived_and_what_to_do(call, says, does):
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        call()
    assert does in str(caught.value)


def test_every_message_has_a_case():
    met = set()
    for call, _, _ in CASES.values():
        try:
            call()
        except ValueError as error:
            last = error.__traceback__
            while last.tb_next:
                last = last.tb_next
            met.add((Path(last.tb_frame.f_code.co_filename).stem, last.tb_lineno))
    missed = []
    for name in MODULES:
        source = Path(importlib.import_module(f"dropdtw.torch.{name}").__file__).read_text()
        raises = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Raise)]
        missed += [
            f"{name}.py:{node.lineno} {ast.unparse(node)}"
            for node in raises
            if not any((name, line) in met for line in range(node.lineno, node.end_lineno + 1))
        ]
    assert missed == []


def test_unknown_keywords_get_the_closest_name():
    with pytest.raises(TypeError, match=r"drop_dtw has no option dropx; did you mean drop_x\?"):
        dt.drop_dtw(torch.zeros(1, 2, 3), dropx=1)
