"""A result as a notebook shows it: one small card."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from leeward.release import Release
from leeward.report.sections import number


def result_html(
    release: Release, verification: Mapping[str, Any], measures: Mapping[str, Any], report: Path
) -> str:
    """The release, its guarantee, the verifier's outcome and where the report is, as HTML."""
    guarantee = release.guarantee
    given = [f"{key} = {guarantee[key]}" for key in ("k", "m", "epsilon", "delta") if key in guarantee]
    checks = verification["checks"]
    source = measures.get("source", {})
    rows = {
        "guarantee": f"{guarantee['name']} ({', '.join(given)})",
        "source": f"{source.get('name', '–')}: {number(source.get('patients'))} patients, "
        f"{number(source.get('codes'))} codes",
        "verified": f"{sum(check['passed'] for check in checks)} of {len(checks)} checks passed",
        "for the recipient": str(release.share),
        "report": str(report),
    }
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td "
        f"style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in rows.items()
    )
    title = f"{release.records:,} records released by {escape(release.method)}"
    return f"<table><caption style='text-align:left'><b>{title}</b></caption><tbody>{cells}</tbody></table>"
