"""Report on generalized records: fate of the codes, errors of counts, risk before release."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from leeward.methods import demographics_report
from leeward.release import Release
from leeward.report import charts
from leeward.report.codes import group_errors, names_of_release, risk_table, worst_groups
from leeward.report.sections import (
    Chart,
    Figures,
    Notes,
    Part,
    Section,
    Tile,
    Tiles,
    number,
    percent,
    table_of,
    words_section,
)
from leeward.report.summary import (
    Costs,
    codes_gone,
    counts_off,
    errors_of_pairs_and_triples,
    mean_errors,
    share,
)

USELESS = 0.5
"""The report warns where a smaller share of the codes is left."""

INTACT, GENERALIZED, SUPPRESSED = "intact", "generalized", "suppressed"
COLORS = {INTACT: charts.BLUE, GENERALIZED: charts.ORANGE, SUPPRESSED: charts.GREY}
LABELS_SHOWN = 10

NAMES = {
    "cba": "CBA: the merge that loses least",
    "ugaclip": "UGACLIP: the rarest code first",
    "coat": "COAT: the rarest code first, with a cap on suppression",
    "apriori": "Apriori: whole subtrees of the vocabulary",
    "mapping": "the mapping of an earlier release",
}


def sections(release: Release, measures: Figures, verification: Figures) -> list[Section]:
    codes, errors = measures.get("codes"), measures.get("are")
    found = [
        glance(release, codes, errors),
        fate(release, codes, measures.get("method", {})),
        risk(release, measures.get("risk")),
        counting(errors),
        policy(measures.get("mre"), names_of_release(release)),
        demographics_report.section(release, measures, int(release.guarantee.get("m", 0))),
        plain_words(release),
    ]
    return [section for section in found if section is not None]


def glance(release: Release, codes: Figures | None, errors: Figures | None) -> Section:
    k, m = release.guarantee["k"], release.guarantee.get("m")
    sets = f"every set of up to {m} released codes" if m else "every listed code set"
    tiles = [Tile(f"0 or ≥ {k}", f"records hold {sets}", tone="good")]
    if codes:
        of = codes["codes"]
        tiles.append(
            Tile(
                number(of["generalized"]),
                "codes merged with others",
                f"{codes['labels']:,} labels are released",
                "warn" if of["generalized"] else "good",
            )
        )
    if errors and errors["workloads"]:
        first = errors["workloads"][0]
        tiles.append(Tile(percent(first["are"]), "mean relative error of counts", first["label"], "plain"))
    return Section("At a glance", (Tiles(tuple(tiles)),))


def fate(release: Release, codes: Figures | None, facts: Figures) -> Section | None:
    """Shares of codes and occurrences that are intact, generalized, suppressed."""
    if codes is None:
        return None
    rows: list[dict[str, Any]] = [
        {"what": what, "share": codes[what][part] / max(1, codes[what]["total"]), "fate": part}
        for what in ("codes", "occurrences")
        for part in (INTACT, GENERALIZED, SUPPRESSED)
    ]
    text = "; ".join(f"{percent(row['share'])} {row['fate']}" for row in rows if row["what"] == "occurrences")
    chart = Chart(
        "Fate of the codes",
        f"Two horizontal bars, distinct codes and code occurrences. Of the occurrences: {text}.",
        charts.stacked_bars(
            rows, y="what", x="share", part="fate", x_title="share", colors=COLORS, share=True
        ),
        f"Of all code occurrences: {text}.",
    )
    found: list[Part] = [chart, Notes(fate_notes(release, facts))]
    if codes["largest_labels"]:
        table = table_of(
            "The largest labels",
            codes["largest_labels"][:LABELS_SHOWN],
            ("codes in the label", "members", number),
            ("patients who hold it", "records", number),
        )
        found.append(table)
    return Section("Fate of the codes", tuple(found))


def fate_notes(release: Release, facts: Figures) -> tuple[str, ...]:
    lines = [f"Algorithm: {NAMES[release.parameters['algorithm']]}."]
    if facts.get("records_emptied"):
        lines.append(
            f"**{facts['records_emptied']:,} patients** have no code left; their records stay, empty."
        )
    if "ncp" in facts:
        lines.append(
            f"Normalized certainty penalty: {facts['ncp']:.3f} (0: nothing generalized, 1: one label)."
        )
    utility = facts.get("utility", {})
    if utility.get("cap") is not None:
        kept = "kept" if not utility["over_cap"] else f"exceeded in {utility['over_cap']:,}"
        lines.append(f"Cap on suppressed codes of a constraint, {percent(utility['cap'])}: {kept}.")
    return tuple(lines)


def risk(release: Release, found: Figures | None) -> Section | None:
    if not found or not found["by_m"]:
        return None
    k = release.guarantee["k"]
    caption = f"Original data: patients with a set of codes that fewer than {k} patients share"
    table = risk_table(caption, found["by_m"], k)
    m = release.guarantee.get("m")
    after = (
        f"In the release at least {k:,} records fit any {m} released codes, or none does."
        if m
        else "The release protects the listed code sets only; attackers may know others of the table."
    )
    return Section("Risk before and after", (table, after))


def counting(errors: Figures | None) -> Section | None:
    if not errors or not errors["workloads"]:
        return None
    precise = partial(percent, digits=2)
    table = table_of(
        "Average relative error (ARE) of estimated counts",
        errors["workloads"],
        ("code sets asked for", "label", str),
        ("queries", "queries", number),
        ("mean error", "are", precise),
        ("on released codes", "kept.queries", number),
        ("mean error of these", "kept.are", precise),
        ("true count 0, left out", "skipped", number),
    )
    text = (
        "A recipient estimates how many patients have a set of codes together: the records that hold the codes' "
        "labels, times the probability that the labels mean these codes. A suppressed code is estimated as 0."
    )
    return Section("What it cost: counts of code sets", (text, table, READINGS[errors["reading"]]))


READINGS = {
    "subset": "A generalized code is read as any non-empty set of its members, all equally likely.",
    "share": "A generalized code is read as one of its members, all equally likely.",
}
"""How the estimates read a generalized code."""


def policy(found: Figures | None, names: Mapping[str, str]) -> Section | None:
    """Errors of counts of the utility policy's code groups."""
    if not found or not found["constraints"]:
        return None
    chart = group_errors(
        found["constraints"],
        found["within_5_percent"],
        f"{percent(found['within_5_percent'])} of the groups are within ±5 % (shaded). Losses here are "
        f"suppressed codes: codes merged inside their group are still counted in full.",
    )
    intro = "A patient matches a code group by having at least one of its codes."
    return Section(
        "What it cost: the utility policy", (intro, chart, worst_groups(found["constraints"], names))
    )


