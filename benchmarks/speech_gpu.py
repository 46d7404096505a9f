"""On a GPU: check the speech functions against float64, PyTorch and torchaudio, and time them.

python benchmarks/speech_gpu.py            # one or two minutes
python benchmarks/speech_gpu.py --profile  # also the time of each kernel, and other sizes of the emission kernels

It prints whether each check holds, and the tables of `benchmarks/speech.py` with their bars.
"""

from __future__ import annotations

import argparse
import itertools
import time

import speech
import torch
from torch.nn.functional import ctc_loss as torch_ctc_loss
from torch.profiler import ProfilerActivity, profile

from dropdtw.executors.triton import emissions
from dropdtw.executors.triton.emissions import Sizes
from dropdtw.torch import align, ctc_loss, forced_align, monotonic_align, posterior

FORWARD = [
    Sizes(*given) for given in ((8, 32, 512, 4), (4, 32, 1024, 4), (2, 64, 2048, 4), (1, 64, 4096, 8), (4, 32, 512, 2))
]
BACKWARD = [*FORWARD, Sizes(16, 32, 256, 4), Sizes(1, 128, 1024, 4)]


def check(name: str, holds: bool, said: str = "") -> None:
    print(f"{'ok  ' if holds else 'FAIL'} {name} {said}", flush=True)


def checks() -> None:
    """Values and gradients of ragged batches, empty texts and texts that do not fit, against PyTorch in float64."""
    for seed, dtype, on_device in itertools.product(range(2), (torch.float64, torch.float32), (False, True)):
        torch.manual_seed(seed)
        B, T, S, V = 9, 150, 40 + 60 * seed, 61 + 3 * seed
        logits = torch.randn(T, B, V, device="cuda", dtype=dtype)
        targets = torch.randint(1, 9, (B, S), device="cuda")
        frames, tokens = torch.randint(90, T + 1, (B,)), torch.randint(1, 30, (B,))
        tokens[0], frames[1], tokens[1] = 0, 5, 6
        frames[2], tokens[2] = T, S
        both = []
        for zero, reduction in itertools.product((False, True), ("none", "sum", "mean")):
            z = logits.detach().clone().requires_grad_()
            at = (frames.cuda(), tokens.cuda()) if on_device else (frames, tokens)
            found = ctc_loss(z, targets, *at, 0, reduction, zero, logits=True)
            y = logits.detach().double().requires_grad_()
            wanted = torch_ctc_loss(y.log_softmax(-1), targets, frames, tokens, 0, reduction, zero)
            same = torch.allclose(found.double(), wanted, rtol=1e-5 if dtype == torch.float32 else 1e-11)
            if zero:
                found.sum().backward()
                wanted.sum().backward()
                both.append(float((z.grad.double() - y.grad).norm() / y.grad.norm()))
            check(f"ctc_loss {dtype} {reduction} zero={zero} seed {seed}", same)
        check(f"its gradients, lengths on the device: {on_device}", max(both) < 1e-3, f"errors {both}")
    torch.manual_seed(0)
    p = torch.randn(4, 300, 50, device="cuda").log_softmax(-1)
    targets = torch.randint(1, 50, (4, 90), device="cuda")
    frames, tokens = torch.tensor([300, 280, 250, 299]), torch.tensor([90, 45, 1, 60])
    fast, slow = (forced_align(p.to(d), targets.to(d), frames, tokens) for d in ("cuda", "cpu"))
    check("forced_align, paths as on the CPU", torch.equal(fast[0].cpu(), slow[0]))
    check("forced_align, scores", torch.allclose(fast[1].cpu(), slow[1]))
    value = torch.randn(5, 70, 200, device="cuda")
    z, x = torch.tensor([70, 30, 64, 33, 1]), torch.tensor([200, 190, 64, 199, 100])
    one, two = (monotonic_align(value.to(d), z_lengths=z, x_lengths=x).cpu() for d in ("cuda", "cpu"))
    check("monotonic_align, as on the CPU", torch.equal(one, two))
    C = torch.rand(6, 40, 300, dtype=torch.float64, device="cuda")
    how = {"drop_x": 0.2, "z_lengths": [40, 3, 20, 33, 1, 40], "x_lengths": [300, 290, 64, 199, 100, 300]}
    for more in ({}, {"method": "steps"}, {"method": "ctc"}, {"drop_z": 0.3}, {"order": [*range(1, 40), 0]}):
        told = {**how, **more} if "order" not in more else {"drop_x": 0.2, **more}
        one, two = align(C, **told), align(C.cpu(), **told)
        same = torch.equal(one.labels.cpu(), two.labels) and torch.allclose(one.values.cpu(), two.values)
        check(f"align, as on the CPU: {list(more) or 'plain'}", same)
        if "order" not in more:
            p, q = posterior(C, gamma=0.1, **told), posterior(C.cpu(), gamma=0.1, **told)
            check("posterior, as on the CPU", all(torch.allclose(a.cpu(), b) for a, b in zip(p, q, strict=True)))
    check("align stays on the device", align(C, **how).labels.is_cuda)
    host("align of 6 × 40 × 300", lambda: align(C, **how).labels)


