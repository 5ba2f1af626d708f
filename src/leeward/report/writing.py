"""The page: the method's sections and those that every report has, as one HTML file that opens offline and prints."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from leeward.pages import template_of
from leeward.release import Release
from leeward.report.sections import Figures, Notes, Section, Table
from leeward.report.summary import DOORS_SHOWN, NOT_MEASURED, Summary, begun, numbers_of, sentence

ROWS_SHOWN = 10


def render(
    release: Release,
    measures: Figures,
    verification: Figures,
    sections: Sequence[Section] = (),
    summary: Summary | None = None,
    version: int = 1,
) -> str:
    """The report as HTML: the first screen, the sections, the guarantee, the checks and the notices. `version`:
    of which the release is the batch that joins."""
    page = template_of("leeward.report", "report.html.j2", marked=to_html, plain=plain, anchor=anchor)
    return page.render(
        release=release,
        numbers=numbers_of(release.guarantee),
        source=measures.get("source", {}),
        summary=summary,
        version=version,
        doors_shown=DOORS_SHOWN,
        not_measured=NOT_MEASURED,
        verification=verification,
        sections=[
            *sections,
            guarantee_section(release),
            checks_section(verification),
            notices_section(measures),
        ],
    )


def guarantee_section(release: Release) -> Section:
    guarantee = release.guarantee
    return Section(
        "The guarantee and its limits",
        (
            f"**{guarantee['name']}** ({numbers_of(guarantee)}), for each {guarantee['unit']}.",
            f"Attacker: {sentence(guarantee['attacker'])}",
            "Not protected:",
            Notes(tuple(begun(each) for each in guarantee["not_protected"])),
        ),
    )


def checks_section(verification: Mapping[str, Any]) -> Section:
    checks = verification["checks"]
    rows = tuple(
        ("passed" if check["passed"] else "FAILED", check["name"].replace("_", " "), check["detail"])
        for check in checks
    )
    intro = (
        "The verifier shares no code with the method. It reads the files as the recipient gets them and tries to "
        "refute the guarantee"
        + (", and compares them with the source." if verification.get("with_source") else ".")
    )
    table = Table(
        f"{len(checks)} checks of the released files", ("outcome", "check", "what was found"), rows, False
    )
    warnings = tuple(verification.get("warnings", ()))
    return Section("Verification, check by check", (intro, table, *((Notes(warnings),) if warnings else ())))


def notices_section(measures: Mapping[str, Any]) -> Section:
    """What the reader repaired, left out or found odd, with row numbers of the source."""
    notices = measures.get("notices", [])
    if not notices:
        return Section("Notices of the reader", ("Nothing was repaired, left out or unusual.",))
    # A method says its numbers in the sentence; the one notice is not what there is one of.
    said = [notice["kind"] == "method" and notice["count"] == 1 for notice in notices]
    rows = tuple(
        (notice["kind"], notice["message"], "" if each else f"{notice['count']:,}", _rows(notice))
        for notice, each in zip(notices, said, strict=True)
    )
    table = Table(
        "What was repaired, left out or unusual (rows count from 1, without the header)",
        ("kind", "what", "how many", "first rows"),
        rows,
        False,
    )
    return Section("Notices of the reader", (table,))


def _rows(notice: Mapping[str, Any]) -> str:
    shown = [str(row) for row in notice["rows"][:ROWS_SHOWN]]
    return ", ".join(shown) + (", …" if notice["rows"] and notice["count"] > len(shown) else "")


def to_html(text: str) -> Any:
    """`**bold**`, `` `code` `` and the power of `k^m` of an otherwise plain text as HTML."""
    from markupsafe import Markup, escape

    html = str(escape(text))
    html = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html)
    html = re.sub(r"\bk\^m\b", "k<sup>m</sup>", html)
    return Markup(re.sub(r"`(.+?)`", r"<code>\1</code>", html))


def anchor(title: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in title.lower()).strip("-")


def plain(text: str) -> str:
    """The text without the marks of `to_html`."""
    return re.sub(r"\*\*(.+?)\*\*|`(.+?)`", r"\1\2", text)
