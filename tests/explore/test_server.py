"""The explorer's server: right answers."""

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dropdtw

pytest.importorskip("starlette", reason="starlette is not installed: pip install 'dropdtw[explore]'")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'dropdtw[explore]'")

import explore_cases
from dropdtw.explore import load, settings, view
from dropdtw.explore.session import Session
from explore_cases import FIRST, Client, start, unpack

pair, session, client = map(pytest.fixture, (explore_cases.pair, explore_cases.session, explore_cases.client))


@pytest.mark.parametrize(
    ("more", "call"),
    [
        ({}, {"drop_x": "percentile:30"}),
        ({"drop_x": {"kind": "constant", "value": 0.4}}, {"drop_x": 0.4}),
        ({"drop_x": {"kind": "none"}}, {}),
        ({"drop_z": {"kind": "constant", "value": 0.5}, "contiguous": True}, {"drop_z": 0.5, "contiguous": True}),
        ({"one_to_many": False, "drop_z": {"kind": "percentile", "value": 2.5}},
         {"one_to_many": False, "drop_z": "percentile:2.5"}),
        ({"many_to_one": False, "window": {"kind": "share", "value": 0.5}}, {"many_to_one": False, "window": 0.5}),
        ({"window": {"kind": "columns", "value": 30}}, {"window": 30}),
        ({"method": "otam", "drop_x": {"kind": "none"}}, {"method": "otam"}),
        ({"method": "lcss", "drop_x": {"kind": "none"}, "threshold": {"kind": "percentile", "value": 20}},
         {"method": "lcss", "threshold": "percentile:20"}),
        ({"match": "sqeuclidean"}, {"match": "sqeuclidean", "drop_x": "percentile:30"}),
    ],
)  # fmt: skip
def test_the_page_is_told_what_the_library_finds(client, pair, more, call):
    Z, X, truth = pair
    if "drop_x" not in more:
        call = {"drop_x": "percentile:30"} | call
    a = dropdtw.align(Z, X, **call)
    found = client.ask("align", FIRST | more, seq=3)
    assert found["seq"] == 3
    assert found["cost"] == pytest.approx(a.cost, rel=1e-12)
    np.testing.assert_array_equal(found["pairs"].reshape(-1, 2), a.pairs)
    np.testing.assert_array_equal(found["segments"].reshape(-1, 3), np.array(a.segments()).reshape(-1, 3))
    np.testing.assert_array_equal(found["dropped_x"], a.dropped_x)
    np.testing.assert_array_equal(found["dropped_z"], a.dropped_z)
    assert found["agreement"] == (a.labels == truth).mean()

    measure = call.pop("match", "cosine")
    p = dropdtw.posterior(dropdtw.costs.MATCH_COSTS[measure](Z, X), gamma=0.1, **call)
    shown = client.ask("posterior", FIRST | more, seq=4)
    np.testing.assert_allclose(shown["match"].reshape(p.match.shape), p.match * 255, atol=0.51)
    np.testing.assert_allclose(shown["drop_x"], p.drop_x, atol=1e-6)
    np.testing.assert_allclose(shown["drop_z"], p.drop_z, atol=1e-6)


def test_the_costs_are_sent_once_as_bytes(client, pair):
    C = dropdtw.costs.cosine(*pair[:2])
    found = unpack(client.get("matrix?match=cosine").content)
    assert (found["rows"], found["columns"]) == C.shape
    levels = found["levels"].reshape(C.shape)
    inside = (found["low"] < C) & (found["high"] > C)
    assert inside.mean() > 0.97
    restored = found["low"] + levels / 254 * (found["high"] - found["low"])
    np.testing.assert_allclose(restored[inside], C[inside], atol=(found["high"] - found["low"]) / 500)
    assert sum(found["histogram"]["all"]) == C.size
    assert sum(found["histogram"]["best"]) == C.shape[1]


