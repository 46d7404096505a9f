"""What the explorer's server refuses: strangers, and requests that make no sense."""

import json
import socket

import pytest

pytest.importorskip("starlette", reason="starlette is not installed: pip install 'dropdtw[explore]'")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'dropdtw[explore]'")

import explore_cases
from dropdtw.explore import server
from explore_cases import FIRST, HOST, TOKEN, Client, start

pair, session, client = map(pytest.fixture, (explore_cases.pair, explore_cases.session, explore_cases.client))


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


@pytest.mark.parametrize("path", ["align", "posterior", "explain", "suggest", "export", "chapters", "aligner", "open"])
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
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[" * 60_000, "not valid JSON"),
        (b'{"seq": NaN, "settings": {}}', "not valid JSON"),
        (b"[]", "exactly these keys: seq, settings"),
        (b'{"seq": 1}', "exactly these keys: seq, settings"),
        (b'{"seq": 1, "settings": {}, "more": 1}', "exactly these keys: seq, settings"),
        (b'{"seq": -1, "settings": {}}', "seq is -1"),
        (b'{"seq": true, "settings": {}}', "seq is True"),
        (b'{"seq": 1, "settings": []}', "settings are a list"),
        (b'{"seq": 1, "settings": {"a": 1}}', "settings have 'a'"),
        (b'{"seq": 1, "settings": {"contiguous": 1}}', "contiguous is a number"),
        (b'{"seq": 1, "settings": {"method": 1}}', "method is a number"),
        (b'{"seq": 1, "settings": {"method": null}}', "method is null"),
        (b'{"seq": 1, "settings": {"gamma": "a"}}', "gamma is a string"),
        (b'{"seq": 1, "settings": {"gamma": true}}', "gamma is a boolean"),
        (b'{"seq": 1, "settings": {"gamma": 1e999}}', "gamma is too large"),
        (b'{"seq": 1, "settings": {"gamma": 1' + b"0" * 400 + b"}}", "gamma is too large"),
        (b'{"seq": 1, "settings": {"drop_x": 0.3}}', "drop_x is 0.3"),
        (b'{"seq": 1, "settings": {"drop_x": {"kind": []}}}', "drop_x is"),
        (b'{"seq": 1, "settings": {"drop_x": {"kind": "constant", "value": {}}}}', "drop_x is an object"),
        (b'{"seq": 1, "settings": {"window": {"kind": "columns", "value": 1.5}}}', "an integer"),
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
    assert refused(client.post("explain", {"settings": FIRST, "i": i, "j": j}), 400, "an integer")


@pytest.mark.parametrize("kind", [None, 5, ["html"]])
def test_formats_of_chapters_have_names(client, kind):
    assert refused(client.post("chapters", {"settings": FIRST, "kind": kind}), 400, "kind is not a string")


def test_what_is_no_talk_has_no_chapters(client):
    assert (
        "start the explorer with a list of steps and subtitles" in client.ask("chapters", FIRST, kind="json")["error"]
    )


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
