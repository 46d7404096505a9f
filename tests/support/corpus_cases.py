"""Corpora for the tests of `dropdtw.corpus`, and readers for the results."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'dropdtw[parquet]'")
pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'dropdtw[parquet]'")

import pyarrow as pa
import pyarrow.parquet as pq

import dropdtw.corpus

BOTH = {"drop_x": 0.4, "drop_z": 0.4}
STEPS = np.random.default_rng(7).normal(size=(3, 6)).astype(np.float32)


def record(k, *, d=6):
    """A record that contains the steps of `STEPS`, and junk."""
    rng = np.random.default_rng([1, k])
    parts = [rng.normal(size=(int(n), d)) for n in rng.integers(0, 4, 4)]
    found = [np.repeat(z[None, :d], int(n), axis=0) for z, n in zip(STEPS, rng.integers(1, 5, 3), strict=True)]
    mixed = [piece for pair in zip(parts, [*found, found[0][:0]], strict=True) for piece in pair]
    X = np.concatenate(mixed)
    return (X + 0.3 * rng.normal(size=X.shape)).astype(np.float32)


def corpus(folder, count=60, *, files=3, group=5, steps=False):
    """Write a corpus of `count` records in several files; returns its records."""
    made = [(f"r{k}", record(k), STEPS + 0.1 * k) if steps else (f"r{k}", record(k)) for k in range(count)]
    for f, some in enumerate(np.array_split(np.arange(count), files)):
        dropdtw.corpus.write(f"{folder}/{f}.parquet", (made[k] for k in some), group=group)
    return made


def table(path, **columns):
    """Write a Parquet file directly, with content that `write` would refuse."""
    types = {
        "id": pa.string(),
        "features": pa.list_(pa.float32()),
        "shape": pa.list_(pa.int64()),
        "steps": pa.list_(pa.float32()),
        "steps_shape": pa.list_(pa.int64()),
    }
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({name: pa.array(v, types.get(name)) for name, v in columns.items()}), path)


def rows(out):
    """All results of a run, in order."""
    return [row for part in sorted(Path(out, "parts").iterdir()) for row in pq.read_table(part).to_pylist()]


def errors(out):
    """All errors of a run."""
    return [json.loads(line) for line in Path(out, "errors.jsonl").read_text().splitlines()]


def content(out):
    """The content of every file in a folder, by name."""
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(Path(out).rglob("*")) if p.is_file()}


def nearest_of(out):
    """The results of `retrieve`."""
    return pq.read_table(Path(out, "nearest.parquet")).to_pylist()


def bad_corpus(folder):
    """Two good records, and one bad record of each kind."""
    X = record(0)
    good = X.ravel().tolist()
    size = list(X.shape)
    table(
        folder / "a.parquet",
        id=["good", None, "nothing", "no shape", "wrong shape", "hole", "empty", "flat", "null inside", "also good"],
        features=[good, good, None, good, good, [*good[:-1], np.nan], [], good, [*good[:-1], None], good],
        shape=[size, size, size, None, [2, 6], size, [0, 6], [len(good)], size, size],
    )
    return X


def pretend_gpu(monkeypatch):
    """Pretend that there is a GPU; the CPU does its work."""
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dropdtw[torch]'")
    from dropdtw.corpus import gpu

    real = gpu._batches
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(gpu, "_batches", lambda Zs, Xs, which, spec, device: real(Zs, Xs, which, spec, "cpu"))
