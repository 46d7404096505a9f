"""The explorer under all kinds of requests, stopped at any moment: it answers, exits promptly and cleans up."""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

LOOPBACK = "127.0.0.1"
START = 60.0
"""Seconds until the server must have printed its address."""
ANSWER = 30.0
"""Seconds until an answer must have arrived."""
END = 5.0
"""Seconds after a signal until the process must be gone, whatever it was doing."""


def case(rng: np.random.Generator) -> str:
    """Start a server, send a few requests, and stop it."""
    stop = signal.Signals(rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL]))
    with tempfile.TemporaryDirectory() as folder, ExitStack() as held:
        here, elsewhere = Path(folder, "data"), Path(folder, "home")
        here.mkdir(), elsewhere.mkdir()
        # Sometimes so large that a request is still running when the signal arrives.
        K, N = (400, 6000) if rng.random() < 0.3 else (int(rng.integers(1, 9)), int(rng.integers(1, 60)))
        d = int(rng.integers(1, 5))
        np.save(here / "z.npy", rng.normal(size=(K, d)))
        np.save(here / "x.npy", rng.normal(size=(N, d)))
        before = content(here)
        process = held.enter_context(started(here, elsewhere))
        if rng.random() < 0.15:
            time.sleep(float(rng.uniform(0, 1.5)))
            when = "early"
        else:
            server = Server.of(process)
            check_loopback(server.port)
            tried = [ask(rng, server, held) for _ in range(int(rng.integers(1, 9)))]
            assert server.status("GET", "info") == 200, f"no answer after {tried}"
            if rng.random() < 0.3:
                for _ in range(int(rng.integers(1, 9))):
                    held.enter_context(server.connection()).sendall(server.question(rng, "posterior"))
                time.sleep(float(rng.uniform(0, 0.3)))
            when = "served"
        said = ended(process, stop)
        assert when == "early" or "Traceback" not in said, said
        if when == "served":
            check_gone(server.port)
        assert content(here) == before, "the explorer changed the folder of its data"
        assert not content(elsewhere), f"left behind: {sorted(content(elsewhere))}"
    return f"{when} {stop.name}"


@contextmanager
def started(here: Path, elsewhere: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command in its own session, on a free port; all its processes are killed on exit."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dropdtw", "explore", "z.npy", "x.npy", "--no-browser"],
        cwd=here,
        env=os.environ | {"HOME": str(elsewhere), "TMPDIR": str(elsewhere), "XDG_CACHE_HOME": str(elsewhere)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def ended(process: subprocess.Popen[bytes], stop: signal.Signals) -> str:
    """Send a signal; check that all processes exit in time with the right status. Returns what was printed."""
    process.send_signal(stop)
    began = time.monotonic()
    try:
        _, said = process.communicate(timeout=END)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"still running {END:g} seconds after {stop.name}") from None
    fits = {0, 130, -signal.SIGINT} if stop == signal.SIGINT else {-stop}
    assert process.returncode in fits, (stop.name, process.returncode, said)
    while time.monotonic() - began < END:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return said.decode(errors="replace")
        time.sleep(0.01)
    raise AssertionError(f"a process of the explorer's group {process.pid} is still running")


