"""Requests whose headers never end are not kept."""

from __future__ import annotations

import http.client
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.portal.served import serving
from tests.waiting import LONG

from leeward.portal import protocol
from leeward.portal.protocol import MOST_BESIDE_BODY, BoundedProtocol


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Says how long the body was."""
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    text = str(size).encode()
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(text))]}
    )
    await send({"type": "http.response.body", "body": text})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(lambda port: echo, lifespan="off", http=BoundedProtocol) as port:
        yield port


def reply_to(port: int, first: bytes, again: bytes, times: int) -> tuple[bytes, int]:
    """What is answered, and how many bytes were sent until then."""
    with socket.create_connection(("127.0.0.1", port), timeout=LONG) as connection:
        connection.sendall(first)
        connection.settimeout(0.002)
        sent = 0
        for _ in range(times):
            try:
                connection.sendall(again)
                sent += len(again)
                if reply := connection.recv(4096):
                    return reply, sent
            except TimeoutError:
                continue
            except OSError:
                return b"closed", sent
        connection.settimeout(LONG)
        return connection.recv(4096), sent


REQUEST = b"POST / HTTP/1.1\r\nHost: a\r\n"
ENDLESS = {
    "one long header": (REQUEST + b"X: ", b"x" * 8192),
    "headers without end": (REQUEST, b"X: " + b"x" * 8187 + b"\r\n"),
    "a long address": (b"GET /", b"x" * 8192),
    "trailers": (REQUEST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: " + b"x" * 8187 + b"\r\n"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_does_not_end_is_refused(port: int, name: str) -> None:
    reply, sent = reply_to(port, *ENDLESS[name], times=400)
    assert reply.startswith((b"HTTP/1.1 400", b"closed"))
    assert sent < 4 * MOST_BESIDE_BODY


def test_a_body_is_no_header(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
    size = 40 * MOST_BESIDE_BODY
    for body in (b"x" * size, (b"x" * 4096 for _ in range(size // 4096))):  # the second in chunks
        connection.request("POST", "/", body)
        assert int(connection.getresponse().read()) == size
    connection.close()


def test_many_requests_of_one_connection_are_answered(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
    connection.connect()
    first = connection.sock
    for _ in range(300):
        connection.request("POST", "/", b"abc", {"Cookie": "c" * 1000})
        assert connection.getresponse().read() == b"3"
    assert connection.sock is first
    connection.close()


def test_a_thousand_connections_that_ask_nothing_shut_nobody_out() -> None:
    """M1: 1,005 sockets whose headers never ended got everybody a 503 until their owner left."""
    # Both ends of each connection are files of this process, which may have 1,024 by default.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    with (
        serving(lambda port: echo, lifespan="off", http=BoundedProtocol, limit_concurrency=1000) as port,
        ExitStack() as held,
    ):
        for number in range(1005):
            silent = held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=LONG))
            if number % 3:  # every third does not even begin
                silent.sendall(REQUEST)
        idle = [http.client.HTTPConnection("127.0.0.1", port, timeout=LONG) for _ in range(20)]
        for connection in idle:  # these asked once, and stay
            connection.request("POST", "/", b"abc")
            assert connection.getresponse().read() == b"3"
        other = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
        other.request("POST", "/", b"abc")
        assert other.getresponse().status == 200
        for connection in (*idle, other):
            connection.close()


def test_headers_that_take_too_long_end_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 1.0)
    with serving(lambda port: echo, lifespan="off", http=BoundedProtocol) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=LONG) as slow:
            slow.sendall(REQUEST)
            assert slow.recv(1) == b""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
        for _ in range(2):
            connection.request("POST", "/", b"abc")  # nor is a body, or a pause between requests, a header
            assert connection.getresponse().read() == b"3"
            time.sleep(1.5)
        connection.close()
