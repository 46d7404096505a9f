"""The clustering loss as one operator, in Triton's interpreter or on a GPU, against the general path."""

from itertools import product

import pytest

from fused_cases import DEVICE, QUIET, RAGGED, sequences, thorough

torch = pytest.importorskip("torch", reason="the losses need PyTorch: pip install dropdtw[torch]")

from dropdtw.torch import ClusteringLoss, DropDTWLoss, fused_clustering, stages  # noqa: E402
from dropdtw.torch.batch import pairs  # noqa: E402

pytestmark = QUIET
FORMS = {"frobenius": {"gamma": 1.5}, "contrastive": {"gamma": 1.5, "gamma_contrast": 2.0}}


def everything(form, Z, X, **how):
    value = ClusteringLoss(form, reduction="none", **FORMS[form])(Z, X, **how)
    weights = torch.arange(1, len(value) + 1, dtype=value.dtype, device=value.device)
    return [value.detach(), *torch.autograd.grad((value * weights).sum(), (Z, X))]


def check(switch, form, Z, X, tolerance=1e-11, **how):
    ran = switch(False)
    truth = everything(form, Z, X, **how)
    assert not ran
    ran = switch(True)
    ours = everything(form, Z, X, **how)
    assert ran == ["_value"]
    for a, b in zip(ours, truth, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
    with torch.no_grad():
        assert torch.equal(ClusteringLoss(form, reduction="none", **FORMS[form])(Z, X, **how), ours[0])
    return ours


SHAPES = [(2, 3, 6, 4), (1, 1, 1, 1), (1, 1, 9, 3), (1, 9, 1, 2), (1, 17, 3, 5), (1, 3, 66, 17)]
CASES = list(product(FORMS, SHAPES))


@pytest.mark.parametrize(("form", "shape"), thorough(CASES, [CASES[0], CASES[4], CASES[5], CASES[6], CASES[7]]))
def test_it_is_the_general_one(switch, form, shape):
    check(switch, form, *sequences(*shape))


@pytest.mark.parametrize("form", FORMS)
def test_in_single_precision(switch, form):
    Z, X = (a.detach().float().requires_grad_() for a in sequences(2, 4, 70))
    check(switch, form, Z, X, tolerance=2e-5)


@pytest.mark.parametrize("form", FORMS)
def test_ragged_batches_and_names(switch, form):
    Z, X = sequences()
    ours = check(switch, form, Z, X, **RAGGED, ids=torch.tensor([[-4, 7, -4], [0, 0, 1]], device=DEVICE))
    with torch.no_grad():
        for b in range(2):
            Z[b, RAGGED["z_lengths"][b] :] = torch.nan
            X[b, RAGGED["x_lengths"][b] :] = torch.inf
    again = everything(form, Z, X, **RAGGED, ids=torch.tensor([[-4, 7, -4], [0, 0, 1]], device=DEVICE))
    assert all(torch.equal(a, b) for a, b in zip(again, ours, strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_neighbors_and_padding_change_no_bit(switch, form):
    """Features have few digits, so their products are exact in any order of summation."""
    switch(True)
    Z, X = ((a.detach() * 4).round().float().div(4).requires_grad_() for a in sequences(2, 4, 66))
    z, x = [4, 3], [7, 66]
    whole = everything(form, Z, X, z_lengths=z, x_lengths=x)
    for b in range(2):
        alone = [a.detach()[b : b + 1, :n].requires_grad_() for a, n in ((Z, z[b]), (X, x[b]))]
        value, _, by_x = everything(form, *alone)
        assert torch.equal(whole[0][b], value[0])
        torch.testing.assert_close(whole[2][b, : x[b]], (b + 1) * by_x[0], rtol=1e-5, atol=1e-6)  # matrix products
        assert not whole[1][b, z[b] :].any()
        assert not whole[2][b, x[b] :].any()


def test_where_each_step_has_its_own_frame_nothing_changes(switch):
    """The norm is 0 there, and so is its derivative."""
    switch(True)
    steps = (100 * torch.eye(3, device=DEVICE))[None]
    Z, X = steps.clone().requires_grad_(), steps.div(1e4).requires_grad_()
    value = ClusteringLoss(gamma=0.01)(Z, X)
    assert value == 0
    assert not any(grad.any() for grad in torch.autograd.grad(value, (Z, X)))


def test_negatives_of_the_batch_take_the_general_path(switch):
    Z, X = sequences()
    ran = switch(True)
    ClusteringLoss("contrastive", negatives="batch")(Z, X)
    assert not ran


def test_losses_of_the_same_pairs_find_equal_steps_once(quick, switch, monkeypatch):
    switch(True)
    found = []
    rows = stages.kernels().rows
    original = rows.first_rows
    monkeypatch.setattr(rows, "first_rows", lambda *given: found.append(1) or original(*given))
    Z, X = sequences()
    align, cluster = DropDTWLoss("logit:30", normalize="x"), ClusteringLoss("contrastive")
    apart = align.per_item(Z, X, **RAGGED), cluster(Z, X, **RAGGED)
    assert len(found) == 2
    found.clear()
    p = pairs(Z, X, **RAGGED)
    assert torch.equal(align.values(p), apart[0])
    assert torch.equal(cluster.values(p).mean(), apart[1])
    assert len(found) == 1


def test_it_can_be_differentiated_once(switch):
    switch(True)
    Z, X = sequences()
    (first,) = torch.autograd.grad(ClusteringLoss()(Z, X), Z, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiated only once"):
        torch.autograd.grad(first.sum(), Z)


@pytest.mark.filterwarnings("ignore")  # torch.compile emits many warnings
def test_compiled_code_gives_the_same(switch):
    Z, X = sequences()
    switch(True)
    lengths = {name: torch.tensor(n, device=DEVICE) for name, n in RAGGED.items()}
    plain = everything("contrastive", Z, X, **lengths)
    loss = ClusteringLoss("contrastive", reduction="none", **FORMS["contrastive"])
    value = torch.compile(loss, fullgraph=True, backend="aot_eager")(Z, X, **lengths)
    by = torch.autograd.grad((value * torch.tensor([1.0, 2.0], device=DEVICE)).sum(), (Z, X))
    for a, b in zip((value, *by), plain, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("ragged", [False, True])
def test_the_operators_are_registered_as_compilers_want_them(ragged):
    """The fake implementations agree with the real ones."""
    Z, X = (a.detach() for a in sequences())
    lengths = [torch.tensor(n, device=DEVICE) if ragged else None for n in RAGGED.values()]
    for gradient in (False, True):
        given = (Z, X, None, *lengths, 1.5, None, gradient)
        value, made = fused_clustering.forward(*given)
        with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
            fake, said = fused_clustering.forward(*given)
        ours, theirs = ([(t.shape, t.dtype, t.stride()) for t in found] for found in ((value, *made), (fake, *said)))
        assert ours == theirs
