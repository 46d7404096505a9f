"""Measure the speech functions beside those made for the purpose: `ctc_loss`, `forced_align`, `monotonic_align`.

python benchmarks/speech.py                     # on the CPU, with all of PyTorch's threads
python benchmarks/speech.py --device cuda

Times are medians of works run in turn. `ctc_loss` is timed from logits to their gradient, PyTorch's with its log
softmax. torchaudio (forced alignment, one item at a time) and monotonic-alignment-search take part if installed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import ctc_loss as torch_ctc_loss

from dropdtw.torch import ctc_loss, forced_align, monotonic_align

Shapes = dict[tuple[int, ...], float]
"""Shapes, and how many times faster than its peer each function is meant to be."""

# batch × frames × tokens × vocabulary; batch × frames × tokens; batch × tokens × frames
LOSSES: Shapes = {
    (32, 500, 60, 500): 2.5,
    (32, 1000, 100, 1000): 4,
    (64, 1500, 200, 5000): 3,
    (16, 3000, 400, 500): 4.5,
    (128, 400, 50, 32): 2,
}
ALIGNED: Shapes = {(32, 1000, 100): 150, (8, 3000, 400): 120}
SEARCHED: Shapes = {(16, 512, 2048): 8, (16, 2048, 8192): 18, (32, 128, 512): 1.2}
ON_CPU: dict[str, Shapes] = {
    "LOSSES": {(8, 500, 60, 500): 4, (8, 1000, 100, 1000): 4, (32, 400, 50, 32): 4},
    "ALIGNED": dict.fromkeys(ALIGNED, 2),
    "SEARCHED": {(4, 200, 1000): 3, (16, 128, 512): 3},
}
SUPER = {(16, 512, 2048): 4.84, (16, 2048, 8192): 85.4, (32, 128, 512): 0.34}
"""Milliseconds of super-monotonic-align on one H200, from its repository: it is in no package index."""


def milliseconds(*works: Callable[[], object], repeats: int = 11) -> list[float]:
    """Medians of several works, run in turn."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats + 2):
        for work, taken in zip(works, times, strict=True):
            synchronize()
            begun = time.perf_counter()
            work()
            synchronize()
            taken.append(1e3 * (time.perf_counter() - begun))
    return [statistics.median(taken[2:]) for taken in times]


def queued(work: Callable[[], object], repeats: int = 30) -> float:
    """Milliseconds of one work among many that follow each other at once, as in training."""
    work()
    synchronize()
    begun = time.perf_counter()
    for _ in range(repeats):
        work()
    synchronize()
    return 1e3 * (time.perf_counter() - begun) / repeats


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def gradient(loss: Callable[[Tensor], Tensor], logits: Tensor) -> Tensor:
    (found,) = torch.autograd.grad(loss(logits), logits)
    return found


def verdict(ratio: float, bar: float) -> str:
    return f"{ratio:.1f} × | {bar:g} ×{'' if ratio >= bar else ' missed'}"


