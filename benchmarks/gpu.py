"""Check and measure the differentiable Drop-DTW on one CUDA device, and compare its speed with the possible optimum.

    python benchmarks/gpu.py                 # needs torch with CUDA; checks, then times, then prints a table
    python benchmarks/gpu.py --check         # only the checks
    python benchmarks/gpu.py --tables        # more shapes of the alignment alone, and tables with opening costs or warp

Times are medians of CUDA events around forward + backward of `drop_dtw`, after warm-up, with fresh random inputs in
rotation. Tables with opening costs or a warp penalty are timed in turn with plain ones, on the same costs. `queued`
lets the CPU run ahead, as in training, where other work hides the launches. `alone` waits for the device before each
call, so that Python's own time counts. The floor is the time that the dependency chain allows: the same kernels on a
single pair, which keeps only one warp of threads busy. Bytes are those that must move: C is read by both passes, its
gradient is written, and the states between blocks are written and read.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context

import torch

from dropdtw import METHODS
from dropdtw.executors.triton import room
from dropdtw.problem.spec import Spec
from dropdtw.tables.recurrence import one_sided, two_sided
from dropdtw.tables.table import Recurrence
from dropdtw.torch import drop_dtw

OF_COSTS = [name for name, method in METHODS.items() if not method.needs_sequences]
ROWS = [  # name, batch, K, N, both sides?, goal
    ("training shape", 24, 10, 200, False, "0.30 ms"),
    ("many pairs", 1024, 32, 512, False, "25 G cells/s"),
    ("long, two-sided", 512, 64, 2000, True, "8 G cells/s"),
    ("few, square", 8, 2000, 2000, False, "3 G cells/s"),
]
GAMMA = 0.5


PAIRS = [  # name, batch, K, N, both sides?
    ("training shape", 24, 10, 200, False),
    ("many pairs", 1024, 32, 512, False),
    ("many pairs, two-sided", 1024, 32, 512, True),
    ("long, two-sided", 512, 64, 2000, True),
    ("longer Z", 512, 512, 64, False),
    ("few, square", 8, 2000, 2000, False),
]
BAR = 0.8
"""The least speed of a kernel that charges, as a share of the plain one's."""


