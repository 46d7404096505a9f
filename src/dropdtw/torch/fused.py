"""The built-in losses on CUDA, from sequences to values in a handful of launches, and back.

What `AlignmentLoss.align` does in many small operations is one operator here: match costs, drop costs and alignment,
each in a kernel or a matrix product of its own. `values` says where it applies; everywhere else, and for whatever a
user supplies, the general path runs, and both give the same.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dropdtw import drops
from dropdtw.problem.spec import Spec
from dropdtw.torch import charges, ops, stages
from dropdtw.torch.batch import Pairs
from dropdtw.torch.learned import LearnedDrop
from dropdtw.torch.stages import Drop, Gradients, Inputs, Plan

if TYPE_CHECKING:
    from dropdtw.torch.losses import AlignmentLoss

FUSED = ("softmax", "cosine", "sqeuclidean")
"""Match costs that have kernels here."""


def runs_on(A: Tensor) -> bool:
    """Whether the kernels run where this tensor is."""
    return A.is_cuda and ops.has_triton()


# --- Where it applies ---------------------------------------------------------------------------------------------


def values(loss: AlignmentLoss, p: Pairs, normalize: str | None) -> Tensor | None:
    """The value of each item (B,), normalised; None where the general path has to find it."""
    if not runs_on(p.X) or loss.match not in FUSED or loss.moves.get("window") is not None:
        return None
    if not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
        return None
    said = loss.charges()
    drop_x, drop_z = loss.dropped()
    moves = tuple([(name, allowed) for name, allowed in loss.moves.items() if name != "window"])
    known = tuple([(name, "" if isinstance(value, Tensor) else _digits(value)) for name, value in said.items()])
    asked = (loss.match, _digits(loss.gamma_match), _said(drop_x), _said(drop_z), p.Z.dtype == torch.float64)
    plan, name, spec = _plan(*asked, loss.method, loss.reducer, _digits(loss.gamma), moves, known, normalize)
    if plan is None:
        return None
    lengths = p.z_lengths, p.x_lengths
    if p.z_lengths is None and p.x_lengths is None:
        if not torch.compiler.is_compiling():
            spec.check_fit(p.Z.shape[1], p.X.shape[1])
    else:
        lengths = _full(p.Z, p.z_lengths), _full(p.X, p.x_lengths)
    own_x, own_z = _own(drop_x, p), _own(drop_z, Pairs(p.X, p.Z, p.x_lengths, p.z_lengths, None))
    charged = None
    if charges.given(*said.values()) or ops.charges(plan.call.table):
        three = (said.get("open_x", 0.0), said.get("open_z", 0.0), said.get("warp", 0.0))
        charged = charges.stack(three, len(p.Z), p.Z.dtype, p.Z.device)
    return _value(Inputs(p.Z, p.X, own_x, own_z, charged, p.ids, *lengths), plan, name)


def _full(A: Tensor, lengths: Tensor | None) -> Tensor:
    return torch.full((len(A),), A.shape[1], device=A.device) if lengths is None else lengths


Said = tuple[str, str]
"""A drop cost as far as it is known without looking at a tensor, and its digits; ("tensor", …): the user's own."""


def _digits(number: float) -> str:
    """A number as text: a compiler that has seen two numbers in one place takes them for a variable."""
    return float(number).hex()


def _said(drop: Any) -> Said:
    if drop is None:
        return "none", "0"
    if isinstance(drop, LearnedDrop):
        if drop.output == "cost":
            return "given", "0"
        return ("own", "0") if drop.anchor is None else ("anchored", _digits(drop.anchor))
    if isinstance(drop, str):
        return "rule", drop
    if isinstance(drop, (int, float)):
        return "number", _digits(drop)
    return "tensor", "0"


def _own(drop: Any, p: Pairs) -> Tensor | None:
    """What a network says of the second sequences of p."""
    if not isinstance(drop, LearnedDrop):
        return None
    return drop.own_logit(p).contiguous()


TENSOR = charges.said(torch.empty(0), "")
"""What a charge is called that is a tensor."""


