"""Suppression as its page defines it."""

from __future__ import annotations

from collections import Counter


def suppressed(records: list[set[str]], k: int) -> list[set[str]]:
    """The records without codes that fewer than k of them have."""
    counts = Counter(code for record in records for code in record)
    return [{code for code in record if counts[code] >= k} for record in records]
