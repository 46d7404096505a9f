"""The losses: laws that hold for every one of them, and their values against plain computations."""

import copy

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

import dropdtw
import oracle
from dropdtw import drops
from dropdtw import torch as dt
from dropdtw.costs import Softmax
from dropdtw.drops import LogitPercentile
from dropdtw.torch.batch import pairs
from loss_cases import DETACHED, LENGTHS, LOSSES, MIXING, X_LENGTHS, Z_LENGTHS, batch, items

every_loss = pytest.mark.parametrize("name", LOSSES)


# --- Laws of every loss ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in LOSSES if n not in DETACHED])
def test_derivatives_are_those_of_the_values(name):
    loss = LOSSES[name](reduction="none").double()
    Z, X = (a.requires_grad_() for a in batch())
    value = loss(Z, X, **LENGTHS)
    assert (value.detach() != 0).all()  # no hinge sets the derivative to 0
    assert torch.autograd.gradcheck(lambda *a: loss(*a, **LENGTHS), (Z, X))
    for parameter in loss.parameters():
        (by_parameter,) = torch.autograd.grad(loss(Z, X, **LENGTHS).sum(), parameter)
        flat, step = parameter.data.view(-1), 1e-6
        at = int(by_parameter.abs().argmax())
        sides = []
        for sign in (1, -1):
            flat[at] += sign * step
            sides.append(loss(Z, X, **LENGTHS).sum().item())
            flat[at] -= sign * step
        assert by_parameter.view(-1)[at].item() == pytest.approx((sides[0] - sides[1]) / (2 * step), rel=1e-5)


@pytest.mark.parametrize("name", DETACHED)
def test_derivatives_are_those_for_drop_costs_held_fixed(name):
    loss = LOSSES[name]()
    Z, X = (a.requires_grad_() for a in batch())
    p = pairs(Z, X, **LENGTHS)
    if name == "drop-dtw":
        frozen = dt.percentile_drop(dt.softmax(p.Z, p.X, ids=p.first_of_kind()), 30, p.z_lengths, p.x_lengths).detach()
        held = dt.DropDTWLoss(frozen)
    else:
        S = (p.Z @ p.X.mT).masked_fill(p.first_of_kind()[..., None] < 0, -torch.inf)
        frozen = dt.percentile_logit(S, 30, p.z_lengths, p.x_lengths)
        held = copy.deepcopy(loss)
        held._logit = lambda p: frozen
    assert torch.autograd.gradcheck(lambda *a: held(*a, **LENGTHS), (Z, X))
    ours, theirs = (torch.autograd.grad(f(Z, X, **LENGTHS), (Z, X)) for f in (loss, held))
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def poisoned(A, lengths, value):
    A = A.clone()
    for a, n in zip(A, lengths, strict=True):
        a[n:] = value
    return A.requires_grad_()


@every_loss
@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e30])
def test_what_stands_in_the_padding_has_no_influence(name, poison):
    loss = LOSSES[name](reduction="none")
    found = []
    for value in (0.0, poison):
        Z, X = (poisoned(a, n, value) for a, n in zip(batch(dtype=torch.float32), LENGTHS.values(), strict=True))
        each = loss(Z, X, **LENGTHS)
        loss.zero_grad()
        each.sum().backward()
        found.append([each.detach(), Z.grad, X.grad, *(q.grad for q in loss.parameters())])
    for clean, dirty in zip(*found, strict=True):
        assert torch.isfinite(clean).all()
        assert torch.equal(clean, dirty)
    for grad, lengths in zip(found[0][1:3], LENGTHS.values(), strict=True):
        assert all((g[n:] == 0).all() and (g[:n] != 0).any() for g, n in zip(grad, lengths, strict=True))