def works(shape: tuple[int, int, int, int]):
    """The loss of a shape and its gradient, as a function of nothing."""
    B, T, S, V = shape
    torch.manual_seed(0)
    logits = torch.randn(T, B, V, device="cuda", requires_grad=True)
    targets = torch.randint(1, V, (B, S), device="cuda")
    frames, tokens = torch.full((B,), T), torch.full((B,), S)
    return lambda: speech.gradient(lambda z: ctc_loss(z, targets, frames, tokens, reduction="sum", logits=True), logits)


def kernels(name: str, work) -> None:
    """Where the time of a work goes: each kernel, and the whole beside it."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as measured:
        for _ in range(5):
            work()
        torch.cuda.synchronize()
    rows = [(e.key, e.count / 5, e.self_device_time_total / 5) for e in measured.key_averages()]
    rows = sorted((row for row in rows if row[2] > 0), key=lambda row: -row[2])
    whole = speech.milliseconds(work)[0]
    print(f"{name}: {whole:.3f} ms, in kernels {sum(row[2] for row in rows) / 1e3:.3f} ms")
    for key, count, spent in rows[:12]:
        print(f"    {spent:9.1f} µs  {count:4.1f} ×  {key[:90]}", flush=True)


def host(name: str, work, repeats: int = 100) -> None:
    """The time that the host needs to launch a work."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(repeats):
        work()
    spent = (time.perf_counter() - begun) / repeats
    torch.cuda.synchronize()
    whole = (time.perf_counter() - begun) / repeats
    print(f"{name}: {1e3 * spent:.3f} ms on the host, {1e3 * whole:.3f} ms per call back to back", flush=True)


def variants(shape: tuple[int, int, int, int]) -> None:
    """Try sizes of the emission kernels."""
    work = works(shape)
    for which, listed in (("forward", FORWARD), ("backward", BACKWARD)):
        taken = []
        for size in listed:
            used = emissions.LARGE if shape[3] >= emissions.MANY else emissions.SIZES
            kept = used[which]
            used[which] = size
            taken.append((speech.milliseconds(work, repeats=5)[0], size))
            used[which] = kept
        print(f"{shape} {which}: " + ", ".join(f"{tuple(size)} {ms:.3f}" for ms, size in sorted(taken)), flush=True)


def profiles() -> None:
    """The time of each kernel, and of other sizes."""
    for shape in speech.LOSSES:
        kernels(f"ctc_loss {shape}", works(shape))
        host(f"ctc_loss {shape}", works(shape), 20)
    for B, T, S in speech.ALIGNED:
        p = torch.randn(B, T, 64, device="cuda").log_softmax(-1)
        targets = torch.randint(1, 64, (B, S), device="cuda")
        kernels(f"forced_align {(B, T, S)}", lambda: forced_align(p, targets))  # noqa: B023
        host(f"forced_align {(B, T, S)}", lambda: forced_align(p, targets), 20)  # noqa: B023
    for shape in speech.SEARCHED:
        value = torch.randn(shape, device="cuda")
        mask = torch.ones_like(value)
        kernels(f"monotonic_align {shape}", lambda: monotonic_align(value, mask))  # noqa: B023
    for shape in list(speech.LOSSES)[1:4]:
        variants(shape)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", action="store_true")
    said = parser.parse_args()
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    begun = time.perf_counter()
    speech.losses("cuda", speech.LOSSES, 11)
    speech.alignments("cuda", speech.ALIGNED, 5)
    speech.searches("cuda", speech.SEARCHED, 11)
    print(f"\n{time.perf_counter() - begun:.0f} s so far\n", flush=True)
    checks()
    if said.profile:
        profiles()
    print(f"\n{time.perf_counter() - begun:.0f} s in all")


if __name__ == "__main__":
    main()
