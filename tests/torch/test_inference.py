"""`loss.align` and `loss.posterior`: what a loss decides, as alignments, with exactly the costs that it trains on."""

import inspect
from datetime import timedelta

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

import dropdtw
from dropdtw import orders
from dropdtw import torch as dt
from dropdtw.costs import Softmax
from dropdtw.torch import inference
from dropdtw.torch.batch import pairs
from loss_cases import LENGTHS, X_LENGTHS, Z_LENGTHS, batch, items, learned

HARD = {"reducer": "hard", "reduction": "none"}
DROPS = {
    "percentile": ("percentile:40", None),
    "both sides": (0.5, "percentile:70"),
    "only z": (None, 0.8),
    "tensors": (torch.rand(3, 7).double(), torch.rand(3, 4).double()),
    "parameter": (torch.nn.Parameter(torch.tensor(0.4)), None),
    "learned costs": (learned("cost"), learned("cost")),
}
LOGITS = {"logit": "logit:30", "learned logit": learned("logit"), "anchored logit": learned("logit", anchor=40)}
OPTIONS = {
    "plain": {},
    "steps": {"many_to_one": False, "contiguous": True},
    "window": {"window": 0.9},
    "charges": {"warp": torch.tensor([0.1, 0.2, 0.3])},
}
MATCH = ("softmax", "softmax:3", "cosine", "sqeuclidean", "cityblock", "chebyshev", "correlation")


def own(Z, X):
    return (Z @ X.mT).abs()


LOSSES = {
    **{f"{name}, {match}": (dt.DropDTWLoss, DROPS[name], {"match": match}) for name in DROPS for match in MATCH},
    **{f"{name}, {m}": (dt.DropDTWLoss, (drop,), {"match": m}) for name, drop in LOGITS.items() for m in MATCH[:2]},
    **{f"{make.__name__}, {m}": (make, (), {"match": m})
       for make in (dt.AlignmentLoss, dt.SmoothDTWLoss, dt.SoftDTWLoss, dt.OTAMLoss) for m in (*MATCH, own)},
    "openings": (dt.DropDTWLoss, (0.3, 0.3), {"open_x": torch.tensor(0.2), "open_z": 0.1, "match": "cosine"}),
    "as printed": (dt.DropDTWLoss, (0.3, 0.4), {"method": "drop_dtw_paper", "match": "cosine"}),
    "threshold": (dt.AlignmentLoss, (), {"method": "lcss", "threshold": "percentile:40", "match": "cosine"}),
    "D3TW": (dt.D3TWLoss, (), {}),
    "divergence's parent": (dt.SoftDTWLoss, (), {"window": 3}),
}  # fmt: skip


def check(loss, Z, X, **how):
    """The law: with the hard minimum and no normalization, the value of each item is its alignment's cost."""
    found = loss.align(Z, X, **how)
    values = loss.per_item(Z, X, **how)
    assert [a.cost for a in found] == pytest.approx(values.tolist(), rel=1e-6, abs=1e-9)
    assert [a.rescore() for a in found] == pytest.approx([a.cost for a in found], rel=1e-5, abs=1e-6)
    return found


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_value_of_an_item_is_its_alignments_cost(name, dtype):
    make, drops, options = LOSSES[name]
    Z, X = (a.requires_grad_() for a in batch(dtype=dtype))
    for more in OPTIONS.values() if make is dt.DropDTWLoss and options.keys() == {"match"} else ({},):
        told = {**LENGTHS, "x_lengths": [5, 7, 6]}
        found = check(make(*drops, **options, **more, **HARD), Z, X, **told)
        assert [a.shape for a in found] == [(3, 5), (2, 7), (4, 6)]
    assert (
        make(*drops, **options).align(Z, X, **told)[0].labels.tolist()
        == make(*drops, **options, **HARD).align(Z, X, **told)[0].labels.tolist()
    )  # whatever the minimum is in training