def losses(device: str, shapes: Shapes, repeats: int) -> None:
    print("Errors are those of the gradient at the logits, against PyTorch's in float64. Queued calls do not wait.")
    print("| batch × frames × tokens × vocabulary | PyTorch | `ctc_loss` | ratio | bar | queued | its error | ours |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for shape, bar in shapes.items():
        print(f"| {' × '.join(map(str, shape))} | {one_loss(device, *shape, repeats, bar)} |", flush=True)


def one_loss(device: str, B: int, T: int, S: int, V: int, repeats: int, bar: float) -> str:
    torch.manual_seed(0)
    logits = torch.randn(T, B, V, device=device, requires_grad=True)
    targets = torch.randint(1, V, (B, S), device=device)

    def peer(z: Tensor) -> Tensor:
        frames, tokens = torch.full((z.shape[1],), T), torch.full((z.shape[1],), S)
        return torch_ctc_loss(z.log_softmax(-1), targets[: z.shape[1]], frames, tokens, reduction="sum")

    def ours(z: Tensor) -> Tensor:
        frames, tokens = torch.full((B,), T), torch.full((B,), S)
        return ctc_loss(z, targets, frames, tokens, reduction="sum", logits=True)

    few = logits.detach()[:, :2].double().requires_grad_()  # float64 takes memory
    wanted = gradient(peer, few)
    errors = [float((gradient(loss, logits)[:, :2] - wanted).norm() / wanted.norm()) for loss in (peer, ours)]
    works = [lambda: gradient(peer, logits), lambda: gradient(ours, logits)]
    first, second = milliseconds(*works, repeats=repeats)
    row = f"{first:.2f} ms | {second:.2f} ms | {verdict(first / second, bar)}"
    theirs, own = (queued(work, repeats) for work in works) if device != "cpu" else (first, second)
    return f"{row} | {theirs:.2f} and {own:.2f} ms: {theirs / own:.1f} × | {errors[0]:.1e} | {errors[1]:.1e}"


def alignments(device: str, shapes: Shapes, repeats: int) -> None:
    try:
        from torchaudio.functional import forced_align as peer
    except (ImportError, OSError) as error:
        print(f"torchaudio cannot be used here ({error}): its forced_align is not compared with")
        peer = None
    print("| batch × frames × tokens | torchaudio, one by one | `forced_align` | ratio | bar | frames that agree |")
    print("|---|--:|--:|--:|--:|--:|")
    for (B, T, S), bar in shapes.items():
        torch.manual_seed(0)
        log_probs = torch.randn(B, T, 64, device=device).log_softmax(-1)
        targets = torch.randint(1, 64, (B, S), device=device)

        def each() -> list[Tensor]:
            return [peer(log_probs[b : b + 1], targets[b : b + 1])[0][0] for b in range(B)]  # noqa: B023

        def whole() -> Tensor:
            return forced_align(log_probs, targets)[0]  # noqa: B023

        works = [whole] if peer is None else [each, whole]
        *first, second = milliseconds(*works, repeats=repeats)
        same = "" if peer is None else f"{float((torch.stack(each()) == whole()).float().mean()):.4%}"
        print(f"| {B} × {T} × {S} | {beside(first, second, bar)} | {same} |", flush=True)


def beside(first: list[float], second: float, bar: float) -> str:
    """The cells of a row: the peer's time, if there is one, ours, and the ratio."""
    if not first:
        return f"– | {second:.2f} ms | – | {bar:g} ×"
    return f"{first[0]:.2f} ms | {second:.2f} ms | {verdict(first[0] / second, bar)}"


def searches(device: str, shapes: Shapes, repeats: int) -> None:
    try:
        from monotonic_alignment_search import maximum_path as peer
    except ImportError:
        peer = None
    on_gpu = device != "cpu"
    name = "super-monotonic-align" if on_gpu else "monotonic-alignment-search" if peer else "(not installed)"
    print(f"| batch × tokens × frames | {name} | `monotonic_align` | ratio | bar |")
    print("|---|--:|--:|--:|--:|")
    for shape, bar in shapes.items():
        torch.manual_seed(0)
        value = torch.randn(shape, device=device)
        mask = torch.ones_like(value)
        works: list[Callable[[], object]] = [lambda: monotonic_align(value, mask)]  # noqa: B023
        if peer is not None and not on_gpu:
            works.insert(0, lambda: peer(value, mask))  # noqa: B023
            assert torch.equal(peer(value, mask), monotonic_align(value, mask))
        *first, second = milliseconds(*works, repeats=repeats)
        if on_gpu and shape in SUPER:
            first = [SUPER[shape]]
        print(f"| {' × '.join(map(str, shape))} | {beside(first, second, bar)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=11)
    said = parser.parse_args()
    small = ON_CPU if said.device == "cpu" else {"LOSSES": LOSSES, "ALIGNED": ALIGNED, "SEARCHED": SEARCHED}
    print(f"torch {torch.__version__}, {said.device}, {torch.get_num_threads()} threads\n")
    for table, name in ((losses, "LOSSES"), (alignments, "ALIGNED"), (searches, "SEARCHED")):
        table(said.device, small[name], said.repeats)
        print()


if __name__ == "__main__":
    main()
