"""HTTP as it arrives: uvicorn's protocol on httptools, which bounds no header, with a bound."""

from __future__ import annotations

from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_BESIDE_BODY: Final = 64 * 1024
"""Bytes of a request that are none of its body: its first line, headers, marks of chunks, trailers."""


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