def test_what_there_is(client, session, pair):
    info = client.get("info").json()
    assert info["shape"] == [4, 57]
    assert info["fps"] == 10
    assert info["truth"] == pair[2].tolist()
    assert set(info["methods"]) == {name for name, m in dropdtw.METHODS.items() if not m.needs_sequences}
    assert settings.parse(info["settings"]) == session.first
    constant = dropdtw.suggest_drop(*pair[:2]).constant
    assert info["settings"]["drop_x"] == {"kind": "constant", "value": float(f"{constant:.4g}")}
    assert [len(curve) for curve in info["curves"]["x"]] == [57] * 3


def test_forbidden_matches_are_marked_and_infinite_costs_survive():
    C = np.array([[0.0, 1.0, np.inf], [1.0, 2.0, 0.0]])
    client = Client(Session(load.from_costs(C)))
    found = unpack(client.get("matrix").content)
    assert found["levels"].tolist()[2] == view.FORBIDDEN
    assert (found["levels"] == view.FORBIDDEN).sum() == 1
    chosen = {"drop_x": {"kind": "constant", "value": 0.5}}
    assert "forbidden" in client.ask("explain", chosen, i=0, j=2)["cell"]
    client = Client(Session(load.from_costs(np.full((2, 3), np.inf)), settings.PageSettings()))
    assert client.get("info").json()["curves"]["x"] == [[None] * 3]
    assert set(unpack(client.get("matrix").content)["levels"]) == {view.FORBIDDEN}


def test_a_cell_is_explained(client, pair):
    Z, X, truth = pair
    C = dropdtw.costs.cosine(Z, X)
    a = dropdtw.solve(C, drop_x="percentile:30")
    p = dropdtw.posterior(C, drop_x="percentile:30", gamma=0.1)
    for i, j in ((0, 0), (0, 8), (2, 8)):
        found = client.ask("explain", FIRST, i=i, j=j)
        assert f"match cost {C[i, j]:.4g}," in found["cell"]
        assert ("not matched" in found["cell"]) == (not a.M[i, j])
        assert f"x_{j} is {found['x']}".startswith(str(a.explain(j)))
        assert ("true match: none" in found["x"]) == (truth[j] == -1)
        if 0.001 < p.match[i, j] < 0.999:
            assert f"posterior {p.match[i, j]:.3f}" in found["cell"]
        assert f"z_{i} is {found['z']}".startswith(str(a.explain(z=i)))


def test_why_a_z_was_dropped():
    C = np.array([[0.1, 0.9, 0.8], [0.7, 0.6, 0.9], [0.9, 0.9, 0.1]])
    s = Session(load.from_costs(C))
    drops = {"drop_x": {"kind": "constant", "value": 0.4}, "drop_z": {"kind": "constant", "value": 0.1}}
    chosen = settings.parse(drops)
    a = s.alignment(chosen)
    assert a.dropped_z.tolist() == [False, True, False]
    without = dropdtw.cost(C, 0.4, [0.1, np.inf, 0.1])
    assert (
        f"dropped for 0.1; matching it to x_1 instead would change the total from {a.cost:.4g} to {without:.4g}"
        in s.explain(chosen, 1, 1)["z"]
    )
    local = settings.parse({"method": "smith_waterman"} | drops)
    assert s.explain(local, 1, 1)["z"].startswith("dropped for 0; ")
    never = Session(load.from_costs(np.where(np.arange(3)[:, None] == 1, np.inf, C)))
    assert "there is no alignment that treats it differently" in never.explain(chosen, 1, 1)["z"]


def test_outside_the_window_is_said(session):
    chosen = settings.parse(FIRST | {"window": {"kind": "columns", "value": 20}})
    assert "outside the window" in session.explain(chosen, 0, 50)["cell"]
    assert "outside the window" not in session.explain(chosen, 0, 5)["cell"]


def test_a_drop_cost_is_suggested(client, pair):
    expected = dropdtw.suggest_drop(*pair[:2], contiguous=True)
    found = client.ask("suggest", FIRST | {"contiguous": True})
    assert found["constant"] == pytest.approx(expected.constant, rel=1e-3)
    assert (found["percentile"], found["confidence"], found["why"]) == (
        expected.percentile,
        expected.confidence,
        expected.why,
    )


