"""Losses on one CUDA device, for `benchmarks/gpu.py`: check the fused operator against the general path, and time it.

All times are forward + backward from Z and X. `general` is the same loss with the fused operator switched off.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from unittest import mock

import torch
from gpu import GAMMA, autograd_work, both_ways, forward, graph_replay, interleaved, problem
from torch import Tensor, nn

from dropdtw.executors import triton as kernels
from dropdtw.torch import DropDTWLoss, LearnedDrop, OTAMLoss, SmoothDTWLoss, SoftDTWLoss, drop_dtw, fused, stages
from dropdtw.torch import costs as torch_costs

B, K, N, D = 24, 10, 200, 512


@contextmanager
def general() -> Iterator[None]:
    """The general path, whatever the loss."""
    switches = fused.runs_on, torch_costs.kernels.run_on
    fused.runs_on = torch_costs.kernels.run_on = lambda A: False
    try:
        yield
    finally:
        fused.runs_on, torch_costs.kernels.run_on = switches


LOSSES: dict[str, Callable[..., nn.Module]] = {
    "percentile": lambda d, **o: DropDTWLoss("percentile:30", **o),
    "both sides": lambda d, **o: DropDTWLoss(0.7, "percentile:80", **o),
    "only z": lambda d, **o: DropDTWLoss(None, 0.7, **o),
    "openings": lambda d, **o: DropDTWLoss("percentile:30", open_x=0.3, warp=nn.Parameter(torch.tensor(0.2)), **o),
    "learned cost": lambda d, **o: DropDTWLoss(LearnedDrop(d, output="cost"), **o),
    "nothing dropped": lambda d, **o: SmoothDTWLoss(**o),
    "free ends": lambda d, **o: OTAMLoss(**o),
    "logit": lambda d, **o: DropDTWLoss("logit:30", **o),
    "learned logit": lambda d, **o: DropDTWLoss(LearnedDrop(d), **o),
    "anchored logit": lambda d, **o: DropDTWLoss(LearnedDrop(d, anchor=30, scale=0.1), 1.0, **o),
}
SHAPES = [(1, 1, 1, 1), (3, 7, 65, 8), (2, 33, 70, 17), (2, 66, 40, 130)]  # B, K, N, d


def sequences(B: int, K: int, N: int, d: int, dtype: torch.dtype = torch.float32, **how) -> tuple[Tensor, Tensor]:
    Z, X = (torch.randn(B, n, d, dtype=dtype, device="cuda", **how) for n in (K, N))
    if K > 5:
        Z[0, 5] = Z[0, 3] = Z[0, 1]
    return Z.requires_grad_(), X.requires_grad_()


def everything(loss: nn.Module, Z: Tensor, X: Tensor, **how: object) -> list[Tensor]:
    value = loss.per_item(Z, X, **how)
    wanted = [Z, X, *loss.parameters()]
    found = torch.autograd.grad(value[torch.isfinite(value)].sum(), wanted, allow_unused=True)
    return [value.detach(), *(torch.zeros_like(a) if f is None else f for f, a in zip(found, wanted, strict=True))]


def check_loss(name: str) -> float:
    """One loss with all match costs, reducers and shapes against the general path; the largest difference."""
    worst = 0.0
    generator = torch.Generator("cuda").manual_seed(list(LOSSES).index(name))
    torch.manual_seed(0)
    logit = "logit" in name
    reducers = ("smooth", "soft", "hard")
    for match in ("softmax",) if logit else ("softmax", "cosine", "sqeuclidean"):
        for m, shape in enumerate(SHAPES):
            options = {"match": "softmax:4" if match == "softmax" else match, "reducer": reducers[m % 3]}
            options |= {"normalize": (None, "x", "z", "both")[m]} | ({} if m % 3 == 2 else {"gamma": GAMMA})
            loss = LOSSES[name](shape[3], **options).to("cuda", torch.float64)
            Z, X = sequences(*shape, torch.float64, generator=generator)
            how = {}
            if m % 2:
                how["z_lengths"] = [shape[1], max(1, shape[1] // 2), 1][: shape[0]]
                how["x_lengths"] = [shape[2] - 3, shape[2], 1][: shape[0]]
            with general():
                truth = everything(loss, Z, X, **how)
            for a, b in zip(everything(loss, Z, X, **how), truth, strict=True):
                said = f"{name} {match} {options} {shape}{' ragged' * bool(how)}"
                scale = b[torch.isfinite(b)].abs().max().clamp(min=1) if b.numel() else 1.0
                same = (a == b) | ((a - b).abs() < 1e-9 * scale) | (a.isnan() & b.isnan())
                assert same.all(), f"{said}: {(a - b).abs().max()}"
                worst = max(worst, float(torch.where(a == b, 0.0, (a - b).abs() / scale).nan_to_num(0).max()))
            if m != 1:
                continue
            single = [a.detach().float().requires_grad_() for a in (Z, X)]
            for a, b in zip(everything(loss.float(), *single, **how)[:3], truth, strict=False):
                finite = torch.isfinite(b)
                assert torch.equal(torch.isfinite(a), finite), f"{name} {match}: single precision is not finite"
                off = (a - b)[finite].norm() / b[finite].norm().clamp(min=1e-3)
                assert off < 1e-3, f"{name} {match} {shape}: single precision is off by {off:.1e}"
    check_waits(name)
    print(f"checked {name}", flush=True)
    return worst


def check_waits(name: str) -> None:
    """Nothing waits for the device, and a captured step gives what a plain one gives."""
    loss = LOSSES[name](32, normalize="x").cuda()
    Z, X = sequences(4, 6, 40, 32)
    z, x = (torch.tensor(n, device="cuda") for n in ([6, 3, 1, 6], [40, 7, 39, 1]))
    how = {"z_lengths": z, "x_lengths": x}

    def step() -> list[Tensor]:
        return list(torch.autograd.grad(loss(Z, X, **how), (Z, X)))

    plain = step()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    for part in captured:
        part.fill_(torch.nan)
    graph.replay()
    torch.cuda.synchronize()
    for a, b in zip(captured, plain, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def check_compiled() -> None:
    """Without graph breaks or warnings, and in CUDA graphs of the compiler's own; several losses in one process."""
    Z, X = sequences(4, 6, 40, 32)
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", DeprecationWarning)  # Dynamo's own, and hidden unless asked for
    warnings.filterwarnings("ignore", "The CUDA Graph is empty")  # torch captures one to begin with
    warnings.filterwarnings("ignore", "TensorFloat32")  # its advice on other products
    for name in ("percentile", "openings", "logit", "nothing dropped"):
        for match in ("softmax", "sqeuclidean") if "logit" not in name else ("softmax",):
            loss = LOSSES[name](32, normalize="x", match=match).cuda()
            plain = loss(Z, X)
            wanted = torch.autograd.grad(plain, (Z, X))
            for mode in ("default", "reduce-overhead"):
                torch._dynamo.reset()  # only so many compiled forms of one function are kept
                compiled = torch.compile(loss, fullgraph=True, mode=mode)
                for _ in range(3):
                    torch.compiler.cudagraph_mark_step_begin()
                    value = compiled(Z, X)
                    found = torch.autograd.grad(value, (Z, X))
                torch.testing.assert_close(value, plain, rtol=1e-5, atol=1e-5)
                for a, b in zip(found, wanted, strict=True):
                    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    print("checked torch.compile", flush=True)


