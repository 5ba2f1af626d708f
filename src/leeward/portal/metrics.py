"""Figures for a monitoring system: how many requests, how long; labels are patterns of addresses, never values."""

from __future__ import annotations

import os
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

SHARED: Final = "PROMETHEUS_MULTIPROC_DIR"
"""Where several processes of a portal keep their figures, so that each can give the sum of all."""


class Metrics:
    """The figures of one running portal."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "leeward_portal_requests", "Requests", ("route", "method", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "leeward_portal_seconds", "Seconds to a reply, slot included", ("route",), registry=self.registry
        )

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """One request."""
        known = method if method in {"GET", "POST", "DELETE", "HEAD"} else "other"
        self._requests.labels(route, known, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def to_text(self) -> bytes:
        """In Prometheus' text format."""
        if SHARED not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        collect: Any = MultiProcessCollector  # the library does not type it
        collect(together)
        return generate_latest(together)
