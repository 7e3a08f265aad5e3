"""HTTP of one connection: the head of a request must arrive in time and must not be endless.

Bodies are read by routes, which have limits of their own. Nothing reads a head before it is complete, so the connection
itself has to look at it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from neuroseqret.serving import problems
from neuroseqret.serving.problems import Problem

MOST = 64 << 10  # bytes of a head


def protocol_of(seconds: float) -> type[asyncio.Protocol]:
    """Return the class of connections whose heads must arrive within `seconds`."""
    return type("Connection", (Connection,), {"seconds": seconds})


class Connection(HttpToolsProtocol):
    """One connection to the server."""

    seconds: float
    _late: asyncio.TimerHandle | None = None  # while a head is awaited
    _size, _heads = 0, 0  # bytes of the head that arrives; heads that are complete

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._late = self.loop.call_later(self.seconds, transport.close)

    def on_message_begin(self) -> None:
        """Wait for the rest of the head."""
        super().on_message_begin()
        if self._late is None:
            self._late = self.loop.call_later(self.seconds, self.transport.close)

    def on_headers_complete(self) -> None:
        """Pass the request on; its body is the business of a route."""
        self._arrived()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._arrived()
        super().connection_lost(exc)

    def _arrived(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late, self._size, self._heads = None, 0, self._heads + 1

    def data_received(self, data: bytes) -> None:
        """Take what arrived; refuse a head that does not end."""
        before = self._heads
        super().data_received(data)
        if self._late is None or self._heads != before:  # this was a body, or the end of a head
            return
        self._size += len(data)
        if self._size > MOST:
            self._refuse(Problem(431, f"the head of the request has more than {MOST:,} bytes; send shorter headers"))

    def send_400_response(self, msg: str) -> None:
        """Say that this is not HTTP."""
        self._refuse(Problem(400, "this is not a request in HTTP/1.1 that can be read; check what sends it"))

    def _refuse(self, problem: Problem) -> None:
        answer = problems.response(problem)
        lines = [f"HTTP/1.1 {problem.status} {problems.title_of(problem)}".encode(), b"connection: close"]
        lines += [name + b": " + value for name, value in answer.raw_headers]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(answer.body)]))
        self.transport.close()