@pytest.mark.parametrize("name", [n for n in LOSSES if n not in (*MIXING, "d3tw")])
def test_items_are_worth_what_they_are_alone(name):
    loss = LOSSES[name](reduction="none").double()
    Z, X = (a.requires_grad_() for a in batch())
    together = loss(Z, X, **LENGTHS)
    by_z, by_x = torch.autograd.grad(together.sum(), (Z, X))
    for b, (k, n) in enumerate(zip(Z_LENGTHS, X_LENGTHS, strict=True)):
        z, x = (a.detach()[None, b, :m].clone().requires_grad_() for a, m in ((Z, k), (X, n)))
        alone = loss(z, x)
        assert alone.item() == pytest.approx(together[b].item(), rel=1e-12)
        for mine, ours, m in zip(torch.autograd.grad(alone.sum(), (z, x)), (by_z, by_x), (k, n), strict=True):
            torch.testing.assert_close(mine[0], ours[b, :m], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["soft-dtw", "soft-dtw divergence"])
def test_differences_do_not_even_round_with_the_padding(name):
    loss = LOSSES[name](reduction="none")
    Z, X = batch(dtype=torch.float32)
    together = loss(Z, X, **LENGTHS)
    for b, (k, n) in enumerate(zip(Z_LENGTHS, X_LENGTHS, strict=True)):
        assert loss(Z[None, b, :k], X[None, b, :n]).item() == together[b].item()


@every_loss
def test_lists_are_padded_batches(name):
    loss = LOSSES[name]()
    Z, X = batch(dtype=torch.float32)
    ragged = [[a[:n] for a, n in zip(A, m, strict=True)] for A, m in zip((Z, X), LENGTHS.values(), strict=True)]
    assert torch.equal(loss(*ragged), loss(Z, X, **LENGTHS))
    as_tensors = {k: torch.tensor(v) for k, v in LENGTHS.items()}
    assert torch.equal(loss(*ragged), loss(Z, X, **as_tensors))
    even = loss([*Z], [*X])
    assert torch.equal(even, loss(Z, X))
    assert even != loss(*ragged)


@every_loss
def test_one_length_alone_leaves_the_other_side_whole(name):
    loss = LOSSES[name]()
    Z, X = batch(dtype=torch.float32)
    assert torch.equal(loss(Z, X, x_lengths=X_LENGTHS), loss(Z, X, z_lengths=[4] * 3, x_lengths=X_LENGTHS))
    assert torch.equal(loss(Z, X, z_lengths=Z_LENGTHS), loss(Z, X, z_lengths=Z_LENGTHS, x_lengths=[7] * 3))


@every_loss
def test_reductions(name):
    Z, X = batch()
    each, mean, total = (LOSSES[name](reduction=r)(Z, X, **LENGTHS) for r in ("none", "mean", "sum"))
    assert each.shape == (3,)
    assert len(set(each.tolist())) == 3
    assert mean.item() == pytest.approx(each.mean().item())
    assert total.item() == pytest.approx(each.sum().item())


@every_loss
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_single(name, dtype):
    loss = LOSSES[name](reduction="none")
    half, single = batch(dtype=dtype), [a.to(dtype).float() for a in batch(dtype=dtype)]
    grads = []
    for Z, X in (half, single):
        Z.requires_grad_(), X.requires_grad_()
        value = loss(Z, X, **LENGTHS)
        assert value.dtype == torch.float32
        grads.append((value, *torch.autograd.grad(value.sum(), (Z, X))))
    assert torch.equal(grads[0][0], grads[1][0])
    for low, high in zip(grads[0][1:], grads[1][1:], strict=True):
        assert low.dtype == dtype
        assert torch.equal(low, high.to(dtype))


@every_loss
def test_autocast_does_not_reach_the_costs(name):
    loss = LOSSES[name]()
    Z, X = batch(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        inside = loss(Z, X, **LENGTHS)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, loss(Z, X, **LENGTHS))


@every_loss
def test_inputs_are_left_alone_and_modules_can_be_copied_and_shown(name):
    loss = LOSSES[name]()
    Z, X = batch(dtype=torch.float32)
    before = Z.clone(), X.clone()
    value = loss(Z, X, **LENGTHS)
    assert torch.equal(Z, before[0])
    assert torch.equal(X, before[1])
    assert torch.equal(copy.deepcopy(loss)(Z, X, **LENGTHS), value)
    assert "reduction='mean'" in repr(loss)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # PyTorch's own
