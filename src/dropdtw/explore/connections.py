"""Connections of the explorer: those that do not get to a request give way to those that do."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE: Final = 10.0
"""Seconds in which the headers of a request have to have arrived, and its body as long again."""
MOST_IDLE: Final = 32
"""Connections that wait for their first request, and again for a next one, at a time; a page needs half a dozen."""

PARTING: Final = 1.0
"""Seconds that requests in work have once the server is to end."""


class Connection(H11Protocol):
    """A connection that is closed unless its headers arrive in time.

    The time runs from the beginning of the connection and, on one that is kept alive, from the first byte of the next
    request; between requests uvicorn's own limit holds.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.deadline: asyncio.TimerHandle | None = None
        self.idle_since = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for headers; of too many idle connections, close the one that has been idle longest.

        New ones and those that have been served are counted apart: neither can drive out the other.
        """
        super().connection_made(transport)
        self._wait()
        idle = [c for c in self.connections if isinstance(c, Connection) and c.idle]
        for some in ([c for c in idle if c.deadline], [c for c in idle if not c.deadline]):
            if len(some) > MOST_IDLE:
                min(some, key=lambda c: c.idle_since).give_up()

    def data_received(self, data: bytes) -> None:
        """Wait on, or no more: headers are complete, or a next request has begun."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self.deadline is None and self.conn.trailing_data[0]:
            self._wait()

    def on_response_complete(self) -> None:
        """Be idle from here on."""
        self.idle_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_waiting()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close, at once where a request cannot be answered: the rest of its body would not be waited for."""
        super().shutdown()
        if self.conn.their_state is h11.SEND_BODY:
            self.transport.abort()
        else:
            self.loop.call_later(PARTING, self.transport.abort)  # also where nobody reads the answer

    @property
    def idle(self) -> bool:
        """Whether no request is in work."""
        return self.cycle is None or self.cycle.response_complete

    def give_up(self) -> None:
        """Close a connection that has no request in work."""
        self._stop_waiting()
        self.connections.discard(self)  # at once, for what is counted is whether others can be served
        self.transport.abort()

    def _wait(self) -> None:
        self.deadline = self.loop.call_later(PATIENCE, self.give_up)

    def _stop_waiting(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
