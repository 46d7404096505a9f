"""`--header` and `--no-header` on every command that reads sequences."""

import json
from pathlib import Path

import numpy as np
import pytest

import dropdtw
from cli_cases import call, run
from dropdtw.cli.app import app

pytestmark = pytest.mark.filterwarnings("default:.*column names")
ROWS = np.random.default_rng(3).normal(size=(6, 3))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Numbered columns in front of sequences, one line more than there are elements."""
    monkeypatch.chdir(tmp_path)
    Path("corpus").mkdir()
    np.save("q.npy", ROWS)
    for name in ("z.csv", "x.csv", "corpus/a.csv", "corpus/b.csv", "corpus/c.csv"):
        np.savetxt(name, ROWS, delimiter=",", header="0,1,2", comments="")
    return tmp_path


@pytest.mark.parametrize(("option", "length"), [(None, 6), ("--header", 6), ("--no-header", 7)])
def test_align_takes_names_for_names(folder, monkeypatch, capsys, option, length):
    arguments = ["align", "z.csv", "x.csv", "--drop-x", "1", "--out", "a.json", *([option] if option else [])]
    code, _, err = call(monkeypatch, capsys, *arguments)
    assert code == 0
    assert json.loads(Path("a.json").read_text())["shape"] == [length, length]
    notes = [line for line in err.splitlines() if "column names" in line]
    assert [line.split()[5] for line in notes] == ([] if option else ["z.csv,", "x.csv,"])


@pytest.mark.parametrize(("option", "length"), [(None, "6"), ("--header", "6"), ("--no-header", "7")])
def test_retrieve_says_it_once(folder, option, length):
    done = run("retrieve", "q.npy", "corpus", "--drop-x", "1", *([option] if option else []))
    assert [line.split()[2] for line in done.stdout.splitlines()[1:]] == [length] * 3
    assert done.stderr.count("the first line of") == (0 if option else 1)
    assert ("the same holds for 2 more files" in done.stderr) == (option is None)


def test_explore_loads_as_it_was_told(folder, monkeypatch):
    pytest.importorskip("starlette", reason="starlette is not installed: pip install 'dropdtw[explore]'")
    seen = []
    monkeypatch.setattr("dropdtw.explore.server.serve", lambda session, *_, **__: seen.append(session.data))
    run("explore", "z.csv", "x.csv", "--no-header", "--no-browser")
    assert seen[0].shape == (7, 7)
    assert seen[0].lines[-1].endswith("x.csv', header=False)")


def test_corpora_take_it_for_their_queries(folder):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'dropdtw[parquet]'")
    import dropdtw.corpus

    dropdtw.corpus.write("c.parquet", [("a", ROWS)])
    for option, length in (("--header", 6), ("--no-header", 7)):
        run("corpus", "localize", "z.csv", "c.parquet", option, "--out", f"steps{length}", "--drop-z", "1")
        assert json.loads(Path(f"steps{length}/manifest.json").read_text())["steps"]["shape"] == [length, 3]
        run("corpus", "retrieve", "z.csv", "c.parquet", option, "--out", f"near{length}", "--drop-x", "1")


def test_every_command_that_reads_sequences_has_it():
    from typer.main import get_command

    commands = get_command(app).commands
    for command in (
        *(commands[name] for name in ("align", "retrieve", "explore")),
        *(commands["corpus"].commands[name] for name in ("localize", "retrieve")),
    ):
        assert any("--no-header" in option.secondary_opts for option in command.params)


def test_an_underscore_makes_no_drop_cost(folder, monkeypatch, capsys):
    code, _, err = call(monkeypatch, capsys, "align", "z.csv", "x.csv", "--drop-x", "1_000")
    assert code == 2
    assert "--drop-x is '1_000'; give a number" in err


@pytest.mark.parametrize("command", ["align", "find"])
def test_empty_cells_and_times_are_taken_wherever_sequences_are(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "z.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "x.csv").write_text("t,b,a\n0,2,1\n5,,9\n10,4,3\n")
    code, _, said = call(monkeypatch, capsys, command, "z.csv", "x.csv", "--drop-x", "0.1", "--time", "t")
    assert (code, "or give --missing drop to ignore them" in said) == (2, True)
    flags = ("--drop-x", "0.1", "--match", "euclidean", "--missing", "drop", "--time", "t")
    out = run(command, "z.csv", "x.csv", *flags).stdout
    assert "15.00 s" in out  # the last element gets the usual length
    assert {"align": "cost 0,", "find": "1     0"}[command] in out


def test_retrieve_reads_tables_as_find_does(tmp_path, monkeypatch, capsys):
    """Columns in another order, times and empty cells change no cost, whether bounds prune or not."""
    monkeypatch.chdir(tmp_path)
    Path("many").mkdir()
    Z, X = ROWS[:4, :2], ROWS[1:, :2]
    np.savetxt("z.csv", Z, delimiter=",", header="a,b", comments="")
    rows = [f"{5 * k},{b},{a}" for k, (a, b) in enumerate(X.tolist())]
    Path("many/x.csv").write_text("\n".join(["t,b,a", *rows[:2], "7,,9", *rows[2:]]) + "\n")
    read = ["retrieve", "z.csv", "many", "--time", "t"]
    code, _, said = call(monkeypatch, capsys, *read, "--drop-x", "0.1")
    assert (code, "or give --missing drop to ignore them" in said) == (2, True)
    for drop_x in (0.1, "percentile:30"):
        for mean in (False, True):
            flags = ("--missing", "drop", "--drop-x", str(drop_x), *(["--mean"] if mean else []), "--out", "-")
            (found,) = json.loads(run(*read, *flags).stdout)["nearest"]
            cost = dropdtw.align(Z, X, drop_x, match="euclidean").cost
            assert found["cost"] == pytest.approx(cost / (len(Z) + len(X)) if mean else cost, rel=1e-9)
            assert found["length"] == len(X)
    Path("many/y.csv").write_text("t,b,c\n0,1,2\n")
    code, _, said = call(monkeypatch, capsys, *read, "--drop-x", "0.1", "--missing", "drop")
    assert (code, "y.csv has b,c; give both the same columns" in said) == (2, True)
    Path("many/y.csv").write_text("t,b,a\n0,,2\n")
    code, _, said = call(monkeypatch, capsys, *read, "--drop-x", "0.1", "--missing", "drop")
    assert (code, "every element of many/y.csv has NaN" in said) == (2, True)


def test_drop_costs_of_elements_follow_those_that_are_not_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("many").mkdir()
    holed = ROWS.copy()
    holed[2, 0] = np.nan
    prices = np.array([[0.1], [0.2], [9.0], [0.3], [0.4], [0.5]])
    np.save("z.npy", holed)
    np.save("prices.npy", prices)
    np.save("many/x.npy", ROWS[:4])
    flags = ("--missing", "drop", "--drop-x", "0.1", "--drop-z", "prices.npy", "--out", "-")
    (found,) = json.loads(run("retrieve", "z.npy", "many", *flags).stdout)["nearest"]
    kept = [0, 1, 3, 4, 5]
    assert found["cost"] == pytest.approx(dropdtw.distance(ROWS[kept], ROWS[:4], 0.1, prices[kept, 0]), rel=1e-9)
