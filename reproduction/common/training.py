"""The shared training loop: Lightning Fabric on CPU, GPU or several processes, with atomic checkpoints.

It trains a module that maps a batch to one loss value per item. Batches are lists of indices, derived from the seed in
each epoch, so a run that was killed and resumed gives exactly the same result. A checkpoint is written atomically after
every epoch; metrics.jsonl gets one line per epoch.
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
    """How to train. accelerator, devices : as in Lightning Fabric; several devices mean several processes.

    Under torchrun, torchrun sets the number of processes.
    """

    epochs: int = 10
    lr: float = 3e-4
    weight_decay: float = 1e-4
    seed: int = 0
    accelerator: str = "cpu"
    devices: int = 1


@dataclass(frozen=True)
class Fit:
    """The result: the metrics of the best epoch, its number (0: before training), and the metrics of all epochs."""

    best: Metrics
    epoch: int
    history: tuple[Metrics, ...]


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed PyTorch for reproducible initial weights, and restore its random state afterwards."""
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
    """Train `module` and leave it with the weights of the epoch with the best validation `score`; None: of the last.

    module : its forward takes a loaded batch and returns the loss of each item, (B,).
    load : loads a list of indices as a batch with a method `to(device)`.
    batches : the batches of an epoch; with several processes, each takes its share of every batch.
    validate : computes the metrics of the module, before training and after each epoch; ties go to the first epoch.
    out : folder for checkpoint.pt, metrics.jsonl and the TensorBoard files; None writes nothing.
    resume : continue from the checkpoint in `out`, if there is one.
    """
    try:
        from lightning_fabric import Fabric
    except ImportError:
        raise ImportError("training needs Lightning Fabric: make setup") from None

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
            say(f"resuming after epoch {state['epoch']} of {plan.epochs}")
    wrapped, wrapped_optimizer = fabric.setup(module, optimizer)
    history: list[Metrics] = state["history"]
    board = _board(out) if tensorboard and out is not None and fabric.is_global_zero else None

    def note(epoch: int, metrics: Metrics) -> None:
        """Append an epoch to the history and save a checkpoint."""
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
            # Seed by position in the run, so that a resumed run draws the same random numbers.
            torch.manual_seed(int(np.random.SeedSequence([plan.seed, epoch, number]).generate_state(1)[0]))
            mine = list(indices[fabric.global_rank :: fabric.world_size])
            # DDP needs every process: one without an item computes a loss with weight 0.
            values: Tensor = wrapped(load(mine or indices[:1]).to(fabric.device))
            # DDP averages over processes; this weight gives the mean over the whole batch.
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
    """Validate on rank 0 and broadcast the metrics."""
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
            f"{path} belongs to a run with {before}, not {now}; resume with those settings, or use another folder"
        )
    return state


def _board(out: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ImportError("--tensorboard needs the package: pip install tensorboard, or omit --tensorboard") from None
    return SummaryWriter(str(out / "tensorboard"))
