"""Connections that do not get to a request do not keep others from being served."""

import contextlib
import http.client
import json
import socket
import threading
import time
import urllib.parse

import numpy as np
import pytest

pytest.importorskip("starlette", reason="starlette is not installed: pip install 'dropdtw[explore]'")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'dropdtw[explore]'")

import explore_cases
from explore_cases import FIRST, start

pair, session = map(pytest.fixture, (explore_cases.pair, explore_cases.session))
SOON = 0.3
LATE = 20.0


@pytest.fixture
def served(session):
    """The real server on this machine: where it is, and what to ask for."""
    address, stop = start(session)
    place = urllib.parse.urlsplit(address)
    yield (place.hostname, place.port), place.path
    stop()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("dropdtw.explore.connections.PATIENCE", SOON)


def half(path):
    return f"GET {path}info HTTP/1.1\r\nHost: half-".encode()


def whole(place, path):
    return f"GET {path}info HTTP/1.1\r\nHost: {place[0]}:{place[1]}\r\n\r\n".encode()


def closed(held):
    """Whether the other side closes the connection, sooner or later."""
    held.settimeout(LATE)
    try:
        return held.recv(1) == b""
    except ConnectionResetError:
        return True


def answer(held):
    reply = http.client.HTTPResponse(held)
    reply.begin()
    reply.read()
    return reply.status


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("sent", ["nothing", "half"])
def test_headers_that_do_not_come_end_the_connection(served, sent):
    place, path = served
    with socket.create_connection(place, timeout=LATE) as held:
        if sent == "half":
            held.sendall(half(path))
        assert closed(held)


@pytest.mark.usefixtures("impatient")
def test_a_byte_now_and_then_does_not_help(served):
    place, path = served
    began = time.monotonic()
    with socket.create_connection(place, timeout=LATE) as held, contextlib.suppress(OSError):
        for byte in half(path) + b"x" * 1000:
            held.sendall(bytes([byte]))
            time.sleep(SOON / 10)
    assert time.monotonic() - began < 50 * SOON  # a thousand bytes would have taken twice as long


@pytest.mark.usefixtures("impatient")
def test_a_connection_that_is_kept_waits_for_its_next_request(served):
    """Silence between requests is no fault; half a request is, also the second one."""
    place, path = served
    with socket.create_connection(place, timeout=LATE) as held:
        for pause in (0, 3 * SOON):
            time.sleep(pause)
            held.sendall(whole(place, path))
            assert answer(held) == 200
        held.sendall(half(path))
        assert closed(held)


@pytest.mark.usefixtures("impatient")
def test_a_body_has_its_own_time(served):
    place, path = served
    with socket.create_connection(place, timeout=LATE) as held:
        head = f"POST {path}export HTTP/1.1\r\nHost: {place[0]}:{place[1]}\r\nContent-Type: application/json\r\n"
        held.sendall(f"{head}Content-Length: 2\r\n\r\n".encode())
        time.sleep(3 * SOON)
        held.sendall(b"{}")
        assert answer(held) == 400  # it was read, and is no question


def test_half_sent_headers_do_not_block_the_page(served):
    """However many there are, and before their time is over."""
    place, path = served
    with contextlib.ExitStack() as stack:
        halves = [stack.enter_context(socket.create_connection(place, timeout=LATE)) for _ in range(150)]
        for held in halves:
            with contextlib.suppress(OSError):  # the oldest have given way already
                held.sendall(half(path))
        for _ in range(3):
            with socket.create_connection(place, timeout=LATE) as held:
                held.sendall(whole(place, path))
                assert answer(held) == 200


def test_connections_that_stay_open_do_not_block_the_page(served):
    """A refusal needs no token, and its connection could be kept for a minute."""
    place, path = served
    refused = f"GET /wrong/info HTTP/1.1\r\nHost: {place[0]}:{place[1]}\r\n\r\n".encode()
    with contextlib.ExitStack() as stack:
        for _ in range(150):
            held = stack.enter_context(socket.create_connection(place, timeout=LATE))
            held.sendall(refused)
            assert answer(held) == 403
        with socket.create_connection(place, timeout=LATE) as held:
            held.sendall(whole(place, path))
            assert answer(held) == 200