def _plan(*asked: Any) -> tuple[Plan | None, str, Spec]:
    return _cached_plan(*asked)


_plan._dynamo_marked_constant = True  # type: ignore[attr-defined]  # see functional._spec


@lru_cache(maxsize=1024)
def _cached_plan(
    match: str,
    gamma_match: str,
    drop_x: Said,
    drop_z: Said,
    wide: bool,
    method: str,
    reducer: str,
    gamma: str,
    moves: tuple[tuple[str, bool], ...],
    known: tuple[tuple[str, str], ...],
    normalize: str | None,
) -> tuple[Plan | None, str, Spec]:
    """The plan of a request, None where the general path must run; what operators call it; and the request, checked."""
    charged = {name: charges.said(float.fromhex(digits), name) if digits else TENSOR for name, digits in known}
    found = [_drop(said, name, wide) for said, name in ((drop_x, "drop_x"), (drop_z, "drop_z"))]
    options: dict[str, Any] = dict(moves) | {name: charges.as_asked(value) for name, value in charged.items()}
    spec = Spec.of(
        None if drop_x[0] == "none" else 0.0,
        None if drop_z[0] == "none" else 0.0,
        method=method,
        reducer=reducer,
        gamma=float.fromhex(gamma),
        **options,
    )
    x, z = found
    largest = torch.finfo(torch.float64 if wide else torch.float32).max
    too_large = any(not isinstance(value, str) and value > largest for value in charged.values())
    method_edits = spec.method.pair is not None or spec.method.narrow is not None
    if x is None or z is None or method_edits or too_large:
        return None, "", spec
    x = Drop("number") if spec.method.free_x else x
    z = Drop("number") if spec.method.free_z else z
    call = ops.Call(ops.register(spec.table), spec.reducer.name, spec.reducer.gamma, "triton")
    x = Drop("number", math.inf) if x.kind == "none" and ops.pays(call.table, "drop_x") else x
    z = Drop("number", math.inf) if z.kind == "none" and ops.pays(call.table, "drop_z") else z
    plan = Plan(match, float.fromhex(gamma_match), x, z, call, normalize)
    name = repr(plan)
    _PLANS[name] = plan
    return plan, name, spec


def _drop(said: Said, name: str, wide: bool) -> Drop | None:
    kind, digits = said
    if kind == "rule":
        rule = drops.resolve(digits, name)
        if isinstance(rule, drops.Percentile):
            return Drop("percentile", float(rule.p))
        return Drop("logit", float(rule.p)) if isinstance(rule, drops.LogitPercentile) else None
    dtype, value = torch.float64 if wide else torch.float32, float.fromhex(digits)
    if kind == "tensor" or (kind == "number" and not abs(value) <= torch.finfo(dtype).max):
        return None
    return Drop(kind, value)


_PLANS: dict[str, Plan] = {}
"""Plans by what operators call them."""


# --- As PyTorch knows it ------------------------------------------------------------------------------------------


def _value(given: Inputs, plan: Plan, name: str) -> Tensor:
    wanted = torch.is_grad_enabled() and any(part is not None and part.requires_grad for part in given[:5])
    found: Tensor
    if torch.compiler.is_compiling():
        found, _ = forward(*given, name, wanted)
    elif wanted:
        found = _Forward.apply(*given, plan)  # type: ignore[no-untyped-call]
    else:
        found, _ = stages.forward(given, plan, False)
    return found