def test_the_alignment_is_exported(client, pair):
    found = client.ask("export", FIRST)
    a = dropdtw.align(*pair[:2], drop_x="percentile:30")
    b = dropdtw.Alignment.from_dict(found)
    np.testing.assert_array_equal(a.pairs, b.pairs)
    assert b.cost == pytest.approx(a.cost)
    assert found["segments"][0]["start_time"] == found["segments"][0]["start"] / 10
    aligner = dropdtw.Aligner.from_dict(found["aligner"])
    assert aligner == dropdtw.Aligner("percentile:30", match="cosine", gamma=0.1)


def test_settings_that_fit_nothing_are_answered_in_the_librarys_words(client):
    chosen = FIRST | {"drop_x": {"kind": "none"}, "one_to_many": False}
    found = client.ask("align", chosen, seq=1)
    assert "the x cannot each have a z of their own" in found["error"]
    assert found["seq"] == 1
    for path, more in (("posterior", {"seq": 1}), ("explain", {"i": 0, "j": 0}), ("export", {})):
        assert client.ask(path, chosen, **more)["error"] == found["error"]
    narrow = FIRST | {"drop_x": {"kind": "none"}, "window": {"kind": "columns", "value": 2}}
    assert "the smallest window that allows one is" in client.ask("align", narrow, seq=1)["error"]
    assert "takes no drop costs" in client.ask("align", FIRST | {"method": "dtw"}, seq=1)["error"]
    assert "choose one of" in client.ask("align", FIRST | {"method": "nonsense"}, seq=1)["error"]
    assert "0 to 100" in client.ask("align", FIRST | {"drop_x": {"kind": "percentile", "value": 101}}, seq=1)["error"]
    assert "contain no drop costs" in client.ask("align", FIRST | {"drop_x": {"kind": "given"}}, seq=1)["error"]
    assert "match is 'manhattan'" in client.ask("align", FIRST | {"match": "manhattan"}, seq=1)["error"]
    assert "gamma" in client.ask("posterior", FIRST | {"gamma": -1}, seq=1)["error"]
    assert "gamma is null" in client.ask("posterior", FIRST | {"gamma": None}, seq=1)["error"]
    costs_only = Client(Session(load.from_costs(np.eye(2)), settings.PageSettings()))
    assert "only match costs were loaded" in costs_only.ask("align", {"match": "cosine"}, seq=1)["error"]
    nothing = Client(Session(load.from_costs(np.full((2, 2), np.inf)), settings.PageSettings()))
    assert "every match is forbidden" in nothing.ask("suggest", {})["error"]


def test_questions_of_a_page_that_has_moved_on_are_not_computed(client, session, monkeypatch):
    monkeypatch.setattr(session, "alignment", lambda chosen: pytest.fail("it was computed"))
    assert client.post("export", {"settings": FIRST}, gone=True).status_code == 204


def test_many_at_once_do_not_mix(session):
    """Different settings asked for at the same time each get their own answer."""
    percentiles = [5, 20, 40, 60, 80, 95] * 4
    alone = {p: dropdtw.solve(session.costs("cosine"), f"percentile:{p}") for p in percentiles}
    address, stop = start(session)

    def ask(p):
        chosen = FIRST | {"drop_x": {"kind": "percentile", "value": p}}
        body = json.dumps({"seq": p, "settings": chosen}).encode()
        question = urllib.request.Request(f"{address}align", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(question, timeout=20) as answer:
            return unpack(answer.read())

    try:
        with ThreadPoolExecutor(8) as pool:
            for p, found in zip(percentiles, pool.map(ask, percentiles), strict=True):
                assert found["seq"] == p
                assert found["cost"] == alone[p].cost
                np.testing.assert_array_equal(found["pairs"].reshape(-1, 2), alone[p].pairs)
    finally:
        stop()
