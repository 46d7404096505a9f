"""Train an encoder with an alignment loss: from lists of steps alone, it learns which step each frame shows.

This is a toy version of learning from instructional videos. There are twelve steps, each a vector. The look of a step
in a frame is another vector, the same in all recordings but far from the step's own vector. Each recording shows four
to six steps in order. More than half of its frames show *other* steps, which are not in its list and should be dropped.
Training sees the lists but never the labels of the frames, which serve only to score held-out recordings.

Run `python examples/train_encoder.py` (under 30 s); add `--plot out.png` for a figure.
"""

import argparse
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import nn

import dropdtw
from dropdtw import metrics
from dropdtw.costs import Softmax
from dropdtw.torch import ClusteringLoss, DropDTWLoss, SmoothDTWLoss

STEPS, DIM = 12, 16
GAMMA = 4.0  # dot products of matching vectors are about 16


def losses(drop: str) -> dict[str, nn.Module]:
    """The losses to compare."""
    return {
        "SmoothDTW": SmoothDTWLoss(match=f"softmax:{GAMMA}", normalize="x"),
        "Drop-DTW": DropDTWLoss(drop, match=f"softmax:{GAMMA}", normalize="x"),
        "Drop-DTW, softmin": DropDTWLoss(drop, match=f"softmax:{GAMMA}", normalize="x", reducer="soft"),
    }


@dataclass(frozen=True)
class Recording:
    """Steps Z (K, d), frames X (N, d), and for each frame the step it shows, −1 for none."""

    Z: torch.Tensor
    X: torch.Tensor
    truth: np.ndarray