def check_tiles() -> None:
    """Tiles of derivatives are what single steps store, to the last bit."""
    for shape in ((5, 31, 65, True), (3, 130, 300, False)):
        given = problem(*shape)
        found = []
        for tiles in (True, False):
            with mock.patch.object(kernels, "TILES", tiles):
                found.append(both_ways(given))
        assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    print("checked tiles", flush=True)


# --- How fast -----------------------------------------------------------------------------------------------------


def step(loss: Callable[..., Tensor], sets: list[tuple[Tensor, Tensor]]) -> Callable[[int], object]:
    return lambda k: torch.autograd.grad(loss(*sets[k % len(sets)]), sets[k % len(sets)])


def host_ms(work: Callable[[int], object], repeats: int = 100) -> float:
    """Milliseconds of Python and PyTorch per call, on the CPU's side alone."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for k in range(repeats):
        work(k)
    took = time.perf_counter() - begun
    torch.cuda.synchronize()
    return 1e3 * took / repeats


def plain_works(made: dict[str, nn.Module], sets: list[tuple[Tensor, Tensor]]) -> dict[str, Callable[[int], object]]:
    """What is timed without a compiler, on these sequences."""
    C = [torch.rand(B, K, N, device="cuda", requires_grad=True) for _ in sets]
    works: dict[str, Callable[[int], object]] = {
        "(a * a).sum()": autograd_work(),
        "−log softmax of Z Xᵀ, a sum": step(lambda Z, X: -torch.log_softmax(Z @ X.mT, 1).sum(), sets),
        "drop_dtw from C": lambda k: torch.autograd.grad(drop_dtw(C[k % len(C)], 0.3).sum(), C[k % len(C)]),
    }
    works |= {name: step(loss, sets) for name, loss in made.items()}
    for name in ("percentile:30, normalize x", "0.3, cosine", "SoftDTWLoss", "LearnedDrop"):

        def slow(k: int, name: str = name) -> object:
            with general():
                return step(made[name], sets)(k)

        works[f"{name}, general"] = slow
    return works


def time_losses() -> None:
    made = {
        "percentile:30, normalize x": DropDTWLoss("percentile:30", normalize="x", match="softmax:10"),
        "0.3, cosine": DropDTWLoss(0.3, match="cosine"),
        "SoftDTWLoss": SoftDTWLoss(),
        "LearnedDrop": DropDTWLoss(LearnedDrop(D), match="softmax:10"),
        "logit:30": DropDTWLoss("logit:30", match="softmax:10"),
    }
    made = {name: loss.cuda() for name, loss in made.items()}
    sets = [sequences(B, K, N, D) for _ in range(3)]
    works = plain_works(made, sets)
    print(f"\nLosses, forward + backward, {B} × {K} × {N}, d = {D}, float32:")
    print("| | ms | bar | host ms | in a CUDA graph, ms | bar |\n|---|--:|--:|--:|--:|--:|")
    times = timed(works, BARS)
    floor, plain = times["(a * a).sum()"], times["−log softmax of Z Xᵀ, a sum"]
    ours, from_c = times["percentile:30, normalize x"], times["drop_dtw from C"]
    print(f"percentile / −log softmax: {ours / plain:.2f} (bar 1.5); drop_dtw / floor: {from_c / floor:.2f} (bar 2.2)")
    time_compiled(made["percentile:30, normalize x"], sets)


BARS = {  # eager, and in a CUDA graph
    "percentile:30, normalize x": (1.1, 0.15),
    "0.3, cosine": (0.9, None),
    "SoftDTWLoss": (0.9, None),
    "percentile:30, reduce-overhead": (0.45, None),
}


def timed(works: dict[str, Callable[[int], object]], bars: dict[str, tuple], graphs: bool = True) -> dict[str, float]:
    """Print a row for each work, timed in turn; its milliseconds."""
    times = dict(zip(works, interleaved(list(works.values()), 50, warm_up=5), strict=True))
    for name, work in works.items():
        bar, graph_bar = (b or "" for b in bars.get(name, ("", "")))
        replayed = f"{graph_replay(partial(work, 0)):.3f}" if graphs else ""
        print(f"| {name} | {times[name]:.3f} | {bar} | {host_ms(work):.3f} | {replayed} | {graph_bar} |", flush=True)
    return times


def time_compiled(loss: nn.Module, sets: list[tuple[Tensor, Tensor]]) -> None:
    """Compiled code, after all else: a process in which the compiler has run is slower at everything.

    `(a * a).sum()` is what a compiler's own wrappers take.
    """
    a = torch.rand(B, K, N, device="cuda", requires_grad=True)
    floor: Callable[..., Tensor] = lambda a: (a * a).sum()  # noqa: E731

    def of(f: Callable[..., Tensor], parts: list[tuple[Tensor, ...]], **how: str) -> Callable[[int], object]:
        compiled = torch.compile(f, fullgraph=True, **how)

        def work(k: int) -> object:
            torch.compiler.cudagraph_mark_step_begin()
            return step(compiled, parts)(k)

        return work

    works = {
        "(a * a).sum()": autograd_work(),
        "(a * a).sum(), compiled": of(floor, [(a,)]),
        "(a * a).sum(), reduce-overhead": of(floor, [(a,)], mode="reduce-overhead"),
        "percentile:30, eager": step(loss, sets),
        "percentile:30, compiled": of(loss, sets),
        "percentile:30, reduce-overhead": of(loss, sets[:1], mode="reduce-overhead"),
    }
    times = timed(works, BARS, graphs=False)
    print(f"compiled / eager: {times['percentile:30, compiled'] / times['percentile:30, eager']:.2f} (bar 1)")


def time_squares() -> None:
    """Squared distances by differences beside today's products, and the loss on series of few features."""
    print("\nSquared distances:")
    sets = [sequences(16, 1000, 1000, 8) for _ in range(3)]
    loss = SoftDTWLoss()
    work = step(loss, sets)

    def slow(k: int) -> object:
        with general():
            return work(k)

    fast, general_ms = interleaved([work, slow], 10)
    print(f"SoftDTWLoss, 16 × 1000 × 1000, d = 8: {fast:.2f} ms (bar 2.5), general {general_ms:.2f} ms")
    for d in (8, 64, 512):
        Z, X = (a.detach() for a in sequences(16, 1000, 1000, d))
        times = interleaved(distances(Z, X, torch.rand(16, 1000, 1000, device="cuda")), 8, warm_up=2)
        said = "differences {:.2f}, general {:.2f}; back: kernels {:.2f}, general {:.2f} ms"
        print(f"16 × 1000 × 1000, d = {d}: {said.format(*times)}", flush=True)


