"""The report of a release folder, and its summary: made from its JSON files, in its method's own terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leeward.release import Release
    from leeward.report.summary import Summary

CATALOGUE = "notes"
"""A catalogue of an index: a release, though of no method."""


def summary_of(release: Release, measures: Mapping[str, Any]) -> Summary:
    """What the release is safe against, what not, and what it cost."""
    from leeward.advise.risk import risk_lines
    from leeward.report.summary import Costs, summarize

    costs = getattr(report_of(release.method), "costs", None)
    found = Costs() if costs is None else costs(release, measures)
    return summarize(release, found, risk_lines(release, measures.get("reidentification")))


def summary_of_share(release: Release) -> Summary:
    """The same of a release without the custodian's figures."""
    from leeward.advise.risk import risk_lines
    from leeward.report.summary import Costs, summarize

    return summarize(release, Costs(), risk_lines(release))


def report_of(method: str) -> ModuleType | None:
    """The module of what is reported of a method's releases: `sections`, `costs`; None for a method without one."""
    from leeward.methods import METHODS

    if method == CATALOGUE:
        from leeward.queries.answer import report

        return report
    return METHODS[method].report() if method in METHODS else None


def write_report(folder: Path) -> Path:
    """Write `custody/report.html` from the JSON files of a release folder, with the method's own sections."""
    from leeward.release import Release
    from leeward.report import write

    return write(folder, with_risk(sections_of(Release.open(folder).method)), summary_of)


def with_risk(own: Callable[..., Any] | None) -> Callable[..., Any]:
    """The method's own sections, after its first the risk that was measured, and last the attacks that were tried."""

    def sections(release: Release, measures: Mapping[str, Any], verification: Mapping[str, Any]) -> list[Any]:
        found = [] if own is None else own(release, measures, verification)
        return [*found[:1], *risk_sections(release, measures), *found[1:], *attack_sections(measures)]

    return sections


def attack_sections(measures: Mapping[str, Any]) -> list[Any]:
    """What the attacks on the release came to; none where none was made."""
    from leeward.report.sections import Section, number, table_of

    found = measures.get("tried")
    if not found:
        return []
    table = table_of(
        "Tried with the released files and the source",
        found,
        ("the attacker", "knows", str),
        ("a success", "success", str),
        ("tried", "attacked", number),
        ("succeeded", "succeeded", number),
        numbers=False,
    )
    lines = [
        f"**{each['succeeded']:,} of {each['attacked']:,} succeeded**, which the guarantee does not exclude (see its "
        f"limits): {each['remedy']}."
        for each in found
        if each["succeeded"] and not each["covered"]
    ]
    lines += [
        f"**{each['succeeded']:,} of {each['attacked']:,} succeeded, which the guarantee excludes: do not hand this "
        "release over.**"
        for each in found
        if each["succeeded"] and each["covered"]
    ]
    return [Section("Attacks that were tried", (table, *lines))]


def risk_sections(release: Release, measures: Mapping[str, Any]) -> list[Any]:
    """The risk measured, and reported thresholds beside the guarantee's maximum, which the summary says; none where the
    guarantee bounds none."""
    from leeward.advise.risk import measured_lines, threshold_rows
    from leeward.report.sections import Section, Table

    found = measures.get("reidentification")
    lines, rows = measured_lines(found), tuple(threshold_rows(release.guarantee, found))
    if not lines and not rows:
        return []
    columns: tuple[str, ...] = (
        "threshold",
        "number",
        "maximum",
        "patients above, measured",
        "rule, and who reports the number",
    )
    if not found:  # a column of dashes
        columns, rows = (*columns[:3], columns[4]), tuple((*row[:3], row[4]) for row in rows)
    table = Table(
        "Thresholds that others report; which of them applies is not for a program to say",
        columns,
        rows,
        False,
    )
    return [Section("Risk of re-identification, measured", (*lines, *((table,) if rows else ())))]


def sections_of(method: str) -> Callable[..., Any] | None:
    """What makes the report's own sections for releases of a method; None for a method that has none."""
    return getattr(report_of(method), "sections", None)
