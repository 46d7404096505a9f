"""The explorer's server: right answers, and nothing for anybody else."""

import asyncio
import contextlib
import json
import signal
import socket
import struct
import subprocess
import sys
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dropdtw

pytest.importorskip("starlette", reason="starlette is not installed: pip install 'dropdtw[explore]'")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'dropdtw[explore]'")

from dropdtw.explore import load, server, settings, view
from dropdtw.explore.session import Memo, Session

TOKEN, PORT = "a-token", 8765
HOST = f"127.0.0.1:{PORT}"


@pytest.fixture
def pair():
    """Four steps, and a recording of them with junk between."""
    rng = np.random.default_rng(7)
    Z = rng.normal(size=(4, 16))
    truth = np.repeat([-1, 0, -1, 1, -1, 2, -1, 3, -1], [6, 8, 5, 3, 9, 7, 4, 8, 7])
    noise = rng.normal(size=(len(truth), 16))
    return Z, np.where(truth[:, None] >= 0, Z[truth] + 0.5 * noise, noise), truth


@pytest.fixture
def session(pair):
    Z, X, truth = pair
    return Session(load.from_sequences(Z, X, truth=truth, fps=10.0))


class Answer:
    def __init__(self, sent):
        self.status_code = sent[0]["status"]
        self.headers = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
        self.content = b"".join(message.get("body", b"") for message in sent[1:])

    @property
    def text(self):
        return self.content.decode()

    def json(self):
        return json.loads(self.content)


class Client:
    """Asks the application in process, as the page would; headers can be changed to ask as somebody else."""

    def __init__(self, session):
        self.app = server.make_app(session, TOKEN, PORT)

    def send(self, method, path, *, token=TOKEN, content=b"", headers=None, gone=False):
        path, _, query = f"/{token}/{path}".partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(k.encode(), v.encode()) for k, v in ({"host": HOST} | (headers or {})).items()],
        }
        parts = [content[k : k + 10_000] for k in range(0, len(content), 10_000)] or [b""]
        sent = []

        async def receive():
            if not parts and gone:
                return {"type": "http.disconnect"}
            if not parts:
                await asyncio.Event().wait()  # the page stays
            body = parts.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(parts)}

        async def send(message):
            sent.append(message)

        with contextlib.suppress(ZeroDivisionError):  # a fault is answered first, and raised then
            asyncio.run(self.app(scope, receive, send))
        return Answer(sent)

    def get(self, path, **options):
        return self.send("GET", path, **options)

    def post(self, path, question, **options):
        headers = {"content-type": "application/json"} | options.pop("headers", {})
        return self.send("POST", path, content=json.dumps(question).encode(), headers=headers, **options)

    def ask(self, path, chosen, **more):
        """The answer to a question about settings."""
        answer = self.post(path, {"settings": chosen, **more})
        assert answer.status_code == 200, answer.text
        return unpack(answer.content) if answer.headers["content-type"] == server.BINARY else answer.json()


@pytest.fixture
def client(session):
    return Client(session)