def plain_words(release: Release) -> Section:
    k, m = release.guarantee["k"], release.guarantee.get("m")
    knows = f"up to **{m} codes** of a patient" if m else "one of the **listed code sets** of a patient"
    return words_section(
        f"Somebody knows {knows} and holds this release. At least **{k} records** fit what they know, or the codes "
        "they know were removed and reveal nothing."
    )


def costs(release: Release, measures: Mapping[str, Any]) -> Costs:
    codes = measures.get("codes")
    if not codes:
        return Costs(errors_of_pairs_and_triples(measures))
    fate, occurrences = codes["codes"], codes["occurrences"]
    classes = bool(release.demographics)
    figures = [
        codes_gone(
            fate["suppressed"],
            fate["total"],
            "codes suppressed" + (", each counted in every class that has it" if classes else ""),
        ),
        share(
            (occurrences["suppressed"] + occurrences["generalized"]) / max(1, occurrences["total"]),
            "of the codes' occurrences suppressed or generalized",
            warn=0.05,
            bad=0.5,
        ),
    ]
    errors = mean_errors(measures)
    if 2 in errors:
        figures.append(counts_off(errors[2], "mean error of counts of pairs of codes"))
    elif "frequent" in errors:
        figures.append(counts_off(errors["frequent"], "mean error of counts of frequent sets of codes"))
    return Costs(tuple(figures), little_left(fate, occurrences, " of the classes" if classes else ""))


def little_left(fate: Mapping[str, int], occurrences: Mapping[str, int], beside: str = "") -> str:
    """Sentence if most codes are suppressed, else empty; `beside` follows the number of codes."""
    left = fate["total"] - fate["suppressed"]
    if left >= USELESS * fate["total"]:
        return ""
    lost = occurrences["suppressed"] / max(1, occurrences["total"])
    return (
        f"{number(left)} of {number(fate['total'])} codes{beside} are left, and {percent(1 - lost)} of the "
        "occurrences; try `leeward disassociate`, which suppresses no code, or a policy with larger groups of codes."
    )