@pytest.mark.parametrize("name", ["drop-dtw of logits", "soft-dtw divergence", "d3tw", "margin", "clustering"])
def test_compiled_losses_are_the_same(name):
    loss = LOSSES[name]()
    Z, X = (a.requires_grad_() for a in batch(dtype=torch.float32))
    lengths = {k: torch.tensor(v) for k, v in LENGTHS.items()}
    found = []
    for f in (loss, torch.compile(loss, backend="aot_eager", fullgraph=True)):
        value = f(Z, X, **lengths)
        found.append((value, *torch.autograd.grad(value, (Z, X))))
    for plain, compiled in zip(*found, strict=True):
        torch.testing.assert_close(plain, compiled)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@every_loss
def test_cuda_gives_what_the_cpu_gives(name):
    loss, found = LOSSES[name](), []
    for device in ("cpu", "cuda"):
        Z, X = (a.to(device).requires_grad_() for a in batch())
        value = copy.deepcopy(loss).to(device)(Z, X, **LENGTHS)
        found.append([t.cpu() for t in (value, *torch.autograd.grad(value, (Z, X)))])
    for cpu, cuda in zip(*found, strict=True):
        torch.testing.assert_close(cpu, cuda, rtol=1e-5, atol=1e-7)


# --- Values ------------------------------------------------------------------------------------------------------


def drop_dtw_loop(C, d_x, gamma):
    """Algorithm 1 with smoothMin, as printed."""
    K, N = C.shape

    def smooth(*values):
        v = np.array([x for x in values if np.isfinite(x)])
        if not len(v):
            return np.inf
        weight = np.exp(-(v - v.min()) / gamma)
        return float(v @ weight / weight.sum())

    plus, minus = np.full((2, K + 1, N + 1), np.inf)
    best = np.full((K + 1, N + 1), np.inf)
    best[0] = np.concatenate([[0.0], np.cumsum(d_x)])
    for i in range(1, K + 1):
        for j in range(1, N + 1):
            plus[i, j] = C[i - 1, j - 1] + smooth(best[i - 1, j - 1], best[i, j - 1], plus[i - 1, j])
            minus[i, j] = d_x[j - 1] + best[i, j - 1]
            best[i, j] = smooth(plus[i, j], minus[i, j])
    return best[K, N]


@pytest.mark.parametrize("temperature", [0.5, 10.0])
def test_drop_dtw_loss_is_algorithm_1_over_softmax_costs(temperature):
    Z, X = batch(scale=2.0)
    found = dt.DropDTWLoss("percentile:40", match=f"softmax:{temperature}", gamma=0.7, reduction="none")(
        Z, X, **LENGTHS
    )
    for value, (z, x) in zip(found.tolist(), items(Z, X), strict=True):
        C = Softmax(temperature)(z, x)
        assert value == pytest.approx(drop_dtw_loop(C, np.full(len(x), np.percentile(C, 40)), 0.7), rel=1e-10)


def test_the_temperature_divides():
    Z, X = batch()
    sharper = dt.SmoothDTWLoss(match="softmax:0.1")(Z, X, **LENGTHS)
    assert sharper.item() == pytest.approx(dt.SmoothDTWLoss()(10 * Z, X, **LENGTHS).item())


def test_logit_drop_is_that_of_the_numpy_side():
    Z, X = batch()
    Z[0, 2] = Z[0, 0]  # counts once
    found = dt.DropDTWLoss("logit:30", match="softmax:0.8", reduction="none")(Z, X, **LENGTHS)
    for value, (z, x) in zip(found.tolist(), items(Z, X), strict=True):
        C, d_x = Softmax(0.8).with_drop_logits(z, x, LogitPercentile(30).logits, 1e-5)
        assert value == pytest.approx(drop_dtw_loop(C, d_x, 1.0), rel=1e-10)
        assert value == pytest.approx(
            dropdtw.distance(z, x, "logit:30", match=Softmax(0.8), reducer="smooth"), rel=1e-10
        )


