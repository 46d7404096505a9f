"""JIGSAWS: the packed trials."""

import numpy as np
import pytest

from jigsaws_trials import write_trials
from reproduction.data import jigsaws


def test_trials_are_read(tmp_path):
    arrays = write_trials(tmp_path)
    trials = jigsaws.load(tmp_path)
    assert [t.name for t in trials] == arrays["names"].tolist()
    assert [t.name for t in jigsaws.load(tmp_path / "jigsaws.npz")] == arrays["names"].tolist()
    knot = trials[2]
    assert (knot.task, knot.subject) == ("Knot_Tying", "S02")
    assert [gesture for gesture, _, _ in knot.segments] == ["G11", "G1", "G12", "G11"]
    start = arrays["lengths"][:2].sum()
    np.testing.assert_array_equal(knot.kinematics, arrays["kinematics"][start : start + arrays["lengths"][2]])
    assert knot.segments[0][1] == 10
    assert knot.segments[-1][2] == len(knot.kinematics)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengths": lambda a: a + 1}, "lengths sum to"),
        ({"names": lambda a: a[:-1]}, "14 lengths and 13 names"),
        ({"segments": lambda a: a + np.array([0, 0, 1000])}, "segment .* is not inside a trial"),
        ({"gestures": lambda a: a[:-1]}, "zip"),
        ({"names": lambda a: np.char.replace(a, "_S", "-")}, "is not named TASK_SNN_TNN"),
        ({"kinematics": lambda a: a * np.nan}, "finite kinematics"),
    ],
)
def test_other_files_are_refused(tmp_path, change, message):
    arrays = write_trials(tmp_path)
    ((name, function),) = change.items()
    np.savez(tmp_path / "jigsaws.npz", **{**arrays, name: function(arrays[name])})
    with pytest.raises(ValueError, match=message):
        jigsaws.load(tmp_path)


def test_a_missing_file_or_array_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"give the folder of jigsaws\.npz"):
        jigsaws.load(tmp_path)
    arrays = write_trials(tmp_path)
    del arrays["gestures"]
    np.savez(tmp_path / "jigsaws.npz", **arrays)
    with pytest.raises(ValueError, match=r"not in the published layout.*gestures"):
        jigsaws.load(tmp_path)
