"""`drop_dtw`: the value of every alignment problem of a batch, differentiable in all its costs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import ModuleType
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from dropdtw import drops
from dropdtw.drops import Percentile
from dropdtw.executors import EXECUTORS
from dropdtw.orders.order import Order
from dropdtw.problem.band import window_width
from dropdtw.problem.spec import Spec
from dropdtw.tables.methods import METHODS, Method, MethodLike
from dropdtw.torch import charges, columns, kernels, ops, orders, wavefront
from dropdtw.torch.charges import Charge
from dropdtw.torch.costs import percentile_drop, within
from dropdtw.torch.masks import Mask, front
from dropdtw.torch.orders import Orders, Plan

Batch = Tensor | Sequence[Tensor]
Lengths = Tensor | Sequence[int] | None
Drops = None | float | str | Tensor | Sequence[Tensor]
Padding = tuple[Tensor, Tensor] | None
"""The lengths (B,) of the Z and of the X of a padded batch; None where nothing is padded."""


def drop_dtw(
    C: Batch,
    drop_x: Drops = None,
    drop_z: Drops = None,
    *,
    z_lengths: Lengths = None,
    x_lengths: Lengths = None,
    method: MethodLike = "drop_dtw",
    one_to_many: bool = True,
    many_to_one: bool = True,
    contiguous: bool = False,
    window: float | None = None,
    threshold: float | str | None = None,
    reducer: str = "smooth",
    gamma: float = 1.0,
    executor: str | None = None,
    open_x: Charge = 0.0,
    open_z: Charge = 0.0,
    warp: Charge = 0.0,
    order: Orders = None,
    x_mask: Mask = None,
) -> Tensor:
    """Compute the values (B,) of a batch of alignment problems, differentiable in C, drop costs and charges.

    Parameters
    ----------
    C : (B, K, N) match costs, +∞ forbids a match; or a list of B matrices (K_b, N_b).
    drop_x, drop_z : the cost of dropping x_j or z_i. None forbids dropping. A number; a tensor that broadcasts to
        (B, N) or (B, K); a list of B vectors; or "percentile:30" of each item's own match costs, which gets no
        gradient.
    z_lengths, x_lengths : (B,) lengths of a padded batch. The padding has no influence and gets derivative 0.
    x_mask : (B, N) bool, or a list of B vectors, False where x_j is missing. Such an x matches nothing and costs
        nothing, as if it had been deleted, and gets derivative 0, whatever its value.
    open_x, open_z : the cost that each run of dropped x, or of dropped z, adds to its drop costs. A number ≥ 0, or a
        tensor of shape () or (B,), one number per item.
    warp : the cost that a match adds when it repeats an element. A number ≥ 0, or a tensor of shape () or (B,).
    reducer, gamma : "smooth" is the paper's smoothMin (Eq. 7), "soft" is −γ log Σ exp(−cost/γ), whose derivatives are
        the probabilities of matches and drops, and "hard" the minimum, whose derivative is the alignment itself.
    method, one_to_many, many_to_one, contiguous, window, threshold : as in `dropdtw.solve`.
    order : which steps may follow which, built with `dropdtw.orders`. None keeps the order of Z. One order, or a list
        of steps, applies to all items. A list whose B entries are all orders, lists or None gives one order per item.
        If one order is itself a list of such parts, write `orders.as_order([...])`. Each order has to name all steps
        of its item.
    executor : None picks by device: compiled kernels on the CPU, Triton kernels on CUDA. "wavefront" uses ordinary
        PyTorch operations. It is slow, but runs on any device and can be differentiated more than once.

    If all charges are the number 0, the faster table without charges runs. If one is a tensor, the table with charges
    runs, whatever its values, because checking them would force a device synchronization.

    float16 and bfloat16 inputs are computed in float32, and the result is float32. An item without any alignment has
    the value +∞ and derivative 0. On the CPU, NaN, −∞ and charges below 0 raise an error. On CUDA, where a check would
    force a device synchronization, the value of such an item is NaN (for −∞ and the hard minimum, it may be −∞).

    >>> import torch
    >>> from dropdtw.torch import drop_dtw
    >>> C = torch.tensor([[[0.1, 0.9, 0.2]]], requires_grad=True)
    >>> value = drop_dtw(C, drop_x=0.3, reducer="hard")
    >>> value.sum().backward()
    >>> value, C.grad
    (tensor([0.6000], grad_fn=...), tensor([[[1., 0., 1.]]]))
    """
    C, lengths = _batch(C, z_lengths, x_lengths)
    if x_mask is not None:
        C, drop_x, lengths = _masked(C, drop_x, lengths, x_mask)
    said = (
        method, drop_x is not None, drop_z is not None, threshold is not None, one_to_many, many_to_one, contiguous,
        reducer, _constant(gamma), _constant(charges.said(open_x, "open_x")),
        _constant(charges.said(open_z, "open_z")), _constant(charges.said(warp, "warp")),
    )  # fmt: skip
    spec, call, edits = _spec(*said)
    chosen = _executor(C, executor)
    plan = None
    if order is not None:
        B, K, N = map(int, C.shape)
        spread = isinstance(order, (list, tuple))
        entries: Any = order if spread else (order,)
        compiling = torch.compiler.is_compiling()
        plan = _plan(B, K, N, _known(lengths), said, window, chosen, compiling, spread, *entries)
    elif lengths is None and not torch.compiler.is_compiling():
        spec.check_fit(*C.shape[1:])
    unedited = None if edits else call.table
    costs = _Costs(  # rules look at all of C, as they do without a window
        C if window is None else _banded(C, window, lengths),
        _drops(drop_x, "drop_x", unedited, C, lengths),
        _drops(drop_z, "drop_z", unedited, C, lengths),
        lengths,
    )
    if edits:  # by name: a compiler can follow that, but not the method of the spec
        entry = method if isinstance(method, Method) else METHODS[str(method)]
        costs = entry.edit(costs, None if threshold is None else _threshold(threshold, C, lengths))
    call = ops.Call(call.table, call.reducer, call.gamma, chosen)
    charged = None
    if charges.given(open_x, open_z, warp) or ops.charges(call.table):
        charged = charges.stack((open_x, open_z, warp), len(C), ops.computes_in(C), C.device)
    given = ops.Given(costs.matrix, costs.drop_x, costs.drop_z, charged, lengths)
    return _value(given, call) if plan is None else orders.value(given, call, plan, _value)


def _value(given: ops.Given, call: ops.Call) -> Tensor:
    """The values of a batch of lists, or of one of graphs."""
    if call.executor != "wavefront":
        return ops.value(*given, call)
    listed = call.walks is None and not call.key
    return wavefront.value(*given, call) if listed else columns.value(*given, call)


@dataclass(frozen=True)
class _Costs:
    """Costs of a batch, as `Method.edit` takes them."""

    matrix: Tensor
    drop_x: Tensor
    drop_z: Tensor
    lengths: Padding
    xp: ClassVar[ModuleType] = torch

    def with_match(self, C: Tensor) -> _Costs:
        """The same with other match costs."""
        return replace(self, matrix=C)

    def banded(self) -> Tensor:
        """The match costs with +∞ where no match is possible: outside the window, and in the padding."""
        return self.matrix if self.lengths is None else self.matrix.where(within(self.matrix, *self.lengths), torch.inf)


_Digits = tuple[str]
"""A number as text."""


def _constant(value: Any) -> Any:
    """Numbers as text, all else as it is: compilers make variables of numbers that change from call to call."""
    return (float(value).hex(),) if type(value) in (int, float) else value


def _number(value: Any) -> Any:
    """The counterpart of `_constant`."""
    return float.fromhex(value[0]) if isinstance(value, tuple) else value


def _spec(*said: Any) -> tuple[Spec, ops.Call, bool]:
    return _cached_spec(*said)


# A compiler need not look inside: nothing there depends on tensors. This is what torch.compiler.assume_constant_result
# does, which would import all of the compiler first, and that takes longer than importing everything else.
_spec._dynamo_marked_constant = True  # type: ignore[attr-defined]


@lru_cache(maxsize=1024)
def _cached_spec(
    method: MethodLike,
    x: bool,
    z: bool,
    threshold: bool,
    one_to_many: bool,
    many_to_one: bool,
    contiguous: bool,
    reducer: str,
    gamma: _Digits,
    open_x: _Digits | str,
    open_z: _Digits | str,
    warp: _Digits | str,
    window: float | None = None,
    order: Order | None = None,
) -> tuple[Spec, ops.Call, bool]:
    """The request, what operators are told of it, and whether its method edits costs.

    Of drop costs and thresholds it says only whether there are any: here they are tensors, or rules that read tensors.
    """
    spec = Spec.of(
        0.0 if x else None,
        0.0 if z else None,
        method=method,
        one_to_many=one_to_many,
        many_to_one=many_to_one,
        contiguous=contiguous,
        threshold=0.0 if threshold else None,
        reducer=reducer,
        gamma=_number(gamma),
        open_x=charges.as_asked(_number(open_x)),
        open_z=charges.as_asked(_number(open_z)),
        warp=charges.as_asked(_number(warp)),
        window=window,
        order=order,
    )
    spec.check_costs_suffice()
    return spec, ops.Call(ops.register(spec.table), spec.reducer.name, spec.reducer.gamma), spec.method.edits


def _known(lengths: Padding) -> Sequence[int] | None:
    """The lengths of Z where they can be looked at; () where nothing is padded."""
    if lengths is None:
        return ()
    return lengths[0].tolist() if ops.can_look(lengths[0]) else None


def _plan(
    B: int,
    K: int,
    N: int,
    z_lengths: Sequence[int] | None,
    said: tuple[Any, ...],
    window: float | None,
    executor: str,
    keyed: bool,
    spread: bool,
    *order: Any,
) -> Plan:
    """How a batch with orders is computed.

    z_lengths : None where they cannot be looked at, () where nothing is padded.   keyed : whether for a compiler.
    order : what the caller said, or where that is a list (`spread`) its entries: a compiler takes these one by one.
    """
    found = orders.of_items(order if spread else order[0], B)
    objects = {id(one): one for one in found}  # items share orders; to hash one takes time
    number = {one: n for n, one in enumerate(dict.fromkeys(objects.values()))}
    place = {name: number[one] for name, one in objects.items()}
    which = tuple(place[id(one)] for one in found) if len(number) > 1 else None
    specs = [_spec(*said, window, one)[0] for one in number]
    for spec in specs:
        if spec.order is not None and spec.order.K > K:
            spec.order.check_steps(K)
        if z_lengths is not None and not z_lengths:
            spec.check_fit(K, N)
    orders.check_items(specs, which, z_lengths or ())
    paths = [orders.path(spec) for spec in specs]
    if executor == "triton":
        executor = orders.on_cuda(paths, specs[0].table)
    return orders.plan(paths, which, executor, keyed)


_plan._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _batch(C: Batch, z_lengths: Lengths, x_lengths: Lengths) -> tuple[Tensor, Padding]:
    """One padded tensor (B, K, N) and its lengths."""
    if not isinstance(C, Tensor):
        if z_lengths is not None or x_lengths is not None:
            raise ValueError("lengths belong to a padded batch (B, K, N); a list of matrices has its own")
        if not C or any(not isinstance(c, Tensor) or c.ndim != 2 for c in C):
            raise ValueError("C is a list, but not of matrices; give tensors (K_b, N_b), one per item, at least one")
        z_lengths, x_lengths = [c.shape[0] for c in C], [c.shape[1] for c in C]
        K, N = max(z_lengths), max(x_lengths)
        C = torch.stack([pad(c, (0, N - c.shape[1], 0, K - c.shape[0])) for c in C])
    if C.ndim != 3 or 0 in C.shape:
        raise ValueError(
            f"C has shape {tuple(C.shape)}; give a batch (B, K, N) with at least one of each, or a list of matrices; "
            "one matrix is the batch C[None]"
        )
    if not C.is_floating_point():
        raise ValueError(f"C is of dtype {C.dtype}; give floating-point match costs, for example C.float()")
    B, K, N = C.shape
    if z_lengths is None and x_lengths is None:
        return C, None
    both = []
    for name, lengths, full in (("z_lengths", z_lengths, K), ("x_lengths", x_lengths, N)):
        found = torch.full((B,), full, device=C.device) if lengths is None else torch.as_tensor(lengths)
        if found.shape != (B,) or found.is_floating_point() or found.is_complex() or found.dtype == torch.bool:
            raise ValueError(
                f"{name} has shape {tuple(found.shape)} and dtype {found.dtype}; give {B} whole numbers, one per item"
            )
        both.append(found.to(C.device, torch.int64, non_blocking=True))
    return C, (both[0], both[1])


def _masked(C: Tensor, drop_x: Drops, lengths: Padding, x_mask: Any) -> tuple[Tensor, Drops, Padding]:
    """A batch whose masked x have become padding."""
    B, K, N = C.shape
    found = front(x_mask, B, N, None if lengths is None else lengths[1], C.device)
    if not (drop_x is None or isinstance(drop_x, (int, float, str))):  # one per x, which moves with it
        drop_x = _drops(drop_x, "drop_x", None, C, lengths).gather(1, found.places)
    z_lengths = torch.full((B,), K, device=C.device) if lengths is None else lengths[0]
    return found.columns(C), drop_x, (z_lengths, found.lengths)


def _drops(drop: Drops, name: str, table: str | None, C: Tensor, lengths: Padding) -> Tensor:
    """Drop costs as a tensor (B, N) for "drop_x", (B, K) for "drop_z", in the precision of the computation."""
    B, K, N = C.shape
    length = N if name == "drop_x" else K
    dtype = ops.computes_in(C)
    if drop is None:
        # Where no edge pays it and no method reads it, no kernel need fill it in.
        if C.is_cuda and table is not None and not ops.pays(table, name):
            return torch.empty(1, 1, dtype=dtype, device=C.device).expand(B, length)
        return torch.full((1, 1), torch.inf, dtype=dtype, device=C.device).expand(B, length)
    if isinstance(drop, str):
        found = _rule(drop, name, C, lengths)
    elif isinstance(drop, (int, float)) and not isinstance(drop, bool):
        if torch.finfo(dtype).max < abs(drop) < torch.inf:
            raise ValueError(f"{name} is {drop!r}, which {_called(dtype)} cannot hold; {DOUBLE}")
        found = torch.full((1, 1), float(drop), dtype=dtype, device=C.device)
    elif isinstance(drop, Tensor):
        found = drop
    elif isinstance(drop, Sequence) and len(drop) == B and all(isinstance(d, Tensor) and d.ndim == 1 for d in drop):
        vectors: Sequence[Any] = drop
        found = torch.stack(_vectors(vectors, name, length, lengths))
    else:
        raise ValueError(
            f"{name} is {drop!r}; give None, a number, a tensor that broadcasts to {(B, length)}, "
            f"a list of {B} vectors, or 'percentile:30'"
        )
    if found.shape == (B, length) and found.dtype == dtype and found.device == C.device:
        return found
    fitted = found.to(C.device, dtype)
    if found.dtype == torch.float64 != dtype and ops.can_look(found) and (fitted.isinf() & found.isfinite()).any():
        raise ValueError(f"{name} has values that {_called(dtype)} cannot hold; {DOUBLE}")
    try:
        return fitted.expand(B, length)
    except RuntimeError:
        raise ValueError(
            f"{name} has shape {tuple(found.shape)}; give a number or a tensor that broadcasts to {(B, length)}"
        ) from None


DOUBLE = "give the match costs as float64"


def _called(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _vectors(vectors: Sequence[Tensor], name: str, length: int, lengths: Padding) -> list[Tensor]:
    """One vector per item, padded to `length`. Where lengths cannot be looked at, one of another length becomes NaN."""
    side = 1 if name == "drop_x" else 0
    known = [length] * len(vectors)
    if lengths is not None:
        known = lengths[side].tolist() if ops.can_look(lengths[side]) else [min(len(d), length) for d in vectors]
    for b, (d, n) in enumerate(zip(vectors, known, strict=True)):
        if len(d) != n:
            raise ValueError(
                f"{name}[{b}] has {len(d)} entries, but item {b} has {n} elements {('z_i', 'x_j')[side]}; "
                f"give one drop cost per {('z_i', 'x_j')[side]}"
            )
    padded = [pad(d, (0, length - len(d))) for d in vectors]
    if lengths is None or ops.can_look(lengths[side]):
        return padded
    fits = zip(padded, vectors, lengths[side].unbind(), strict=True)
    return [torch.where(n == len(d), p, torch.nan) for p, d, n in fits]


def _rule(drop: str, name: str, C: Tensor, lengths: Padding) -> Tensor:
    rule = drops.resolve(drop, name)
    if isinstance(rule, Percentile):
        C = C.detach().to(ops.computes_in(C))
        found = kernels.percentile if kernels.run_on(C) and kernels.countable(C) else percentile_drop
        return found(C, rule.p, *(lengths or (None, None)))
    if isinstance(rule, drops.LogitPercentile):
        raise ValueError(
            f"{name} is {drop!r}, which is part of the softmax match cost; "
            "use dropdtw.torch.softmax_with_drop, or DropDTWLoss, which does"
        )
    raise ValueError(
        f"{name} is {drop!r}, which is one number for one problem; on batches use 'percentile:30', "
        "or a number that dropdtw.suggest_drop finds"
    )


def _threshold(threshold: float | str, C: Tensor, lengths: Padding) -> float | Tensor:
    if isinstance(threshold, str):
        return _rule(threshold, "threshold", C, lengths)[..., None]
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or threshold != threshold:
        raise ValueError(f"threshold is {threshold!r}; give a number or a rule such as 'percentile:30'")
    return threshold


def _banded(C: Tensor, window: float, lengths: Padding) -> Tensor:
    """C with +∞ outside the window: |j (K − 1) − i (N − 1)| ≤ w (K − 1), as `dropdtw.problem.band` has it."""
    if lengths is None:
        K, N = (torch.as_tensor(n, device=C.device) for n in C.shape[1:])
    else:
        K, N = (length[:, None, None] for length in lengths)
    i = torch.arange(C.shape[1], device=C.device)[:, None]
    j = torch.arange(C.shape[2], device=C.device)
    reach = (window_width(N, window) * (K - 1) + 1e-9).floor()
    return torch.where((j * (K - 1) - i * (N - 1)).abs() <= reach, C, torch.inf)


def _executor(C: Tensor, name: str | None) -> str:
    """The name of the executor, "" for the best one on the CPU."""
    known = (*EXECUTORS, "triton", "wavefront")
    if name is not None and name not in known:
        raise ValueError(f"executor is {name!r}; choose one of {', '.join(map(repr, known))} (None picks by device)")
    if name is None:
        if C.device.type == "cpu":
            return ""
        if C.is_cuda and ops.has_triton():
            return "triton"
        warnings.warn(
            f"there are no kernels for tensors on {C.device}: ordinary PyTorch operations do the work, slowly; "
            "install triton 3.6 or newer, or move the costs to the CPU",
            RuntimeWarning,
            stacklevel=3,
        )
        return "wavefront"
    if name in EXECUTORS and C.device.type != "cpu":
        raise ValueError(f"executor {name!r} works on the CPU, but C is on {C.device}; leave executor out")
    if name == "triton" and not C.is_cuda:
        from dropdtw.executors import triton

        if not triton.INTERPRETED:
            raise ValueError(f"executor 'triton' works on CUDA, but C is on {C.device}; leave executor out")
    return name
