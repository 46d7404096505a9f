"""Shared by the tests that compare fused losses with the general path."""

import pytest

torch = pytest.importorskip("torch", reason="the losses need PyTorch: pip install dropdtw[torch]")
pytest.importorskip("triton", reason="the CUDA kernels need Triton, which is for Linux")

from dropdtw.executors import triton as kernels  # noqa: E402
from dropdtw.problem.costs import Costs  # noqa: E402
from dropdtw.torch import (  # noqa: E402
    DropDTWLoss,
    LearnedDrop,
    OTAMLoss,
    SmoothDTWLoss,
    ops,
)

DEVICE = "cpu" if kernels.INTERPRETED else "cuda"
QUIET = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's warnings about ∞ and log 0 in the interpreter


class Compiled:
    """The alignment with compiled CPU kernels: the CUDA kernels have their own tests, and the interpreter is slow."""

    @staticmethod
    def forward(table, reducer, gamma, *given):
        *tensors, gradient, normalize = given
        how = ops.Operation(ops.register(table), reducer, gamma)
        found, saved = ops.solve(Costs(*tensors, torch), how, gradient)
        return found / Compiled.length(tensors, normalize), saved

    @staticmethod
    def backward(table, reducer, gamma, *given):
        *tensors, saved, grad, normalize = given
        call = ops.Operation(ops.register(table), reducer, gamma)
        grad = grad / Compiled.length(tensors, normalize).to(tensors[0].dtype)
        return ops.derivatives(grad.expand(len(tensors[0])), Costs(*tensors, torch), list(saved), call)

    @staticmethod
    def length(tensors, normalize):
        C, *_, lengths = tensors
        K, N = (torch.tensor([n]) for n in C.shape[1:]) if lengths is None else lengths
        return {None: torch.tensor([1]), "x": N, "z": K, "both": K + N}[normalize]


def sequences(B=2, K=3, N=6, d=4, seed=0, dtype=torch.float64, repeats=True):
    generator = torch.Generator().manual_seed(seed)
    Z, X = (torch.randn(B, n, d, generator=generator, dtype=dtype) for n in (K, N))
    if repeats and K > 2:
        Z[0, 2] = Z[0, 0]
    return Z.to(DEVICE).requires_grad_(), X.to(DEVICE).requires_grad_()


def everything(loss, Z, X, **how):
    value = loss.per_item(Z, X, **how)
    weights = torch.arange(1, len(value) + 1, dtype=value.dtype, device=value.device)
    wanted = [Z, X, *loss.parameters()]
    found = torch.autograd.grad((value * weights).nan_to_num(0, 0, 0).sum(), wanted, allow_unused=True)
    return [value.detach(), *(torch.zeros_like(a) if f is None else f for f, a in zip(found, wanted, strict=True))]


def check(switch, loss, Z, X, atol=1e-10, fuses=True, **how):
    loss = loss.to(DEVICE, Z.dtype)
    ran = switch(False)
    truth = everything(loss, Z, X, **how)
    assert not ran
    ran = switch(True)
    ours = everything(loss, Z, X, **how)
    assert bool(ran) == fuses
    for a, b in zip(ours, truth, strict=True):
        torch.testing.assert_close(a, b, rtol=atol, atol=atol)
    if fuses:
        with torch.no_grad():  # without gradients, another kernel runs
            assert torch.equal(loss.per_item(Z, X, **how), ours[0])
    return ours


RAGGED = {"z_lengths": [3, 2], "x_lengths": [5, 6]}


def learned(dim=4, **how):
    torch.manual_seed(0)
    return LearnedDrop(dim, **how)


LOSSES = {
    "percentile": lambda **o: DropDTWLoss("percentile:30", **o),
    "number": lambda **o: DropDTWLoss(0.7, **o),
    "both sides": lambda **o: DropDTWLoss(0.7, "percentile:80", **o),
    "only z": lambda **o: DropDTWLoss(None, 0.7, **o),
    "openings": lambda **o: DropDTWLoss("percentile:30", open_x=0.3, warp=torch.nn.Parameter(torch.tensor(0.2)), **o),
    "learned cost": lambda **o: DropDTWLoss(learned(output="cost"), learned(output="cost"), **o),
    "nothing dropped": lambda **o: SmoothDTWLoss(**o),
    "free ends": lambda **o: OTAMLoss(**o),
}
LOGITS = {
    "logit": lambda **o: DropDTWLoss("logit:30", **o),
    "learned logit": lambda **o: DropDTWLoss(learned(), **o),
    "anchored logit": lambda **o: DropDTWLoss(learned(anchor=30, scale=0.5), 1.0, **o),
}


def thorough(cases, usual):
    """All cases; the unusual ones are marked exhaustive, because the interpreter is slow."""
    return [case if case in usual else pytest.param(*case, marks=pytest.mark.exhaustive) for case in cases]
