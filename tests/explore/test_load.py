"""What the explorer reads, the code it gives back, and its command."""

import asyncio
import json
import signal
import subprocess
import sys
import urllib.request

import numpy as np
import pytest

import dropdtw

pytest.importorskip("starlette", reason="starlette is not installed: pip install 'dropdtw[explore]'")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'dropdtw[explore]'")

import explore_cases
from dropdtw.explore import load, server, settings, view
from dropdtw.explore.session import Memo, Session
from explore_cases import TOKEN

pair, session, client = map(pytest.fixture, (explore_cases.pair, explore_cases.session, explore_cases.client))

# --- data -------------------------------------------------------------------------------------------------------


def runs_to(code, cost):
    scope = {}
    exec(code, scope)
    assert scope["a"].cost == pytest.approx(cost, rel=1e-12)
    return scope


@pytest.fixture
def folder(tmp_path, pair):
    Z, X, truth = pair
    np.save(tmp_path / "Z.npy", Z)
    np.save(tmp_path / "X.npy", X)
    np.savetxt(tmp_path / "X.csv", X, delimiter=",")
    np.save(tmp_path / "truth.npy", truth)
    np.savez(tmp_path / "both.npz", Z=Z, X=X, truth=truth, fps=5.0)
    C = dropdtw.costs.cosine(Z, X)
    np.save(tmp_path / "C.npy", C)
    np.savez(tmp_path / "C.npz", C=C)
    np.savetxt(tmp_path / "C.csv", C, delimiter=",")
    return tmp_path


@pytest.mark.parametrize(
    "names",
    [
        ["Z.npy", "X.npy"],
        ["Z.npy", "X.csv"],
        ["both.npz:Z", "both.npz:X"],
        ["both.npz"],
        ["C.npy"],
        ["C.npz"],
        ["C.csv"],
    ],
)
def test_code_gives_the_same_alignment(folder, names):
    s = Session(load.read(*[str(folder / name) for name in names]))
    for more in ({}, {"drop_z": {"kind": "percentile", "value": 12.34}, "window": {"kind": "share", "value": 0.7}}):
        chosen = settings.parse(s.first.to_json() | more)
        header, _ = s.align(chosen)
        scope = runs_to(header["code"], header["cost"])
        np.testing.assert_allclose(scope["p"].match, s.posterior(chosen).match, atol=1e-9)
    assert ("aligner.align(Z, X)" in header["code"]) == ("C" not in names[0])


@pytest.fixture
def tables(folder, pair):
    """Z and X as tables: X with its columns reversed, times, and an empty cell in its third row."""
    Z, X, _ = pair
    names = [f"c{k}" for k in range(Z.shape[1])]
    np.savetxt(folder / "Z.csv", Z, delimiter=",", header=",".join(names), comments="")
    rows = [[f"{0.5 * j:g}", *map(repr, row[::-1].tolist())] for j, row in enumerate(X)]
    rows[2][1] = ""
    text = [",".join(["t", *names[::-1]]), *map(",".join, rows)]
    (folder / "X.csv").write_text("\n".join(text) + "\n")
    return str(folder / "Z.csv"), str(folder / "X.csv")


def test_tables_give_their_times_and_lose_missing_elements(tables, folder, pair):
    _, X, truth = pair
    places = np.delete(np.arange(len(X)), 2)
    data = load.read(*tables, time="t", missing="drop", truth=str(folder / "truth.npy"))
    np.testing.assert_array_equal(data.X, X[places])
    assert data.times == tuple((0.5 * places).tolist())
    np.testing.assert_array_equal(data.truth, truth[places])
    s = Session(data)
    header, _ = s.align(s.first)
    scope = runs_to(header["code"], header["cost"])
    np.testing.assert_array_equal(scope["X"], X[places])
    assert s.export(s.first)["segments"][0]["start_time"] in data.times
    with pytest.raises(ValueError, match="give --missing drop to ignore them"):
        load.read(*tables, time="t")
    with pytest.raises(ValueError, match="fps is -1"):
        load.read(*tables, fps=-1, time="t", missing="drop")


def test_frames_keep_their_times_if_others_are_missing(folder, pair):
    _, X, _ = pair
    holed = X.copy()
    holed[2, 0] = np.nan
    np.save(folder / "X.npy", holed)
    files = (str(folder / "Z.npy"), str(folder / "X.npy"))
    data = load.read(*files, fps=10.0, missing="drop")
    assert data.fps is None
    assert data.times[:4] == (0, 0.1, 0.3, 0.4)
    s = Session(data)
    header, _ = s.align(s.first)
    assert len(runs_to(header["code"], header["cost"])["X"]) == len(X) - 1


