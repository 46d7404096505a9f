"""Orders of steps on one CUDA device: check the graph kernels against the other executors, and measure their speed.

    python benchmarks/orders_gpu.py --check                     # compare with the CPU and plain PyTorch operations
    python benchmarks/orders_gpu.py --time --data task_graphs   # measure, with a recipe of CaptainCook4D

`--data` is a folder of CaptainCook4D's task graphs (JSON files with "steps" and "edges"), or one such file. Without it,
a synthetic partial order with about as many nodes is timed. Times are medians of CUDA events around forward + backward.
Node-columns are nodes of the graph (without hubs) times columns of X times items. Exits with status 1 if a check fails
or a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gpu import milliseconds

from dropdtw import orders
from dropdtw.problem.spec import Spec
from dropdtw.torch import DropDTWLoss, drop_dtw

RECIPE = "cheesepimiento"
BATCH, COLUMNS, FEATURES = 1024, 400, 64
GOAL, RATIO = 20.0, 3.0
EXCLUSIVE: dict[str, Any] = {"many_to_one": False, "contiguous": True}

TABLES: dict[str, tuple[str, dict[str, Any]]] = {  # name: the drop costs, the options
    "one-sided, exclusive": ("x", EXCLUSIVE),
    "one-sided": ("x", {}),
    "two-sided": ("xz", {}),
    "drop z": ("z", {}),
    "DTW": ("", {}),
    "subsequence": ("", {"method": "subsequence"}),
    "charged": ("x", {"open_x": 0.2, "warp": 0.1}),
}
ORDERS = {
    "partial": orders.any_order([0, 1], 2, [3, 4]),
    "diamond": orders.before(5, [(0, 1), (0, 2), (1, 3), (2, 3)]),
    "alternatives": orders.as_order([orders.one_of([0, 1], 2), orders.any_order(3, 4)]),
    "jumps": orders.jumps(5, [(4, 0, 0.5), (2, 1, 0.2), (3, 3)]),
    "loop": orders.repeat([0, 1, 2, 3, 4], 0.3),
}


# Checks


def problem(B: int, K: int, N: int, sides: str, dtype: torch.dtype) -> list[torch.Tensor | None]:
    C, d_x, d_z = torch.rand(B, K, N, dtype=dtype), torch.rand(B, N, dtype=dtype), torch.rand(B, K, dtype=dtype)
    return [C, d_x if "x" in sides else None, d_z if "z" in sides else None]


def everything(given: list[torch.Tensor | None], device: str, executor: str | None, **how: Any) -> list[torch.Tensor]:
    """The value and its derivatives, copied to the CPU; charges are tensors, so that they have derivatives too."""
    charges = {name: how.pop(name) for name in ("open_x", "warp") if name in how}
    moved = [None if part is None else part.detach().to(device).requires_grad_() for part in given]
    dtype = moved[0].dtype  # type: ignore[union-attr]
    paid = {name: torch.tensor(cost, dtype=dtype, device=device, requires_grad=True) for name, cost in charges.items()}
    value = drop_dtw(*moved, executor=executor, **how, **paid)  # type: ignore[arg-type]
    wanted = [part for part in (*moved, *paid.values()) if part is not None]
    weights = torch.arange(1.0, len(value) + 1, dtype=value.dtype, device=device)
    total = torch.where(torch.isfinite(value), value * weights, 0.0).sum()
    found = torch.autograd.grad(total, wanted, allow_unused=True)
    parts = [torch.zeros_like(w) if f is None else f for f, w in zip(found, wanted, strict=True)]
    return [part.detach().cpu() for part in (value, *parts)]


def differ(one: list[torch.Tensor], other: list[torch.Tensor]) -> float:
    """The largest difference; ∞ if only one of them is finite somewhere."""
    worst = 0.0
    for a, b in zip(one, other, strict=True):
        if (torch.isfinite(a) != torch.isfinite(b)).any():
            return float("inf")
        there = torch.isfinite(a)
        worst = max(worst, float((a[there].double() - b[there].double()).abs().max()) if there.any() else 0.0)
    return worst


def check() -> list[tuple[str, str, bool]]:
    """Check every table with every reducer on one order, and every order on two tables; each compiles a kernel."""
    rows = [
        *(compare(table, "partial", reducer) for table in TABLES for reducer in ("hard", "soft", "smooth")),
        *(compare(table, "jumps", "smooth") for table in TABLES),
        *(compare(t, n, "soft") for t in ("one-sided, exclusive", "two-sided") for n in ORDERS if n != "partial"),
    ]
    return [*rows, mixed(), single_precision(), alone(), nonsense(), repeatable()]


def compare(table: str, name: str, reducer: str) -> tuple[str, str, bool]:
    sides, options = TABLES[table]
    how = {"reducer": reducer, "order": ORDERS[name], "x_lengths": [11, 7, 11], **options}
    if reducer != "hard":
        how["gamma"] = 0.4
    given = problem(3, 5, 11, sides, torch.float64)
    ours = everything(given, "cuda", "triton", **how)
    worst = differ(ours, everything(given, "cpu", None, **how))
    if reducer != "hard":  # on ties, autograd may choose another alignment
        worst = max(worst, differ(ours, everything(given, "cuda", "wavefront", **how)))
    return f"{table}, {name}, {reducer}", f"{worst:.1e}", worst < 1e-9


def mixed() -> tuple[str, str, bool]:
    given = problem(4, 5, 11, "x", torch.float64)
    each = [ORDERS["partial"], ORDERS["jumps"], [4, 3, 2, 1, 0], None]
    how: dict[str, Any] = {"order": each, "reducer": "soft", "x_lengths": [11, 9, 8, 7], **EXCLUSIVE}
    worst = differ(everything(given, "cuda", None, **how), everything(given, "cpu", None, **how))
    return "a batch of different orders", f"{worst:.1e}", worst < 1e-9


def single_precision() -> tuple[str, str, bool]:
    """The error is at most twice that of plain PyTorch operations in the same precision."""
    given = problem(4, 5, 200, "x", torch.float32)
    how: dict[str, Any] = {"order": ORDERS["partial"], "reducer": "soft", "gamma": 0.1, **EXCLUSIVE}
    truth = everything([None if part is None else part.double() for part in given], "cpu", None, **how)
    ours, plain = (differ(everything(given, "cuda", name, **how), truth) for name in ("triton", "wavefront"))
    return "float32, 200 columns", f"{ours:.1e}, plain operations {plain:.1e}", ours <= 2 * plain + 1e-6


def alone() -> tuple[str, str, bool]:
    """Other items with larger graphs do not change a single bit."""
    given = problem(2, 5, 11, "x", torch.float32)
    large = orders.any_order(*range(5))
    together = everything(given, "cuda", None, order=[ORDERS["diamond"], large], reducer="smooth")
    by_itself = everything([part if part is None else part[:1] for part in given], "cuda", None,
                           order=ORDERS["diamond"], reducer="smooth")  # fmt: skip
    same = all(torch.equal(a[:1], b) for a, b in zip(together, by_itself, strict=True))
    return "an item in a batch is bit-identical to the item alone", str(same), same


def nonsense() -> tuple[str, str, bool]:
    C = torch.rand(3, 5, 11, device="cuda")
    C[1, 2, 3] = torch.nan
    lengths = torch.tensor([5, 5, 4], device="cuda")
    value = drop_dtw(C, 0.3, order=ORDERS["partial"], z_lengths=lengths)
    found = torch.isnan(value).tolist()
    return "NaN, and lengths that do not fit the order, give NaN", str(found), found == [False, True, True]


def repeatable() -> tuple[str, str, bool]:
    given = problem(64, 11, 100, "xz", torch.float32)
    order = synthetic()
    first, second = (everything(given, "cuda", None, order=order, reducer="soft") for _ in range(2))
    same = all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    return "a second run gives the same bits", str(same), same


# Speed


def recipe(data: str | None) -> tuple[str, orders.Order]:
    """The order of a recipe: its steps without START and END, renumbered."""
    if data is None:
        return "synthetic order", synthetic()
    path = Path(data)
    path = path / f"{RECIPE}.json" if path.is_dir() else path
    given = json.loads(path.read_text())
    real = sorted(int(n) for n, text in given["steps"].items() if text not in ("START", "END"))
    number = {step: n for n, step in enumerate(real)}
    pairs = [(number[a], number[b]) for a, b in given["edges"] if a in number and b in number]
    return path.stem, orders.before(len(real), pairs)


def synthetic() -> orders.Order:
    """11 steps, 52 nodes: two strands, a step after both, four steps in any order, and a last step."""
    return orders.as_order([orders.any_order([0, 1, 2], [3, 4]), 5, orders.any_order(6, 7, 8, 9), 10])


def nodes(order: orders.Order) -> int:
    graph = order.graph(Spec.of(0.3, order=order, **EXCLUSIVE).table)
    return int((~graph.hub).sum())


def median(call: Callable[[], object]) -> float:
    """Median milliseconds of a call, queued as in training: the CPU may run ahead."""
    return milliseconds(lambda _: call(), 30, alone=False, warm_up=5)


def speed(name: str, order: orders.Order) -> list[tuple[str, str, bool]]:
    K, V = order.K, nodes(order)
    C = torch.rand(BATCH, K, COLUMNS, device="cuda", requires_grad=True)
    drop = torch.rand(BATCH, COLUMNS, device="cuda", requires_grad=True)
    how: dict[str, Any] = {"order": order, "reducer": "soft", **EXCLUSIVE}

    def forward() -> None:
        with torch.no_grad():
            drop_dtw(C, drop, **how)

    def both() -> None:
        torch.autograd.grad(drop_dtw(C, drop, **how).sum(), (C, drop))

    one, two = median(forward), median(both)
    rate, rates = (BATCH * V * COLUMNS / ms / 1e6 for ms in (one, two))
    graph, plain = median(step(K, order)), median(step(V, None))
    return [
        (f"{name}, {V} nodes, forward", f"{one:.3f} ms, {rate:.1f} G node-columns/s", True),
        (f"{name}, {V} nodes, forward + backward", f"{two:.3f} ms, {rates:.1f} G node-columns/s", rates >= GOAL),
        (f"training step, order of {K} steps", f"{graph:.3f} ms", True),
        (f"the same with a list of {V} steps", f"{plain:.3f} ms, ratio {graph / plain:.2f}", graph <= RATIO * plain),
    ]


def step(K: int, order: orders.Order | None) -> Callable[[], None]:
    """One training step with the loss."""
    Z = torch.randn(BATCH, K, FEATURES, device="cuda", requires_grad=True)
    X = torch.randn(BATCH, COLUMNS, FEATURES, device="cuda", requires_grad=True)
    loss = DropDTWLoss(reducer="soft", **EXCLUSIVE)
    optimizer = torch.optim.SGD([Z, X], lr=1e-3)

    def train() -> None:
        optimizer.zero_grad()
        loss(Z, X, order=order).backward()
        optimizer.step()

    return train


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the other executors")
    parser.add_argument("--time", action="store_true", help="measure the speed")
    parser.add_argument("--data", help="CaptainCook4D's task graphs: a folder, or one JSON file")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device; the kernels are tested in Triton's interpreter by tests/executors/test_triton_graphs.py")
        return 1
    torch.manual_seed(0)
    begun = time.perf_counter()
    rows = check() if given.check or not given.time else []
    if rows:
        rows.append(("all checks", f"{time.perf_counter() - begun:.0f} s", all(row[2] for row in rows)))
    if given.time:
        rows += speed(*recipe(given.data))
    width = max(len(row[0]) for row in rows)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    for what, found, fine in rows:
        print(f"{what:{width}}  {'ok' if fine else 'FAILED':6}  {found}")
    return 0 if all(row[2] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