@dataclass(frozen=True)
class Server:
    """A running server."""

    port: int
    path: str

    @classmethod
    def of(cls, process: subprocess.Popen[bytes]) -> Server:
        """The server at the address that the command prints."""
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], START)[0], f"no address within {START:g} seconds"
        line = process.stdout.readline().decode().strip()
        place = urllib.parse.urlsplit(line)
        assert place.hostname == LOOPBACK, f"it printed {line!r}"
        assert place.port is not None
        return cls(place.port, place.path)

    def connection(self) -> socket.socket:
        """Open a connection to the server."""
        return socket.create_connection((LOOPBACK, self.port), timeout=ANSWER)

    def request(self, method: str, path: str, body: bytes | None = None, *, size: int | None = None) -> bytes:
        """The bytes of a request; `size` overrides the length of the body in the header."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {LOOPBACK}:{self.port}"]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body) if size is None else size}"]
        return "\r\n".join([*lines, "", ""]).encode() + (body or b"")

    def question(self, rng: np.random.Generator, what: str) -> bytes:
        """A valid request about an alignment."""
        drop = {"kind": str(rng.choice(["constant", "percentile"])), "value": float(rng.uniform(0, 5))}
        asked = {"settings": {"match": "euclidean", "drop_x": drop, "gamma": 0.1}}
        more = {"explain": {"i": 0, "j": 0}, "suggest": {}, "export": {}}.get(what, {"seq": 1})
        return self.request("POST", self.path + what, json.dumps(asked | more).encode())

    def status(self, method: str, name: str) -> int:
        """The response status of a plain request."""
        return self.send(self.request(method, self.path + name))

    def send(self, asked: bytes) -> int:
        """The response status of a request; the response must arrive complete."""
        with self.connection() as line:
            line.sendall(asked)
            reply = http.client.HTTPResponse(line)
            reply.begin()
            reply.read()
            return reply.status


def ask(rng: np.random.Generator, server: Server, held: ExitStack) -> str:
    """Send one request of a random kind and check its response; partial requests stay open until `held` closes."""
    kind = str(rng.choice([*RIGHT, *WRONG, *HALF]))
    if kind in RIGHT:
        status = server.send(RIGHT[kind](rng, server))
        assert status == 200, (kind, status)
    elif kind in WRONG:
        asked, fits = WRONG[kind](rng, server)
        status = server.send(asked)
        assert status == fits, (kind, status, asked[:500])
    else:
        line = held.enter_context(server.connection())
        line.sendall(HALF[kind](rng, server))
        if rng.random() < 0.5:
            line.close()
    return kind


RIGHT: dict[str, Callable[[np.random.Generator, Server], bytes]] = {
    "page": lambda rng, s: s.request("GET", s.path),
    "info": lambda rng, s: s.request("GET", s.path + "info"),
    "matrix": lambda rng, s: s.request("GET", s.path + "matrix?match=euclidean"),
    "align": lambda rng, s: s.question(rng, "align"),
    "posterior": lambda rng, s: s.question(rng, "posterior"),
    "explain": lambda rng, s: s.question(rng, "explain"),
    "export": lambda rng, s: s.question(rng, "export"),
}
"""Valid requests."""

WRONG: dict[str, Callable[[np.random.Generator, Server], tuple[bytes, int]]] = {
    "token": lambda rng, s: (s.request("GET", "/wrong/info"), 403),
    "host": lambda rng, s: (b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", 421),
    "path": lambda rng, s: (s.request("GET", s.path + "nothing"), 404),
    "method": lambda rng, s: (s.request("DELETE", s.path + "info"), 405),
    "no JSON": lambda rng, s: (s.request("POST", s.path + "align", rng.bytes(int(rng.integers(0, 99)))), 400),
    "deep": lambda rng, s: (s.request("POST", s.path + "align", b"[" * 20_000), 400),
    "settings": lambda rng, s: (s.request("POST", s.path + "export", b'{"settings": {"gamma": 1e999}}'), 400),
    "large": lambda rng, s: (s.request("POST", s.path + "align", b" " * 70_000), 413),
    "no HTTP": lambda rng, s: (b"\x16\x03\x01" + rng.bytes(40) + b"\r\n\r\n", 400),
}
"""Requests that are refused, with the expected status."""

HALF: dict[str, Callable[[np.random.Generator, Server], bytes]] = {
    "nothing": lambda rng, s: b"",
    "half a header": lambda rng, s: s.request("GET", s.path)[: int(rng.integers(1, 40))],
    "half a body": lambda rng, s: s.request("POST", s.path + "align", b'{"seq"', size=100),
    "no reader": lambda rng, s: RIGHT[str(rng.choice([*RIGHT]))](rng, s),
}
"""Requests that are sent partially, or whose response nobody reads."""


def check_loopback(port: int) -> None:
    """Check that only the loopback address listens on the port (on Linux)."""
    table = Path("/proc/net/tcp")
    if not table.exists():
        return
    rows = [line.split() for line in table.read_text().splitlines()[1:]]
    listening = {row[1] for row in rows if row[3] == "0A" and int(row[1].partition(":")[2], 16) == port}
    assert listening == {f"0100007F:{port:04X}"}, listening


def check_gone(port: int) -> None:
    """Check that nobody listens on the port, and that it can be bound again."""
    with socket.socket() as line:
        assert line.connect_ex((LOOPBACK, port)) == errno.ECONNREFUSED
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        line.bind((LOOPBACK, port))


def content(folder: Path) -> dict[str, bytes]:
    """Everything in a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"" for p in folder.rglob("*")}