class Encoder(nn.Module):
    """x + MLP(x), initialized to the identity."""

    def __init__(self) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, DIM))
        for parameter in self.mlp[2].parameters():
            nn.init.zeros_(parameter)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Map frames (N, d) to encoded frames (N, d)."""
        return X + self.mlp(X)


def recordings(rng: np.random.Generator, count: int, others: int) -> list[Recording]:
    """Random steps with their looks, and recordings of them; others: mean number of other frames between two steps."""
    steps = rng.normal(size=(STEPS, DIM))
    looks = steps + 2.5 * rng.normal(size=(STEPS, DIM))
    found = []
    for _ in range(count):
        order = rng.permutation(STEPS)
        K = int(rng.integers(4, 7))
        shown: list[int] = []
        truth: list[int] = []
        for i in range(K + 1):
            between = rng.choice(order[K:], rng.integers(2 * others + 1)).tolist()
            run = int(rng.integers(2, 7)) * (i < K)
            shown += between + [int(order[i])] * run
            truth += [-1] * len(between) + [i] * run
        X = looks[shown] + 0.7 * rng.normal(size=(len(shown), DIM))
        found.append(Recording(*(torch.tensor(a, dtype=torch.float32) for a in (steps[order[:K]], X)), np.array(truth)))
    return found


def train(
    loss: nn.Module, data: list[Recording], iterations: int, seed: int, weight: float
) -> tuple[Encoder, list[float]]:
    """Train an encoder with a loss (plus weight · clustering loss); return it with the loss of each iteration."""
    torch.manual_seed(seed)
    encoder, clustering = Encoder(), ClusteringLoss("contrastive", gamma=GAMMA / 2, gamma_contrast=GAMMA)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    values = []
    for _ in range(iterations):
        batch = [data[i] for i in torch.randperm(len(data))[:16].tolist()]
        Z, X = [r.Z for r in batch], [encoder(r.X) for r in batch]
        value = loss(Z, X)
        if weight:
            value = value + weight * clustering(Z, X)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(value.item())
    return encoder, values


def align(encoder: Encoder, r: Recording, drop: str) -> dropdtw.Alignment:
    """Align the steps with the encoded frames; a frame shows at most one step, and each step is one run of frames."""
    with torch.no_grad():
        X = encoder(r.X).numpy()
    return dropdtw.align(r.Z.numpy(), X, drop, match=Softmax(GAMMA), method="steps")


def score(encoder: Encoder, data: list[Recording], drop: str) -> tuple[float, float]:
    """Mean frame accuracy, including the background, and mean IoU."""
    labels = [(align(encoder, r, drop).labels, r.truth) for r in data]
    return (
        float(np.mean([metrics.frame_accuracy(found, truth) for found, truth in labels])),
        float(np.mean([metrics.iou(found, truth) for found, truth in labels])),
    )


def draw(path: str, encoders: dict[str, Encoder], curves: dict[str, list[float]], r: Recording, drop: str) -> None:
    """Plot the losses, and one held-out recording aligned before and after training."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplot_mosaic(
        [["loss", name] for name in encoders], figsize=(12, 7), width_ratios=[1, 1.7], layout="constrained"
    )
    for color, (name, values) in zip(("0.5", "#0072b2", "#cc79a7"), curves.items(), strict=True):
        axes["loss"].plot(np.convolve(values, np.ones(10) / 10, "valid"), label=name, color=color)
    axes["loss"].set(xlabel="iteration", ylabel="loss per frame, mean of ten batches", title="Training")
    axes["loss"].legend()
    for name, encoder in encoders.items():
        found, ax = align(encoder, r, drop), axes[name]
        ax.imshow(np.exp(-found.problem.C), cmap="Greys", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        for label, start, stop in runs(r.truth):
            ax.add_patch(plt.Rectangle((start - 0.5, label - 0.5), stop - start, 1, fill=False, ec="#009e73", lw=2.5))
        ax.plot(*found.pairs.T[::-1], "o", ms=6, color="#d55e00", mec="white")
        accuracy = metrics.frame_accuracy(found.labels, r.truth)
        ax.set_title(f"{name}: {accuracy:.0%} of frames correct", fontsize="medium")
        ax.set(ylabel="step", yticks=range(len(r.Z)), xticks=range(0, len(r.X), 5))
        ax.tick_params(labelbottom=False)
    ax.tick_params(labelbottom=True)
    ax.set_xlabel("frame   (gray: probability of a step, green: true, dots: aligned; no dot: dropped)")
    figure.savefig(path, dpi=120)


def runs(labels: np.ndarray) -> list[tuple[int, int, int]]:
    """(label, start, stop) of each run of equal labels other than background."""
    cuts = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(labels)]
    return [(int(labels[a]), a, b) for a, b in pairwise(cuts) if labels[a] >= 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--others", type=int, default=5, help="mean number of other frames between two steps (5)")
    parser.add_argument("--percentile", type=float, default=15, help="percentile of match costs used as drop cost (15)")
    parser.add_argument("--clustering", type=float, default=0, help="weight of a clustering loss added to each (0)")
    parser.add_argument("--plot", metavar="PNG", help="save a plot of losses and alignments to this file")
    told = parser.parse_args()
    torch.set_num_threads(1)  # the tensors are small: more threads would only add overhead
    drop = f"percentile:{told.percentile}"
    data = recordings(np.random.default_rng(told.seed), 260, told.others)
    training, held_out = data[:200], data[200:]
    background = np.mean(np.concatenate([r.truth for r in held_out]) < 0)
    true = np.mean([(r.truth >= 0).mean() / len(r.Z) for r in held_out])
    print(f"{len(training)} recordings to train on, {len(held_out)} held out")
    print(f"{background:.0%} of frames should be dropped, {true:.0%} of pairs are true matches\n")
    print(f"{'':20}{'loss':>18}{'accuracy':>12}{'IoU':>8}    (held out, Drop-DTW alignments)")
    encoders, curves = {"untrained": Encoder()}, {}
    print(f"{'untrained':38}{'{:12.1%}{:8.1%}'.format(*score(encoders['untrained'], held_out, drop))}")
    for name, loss in losses(drop).items():
        encoders[name], curves[name] = train(loss, training, told.iterations, told.seed, told.clustering)
        change = f"{np.mean(curves[name][:10]):.3f} → {np.mean(curves[name][-10:]):.3f}"
        print(f"{name:20}{change:>18}{'{:12.1%}{:8.1%}'.format(*score(encoders[name], held_out, drop))}")
    if told.plot:
        draw(told.plot, encoders, curves, held_out[0], drop)
        print(f"\nsaved {told.plot}")


if __name__ == "__main__":
    main()
