"""Orders in the explorer: what the page receives."""

from pathlib import Path

import numpy as np
import pytest

import dropdtw
from cli_cases import call, run
from dropdtw import orders

pytest.importorskip("starlette", reason="starlette is not installed: pip install 'dropdtw[explore]'")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'dropdtw[explore]'")

from dropdtw.explore import load
from dropdtw.explore.order import MOST_BOXES, drawn, with_order
from dropdtw.explore.session import Session
from dropdtw.orders import Steps, parse_steps
from explore_cases import FIRST as USUAL
from explore_cases import Client

FIRST = USUAL | {"drop_x": {"kind": "constant", "value": 0.5}}

TEXT = "zero\nany order:\n  one\n  two\none of:\n  three\n  four\noptional:\n  five"


@pytest.fixture
def pair():
    """Six steps and a recording: 0, then 2 before 1, then 4 and not 3, and nobody does 5."""
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(6, 16))
    truth = np.repeat([-1, 0, -1, 2, 1, -1, 4, -1], [3, 5, 4, 5, 4, 6, 5, 4])
    noise = rng.normal(size=(len(truth), 16))
    return Z, np.where(truth[:, None] >= 0, Z[truth] + 0.4 * noise, noise)


@pytest.fixture
def session(pair, tmp_path):
    for name, values in zip("ZX", pair, strict=True):
        np.save(tmp_path / f"{name}.npy", values)
    (tmp_path / "order.txt").write_text(TEXT)
    data = load.read(str(tmp_path / "Z.npy"), str(tmp_path / "X.npy"))
    return Session(with_order(data, parse_steps(TEXT, 6), str(tmp_path / "order.txt")))


@pytest.fixture
def client(session):
    return Client(session)


def test_a_page_is_told_the_boxes_and_the_arrows(client):
    found = client.get("info").json()
    order = found["order"]
    assert order["names"] == ["zero", "one", "two", "three", "four", "five"]
    assert (order["optional"], order["partial"]) == ([5], True)
    steps = [step for step, *_ in order["nodes"]]
    kinds = {(steps[a], steps[b]): kind for a, b, kind, *_ in order["edges"]}
    assert kinds[0, 1] == kinds[0, 2] == "before"
    assert kinds[3, 5] == kinds[4, 5] == "either"
    assert "smith_waterman" not in found["methods"]
    assert set(found["methods"]) == {name for name, m in dropdtw.METHODS.items() if m.takes_orders}


def test_a_page_is_told_the_walk_that_the_library_finds(client, pair):
    inf = np.inf
    how = {"order": parse_steps(TEXT).order, "drop_x": 0.5, "drop_z": [inf, inf, inf, inf, inf, 0]}
    a = dropdtw.align(*pair, **how)
    found = client.ask("align", FIRST, seq=1)
    assert found["cost"] == pytest.approx(a.cost, rel=1e-12)
    assert found["visits"].reshape(-1, 3)[:, 0].tolist() == a.done.tolist() == [0, 2, 1, 4]
    assert found["walk"].tolist() == [0, 1, 2, 4, 5]
    p = dropdtw.posterior(a.solved().C, gamma=0.1, **how)
    shown = client.ask("posterior", FIRST, seq=2)
    np.testing.assert_allclose(shown["drop_z"], p.drop_z, atol=1e-6)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"drop_z": {"kind": "constant", "value": 0.4}},
        {"drop_z": {"kind": "percentile", "value": 20}, "contiguous": True},
        {"method": "dtw", "drop_x": {"kind": "none"}},
    ],
)
def test_the_code_gives_what_is_shown(client, more):
    found, scope = client.ask("align", FIRST | more, seq=1), {}
    exec(found["code"], scope)
    assert scope["a"].cost == pytest.approx(found["cost"], rel=1e-12)
    assert scope["a"].done.tolist() == found["visits"].reshape(-1, 3)[:, 0].tolist()
    assert scope["p"].match.shape == scope["a"].shape


def test_steps_are_explained(client):
    said = [client.ask("explain", FIRST, i=i, j=9)["z"] for i in range(6)]
    assert said[3].startswith("not on the walk; matching it to")
    assert said[5].startswith("dropped for 0; matching it to x_33 instead would change the total")
    assert all("matched to x_" in said[i] for i in (0, 1, 2, 4))


def test_opening_costs_are_suggested_for_x_alone(client):
    drops = {"drop_z": {"kind": "constant", "value": 0.4}}
    assert set(client.ask("suggest-opening", FIRST | drops)) == {"open_x"}


def test_lists_have_no_order_to_draw(pair):
    data = load.from_sequences(*pair)
    assert Session(data).info()["order"] is None
    assert drawn(Steps(("a",))) is None
    only = Session(with_order(data, parse_steps("a\nb\nc\nd\noptional:\n  e\n  f", 6), "steps.txt"))
    assert only.info()["order"] is None
    assert "order" not in only.code(only.first)
    assert "visits" not in only.align(only.first)[1]
    assert only.alignment(only.first).paid_z[4:].any()


def test_an_order_too_large_to_read_is_not_drawn():
    assert len(drawn(Steps((), orders.any_order(*range(MOST_BOXES))))["nodes"]) == MOST_BOXES
    large = drawn(Steps((), orders.any_order(*range(MOST_BOXES + 1))))
    assert (large["nodes"], large["edges"]) == ([], [])


def test_names_are_safe_to_show():
    assert drawn(Steps(("a\x1b[31m\nb", "c"), orders.any_order(0, 1)))["names"][0] == "a�[31m b"


def test_the_command_takes_an_order(session, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    seen = []
    monkeypatch.setattr("dropdtw.explore.server.serve", lambda session, *_, **__: seen.append(session))
    run("explore", "Z.npy", "X.npy", "--order", "order.txt", "--open-x", "suggest", "--no-browser")
    assert seen[0].data.steps == parse_steps(TEXT)
    assert str(Path(tmp_path, "order.txt")) in seen[0].code(seen[0].first)
    for wrong, why in (("-", "explore cannot read standard input"), ("Z.npy", "is not a text file; give one")):
        code, _, err = call(monkeypatch, capsys, "explore", "Z.npy", "X.npy", "--order", wrong)
        assert (code, why in err, err.count("\n")) == (2, True, 1)
    code, _, err = call(monkeypatch, capsys, "explore", "Z.npy", "X.npy", "--order", "order.txt", "--open-z", "1")
    assert (code, "--open-z" in err) == (2, True)