def unpack(content):
    (length,) = struct.unpack("<I", content[:4])
    header = json.loads(content[4 : 4 + length])
    place = 4 + length
    for name, kind, size in header["arrays"]:
        assert place % 4 == 0
        header[name] = np.frombuffer(content, f"<{kind}", size, place)
        place += -(-header[name].nbytes // 4) * 4
    assert place == len(content)
    return header


FIRST = {"match": "cosine", "drop_x": {"kind": "percentile", "value": 30}, "gamma": 0.1}

# --- answers ----------------------------------------------------------------------------------------------------


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
    assert set(info["methods"]) == set(dropdtw.METHODS)
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
    client = Client(Session(load.from_costs(np.full((2, 3), np.inf)), settings.Settings()))
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
        assert ("in truth none" in found["x"]) == (truth[j] == -1)
        if 0.001 < p.match[i, j] < 0.999:
            assert f"posterior {p.match[i, j]:.3f}" in found["cell"]
    run = np.flatnonzero(a.M[0])
    assert f"matched to x_{run[0]} … x_{run[-1]}, {len(run)} of them" in client.ask("explain", FIRST, i=0, j=0)["z"]


def test_why_a_z_was_dropped():
    C = np.array([[0.1, 0.9, 0.8], [0.7, 0.6, 0.9], [0.9, 0.9, 0.1]])
    s = Session(load.from_costs(C))
    drops = {"drop_x": {"kind": "constant", "value": 0.4}, "drop_z": {"kind": "constant", "value": 0.1}}
    chosen = settings.parse(drops)
    a = s.alignment(chosen)
    assert a.dropped_z.tolist() == [False, True, False]
    without = dropdtw.cost(C, 0.4, [0.1, np.inf, 0.1])
    assert (
        f"dropped for 0.1; matched instead, the whole would cost {without:.4g} rather than {a.cost:.4g}"
        in s.explain(chosen, 1, 1)["z"]
    )
    local = settings.parse({"method": "smith_waterman"} | drops)
    assert "left out, which costs nothing" in s.explain(local, 1, 1)["z"]
    never = Session(load.from_costs(np.where(np.arange(3)[:, None] == 1, np.inf, C)))
    assert "no alignment matches it" in never.explain(chosen, 1, 1)["z"]


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
    assert found["segments"][0]["start_seconds"] == found["segments"][0]["start"] / 10
    assert settings.parse(found["settings"]) == settings.parse(FIRST)


def test_settings_that_fit_nothing_are_answered_in_the_librarys_words(client):
    chosen = FIRST | {"drop_x": {"kind": "none"}, "one_to_many": False}
    found = client.ask("align", chosen, seq=1)
    assert "elements of X cannot each have a z of their own" in found["error"]
    assert found["seq"] == 1
    for path, more in (("posterior", {"seq": 1}), ("explain", {"i": 0, "j": 0}), ("export", {})):
        assert client.ask(path, chosen, **more)["error"] == found["error"]
    narrow = FIRST | {"drop_x": {"kind": "none"}, "window": {"kind": "columns", "value": 2}}
    assert "the least window that leaves one is" in client.ask("align", narrow, seq=1)["error"]
    assert "takes no drop costs" in client.ask("align", FIRST | {"method": "dtw"}, seq=1)["error"]
    assert "choose one of" in client.ask("align", FIRST | {"method": "nonsense"}, seq=1)["error"]
    assert "0 to 100" in client.ask("align", FIRST | {"drop_x": {"kind": "percentile", "value": 101}}, seq=1)["error"]
    assert "none came with the data" in client.ask("align", FIRST | {"drop_x": {"kind": "given"}}, seq=1)["error"]
    assert "match is 'manhattan'" in client.ask("align", FIRST | {"match": "manhattan"}, seq=1)["error"]
    assert "gamma" in client.ask("posterior", FIRST | {"gamma": -1}, seq=1)["error"]
    assert "gamma is null" in client.ask("posterior", FIRST | {"gamma": None}, seq=1)["error"]
    costs_only = Client(Session(load.from_costs(np.eye(2)), settings.Settings()))
    assert "only match costs were loaded" in costs_only.ask("align", {"match": "cosine"}, seq=1)["error"]
    nothing = Client(Session(load.from_costs(np.full((2, 2), np.inf)), settings.Settings()))
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


def start(session):
    """The real server, in a thread: its address, and a function that ends it."""
    import uvicorn

    held = server.listen()
    port = held.getsockname()[1]
    config = uvicorn.Config(server.make_app(session, TOKEN, port), log_level="error", lifespan="off", ws="none")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [held]}, daemon=True)
    thread.start()

    def stop():
        running.should_exit = True
        thread.join(10)
        held.close()

    return f"http://127.0.0.1:{port}/{TOKEN}/", stop


# --- refusals ---------------------------------------------------------------------------------------------------


def refused(answer, status, text):
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    assert text in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    return True


