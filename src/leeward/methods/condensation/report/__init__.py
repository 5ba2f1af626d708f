"""The report on a condensed or k-anonymous table: the recipient's models, survival, marginals, attacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.methods.condensation.measures import figures
from leeward.methods.condensation.report.drawings import AFTER, BEFORE, curve, forest, heat
from leeward.release import Release
from leeward.report.sections import Chart, Notes, Part, Section, Table, Tile, Tiles, number, percent, table_of

LEVELS_SHOWN = 60
SIDES = ("before", "after")

NAMES = {
    "balanced": "balanced: halving along principal axes, synthesis, each group's own values",
    "improved": "improved condensation (Gal et al. 2014)",
    "condensation": "condensation (Aggarwal and Yu 2004)",
    "tfrp": "two fixed reference points (Chang et al. 2007)",
    "mondrian": "k-anonymity by median cuts (Mondrian)",
}

Figures = Mapping[str, Any]


def sections(release: Release, measures: Figures, verification: Figures) -> list[Section]:
    """The sections of the report that are this method's own."""
    fitted = figures.Models.of(measures, "models")
    closest = measures.get("closest")
    curves = tuple(figures.Curve.from_json(each) for each in measures.get("survival") or ())
    found = [
        glance(release, closest),
        models(fitted),
        survival(curves),
        marginals(measures.get("marginals")),
        correlations(measures.get("correlations")),
        attacks(measures),
        groups(measures),
    ]
    return [section for section in found if section is not None]


def glance(release: Release, closest: Figures | None = None) -> Section:
    """What a privacy board and a recipient ask for beside the summary."""
    k = release.guarantee["k"]
    tiles = [Tile(f"≥ {k:,}", "patients behind every released row", tone="good")]
    if closest is not None and closest["released"]["zero"] > closest["original"]["zero"]:
        tiles.append(
            Tile(percent(closest["released"]["zero"]), "of the rows equal an original row", tone="warn")
        )
    parts: list[Part] = []
    exact = release.guarantee.get("facts", {}).get("exact", ())
    if exact:
        tiles.append(Tile("exact", "survival times are the original ones", "see the limits below", "warn"))
        parts.append(
            f"**Exact survival times** ({', '.join(exact)}): somebody who knows a patient's exact time finds it in the "
            "release. `coarsen_time` publishes group medians instead."
        )
    return Section("At a glance", (Tiles(tuple(tiles)), *parts))


def models(fitted: figures.Models | None) -> Section | None:
    """Coefficients before and after, and the paper's three metrics beside the bootstrap's."""
    if fitted is None:
        return None
    rows = []
    for model in fitted.models:
        failed = model.did_not_converge
        rows.append((model.title, *_metrics(model.metrics), f"{failed.released:,}"))
        if failed.bootstrap is not None:
            rows.append(("bootstrap of the original", *_metrics(model.bootstrap), f"{failed.bootstrap:,}"))
    table = Table(
        f"Mean over {fitted.repetitions} repetitions"
        + (f"; bootstrap: {fitted.bootstrap} resamples" if fitted.bootstrap else ""),
        (
            "model",
            "changed significance",
            "changed direction",
            "outside 95 %",
            "outside, significant ones",
            "fits that did not converge",
        ),
        tuple(rows),
    )
    parts: list[Part] = [
        (
            "The recipient's models were fitted to the original and to the release. A bootstrap resample of the "
            "original is what chance alone does to the same figures: no method need beat it. Fits that did not "
            "converge are counted apart and are in no mean."
        ),
        table,
    ]
    parts += [
        f"**{model.title}: the fit to the original did not converge** (complete separation, or a covariate that "
        "almost determines the outcome), so nothing can be compared."
        for model in fitted.models
        if model.did_not_converge.original
    ]
    for model in fitted.models:
        names = len(model.coefficients)
        parts.append(
            Chart(
                model.title,
                f"Forest plot of {names} coefficients with their 95 % intervals, original and released.",
                forest(model.coefficients),
                "Points: coefficients (Cox: log hazard ratios; numbers: per standard deviation). "
                "Lines: 95 % intervals.",
            )
        )
    return Section("The recipient's models", tuple(parts))


def _metrics(found: figures.Metrics | None) -> tuple[str, ...]:
    if found is None:
        return ("–",) * 4
    return tuple(
        percent(each)
        for each in (found.significance, found.direction, found.outside, found.outside_significant)
    )


