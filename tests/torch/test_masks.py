"""Masked frames: as if they had been deleted, in values and derivatives."""

import pytest

pytest.importorskip("torch")
import torch

from dropdtw import torch as dt
from dropdtw.torch import fused, masks
from loss_cases import LOSSES, MIXING, ORDER, Z_LENGTHS, batch, learned
from torch_cases import EXECUTORS, ORDERS, random

MASK = torch.tensor([[1, 0, 1, 1, 0, 1, 1], [0, 1, 1, 1, 1, 0, 0], [0, 0, 0, 1, 1, 0, 1]], dtype=torch.bool)
PADDED = [7, 5, 6]
every_loss = pytest.mark.parametrize("name", LOSSES)


def masked(seed=0, fill=torch.nan):
    """A batch with `fill` in masked frames and in the padding, and its remaining frames as lists."""
    Z, X = batch(seed)
    there = MASK & (torch.arange(7) < torch.tensor(PADDED)[:, None])
    left = [x[m].requires_grad_() for x, m in zip(X, there, strict=True)]
    return Z.requires_grad_(), torch.where(there[..., None], X, fill).requires_grad_(), there, left


def differentiated(value, *given):
    return torch.autograd.grad(value.sum(), given)


@every_loss
@pytest.mark.parametrize("fill", [torch.nan, torch.inf, 1e30])
def test_masked_frames_might_as_well_be_deleted(name, fill):
    loss = LOSSES[name](reduction="none")
    Z, X, there, left = masked(fill=fill)
    value = loss(Z, X, z_lengths=Z_LENGTHS, x_lengths=PADDED, x_mask=MASK)
    steps = [z[:k] for z, k in zip(Z, Z_LENGTHS, strict=True)]
    expected = loss(steps, left)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
    by_z, by_x = differentiated(value, Z, X)
    theirs = differentiated(expected, Z, *left)
    torch.testing.assert_close(by_z, theirs[0], rtol=1e-10, atol=1e-12)
    assert (by_x[~there] == 0).all()
    for b, found in enumerate(theirs[1:]):
        torch.testing.assert_close(by_x[b][there[b]], found, rtol=1e-10, atol=1e-12)


@every_loss
def test_a_mask_that_keeps_all_changes_nothing(name):
    loss = LOSSES[name]()
    Z, X = batch(1)
    expected = loss(Z, X)
    torch.testing.assert_close(loss(Z, X, x_mask=torch.ones(3, 7, dtype=torch.bool)), expected)
    if name not in (*MIXING, "d3tw"):  # a list of frames has a list of masks
        found = loss([*Z], [*X], x_mask=[torch.ones(7, dtype=torch.bool)] * 3)
        torch.testing.assert_close(found, expected)


def test_ragged_lists_have_ragged_masks():
    Z, X, _, left = masked()
    frames = [x[:n] for x, n in zip(X, PADDED, strict=True)]
    ragged = [m[:n] for m, n in zip(MASK, PADDED, strict=True)]
    loss = dt.DropDTWLoss()
    torch.testing.assert_close(loss([*Z], frames, x_mask=ragged), loss([*Z], left))
    torch.testing.assert_close(loss([*Z], frames, x_mask=MASK[:, :7]), loss([*Z], left))


@pytest.mark.parametrize("shape", [(), (7,), (1, 7), (3, 1), (3, 7)])
def test_drop_costs_of_each_frame_stay_with_it(shape):
    Z, X, there, left = masked()
    drop = torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    loss = dt.DropDTWLoss(drop, match="cosine", reduction="none")
    value = loss(Z, X, x_lengths=PADDED, x_mask=MASK)
    every = drop.expand(3, 7)
    expected = torch.cat([
        dt.DropDTWLoss(every[b][there[b]][None], match="cosine", reduction="none")(Z[b : b + 1], [left[b]])
        for b in range(3)
    ])  # fmt: skip
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(*(differentiated(v, drop)[0] for v in (value, expected)))


@pytest.mark.parametrize("normalize", ["x", "z", "both"])
def test_lengths_count_what_is_there(normalize):
    Z, X, _, left = masked()
    loss = dt.SoftDTWLoss(normalize=normalize)
    torch.testing.assert_close(loss(Z, X, x_lengths=PADDED, x_mask=MASK), loss([*Z], left))