def test_a_request_in_work_is_finished(session, served, monkeypatch):
    place, path = served
    doors = threading.Event(), threading.Event()
    real = session.info

    def slowly():
        doors[0].set()
        assert doors[1].wait(LATE)
        return real()

    monkeypatch.setattr(session, "info", slowly)
    with contextlib.ExitStack() as stack:
        asking = stack.enter_context(socket.create_connection(place, timeout=LATE))
        asking.sendall(whole(place, path))
        assert doors[0].wait(LATE)
        for _ in range(90):
            stack.enter_context(socket.create_connection(place, timeout=LATE))
        doors[1].set()
        assert answer(asking) == 200


def test_those_that_are_served_do_not_give_way(served):
    place, path = served
    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(socket.create_connection(place, timeout=LATE))
        kept.sendall(whole(place, path))
        assert answer(kept) == 200
        for _ in range(60):
            stack.enter_context(socket.create_connection(place, timeout=LATE)).sendall(half(path))
        kept.sendall(whole(place, path))
        assert answer(kept) == 200


def posted(place, path, what, body, *, size):
    head = f"POST {path}{what} HTTP/1.1\r\nHost: {place[0]}:{place[1]}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {size}\r\n\r\n".encode() + body


def unread(place, path):
    return f"GET {path}matrix?match=cosine HTTP/1.1\r\nHost: {place[0]}:{place[1]}\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("sent", "most"),
    [
        (lambda place, path: b"", 1.0),
        (lambda place, path: half(path), 1.0),
        (lambda place, path: posted(place, path, "align", b'{"seq"', size=100), 1.0),
        (unread, 2.0),
    ],
    ids=["nothing", "half a header", "half a body", "unread answer"],
)
def test_the_end_waits_for_nobody_and_says_nothing(session, capfd, monkeypatch, sent, most):
    monkeypatch.setattr(session, "matrix", lambda match: ({}, {"levels": np.zeros(1 << 24, np.uint8)}))
    address, stop = start(session)
    place = urllib.parse.urlsplit(address)
    with socket.create_connection((place.hostname, place.port), timeout=LATE) as held:
        held.sendall(sent((place.hostname, place.port), place.path))
        time.sleep(0.2)
        began = time.monotonic()
        stop()
        assert time.monotonic() - began < most
        assert closed(held) or sent is unread
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("parting", "ending", "work"),
    [(LATE, 2, 0.1), (0.1, 2, 0.7), (0.1, 0.2, 0.7)],
    ids=["answered", "late", "cancelled"],
)
def test_at_the_end_what_is_in_work_has_its_time_and_what_waits_is_not_begun(
    session, capfd, monkeypatch, parting, ending, work
):
    """Two posteriors are in work at a time; those behind them go without an answer if these take too long."""
    begun, done = [], threading.Event()

    def slowly(chosen):
        begun.append(chosen)
        assert done.wait(LATE)
        return {}, {}

    monkeypatch.setattr("dropdtw.explore.connections.PARTING", parting)
    monkeypatch.setattr("dropdtw.explore.server.ENDING", ending)
    monkeypatch.setattr(session, "probabilities", slowly)
    address, stop = start(session)
    place = urllib.parse.urlsplit(address)
    body = json.dumps({"seq": 1, "settings": FIRST}).encode()
    asked = posted((place.hostname, place.port), place.path, "posterior", body, size=len(body))
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(socket.create_connection((place.hostname, place.port))) for _ in range(5)]
        for held in waiting:
            held.sendall(asked)
        time.sleep(0.2)
        threading.Timer(work, done.set).start()
        stop()
        if work < parting:
            assert [answer(held) for held in waiting] == [200] * 5
        else:
            assert all(closed(held) for held in waiting)
    assert len(begun) == (5 if work < parting else 2)
    said = capfd.readouterr().err.splitlines()
    assert ["Cancel" in line for line in said] == [True] * (ending < work)  # one line at most
