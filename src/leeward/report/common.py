"""Sections that every report has: the guarantee, the verifier's checks, the reader's notices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.release import Release
from leeward.report.sections import Notes, Section, Table
from leeward.report.summary import begun, numbers_of, sentence

ROWS_SHOWN = 10


def guarantee_section(release: Release) -> Section:
    """The guarantee as the manifest claims it, and what it leaves open."""
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


def plain_words(text: str) -> Section:
    """The guarantee for people who do not read proofs."""
    limits = "What it does not protect against is under **The guarantee and its limits**."
    return Section("In plain words", (text, limits))


def checks_section(verification: Mapping[str, Any]) -> Section:
    """What the verifier checked in the written files, one line a check."""
    checks = verification["checks"]
    rows = tuple(
        ("passed" if check["passed"] else "FAILED", check["name"].replace("_", " "), check["detail"])
        for check in checks
    )
    intro = (
        "The verifier shares no code with the method. It reads the files as a recipient gets them and "
        "tries to refute "
        "the guarantee" + (", and compares them with the source." if verification.get("with_source") else ".")
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
        return Section("Notices of the reader", ("Nothing was repaired, left out or found odd.",))
    rows = tuple((notice["kind"], notice["message"], _how_many(notice), _rows(notice)) for notice in notices)
    table = Table(
        "What was repaired, left out or found odd (rows count from 1, headers excluded)",
        ("kind", "what", "how many", "first rows"),
        rows,
        False,
    )
    return Section("Notices of the reader", (table,))


def _how_many(notice: Mapping[str, Any]) -> str:
    """A method says its numbers in the sentence; the one notice is not what there is one of."""
    return "" if notice["kind"] == "method" and notice["count"] == 1 else f"{notice['count']:,}"


def _rows(notice: Mapping[str, Any]) -> str:
    shown = [str(row) for row in notice["rows"][:ROWS_SHOWN]]
    return ", ".join(shown) + (", …" if notice["rows"] and notice["count"] > len(shown) else "")