def problem(B: int, K: int, N: int, both: bool, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    made = [torch.rand(B, K, N, dtype=dtype, device="cuda"), torch.rand(B, N, dtype=dtype, device="cuda") * 0.3]
    if both:
        made.append(torch.rand(B, K, dtype=dtype, device="cuda") * 0.3)
    return [part.requires_grad_() for part in made]


def forward(tensors: list[torch.Tensor], **how: object) -> torch.Tensor:
    return drop_dtw(*tensors, gamma=GAMMA, **how)


def both_ways(tensors: list[torch.Tensor], **how: object) -> tuple[torch.Tensor, ...]:
    wanted = [*tensors, *(part for part in how.values() if isinstance(part, torch.Tensor))]
    return torch.autograd.grad(forward(tensors, **how).sum(), wanted)


def charges(B: int, names: list[str], dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """Charges (B,) of these names, with derivatives wanted."""
    return {name: (torch.rand(B, dtype=dtype, device="cuda") * 0.3).requires_grad_() for name in names}


def charged_by(method: str) -> list[str]:
    """The charges that a method can make."""
    entry = METHODS[method]
    return ["open_x", "open_z"] * entry.takes_opening + ["warp"] * entry.takes_warp


def milliseconds(work: Callable[[int], object], repeats: int, alone: bool, warm_up: int = 3) -> float:
    return interleaved([work], repeats, alone, warm_up)[0]


def interleaved(
    works: list[Callable[[int], object]], repeats: int, alone: bool = False, warm_up: int = 3
) -> list[float]:
    """Milliseconds of each, run in turn, so that clocks and neighbors are the same for all."""
    for k, work in product(range(warm_up), works):
        work(k)
    events: list[list[tuple[torch.cuda.Event, torch.cuda.Event]]] = [[] for _ in works]
    for k, (work, mine) in product(range(repeats), zip(works, events, strict=True)):
        if alone:
            torch.cuda.synchronize()
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        stop.record()  # the first time an event is made, which takes a while
        start.record()
        work(k)
        stop.record()
        mine.append((start, stop))
    torch.cuda.synchronize()
    return [statistics.median(start.elapsed_time(stop) for start, stop in mine) for mine in events]


def copy_bandwidth() -> float:
    a = torch.rand(1 << 29, device="cuda")
    b = torch.empty_like(a)
    return 2 * a.nbytes / milliseconds(lambda _: b.copy_(a), 10, alone=False) / 1e9


def autograd_work() -> Callable[[int], object]:
    """Forward + backward of one product and a sum on a small tensor: what PyTorch itself takes for any operator."""
    a = torch.rand(24, 10, 200, device="cuda", requires_grad=True)
    return lambda _: torch.autograd.grad((a * a).sum(), a)


SIZES = [(1, 1), (2, 31), (33, 65), (65, 33), (63, 257), (200, 170)]


def check(methods: list[str], losses: list[str]) -> tuple[float, float]:
    """Every reducer of these methods against the wavefront in float64, and these losses against the general path.

    All at awkward sizes. The largest difference of each.
    """
    import gpu_losses
    import gpu_parts

    # Compiling takes most of the time, so each part has a process of its own.
    with ProcessPoolExecutor(max(4, os.cpu_count() or 1), mp_context=get_context("spawn")) as pool:
        found = [pool.submit(check_method, method, kind) for method, kind in product(methods, REDUCERS)]
        fused = [pool.submit(gpu_losses.check_loss, name) for name in losses]
        parts = (gpu_losses.check_compiled, gpu_losses.check_tiles, *gpu_parts.CHECKS)
        more = [pool.submit(part) for part in parts] if losses else []
        for part in more:
            part.result()
        return max([0.0, *(part.result() for part in found)]), max([0.0, *(part.result() for part in fused)])


REDUCERS = ("smooth", "soft", "hard")


def check_method(method: str, kind: str) -> float:
    number = list(METHODS).index(method)
    worst = 0.0
    generator = torch.Generator("cuda").manual_seed(number)

    def rand(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, dtype=torch.float64, device="cuda", generator=generator, requires_grad=True)

    sides = [("x", "z"), ("x",), ("z",)] if METHODS[method].takes_drops else [()]
    asked = [(("x", "z")[: 2 * METHODS[method].takes_drops], False)]
    if charged_by(method):
        asked += [(some, True) for some in sides]
    for ragged, (dropped, charging) in product((False, True), asked):
        limit = {"threshold": 0.4} if METHODS[method].takes_threshold else {}
        spec = Spec.of(*(0.5 if side in dropped else None for side in "xz"), method=method, **limit)
        sizes = [size for size in SIZES if spec.fits(*size)]
        K, N = sizes[(number + 3 * ragged + charging) % len(sizes)]
        drops = {f"drop_{side}": rand(3, N if side == "x" else K) for side in dropped}
        names = [n for n in charged_by(method) if charging and (n == "warp" or n[-1] in dropped)]
        paid = drops | {name: rand(3) for name in names}
        C = rand(3, K, N)
        given = [C, *paid.values()]
        how = {"method": method, "reducer": kind, **({} if kind == "hard" else {"gamma": GAMMA}), **limit, **paid}
        if ragged:
            how |= {"z_lengths": [K, max(1, K // 2), 1], "x_lengths": [N, max(1, N - 3), N]}
        ours, truth = ((v := drop_dtw(C, **how, executor=e), *grads(v, given)) for e in ("triton", "wavefront"))
        for a, b in zip(ours, truth, strict=True):
            same = (a == b) | ((a - b).abs() < 1e-9)
            said = f"{method} {kind}{' ragged' * ragged} {list(paid)} {K} × {N}"
            assert same.all(), f"{said}: {(a - b).abs().max()}"
            worst = max(worst, float(torch.where(a == b, 0.0, (a - b).abs()).detach().max()))
    if kind == "smooth":
        worst = max(worst, check_bits(method, []), check_bits(method, charged_by(method)))
    print(f"checked {method}, {kind}", flush=True)
    return worst


def check_bits(method: str, names: list[str]) -> float:
    """Single precision: an item alone and the same item in a padded batch agree to the last bit, on any stream."""
    if not METHODS[method].takes_drops:
        return 0.0
    sizes = [(6, 2), (3, 40), (70, 9), (90, 140)]
    padded = [torch.full(shape, torch.nan, device="cuda") for shape in ((4, 150, 150), (4, 150), (4, 150))]
    paid = charges(len(sizes), names)
    alone = []
    for b, (K, N) in enumerate(sizes):
        item = [torch.rand(1, K, N, device="cuda"), torch.rand(1, N, device="cuda"), torch.rand(1, K, device="cuda")]
        for whole, part in zip(padded, item, strict=True):
            whole[(b, *map(slice, part.shape[1:]))] = part[0]
        item = [part.requires_grad_() for part in item]
        own = {name: part.detach()[b : b + 1].requires_grad_() for name, part in paid.items()}
        value = drop_dtw(*item, method=method, gamma=GAMMA, **own)
        alone.append((value, *torch.autograd.grad(value.sum(), [*item, *own.values()])))
    padded = [part.requires_grad_() for part in padded]
    z, x = (torch.tensor(n, device="cuda") for n in zip(*sizes, strict=True))
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        value = drop_dtw(*padded, z_lengths=z, x_lengths=x, method=method, gamma=GAMMA, **paid)
        parts = torch.autograd.grad(value.sum(), [*padded, *paid.values()])
    torch.cuda.synchronize()
    for b, (wanted, *others) in enumerate(alone):
        assert torch.equal(value[b], wanted[0]), f"{method} {sizes[b]}: {value[b]} in a batch, {wanted[0]} alone"
        for name, whole, part in zip(names, parts[3:], others[3:], strict=True):
            assert torch.equal(whole[b], part[0]), f"{method} {sizes[b]}: {name} {whole[b]} in a batch, {part[0]} alone"
        for whole, part in zip(parts[:3], others[:3], strict=True):
            inside = whole[(b, *map(slice, part.shape[1:]))]
            assert torch.equal(inside, part[0]), f"{method} {sizes[b]}: {(inside - part[0]).abs().max()}"
            assert (whole[b] != 0).sum() == (part != 0).sum(), f"{method}: derivatives in the padding"
    return 0.0


def grads(value: torch.Tensor, given: list[torch.Tensor]) -> list[torch.Tensor]:
    if not value.requires_grad:
        return []
    finite = torch.where(torch.isfinite(value), value, 0.0)
    found = torch.autograd.grad(finite.sum(), given, allow_unused=True)
    return [torch.zeros_like(g) if f is None else f for f, g in zip(found, given, strict=True)]


def measure(name: str, B: int, K: int, N: int, both: bool, goal: str, wavefront: bool) -> str:
    table: Recurrence = two_sided() if both else one_sided()
    sets = [problem(B, K, N, both) for _ in range(3)]
    begun = time.perf_counter()
    both_ways(sets[0])
    torch.cuda.synchronize()
    compiled = time.perf_counter() - begun
    repeats = 50 if B * K * N < 1 << 26 else 15
    cells = B * K * N
    with torch.no_grad():
        value = milliseconds(lambda k: forward(sets[k % 3]), repeats, alone=False)
    queued = milliseconds(lambda k: both_ways(sets[k % 3]), repeats, alone=False)
    alone = milliseconds(lambda k: both_ways(sets[k % 3]), repeats, alone=True)
    single = [problem(1, K, N, both) for _ in range(3)]
    floor = graph_replay(lambda: both_ways(single[0]))
    replayed = graph_replay(lambda: both_ways(sets[0]))
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    both_ways(sets[0])
    torch.cuda.synchronize()
    memory = (torch.cuda.max_memory_allocated() - before) / sets[0][0].nbytes - 1
    states = room(table, sets[0][0], True, "smooth").states.nbytes
    moved = 3 * sets[0][0].nbytes + 2 * states
    slow = ""
    if wavefront:
        slow = f"{milliseconds(lambda k: both_ways(sets[k % 3], executor='wavefront'), 1, alone=True, warm_up=1):.0f}"
    rates = f"{cells / queued / 1e6:.1f} | {cells / value / 1e6:.1f}"
    limits = f"{floor:.3f} | {moved / replayed / 1e9:.2f} | {memory:.2f}"
    return (
        f"| {name}: {B} × {K} × {N} | {goal} | {queued:.3f} | {alone:.3f} | {replayed:.3f} | {rates} | {limits} | "
        f"{compiled:.1f} | {slow} |"
    )


def compare(name: str, B: int, K: int, N: int, both: bool) -> str:
    """Tables that charge beside plain ones: with charges as tensors whose derivatives are wanted, too."""
    sets = [problem(B, K, N, both) for _ in range(3)]
    paid = charges(B, ["open_x", "open_z", "warp"] if both else ["open_x", "warp"])
    works = [lambda k: both_ways(sets[k % 3]), lambda k: both_ways(sets[k % 3], **paid)]
    plain, charging = interleaved(works, 50 if B * K * N < 1 << 26 else 15)
    kernels = [graph_replay(lambda work=work: work(0)) for work in works]
    with torch.no_grad():
        values = interleaved([lambda k: forward(sets[k % 3]), lambda k: forward(sets[k % 3], **paid)], 50)
    ratios = [plain / charging, kernels[0] / kernels[1], values[0] / values[1]]
    short = "" if min(ratios[1:]) >= BAR else f" below {BAR}"
    return (
        f"| {name}: {B} × {K} × {N} | {plain:.3f} | {charging:.3f} | {ratios[0]:.2f} | {kernels[0]:.3f} | "
        f"{kernels[1]:.3f} | {ratios[1]:.2f} | {values[0]:.3f} | {values[1]:.3f} | {ratios[2]:.2f}{short} |"
    )


def graph_replay(work: Callable[[], object]) -> float:
    """Milliseconds of the kernels alone: captured once, replayed without Python."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return milliseconds(lambda _: graph.replay(), 20, alone=False)


def main() -> None:
    import gpu_losses
    import gpu_parts

    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true", help="check, and do not time")
    arguments.add_argument("--methods", nargs="*", choices=OF_COSTS, default=OF_COSTS, help="what to check")
    arguments.add_argument("--losses", nargs="*", choices=gpu_losses.LOSSES, default=list(gpu_losses.LOSSES))
    arguments.add_argument("--tables", action="store_true", help="time the alignment of more shapes and charges, too")
    arguments.add_argument("--time", action="store_true", help="time, and do not check")
    arguments.add_argument("--no-wavefront", action="store_true", help="leave out the slow baseline")
    chosen = arguments.parse_args()
    if not torch.cuda.is_available():
        sys.exit("benchmarks/gpu.py needs a CUDA device, and torch sees none")
    torch.manual_seed(0)
    if not chosen.time:
        tables, losses = check(chosen.methods, chosen.losses)
        print(f"largest difference from the float64 wavefront: {tables:.1e}; fused from general: {losses:.1e}")
    if chosen.check:
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, copy {copy_bandwidth():.2f} TB/s")
    gpu_losses.measure()
    gpu_parts.measure()
    if not chosen.tables:
        return
    print(f"\nforward + backward of (a * a).sum(), queued: {milliseconds(autograd_work(), 50, alone=False):.3f} ms")
    print(
        "| forward + backward, float32, smooth | goal | queued ms | alone ms | kernels ms | G cells/s "
        "| forward G cells/s | chain ms | TB/s | memory × C | compile s | wavefront ms |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for row in ROWS:
        print(measure(*row, wavefront=not chosen.no_wavefront), flush=True)
    print(f"\nTables that charge, as a share of the speed of plain ones (the bar is {BAR}):")
    print(
        "| forward + backward, float32, smooth | plain, queued ms | charged | ratio | plain, kernels ms | charged "
        "| ratio | plain, forward ms | charged | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for pair in PAIRS:
        print(compare(*pair), flush=True)


if __name__ == "__main__":
    main()
