"""The match and drop costs behind the losses: unique steps, percentiles, squared distances."""

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

import dropdtw
from dropdtw import torch as dt
from dropdtw.costs import Softmax
from dropdtw.drops import LogitPercentile
from dropdtw.torch import costs
from dropdtw.torch.batch import pairs
from loss_cases import LENGTHS, LOSSES, batch, items


def test_steps_of_one_id_count_once_with_the_first_for_all():
    """Values and derivatives of Eq. 4 over unique z, against the NumPy side and its finite differences."""
    Z, X = batch()
    ids = torch.tensor([[5, 7, 5, 0], [-3, -3, 9, 9], [1, 2, 1, 2]])
    Z.requires_grad_(), X.requires_grad_()
    weight = torch.randn(3, 4, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    p = pairs(Z, X, **LENGTHS, ids=ids)
    C = dt.softmax(p.Z, p.X, 0.6, ids=p.first_of_kind())
    there = dt.costs.within(C, p.z_lengths, p.x_lengths)
    by_z, by_x = torch.autograd.grad((torch.where(there, C, 0.0) * weight).sum(), (Z, X))
    for b, (z, x) in enumerate(items(Z, X)):
        cost, w = Softmax(0.6, tuple(ids[b, : len(z)].tolist())), weight[b, : len(z), : len(x)].numpy()
        np.testing.assert_allclose(C[b, : len(z), : len(x)].detach(), cost(z, x), rtol=1e-12)
        for side, ours in ((z, by_z[b]), (x, by_x[b])):
            slopes = np.zeros_like(side)
            for at in np.ndindex(side.shape):
                kept = side[at]
                ends = []
                for step in (1e-6, -1e-6):
                    side[at] = kept + step
                    ends.append((cost(z, x) * w).sum())
                side[at] = kept
                slopes[at] = (ends[0] - ends[1]) / 2e-6
            np.testing.assert_allclose(ours[: len(side)], slopes, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_rows_of_a_kind_are_found(dtype):
    draw = torch.Generator().manual_seed(0)
    Z = torch.randint(-1, 2, (4, 60, 3), generator=draw).to(dtype)  # at most 27 kinds; 0 and −0 are equal
    Z = torch.where(torch.rand(Z.shape, generator=draw) < 0.5, Z, -1 * -Z)
    Z[1] = torch.eye(64, 3)[:60].to(dtype)
    Z[2, 5] = Z[2, 9] = torch.nan
    found = dt.costs.first_of_kind(Z)
    for rows, first in zip(Z.tolist(), found.tolist(), strict=True):
        assert first == [next(k for k in range(i + 1) if k == i or rows[k] == rows[i]) for i in range(60)]


@pytest.mark.parametrize("name", ["drop-dtw", "drop-dtw of logits", "clustering", "clustering, contrastive"])
def test_equal_steps_count_once_and_so_do_their_ids(name):
    Z, X = batch()
    Z[2, 3] = Z[2, 1]
    Z[1, 0] = 0  # equal to the padding, but an actual step
    loss = LOSSES[name](reduction="none")
    plain = loss(Z, X, **LENGTHS)
    names = [[0, 1, 2], [0, 1], [0, 1, 2, 1]]
    assert torch.equal(loss(Z, X, **LENGTHS, ids=names), plain)
    padded = torch.tensor([[3, 4, 5, 3], [-1, 8, 8, 8], [0, 9, 2, 9]])
    assert torch.equal(loss(Z, X, **LENGTHS, ids=padded), plain)
    assert torch.equal(loss(Z, X, **LENGTHS, ids=[torch.tensor(row) for row in names]), plain)
    assert (loss(Z, X, **LENGTHS, ids=[[0, 1, 2], [0, 1], [0, 1, 2, 3]]) != plain).tolist() == [False, False, True]


@pytest.mark.parametrize("p", [0, 7, 30, 33.3, 50, 99, 100])
def test_percentiles_are_those_of_the_numpy_side(p):
    Z, X = (torch.randn(2, n, 5, generator=torch.Generator().manual_seed(n), dtype=torch.float64) for n in (30, 700))
    q = pairs(Z, X, [30, 11], [700, 399])
    C = dt.softmax(q.Z, q.X, ids=q.first_of_kind())
    drop, logit = dt.percentile_drop(C, p, q.z_lengths, q.x_lengths), []
    S = (q.Z @ q.X.mT).masked_fill(q.first_of_kind()[..., None] < 0, -torch.inf)
    logit = dt.percentile_logit(S, p, q.z_lengths, q.x_lengths)
    for b, (k, n) in enumerate([(30, 700), (11, 399)]):
        assert drop[b].item() == pytest.approx(np.percentile(C[b, :k, :n].numpy(), p), rel=1e-12)
        assert logit[b].item() == LogitPercentile(p).logits(S[b, :k, :n].numpy())


@pytest.mark.parametrize("d", [3, 16, 17, 64])
def test_squared_distances_do_not_cancel_far_from_zero(d):
    Z, X = batch(d=d)
    near, far = dt.sqeuclidean(Z.float(), X.float()), dt.sqeuclidean((Z + 1000).float(), (X + 1000).float())
    exact = ((Z[:, :, None] - X[:, None]) ** 2).sum(-1).float()
    torch.testing.assert_close(near, exact, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(far, exact, rtol=1e-3, atol=1e-3)  # 1000 + z is rounded to 6e-5
    assert torch.equal(dt.sqeuclidean(Z[:1], X), dt.sqeuclidean(Z[:1].expand(3, -1, -1), X))


OTHERS = ("cityblock", "chebyshev", "correlation")


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 0.1)])
def test_other_costs_are_those_of_the_numpy_side(name, dtype, atol):
    Z, X = batch(d=5, dtype=dtype)
    Z[0, 0] = 0.3  # all features equal
    C = costs.MATCH_COSTS[name](Z, X)
    assert C.dtype == dtype
    for b in range(len(Z)):
        wanted = dropdtw.costs.MATCH_COSTS[name](Z[b].double().numpy(), X[b].double().numpy())
        np.testing.assert_allclose(C[b].double().numpy(), wanted, rtol=0, atol=atol * max(1, wanted.max()))


