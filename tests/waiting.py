"""Waiting for what another thread or process does: never for ever, and what did not happen is said."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

LONG: Final = 120
"""Seconds: longer than anything takes on a busy machine, so that what lasts until then hangs."""


def wait_until(happened: Callable[[], object], what: str, seconds: float = LONG) -> None:
    """Look again and again whether something happened; AssertionError with `what` where it did not."""
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, f"within {seconds:g} seconds this did not happen: {what}"
        time.sleep(0.005)
