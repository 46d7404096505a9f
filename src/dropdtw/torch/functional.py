"""`drop_dtw`: the values of a batch of alignment problems, differentiable with respect to every cost."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from inspect import signature
from typing import Any, NamedTuple, Never, TypedDict, Unpack

import torch
from torch import Tensor
from torch.nn.functional import pad

from dropdtw import drops
from dropdtw.executors import EXECUTORS
from dropdtw.orders.order import Order
from dropdtw.problem.band import window_width
from dropdtw.problem.costs import Costs
from dropdtw.problem.errors import refuse_keywords
from dropdtw.problem.options import takes
from dropdtw.problem.spec import Spec
from dropdtw.problem.warn import warn_of_hard_gamma
from dropdtw.tables.methods import METHODS, Method, MethodLike
from dropdtw.tables.table import CHARGES
from dropdtw.torch import charges, columns, kernels, ops, orders, wavefront
from dropdtw.torch.charges import Charge
from dropdtw.torch.costs import percentile_drop
from dropdtw.torch.masks import Mask, front
from dropdtw.torch.orders import BatchPlan, Orders

Batch = Tensor | Sequence[Tensor]
Lengths = Tensor | Sequence[int] | None
Drops = None | float | str | Tensor | Sequence[Tensor] | drops.PerElement
Padding = tuple[Tensor, Tensor] | None
"""Lengths (B,) of Z and of X in a padded batch, or None if nothing is padded."""


class TableOptions(TypedDict, total=False):
    """Which table to run, and with which minimum; `dropdtw.solve` and `drop_dtw` explain these options."""

    method: MethodLike
    one_to_many: bool
    many_to_one: bool
    contiguous: bool
    open_x: Charge
    open_z: Charge
    warp: Charge
    window: float | None
    threshold: float | str | None
    order: Orders
    reducer: str
    gamma: float


class BatchOptions(TableOptions, total=False):
    """With how a batch is laid out and computed."""

    z_lengths: Lengths
    x_lengths: Lengths
    x_mask: Mask
    strict: bool
    executor: str | None


def drop_dtw(C: Batch, drop_x: Drops = None, drop_z: Drops = None, **options: Unpack[BatchOptions]) -> Tensor:
    """Compute the values of a batch of alignment problems, differentiable with respect to every cost.

    Parameters
    ----------
    C : (B, K, N) match costs, or a list of B matrices (K_b, N_b). +∞ forbids a match.
    drop_x, drop_z : cost of dropping x_j or z_i. None forbids drops on that side. Otherwise a number; a tensor that
        broadcasts to (B, N) or (B, K); a list of B vectors; or "percentile:30" (any p from 0 to 100), which reads each
        item's own match costs and passes no gradient back to them; or `drops.Background(p)` with a tensor p.
    z_lengths, x_lengths : (B,) lengths of a padded batch. Padding does not affect the value and gets gradient 0.
    x_mask : (B, N) bool, or a list of B vectors: False where x_j is missing. A missing x_j is treated as if it had been
        deleted: it matches nothing, costs nothing and gets gradient 0, whatever value it holds.
    open_x, open_z : extra cost of the first dropped x (z) of each run, on top of its drop cost. A number ≥ 0, or a
        tensor () or (B,) with one number per item. A tensor of zeros gives the same values as the number 0, but is
        slower.
    warp : extra cost of a match that repeats an element, on top of its match cost. A number ≥ 0 or a tensor () or (B,).
    reducer : "smooth" is the paper's smoothMin (Eq. 7). "soft" is −γ log Σ exp(−cost/γ); its derivatives are the
        probabilities of matches and drops. "hard" is the minimum; its derivative is the alignment itself.
    gamma : γ of "smooth" and "soft", a number ≥ 0; 0 gives the hard minimum.
    method, one_to_many, many_to_one, contiguous, window, threshold : as in `dropdtw.solve`.
    order : which steps may follow which, see `dropdtw.orders`. None keeps the order of Z. One order for all
        items, or a list with one order (or None) per item. A list that contains a step number is one order for all. A
        list of `Order`s is one per item; to make it one order for all, pass `orders.as_order([...])`. Each order must
        name every step of its item.
    strict : whether an item whose lengths no alignment fits raises an error. False gives +∞ instead. So do lengths that
        cannot be read: on CUDA, where that would force a device synchronization, and under compilers and `vmap`.
    executor : None picks by device: "cpp" (compiled) or, without it, "reference" on the CPU; "triton" on CUDA.
        Otherwise, and for large orders on CUDA, it picks "wavefront", with a warning. "wavefront" uses ordinary PyTorch
        operations: it is slow, but runs on any device and can be differentiated more than once.

    Returns
    -------
    A tensor (B,), float64 if C is float64 and float32 otherwise. An item that has no alignment has value +∞ and
    gradient 0.

    Raises
    ------
    ValueError : if an argument is invalid. On the CPU, this includes NaN, −∞, and negative open_x, open_z or warp. On
        CUDA, where checking would force a device synchronization, the value of such an item is NaN instead; under the
        hard minimum, a cost of −∞ may give −∞.
    RuntimeError : on second differentiation, except with `executor="wavefront"`.

    >>> import torch
    >>> from dropdtw.torch import drop_dtw
    >>> C = torch.tensor([[[0.1, 0.9, 0.2]]], requires_grad=True)
    >>> value = drop_dtw(C, drop_x=0.3, reducer="hard")
    >>> value.sum().backward()
    >>> value, C.grad
    (tensor([0.6000], grad_fn=...), tensor([[[1., 0., 1.]]]))
    """
    warn_of_hard_gamma(options.get("reducer", "smooth"), options.get("gamma", 1.0), default=1.0)
    return request(C, drop_x, drop_z, **options).values()


class Request(NamedTuple):
    """A batch that is ready to be solved.

    plan : how items with orders are computed; None without orders.
    places : (B, N) the position of each x in the caller's batch; None without a mask.
    """

    given: Costs
    operation: ops.Operation
    plan: BatchPlan | None
    places: Tensor | None

    def values(self) -> Tensor:
        """The values (B,), differentiable with respect to the costs."""
        if self.plan is None:
            return _value(self.given, self.operation)
        return orders.value(self.given, self.operation, self.plan, _value)


@takes()
def request(
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
    strict: bool = True,
    **unknown: Never,
) -> Request:
    """Validate the arguments of `drop_dtw`, and turn rules and options into costs and a table."""
    refuse_keywords(drop_dtw, unknown)
    C, lengths = _batch(C, z_lengths, x_lengths)
    places = None
    if x_mask is not None:
        C, drop_x, lengths, places = _masked(C, drop_x, lengths, x_mask)
    options = (
        ("drop_x", None if drop_x is None else 0.0), ("drop_z", None if drop_z is None else 0.0),
        ("threshold", None if threshold is None else 0.0), ("one_to_many", one_to_many), ("many_to_one", many_to_one),
        ("contiguous", contiguous), ("reducer", reducer), ("gamma", _constant(gamma)),
        ("open_x", _constant(charges.described(open_x, "open_x"))),
        ("open_z", _constant(charges.described(open_z, "open_z"))),
        ("warp", _constant(charges.described(warp, "warp"))),
    )  # fmt: skip
    spec, operation, edits, limits_lengths = _spec(method, options)
    chosen = executor_of(C, executor)
    plan = None
    if order is not None:
        B, K, N = map(int, C.shape)
        is_list = isinstance(order, (list, tuple))
        entries: Any = order if is_list else (order,)
        compiling = torch.compiler.is_compiling()
        plan = _plan(B, K, N, _known(lengths), strict, method, options, window, chosen, compiling, is_list, *entries)
    elif strict and limits_lengths and not torch.compiler.is_compiling():
        check_fit(spec, C.shape[1], C.shape[2], lengths)
    unedited = None if edits else operation.table
    charged = None
    # A tensor always selects a table with charges: checking whether it is 0 would force a device synchronization.
    if charges.given(open_x, open_z, warp) or ops.pays_charges(operation.table):
        charged = charges.stack((open_x, open_z, warp), len(C), ops.computes_in(C), C.device)
    given = Costs(  # rules read all of C, even the part outside the window
        C if window is None else _banded(C, window, lengths),
        _drops(drop_x, "drop_x", unedited, C, lengths),
        _drops(drop_z, "drop_z", unedited, C, lengths),
        charged,
        lengths,
        torch,
    )
    if edits:  # looked up by name: torch.compile can trace that, but not the spec's own method
        entry = method if isinstance(method, Method) else METHODS[str(method)]
        given = entry.edit(given, None if threshold is None else threshold_of(threshold, C, lengths))
    operation = ops.Operation(operation.table, operation.reducer, operation.gamma, chosen)
    return Request(given, operation, plan, places)


drop_dtw.__signature__ = signature(request).replace(return_annotation=Tensor)  # type: ignore[attr-defined]


def _value(given: Costs, operation: ops.Operation) -> Tensor:
    """Return the values of a batch of lists or of graphs."""
    if operation.executor != "wavefront":
        return ops.value(given, operation)
    on_graphs = operation.graphs is not None or bool(operation.key)
    return columns.value(given, operation) if on_graphs else wavefront.value(given, operation)


_Options = tuple[tuple[str, Any], ...]


def _constant(value: Any) -> Any:
    """Encode numbers as text: torch.compile turns numbers that change from call to call into variables."""
    return (float(value).hex(),) if type(value) in (int, float) else value


def _number(value: Any) -> Any:
    """Decode what `_constant` encoded."""
    return float.fromhex(value[0]) if isinstance(value, tuple) else value


def check_request(drop_x: object, drop_z: object, threshold: object, **options: Any) -> None:
    """Raise if the options of `drop_dtw` are invalid, or cannot be combined."""
    for name in CHARGES:
        options[name] = charges.for_spec(charges.described(options[name], name))
    given = {"drop_x": drop_x, "drop_z": drop_z, "threshold": threshold}
    options |= {name: None if value is None else 0.0 for name, value in given.items()}
    _check_lists(Spec.of(**options))


def _check_lists(spec: Spec) -> None:
    """Raise if the method needs more than a table and the costs of each item."""
    spec.check_costs_suffice()
    ordered = spec.order is not None and not spec.order.is_plain
    if spec.on_graph or (spec.method.takes_ids and ordered):
        raise ValueError(
            f"method {spec.method.name!r} takes {'order' if ordered else 'drop_z'} for one pair of sequences only, not "
            "for a batch; use 'steps', or align one pair at a time with dropdtw.solve"
        )


def _spec(*options: Any) -> tuple[Spec, ops.Operation, bool, bool]:
    return _cached_spec(*options)


# torch.compile need not trace this function: nothing in it depends on tensors. The attribute is all that
# torch.compiler.assume_constant_result sets. Calling that function would first import the whole compiler, which takes
# longer than all other imports together.
_spec._dynamo_marked_constant = True  # type: ignore[attr-defined]


@lru_cache(maxsize=1024)
def _cached_spec(
    method: MethodLike, options: _Options, window: float | None = None, order: Order | None = None
) -> tuple[Spec, ops.Operation, bool, bool]:
    """Return the request, the operator's settings, whether the method edits costs, and whether it limits the lengths.

    options : names and values; numbers may be text. Drop costs and thresholds are 0 if they exist: here they are
        tensors, or rules that read tensors.
    """
    named = {name: _number(value) for name, value in options}
    named |= {name: charges.for_spec(named[name]) for name in CHARGES}
    spec = Spec.of(method=method, window=window, order=order, **named)
    _check_lists(spec)
    operation = ops.Operation(ops.register(spec.table), spec.reducer.name, spec.reducer.gamma)
    limits = spec.method.refuses is not None or not (spec.fits(1, 9) and spec.fits(9, 1))
    return spec, operation, spec.method.edits, limits


def _known(lengths: Padding) -> Sequence[tuple[int, int]] | None:
    """Return the lengths (K_b, N_b) of the items, () if nothing is padded, or None if they cannot be read."""
    if lengths is None:
        return ()
    return list(zip(*(each.tolist() for each in lengths), strict=True)) if ops.can_look(lengths[0]) else None


def check_fit(spec: Spec, K: int, N: int, lengths: Padding) -> None:
    """Raise if no alignment fits the lengths of some item, unless reading them would synchronize."""
    known = _known(lengths)
    orders.check_items([spec], None, [(K, N)] if known == () else known or ())


def _plan(
    B: int,
    K: int,
    N: int,
    lengths: Sequence[tuple[int, int]] | None,
    strict: bool,
    method: MethodLike,
    options: _Options,
    window: float | None,
    executor: str,
    compiling: bool,
    is_list: bool,
    *order: Any,
) -> BatchPlan:
    """Plan how to compute a batch with orders.

    lengths : None if they cannot be read, () if nothing is padded.   compiling : whether torch.compile is tracing.
    order : the caller's order or, if that is a list (`is_list`), its entries: torch.compile needs them one by one.
    """
    found = orders.of_items(order if is_list else order[0], B)
    objects = {id(one): one for one in found}  # items share orders, and hashing an order is slow
    number = {one: n for n, one in enumerate(dict.fromkeys(objects.values()))}
    index = {name: number[one] for name, one in objects.items()}
    which = tuple(index[id(one)] for one in found) if len(number) > 1 else None
    specs = [_spec(method, options, window, one)[0] for one in number]
    for spec in specs:
        if spec.order is not None and spec.order.K > K:
            spec.order.check_steps(K)
        if lengths is not None and not lengths:
            orders.check_items([spec], None, [(K, N)], strict)
    orders.check_items(specs, which, lengths or (), strict)
    paths = [orders.path(spec) for spec in specs]
    if executor == "triton":
        executor = orders.on_cuda(paths, specs[0].table)
    return orders.plan(paths, which, executor, compiling)


_plan._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _batch(C: Batch, z_lengths: Lengths, x_lengths: Lengths) -> tuple[Tensor, Padding]:
    """Return one padded tensor (B, K, N) and its lengths."""
    if not isinstance(C, Tensor):
        if z_lengths is not None or x_lengths is not None:
            raise ValueError("lengths belong to a padded batch (B, K, N), but C is a list of matrices; leave them out")
        if not C or any(not isinstance(c, Tensor) or c.ndim != 2 for c in C):
            raise ValueError("C is a list, but not of matrices; give at least one item, each a tensor (K_b, N_b)")
        z_lengths, x_lengths = [c.shape[0] for c in C], [c.shape[1] for c in C]
        K, N = max(z_lengths), max(x_lengths)
        C = torch.stack([pad(c, (0, N - c.shape[1], 0, K - c.shape[0])) for c in C])
    if C.ndim != 3 or 0 in C.shape:
        raise ValueError(
            f"C has shape {tuple(C.shape)}; give a batch (B, K, N) with B, K, N ≥ 1, or a list of matrices. "
            "For a single matrix, pass C[None]"
        )
    if not C.is_floating_point():
        raise ValueError(f"C has dtype {C.dtype}; give floating-point match costs, for example C.float()")
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


def _masked(C: Tensor, drop_x: Drops, lengths: Padding, x_mask: Any) -> tuple[Tensor, Drops, Padding, Tensor]:
    """Turn the masked x of a batch into padding. Also returns where each x comes from."""
    B, K, N = C.shape
    found = front(x_mask, B, N, None if lengths is None else lengths[1], C.device)
    if not (drop_x is None or isinstance(drop_x, (int, float, str))):  # each x takes its drop cost along
        drop_x = _drops(drop_x, "drop_x", None, C, lengths).gather(1, found.places)
    z_lengths = torch.full((B,), K, device=C.device) if lengths is None else lengths[0]
    return found.columns(C), drop_x, (z_lengths, found.lengths), found.places


def drop_costs(drop: Drops, name: str, C: Tensor, lengths: Padding) -> Tensor:
    """Return the drop costs of a batch, (B, N) for "drop_x" or (B, K) for "drop_z"."""
    return _drops(drop, name, None, C, lengths)


def _drops(drop: Drops, name: str, table: str | None, C: Tensor, lengths: Padding) -> Tensor:
    """Return drop costs as a tensor, (B, N) for "drop_x" or (B, K) for "drop_z", in the computation's precision."""
    B, K, N = C.shape
    length = N if name == "drop_x" else K
    dtype = ops.computes_in(C)
    drop = values_of(drop)
    if drop is None:
        # No edge pays this cost and no method reads it, so no kernel has to fill it in.
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


