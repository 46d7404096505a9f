"""Measure an epoch of step-localization training: how much time the alignment loss adds to the mapping (the network).

    python -m benchmarks.steps                    # 2,000 videos of 10 steps x 200 frames, d = 512, on the CPU
    python -m benchmarks.steps --device cuda      # and captured in a CUDA graph, which must train as eager code does

Times one epoch (84 batches of 24) of the mapping alone (forward, backward and optimizer, with the square of its output
as the loss), and with each loss, in turn in the same run; prints seconds and ratios. Captured steps are compared with
the mapping alone, also captured. On CUDA, the limits for losses with L_clust are 3 x in eager code and 2 x captured.
"""

import argparse
import time

import torch

from reproduction.steps.model import Objective, StepModel, Tensors

VIDEOS, K, N, D, BATCH = 2000, 10, 200, 512, 24
ROWS = {
    "mapping alone": None,
    "Drop-DTW, percentile": Objective("drop-percentile", cluster=False),
    "Drop-DTW, percentile + L_clust": Objective("drop-percentile"),
    "Drop-DTW, learned + L_clust": Objective("drop-learned"),
    "SmoothDTW + L_clust": Objective("smooth"),
}
BARS = {"eager": 3, "captured": 2}
"""How many times as long as the mapping alone an epoch with L_clust may take on CUDA."""


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


class Training:
    """A model and its optimizer, in eager code. alone : without any loss but the square of the mapping's output."""

    def __init__(self, objective: Objective | None, device: str, capturable: bool = False) -> None:
        torch.manual_seed(0)
        self.alone = objective is None
        self.model = StepModel(D, D, objective or Objective("none", cluster=False)).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-4, capturable=capturable)

    def step(self, batch: Tensors) -> None:
        """Train on one batch."""
        loss = self.model.embed(batch.frames).square().mean() if self.alone else self.model(batch).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


class Captured(Training):
    """The same step as a CUDA graph; each batch is copied into the tensors that it reads."""

    parts = ("frames", "steps", "ids", "x_lengths", "z_lengths")

    def __init__(self, objective: Objective | None, first: Tensors) -> None:
        super().__init__(objective, "cuda", capturable=True)
        self.batch = Tensors(*(getattr(first, part).clone() for part in self.parts))
        begun = {name: value.clone() for name, value in self.model.state_dict().items()}
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                super().step(self.batch)
        torch.cuda.current_stream().wait_stream(side)
        self.optimizer.zero_grad()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            super().step(self.batch)
        # What the warm-up has trained is undone in the memory that the graph reads and writes.
        for name, value in self.model.state_dict().items():
            value.copy_(begun[name])
        for state in self.optimizer.state.values():
            for value in state.values():
                value.zero_()

    def step(self, batch: Tensors) -> None:
        """Train on one batch."""
        for part in self.parts:
            getattr(self.batch, part).copy_(getattr(batch, part))
        self.graph.replay()


def epoch(training: Training, data: list[Tensors], videos: int) -> float:
    """Seconds of one epoch."""
    if data[0].frames.is_cuda:
        torch.cuda.synchronize()
    start = time.perf_counter()
    for number in range(-(-videos // BATCH)):
        training.step(data[number % len(data)])
    if data[0].frames.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def in_turns(trainings: dict[str, Training], data: list[Tensors], videos: int, rounds: int) -> dict[str, float]:
    """The best of several epochs of each."""
    times: dict[str, list[float]] = {name: [] for name in trainings}
    for _ in range(rounds + 1):  # the first warms up
        for name, training in trainings.items():
            times[name].append(epoch(training, data, videos))
    return {name: min(took[1:]) for name, took in times.items()}


def apart(objective: Objective | None, data: list[Tensors]) -> float:
    """How far parameters are apart after eight steps, eager and captured, relative to how far they have moved."""
    plain, graph, begun = Training(objective, "cuda"), Captured(objective, data[0]), Training(objective, "cuda")
    for number in range(8):
        for training in (plain, graph):
            training.step(data[number % len(data)])
    a, b, c = (torch.cat([p.detach().flatten() for p in t.model.parameters()]) for t in (plain, graph, begun))
    return float((a - b).norm() / (a - c).norm())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--videos", type=int, default=VIDEOS, help="fewer, where there is less time")
    options = parser.parse_args()
    data = batches(options.device)
    print(
        f"one epoch of {options.videos} videos, {K} x {N}, d = {D}, batches of {BATCH}, "
        f"{options.device}, best of {options.rounds}"
    )
    kinds = {"eager": lambda objective: Training(objective, options.device)}
    if data[0].frames.is_cuda:
        kinds["captured"] = lambda objective: Captured(objective, data[0])
    for kind, make in kinds.items():
        trainings = {name: make(objective) for name, objective in ROWS.items()}
        times = in_turns(trainings, data, options.videos, options.rounds)
        base = times["mapping alone"]
        for name, took in times.items():
            bar = f" (at most {BARS[kind]})" if data[0].frames.is_cuda and "L_clust" in name else ""
            far = f"   {apart(ROWS[name], data):.0e} from eager" if kind == "captured" else ""
            print(f"{kind:9} {name:32} {took:8.3f} s   {took / base:5.2f} x the mapping alone{bar}{far}", flush=True)


if __name__ == "__main__":
    main()
