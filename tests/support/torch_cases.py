"""Batches and comparisons that the tests of `drop_dtw` share."""

import pytest

import dropdtw
import dropdtw.executors
from dropdtw import orders
from dropdtw.problem.spec import Spec

torch = pytest.importorskip("torch", reason="the losses need PyTorch: pip install dropdtw[torch]")

from dropdtw.torch import drop_dtw  # noqa: E402

REDUCERS = ["hard", "soft", "smooth"]
EXECUTORS = [*dropdtw.executors.EXECUTORS, "wavefront"]
GAMMA = 0.4
ORDERS = {
    "partial": orders.any_order([0, 1], 2, 3),
    "diamond": orders.before(4, [(0, 1), (0, 2), (1, 3), (2, 3)]),
    "alternatives": orders.as_order([orders.one_of(0, 1), orders.any_order(2, 3)]),
    "jumps": orders.jumps(4, [(3, 0, 0.5), (1, 1, 0.1), (2, 0)]),
    "loop": orders.repeat([0, 1, 2, 3], 0.3),
    "permuted": orders.as_order([2, 0, 3, 1]),
}
"""Orders of four steps, of every kind."""


def supporting(case):
    """The executors that have kernels for the table of a case."""
    sides = {"drop_x": case.drop_x is not None, "drop_z": case.drop_z is not None}
    table = Spec.of(**{name: 0.0 for name, given in sides.items() if given}, **case.options).table
    known = dropdtw.executors.EXECUTORS
    return [name for name in EXECUTORS if name not in known or known[name].supports(table)]


def tensors(case):
    """The costs of a case as a batch of one that requires gradients."""
    parts = (case.C, case.drop_x, case.drop_z)
    return [None if p is None else torch.tensor(p[None], requires_grad=True) for p in parts]


def random(seed, B, K, N, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((B, K, N), (B, N), (B, K))
    return [torch.rand(s, generator=generator, dtype=dtype, requires_grad=True) for s in shapes]


def grads(value, given):
    """Derivatives of the sum of the finite values, 0 if there are none."""
    total = torch.where(torch.isfinite(value), value, 0.0).sum()
    given = [g for g in given if g is not None]
    found = torch.autograd.grad(total, given, allow_unused=True) if total.requires_grad else [None] * len(given)
    return [torch.zeros_like(g) if f is None else f for f, g in zip(found, given, strict=True)]


def everything(given, **how):
    value = drop_dtw(*given, **how)
    return [value.detach(), *grads(value, given)]


def assert_same(one, other, **close):
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, **{"rtol": 0, "atol": 0, **close})
