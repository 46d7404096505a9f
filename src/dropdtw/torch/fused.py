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
from dropdtw.torch.stages import Drop, Gradients, Inputs, Plan, Shared

if TYPE_CHECKING:
    from dropdtw.torch.losses import AlignmentLoss

FUSED = ("softmax", "cosine", "sqeuclidean")
"""Match costs that have kernels here."""


def runs_on(A: Tensor) -> bool:
    """Whether the kernels run where this tensor is."""
    return A.is_cuda and ops.has_triton()


def applies_to(A: Tensor) -> bool:
    """Whether the kernels run where this tensor is, and can read it: tensors of transformed code they cannot."""
    return runs_on(A) and (torch.compiler.is_compiling() or not torch._C._are_functorch_transforms_active())


# --- Where it applies ---------------------------------------------------------------------------------------------


def values(loss: AlignmentLoss, p: Pairs, normalize: str | None, reduction: str = "none") -> Tensor | None:
    """The value of each item (B,), normalised, or what is left of them; None where the general path has to find it."""
    if loss.match not in FUSED or loss.moves.get("window") is not None or not applies_to(p.given_x):
        return None
    said = loss.charges()
    drop_x, drop_z = loss.dropped()
    moves = tuple([(name, allowed) for name, allowed in loss.moves.items() if name != "window"])
    known = tuple([(name, "" if isinstance(value, Tensor) else _digits(value)) for name, value in said.items()])
    asked = (loss.match, _digits(loss.gamma_match), _said(drop_x), _said(drop_z), p.given_z.dtype == torch.float64)
    plan, name, spec = _plan(*asked, loss.method, loss.reducer, _digits(loss.gamma), moves, known, normalize, reduction)
    if plan is None:
        return None
    sharing = shared(p)
    given = inputs(p) if sharing is None else sharing.given
    if given.lengths is None and not torch.compiler.is_compiling():
        spec.check_fit(given.Z.shape[1], given.X.shape[1])
    own_x, own_z = _own(drop_x, p), _own(drop_z, p, turned=True)
    charged = None
    if charges.given(*said.values()) or ops.charges(plan.call.table):
        three = (said.get("open_x", 0.0), said.get("open_z", 0.0), said.get("warp", 0.0))
        charged = charges.stack(three, len(given.Z), given.Z.dtype, given.Z.device)
    return _value(given._replace(own_x=own_x, own_z=own_z, charges=charged), plan, name, sharing)


def inputs(p: Pairs) -> Inputs:
    """Pairs as the operators take them: with both lengths or none, and whatever stands in the padding.

    For compilers there is 0 in it: they merge that with what comes before.
    """
    lengths = p.z_lengths, p.x_lengths
    if p.z_lengths is not None or p.x_lengths is not None:
        lengths = _full(p.given_z, p.z_lengths), _full(p.given_x, p.x_lengths)
    Z, X = (p.Z, p.X) if torch.compiler.is_compiling() else (p.given_z, p.given_x)
    return Inputs(Z, X, None, None, None, p.names, *lengths)


def shared(p: Pairs) -> Shared | None:
    """What losses of the same pairs share; None where a compiler is to find that out."""
    if torch.compiler.is_compiling():
        return None
    if p.shared is None:
        p.shared = Shared(inputs(p))
    found: Shared = p.shared
    return found


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


def _own(drop: Any, p: Pairs, turned: bool = False) -> Tensor | None:
    """What a network says of X, or of Z where the pairs are turned."""
    if not isinstance(drop, LearnedDrop):
        return None
    return drop.own_logit(p.turned() if turned else p).contiguous()


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
    reduction: str,
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
    plan = Plan(match, float.fromhex(gamma_match), x, z, call, normalize, reduction)
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


