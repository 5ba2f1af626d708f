"""Uvicorn's httptools protocol with bounds on headers and on connections that ask nothing, which it lacks."""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_BESIDE_BODY: Final = 64 * 1024
"""Limit on a request's bytes outside its body: first line, headers, chunk marks, trailers."""
HEADER_SECONDS: Final = 10.0
"""How long the headers of a request may take."""
MOST_WAITING: Final = 500
"""Connections without a request under way; beyond, the oldest is closed, as whoever asks does so at once."""


class BoundedProtocol(HttpToolsProtocol):
    """A connection that is closed where a request's headers do not end: they are kept until they do."""

    waiting: ClassVar[dict[BoundedProtocol, None]] = {}
    """Connections without a request under way, the oldest first."""
    beside_body = 0
    deadline: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self.wait()
        self.limit_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.beside_body += len(data)
        if self.beside_body > MOST_BESIDE_BODY and not self.transport.is_closing():
            self.send_400_response("The request has too many headers.")

    def on_message_begin(self) -> None:
        self.beside_body = 0
        self.limit_headers()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self.stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self.beside_body -= len(body)
        super().on_body(body)

    def on_response_complete(self) -> None:
        self.wait()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self.stop_waiting()
        super().connection_lost(exc)

    def wait(self) -> None:
        self.waiting[self] = None
        if len(self.waiting) > MOST_WAITING:
            oldest = next(iter(self.waiting))
            oldest.stop_waiting()
            oldest.transport.close()

    def limit_headers(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
        self.deadline = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def stop_waiting(self) -> None:
        self.waiting.pop(self, None)
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
