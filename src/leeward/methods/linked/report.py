"""The report on linked tables: what an attacker finds in each join before and after, and what each join cost."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from leeward.contracts.linked import ROWS
from leeward.methods import demographics_report
from leeward.release import Release
from leeward.report import charts
from leeward.report.sections import (
    Chart,
    Figures,
    Notes,
    Section,
    Tile,
    Tiles,
    number,
    percent,
    table_of,
    words_section,
)
from leeward.report.summary import Costs, codes_gone, counts_off, share

USELESS, FEW_CODES = 0.5, 0.25
"""Shares of pairs of a patient and a code, and of codes, below which little is left."""

BEFORE, AFTER = "Original data", "This release"
COLORS = {BEFORE: charts.VERMILION, AFTER: charts.BLUE}


def sections(release: Release, measures: Figures, verification: Figures) -> list[Section]:
    views, kept = measures.get("views"), measures.get("kept")
    found = [
        glance(release, views, kept),
        risk(release, views),
        cost(release, views),
        demographics_report.section(
            release,
            measures,
            2 if "patients+events+events" in release.parameters["views"] else 1,
            (views["lost"], views["lost_without"]) if views and "lost_without" in views else None,
        ),
        plain_words(release),
    ]
    return [section for section in found if section is not None]


def glance(release: Release, views: Figures | None, kept: Figures | None) -> Section:
    tiles = [Tile(f"≥ {release.guarantee['k']}", "patients share every row of every view", tone="good")]
    if views:
        worst = max(views["views"], key=lambda each: each["at_risk"])
        tiles.append(
            Tile(
                f"{number(worst['at_risk'])} → {number(worst['after'])}",
                f"patients whose {describe_knowledge(release, worst['view'])} fewer than {views['k']} share",
                f"of {number(views['patients'])}, before and after",
                "good",
            )
        )
    if kept:
        share = kept["released"] / max(1, kept["pairs"])
        tone = "good" if share >= 0.9 else "warn" if share >= 0.5 else "bad"
        count = f"{kept['released']:,} of {kept['pairs']:,}"
        tiles.append(Tile(percent(share), "of the codes of patients are released", count, tone))
    return Section("At a glance", (Tiles(tuple(tiles)),))


def describe_knowledge(release: Release, view: str) -> str:
    return ("exact demographics and " if release.demographics else "") + ROWS[view]


def risk(release: Release, views: Figures | None) -> Section | None:
    if views is None:
        return None
    n = max(1, views["patients"])
    bars = [
        (each["view"], count / n, data)
        for each in views["views"]
        for data, count in ((BEFORE, each["at_risk"]), (AFTER, each["after"]))
    ]
    said = "; ".join(f"{each['view']}: {percent(each['at_risk'] / n)}" for each in views["views"])
    chart = Chart(
        f"Patients with a joined row that fewer than {views['k']} patients share",
        f"Two bars a join, before and after. Before: {said}. After: {number(sum(e['after'] for e in views['views']))}.",
        charts.bars_by_group(
            bars,
            x_title="join that the attacker can make",
            y_title="share of the patients",
            colors=COLORS,
        ),
    )
    table = table_of(
        f"Patients singled out by a joined row, of {views['patients']:,} patients",
        views["views"],
        ("known of a patient", "view", partial(describe_knowledge, release)),
        ("alone", "alone", number),
        (
            f"among fewer than {views['k']}",
            "at_risk",
            lambda count: f"{number(count)} ({percent(count / n)})",
        ),
        ("in the release", "after", number),
    )
    text = (
        "k-anonymity of each table says nothing about their join. Each line is an attacker who can make one "
        "join and knows one joined row of a patient."
    )
    return Section("Risk before and after, by join", (text, chart, table))


def cost(release: Release, views: Figures | None) -> Section | None:
    if views is None:
        return None
    table = table_of(
        "Rows of each join, and what its protection costs",
        views["views"],
        ("join", "view", str),
        ("rows in the source", "rows", number),
        ("released", "released", number),
        ("share", "", lambda each: percent(each["released"] / max(1, each["rows"]))),
        ("events suppressed for it alone", "lost", percent),
    )
    lines = [f"All views together: **{percent(views['lost'], 1)}** of the events are suppressed."]
    if len(views["views"]) > 1:
        lines.append("Suppression for one join often serves another, so the last column does not add up.")
    return Section("What it cost, by join", (table, Notes(tuple(lines))))


def plain_words(release: Release) -> Section:
    ways = " or ".join(
        dict.fromkeys(describe_knowledge(release, view) for view in release.parameters["views"])
    )
    return words_section(
        f"Somebody knows {ways} of a patient and holds these tables. At least **{release.guarantee['k']} patients** "
        "fit, or what they know was left out and reveals nothing. One number joins the patient's rows: "
        "whoever finds the patient in another way reads them all."
    )


def costs(release: Release, measures: Mapping[str, Any]) -> Costs:
    kept, views = measures.get("kept"), measures.get("views")
    if kept is None:
        return Costs()
    gone = kept["codes_lost"] / max(1, kept["codes"])
    figures = [codes_gone(kept["codes_lost"], kept["codes"], "codes are in no released table")]
    if views:
        figures.append(share(views["lost"], "of the events are suppressed", warn=0.05, bad=0.5))
    figures.append(counts_off(kept["error"], "mean error of the number of patients with a code"))
    left = kept["released"] / max(1, kept["pairs"])
    if left >= USELESS and 1 - gone >= FEW_CODES:
        return Costs(tuple(figures))
    return Costs(
        tuple(figures),
        f"{number(kept['codes'] - kept['codes_lost'])} of {number(kept['codes'])} codes are left, and {percent(left)} "
        "of the codes of patients; try fewer views, coarser demographics (`keep`), or `leeward disassociate`, which "
        "suppresses no code.",
    )