def test_constant_drops_on_both_sides_are_those_of_the_numpy_side():
    Z, X = batch()
    for method in ("drop_dtw", "drop_dtw_paper"):
        loss = dt.DropDTWLoss(0.2, 0.3, match="cosine", method=method, gamma=0.5, reduction="none")
        for value, (z, x) in zip(loss(Z, X, **LENGTHS).tolist(), items(Z, X), strict=True):
            assert value == pytest.approx(
                dropdtw.distance(z, x, 0.2, 0.3, match="cosine", method=method, reducer="smooth", gamma=0.5), rel=1e-10
            )
    loss = dt.DropDTWLoss("percentile:60", "percentile:20", match="sqeuclidean", reducer="soft", reduction="none")
    for value, (z, x) in zip(loss(Z, X, **LENGTHS).tolist(), items(Z, X), strict=True):
        C = ((z[:, None] - x) ** 2).sum(-1)
        assert value == pytest.approx(oracle.soft(C, np.percentile(C, 60), np.percentile(C, 20)), rel=1e-10)


def test_printed_algorithm_counts_alignments_twice():
    Z, X = batch()
    both = [dt.DropDTWLoss(0.2, 0.3, reducer="soft", method=m)(Z, X) for m in ("drop_dtw", "drop_dtw_paper")]
    assert both[1] < both[0] - 0.1


@pytest.mark.parametrize("drop", [0.3, torch.tensor(0.3), torch.full((3, 7), 0.3, dtype=torch.float64)])
def test_drop_cost_as_number_or_tensor(drop):
    Z, X = batch()
    expected = dt.DropDTWLoss(0.3, match="cosine")(Z, X, **LENGTHS)
    assert dt.DropDTWLoss(drop, match="cosine")(Z, X, **LENGTHS).item() == pytest.approx(expected.item(), rel=1e-6)


def test_drop_cost_as_a_parameter_is_trained():
    Z, X = batch()
    loss = dt.DropDTWLoss(torch.nn.Parameter(torch.tensor(0.3)), match="cosine", reducer="soft")
    loss(Z, X, **LENGTHS).backward()
    assert [name for name, _ in loss.named_parameters()] == ["drop_x"]
    dropped = [oracle.marginals(dropdtw.costs.cosine(z, x), 0.3)["drop_x"].sum() for z, x in items(Z, X)]
    assert loss.drop_x.grad.item() == pytest.approx(np.mean(dropped), rel=1e-6)


BASELINES = {
    "smooth": (dt.SmoothDTWLoss, lambda z, x: Softmax()(z, x), "dtw"),
    "soft": (dt.SoftDTWLoss, lambda z, x: ((z[:, None] - x) ** 2).sum(-1), "dtw"),
    "otam": (dt.OTAMLoss, lambda z, x: Softmax()(z, x), "otam"),
}


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("normalize", [None, "x", "z", "both"])
def test_baselines_are_their_tables(name, normalize):
    make, costs, method = BASELINES[name]
    Z, X = batch()
    found = make(gamma=0.4, normalize=normalize, reduction="none")(Z, X, **LENGTHS)
    for value, (z, x) in zip(found.tolist(), items(Z, X), strict=True):
        length = {None: 1, "x": len(x), "z": len(z), "both": len(z) + len(x)}[normalize]
        C = costs(z, x)
        if name == "smooth":
            expected = dropdtw.cost(C, method=method, reducer="smooth", gamma=0.4, executor="reference")
        else:
            expected = oracle.soft(C, method=method, gamma=0.4)
        assert value == pytest.approx(expected / length, rel=1e-10)


