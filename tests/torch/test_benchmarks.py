"""Benchmarks that only run by hand still run: on problems too small to measure anything."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the losses need PyTorch: pip install dropdtw[torch]")
pytest.importorskip("dropdtw.executors.cpu", reason="the compiled executor is not installed")

FOLDER = Path(__file__).parents[2] / "benchmarks"


def load(name, monkeypatch):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_what_drop_dtw_adds(monkeypatch, capsys):
    benchmark = load("torch_cpu", monkeypatch)
    monkeypatch.setattr(benchmark, "SHAPES", [(2, 3, 4)])
    threads = benchmark.torch.get_num_threads()
    try:
        benchmark.main()
    finally:
        benchmark.torch.set_num_threads(threads)
    assert capsys.readouterr().out.count("| 2 × 3 × 4 |") == 2


@pytest.mark.parametrize("work", ["align", "gradient"])
def test_time_and_memory(work, monkeypatch, capsys):
    benchmark = load("memory", monkeypatch)
    monkeypatch.setattr(sys, "argv", ["memory.py", work, "--shape", "4", "40"])
    benchmark.main()
    assert "% of a sample right" in (out := capsys.readouterr().out) or "beyond C and its gradient" in out


def test_speech(monkeypatch, capsys):
    benchmark = load("speech", monkeypatch)
    shapes = {"LOSSES": {(2, 9, 3, 5): 0}, "ALIGNED": {(2, 9, 3): 0}, "SEARCHED": {(2, 3, 7): 0}}
    monkeypatch.setattr(benchmark, "ON_CPU", shapes)
    monkeypatch.setattr(sys, "argv", ["speech.py", "--repeats", "1"])
    benchmark.main()
    out = capsys.readouterr().out
    assert all(f"| {shape} |" in out for shape in ("2 × 9 × 3 × 5", "2 × 9 × 3", "2 × 3 × 7"))


def test_words_that_are_missing_or_wrong_are_found(monkeypatch):
    """A small version of the benchmark, at its lower noise: timed, and found, better than by plain CTC and by stars."""
    benchmark = load("speech_words", monkeypatch)
    for kind in ("removed", "inserted"):
        found = benchmark.measured(items=3, words=30, noise=1.5, kind=kind, seed=20000)
        ours, *others = found.values()
        assert ours.wanted == 9
        assert ours.timed >= 0.98 * ours.spoken
        assert ours.f1 >= 0.9
        assert all(other.timed < ours.timed and other.f1 < 0.6 for other in others)


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_synthetic_speech(monkeypatch, capsys):
    """A model that has hardly learned: sentences are spoken where the truth says, and every aligner is counted."""
    load("speech_words", monkeypatch)
    benchmark = load("speech_synthetic", monkeypatch)
    listener = benchmark.trained(0, steps=2, sentences=8)
    assert "step 1: CTC loss" in capsys.readouterr().out
    for kind, spoken in (("removed", 1), ("inserted", 3)):
        found = benchmark.measured(listener, items=1, sentences=3, kind=kind, seed=0)
        assert [(c.spoken, c.wanted) for c in found.values()] == [(spoken, 2)] * 2
    truth = benchmark.recording(benchmark.np.random.default_rng(0), listener, 2)
    (_, stop), (start, last) = truth.spans
    assert 0.2 * benchmark.FPS - 1 <= start - stop <= benchmark.FPS + 1
    assert last < len(truth.log_probs) < last + 1.1 * benchmark.FPS