@pytest.mark.parametrize("order", [orders.any_order(0, 1), [[1, 0], orders.any_order(0, 1), None], [1, 0]])
def test_orders_and_ids_are_those_of_the_loss(order):
    Z, X = batch()
    Z = Z[:, :2]
    for told in ({"order": order}, {"order": order, "ids": np.array([[0, 0], [0, 1], [1, 1]])}):
        found = check(dt.DropDTWLoss("percentile:30", **HARD), Z, X, **told)
        assert found[0].walk.tolist() in ([0, 1], [1, 0])
    loss = dt.DropDTWLoss("percentile:30", order=order, **HARD)
    assert torch.equal(loss(Z, X), dt.DropDTWLoss("percentile:30", **HARD)(Z, X, order=order))
    check(loss, Z, X)


def test_positions_are_those_of_the_frames_as_given():
    Z, X = batch()
    there = torch.rand(3, 7, generator=torch.Generator().manual_seed(0)) < 0.7
    X = X.where(there[..., None], torch.nan)
    drop_x = torch.rand(3, 7).double()
    loss = dt.DropDTWLoss(drop_x, match="cosine", **HARD)
    for lengths in ({}, LENGTHS):
        for b, a in enumerate(check(loss, Z, X, x_mask=there, **lengths)):
            n = X_LENGTHS[b] if lengths else 7
            assert a.shape == (Z_LENGTHS[b] if lengths else 4, n)
            assert np.array_equal(a.missing_x, ~there[b, :n].numpy())
            assert (a.labels[a.missing_x] == -1).all()
    p = loss.posterior(Z, X, x_mask=there)[0]
    assert p.match.shape == (4, 7)
    assert (p.match[:, ~there[0].numpy()] == 0).all()
    assert (p.drop_x + p.match.max(0) > 0)[there[0].numpy()].all()


def test_posteriors_are_those_of_the_soft_minimum():
    Z, X = batch()
    loss = dt.DropDTWLoss("percentile:40", match="sqeuclidean", reducer="soft", gamma=0.7, reduction="none")
    found = loss.posterior(Z, X, **LENGTHS)
    assert [p.cost for p in found] == pytest.approx(loss(Z, X, **LENGTHS).tolist())
    assert [p.gamma for p in found] == [0.7] * 3
    assert loss.posterior(Z, X, gamma=0.1)[0].gamma == 0.1
    C = dt.sqeuclidean(Z, X).requires_grad_()
    drop = dt.percentile_drop(C, 40).detach()
    (M,) = torch.autograd.grad(dt.drop_dtw(C, drop, reducer="soft", gamma=0.7).sum(), C)
    for p, m in zip(loss.posterior(Z, X), M, strict=True):
        assert p.match == pytest.approx(m.numpy())


def test_options_can_differ_at_inference_and_leave_the_loss_alone():
    Z, X = batch()
    loss = dt.DropDTWLoss(learned("logit"), open_x=torch.nn.Parameter(torch.tensor(0.1)), match="softmax:2")
    before = repr(loss), [name for name, _ in loss.named_parameters()]
    steps = loss.align(Z, X, many_to_one=False, contiguous=True)
    for a in steps:
        assert (a.M.sum(0) <= 1).all()
        assert len({s.label for s in a.segments()}) == len(a.segments())
    drop = dropdtw.align(*(a[0].numpy() for a in (Z, X)), 0.5, match=Softmax(30.0))
    assert loss.align(Z, X, drop_x=0.5, open_x=0.0, match="softmax:30")[0].labels.tolist() == drop.labels.tolist()
    suggested = loss.align(Z, X, drop_x="suggest", open_x=0.0, match="cosine")[0]
    assert suggested.cost == dropdtw.align(Z[0].numpy(), X[0].numpy(), "suggest", match="cosine").cost
    assert (repr(loss), [name for name, _ in loss.named_parameters()]) == before
    with pytest.raises(TypeError, match="no option contigous; did you mean contiguous"):
        loss.align(Z, X, contigous=True)


