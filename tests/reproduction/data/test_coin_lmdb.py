"""COIN's published features as files. Reading the LMDBs needs pyarrow 11, so only their records are made here."""

import numpy as np
import pytest

from reproduction.data import coin_lmdb
from reproduction.data.features import Features, step_embeddings


def record(name, ids, rng, **more):
    return {"name": name, "frames_features": rng.normal(size=(5, 8)).astype(np.float32), "steps_ids": ids, **more}


def test_records_become_files_that_the_loader_reads(tmp_path):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(2, 8)).astype(np.float32)
    made = [
        record("Tea_3_ab_c-1", np.array([7, 4]), rng, steps_features=Z),
        record("Tea_3_-x", np.array([4]), rng, steps_features=Z[1:]),
    ]
    coin_lmdb.convert(made, tmp_path / "out")
    frames = Features(tmp_path / "out" / "frames")
    for video, one in zip(("ab_c-1", "-x"), made, strict=True):
        np.testing.assert_array_equal(frames[video], one["frames_features"])
    steps = step_embeddings(tmp_path / "out" / "steps.npz", range(778))
    np.testing.assert_array_equal(np.stack([steps[7], steps[4]]), Z)


def test_records_without_step_embeddings_give_frames_only(tmp_path):
    coin_lmdb.convert([record("Tea_3_a", np.array([4]), np.random.default_rng(0))], tmp_path / "out")
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == ["frames"]


def test_a_pyarrow_that_cannot_read_the_records_says_so(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow: make setup")
    if hasattr(pyarrow, "SerializationContext"):
        pytest.skip("this pyarrow reads the records")
    with pytest.raises(ImportError, match="run this file where pyarrow 11 is installed"):
        list(coin_lmdb.records(tmp_path))
