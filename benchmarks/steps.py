"""An epoch of step-localization training: how much the alignment loss adds to the mapping's own work.

    python benchmarks/steps.py                    # 2,000 videos of 10 steps x 200 frames, d = 512, on the CPU
    python benchmarks/steps.py --device cuda

Times one epoch (84 batches of 24) of the mapping alone (forward, backward and optimizer, its output's square as loss),
and with each loss, in turns in the same run; prints seconds and ratios.
"""

import argparse
import time

import torch

from dropdtw.experiments.steps.model import Objective, StepModel, Tensors

VIDEOS, K, N, D, BATCH = 2000, 10, 200, 512, 24


def batches(device: str) -> list[Tensors]:
    """Random videos, a few different batches in rotation."""
    generator = torch.Generator().manual_seed(0)
    made = []
    for _ in range(4):
        frames, steps = (torch.randn(BATCH, n, D, generator=generator) for n in (N, K))
        ids = torch.arange(K).expand(BATCH, K)
        lengths = [torch.full((BATCH,), n) for n in (N, K)]
        made.append(Tensors(frames, steps, ids, *lengths).to(device))
    return made


def epoch(model: StepModel, data: list[Tensors], alone: bool, videos: int) -> float:
    """Seconds of one epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    count = -(-videos // BATCH)
    if data[0].frames.is_cuda:
        torch.cuda.synchronize()
    start = time.perf_counter()
    for number in range(count):
        batch = data[number % len(data)]
        loss = model.embed(batch.frames).square().mean() if alone else model(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if data[0].frames.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--videos", type=int, default=VIDEOS, help="fewer, where there is less time")
    options = parser.parse_args()
    data = batches(options.device)
    rows = {
        "mapping alone": (Objective("none", cluster=False), True),
        "Drop-DTW, percentile": (Objective("drop-percentile", cluster=False), False),
        "Drop-DTW, percentile + L_clust": (Objective("drop-percentile"), False),
        "Drop-DTW, learned + L_clust": (Objective("drop-learned"), False),
        "SmoothDTW + L_clust": (Objective("smooth"), False),
    }
    models = {name: StepModel(D, D, objective).to(options.device) for name, (objective, _) in rows.items()}
    times: dict[str, list[float]] = {name: [] for name in rows}
    for number in range(options.rounds + 1):
        for name, (_, alone) in rows.items():
            took = epoch(models[name], data, alone, options.videos)
            if number:  # the first round warms up
                times[name].append(took)
    base = min(times["mapping alone"])
    print(
        f"one epoch of {options.videos} videos, {K} x {N}, d = {D}, batches of {BATCH}, "
        f"{options.device}, best of {options.rounds}"
    )
    for name, values in times.items():
        print(f"{name:32} {min(values):7.2f} s   {min(values) / base:5.2f} x the mapping alone")


if __name__ == "__main__":
    main()