@pytest.mark.parametrize("kind", [".npz", ".json"])
@pytest.mark.parametrize("vector", [False, True])
def test_an_alignment_from_a_file_is_taken_up(folder, pair, kind, vector):
    from dropdtw.files import formats

    drop_x = np.linspace(0.3, 0.6, 57) if vector else 0.5
    a = dropdtw.align(*pair[:2], drop_x=drop_x, fps=25)
    (folder / f"a{kind}").write_bytes(
        c.encode() if isinstance(c := formats.alignment_content(a, kind, costs=True), str) else c
    )
    s = Session(load.read(str(folder / f"a{kind}")))
    assert s.first.drop_x.kind == ("given" if vector else "constant")
    assert s.first.drop_z.kind == "none"
    header, arrays = s.align(s.first)
    np.testing.assert_array_equal(arrays["pairs"], a.pairs)
    assert header["prices"]["drop_x"] == (None if vector else 0.5)
    runs_to(header["code"], a.cost)
    info = s.info()
    assert info["note"] is None
    assert info["times"][:3] == [0, 0.04, 0.08]
    assert info["given"] == (["drop_x"] if vector else [])


def test_a_file_made_with_other_options_is_noted(folder, pair):
    from dropdtw.files import formats

    a = dropdtw.align(*pair[:2], drop_x=0.9, drop_z=0.05, one_to_many=False)
    (folder / "a.npz").write_bytes(formats.alignment_content(a, ".npz"))
    assert f"costs {a.cost:.6g}" in Session(load.read(str(folder / "a.npz"))).info()["note"]
    plain = dropdtw.align(*pair[:2])
    (folder / "b.npz").write_bytes(formats.alignment_content(plain, ".npz"))
    assert Session(load.read(str(folder / "b.npz"))).info()["note"] is None
    counted = dropdtw.align(*pair[:2], method="lcss", threshold=-1.0)
    (folder / "c.npz").write_bytes(formats.alignment_content(counted, ".npz"))
    assert Session(load.read(str(folder / "c.npz"))).first.threshold.kind == "percentile"


def test_what_cannot_be_explored_is_said(folder):
    def saved(**arrays):
        np.savez(folder / "x.npz", **arrays)
        return str(folder / "x.npz")

    a = dropdtw.solve([[0.0, 1.0]], drop_x=0.5)
    (folder / "a.json").write_text(json.dumps(a.to_dict()))
    (folder / "broken.json").write_text("{")
    for name in ("broken.npz", "broken.npy"):
        (folder / name).write_bytes(b"no")
    Z, X = str(folder / "Z.npy"), str(folder / "X.npy")
    wrong = {
        "holds pairs; the explorer needs C, or Z and X": lambda: load.read(saved(pairs=np.zeros(3))),
        "cannot read standard input": lambda: load.read("-", X),
        "contains no match costs": lambda: load.read(str(folder / "a.json")),
        "cannot be read as .json": lambda: load.read(str(folder / "broken.json")),
        "cannot be read as .npz": lambda: load.read(str(folder / "broken.npz")),
        "cannot be read as .npy": lambda: load.read(str(folder / "broken.npy")),
        "truth has shape": lambda: load.read(X, Z, truth=str(folder / "truth.npy")),
        "not integers": lambda: load.read(saved(C=np.eye(2), truth=[0.5, 1])),
        "time is for two sequences": lambda: load.read(Z, time="t"),
        "missing is for two sequences": lambda: load.read(Z, missing="drop"),
        "fps is 0": lambda: load.read(Z, X, fps=0),
        "16,777,216": lambda: load.from_sequences(np.zeros((5000, 1)), np.zeros((5000, 1))),
        "choose one of drop_dtw": lambda: Session(load.from_costs(np.eye(2), method="own table")),
        "drop_x has": lambda: load.read(saved(C=np.eye(2), drop_x=np.zeros(5))),
    }
    for text, attempt in wrong.items():
        with pytest.raises(ValueError, match=text):
            attempt()
    with pytest.raises(OSError, match="nowhere"):
        load.read(str(folder / "nowhere.npz"))


def test_settings_to_begin_with(pair):
    Z, X, _ = pair
    s = Session(load.from_sequences(Z, X))
    assert s.opening(method="dtw").drop_x.kind == "none"
    assert s.opening(method="lcss").threshold.kind == "percentile"
    both = s.opening(method="needleman_wunsch")
    assert both.drop_x == both.drop_z
    assert s.opening("softmax:0.1").match == "softmax:0.1"
    assert "softmax:0.1" in s.matches
    with pytest.raises(ValueError, match="match is 'manhattan'"):
        s.opening("manhattan")
    assert Session(load.from_sequences(Z[:, :1], X[:, :1])).first.match == "euclidean"
    own = settings.PageSettings(match="softmax:0.5")
    assert "softmax:0.5" in Session(load.from_sequences(Z, X), own).matches