def test_options_reach_the_table():
    Z, X = batch()
    options = {"one_to_many": False, "many_to_one": False, "window": 2}
    found = dt.DropDTWLoss(0.3, 0.3, match="cosine", reducer="hard", reduction="none", **options)(Z, X, **LENGTHS)
    for value, (z, x) in zip(found.tolist(), items(Z, X), strict=True):
        C, band = dropdtw.costs.cosine(z, x), oracle.band(len(z), len(x), 2)
        told = {k: v for k, v in options.items() if k != "window"}
        assert value == pytest.approx(oracle.hard(C, 0.3, 0.3, band=band, **told))
    Z, X = batch(seed=2)
    runs = dt.DropDTWLoss(0.6, match="cosine", reducer="hard", contiguous=True, reduction="none")
    parts = [dropdtw.costs.cosine(z, x) for z, x in items(Z, X)]
    assert runs(Z, X, **LENGTHS).tolist() == pytest.approx([oracle.hard(C, 0.6, contiguous=True) for C in parts])
    assert oracle.hard(parts[1], 0.6, contiguous=True) > oracle.hard(parts[1], 0.6) + 0.1


def test_own_match_cost_is_taken_and_trained():
    Z, X = batch(dtype=torch.float32)
    own = dt.SmoothDTWLoss(match=lambda Z, X: dt.cosine(Z, X))
    assert torch.equal(own(Z, X, **LENGTHS), dt.SmoothDTWLoss(match="cosine")(Z, X, **LENGTHS))

    class Bilinear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.W = torch.nn.Parameter(torch.eye(3))

        def forward(self, Z, X):
            return Z @ self.W @ X.mT

    loss = dt.SmoothDTWLoss(match=Bilinear())
    loss(Z, X, **LENGTHS).backward()
    assert loss.match.W.grad.abs().sum() > 0
    assert "Bilinear" in repr(loss)


def test_own_match_cost_may_be_anything_in_the_padding():
    Z, X = batch(dtype=torch.float32)
    there = dt.costs.within(torch.empty(3, 4, 7), *(torch.tensor(n) for n in LENGTHS.values()))
    spoilt = dt.SmoothDTWLoss(match=lambda Z, X: torch.where(there, dt.cosine(Z, X), torch.nan))
    assert torch.equal(spoilt(Z, X, **LENGTHS), dt.SmoothDTWLoss(match="cosine")(Z, X, **LENGTHS))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_every_loss_refuses_nan_and_infinity_but_not_in_the_padding(name, value):
    Z, X = batch()
    X[0, 6] = value  # item 0 has 5
    loss = LOSSES[name]()
    assert torch.isfinite(loss(Z, X, **LENGTHS))
    X[1, 6, 2] = value
    with pytest.raises(ValueError, match=r"X\[1\] has NaN or infinity in element 6; remove such elements or fill"):
        loss(Z, X, **LENGTHS)


def test_background_of_a_classifier_passes_gradients():
    S = torch.randn(2, 6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    C = -S.log_softmax(-1)[:, :, 1:].mT
    rule = drops.Background.of_scores(S)
    found = dt.drop_dtw(C, rule, reducer="soft")
    torch.testing.assert_close(found, dt.drop_dtw(C, -S.log_softmax(-1)[..., 0], reducer="soft"))
    torch.testing.assert_close(found, dt.drop_dtw(C, drops.Background(S.softmax(-1)[..., 0]), reducer="soft"))
    (grad,) = torch.autograd.grad(found.sum(), S)
    torch.testing.assert_close(grad.sum(-1), torch.zeros(2, 6, dtype=torch.float64))  # a softmax sees no shift
    assert grad[..., 0].abs().min() > 0
    for b in range(2):  # the rule of one problem, from a tensor that requires a gradient
        alone = dropdtw.cost(C[b].detach(), drops.Background.of_scores(S[b]), reducer="soft")
        assert found[b].item() == pytest.approx(float(alone))
    loss = dt.DropDTWLoss(
        drops.Background(S.softmax(-1)[..., 0]), match=lambda Z, X: C, reducer="soft", reduction="none"
    )
    Z, X = torch.zeros(2, 3, 1, dtype=torch.float64), torch.zeros(2, 6, 1, dtype=torch.float64)
    torch.testing.assert_close(loss(Z, X), found)