def values_of(drop: Any) -> Any:
    """Return the numbers of a rule that is nothing else, such as `drops.Background`, as a tensor."""
    return torch.as_tensor(drop.values) if isinstance(drop, drops.PerElement) else drop


DOUBLE = "give the match costs as float64"


def _called(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _vectors(vectors: Sequence[Tensor], name: str, length: int, lengths: Padding) -> list[Tensor]:
    """Pad one vector per item to `length`. If lengths cannot be read, a vector of the wrong length becomes NaN."""
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
    kind, p, _ = drops.lowered(rule)
    if kind == "percentile":
        C = C.detach().to(ops.computes_in(C))
        found = kernels.percentile if kernels.run_on(C) and kernels.countable(C) else percentile_drop
        return found(C, p, *(lengths or (None, None)))
    if kind == "logit":
        raise ValueError(
            f"{name} is {drop!r}, which is part of the softmax match cost; "
            "use dropdtw.torch.softmax_with_drop, or DropDTWLoss, which calls it"
        )
    raise ValueError(
        f"{name} is {drop!r}, which works on one problem only; for a batch use 'percentile:30', "
        "or a number from dropdtw.suggest_drop"
    )


def threshold_of(threshold: float | str, C: Tensor, lengths: Padding) -> float | Tensor:
    """Return the threshold of a batch, a number or (B, 1, 1)."""
    if isinstance(threshold, str):
        return _rule(threshold, "threshold", C, lengths)[..., None]
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or threshold != threshold:
        raise ValueError(f"threshold is {threshold!r}; give a number or a rule such as 'percentile:30'")
    return threshold


def _banded(C: Tensor, window: float, lengths: Padding) -> Tensor:
    """Set C to +∞ outside the window |j (K − 1) − i (N − 1)| ≤ w (K − 1), as in `dropdtw.problem.band`."""
    if lengths is None:
        K, N = (torch.as_tensor(n, device=C.device) for n in C.shape[1:])
    else:
        K, N = (length[:, None, None] for length in lengths)
    i = torch.arange(C.shape[1], device=C.device)[:, None]
    j = torch.arange(C.shape[2], device=C.device)
    reach = (window_width(N, window) * (K - 1) + 1e-9).floor()
    return torch.where((j * (K - 1) - i * (N - 1)).abs() <= reach, C, torch.inf)


def executor_of(C: Tensor, name: str | None = None) -> str:
    """Return the name of the executor; "" stands for the fastest one on the CPU."""
    known = (*EXECUTORS, "triton", "wavefront")
    if name is not None and name not in known:
        raise ValueError(f"executor is {name!r}; choose one of {', '.join(map(repr, known))} (None picks by device)")
    if name is None:
        if C.device.type == "cpu":
            return ""
        if C.is_cuda and ops.has_triton():
            return "triton"
        warnings.warn(
            f"no kernels are available for tensors on {C.device}, so slow PyTorch operations are used instead; "
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