def survival(curves: Sequence[figures.Curve]) -> Section | None:
    """Kaplan–Meier curves before and after."""
    if not curves:
        return None
    parts: list[Part] = []
    for each in curves:
        rows = [
            {"at": at, "share": share, "table": label}
            for shares, label in ((each.before, BEFORE), (each.after, AFTER))
            for at, share in zip(each.at, shares, strict=True)
        ]
        gap = max(abs(a - b) for a, b in zip(each.before, each.after, strict=True))
        name = each.time if each.event is None else f"{each.time}, {each.event}"
        name += "" if each.event_value is None else f" = {each.event_value}"
        if gap == 0:
            parts.append(
                f"{name}: the curves are the same, as times and events of a stratum are released as they are."
            )
            continue
        parts.append(
            Chart(
                name,
                f"Kaplan–Meier curves of original and release; they differ by at most {percent(gap)}.",
                curve(rows, each.time),
                f"The curves differ by at most {percent(gap)}.",
            )
        )
    return Section("Survival before and after", tuple(parts))


def marginals(found: Figures | None) -> Section | None:
    """Means, medians and level frequencies."""
    if found is None:
        return None
    keys = ["mean", "median"]
    if any(row[side]["missing"] for row in found["numbers"] for side in SIDES):
        keys.append("missing")
    numbers = Table(
        "Numbers",
        ("column", *(head for key in keys for head in (f"{key} before", "after"))),
        tuple(
            (row["column"], *(plainly(row[side][key]) for key in keys for side in SIDES))
            for row in found["numbers"]
        ),
    )
    levels = Table(
        f"Levels (the first {LEVELS_SHOWN})" if len(found["levels"]) > LEVELS_SHOWN else "Levels",
        ("level", "rows before", "after"),
        tuple(
            (f"{row['column']}: {row['level']}", number(row["before"]), number(row["after"]))
            for row in found["levels"][:LEVELS_SHOWN]
        ),
    )
    parts: list[Part] = [table for table in (numbers, levels) if table.rows]
    return Section("Columns one by one", tuple(parts)) if parts else None


def plainly(value: Any) -> str:
    """A column's figure; four digits have no comma, as they may be a year."""
    written = number(value)
    return written.replace(",", "") if len(written) == len("1,988") else written


def correlations(found: Figures | None) -> Section | None:
    """Heat maps of the correlations."""
    if found is None or len(found["columns"]) < 2:
        return None
    gap = f"{found['mean_difference']:.3f}"
    largest = f"{found['largest_difference']:.3f}"
    return Section(
        "Correlations before and after",
        (
            Chart(
                "Pearson correlations",
                f"Two heat maps of correlations; they differ by {gap} on average and by at most {largest}.",
                heat(found),
                f"Mean absolute difference {gap}, largest {largest}.",
            ),
        ),
    )


