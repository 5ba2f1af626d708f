"""Nested figures as text: one line a figure, its place in the JSON in front of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def figure_lines(figures: Mapping[str, Any]) -> list[str]:
    """One line a figure; lists and tables are left to `--json`, which has them whole."""
    return list(_lines(figures, ""))


def _lines(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _lines(item, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list | tuple):
        yield f"{place}: {len(value):,} rows (--json shows them)"
    elif isinstance(value, float):
        yield f"{place}: {value:.4g}"
    else:
        yield (
            f"{place}: {value:,}"
            if isinstance(value, int) and not isinstance(value, bool)
            else f"{place}: {value}"
        )
