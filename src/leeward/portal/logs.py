"""The log: a line of JSON for each event, with keys from a list: nothing of patients, questions or secrets."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Final

LOGGER: Final = logging.getLogger("leeward.portal")
ALLOWED: Final = frozenset(
    {
        "request",
        "route",
        "method",
        "status",
        "milliseconds",
        "person",
        "fault",
        "count",
        "address",
        "version",
        "place",
    }
)
"""Keys that may be logged. `route` is the pattern of an address, `fault` the kind of an error; never its message."""


def write_log(event: str, **facts: Any) -> None:
    """Log an event; what is not on the list is left out, and what has no value too."""
    if not LOGGER.isEnabledFor(logging.INFO):
        return
    kept = {name: value for name, value in facts.items() if name in ALLOWED and value is not None}
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    LOGGER.info(json.dumps({"time": time, "event": event, **kept}, default=str))