def test_windows_orders_and_wrong_steps_do_not_see_masked_frames():
    Z, X, _, left = masked()
    for loss in (dt.DropDTWLoss(0.3, 0.3, window=2), dt.SoftDTWLoss(window=0.6)):
        torch.testing.assert_close(loss(Z, X, x_lengths=PADDED, x_mask=MASK), loss([*Z], left))
    for order in ORDERS.values():
        loss = dt.DropDTWLoss(0.3, match="cosine")
        found = loss(Z, X, x_lengths=PADDED, x_mask=MASK, order=order)
        torch.testing.assert_close(found, loss([*Z], left, order=order))
    wrong, _ = batch(9)
    for loss in (dt.D3TWLoss(), dt.MarginLoss(dt.DropDTWLoss(torch.rand(3, 7).double(), match="cosine"))):
        found = loss(Z, X, x_lengths=PADDED, x_mask=MASK, wrong=wrong)
        if isinstance(loss, dt.D3TWLoss):
            torch.testing.assert_close(found, loss([*Z], left, wrong=wrong))
            shuffled = loss(Z, X, x_lengths=PADDED, x_mask=MASK, wrong=ORDER)
            torch.testing.assert_close(shuffled, loss([*Z], left, wrong=ORDER))
        else:  # each frame keeps its drop cost, for the wrong steps too
            inner = [
                dt.DropDTWLoss(loss.loss.drop_x[b][MASK[b] & (torch.arange(7) < PADDED[b])][None], match="cosine")
                for b in range(3)
            ]
            each = [torch.relu(one(Z[b : b + 1], [left[b]]) - one(wrong[b : b + 1], [left[b]]) + 0.5)
                    for b, one in enumerate(inner)]  # fmt: skip
            torch.testing.assert_close(found, torch.stack(each).mean())


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("reducer", ["hard", "soft", "smooth"])
@pytest.mark.parametrize("drop_x", ["vector", "list", "percentile:40", 0.3, None])
def test_masked_columns_of_costs_might_as_well_be_deleted(executor, reducer, drop_x):
    C, d_x, d_z = random(0, 3, 4, 7)
    there = MASK & (torch.arange(7) < torch.tensor(PADDED)[:, None])
    spoilt = torch.where(there[:, None], C, torch.nan)
    how = {"reducer": reducer, "gamma": 0.4, "executor": executor, "open_x": 0.2 if drop_x is not None else 0.0}
    given = {"vector": d_x, "list": [d[:n] for d, n in zip(d_x, PADDED, strict=True)]}.get(drop_x, drop_x)
    value = dt.drop_dtw(spoilt, given, d_z, x_lengths=PADDED, x_mask=MASK, **how)
    each = []
    for b in range(3):
        own = d_x[b][there[b]][None] if drop_x in ("vector", "list") else drop_x
        each.append(dt.drop_dtw(C[b : b + 1, :, there[b]], own, d_z[b : b + 1], **how))
    expected = torch.cat(each)
    torch.testing.assert_close(value, expected)
    wanted = (C, d_z, d_x) if drop_x in ("vector", "list") else (C, d_z)
    for ours, theirs in zip(differentiated(value, *wanted), differentiated(expected, *wanted), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_masked_losses_compile():
    Z, X, there, left = masked(fill=0.0)
    loss = dt.DropDTWLoss(0.3, match="cosine")
    compiled = torch.compile(lambda Z, X, m: loss(Z, X, x_mask=m), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(Z, X, there), loss([*Z], left))


def test_items_without_frames_are_nan_where_looking_would_wait_for_the_device(monkeypatch):
    monkeypatch.setattr(masks, "can_look", lambda A: False)
    mask = MASK.clone()
    mask[1] = False
    found = masks.front(mask, 3, 7, None, torch.device("cpu"))
    assert found.lengths.tolist() == [5, 1, 3]
    assert found.rows(torch.ones(3, 7, 2)).isnan().all(dim=(1, 2)).tolist() == [False, True, False]
    assert found.columns(torch.ones(3, 2, 7)).isnan().any(dim=(1, 2)).tolist() == [False, True, False]


def test_the_fused_path_is_given_frames_and_lengths(monkeypatch):
    """The fused CUDA operator receives compacted frames and lengths, so no mask is lost."""
    seen = []
    monkeypatch.setattr(fused, "values", lambda loss, p, *how: seen.append(p))
    Z, X, there, _ = masked()
    dt.DropDTWLoss(learned("logit").double())(Z, X, x_lengths=PADDED, x_mask=MASK)
    p = seen[0]
    assert p.x_lengths.tolist() == there.sum(dim=1).tolist()
    for b in range(3):
        n = int(p.x_lengths[b])
        torch.testing.assert_close(p.X[b, :n], X[b][there[b]])
        assert (p.X[b, n:] == 0).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, inside Triton's interpreter
def test_one_operator_leaves_masked_frames_out_too(monkeypatch):
    kernels = pytest.importorskip("dropdtw.executors.triton", reason="the CUDA kernels need Triton, which is for Linux")
    device = "cpu" if kernels.INTERPRETED else "cuda"
    monkeypatch.setattr(fused, "runs_on", lambda A: True)
    Z, X = (A[:2, :n].to(device, torch.float32) for A, n in zip(batch(2), (2, 4), strict=True))
    mask = torch.tensor([[True, False, True, True], [False, True, False, True]], device=device)
    X = torch.where(mask[..., None], X, torch.nan).requires_grad_()
    loss = dt.DropDTWLoss("percentile:40", match="cosine", reduction="none")
    value = loss(Z, X, x_mask=mask)
    left = [x[m].detach().requires_grad_() for x, m in zip(X, mask, strict=True)]
    monkeypatch.setattr(fused, "runs_on", lambda A: False)
    expected = loss([*Z], left)
    torch.testing.assert_close(value, expected)
    by_x = differentiated(value, X)[0]
    assert (by_x[~mask] == 0).all()
    for b, found in enumerate(differentiated(expected, *left)):
        torch.testing.assert_close(by_x[b][mask[b]], found)
