"""Opening costs and the warp penalty in the explorer: over the wire, from files and from the command."""

import json

import numpy as np
import pytest

import dropdtw
from dropdtw.explore import load, settings
from dropdtw.explore.session import Session
from dropdtw.files import formats
from explore_cases import FIRST, Client, pair

pair = pytest.fixture(pair)

CHARGED = {"drop_z": {"kind": "constant", "value": 0.2}, "open_x": 0.4, "open_z": 0.1, "warp": 0.05}


# --- over the wire ----------------------------------------------------------------------------------------------


def test_the_library_pays_what_the_page_asks_for(pair):
    client = Client(Session(load.from_sequences(*pair[:2])))
    call = {"drop_x": "percentile:30", "drop_z": 0.2, "open_x": 0.4, "open_z": 0.1, "warp": 0.05}
    a = dropdtw.align(*pair[:2], **call)
    found = client.ask("align", FIRST | CHARGED, seq=1)
    assert found["cost"] == pytest.approx(a.cost, rel=1e-12)
    np.testing.assert_array_equal(found["pairs"].reshape(-1, 2), a.pairs)
    p = dropdtw.posterior(dropdtw.costs.cosine(*pair[:2]), gamma=0.1, **call)
    np.testing.assert_allclose(client.ask("posterior", FIRST | CHARGED, seq=2)["drop_x"], p.drop_x, atol=1e-6)
    first = int(np.flatnonzero(a.dropped_x)[0])
    assert "and opens a run of drops for 0.4; " in client.ask("explain", FIRST | CHARGED, i=0, j=first)["x"]


def test_a_dropped_z_says_that_it_opens_a_run():
    C = np.array([[0.1, 0.9], [0.7, 0.6], [0.7, 0.8], [0.9, 0.1]])
    s = Session(load.from_costs(C))
    drops = {"drop_x": {"kind": "constant", "value": 0.4}, "drop_z": {"kind": "constant", "value": 0.1}}
    chosen = settings.parse(drops | {"many_to_one": False, "open_z": 0.2})
    assert s.alignment(chosen).dropped_z.tolist() == [False, True, True, False]
    assert s.explain(chosen, 1, 0)["z"].startswith("dropped for 0.1 and opens a run of drops for 0.2; ")
    assert s.explain(chosen, 2, 0)["z"].startswith("dropped for 0.1; ")


def test_opening_costs_are_suggested_for_the_sides_that_drop(pair):
    client = Client(Session(load.from_sequences(*pair[:2])))
    one = client.ask("suggest-opening", FIRST)
    both = client.ask("suggest-opening", FIRST | CHARGED)
    a = dropdtw.align(*pair[:2], drop_x="percentile:30", open_x="suggest")
    assert one == {"open_x": pytest.approx(a.problem.costs.charges.open_x, rel=1e-3)}
    assert both.keys() == {"open_x", "open_z"}
    assert client.ask("suggest-opening", FIRST | {"drop_x": {"kind": "none"}}) == {}
    assert "takes no opening costs" in client.ask("suggest-opening", FIRST | {"method": "drop_dtw_paper"})["error"]


def test_charges_that_make_no_sense_are_refused(pair):
    client = Client(Session(load.from_sequences(*pair[:2])))
    for value, text in (("a", "open_x is a string"), (None, "open_x is null"), (True, "open_x is a boolean")):
        answer = client.post("align", {"seq": 1, "settings": FIRST | {"open_x": value}})
        assert answer.status_code == 400
        assert text in answer.text
    said = client.ask("align", FIRST | {"open_x": -1}, seq=1)["error"]
    assert "open_x is -1.0; give a finite number" in said
    assert "no z may be dropped" in client.ask("align", FIRST | {"open_z": 1}, seq=1)["error"]


# --- from files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [".npz", ".json"])
@pytest.mark.parametrize(
    "call", [{"drop_x": 0.4, "open_x": 0.3, "warp": 0.05}, {"method": "dtw", "warp": 0.1}], ids=str
)
def test_charges_in_a_file_are_taken_up(tmp_path, pair, kind, call):
    a = dropdtw.align(*pair[:2], **call)
    content = formats.alignment_content(a, kind, costs=True)
    place = tmp_path / f"a{kind}"
    place.write_bytes(content.encode() if isinstance(content, str) else content)
    s = Session(load.read(str(place)))
    assert (s.first.open_x, s.first.open_z, s.first.warp) == (call.get("open_x", 0), 0, call["warp"])
    assert s.info()["note"] is None
    scope = {}
    exec(s.align(s.first)[0]["code"], scope)
    assert scope["a"].cost == pytest.approx(a.cost, rel=1e-12)
    other = s.opening(method="drop_dtw_paper")
    assert (other.open_x, other.warp) == (0, 0)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.ones(2), "x"], ids=str)
def test_charges_in_a_file_that_make_no_sense_are_refused(tmp_path, value):
    np.savez(tmp_path / "a.npz", C=np.eye(3), drop_x=np.ones(3), open_x=value)
    with pytest.raises(ValueError, match=r"open_x is .*; give a finite number ≥ 0"):
        load.read(str(tmp_path / "a.npz"))


def test_the_command_begins_with_charges(tmp_path, pair, monkeypatch):
    pytest.importorskip("typer", reason="typer is not installed")
    from cli_cases import run
    from dropdtw.explore import server

    monkeypatch.chdir(tmp_path)
    for name, values in zip(("Z.npy", "X.npy"), pair[:2], strict=True):
        np.save(name, values)
    served = []
    monkeypatch.setattr(server, "serve", lambda session, port, *, opened: served.append(session.first))
    run("explore", "Z.npy", "X.npy", "--drop-x", "0.4", "--open-x", "0.3", "--warp", "0.1")
    run("explore", "Z.npy", "X.npy", "--drop-x", "0.8", "--open-x", "suggest")
    assert (served[0].open_x, served[0].open_z, served[0].warp) == (0.3, 0, 0.1)
    a = dropdtw.align(*pair[:2], 0.8, open_x="suggest")
    assert served[1].open_x == pytest.approx(a.problem.costs.charges.open_x, rel=1e-3) != 0
    with pytest.raises(ValueError, match="no z may be dropped"):
        run("explore", "Z.npy", "X.npy", "--open-z", "1")
    with pytest.raises(ValueError, match="takes no opening costs"):
        run("explore", "Z.npy", "X.npy", "--method", "dtw", "--open-x", "suggest")


def test_settings_with_charges_survive_the_wire():
    chosen = settings.PageSettings(drop_x=settings.Choice("constant", 1.0), open_x=2.5, warp=0.5)
    assert settings.parse(json.loads(json.dumps(chosen.to_json()))) == chosen
    assert chosen.options({}).changed == {"drop_x": 1.0, "open_x": 2.5, "warp": 0.5}
    assert settings.PageSettings().options({}).changed == {}
    assert settings.PageSettings.of(chosen.options({})) == chosen
