"""The training loop: it learns, keeps the best epoch, and a killed run resumes to the same result."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs PyTorch: make setup")
pytest.importorskip("lightning_fabric", reason="training needs Lightning Fabric: make setup")

from reproduction.common.training import Plan, fit  # noqa: E402


@dataclass
class Numbers:
    x: torch.Tensor
    y: torch.Tensor

    def to(self, device):
        return Numbers(self.x.to(device), self.y.to(device))


class Line(torch.nn.Module):
    """y = a x + b with random noise, so that results match only if the random numbers do."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(1, 1)
        torch.nn.init.zeros_(self.inner.weight)
        torch.nn.init.zeros_(self.inner.bias)

    def forward(self, batch):
        noise = 0.1 * torch.rand(())
        return (self.inner(batch.x)[:, 0] + noise - batch.y) ** 2


X = torch.linspace(-1, 1, 21)[:, None]
Y = 3 * X[:, 0] + 1


PATH = [os.path.dirname(__file__), str(Path(__file__).parents[3])]
"""Where a program of its own finds this file and the experiments."""


def load(indices):
    return Numbers(X[list(indices)], Y[list(indices)])


def batches(epoch):
    order = [(5 * k + epoch) % 21 for k in range(21)]
    return [order[k : k + 5] for k in range(0, 21, 5)]


def validate(module):
    return {"fit": -float(((module.inner(X)[:, 0] - Y) ** 2).mean().detach())}


def train(out=None, epochs=6, validate=validate, **more):
    module = Line()
    plan = Plan(epochs=epochs, lr=0.1, weight_decay=0.0)
    return module, fit(module, load, batches, validate, plan, score="fit", out=out, progress=False, **more)


def test_training_learns_and_writes_down_how(tmp_path):
    seen = []
    module, done = train(tmp_path, epochs=30, say=seen.append)
    assert done.best["fit"] > -0.02 > done.history[0]["fit"]
    assert validate(module) == {"fit": done.best["fit"]}
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert tuple(lines) == done.history
    assert [line["epoch"] for line in lines] == list(range(31))
    assert lines[-1]["loss"] < lines[1]["loss"] / 10
    assert len(seen) == 30


def test_the_loss_is_the_mean_over_items():
    still = Plan(epochs=1, lr=0.0, weight_decay=0.0)

    class Exact(Line):
        def forward(self, batch):
            return (self.inner(batch.x)[:, 0] - batch.y) ** 2

    done = fit(Exact(), load, batches, validate, still, score="fit", progress=False)
    assert done.history[1]["loss"] == pytest.approx(float((Y**2).mean()), rel=1e-5)


def test_the_best_epoch_is_kept_not_the_last():
    found = iter([0.0, 5.0, 2.0, 5.0, 1.0])
    weights = []

    def odd(module):
        weights.append(module.inner.weight.item())
        return {"fit": next(found)}

    module, done = train(epochs=4, validate=odd)
    assert done.epoch == 1  # ties go to the first
    assert done.best == {"fit": 5.0, "loss": done.history[1]["loss"]}
    assert module.inner.weight.item() == weights[1] != weights[-1]
    assert not module.training


