"""The one training loop: Lightning Fabric on CPU, GPU or several processes, with checkpoints that survive anything.

What is trained is a module that maps a batch to one loss value per item. Batches are named by indices and made anew in
each epoch from the seed, so a run that was killed and resumed does exactly what it would have done. A checkpoint is
written after every epoch, whole or not at all; metrics.jsonl holds one line per epoch.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dropdtw.files import atomic
from dropdtw.files.progress import Progress, reporter

Metrics = dict[str, float]


@dataclass(frozen=True)
class Plan:
    """How to train. accelerator, devices : as Lightning Fabric takes them; several devices are several processes.

    Under torchrun it is torchrun that says how many processes there are.
    """

    epochs: int = 10
    lr: float = 3e-4
    weight_decay: float = 1e-4
    seed: int = 0
    accelerator: str = "cpu"
    devices: int = 1


@dataclass(frozen=True)
class Fit:
    """What came out: the metrics of the best epoch, its number (0: before training), and all epochs' metrics."""

    best: Metrics
    epoch: int
    history: tuple[Metrics, ...]


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Random numbers of PyTorch that follow from the seed, for new weights; afterwards they go on as before."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def fit(
    module: nn.Module,
    load: Callable[[Sequence[int]], Any],
    batches: Callable[[int], Sequence[Sequence[int]]],
    validate: Callable[[nn.Module], Metrics],
    plan: Plan,
    *,
    score: str | None,
    out: Path | None = None,
    resume: bool = False,
    tensorboard: bool = False,
    progress: Progress = None,
    say: Callable[[str], None] = lambda text: None,
) -> Fit:
    """Train `module` and leave it with the weights of the epoch whose validation `score` was best; None: of the last.

    module : its forward takes a loaded batch and gives the loss of each item, (B,).
    load : a batch of indices as the module takes it, with a method `to(device)`.
    batches : the batches of an epoch; with several processes each takes its share of every batch.
    validate : metrics of the module, called before training and after each epoch; of equal scores the first is best.
    out : folder for checkpoint.pt, metrics.jsonl and TensorBoard's files; None keeps nothing.
    resume : go on from the checkpoint there, if there is one.
    """
    try:
        from lightning_fabric import Fabric
    except ImportError:
        raise ImportError("training needs Lightning Fabric: pip install 'dropdtw[experiments]'") from None

    here, everywhere = (int(os.environ.get(name, plan.devices)) for name in ("LOCAL_WORLD_SIZE", "WORLD_SIZE"))
    fabric = Fabric(
        accelerator=plan.accelerator,
        devices=here,
        num_nodes=max(1, everywhere // here),
        strategy="auto" if everywhere == 1 else "ddp",
    )
    fabric.launch()
    optimizer = torch.optim.Adam(module.parameters(), lr=plan.lr, weight_decay=plan.weight_decay)
    path = None if out is None else out / "checkpoint.pt"
    state: dict[str, Any] = {"epoch": 0, "history": [], "best": None}
    if resume and path is not None and path.exists():
        state = _read(path, plan)
        module.load_state_dict(state["module"])
        optimizer.load_state_dict(state["optimizer"])
        if fabric.is_global_zero:
            say(f"goes on after epoch {state['epoch']} of {plan.epochs}")
    wrapped, wrapped_optimizer = fabric.setup(module, optimizer)
    history: list[Metrics] = state["history"]
    board = _board(out) if tensorboard and out is not None and fabric.is_global_zero else None

    def note(epoch: int, metrics: Metrics) -> None:
        """Enter an epoch into the history and keep everything."""
        history.append({"epoch": epoch, **metrics})
        if score is None or state["best"] is None or metrics[score] > state["best"][score]:
            state["best"] = history[-1]
            state["best_module"] = {name: value.detach().cpu().clone() for name, value in module.state_dict().items()}
        state.update(epoch=epoch, module=module.state_dict(), optimizer=optimizer.state_dict(), plan=asdict(plan))
        if path is not None and fabric.is_global_zero:
            memory = io.BytesIO()
            torch.save(state, memory)
            atomic.write(path, memory.getvalue())
            atomic.write(path.with_name("metrics.jsonl"), "".join(json.dumps(line) + "\n" for line in history))
        if board is not None:
            for name, value in metrics.items():
                board.add_scalar(name, value, epoch)

    if not history:
        note(0, _validated(fabric, module, validate))
    total = sum(len(batches(epoch)) for epoch in range(state["epoch"], plan.epochs))
    report = reporter("training", progress if fabric.is_global_zero else False)
    done = 0
    for epoch in range(state["epoch"], plan.epochs):
        module.train()
        lost, items = 0.0, 0
        for number, indices in enumerate(batches(epoch)):
            # Chance depends on where training is, not on how it got there.
            torch.manual_seed(int(np.random.SeedSequence([plan.seed, epoch, number]).generate_state(1)[0]))
            mine = list(indices[fabric.global_rank :: fabric.world_size])
            # With fewer items than processes, one computes something that does not count: all must take part.
            values: Tensor = wrapped(load(mine or indices[:1]).to(fabric.device))
            # DDP averages over processes; this makes it the mean over the whole batch.
            loss = values.sum() * (bool(mine) * fabric.world_size / len(indices))
            wrapped_optimizer.zero_grad()
            fabric.backward(loss)
            wrapped_optimizer.step()
            lost += float(loss.detach()) * len(indices) / fabric.world_size
            items += len(indices)
            done += 1
            report(done, total)
        total_lost: Any = fabric.all_reduce(torch.tensor(lost, dtype=torch.float64), reduce_op="sum")
        lost = float(total_lost)
        note(epoch + 1, {"loss": lost / items, **_validated(fabric, module, validate)})
        if fabric.is_global_zero:
            numbers = (f"{name} {value:.4g}" for name, value in history[-1].items() if name != "epoch")
            say(f"epoch {epoch + 1}: {', '.join(numbers)}")
    if board is not None:
        board.close()
    module.load_state_dict(state["best_module"])
    module.eval()
    best = dict(state["best"])
    return Fit(best, int(best.pop("epoch")), tuple(history))


def _validated(fabric: Any, module: nn.Module, validate: Callable[[nn.Module], Metrics]) -> Metrics:
    """Rank 0 validates; the others wait and are told."""
    module.eval()
    with torch.no_grad():
        found = validate(module) if fabric.is_global_zero else None
    shared: Metrics = fabric.broadcast(found)
    return shared


def _read(path: Path, plan: Plan) -> dict[str, Any]:
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    before = {name: value for name, value in state["plan"].items() if name not in ("epochs", "accelerator", "devices")}
    now = {name: value for name, value in asdict(plan).items() if name in before}
    if before != now:
        raise ValueError(
            f"{path} is of a run with {before}, not {now}; resume with those settings, or start anew elsewhere"
        )
    return state


def _board(out: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ImportError(
            "TensorBoard's files need tensorboard: pip install tensorboard, or leave --tensorboard out"
        ) from None
    return SummaryWriter(str(out / "tensorboard"))
