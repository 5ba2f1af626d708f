"""A port that nobody listens on."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of this computer that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
