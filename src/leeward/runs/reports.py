"""The report of a release folder, and its summary: made from its JSON files, in its method's own terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from leeward.advise.risk import measured_lines, risk_lines, threshold_rows
from leeward.errors import BadInput
from leeward.methods import METHODS
from leeward.release import Release
from leeward.release.aside import own_file
from leeward.report import render
from leeward.report.sections import Notes, Section, Table, number, table_of
from leeward.report.summary import Costs, Summary, summarize
from leeward.runs.registering import NOBODY_COUNTS

CATALOGUE = "notes"
"""A catalogue of an index: a release, though of no method."""


def write_report(folder: Path, version: int = 1) -> Path:
    """Write `custody/report.html` of a release folder from its measures.json and verification.json: the method's own
    sections, after the first of them the risk that was measured, and last the attacks that were tried. `version`: of
    which the release is the batch that joins.

    Raises BadInput: the folder is not a release, or has no `custody/` with both files.
    """
    release = Release.open(folder)
    measures, verification = map(release.custody_json, ("measures.json", "verification.json"))
    if release.custody is None or measures is None or verification is None:
        raise BadInput(
            f"{folder}: a report needs custody/measures.json and custody/verification.json; one is missing."
        )
    own = sections_of(release.method)
    found = [] if own is None else own(release, measures, verification)
    sections = [
        *found[:1],
        *risk_sections(release, measures),
        *found[1:],
        *attack_sections(measures),
        *(
            []
            if release.method == CATALOGUE
            else [together_section(release.custody_json("register.json"), version)]
        ),
    ]
    page = render(release, measures, verification, sections, summary_of(release, measures), version)
    target = release.custody / "report.html"
    own_file(target).write_text(page, encoding="utf-8")
    return target


def summary_of(release: Release, measures: Mapping[str, Any] | None = None) -> Summary:
    """What the release is safe against, what not, and with the custodian's figures what it cost."""
    costs = None if measures is None else getattr(report_of(release.method), "costs", None)
    risk = risk_lines(release, (measures or {}).get("reidentification"))
    return summarize(release, Costs() if costs is None else costs(release, measures), risk)


def report_of(method: str) -> ModuleType | None:
    """The module of what is reported of a method's releases: `sections`, `costs`; None for a method without one."""
    if method == CATALOGUE:
        from leeward.queries.answer import report

        return report
    return METHODS[method].report() if method in METHODS else None


def sections_of(method: str) -> Callable[..., list[Section]] | None:
    """What makes the report's own sections for releases of a method; None for a method that has none."""
    return getattr(report_of(method), "sections", None)


def attack_sections(measures: Mapping[str, Any]) -> list[Section]:
    """What the attacks on the release came to; none where none was made."""
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
        f"**{each['succeeded']:,} of {each['attacked']:,} succeeded, which the guarantee excludes: do not hand this "
        "release over.**"
        if each["covered"]
        else f"**{each['succeeded']:,} of {each['attacked']:,} succeeded**, which the guarantee does not exclude (see "
        f"its limits): {each['remedy']}."
        for each in sorted(found, key=lambda each: bool(each["covered"]))
        if each["succeeded"]
    ]
    return [Section("Attacks that were tried", (table, *lines))]


def together_section(entry: Mapping[str, Any] | None, version: int = 1) -> Section:
    """What the register compared the release with before it was published; without one, that nobody counts. Before
    that, which version of its line it joins."""
    title = "Together with earlier releases"
    line = entry["facts"]["line"] if entry is not None else None
    lines = version_lines(version, line)
    if entry is None:
        return Section(title, (*lines, f"**Not counted:** {NOBODY_COUNTS}."))
    facts, compared = entry["facts"], entry["compared"]
    named = f"The register counts this release as `{facts['id']}`"
    if not compared:
        none = f"{named}. There is no earlier release that its recipient may put beside it."
        return Section(title, (*lines, none))
    table = table_of(
        "Earlier releases, and the rule that allows both",
        compared,
        ("release", "id", str),
        ("recipient", "recipient", number),
        ("common patients", "common", number),
        ("only there", "only_there", number),
        ("only here", "only_here", number),
        ("rule", "rule", str),
        ("fewest candidates", "bound.fewest", number),
        ("patients below k", "bound.below", number),
        ("told for certain", "bound.certain", number),
    )
    reason = (f"Reason given by {facts['by']}: {facts['reason']}",) if facts["reason"] else ()
    sentences = dict.fromkeys(f"`{each['rule']}`: {each['sentence']}" for each in compared)
    attacks = dict.fromkeys(f"Measured: {each['bound']['attack']}" for each in compared if each["bound"])
    return Section(title, (*lines, f"{named}.", table, Notes((*sentences, *attacks)), *reason))


def version_lines(version: int, line: str | None) -> tuple[str, ...]:
    """What the report of a batch says of the version that it joins; nothing of a first version."""
    if version == 1:
        return ()
    named = "the line" if line is None else f"the line `{line}`"
    told = (
        f"This is what joins version {version} of {named}: the other sections are about the new records. All rows of "
        f"version {version - 1} stay. The version was published after all of its batches, and what it adds to version "
        f"{version - 1}, had passed verification; `leeward verify VERSION{version} --earlier VERSION{version - 1}` "
        "repeats it."
    )
    return (told,)


def risk_sections(release: Release, measures: Mapping[str, Any]) -> list[Section]:
    """The risk measured, and reported thresholds beside the guarantee's maximum; none where it bounds none."""
    found = measures.get("reidentification")
    lines, rows = measured_lines(found), threshold_rows(release.guarantee, found)
    if not lines and not rows:
        return []
    columns = [
        "threshold",
        "number",
        "maximum",
        "patients above, measured",
        "rule, and who reports the number",
    ]
    shown = [0, 1, 2, 3, 4] if found else [0, 1, 2, 4]  # of what was not measured a column of dashes
    table = Table(
        "Published thresholds; which one applies is for people to decide",
        tuple(columns[place] for place in shown),
        tuple(tuple(row[place] for place in shown) for row in rows),
        False,
    )
    return [Section("Risk of re-identification, measured", (*lines, *((table,) if rows else ())))]
