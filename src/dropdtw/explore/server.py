"""The explorer's server: it serves one page and its data, on this machine only, to clients that know the token."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import secrets
import socket
import struct
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from importlib import resources
from typing import Any, Final

import numpy as np

from dropdtw import palette
from dropdtw.aligner import Aligner
from dropdtw.explore import settings
from dropdtw.explore.session import Session
from dropdtw.problem.inputs import Array

try:
    import anyio
    import uvicorn
    from starlette.applications import Starlette
    from starlette.datastructures import Headers, MutableHeaders
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from dropdtw.explore.connections import PATIENCE, Connection
except ImportError as error:
    raise ImportError(f"the explorer needs {error.name}: pip install 'dropdtw[explore]'") from None

LOOPBACK: Final = "127.0.0.1"
LARGEST_BODY: Final = 1 << 16
ENDING: Final = 2
"""Seconds before running requests are canceled at shutdown; connections are closed earlier."""

PAGE: Final = {
    "": ("index.html", "text/html; charset=utf-8"),
    "explore.js": ("explore.js", "text/javascript; charset=utf-8"),
    "controls.js": ("controls.js", "text/javascript; charset=utf-8"),
    "order.js": ("order.js", "text/javascript; charset=utf-8"),
    "draw.js": ("draw.js", "text/javascript; charset=utf-8"),
    "letters.js": ("letters.js", "text/javascript; charset=utf-8"),
    "words.js": ("words.js", "text/javascript; charset=utf-8"),
    "wire.js": ("wire.js", "text/javascript; charset=utf-8"),
    "explore.css": ("explore.css", "text/css; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}
"""The files of the page by URL path; palette.css is generated from the library's palette."""

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Lets only requests from this page through: the right host, the right origin, the token in the address."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request, or refuse it."""
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(scope)
        # At shutdown the server closes its connections, then cancels running requests: no client awaits a response.
        with contextlib.suppress(asyncio.CancelledError):
            await (self.app if refusal is None else refusal)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return _error(421, f"unknown host; use the http://{LOOPBACK} address that `dropdtw explore` printed")
        origins = headers.getlist("origin")
        if origins and origins != [f"http://{hosts[0].lower()}"]:
            return _error(403, "requests from other origins are refused")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return _error(403, "requests from other sites are refused")
        given = scope["path"].split("/")[1] if "/" in scope["path"] else ""
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode()):
            return _error(403, "the token in the address is wrong; use the address that `dropdtw explore` printed")
        return None