def _value(given: Inputs, plan: Plan, name: str, shared: Shared | None) -> Tensor:
    wanted = 0
    if torch.is_grad_enabled():
        for n, part in enumerate(given[:5]):
            wanted += (part is not None and part.requires_grad) << n
    found: Tensor
    if torch.compiler.is_compiling():
        found = _Traced.apply(*given, name, wanted) if wanted else forward(*given, name, 0)[0]  # type: ignore[no-untyped-call]
    elif wanted:
        found = _Forward.apply(*given[:5], given, plan, wanted, shared)  # type: ignore[no-untyped-call]
    else:
        found, _ = stages.forward(given, plan, 0, shared)
    return found


class _Forward(torch.autograd.Function):
    """The operator as eager code runs it: a registered one costs several times as much per call."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        given: Inputs
        shared: Shared
        *_, given, plan, wanted, shared = arguments
        found, saved = stages.forward(given, plan, wanted, shared)
        ctx.plan, ctx.wanted = plan, wanted
        ragged = plan.match == "softmax" and given.lengths is not None
        ctx.save_for_backward(*(shared.sequences if ragged else given[:2]), *saved)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        Z, X, *found = ctx.saved_tensors
        if torch.is_grad_enabled():  # with create_graph: the derivatives must know that they have none
            by = _Backward.apply(grad, Z, X, *found, ctx.plan, ctx.wanted)  # type: ignore[no-untyped-call]
        else:
            by = stages.pulled(Z, X, stages.scaled(grad, found), ctx.plan, ctx.wanted)
        return *by, None, None, None, None


class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, grad: Tensor, Z: Tensor, X: Tensor, *rest: Any) -> Gradients:
        *found, plan, wanted = rest
        return stages.pulled(Z, X, stages.scaled(grad, found), plan, wanted)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(ops.ONCE)


class _Traced(torch.autograd.Function):
    """The operator as compilers trace it: one opaque call forward, a multiplication backward.

    The backward pass does not read Z and X, so that no CUDA graph of a compiler has to copy them for it, and compilers
    merge the multiplication with what follows.
    """

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *tensors, name, wanted = given
        found: Tensor
        found, parts = forward(*tensors, name, wanted)
        ctx.wanted = wanted
        ctx.save_for_backward(*parts)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        by = stages.spread(stages.scaled(grad, ctx.saved_tensors), ctx.wanted, 5)
        return *by, None, None, None, None, None


def _loss(
    Z: Tensor,
    X: Tensor,
    own_x: Tensor | None,
    own_z: Tensor | None,
    charges: Tensor | None,
    ids: Tensor | None,
    z_lengths: Tensor | None,
    x_lengths: Tensor | None,
    plan: str,
    wanted: int,
) -> tuple[Tensor, list[Tensor]]:
    """The values, or what is left of them, and their derivatives by the inputs that are wanted."""
    how = _PLANS[plan]
    value, found = stages.forward(Inputs(Z, X, own_x, own_z, charges, ids, z_lengths, x_lengths), how, wanted)
    return value, [part for part in stages.pulled(Z, X, found, how, wanted) if part is not None]


def _fake(Z, X, own_x, own_z, charges, ids, z_lengths, x_lengths, plan, wanted):  # type: ignore[no-untyped-def]
    parts = (Z, X, own_x, own_z, charges)
    made = [Z.new_empty(part.shape) for n, part in enumerate(parts) if wanted >> n & 1]
    return Z.new_empty(len(Z) if _PLANS[plan].reduction == "none" else ()), made


# Defined by hand: what `torch.library.custom_op` adds to a call takes longer than the call.
_LIBRARY: Any = torch.library.Library("dropdtw", "FRAGMENT")  # type: ignore[no-untyped-call]
_LIBRARY.define(
    "loss(Tensor Z, Tensor X, Tensor? own_x, Tensor? own_z, Tensor? charges, Tensor? ids, Tensor? z_lengths, "
    "Tensor? x_lengths, str plan, int wanted) -> (Tensor, Tensor[])"
)
_LIBRARY.impl("loss", _loss, "CompositeExplicitAutograd")
torch.library.register_fake("dropdtw::loss", _fake, lib=_LIBRARY)
forward = torch.ops.dropdtw.loss.default
