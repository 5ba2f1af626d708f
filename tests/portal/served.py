"""Servers of the tests' own, on ports of this computer that nobody listens on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from tests.waiting import LONG, wait_until


def free_port() -> int:
    """A port of this computer that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def serving(make_app: Callable[[int], Any], **options: Any) -> Iterator[int]:
    """The port of a server that runs an application; `make_app` makes it for its port, which is bound already."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port: int = bound.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(make_app(port), log_config=None, **options))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        try:
            wait_until(lambda: server.started or not thread.is_alive(), "the server starts")
            assert server.started, "the server ended before it had started"
            yield port
        finally:
            server.should_exit = True
            thread.join(LONG)
            assert not thread.is_alive(), "the server does not end"
