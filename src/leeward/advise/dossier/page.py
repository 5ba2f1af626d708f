"""A dossier as one HTML file that opens offline and prints: parts, three kinds of entries, the annex."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.report.sections import number


def render(content: Mapping[str, Any]) -> str:
    """The page."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("leeward.advise"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["shown"] = shown
    counts = {
        block: sum(entry["block"] == block for part in content["parts"] for entry in part["entries"])
        for block in ("measured", "declared", "open")
    }
    return environment.get_template("dossier.html.j2").render(content=content, counts=counts)


def shown(value: Any) -> str:
    """A value for a person."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {shown(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(shown(item) for item in value)
    return number(value)
