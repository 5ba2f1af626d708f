"""Uvicorn's httptools protocol with a bound on headers, which it lacks."""

from __future__ import annotations

from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_BESIDE_BODY: Final = 64 * 1024
"""Limit on a request's bytes outside its body: first line, headers, chunk marks, trailers."""


class BoundedProtocol(HttpToolsProtocol):
    """A connection that is closed where a request's headers do not end: they are kept until they do."""

    beside_body = 0

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.beside_body += len(data)
        if self.beside_body > MOST_BESIDE_BODY and not self.transport.is_closing():
            self.send_400_response("The request has too many headers.")

    def on_message_begin(self) -> None:
        self.beside_body = 0
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        self.beside_body -= len(body)
        super().on_body(body)
