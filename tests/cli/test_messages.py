"""Messages of the library name flags on the command line, and leave out advice for Python alone."""

import pickle

import numpy as np
import pytest

import dropdtw
from cli_cases import call
from dropdtw.problem.errors import MismatchError

WRONG = {
    "threshold": (["--method", "lcss", "--drop-x", "none"], "method 'lcss' needs --threshold; give the largest match"),
    "drop costs": (["--method", "dtw", "--drop-x", "1"], "leave out --drop-x and --drop-z, or use 'drop_dtw'"),
    "opening": (["--method", "dtw", "--open-x", "1"], "takes no opening costs, but --open-x is 1.0; leave it out"),
    "warp": (
        ["--method", "lcss", "--threshold", "1", "--warp", "1"],
        "takes no warp penalty, but --warp is 1.0; leave",
    ),
    "one each": (["--drop-x", "none", "--no-one-to-many"], "a z of their own; pass --one-to-many, or give --drop-x"),
    "match": (["--match", "manhattan"], "'softmax:0.1' (any γ > 0), 'auto'"),
    "no run": (["--drop-x", "1", "--open-z", "1"], "--open-z is 1.0, but no z may be dropped; give --drop-z as well"),
    "logit": (["--drop-x", "logit:30", "--match", "cosine"], "--drop-x is 'logit:30', a logit in the softmax cost"),
    "window": (["--drop-x", "none", "--window", "1", "--order", "order.txt"], "--window is 1, a band along the"),
    "drop-x per element": (["--drop-x", "short.csv"], "--drop-x has shape (2,), but there are 5 elements x_j; give a"),
}


@pytest.mark.parametrize("case", WRONG)
def test_messages_name_flags(tmp_path, monkeypatch, capsys, case):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, length in (("Z.csv", 3), ("X.csv", 5)):
        np.savetxt(name, rng.normal(size=(length, 2)), delimiter=",")
    np.savetxt("short.csv", [1.5, 2.5])
    (tmp_path / "order.txt").write_text("any order:\n  a\n  b\n  c\n")
    options, text = WRONG[case]
    code, _, err = call(monkeypatch, capsys, "align", "Z.csv", "X.csv", *options)
    assert (code, len(err.splitlines())) == (2, 1)
    assert text in err
    for python in ("drop_x", "drop_z", "open_x", "one_to_many", "function", "None", "=True", "{", "}"):
        assert python not in err


def test_values_with_braces_are_shown_as_they_are():
    error = MismatchError("{value!r} does not fit; give {drop_x}", in_python=", or a rule", value="{drop_z}")
    for copy in (error, pickle.loads(pickle.dumps(error))):
        assert str(copy) == "'{drop_z}' does not fit; give drop_x, or a rule"
        assert copy.text(str.upper) == "'{drop_z}' does not fit; give DROP_X"
    edges = dropdtw.edges("m", to="m", moves="diag", cost="match")
    strange = dropdtw.Recurrence(name="{warp}", states=("m",), start="m", final=("m",), edges=edges)
    with pytest.raises(MismatchError, match=r"method '\{warp\}' takes no threshold"):
        dropdtw.solve([[1.0]], threshold=1, method=strange)