def make_app(session: Session, token: str, port: int) -> ASGIApp:
    """Create the application, which answers under /token/ on `port`."""
    page = resources.files("dropdtw.explore") / "page"
    # Separate limits for paths and posteriors, so that a long posterior does not block the sliders.
    turns = {"quick": asyncio.Semaphore(4), "long": asyncio.Semaphore(2)}

    def file(name: str) -> Callable[[Request], Awaitable[Response]]:
        content, kind = (page / PAGE[name][0]).read_bytes(), PAGE[name][1]

        async def answer(request: Request) -> Response:
            return Response(content, media_type=kind)

        return answer

    async def colors(request: Request) -> Response:
        return Response(palette.css(), media_type="text/css; charset=utf-8")

    async def info(request: Request) -> Response:
        return JSONResponse(await anyio.to_thread.run_sync(session.info))

    async def matrix(request: Request) -> Response:
        match = request.query_params.get("match")
        return Response(pack(*await anyio.to_thread.run_sync(lambda: session.matrix(match))), media_type=BINARY)

    def answering(
        keys: tuple[str, ...], turn: str, work: Callable[[dict[str, Any]], Callable[[], Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Create an endpoint for requests with these keys; `work` validates a request and returns the computation."""

        async def answer(request: Request) -> Response:
            asked = await _body(request, keys)
            try:
                compute = work(asked)
            except ValueError as error:
                raise HTTPException(400, str(error)) from None
            async with turns[turn]:
                if await request.is_disconnected():  # the page gave up on this request while it waited
                    return Response(status_code=204)
                return await anyio.to_thread.run_sync(compute)

        return answer

    def binary(method: Callable[[settings.PageSettings], Packed]) -> Callable[[dict[str, Any]], Callable[[], Response]]:
        def work(asked: dict[str, Any]) -> Callable[[], Response]:
            chosen, seq = settings.parse(asked["settings"]), settings.whole("seq", asked["seq"], 1 << 53)

            def compute() -> Response:
                try:
                    header, arrays = method(chosen)
                except ValueError as error:  # no alignment exists, which is a valid answer
                    header, arrays = {"error": str(error)}, {}
                return Response(pack(header | {"seq": seq}, arrays), media_type=BINARY)

            return compute

        return work

    def plain(method: Callable[[dict[str, Any]], Callable[[], Any]]) -> Callable[[dict[str, Any]], Callable[[], Any]]:
        def work(asked: dict[str, Any]) -> Callable[[], Response]:
            prepared = method(asked)

            def compute() -> Response:
                try:
                    return JSONResponse(prepared())
                except ValueError as error:
                    return JSONResponse({"error": str(error)})

            return compute

        return work

    def explain(asked: dict[str, Any]) -> Callable[[], Any]:
        K, N = session.data.shape
        chosen = settings.parse(asked["settings"])
        i, j = settings.whole("i", asked["i"], K), settings.whole("j", asked["j"], N)
        return lambda: session.explain(chosen, i, j) | {"i": i, "j": j}

    def about(method: Callable[[settings.PageSettings], Any]) -> Callable[[dict[str, Any]], Callable[[], Any]]:
        def prepare(asked: dict[str, Any]) -> Callable[[], Any]:
            chosen = settings.parse(asked["settings"])
            return lambda: method(chosen)

        return prepare

    def opened(asked: dict[str, Any]) -> Callable[[], Any]:
        if not isinstance(asked["aligner"], dict):
            raise ValueError("aligner is not an object; send what Aligner.to_dict writes")
        return lambda: session.opened(Aligner.from_dict(asked["aligner"])).to_json()

    def chapters(asked: dict[str, Any]) -> Callable[[], Any]:
        chosen, kind = settings.parse(asked["settings"]), asked["kind"]
        if not isinstance(kind, str):
            raise ValueError("kind is not a string; send the name of a format")
        return lambda: session.chapters(chosen, kind)

    asked = ("settings",)
    posts = {
        "align": answering(("seq", *asked), "quick", binary(session.align)),
        "posterior": answering(("seq", *asked), "long", binary(session.probabilities)),
        "explain": answering(("i", "j", *asked), "quick", plain(explain)),
        "suggest": answering(asked, "quick", plain(about(session.suggest))),
        "suggest-opening": answering(asked, "quick", plain(about(session.suggest_opening))),
        "export": answering(asked, "quick", plain(about(session.export))),
        "chapters": answering(("kind", *asked), "quick", plain(chapters)),
        "aligner": answering(asked, "quick", plain(about(lambda chosen: session.aligner(chosen).to_dict()))),
        "open": answering(("aligner",), "quick", plain(opened)),
    }
    app = Starlette(
        routes=[
            Route("/{token}/info", info),
            Route("/{token}/matrix", matrix),
            *(Route(f"/{{token}}/{name}", endpoint, methods=["POST"]) for name, endpoint in posts.items()),
            *(Route(f"/{{token}}/{name}", file(name)) for name in PAGE),
            Route("/{token}/palette.css", colors),
        ],
        exception_handlers={HTTPException: _refused, ValueError: _wrong, Exception: _broken},
    )
    return Guard(app, token, port)


Packed = tuple[dict[str, Any], dict[str, Array]]
BINARY: Final = "application/octet-stream"


def pack(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Encode a header and arrays: the header's length (4 bytes), the header as JSON, then the arrays' bytes.

    Each part is aligned to four bytes, so that the page can read the arrays in place.
    """
    listed = [[name, array.dtype.str.lstrip("<|"), array.size] for name, array in arrays.items()]
    text = json.dumps({**header, "arrays": listed}, allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    parts = [struct.pack("<I", len(text)), text]
    for array in arrays.values():
        content = np.ascontiguousarray(array).tobytes()
        parts += [content, b"\0" * (-len(content) % 4)]
    return b"".join(parts)


def listen(port: int = 0) -> socket.socket:
    """Open a socket that only this machine can reach; port 0 picks a free port."""
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":  # allow reuse of a port that was just closed
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((LOOPBACK, port))
        held.listen(64)
    except OSError as error:
        held.close()
        raise OSError(
            f"port {port} is not available ({error.strerror}); choose another with --port, or omit --port"
        ) from None
    return held


def make_server(app: ASGIApp) -> uvicorn.Server:
    """Create the server of the application; run it with a socket from `listen`."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=Connection,
            lifespan="off",
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            limit_concurrency=100,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=ENDING,
        )
    )


def serve(session: Session, port: int = 0, *, opened: Callable[[str], object] = print) -> None:
    """Serve until Ctrl-C; `opened` is called with the address in a separate thread once the socket listens."""
    token = secrets.token_urlsafe(24)
    held = listen(port)
    address = f"http://{LOOPBACK}:{held.getsockname()[1]}/{token}/"
    server = make_server(make_app(session, token, held.getsockname()[1]))
    threading.Thread(target=opened, args=(address,), daemon=True).start()
    try:
        server.run(sockets=[held])
    except KeyboardInterrupt:  # the normal way to stop
        pass
    finally:
        held.close()


async def _body(request: Request, keys: tuple[str, ...]) -> dict[str, Any]:
    """Read a request's body, a JSON object with exactly these keys."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(400, "the content type is not application/json; set it")
    content = bytearray()
    try:
        async with asyncio.timeout(PATIENCE):
            async for chunk in request.stream():
                content += chunk
                if len(content) > LARGEST_BODY:
                    raise HTTPException(413, f"the body is larger than {LARGEST_BODY} bytes")
    except TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {PATIENCE:g} seconds") from None
    except ClientDisconnect:
        raise HTTPException(400, "the body was cut off") from None
    try:
        asked = json.loads(content.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not valid JSON: {error}") from None
    if not isinstance(asked, dict) or set(asked) != set(keys):
        raise HTTPException(400, f"the body must be an object with exactly these keys: {', '.join(keys)}")
    return asked


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not allowed in JSON")


def _error(status: int, text: str) -> Response:
    return JSONResponse({"error": " ".join(text.split())}, status_code=status)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, error.detail)


async def _wrong(request: Request, error: Exception) -> Response:
    return _error(400, str(error))


async def _broken(request: Request, error: Exception) -> Response:
    return _error(500, f"the explorer failed: {type(error).__name__}; see the traceback in the terminal")
