"""The explorer opens, edits and saves an `Aligner`."""

import json

import numpy as np
import pytest

pytest.importorskip("starlette", reason="starlette is not installed: pip install 'dropdtw[explore]'")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'dropdtw[explore]'")

import dropdtw
import explore_cases
from dropdtw import Aligner, orders
from dropdtw.explore import load, settings
from dropdtw.explore.order import with_order
from dropdtw.explore.session import Session
from dropdtw.orders import parse_steps
from explore_cases import Client

pair, session, client = map(pytest.fixture, (explore_cases.pair, explore_cases.session, explore_cases.client))

SHOWN = [
    Aligner("percentile:30", match="cosine", gamma=0.1),
    Aligner(0.4, 0.2, match="softmax:0.5", open_x=0.3, open_z=0.1, warp=0.05, one_to_many=False),
    Aligner(0.4, match="euclidean", method="steps", window=9),
    Aligner(0.4, match="euclidean", many_to_one=False, contiguous=True, window=0.5),
    Aligner(match="cosine", method="lcss", threshold="percentile:12.34"),
    Aligner(match="cosine", method="dtw", warp=0.1),
]


@pytest.mark.parametrize("aligner", SHOWN, ids=repr)
def test_what_is_opened_is_saved_and_aligned(client, pair, aligner):
    shown = client.ask("open", None, aligner=aligner.to_dict())
    assert Aligner.from_dict(client.ask("aligner", shown)) == aligner
    found, scope = client.ask("align", shown, seq=1), {"Z": pair[0], "X": pair[1], "dropdtw": dropdtw}
    assert found["cost"] == pytest.approx(aligner.align(*pair[:2]).cost, rel=1e-12)
    exec(found["code"], scope)
    assert scope["aligner"] == aligner
    assert client.get(f"matrix?match={aligner.match}").status_code == 200


def test_rules_that_no_slider_shows_become_numbers(client, pair):
    found = client.ask("open", None, aligner=Aligner("suggest", [0.5] * 4, open_x="suggest").to_dict())
    a = Aligner("suggest", 0.5, open_x="suggest").solve(Aligner(match="cosine").align(*pair[:2]).problem.C)
    given = a.problem.given
    assert found["match"] == "cosine"  # what "auto" means for 16 features
    assert found["drop_x"] == {"kind": "constant", "value": pytest.approx(given.drop_x[0], rel=1e-3)}
    assert found["drop_z"] == {"kind": "constant", "value": 0.5}
    assert found["open_x"] == pytest.approx(given.charges.open_x, rel=1e-3)


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        (
            {"drop_x": 0.3, "mask": [[True] * 57] * 4},
            "mask is an array of shape (4, 57), which the explorer cannot show",
        ),
        (
            {"drop_x": list(range(57))},
            "drop_x is an array of shape (57,), which the explorer has no slider for; give one",
        ),
        ({"drop_x": 0.3, "missing": "drop"}, "missing is 'drop', which the explorer cannot show; leave it out"),
        ({"method": "erp"}, "method is 'erp'; choose one of drop_dtw"),
        ({"method": {"free_ends": [[2, 2]]}}, "method is "),
        ({"match": {"softmax": 1.0, "ids": [0, 0, 1, 2]}}, "which the explorer cannot show; give one by name"),
        ({"drop_x": 0.3, "order": {"any": [0, 1, 2, 3]}}, "order is "),
        ({"drop_x": True}, "drop_x is True"),
        ({"windw": 3}, "did you mean window?"),
        ({"match": {}}, "give it as Aligner.to_dict writes it"),
        ({"method": {}}, "give it as Aligner.to_dict writes it"),
        ({"method": {"erp": 3}}, "give it as Aligner.to_dict writes it"),
    ],
    ids=str,
)
def test_an_aligner_that_the_page_cannot_show_is_refused(client, stored, why):
    answer = client.ask("open", None, aligner=stored)
    assert list(answer) == ["error"]
    assert why in answer["error"]


def test_only_an_object_is_opened(client):
    answer = client.post("open", {"aligner": [1]})
    assert (answer.status_code, "aligner is not an object" in answer.text) == (400, True)


def test_an_order_is_saved_and_opened_with_its_optional_steps(pair):
    data = load.from_sequences(*pair[:2])
    client = Client(Session(with_order(data, parse_steps("any order:\n  a\n  b\n  c\noptional:\n  d", 4), "steps.txt")))
    chosen = explore_cases.FIRST | {"drop_z": {"kind": "constant", "value": 0.5}}
    saved = client.ask("aligner", chosen)
    assert saved["drop_z"] == [0.5, 0.5, 0.5, 0.0]
    assert settings.parse(client.ask("open", None, aligner=saved)) == settings.parse(chosen)
    other = client.ask("open", None, aligner=Aligner(0.3, order=orders.any_order(0, [1, 2], 3)).to_dict())
    assert "start the explorer with order" in other["error"]
    only = client.ask("aligner", explore_cases.FIRST)
    assert client.ask("open", None, aligner=only)["drop_z"] == {"kind": "none", "value": 0.0}


def test_drop_costs_per_element_of_the_file_are_kept(tmp_path, pair):
    np.savez(tmp_path / "a.npz", C=np.eye(3), drop_x=[0.1, 0.2, 0.3])
    client = Client(Session(load.read(str(tmp_path / "a.npz"))))
    chosen = client.get("info").json()["settings"]
    assert chosen["drop_x"]["kind"] == "given"
    assert client.ask("open", None, aligner=client.ask("aligner", chosen)) == chosen


def test_the_command_begins_with_stored_settings(tmp_path, pair, monkeypatch):
    pytest.importorskip("typer", reason="typer is not installed")
    from cli_cases import run
    from dropdtw.explore import server

    monkeypatch.chdir(tmp_path)
    for name, values in zip(("Z.npy", "X.npy"), pair[:2], strict=True):
        np.save(name, values)
    (tmp_path / "a.json").write_text(json.dumps(SHOWN[1].to_dict()))
    served = []
    monkeypatch.setattr(server, "serve", lambda session, port, *, opened: served.append(session.aligner(session.first)))
    run("explore", "Z.npy", "X.npy", "--settings", "a.json")
    run("explore", "Z.npy", "X.npy", "--settings", "a.json", "--drop-x", "0.7", "--match", "cosine", "--warp", "0.2")
    assert served == [SHOWN[1], SHOWN[1].replace(drop_x=0.7, match="cosine", warp=0.2)]
