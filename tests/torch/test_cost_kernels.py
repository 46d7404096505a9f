"""The kernels of match costs and percentiles, one by one, in Triton's interpreter or on a GPU."""

from itertools import product

import pytest

from fused_cases import DEVICE, QUIET, sequences, thorough

torch = pytest.importorskip("torch", reason="the losses need PyTorch: pip install dropdtw[torch]")

from dropdtw.torch import costs, drop_dtw, functional  # noqa: E402
from dropdtw.torch import kernels as fused_kernels  # noqa: E402

pytestmark = QUIET

KINDS = list(product(("signed", "tied", "holes", "equal", "nothing"), (torch.float32, torch.float64)))


@pytest.mark.parametrize(("kind", "dtype"), thorough(KINDS, KINDS[::4]))
def test_percentiles_are_exact(kind, dtype, monkeypatch):
    from dropdtw.executors.triton import select

    C = torch.randn(2, 5, 30, dtype=dtype, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    if kind == "tied":
        C = C.round()
    elif kind == "holes":
        C[C > 0.5] = torch.inf
        C[:, 1] = torch.nan
    elif kind == "equal":
        C[:] = -1.5
    elif kind == "nothing":
        C[0] = torch.inf
    z, x = (torch.tensor(n, device=DEVICE) for n in ([5, 4], [30, 23]))
    first = (torch.arange(5, device=DEVICE) // 2 * 2).to(torch.int32).expand(2, 5).contiguous()
    masked = C.masked_fill(~costs.is_first(first)[..., None], -torch.inf)
    monkeypatch.setattr(select, "TILE", 64)
    monkeypatch.setattr(select, "PROGRAMS", 3)  # so that each program counts several tiles
    for registers, p, lengths in (
        (1 << 14, 0, (z, x)),
        (1 << 14, 30, (None, None)),
        (0, 12.5, (z, x)),  # by counting
        (0, 100, (z, x)),
    ):
        monkeypatch.setattr(select, "REGISTERS", registers)
        found = select.percentile(C, p, *lengths)[:, None]
        assert torch.equal(found, costs.percentile_drop(C, p, *lengths))
        found = select.percentile(C, p, *lengths, first, True)[:, None]
        assert torch.equal(found, costs.percentile_logit(masked, p, *lengths))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_squared_distances_by_differences_are_exact(dtype):
    from dropdtw.executors.triton import squares

    for d in (1, 8, 16, 40):
        Z, X = (a.detach().to(dtype) + 100 for a in sequences(1, 3, 5, d))
        X[0, 1] = Z[0, 2]
        found = squares.costs(Z, X, None, None)
        assert found.dtype == dtype
        assert found[0, 2, 1] == 0
        truth = ((Z.double()[:, :, None] - X.double()[:, None]) ** 2).sum(-1)
        torch.testing.assert_close(found.double(), truth, rtol=8 * torch.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_percentile_of_given_costs_is_selected(monkeypatch, dtype):
    """`drop_dtw` finds the same drop costs by selection as by sorting."""
    C = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(2)).to(DEVICE, dtype).abs().mT
    C[0, 1] = torch.inf
    how = {"drop_x": "percentile:30", "z_lengths": [7, 4], "x_lengths": [3, 2], "executor": "wavefront"}
    monkeypatch.setattr(fused_kernels, "run_on", lambda A: False)
    truth = drop_dtw(C, **how)
    monkeypatch.setattr(fused_kernels, "run_on", lambda A: True)
    monkeypatch.setattr(functional, "percentile_drop", None)
    assert torch.equal(drop_dtw(C, **how), truth)


@pytest.mark.parametrize("d", [8, 17])
def test_derivatives_of_squared_distances_are_as_accurate_as_the_general_ones(d):
    """Also far from 0, and with NaN in the padding."""
    from dropdtw.executors.triton import squares

    Z, X = (a.detach() + 100 for a in sequences(2, 3, 18, d))
    grad = torch.randn(2, 3, 18, dtype=torch.float64, generator=torch.Generator().manual_seed(d)).to(DEVICE)
    lengths = [torch.tensor(n, device=DEVICE) for n in ([3, 2], [11, 18])]
    grad = torch.where(costs.within(grad, *lengths), grad, 0.0)
    by_z, by_x = (2 * (grad[..., None] * (Z[:, :, None] - X[:, None])).sum(k) for k in (2, 1))
    spoilt = [torch.where(torch.arange(a.shape[1], device=DEVICE)[:, None] < n[:, None, None], a, torch.nan)
              for a, n in zip((Z, X), lengths, strict=True)]  # fmt: skip
    for given, how in (((Z, X), (None, None)), (spoilt, lengths)):
        found = squares.costs_back(grad, *given, *how)
        for a, b in zip(found, (by_z, -by_x), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-12)
        assert torch.equal(squares.costs_back(grad, *given, *how, False)[1], found[1])
    single = squares.costs_back(grad.float(), Z.float(), X.float(), None, None)
    general = costs.sqeuclidean_back(grad.float(), Z.float(), X.float())
    for a, b, c in zip(single, general, (by_z, -by_x), strict=True):
        assert (a - c).abs().max() <= 1.5 * (b - c).abs().max() + 1e-6


def test_a_kernel_clears_the_padding():
    A = sequences(2, 3, 4)[1]
    lengths = torch.tensor([4, 1], device=DEVICE)
    truth = torch.where((torch.arange(4, device=DEVICE) < lengths[:, None])[..., None], A, 0.0)
    found = fused_kernels.real_part(A, lengths)
    assert torch.equal(found, truth)
    weights = torch.rand_like(A)
    assert torch.equal(*(torch.autograd.grad((a * weights).sum(), A)[0] for a in (found, truth)))
    with torch.no_grad():
        A[1, 1:] = torch.nan
    assert torch.equal(fused_kernels.real_part(A, lengths), truth)
