"""The built-in losses on CUDA as fused operators: a few kernel launches from sequences to values and gradients.

What `AlignmentLoss.align` does in many small operations is one operator here. Match costs, drop costs and alignment
each take one kernel or one matrix product. `values` decides whether the operator applies. In all other cases, and for
any cost that a user supplies, the general path runs. Both paths give the same results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from dropdtw import drops
from dropdtw.problem.spec import Spec
from dropdtw.torch import charges, ops, stages
from dropdtw.torch.batch import Pairs
from dropdtw.torch.functional import check_fit
from dropdtw.torch.learned import LearnedDrop
from dropdtw.torch.operators import Tensors, operator
from dropdtw.torch.stages import Drop, Gradients, LossInputs, LossPlan, Shared

if TYPE_CHECKING:
    from dropdtw.torch.losses import AlignmentLoss

FUSED = ("softmax", "cosine", "sqeuclidean")
"""Match costs that have kernels here."""


def runs_on(A: Tensor) -> bool:
    """Whether the kernels support this tensor's device."""
    return A.is_cuda and ops.has_triton()


def applies_to(A: Tensor) -> bool:
    """Whether the kernels support this tensor's device and can read it; under torch.func transforms they cannot."""
    return runs_on(A) and (torch.compiler.is_compiling() or not torch._C._are_functorch_transforms_active())


# --- Where it applies ---------------------------------------------------------------------------------------------


def values(loss: AlignmentLoss, p: Pairs, normalize: str | None, reduction: str = "none") -> Tensor | None:
    """Compute the normalized values (B,) or their reduction; None if the general path must compute them."""
    match = "softmax" if loss.temperature is not None else loss.match
    if match not in FUSED or loss.window is not None or loss.threshold is not None or not applies_to(p.given_x):
        return None
    by_name = loss.charges_of(p)
    drop_x, drop_z = loss.drop_x, loss.drop_z
    moves = tuple([(name, getattr(loss, name)) for name in ("one_to_many", "many_to_one", "contiguous")])
    known = tuple([(name, "" if isinstance(value, Tensor) else _digits(value)) for name, value in by_name.items()])
    costs = (match, _digits(loss.temperature or 1.0), _kind(drop_x), _kind(drop_z), p.given_z.dtype == torch.float64)
    plan, name, spec = _plan(*costs, loss.method, loss.reducer, _digits(loss.gamma), moves, known, normalize, reduction)
    if plan is None:
        return None
    sharing = shared(p)
    given = inputs(p) if sharing is None else sharing.given
    if p.strict and not torch.compiler.is_compiling():
        check_fit(spec, given.Z.shape[1], given.X.shape[1], given.lengths)
    own_x, own_z = _own(drop_x, p), _own(drop_z, p, turned=True)
    charged = None
    if charges.given(*by_name.values()) or ops.pays_charges(plan.operation.table):
        three = (by_name.get("open_x", 0.0), by_name.get("open_z", 0.0), by_name.get("warp", 0.0))
        charged = charges.stack(three, len(given.Z), given.Z.dtype, given.Z.device)
    return _value(given._replace(own_x=own_x, own_z=own_z, charges=charged), plan, name, sharing)


def inputs(p: Pairs) -> LossInputs:
    """Return pairs in the form that the operators take: with both lengths or neither, and with arbitrary padding.

    Under torch.compile the padding is set to 0: the compiler fuses that with the preceding operations.
    """
    lengths = p.z_lengths, p.x_lengths
    if p.z_lengths is not None or p.x_lengths is not None:
        lengths = _full(p.given_z, p.z_lengths), _full(p.given_x, p.x_lengths)
    Z, X = (p.Z, p.X) if torch.compiler.is_compiling() else (p.given_z, p.given_x)
    return LossInputs(Z, X, None, None, None, p.names, *lengths)


def shared(p: Pairs) -> Shared | None:
    """Return the intermediate results that losses of the same pairs share; None under torch.compile."""
    if torch.compiler.is_compiling():
        return None
    if p.shared is None:
        p.shared = Shared(inputs(p))
    found: Shared = p.shared
    return found


def _full(A: Tensor, lengths: Tensor | None) -> Tensor:
    return torch.full((len(A),), A.shape[1], device=A.device) if lengths is None else lengths


DropKind = tuple[str, str]
"""The kind of a drop cost, known without reading a tensor, and its digits; ("tensor", …) is the user's own tensor."""


def _digits(number: float) -> str:
    """Encode a number as text: torch.compile turns a number that changes between calls into a variable."""
    return float(number).hex()


def _kind(drop: Any) -> DropKind:
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
    """Return a network's output for X, or for Z if the pairs are swapped."""
    if not isinstance(drop, LearnedDrop):
        return None
    return drop.own_logit(p.turned() if turned else p).contiguous()


TENSOR = charges.described(torch.empty(0), "")
"""Placeholder for a charge that is a tensor."""


def _plan(*options: Any) -> tuple[LossPlan | None, str, Spec]:
    return _cached_plan(*options)


_plan._dynamo_marked_constant = True  # type: ignore[attr-defined]  # see functional._spec


