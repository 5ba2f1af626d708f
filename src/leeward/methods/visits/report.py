"""The report on a release of visits: shared visits, retention of codes, and survival of associations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.methods import demographics_report, phewas_report
from leeward.release import Release
from leeward.report import charts
from leeward.report.sections import (
    Chart,
    Figures,
    Notes,
    Section,
    Table,
    Tile,
    Tiles,
    number,
    percent,
    table_of,
)
from leeward.report.summary import Cost, Costs, codes_gone, cost_of_share, share

FEW_DIAGNOSES, FEW_CODES = 0.5, 0.25
"""Shares of diagnoses and of codes below which little is left."""


def sections(release: Release, measures: Figures, verification: Figures) -> list[Section]:
    kept, run = measures.get("retention"), measures.get("method") or {}
    found = [
        glance(release, kept, run),
        membership(release, run.get("shared_by"), measures["source"]["patients"]),
        risk(measures.get("risk")),
        retention(kept, run.get("pairs")),
        demographics_report.section(release, measures),
        *phewas_report.sections(measures.get("phewas")),
        plain_words(release),
    ]
    return [section for section in found if section is not None]


def glance(release: Release, kept: Figures | None, run: Figures) -> Section:
    shared = {
        "visit": "patients share the exact set of every released visit",
        "containment": "patients have all codes of every released visit in their record",
        "codes": f"patients share any {release.guarantee.get('m')} codes that a visit shows",
        "code": "patients have every released code",
    }[str(release.parameters["level"])]
    of = " of the population" if release.parameters.get("extract") else ""
    inside = run.get("shared_by")
    tiles = []
    if inside and inside["few"]:
        label = f"of this cohort's visits have a set that fewer than {inside['k']} members share"
        tiles.append(Tile(percent(inside["few_share"]), label, "membership must stay secret", tone="warn"))
    tiles.append(Tile(f"≥ {release.guarantee['k']}", shared + of, tone="good"))
    if kept:
        dc, cc = kept["dc"], kept["cc"]
        tiles += [
            Tile(percent(dc["released_local"]), "of diagnoses kept (DC)", "distinct (patient, code) pairs"),
            Tile(
                percent(cc["released_local"]),
                "of codes still represented (CC)",
                f"{cc['released']:,} of {cc['original']:,}",
            ),
        ]
    if run.get("emptied_visits") is not None:
        share = run["emptied_visits"] / max(1, run["visits"])
        count = f"{run['emptied_visits']:,} of {run['visits']:,}"
        tiles.append(Tile(percent(share), "of visits lost all their codes", count))
    return Section("At a glance", (Tiles(tuple(tiles)),))


def membership(release: Release, shared: Figures | None, patients: int) -> Section | None:
    """For a cohort drawn from a master: numbers that share a visit in the master and in the cohort."""
    if not shared:
        return None
    few, alone = (f"{shared[name]:,} ({percent(shared[f'{name}_share'])})" for name in ("few", "alone"))
    whole = f"{shared['members_alone_population']:,} of this cohort"
    rows = [
        ("people", shared["population"], patients),
        ("fewest people who share a visit's set", shared["population_smallest"], shared["smallest"]),
        (f"visits whose set fewer than {shared['k']} share", 0, few),
        ("visits whose set only one person has", 0, alone),
        ("people with a combination of visits that nobody else has", whole, shared["members_alone"]),
    ]
    if shared.get("few_in_class") is not None:
        classes = shared["population_smallest_class"], shared["smallest_class"]
        rows += [
            ("fewest people with the same released demographics", *classes),
            (f"people whose released demographics fewer than {shared['k']} have", 0, shared["few_in_class"]),
        ]
    reason = release.parameters.get("membership_is_secret")
    stated = f" The custodian states why membership is secret: “{reason}”" if reason else ""
    table = table_of(
        "Who shares a visit's set of codes",
        [{"label": label, "population": population, "cohort": cohort} for label, population, cohort in rows],
        ("", "label", str),
        ("in the population", "population", number),
        ("in this cohort", "cohort", number),
    )
    return Section(
        "If membership in the cohort is known",
        (
            (
                "The guarantee is about the population: an attacker who knows that somebody is a patient finds at "
                f"least {shared['k']} candidates. **An attacker who knows that the person is in this cohort finds "
                f"fewer:** {percent(shared['few_share'])} of its visits have a set that fewer than {shared['k']} "
                "members share. "
                "Where membership is public, or follows from published inclusion criteria, anonymize the cohort itself."
                f"{stated}"
            ),
            table,
        ),
    )


def risk(found: Figures | None) -> Section | None:
    if not found:
        return None
    before, after, k = found["before"], found["after"], found["k"]
    colors = {"Original data": charts.VERMILION, "This release": charts.BLUE}
    bars = [
        (name, share, data)
        for name, shares in (
            (f"fewer than {k} patients", (before["few_share"], after["few_share"])),
            ("one patient", (before["alone_share"], after["alone_share"])),
        )
        for data, share in zip(colors, shares, strict=True)
    ]
    chart = Chart(
        "Visits whose exact set of codes points at few patients",
        f"In the original data {percent(before['few_share'])} of the visits have a set that fewer than {k} patients "
        f"share; in the release {percent(after['few_share'])}.",
        charts.bars_by_group(
            bars,
            x_title="patients who have exactly the visit's set of codes",
            y_title="share of the visits",
            colors=colors,
        ),
        f"{percent(before['people_few_share'])} of the patients have at least one such visit in the original data.",
    )
    rows = (
        ("visits", number(before["visits"]), number(after["visits"])),
        ("distinct sets", number(before["sets"]), number(after["sets"])),
        (f"visits with a set of fewer than {k} patients", number(before["few"]), number(after["few"])),
        ("visits with a set of one patient", number(before["alone"]), number(after["alone"])),
    )
    return Section("Risk before and after", (chart, Table("In numbers", ("", "original", "release"), rows)))


def retention(kept: Figures | None, pairs: Figures | None) -> Section | None:
    """DC and CC, as Tables 1 to 3 of the paper."""
    if not kept:
        return None
    parts: list[Any] = [
        share_table("Diagnosis count (DC): distinct pairs of patient and code", kept["dc"]),
        share_table("Code count (CC)", kept["cc"]),
    ]
    if pairs:
        total = max(1, pairs["original"])
        text = f"Of {total:,} (visit, code) pairs {percent(pairs['exact'] / total)} are released as they were"
        text += f", {percent(pairs['merged'] / total)} inside a generalized code" if pairs["merged"] else ""
        text += f", {percent(pairs['above'] / total)} as a node of the hierarchy" if pairs["above"] else ""
        parts.append(text + ".")
    return Section("What was kept", tuple(parts))


def share_table(title: str, of: Figures) -> Table:
    """A count with its shares of these patients' count and, for an extract, of the population's."""
    rows = (
        ("original", "original"),
        ("released, generalized codes included", "released"),
        ("released as single codes", "ungeneralized"),
        ("if rare codes had only been suppressed", "suppression_only"),
    )
    shares = {"share": "local"}
    if of.get("original_population") is not None:
        shares = {"of the population's": "population", "of these patients": "local"}
    return Table(
        title,
        ("", "count", *shares),
        tuple(
            (
                label,
                number(of[name]),
                *(percent(of.get(f"{name}_{of_whom}", 1.0), 2) for of_whom in shares.values()),
            )
            for label, name in rows
        ),
    )


def plain_words(release: Release) -> Section:
    merged = "per patient" if release.parameters.get("merge_visits") else "per visit"
    k, population = release.guarantee["k"], release.parameters.get("population")
    if release.parameters["level"] == "code":
        left = "Whoever knows two codes of a person may find that person: only single codes are protected."
    elif release.parameters["level"] == "codes":
        m = release.guarantee["m"]
        left = f"Whoever knows up to {m} codes of one visit of a person finds none or at least {k} patients with them."
    elif population is None:
        left = f"Whoever knows one visit of a person completely is left with at least {k} patients."
    else:
        left = (
            f"Whoever knows one visit of a person completely is left with at least {k} patients of the "
            f"{population:,} it was drawn from; whoever also knows that the person is in this cohort, with fewer."
        )
    notes = (
        f"The release lists sets of codes {merged}, without dates, order or identifiers.",
        "Every code shown was recorded in that visit; codes were left out or generalized, never added.",
        left,
    )
    return Section("In plain words", (Notes(notes),))


def costs(release: Release, measures: Mapping[str, Any]) -> Costs:
    figures: list[Cost] = []
    retention, facts = measures.get("retention"), measures.get("method", {})
    if retention:
        dc, cc = retention["dc"], retention["cc"]
        figures += [
            codes_gone(cc["original"] - cc["released"], cc["original"], "codes are in no released visit"),
            cost_of_share(
                dc["released_local"], "of the diagnoses (patient and code) are kept", warn=0.9, bad=0.5
            ),
        ]
    if facts.get("emptied_visits") is not None:
        emptied = facts["emptied_visits"] / max(1, facts["visits"])
        figures.append(share(emptied, "of the visits lost all their codes", warn=0.05, bad=0.25))
    return Costs(tuple(figures), little_left(retention, release.parameters))


def little_left(retention: Mapping[str, Any] | None, parameters: Mapping[str, Any]) -> str:
    """A sentence where most diagnoses or codes are gone."""
    if not retention:
        return ""
    dc, cc = retention["dc"]["released_local"], retention["cc"]
    if dc >= FEW_DIAGNOSES and cc["released_local"] >= FEW_CODES:
        return ""
    deletes = parameters.get("enforce") == "delete" and parameters.get("level") == "visit"
    other = "`--enforce generalize`, " if deletes else ""
    return (
        f"{number(cc['released'])} of {number(cc['original'])} codes are left, and {percent(dc)} of the diagnoses; "
        f"try {other}codes of fewer digits, or `leeward disassociate` where visits are not needed."
    )