def test_resuming_is_as_if_nothing_had_happened(tmp_path):
    whole, done = train(tmp_path / "whole", epochs=6)
    train(tmp_path / "halves", epochs=3)
    module, resumed = train(tmp_path / "halves", epochs=6, resume=True)
    assert resumed == done
    for a, b in zip(whole.state_dict().values(), module.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    assert (tmp_path / "whole" / "metrics.jsonl").read_text() == (tmp_path / "halves" / "metrics.jsonl").read_text()
    again, finished = train(tmp_path / "halves", epochs=6, resume=True)  # nothing left to do
    assert finished == done
    assert torch.equal(again.inner.weight, whole.inner.weight)
    with pytest.raises(ValueError, match=r"belongs to a run with .*; resume with those .*, or use another folder"):
        fit(Line(), load, batches, validate, Plan(epochs=6, lr=0.2), score="fit", out=tmp_path / "halves", resume=True)
    _, started = train(tmp_path / "halves", epochs=6)  # without resume it starts over
    assert started == done


class Exact(Line):
    """Without noise, because each process draws its own random numbers."""

    def forward(self, batch):
        return (self.inner(batch.x)[:, 0] - batch.y) ** 2


def train_exact(out, epochs, devices=1):
    plan = Plan(epochs=epochs, lr=0.1, weight_decay=0.0, devices=devices)
    return fit(Exact(), load, batches, validate, plan, score="fit", out=out, resume=True, progress=False)


@pytest.mark.parametrize("starter", ["fabric", "torchrun"])
def test_two_processes_give_the_curve_of_one_and_take_turns_with_it(tmp_path, starter):
    """Equal up to rounding; and each can resume from the other's checkpoint."""
    script = tmp_path / "two.py"
    script.write_text(
        textwrap.dedent(f"""
        import os, sys
        from pathlib import Path
        sys.path[:0] = {PATH!r}
        import test_training as t

        loaded, load = [], t.load
        t.load = lambda indices: loaded.extend(indices) or load(indices)
        for name, epochs in (("two", 4), ("two then one", 2), ("one then two", 4)):
            t.train_exact(Path(sys.argv[1], name), epochs, int(sys.argv[2]))
        Path(sys.argv[1], "loaded-" + os.environ.get("LOCAL_RANK", "0")).write_text(str(len(loaded)))
        sys.stdout.flush()
        os._exit(0)  # gloo can abort while the interpreter shuts down
        """)
    )
    alone = train_exact(tmp_path / "one", 4)
    train_exact(tmp_path / "one then two", 2)
    two = ["-m", "torch.distributed.run", "--nproc-per-node", "2"] if starter == "torchrun" else []
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("COV", "PYTEST"))}
    subprocess.run(
        [sys.executable, *two, str(script), str(tmp_path), "1" if two else "2"],
        check=True, timeout=240, env=environment, capture_output=True,
    )  # fmt: skip
    # An epoch has 21 items in batches of 5, 5, 5, 5 and 1. The first process takes 13 of them and the second takes 8,
    # plus one item with weight 0.
    assert [int((tmp_path / f"loaded-{rank}").read_text()) for rank in (0, 1)] == [8 * 13, 8 * 9]
    assert len((tmp_path / "two then one" / "metrics.jsonl").read_text().splitlines()) == 3
    train_exact(tmp_path / "two then one", 4)
    expected = torch.tensor([[line.get("loss", 0), line["fit"]] for line in alone.history])
    for name in ("two", "two then one", "one then two"):
        lines = [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        assert [line["epoch"] for line in lines] == [0, 1, 2, 3, 4]
        curve = torch.tensor([[line.get("loss", 0), line["fit"]] for line in lines])
        assert torch.allclose(curve, expected, atol=1e-5), name
    assert expected[-1, 0] < expected[1, 0]


def test_a_killed_run_goes_on(tmp_path):
    """Repeated kill -9 at random moments gives the same result as an uninterrupted run."""
    script = tmp_path / "run.py"
    script.write_text(
        textwrap.dedent(f"""
        import sys, time
        sys.path[:0] = {PATH!r}
        import test_training as t

        quick = t.load

        def slow(indices):
            time.sleep(0.004)
            return quick(indices)

        t.load = slow
        t.train(__import__("pathlib").Path(sys.argv[1]), epochs=40, resume=True)
        """)
    )
    out = tmp_path / "out"
    kills = 0
    for attempt in range(40):
        process = subprocess.Popen([sys.executable, str(script), str(out)], stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        before = (out / "metrics.jsonl").read_text() if (out / "metrics.jsonl").exists() else ""
        while process.poll() is None and time.monotonic() < deadline:  # let it finish an epoch or two
            now = (out / "metrics.jsonl").read_text() if (out / "metrics.jsonl").exists() else ""
            if kills < 2 and len(now.splitlines()) > len(before.splitlines()) + 1 + attempt % 3:
                time.sleep(0.003 * attempt)
                process.send_signal(signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.002)
        said = process.communicate(timeout=60)[1].decode()
        code = process.returncode
        assert code in (0, -signal.SIGKILL), said
        if code == 0:
            break
    assert kills == 2
    train(tmp_path / "alone", epochs=40)
    assert (out / "metrics.jsonl").read_text() == (tmp_path / "alone" / "metrics.jsonl").read_text()
    states = [torch.load(p / "checkpoint.pt", weights_only=True) for p in (out, tmp_path / "alone")]
    for a, b in zip(*(state["module"].values() for state in states), strict=True):
        assert torch.equal(a, b)


def test_tensorboard_files_are_written(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    train(tmp_path, epochs=1, tensorboard=True)
    assert list((tmp_path / "tensorboard").glob("events*"))