class _Forward(torch.autograd.Function):
    """The operator as eager code runs it: the registered one costs several times as much per call."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *tensors, ctx.plan = given
        found, saved = stages.forward(Inputs(*tensors), ctx.plan, True)
        ctx.save_for_backward(*tensors, *saved)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        tensors = ctx.saved_tensors
        if torch.is_grad_enabled():  # with create_graph: the derivatives must know that they have none
            found = _Backward.apply(grad, *tensors, ctx.plan)  # type: ignore[no-untyped-call]
        else:
            found = stages.backward(grad, Inputs(*tensors[:8]), list(tensors[8:]), ctx.plan, ctx.needs_input_grad[0])
        return *found, None, None, None, None


class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, grad: Tensor, *rest: Any) -> Gradients:
        *tensors, plan = rest
        return stages.backward(grad, Inputs(*tensors[:8]), tensors[8:], plan)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(ops.ONCE)


@torch.library.custom_op("dropdtw::loss", mutates_args=())
def forward(
    Z: Tensor,
    X: Tensor,
    own_x: Tensor | None,
    own_z: Tensor | None,
    charges: Tensor | None,
    ids: Tensor | None,
    z_lengths: Tensor | None,
    x_lengths: Tensor | None,
    plan: str,
    gradient: bool,
) -> tuple[Tensor, list[Tensor]]:
    """See `stages.forward`."""
    return stages.forward(Inputs(Z, X, own_x, own_z, charges, ids, z_lengths, x_lengths), _PLANS[plan], gradient)


@forward.register_fake
def _(Z, X, own_x, own_z, charges, ids, z_lengths, x_lengths, plan, gradient):  # type: ignore[no-untyped-def]
    (B, K, _), (_, N, _) = Z.shape, X.shape
    how = _PLANS[plan]
    value = Z.new_empty(B)
    if not gradient:
        return value, []
    C = Z.new_empty(B, K, N)
    made = [C]
    for drop in (how.drop_x, how.drop_z):
        if drop.is_logit:
            made.append(Z.new_empty(B, N))
        elif drop.kind != "given":
            made.append(Z.new_empty(B if drop.kind == "percentile" else 1))
    if how.match == "cosine":
        made += [torch.empty_like(A, memory_format=torch.contiguous_format) for A in (Z, X)]
        made.append(Z.new_empty(B * (K + N)))
    if how.match == "softmax":
        made += [Z.new_empty(B, K, dtype=torch.int32) for _ in range(2)]
    if how.drop_x.is_logit:
        made += [Z.new_empty(B, K, N), Z.new_empty(B, N)]
        made += [] if how.drop_x.kind == "own" else [Z.new_empty(B)]
    states = stages.kernels().align.room(ops.table(how.call.table), C, gradient)
    return value, [*made, *(part for part in states if part is not None)]


@torch.library.custom_op("dropdtw::loss_backward", mutates_args=())
def backward(
    grad: Tensor,
    Z: Tensor,
    X: Tensor,
    own_x: Tensor | None,
    own_z: Tensor | None,
    charges: Tensor | None,
    ids: Tensor | None,
    z_lengths: Tensor | None,
    x_lengths: Tensor | None,
    saved: list[Tensor],
    plan: str,
) -> list[Tensor]:
    """See `stages.backward`; here there is a derivative by every tensor that is there."""
    given = Inputs(Z, X, own_x, own_z, charges, ids, z_lengths, x_lengths)
    found = stages.backward(grad, given, saved, _PLANS[plan])
    return [
        torch.zeros_like(part) if by is None else by
        for part, by in zip(given[:5], found, strict=True)
        if part is not None
    ]


@backward.register_fake
def _(grad, Z, X, own_x, own_z, charges, ids, z_lengths, x_lengths, saved, plan):  # type: ignore[no-untyped-def]
    parts = (Z, X, own_x, own_z, charges)
    return [torch.empty_like(a, memory_format=torch.contiguous_format) for a in parts if a is not None]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, list[Tensor]]) -> None:
    *tensors, ctx.plan, _ = inputs
    ctx.save_for_backward(*tensors, *output[1])


def _back(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
    tensors = ctx.saved_tensors
    found = iter(backward(grad, *tensors[:8], list(tensors[8:]), ctx.plan))
    return (*(None if part is None else next(found) for part in tensors[:5]), *(None,) * 5)


def _refuse(ctx: Any, *grads: Any) -> Any:
    raise RuntimeError(ops.ONCE)


forward.register_autograd(_back, setup_context=_keep)
backward.register_autograd(_refuse, setup_context=lambda ctx, inputs, output: None)