def test_large_matrices_are_made_small_and_keep_their_extremes():
    rng = np.random.default_rng(0)
    C = rng.random((300, 700))
    C[123, 456] = -5
    small = view.pooled(C, 1000, np.minimum)
    assert small.size <= 1000
    assert small.min() == -5
    i, j = np.unravel_index(small.argmin(), small.shape)
    assert view.blocks(300, small.shape[0])[i] <= 123 < [*view.blocks(300, small.shape[0]), 300][i + 1]
    assert view.blocks(700, small.shape[1])[j] <= 456 < [*view.blocks(700, small.shape[1]), 700][j + 1]
    assert view.pooled(C, 1 << 20, np.minimum) is C
    levels, low, high = view.gray(np.full((2, 2), 3.0), 100)
    assert (levels.max(), low < high) == (0, True)


def test_curves():
    Z, X = np.zeros((3, 700)), np.arange(5)[:, None] * np.ones((5, 700))
    found = view.curves(Z, X, None)
    assert len(found["x"]) == 3
    assert np.abs(np.diff(found["x"][0])).min() > 0  # the one direction in which they vary
    assert "700 dimensions" in found["what"]
    long = view.curves(np.zeros((1, 1)), np.arange(10_000.0)[:, None], None, points=100)
    np.testing.assert_allclose(long["x"][0], np.arange(10_000).reshape(100, 100).mean(axis=1))


def test_memory_of_answers_is_bounded():
    memo, made = Memo(2), []

    def make(key):
        return lambda: made.append(key) or key

    for key in "abacab":
        assert memo(key, make(key)) == key
    assert made == ["a", "b", "c", "b"]


# --- the command ------------------------------------------------------------------------------------------------


def test_the_command_prints_its_address_and_ends_with_ctrl_c(folder):
    process = subprocess.Popen(
        [sys.executable, "-m", "dropdtw", "explore", "Z.npy", "X.npy", "--no-browser", "--truth", "truth.npy"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        assert len(address.rstrip("/").rpartition("/")[2]) >= 32
        with urllib.request.urlopen(f"{address}info", timeout=20) as answer:
            assert json.load(answer)["shape"] == [4, 57]
        port = int(address.split(":")[2].split("/")[0])
        with pytest.raises(OSError, match=f"port {port} is not available"):
            server.listen(port)
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=20)
        assert rest == ("", "dropdtw: open this address in a browser; press Ctrl-C to stop\n")
        assert process.returncode == 0
    finally:
        if process.poll() is None:
            process.kill()


def test_it_serves_until_ctrl_c(session):
    seen = []

    def opened(address):
        try:
            with urllib.request.urlopen(address, timeout=20) as answer:
                seen.append(answer.read())
        finally:
            signal.raise_signal(signal.SIGINT)

    server.serve(session, opened=opened)
    assert b"dropdtw explorer" in seen[0]


def test_what_is_no_request_is_left_unanswered(client):
    asyncio.run(client.app({"type": "websocket", "path": f"/{TOKEN}/"}, None, None))


@pytest.fixture
def served(monkeypatch, folder):
    """What `dropdtw explore` would serve."""
    pytest.importorskip("typer", reason="typer is not installed")
    monkeypatch.chdir(folder)
    asked = {}

    def serve(session, port, *, opened):
        asked.update(session=session, port=port)
        opened("http://address")

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setattr("webbrowser.open", lambda address: asked.update(opened=address))

    def run(*arguments):
        from typer.testing import CliRunner

        from dropdtw.cli.app import app

        asked.clear()
        done = CliRunner().invoke(app, ["explore", *arguments])
        if done.exception:
            raise done.exception
        return asked | {"output": done.stdout}

    return run


def test_the_command_opens_a_browser_unless_told_not_to(served):
    found = served("Z.npy", "X.npy", "--port", "1234")
    assert (found["opened"], found["port"], found["output"]) == ("http://address", 1234, "http://address\n")
    assert "opened" not in served("Z.npy", "X.npy", "--no-browser")


@pytest.mark.parametrize(
    ("options", "drop_x", "drop_z"),
    [
        ([], "constant", "none"),
        (["--drop-x", "percentile:30"], "percentile", "none"),
        (["--drop-z", "0.5"], "none", "constant"),
        (["--drop-x", "suggest", "--drop-z", "suggest"], "constant", "constant"),
        (["--drop-x", "none", "--match", "euclidean"], "none", "none"),
        (["--method", "dtw"], "none", "none"),
    ],
)
def test_options_are_what_the_page_begins_with(served, options, drop_x, drop_z):
    first = served("Z.npy", "X.npy", *options)["session"].first
    assert (first.drop_x.kind, first.drop_z.kind) == (drop_x, drop_z)
    if "--match" in options:
        assert first.match == "euclidean"


def test_options_that_the_page_cannot_show_are_refused(served):
    np.save("costs.npy", np.ones(57))
    for cost in ("logit:30", "inf", "nan", "costs.npy"):
        with pytest.raises(ValueError, match="the explorer takes a number"):
            served("Z.npy", "X.npy", "--drop-x", cost)
    with pytest.raises(ValueError, match="only match costs were given"):
        served("C.npy", "--match", "cosine")
