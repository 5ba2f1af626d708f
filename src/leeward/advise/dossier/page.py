"""A dossier as one HTML file that opens offline and prints: parts, three kinds of entries, the annex."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.pages import template_of
from leeward.report.sections import number
from leeward.report.writing import to_html


def render(content: Mapping[str, Any]) -> str:
    """The page."""
    counts = {
        block: sum(entry["block"] == block for part in content["parts"] for entry in part["entries"])
        for block in ("measured", "declared", "open")
    }
    return template_of("leeward.advise", "dossier.html.j2", shown=format_value, marked=to_html).render(
        content=content, counts=counts
    )


def format_value(value: Any) -> str:
    """A value for a person."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {format_value(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(format_value(item) for item in value)
    return number(value)
