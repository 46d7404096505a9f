"""Shared by the tests of the explorer: two sequences, a session, and a client that needs no network."""

import asyncio
import contextlib
import json
import struct
import threading

import numpy as np

from dropdtw.explore import load, server
from dropdtw.explore.session import Session

TOKEN, PORT = "a-token", 8765
HOST = f"127.0.0.1:{PORT}"


def pair():
    """Four steps, and a recording of them with junk in between."""
    rng = np.random.default_rng(7)
    Z = rng.normal(size=(4, 16))
    truth = np.repeat([-1, 0, -1, 1, -1, 2, -1, 3, -1], [6, 8, 5, 3, 9, 7, 4, 8, 7])
    noise = rng.normal(size=(len(truth), 16))
    return Z, np.where(truth[:, None] >= 0, Z[truth] + 0.5 * noise, noise), truth


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
    """Sends requests to the application in process, like the page; other headers simulate other senders."""

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
                await asyncio.Event().wait()  # the page stays open
            body = parts.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(parts)}

        async def send(message):
            sent.append(message)

        with contextlib.suppress(ZeroDivisionError):  # an internal error is answered first, then raised
            asyncio.run(self.app(scope, receive, send))
        return Answer(sent)

    def get(self, path, **options):
        return self.send("GET", path, **options)

    def post(self, path, question, **options):
        headers = {"content-type": "application/json"} | options.pop("headers", {})
        return self.send("POST", path, content=json.dumps(question).encode(), headers=headers, **options)

    def ask(self, path, chosen, **more):
        """The answer to a request with settings, or with other keys alone if `chosen` is None."""
        answer = self.post(path, more if chosen is None else {"settings": chosen, **more})
        assert answer.status_code == 200, answer.text
        return unpack(answer.content) if answer.headers["content-type"] == server.BINARY else answer.json()


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


def start(session):
    """Run the real server in a thread; returns its address and a function that stops it."""
    held = server.listen()
    port = held.getsockname()[1]
    running = server.make_server(server.make_app(session, TOKEN, port))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [held]}, daemon=True)
    thread.start()

    def stop():
        running.should_exit = True
        thread.join(10)
        held.close()

    return f"http://127.0.0.1:{port}/{TOKEN}/", stop