def distances(Z: Tensor, X: Tensor, grad: Tensor) -> list[Callable[[int], object]]:
    """Squared distances and their derivatives, by differences and otherwise."""
    squares = stages.kernels().squares

    def otherwise(k: int) -> Tensor:
        with general():
            return torch_costs.sqeuclidean(Z, X)

    return [
        lambda k: squares.costs(Z, X, None, None),
        otherwise,
        lambda k: squares.costs_back(grad, Z, X, None, None),
        lambda k: torch_costs.sqeuclidean_back(grad, Z, X),
    ]


def time_percentiles() -> None:
    print("\nPercentiles by selection, and by sorting, ms:")
    for shape in ((24, 10, 200), (8192, 32, 512), (16, 300, 400), (16, 1000, 1000), (1, 1000, 1000)):
        C = torch.rand(*shape, device="cuda")
        times = interleaved([partial(selected, C), partial(sorted_out, C)], 10, warm_up=2)
        print(f"{shape}: {times[0]:.3f}, {times[1]:.3f}", flush=True)


def selected(C: Tensor, k: int) -> Tensor:
    found: Tensor = stages.kernels().select.percentile(C, 30, None, None)
    return found


def sorted_out(C: Tensor, k: int) -> Tensor:
    return torch_costs.percentile_drop(C, 30)