def attacks(measures: Figures) -> Section | None:
    """What an attacker gets, beside chance."""
    times = figures.ExactTimes.of(measures, "exact_times")
    others, coarse, closest = (measures.get(name) for name in ("other_times", "coarse_times", "closest"))
    membership, linkage, privacy = (measures.get(name) for name in ("membership", "linkage", "privacy"))
    rows: list[tuple[str, ...]] = []
    tried: list[Part] = []
    if times:
        rows.append(
            (
                f"exact '{times.time}' guessed from the nearest row",
                percent(times.right),
                percent(times.chance),
            )
        )
        tried.append(
            "Tried: somebody who knows all columns but the times guesses the time of the nearest row of the stratum: "
            f"right for {percent(times.right)} of {times.asked:,} patients; 1/k is {percent(1 / times.k)}."
            + (
                f" A random row of the patient's own group: {percent(times.in_group)}."
                if times.in_group
                else ""
            )
            + (" **This is above: choose a larger k or `coarsen_time`.**" if times.above else "")
        )
    if others:
        tried.append(
            f"Tried: somebody who knows a patient's exact '{others['told']}' reads the exact '{others['read']}' "
            f"beside it: right for {percent(others['right'])} of {others['asked']:,} patients; 1/k is "
            f"{percent(1 / others['k'])}."
        )
    if coarse:
        tried.append(
            f"Tried: the pair of stratum and coarse time names one group alone for {percent(coarse['one_group'])} of "
            f"{coarse['rows']:,} rows; `coarsen_groups` lets more groups share a time."
        )
    if membership:
        rows.append(("inference of membership (area under the curve)", f"{membership['auc']:.2f}", "0.50"))
        tried.append(
            "Tried: a table made of half the source, and the distance of a whole row to the nearest of it: "
            f"{percent(membership['caught'])} of those who are in it are named while 1 % of the others are."
        )
    if linkage:
        rows.append(
            (
                "nearest released row is from one's own group",
                percent(linkage["own_group"]),
                percent(linkage["chance"], 2),
            )
        )
    if closest:
        released, original = closest["released"], closest["original"]
        rows += [
            (
                "distance to the closest original row, median",
                number(released["median"]),
                number(original["median"]),
            ),
            ("the same, 5 % quantile", number(released["5%"]), number(original["5%"])),
            ("rows that equal an original row", percent(released["zero"]), percent(original["zero"])),
        ]
    if not rows:
        return None
    parts: list[Part] = [
        Table("Attacks on the release", ("", "release", "chance"), tuple(rows)),
        (
            "Chance is a random released row for times and groups, and for distances what one original row is to the "
            "other original ones. To find one's group is to find at least k patients."
        ),
        *tried,
    ]
    if privacy:
        parts.append(
            table_of(
                f"Conditional privacy Π(original | released): {privacy['bins']} bins, pairs {privacy['pairing']}, mean "
                f"of {privacy['permutations']}",
                privacy["columns"],
                ("column", "column", str),
                ("Π", "privacy", number),
                ("width of a bin", "bin_width", number),
                (
                    "Π in bins",
                    "",
                    lambda each: number(each["privacy"] / each["bin_width"] if each["bin_width"] else None),
                ),
            )
        )
        parts.append(
            "Π is the range of a column, in its own unit, in which the original value stays uncertain for somebody who "
            "knows the released one: the larger, the less is given away."
        )
    return Section("Attacks", tuple(parts))


def groups(measures: Figures) -> Section | None:
    """The groups, for the custodian."""
    facts = measures.get("method")
    if not facts or "groups" not in facts:
        return None
    lines = [
        f"Algorithm: {NAMES.get(facts['algorithm'], facts['algorithm'])}.",
        f"{facts['groups']:,} groups of {facts['least']:,} to {facts['most']:,} patients.",
    ]
    if facts.get("parts", 1) > 1:
        lines.append(
            f"{facts['strata']:,} strata are never mixed"
            + (
                f", nor the outcomes of the plan's logistic models ({facts['parts']:,} parts)."
                if facts["parts"] > facts["strata"]
                else "."
            )
        )
    squares = facts.get("sum_of_squares")
    if squares:
        lines.append(
            f"Within-group sum of squares (weighted, standardized): {number(squares['after_moving'])}"
            + (
                f"; {number(squares['before_moving'])} before {facts['rows_moved']:,} rows were moved to fill groups."
                if facts["rows_moved"]
                else "; no row was moved."
            )
        )
    if facts.get("withheld_rows"):
        lines.append(f"**{facts['withheld_rows']:,} rows** in strata below k were withheld.")
    if facts.get("withheld_levels"):
        total = sum(facts["withheld_levels"].values())
        lines.append(f"**{total:,} levels** that fewer than k patients have were withheld.")
    pilot = facts.get("pilot")
    parts: list[Part] = [Notes(tuple(lines))]
    relations = facts.get("relations", {})
    rows = [(text, "confirmed", "0") for text in relations.get("confirmed", ())]
    rows += [
        (each["relation"], "not confirmed", number(each["broken"])) for each in relations.get("proposed", ())
    ]
    if rows:
        parts.append(
            Table(
                "Relations that every row of the source keeps",
                ("relation", "status", "released rows that break it"),
                tuple(rows),
            )
        )
    if pilot:
        parts.append(
            table_of(
                f"The pilot, on {pilot['rows']:,} rows (lower is better)",
                pilot["tried"],
                ("algorithm", "algorithm", str),
                ("weight", "weight", number),
                ("score", "score", lambda score: f"{score:.3f}"),
                ("fits that did not converge", "did_not_converge", number),
            )
        )
    return Section("How it was made", tuple(parts))