def test_a_parametrized_charge_cannot_be_changed_by_accident():
    class Exp(torch.nn.Module):
        def forward(self, x):
            return x.exp()

        def right_inverse(self, y):
            return torch.as_tensor(y).log()

    Z, X = batch()
    loss = dt.DropDTWLoss(0.5, match="cosine", open_x=torch.nn.Parameter(torch.tensor(0.2)))
    torch.nn.utils.parametrize.register_parametrization(loss, "open_x", Exp())
    before = loss.open_x.item()
    assert loss.align(Z, X, many_to_one=False)[0].problem.given.charges.open_x == pytest.approx(before)
    with pytest.raises(ValueError, match=r"open_x is 0.7, but the loss parametrizes it; use loss\.aligner\.replace"):
        loss.align(Z, X, open_x=0.7)
    assert loss.open_x.item() == before


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_any_float_type_is_aligned(dtype):
    Z, X = (a.to(dtype).requires_grad_() for a in batch())
    check(dt.DropDTWLoss(0.4, **HARD), Z, X)
    with torch.autocast("cpu", torch.bfloat16):
        inside = dt.DropDTWLoss(0.4).align(Z, X)
    assert [a.cost for a in inside] == [a.cost for a in dt.DropDTWLoss(0.4).align(Z, X)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_functions_take_tensors_of_any_float_type_with_a_gradient(dtype):
    Z, X = (a[0].to(dtype).requires_grad_() for a in batch())
    plain = [a.detach().to(torch.float64 if dtype == torch.float64 else torch.float32).numpy() for a in (Z, X)]
    drop = torch.full((7,), 0.5, dtype=dtype, requires_grad=True)
    aligner = dropdtw.Aligner(0.5, match="cosine")
    assert dropdtw.align(Z, X, drop, match="cosine").cost == aligner.align(*plain).cost
    assert aligner.distance(Z, X) == aligner.distance(*plain)
    C = dt.cosine(Z[None], X[None])[0]
    exact = C.detach().to(torch.float64 if dtype == torch.float64 else torch.float32).numpy()
    assert dropdtw.solve(C, 0.5).cost == dropdtw.solve(exact, 0.5).cost


def test_losses_built_on_another_expose_its_alignments():
    Z, X = batch()
    inner = dt.DropDTWLoss(0.4)
    for loss in (dt.MarginLoss(inner), torch.nn.DataParallel(inner).module):
        assert [a.cost for a in loss.align(Z, X)] == [a.cost for a in inner.align(Z, X)]
        assert loss.posterior(Z, X)[1].cost == inner.posterior(Z, X)[1].cost
        assert loss.aligner == inner.aligner
    assert dt.SoftDTWDivergence().align(Z, X)[0].cost == dt.SoftDTWLoss().align(Z, X)[0].cost


# --- Aligners ----------------------------------------------------------------------------------------------------


ALIGNERS = [
    dropdtw.Aligner("percentile:30", match="softmax:10", many_to_one=False, contiguous=True),
    dropdtw.Aligner(0.3, 0.2, match="cosine", open_x=0.1, warp=0.2, window=3),
    dropdtw.Aligner("logit:30", reducer="soft", gamma=0.1),
    dropdtw.Aligner(match="sqeuclidean", method="otam"),
    dropdtw.Aligner(0.5, order=orders.any_order(0, 1, 2, 3)),
]


@pytest.mark.parametrize("aligner", ALIGNERS, ids=repr)
def test_a_loss_of_an_aligner_aligns_as_the_aligner_does(aligner):
    Z, X = batch()
    loss = dt.AlignmentLoss(aligner)
    softmax = aligner.replace(match="softmax") if aligner.match == "auto" else aligner
    for a, (z, x) in zip(loss.align(Z, X), zip(Z.numpy(), X.numpy(), strict=True), strict=True):
        b = softmax.align(z, x)
        assert a.cost == pytest.approx(b.cost)
        assert a.labels.tolist() == b.labels.tolist()
    again = loss.aligner
    assert again.replace(reducer=aligner.reducer, match=aligner.match, gamma=aligner.gamma) == aligner
    assert dt.AlignmentLoss(again).aligner == again
    assert loss.match == ("softmax" if aligner.match == "auto" else aligner.match)
    assert loss.reducer == ("smooth" if aligner.reducer == "hard" else aligner.reducer)
    assert dt.AlignmentLoss(aligner, reducer="hard").reducer == "hard"


@pytest.mark.parametrize("normalize", [None, "x", "z", "both", "symmetric2"])
def test_losses_and_functions_divide_alike(normalize):
    Z, X = batch()
    options = {"match": "cosine", "reduction": "none"}
    if normalize == "symmetric2":
        loss = dt.AlignmentLoss(method=normalize, normalize="pattern", **options)
    else:
        loss = dt.DropDTWLoss("percentile:30", normalize=normalize, **options)
    values = loss(Z, X, **LENGTHS).tolist()
    parts = items(Z, X)
    assert [loss.aligner.distance(z, x) for z, x in parts] == pytest.approx(values)
    table = loss.aligner.pairwise(*zip(*parts, strict=True))
    assert np.diag(table) == pytest.approx(values)
    assert loss.aligner.pairwise([z for z, _ in parts]) == pytest.approx(
        loss.aligner.pairwise([z for z, _ in parts], [z for z, _ in parts])
    )
    one_by_z = dt.AlignmentLoss(method="asymmetric", normalize="pattern", **options)
    z, x = Z[:1, :3], X[:1, :4]
    assert one_by_z(z, x).item() == pytest.approx(one_by_z.aligner.distance(z[0], x[0]))
    limited = loss.aligner.distance(*parts[0], max_cost=values[0] + 1e-6)
    assert limited == pytest.approx(values[0])


def test_the_aligner_of_a_loss_has_its_present_values():
    drop, opening = (torch.nn.Parameter(torch.tensor(v)) for v in (0.25, 0.5))
    loss = dt.DropDTWLoss(drop, torch.tensor([0.5, 1.0]), open_x=opening)
    assert loss.aligner.drop_x == 0.25
    assert loss.aligner.drop_z.tolist() == [0.5, 1.0]
    assert loss.aligner.open_x == 0.5
    with torch.no_grad():
        drop += 0.5
    assert loss.aligner.drop_x == 0.75
    network = learned("cost")
    aligner = dt.DropDTWLoss(network).aligner
    assert aligner.drop_x is network
    assert next(name for name, _ in dt.DropDTWLoss(aligner).named_parameters()).startswith("drop_x.network")
    with pytest.raises(ValueError, match=r"which an Aligner cannot run; use loss\.align"):
        aligner.align(*items(*batch())[0])


def test_help_says_every_option():
    for make in (dt.AlignmentLoss, dt.DropDTWLoss, dt.SoftDTWLoss, dt.OTAMLoss, dt.D3TWLoss):
        shown = inspect.signature(make).parameters
        made = make()
        assert all(p.kind is not p.VAR_KEYWORD for p in shown.values())
        for name, option in shown.items():
            if name not in ("aligner", "margin"):
                assert getattr(made, name) == option.default
    assert {"drop_x", "open_z", "threshold"} <= inspect.signature(dt.DropDTWLoss).parameters.keys()
    assert "drop_x" not in inspect.signature(dt.SoftDTWLoss).parameters
    assert inspect.signature(dt.D3TWLoss).parameters["reducer"].default == "soft"


def test_a_class_of_your_own_has_its_own_signature():
    class Mine(dt.DropDTWLoss, gamma=0.5):
        def __init__(self, extra=1, **options):
            super().__init__(0.3, **options)
            self.extra = extra

    assert next(iter(inspect.signature(Mine).parameters)) == "extra"
    assert Mine().gamma == 0.5
    assert Mine(gamma=2.0).changed(gamma=3.0).extra == 1


def test_alignments_of_a_loss_have_times():
    loss = dt.DropDTWLoss("percentile:30", match="sqeuclidean")
    Z, X = torch.eye(3)[None].repeat(2, 1, 1), torch.randn(2, 8, 3, generator=torch.Generator().manual_seed(0))
    seconds = [np.cumsum(np.arange(1.0, 9)), np.datetime64("2024-05-01T12:00:00") + np.arange(5)]
    given = {"x_lengths": torch.tensor([8, 5]), "order": orders.lasting(range(3), at_least=1)}
    for a, times, n in zip(loss.align(Z, X, times=seconds, **given), seconds, (8, 5), strict=True):
        assert a.times_x.tolist() == times.tolist()
        assert a.shape == (3, n)
        last = a.segments()[-1]
        assert last.start_time == times[last.start]
    half = {"method": "steps", "order": orders.lasting(range(3), at_least=timedelta(seconds=1))}
    for a, p in zip(loss.align(Z, X, fps=2, **half), loss.posterior(Z, X, fps=2, **half), strict=True):
        assert p.match.shape == a.shape
        assert min(s.stop_time - s.start_time for s in a.segments()) >= 1
    mask = torch.ones(2, 8, dtype=torch.bool)
    mask[:, 2] = False
    a, _ = loss.align(Z, X, x_mask=mask, fps=4)
    assert a.labels[2] == -1
    assert a.times_x[-1] == 7 / 4
    with pytest.raises(ValueError, match="give a list of 2, the times of each item"):
        loss.align(Z, X, times=seconds[0])
    with pytest.raises(ValueError, match="times has 8 entries for X, which has 5 elements"):
        loss.align(Z, X, times=seconds[:1] * 2, x_lengths=given["x_lengths"])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, about ∞, inside the interpreter
@pytest.mark.parametrize(
    ("drops", "how"),
    [
        (("percentile:40", 0.7), {}),
        ((0.4, None), {"many_to_one": False, "contiguous": True, "warp": torch.tensor([0.1, 0.2, 0.3])}),
        ((), {"method": "symmetric2"}),
        ((0.4, None), {"method": "ctc"}),
    ],
    ids=str,
)
def test_the_cuda_kernels_find_the_alignments_of_a_loss(drops, how, monkeypatch):
    triton = pytest.importorskip("dropdtw.executors.triton", reason="Triton is not installed")
    Z, X = batch()
    loss = (dt.DropDTWLoss if drops else dt.AlignmentLoss)(*drops, match="cosine", **how)
    slow = loss.align(Z, X, **LENGTHS)
    if triton.INTERPRETED:
        monkeypatch.setattr(inference, "executor_of", lambda X: "triton")
        fast = loss.align(Z, X, **LENGTHS)
    else:
        fast = loss.cuda().align(Z.cuda(), X.cuda(), **LENGTHS)
    for a, b in zip(fast, slow, strict=True):
        assert a.cost == pytest.approx(b.cost, abs=1e-9)
        assert a.rescore() == pytest.approx(a.cost, abs=1e-9)
        for name in ("pairs", "labels", "paid_x", "paid_z", "charged"):
            assert np.array_equal(getattr(a, name), getattr(b, name)), name
        assert a.weights is b.weights is None or np.array_equal(a.weights, b.weights)


def test_rules_of_single_problems_leave_the_kernels_out():
    Z, X = batch()
    loss = dt.DropDTWLoss(0.3, match="cosine").changed(drop_x="suggest")
    assert inference.traces(loss, pairs(Z, X, None, None, None)) is None


def test_errors_of_an_item_say_which():
    Z, X = [torch.randn(3, 8), torch.randn(6, 8)], [torch.randn(9, 8), torch.randn(4, 8)]
    loss = dt.DropDTWLoss("percentile:15")
    for verb in (loss.align, loss.posterior):
        with pytest.raises(ValueError, match=r"^item 1: Z has 6 elements and X has 4"):
            verb(Z, X, method="steps")
        with pytest.raises(ValueError, match=r"^Z has 6 elements and X has 4"):
            verb(Z[1:], X[1:], method="steps")
    with pytest.raises(ValueError, match=r"^item 1: every alignment is forbidden"):
        dt.DropDTWLoss(1.0, match=lambda Z, X: (Z @ X.mT) / (torch.arange(2) == 0)[:, None, None]).align(
            torch.ones(2, 2, 2), torch.ones(2, 3, 2)
        )


@pytest.mark.parametrize("drop", ["percentile:0.3", "logit:0.3"])
def test_a_fraction_of_one_percent_warns_as_in_align(drop):
    kind = drop.partition(":")[0]
    with pytest.warns(UserWarning, match=rf"^drop_x is '{drop}', less than one percent .* '{kind}:30'"):
        dt.DropDTWLoss(drop)


def test_a_learned_aligner_says_in_one_line_that_json_cannot_hold_it():
    with pytest.raises(ValueError, match=r"^drop_x is a LearnedDrop, which JSON cannot hold; .*save the state_dict\)$"):
        dt.DropDTWLoss(dt.LearnedDrop(8)).aligner.to_dict()