@pytest.mark.parametrize("path", ["", "explore.js", "explore.css", "info", "matrix?match=cosine"])
def test_the_token_opens_and_nothing_else(client, path):
    assert client.get(path).status_code == 200
    for token in ("", "a-toke", "a-token2", "A-TOKEN", "ä", "%00", "x" * 500):
        assert refused(client.get(path, token=token), 403, "token")


@pytest.mark.parametrize("path", ["align", "posterior", "explain", "suggest", "export"])
def test_questions_need_the_token_too(client, path):
    assert refused(client.post(path, {}, token="wrong"), 403, "token")
    assert refused(client.get(path), 405, "Not Allowed")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:80", "[::1]:8765", ""])
def test_other_hosts_are_refused(client, host):
    assert refused(client.get("info", headers={"host": host}), 421, "host")


def test_both_names_of_this_machine_are_served(client):
    assert client.get("info", headers={"host": "localhost:8765", "origin": "http://localhost:8765"}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:8765", "http://localhost:8765"])
def test_other_origins_are_refused(client, origin):
    assert refused(client.post("suggest", {"settings": FIRST}, headers={"origin": origin}), 403, "origins")
    assert client.post("suggest", {"settings": FIRST}, headers={"origin": f"http://{HOST}"}).status_code == 200


def test_requests_from_other_sites_are_refused(client):
    assert refused(client.get("info", headers={"sec-fetch-site": "cross-site"}), 403, "sites")
    assert client.get("info", headers={"sec-fetch-site": "same-origin"}).status_code == 200


def test_every_answer_forbids_what_the_page_does_not_need(client):
    for answer in (client.get(""), client.get("info", token="wrong"), client.get("nothing"), client.post("align", {})):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_page_asks_nobody_else(client):
    for name in server.PAGE:
        text = client.get(name).text
        for line in text.splitlines():
            assert "http" not in line.replace("http://www.w3.org/2000/svg", ""), (name, line)
            assert " style=" not in line
            assert " onclick=" not in line


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 60_000, "no JSON"),
        (b'{"seq": NaN, "settings": {}}', "no JSON"),
        (b"[]", "exactly: seq, settings"),
        (b'{"seq": 1}', "exactly: seq, settings"),
        (b'{"seq": 1, "settings": {}, "more": 1}', "exactly: seq, settings"),
        (b'{"seq": -1, "settings": {}}', "seq is -1"),
        (b'{"seq": true, "settings": {}}', "seq is True"),
        (b'{"seq": 1, "settings": []}', "settings are a list"),
        (b'{"seq": 1, "settings": {"a": 1}}', "settings have 'a'"),
        (b'{"seq": 1, "settings": {"contiguous": 1}}', "contiguous is a number"),
        (b'{"seq": 1, "settings": {"method": 1}}', "method is a number"),
        (b'{"seq": 1, "settings": {"method": null}}', "method is null"),
        (b'{"seq": 1, "settings": {"gamma": "a"}}', "gamma is a text"),
        (b'{"seq": 1, "settings": {"gamma": true}}', "gamma is a truth value"),
        (b'{"seq": 1, "settings": {"gamma": 1e999}}', "gamma is too large"),
        (b'{"seq": 1, "settings": {"gamma": 1' + b"0" * 400 + b"}}", "gamma is too large"),
        (b'{"seq": 1, "settings": {"drop_x": 0.3}}', "drop_x is 0.3"),
        (b'{"seq": 1, "settings": {"drop_x": {"kind": []}}}', "drop_x is"),
        (b'{"seq": 1, "settings": {"drop_x": {"kind": "constant", "value": {}}}}', "drop_x is an object"),
        (b'{"seq": 1, "settings": {"window": {"kind": "columns", "value": 1.5}}}', "whole number"),
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else value,
)
def test_malformed_questions_are_refused_in_one_line(client, content, text):
    answer = client.send("POST", "align", content=content, headers={"content-type": "application/json"})
    assert refused(answer, 400, text)


def test_large_bodies_are_refused(client):
    headers = {"content-type": "application/json"}
    assert refused(client.send("POST", "align", content=b" " * (1 << 17), headers=headers), 413, "larger than 65536")