@lru_cache(maxsize=1024)
def _cached_plan(
    match: str,
    gamma_match: str,
    drop_x: DropKind,
    drop_z: DropKind,
    wide: bool,
    method: str,
    reducer: str,
    gamma: str,
    moves: tuple[tuple[str, bool], ...],
    known: tuple[tuple[str, str], ...],
    normalize: str | None,
    reduction: str,
) -> tuple[LossPlan | None, str, Spec]:
    """Return the plan of a request (None if the general path must run), its operator name, and the checked request."""
    charged = {name: charges.described(float.fromhex(digits), name) if digits else TENSOR for name, digits in known}
    found = [_drop(kind, name, wide) for kind, name in ((drop_x, "drop_x"), (drop_z, "drop_z"))]
    options: dict[str, Any] = dict(moves) | {name: charges.for_spec(value) for name, value in charged.items()}
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
    operation = ops.Operation(ops.register(spec.table), spec.reducer.name, spec.reducer.gamma, "triton")
    x = Drop("number", math.inf) if x.kind == "none" and ops.pays(operation.table, "drop_x") else x
    z = Drop("number", math.inf) if z.kind == "none" and ops.pays(operation.table, "drop_z") else z
    plan = LossPlan(match, float.fromhex(gamma_match), x, z, operation, normalize, reduction)
    name = repr(plan)
    _PLANS[name] = plan
    return plan, name, spec


def _drop(drop: DropKind, name: str, wide: bool) -> Drop | None:
    kind, digits = drop
    if kind == "rule":
        rule = drops.lowered(drops.resolve(digits, name))
        return Drop(rule.kind, rule.number) if rule.kind in ("percentile", "logit") else None
    dtype, value = torch.float64 if wide else torch.float32, float.fromhex(digits)
    if kind == "tensor" or (kind == "number" and not abs(value) <= torch.finfo(dtype).max):
        return None
    return Drop(kind, value)


_PLANS: dict[str, LossPlan] = {}
"""Plans by the names that operators take."""


# --- As PyTorch knows it ------------------------------------------------------------------------------------------


def _value(given: LossInputs, plan: LossPlan, name: str, shared: Shared | None) -> Tensor:
    wanted = 0
    if torch.is_grad_enabled():
        for n, part in enumerate(given[:5]):
            wanted += (part is not None and part.requires_grad) << n
    found: Tensor
    if torch.compiler.is_compiling():
        tensors = _distinct(given)
        found = _Traced.apply(*tensors, name, wanted) if wanted else forward(*tensors, name, 0)[0]  # type: ignore[no-untyped-call]
    elif wanted:
        found = _differentiable(*given[:5], (given, plan, wanted, shared))
    else:
        found, _ = stages.forward(given, plan, 0, shared)
    return found


def _distinct(tensors: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Replace each repeated tensor by a view: under torch.compile, an autograd function given one tensor twice returns
    wrong derivatives in PyTorch 2.11, and is refused in 2.13.
    """
    found: list[Tensor | None] = []
    for tensor in tensors:
        again = tensor is not None and any(tensor is other for other in found)
        found.append(tensor.view_as(tensor) if tensor is not None and again else tensor)
    return found


def _forward(tensors: Tensors, settings: tuple[LossInputs, LossPlan, int, Shared]) -> tuple[Tensor, Tensors, Any]:
    given, plan, wanted, shared = settings
    found, saved = stages.forward(given, plan, wanted, shared)
    ragged = plan.match == "softmax" and given.lengths is not None
    return found, (*(shared.sequences if ragged else given[:2]), *saved), (plan, wanted)


def _backward(grad: Tensor, kept: Tensors, settings: tuple[LossPlan, int]) -> Gradients:
    Z, X, *found = cast("Sequence[Tensor]", kept)
    return stages.derivatives(Z, X, stages.scaled(grad, found), *settings)


_differentiable = operator(_forward, _backward, ops.ONCE)
"""The operator for eager code."""


class _Traced(torch.autograd.Function):
    """The operator for torch.compile: one opaque call in the forward pass, a multiplication in the backward pass.

    The backward pass does not read Z and X, so a compiler's CUDA graphs need not copy them for it. The compiler fuses
    the multiplication with the operations that follow.
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
    """Compute the values or their reduction, and the derivatives with respect to the requested inputs."""
    how = _PLANS[plan]
    value, found = stages.forward(LossInputs(Z, X, own_x, own_z, charges, ids, z_lengths, x_lengths), how, wanted)
    return value, [part for part in stages.derivatives(Z, X, found, how, wanted) if part is not None]


def _fake(Z, X, own_x, own_z, charges, ids, z_lengths, x_lengths, plan, wanted):  # type: ignore[no-untyped-def]
    parts = (Z, X, own_x, own_z, charges)
    made = [Z.new_empty(part.shape) for n, part in enumerate(parts) if wanted >> n & 1]
    return Z.new_empty(len(Z) if _PLANS[plan].reduction == "none" else ()), made


# Defined by hand: the overhead of `torch.library.custom_op` exceeds the time of the call itself.
_LIBRARY: Any = torch.library.Library("dropdtw", "FRAGMENT")  # type: ignore[no-untyped-call]
_LIBRARY.define(
    "loss(Tensor Z, Tensor X, Tensor? own_x, Tensor? own_z, Tensor? charges, Tensor? ids, Tensor? z_lengths, "
    "Tensor? x_lengths, str plan, int wanted) -> (Tensor, Tensor[])"
)
_LIBRARY.impl("loss", _loss, "CompositeExplicitAutograd")
torch.library.register_fake("dropdtw::loss", _fake, lib=_LIBRARY)
forward = torch.ops.dropdtw.loss.default
