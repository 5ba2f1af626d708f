"""A result as a notebook shows it: one small card."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from leeward.release import Release
from leeward.report.sections import number
from leeward.report.summary import NOT_MEASURED, Summary, headline


def result_html(
    release: Release,
    verification: Mapping[str, Any],
    measures: Mapping[str, Any],
    report: Path,
    summary: Summary,
) -> str:
    """What the release is safe against, what not, what it cost, and where its files are, as HTML."""
    checks = verification["checks"]
    source = measures.get("source", {})
    rows = {
        **({"little is left": summary.little_left} if summary.little_left else {}),
        "guarantee": summary.guarantee,
        "safe against": summary.safe_against,
        **({"risk": " ".join(summary.risk)} if summary.risk else {}),
        "not against": " ".join(summary.not_against),
        "it cost": "; ".join(map(str, summary.costs)) or NOT_MEASURED,
        "source": f"{source.get('name', '–')}: {number(source.get('patients'))} patients, "
        f"{number(source.get('codes'))} codes",
        "verified": f"{sum(check['passed'] for check in checks)} of {len(checks)} checks passed",
    }
    links = {"for the recipient": release.share / "README.md", "report": report}
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td "
        f"style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in rows.items()
    )
    cells += "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>"
        f"<a href='{escape(str(path))}'>{escape(str(path))}</a></td></tr>"
        for name, path in links.items()
    )
    title = escape(headline(release))
    return f"<table><caption style='text-align:left'><b>{title}</b></caption><tbody>{cells}</tbody></table>"