@pytest.mark.parametrize("name", OTHERS)
def test_losses_take_other_costs_and_have_their_slopes(name):
    Z, X = batch(d=3)
    loss = dt.DropDTWLoss(0.4, match=name, reducer="soft", gamma=0.5, reduction="none")
    value = dt.drop_dtw(costs.MATCH_COSTS[name](Z, X), 0.4, reducer="soft", gamma=0.5)
    torch.testing.assert_close(loss(Z, X), value)
    Z, X = Z.requires_grad_(), X.requires_grad_()
    assert torch.autograd.gradcheck(lambda Z, X: loss(Z, X), (Z, X))
    assert dt.SoftDTWDivergence(match=name)(Z, Z) == 0


@pytest.mark.parametrize("d", [3, 64])
def test_squared_distances_of_half_precision_are_rounded_once(d):
    Z, X = batch(d=d, dtype=torch.bfloat16)
    found = dt.sqeuclidean(Z, X)
    expected = ((Z.float()[:, :, None] - X.float()[:, None]) ** 2).sum(-1)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected.bfloat16(), rtol=2**-8, atol=0)


def spread(how, d, dtype):
    """Sequences some of whose elements are far from the others."""
    Z, X = batch(d=d)
    if how == "first frame":
        X[:, 0, 0] += 1000
    elif how == "first of both":
        X[:, 0] += 1e5
        Z[:, 0] -= 1e5
    elif how == "two clusters":
        X[:, ::2] += 1e4
        Z[:, ::2] += 1e4
    elif how == "twins":
        X[:, :3] = Z[:, 1:] + 1e-4 * X[:, :3]
        X[:, 3] = 1e4
    elif how == "padding":
        Z, X = (torch.cat([A + 1e4, torch.zeros(3, 40, d, dtype=A.dtype)], 1) for A in (Z, X))
    Z, X = Z.to(dtype), X.to(dtype)
    Z[:, 2] = X[:, 4]
    return Z, X


far_apart = pytest.mark.parametrize("how", ["first frame", "first of both", "two clusters", "twins", "padding"])


def by_differences(Z, X):
    return ((Z.double()[:, :, None] - X.double()[:, None]) ** 2).sum(-1)


@far_apart
@pytest.mark.parametrize("d", [3, 17, 32, 200])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_squared_distances_of_close_elements_do_not_depend_on_far_ones(how, d, dtype):
    Z, X = spread(how, d, dtype)
    found = dt.sqeuclidean(Z, X)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(found.double(), by_differences(Z, X), rtol=tolerance, atol=0)
    assert (found[:, 2, 4] == 0).all()


@far_apart
@pytest.mark.filterwarnings("ignore")  # torch.compile emits many warnings
def test_squared_distances_are_as_good_where_values_cannot_be_looked_at(how):
    Z, X = spread(how, 32, torch.float32)
    found = torch.compile(dt.sqeuclidean, backend="eager", fullgraph=True)(Z, X)
    torch.testing.assert_close(found.double(), by_differences(Z, X), rtol=1e-5, atol=0)
    assert (found[:, 2, 4] == 0).all()