def test_other_kinds_of_bodies_are_refused(client):
    """A form of another site could send text/plain without asking first."""
    answer = client.send(
        "POST", "suggest", content=json.dumps({"settings": FIRST}).encode(), headers={"content-type": "text/plain"}
    )
    assert refused(answer, 400, "application/json")


@pytest.mark.parametrize(("i", "j"), [(4, 0), (0, 57), (-1, 0), (0.5, 0), ("0", 0), (None, 0)])
def test_cells_that_there_are_not_are_refused(client, i, j):
    assert refused(client.post("explain", {"settings": FIRST, "i": i, "j": j}), 400, "whole number")


def test_other_addresses_and_costs_are_refused(client):
    assert refused(client.get("../../etc/passwd"), 404, "Not Found")
    assert refused(client.get("settings.py"), 404, "Not Found")
    assert refused(client.get("matrix?match=manhattan"), 400, "choose one of")
    assert refused(client.get("matrix"), 400, "choose one of")


def test_a_fault_is_one_line(client, session, monkeypatch):
    monkeypatch.setattr(session, "info", lambda: 1 / 0)
    assert refused(Client(session).get("info"), 500, "ZeroDivisionError")


def test_slow_bodies_are_given_up(session, monkeypatch):
    monkeypatch.setattr(server, "PATIENCE", 0.2)
    address, stop = start(session)
    port = int(address.split(":")[2].split("/")[0])
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as held:
            head = f"POST /{TOKEN}/align HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            held.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
            assert b" 408 " in held.recv(1000)
    finally:
        stop()


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
    assert ("dropdtw.align(Z, X" in header["code"]) == ("C" not in names[0])


@pytest.mark.parametrize("kind", [".npz", ".json"])
@pytest.mark.parametrize("vector", [False, True])
def test_an_alignment_from_a_file_is_taken_up(folder, pair, kind, vector):
    from dropdtw import io

    drop_x = np.linspace(0.3, 0.6, 57) if vector else 0.5
    a = dropdtw.align(*pair[:2], drop_x=drop_x)
    (folder / f"a{kind}").write_bytes(
        c.encode() if isinstance(c := io.alignment_content(a, kind, costs=True, fps=25), str) else c
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
    assert info["fps"] == 25
    assert info["given"] == (["drop_x"] if vector else [])


def test_a_file_made_with_other_options_is_noted(folder, pair):
    from dropdtw import io

    a = dropdtw.align(*pair[:2], drop_x=0.9, drop_z=0.05, one_to_many=False)
    (folder / "a.npz").write_bytes(io.alignment_content(a, ".npz"))
    assert f"costs {a.cost:.6g}" in Session(load.read(str(folder / "a.npz"))).info()["note"]
    plain = dropdtw.align(*pair[:2])
    (folder / "b.npz").write_bytes(io.alignment_content(plain, ".npz"))
    assert Session(load.read(str(folder / "b.npz"))).info()["note"] is None
    counted = dropdtw.align(*pair[:2], method="lcss", threshold=-1.0)
    (folder / "c.npz").write_bytes(io.alignment_content(counted, ".npz"))
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
        "holds pairs, but neither C nor Z and X": lambda: load.read(saved(pairs=np.zeros(3))),
        "not standard input": lambda: load.read("-", X),
        "came without its costs": lambda: load.read(str(folder / "a.json")),
        "cannot be read as .json": lambda: load.read(str(folder / "broken.json")),
        "cannot be read as .npz": lambda: load.read(str(folder / "broken.npz")),
        "cannot be read as .npy": lambda: load.read(str(folder / "broken.npy")),
        "truth has shape": lambda: load.read(X, Z, truth=str(folder / "truth.npy")),
        "not whole": lambda: load.read(saved(C=np.eye(2), truth=[0.5, 1])),
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
    own = settings.Settings(match="softmax:0.5")
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
    levels, low, high = view.grey(np.full((2, 2), 3.0), 100)
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
        with pytest.raises(OSError, match=f"port {port} cannot be had"):
            server.listen(port)
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=20)
        assert rest == ("", "")
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
