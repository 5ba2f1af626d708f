"""The page: sections to one HTML file that opens offline and prints."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leeward.errors import BadInput
from leeward.release import Release
from leeward.report.common import checks_section, guarantee_section, notices_section
from leeward.report.sections import Section

SECTIONS: dict[str, str] = {
    "censoring": "leeward.methods.censoring.report:sections",
    "constraints": "leeward.methods.constraints.report:sections",
    "condensation": "leeward.methods.condensation.report:sections",
    "disassociation": "leeward.methods.disassociation.report:sections",
    "k-anonymity": "leeward.methods.condensation.report:sections",
    "notes": "leeward.queries.answer.report:sections",
    "trajectories": "leeward.methods.trajectories.report:sections",
    "visits": "leeward.methods.visits.report:sections",
}
"""Method -> "module:function", called as `function(release, measures, verification) -> list[Section]`."""

Figures = Mapping[str, Any]


def write(folder: str | Path) -> Path:
    """Write `custody/report.html` of a release folder from its `measures.json` and `verification.json`.

    Raises
    ------
    BadInput
        The folder is no release, or has no `custody/` with both files.
    """
    release = Release.open(folder)
    if release.custody is None:
        raise BadInput(
            f"{folder}: no custody/ folder; a report needs its measures.json and verification.json."
        )
    measures, verification = (
        _read(release.custody / name) for name in ("measures.json", "verification.json")
    )
    target = release.custody / "report.html"
    target.write_text(render(release, measures, verification), encoding="utf-8")
    return target


def render(release: Release, measures: Figures, verification: Figures) -> str:
    """The report as HTML."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("leeward.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["marked"] = marked
    return environment.get_template("report.html.j2").render(
        release=release,
        source=measures.get("source", {}),
        verification=verification,
        sections=sections_of(release, measures, verification),
    )


def sections_of(release: Release, measures: Figures, verification: Figures) -> list[Section]:
    """The method's own sections, then what every report has."""
    own: Sequence[Section] = ()
    if release.method in SECTIONS:
        module, _, function = SECTIONS[release.method].partition(":")
        own = getattr(importlib.import_module(module), function)(release, measures, verification)
    return [*own, guarantee_section(release), checks_section(verification), notices_section(measures)]


def marked(text: str) -> Any:
    """`**bold**` and `` `code` `` of an otherwise plain text as HTML."""
    from markupsafe import Markup, escape

    html = str(escape(text))
    html = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html)
    return Markup(re.sub(r"`(.+?)`", r"<code>\1</code>", html))


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise BadInput(f"{path}: not there; the report is made from it.")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