@pytest.mark.parametrize("how", ["first frame", "first of both"])
@pytest.mark.parametrize("d", [3, 32])
def test_slopes_of_squared_distances_do_not_depend_on_far_elements(how, d):
    Z, X = (A.requires_grad_() for A in spread(how, d, torch.float32))
    weight = torch.rand(3, Z.shape[1], X.shape[1], generator=torch.Generator().manual_seed(0))
    weight[:, 0] = weight[:, :, 0] = 0
    ours = torch.autograd.grad((dt.sqeuclidean(Z, X) * weight).sum(), (Z, X))
    exact = torch.autograd.grad((by_differences(Z, X) * weight).sum(), (Z, X))
    for a, b in zip(ours, exact, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("d", [3, 32])
def test_squared_distances_that_overflow_are_infinite_and_nan_stays_nan(d):
    Z, X = (A.float() for A in batch(d=d))
    X[:, 0] = 1e25
    X[0, 1, 0] = torch.nan
    found = dt.sqeuclidean(Z, X)
    assert (found[:, :, 0] == torch.inf).all()
    assert found[0, :, 1].isnan().all()
    torch.testing.assert_close(found[1:, :, 1:].double(), by_differences(Z, X)[1:, :, 1:], rtol=1e-5, atol=0)


@far_apart
@pytest.mark.parametrize("d", [1, 3, 17, 200])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distances_of_close_elements_do_not_depend_on_far_ones(how, d, dtype):
    Z, X = spread(how, d, dtype)
    found = costs.euclidean(Z, X)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), by_differences(Z, X).sqrt(), rtol=8 * torch.finfo(dtype).eps, atol=0)
    assert (found[:, 2, 4] == 0).all()
    assert torch.equal(costs.euclidean(Z[:1], X), costs.euclidean(Z[:1].expand(3, -1, -1), X))


@pytest.mark.parametrize("d", [1, 3, 32])
@pytest.mark.parametrize(("dtype", "power"), [(torch.float32, 120), (torch.float32, -120), (torch.float64, 1000)])
def test_distances_know_no_scale(d, dtype, power):
    """Also between elements of different sizes; beyond the largest number they are infinite."""
    Z, X = (A.to(dtype) for A in batch(d=d))
    torch.testing.assert_close(
        costs.euclidean(Z * 2.0**power, X * 2.0**power) * 2.0**-power,
        costs.euclidean(Z, X),
        rtol=8 * torch.finfo(dtype).eps,
        atol=0,
    )
    X[:, 1] *= 2.0**power
    Z[:, 2] *= 2.0 ** -abs(power)
    X[:, 4] = 0
    for z, x, found in zip(Z, X, costs.euclidean(Z, X), strict=True):
        expected = dropdtw.costs.euclidean(z.double().numpy(), x.double().numpy())
        np.testing.assert_allclose(found, expected, rtol=8 * torch.finfo(dtype).eps)
    most = torch.full((1, 1, d), torch.finfo(dtype).max, dtype=dtype)
    assert costs.euclidean(most, -most).item() == torch.inf
    assert costs.euclidean(most, most).item() == 0


@pytest.mark.parametrize(("dtype", "power"), [(torch.float32, 100), (torch.float32, -100), (torch.float64, 800)])
def test_cosine_knows_no_scale(dtype, power):
    Z, X = (A.to(dtype) for A in batch())
    X[0, 2] = 0
    far = X.clone()
    far[:, 1:] *= 2.0**power
    near, far = (A.requires_grad_() for A in (X, far))
    plain, scaled = dt.cosine(Z, near), dt.cosine(Z, far)
    torch.testing.assert_close(scaled, plain, rtol=0, atol=1e-6)
    assert (scaled[0, :, 2] == 1).all()
    there = (slice(1, None), slice(1, None))  # a zero vector has no meaningful derivative
    by_plain, by_scaled = (torch.autograd.grad(C.sum(), A)[0][there] for C, A in ((plain, near), (scaled, far)))
    torch.testing.assert_close(by_scaled * 2.0**power, by_plain, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, about ∞ − ∞, inside the interpreter
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_kernels_give_the_same_distances_and_equal_rows(monkeypatch, dtype):
    """On a GPU they run automatically; here the test forces them, in Triton's interpreter."""
    triton = pytest.importorskip("dropdtw.executors.triton", reason="the CUDA kernels need Triton")
    device = "cpu" if triton.INTERPRETED else "cuda"
    generator = torch.Generator().manual_seed(0)
    Z, X = (torch.randn(2, 2, n, 3, generator=generator).to(device, dtype).requires_grad_() for n in (4, 5))
    with torch.no_grad():
        X[0, 1, 2] = Z[0, 1, 3]
        Z[1, 0, 2] = Z[1, 0, 0]
        X[1, 1, 1, 1] = torch.inf

    def everything():
        C = costs.sqeuclidean(Z, X)
        assert C[0, 1, 3, 2] == 0
        by = torch.autograd.grad(C[0].float().sum(), (Z, X))
        return C, *by, costs.first_of_kind(Z[1]), costs.sqeuclidean(Z[0, 0], X[0, 0])

    monkeypatch.setattr(costs.kernels, "run_on", lambda A: False)
    truth = everything()
    monkeypatch.setattr(costs.kernels, "run_on", lambda A: True)
    for a, b in zip(everything(), truth, strict=True):
        torch.testing.assert_close(a, b, equal_nan=True)  # 0 · ∞, where nothing flows back
        assert a.dtype == b.dtype


@pytest.mark.parametrize("function", [dt.percentile_drop, dt.percentile_logit])
@pytest.mark.parametrize("p", [-1, 100.5, float("nan")])
def test_percentiles_beyond_100_are_refused(function, p):
    with pytest.raises(ValueError, match=f"p is {p}; give a percentile from 0 to 100"):
        function(torch.ones(1, 2, 3), p)