KERNELS = [  # batch, K, N, both sides?, bars: forward, forward + backward
    (8192, 32, 512, False, 300, 80),
    (512, 64, 2000, True, None, 32),
    (8, 2000, 2000, False, None, 11),
    (1, 5000, 5000, False, None, 4),
]


def beside(rate: float, bar: float | None) -> str:
    """A rate, the bar for it, and whether it falls short."""
    if bar is None:
        return f"{rate:.1f}"
    return f"{rate:.1f} (≥ {bar}{'' if rate >= bar else ', missed'})"


def time_kernels() -> None:
    print("\nKernels alone, smooth minimum, G cells/s (bars in brackets):")
    print("| | forward | forward + backward | stored step by step |\n|---|--:|--:|--:|")
    for size in KERNELS:
        *shape, both, value_bar, bar = size
        given = problem(*shape, both)
        cells = shape[0] * shape[1] * shape[2] / 1e6
        with torch.no_grad():
            alone = graph_replay(lambda given=given: forward(given))
        times = []
        for tiles in (True, False):
            with mock.patch.object(kernels, "TILES", tiles):
                times.append(graph_replay(lambda given=given: both_ways(given)))
        print(
            f"| {shape[0]} × {shape[1]} × {shape[2]}{', two-sided' * both} | {beside(cells / alone, value_bar)} | "
            f"{beside(cells / times[0], bar)} | {cells / times[1]:.1f} |",
            flush=True,
        )
        del given
        torch.cuda.empty_cache()


def measure() -> None:
    time_losses()
    time_squares()
    time_percentiles()
    time_kernels()
