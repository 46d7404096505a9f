"""HTTP connections of the explorer: idle and slow connections are closed so that active ones get served."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE: Final = 10.0
"""Time limit in seconds for the headers of a request, and again for its body."""
MOST_IDLE: Final = 32
"""Maximum number of connections waiting for their first request, and of kept-alive ones; a page needs about six."""

PARTING: Final = 1.0
"""Seconds that running requests get to finish when the server stops."""


class Connection(H11Protocol):
    """A connection that is closed unless its headers arrive in time.

    The clock starts when the connection opens. On a kept-alive connection it starts again at the first byte of the
    next request; between requests, uvicorn's keep-alive timeout applies.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.deadline: asyncio.TimerHandle | None = None
        self.idle_since = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the header timeout, and close the longest-idle connection if there are too many.

        New connections and kept-alive ones are counted separately, so neither kind can crowd out the other.
        """
        super().connection_made(transport)
        self._wait()
        idle = [c for c in self.connections if isinstance(c, Connection) and c.idle]
        for some in ([c for c in idle if c.deadline], [c for c in idle if not c.deadline]):
            if len(some) > MOST_IDLE:
                min(some, key=lambda c: c.idle_since).give_up()

    def data_received(self, data: bytes) -> None:
        """Stop the timeout once the headers are complete; restart it when the next request begins."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self.deadline is None and self.conn.trailing_data[0]:
            self._wait()

    def on_response_complete(self) -> None:
        """Record when the connection became idle."""
        self.idle_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout."""
        self._stop_waiting()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection, immediately if its request body is still incomplete and so cannot be answered."""
        super().shutdown()
        if self.conn.their_state is h11.SEND_BODY:
            self.transport.abort()
        else:
            self.loop.call_later(PARTING, self.transport.abort)  # even if the client never reads the response

    @property
    def idle(self) -> bool:
        """Whether no request is being processed."""
        return self.cycle is None or self.cycle.response_complete

    def give_up(self) -> None:
        """Close a connection that is processing no request."""
        self._stop_waiting()
        self.connections.discard(self)  # immediately: this set counts against the limit
        self.transport.abort()

    def _wait(self) -> None:
        self.deadline = self.loop.call_later(PATIENCE, self.give_up)

    def _stop_waiting(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
