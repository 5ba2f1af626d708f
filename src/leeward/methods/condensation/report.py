"""The report on a condensed or k-anonymous table: the recipient's models, survival, marginals, attacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.release import Release
from leeward.report import charts
from leeward.report.sections import Chart, Notes, Part, Section, Table, Tile, Tiles, number, percent, table_of
from leeward.report.summary import Cost, Costs, Tone, share

USELESS = 0.5
"""Share of coefficients outside their 95 % interval or lost, in the worst model, above which little is left."""

OFF = (0.05, 0.2)
"""Mean differences of correlations that are worth a warning, and that are bad."""

LEVELS_SHOWN = 60
SIDES = ("before", "after")
BEFORE, AFTER = "original", "released"
COLORS = {BEFORE: charts.GREY, AFTER: charts.BLUE}
SHORT_LABEL = 40
METRICS = ("significance", "direction", "outside", "outside_significant", "lost")

NAMES = {
    "balanced": "balanced: halving along principal axes, synthesis, each group's own values",
    "improved": "improved condensation (Gal et al. 2014)",
    "condensation": "condensation (Aggarwal and Yu 2004)",
    "tfrp": "two fixed reference points (Chang et al. 2007)",
    "mondrian": "k-anonymity by median cuts (Mondrian)",
}

Figures = Mapping[str, Any]


def sections(release: Release, measures: Figures, verification: Figures) -> list[Section]:
    found = [
        glance(release, measures.get("closest")),
        models(measures.get("models")),
        survival(measures.get("survival") or ()),
        marginals(measures.get("marginals")),
        correlations(measures.get("correlations")),
        any_use(measures),
        attacks(measures),
        groups(measures),
    ]
    return [section for section in found if section is not None]


def glance(release: Release, closest: Figures | None = None) -> Section:
    k = release.guarantee["k"]
    tiles = [Tile(f"≥ {k:,}", "patients behind every released row", tone="good")]
    if closest is not None and closest["released"]["zero"] > closest["original"]["zero"]:
        tiles.append(
            Tile(percent(closest["released"]["zero"]), "of the rows equal an original row", tone="warn")
        )
    parts: list[Part] = []
    if exact := release.guarantee.get("facts", {}).get("exact", ()):
        tiles.append(Tile("exact", "survival times are the original ones", "see the limits below", "warn"))
        parts.append(
            f"**Exact survival times** ({', '.join(exact)}): somebody who knows a patient's exact time finds it in the "
            "release. `coarsen_time` publishes group medians instead."
        )
    return Section("At a glance", (Tiles(tuple(tiles)), *parts))


def models(fitted: Figures | None) -> Section | None:
    if fitted is None:
        return None
    rows = []
    for model in fitted["models"]:
        failed = model["did_not_converge"]
        rows.append((model["title"], *_metrics(model["metrics"]), number(failed["released"])))
        if "bootstrap" in failed:
            shares = _metrics(model.get("bootstrap"))
            rows.append(("bootstrap of the original", *shares, number(failed["bootstrap"])))
    heads = (
        "model", "changed significance", "changed direction", "outside 95 %", "outside, significant ones",
        "cannot be estimated", "fits that did not converge",
    )  # fmt: skip
    resampled = f"; bootstrap: {fitted['bootstrap']} resamples" if fitted["bootstrap"] else ""
    table = Table(f"Mean over {fitted['repetitions']} repetitions{resampled}", heads, tuple(rows))
    parts: list[Part] = [
        (
            "The recipient's models were fitted to the original and to the release. A bootstrap resample of "
            "the original shows what chance alone does to the same figures; no method needs to beat "
            "it. Fits that did not converge are counted separately and excluded from means."
        ),
        table,
    ]
    parts += [
        f"**{model['title']}: the fit to the original did not converge** (complete separation, or a covariate that "
        "almost determines the outcome), so nothing can be compared."
        for model in fitted["models"]
        if model["did_not_converge"]["original"]
    ]
    parts += [
        Chart(
            model["title"],
            f"Forest plot of {len(model['coefficients'])} coefficients with their 95 % intervals, original and "
            "released.",
            forest(model["coefficients"]),
            "Points: coefficients (Cox: log hazard ratios; numbers: per standard deviation). Lines: 95 % intervals.",
        )
        for model in fitted["models"]
    ]
    return Section("The recipient's models", tuple(parts))


def _metrics(found: Figures | None) -> tuple[str, ...]:
    return tuple(percent(found.get(name) if found else None) for name in METRICS)


def forest(coefficients: Sequence[Figures]) -> str:
    labels, rows = [], []
    for each in coefficients:
        label = short(level_label(each["name"]))
        if each["spread"] != 1.0:  # a number's effect is drawn for a standard deviation
            label += f" (per {number(each['spread'])})"
        labels.append(label)
        for side, table in zip(SIDES, (BEFORE, AFTER), strict=True):
            value, low, high = (each[side][name] for name in ("coefficient", "low", "high"))
            if value is not None:
                ends = {"low": value if low is None else low, "high": value if high is None else high}
                drawn = {name: each["spread"] * end for name, end in {"value": value, **ends}.items()}
                rows.append({"name": label, "group": table, **drawn})
    return charts.intervals(rows, labels, x_title="coefficient", colors=COLORS)


def level_label(name: str) -> str:
    """A level as a person reads it: `size: <=20`, not `size=<=20`."""
    return name.replace("=", ": ", 1)


def short(name: str, most: int = SHORT_LABEL) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def survival(curves: Sequence[Figures]) -> Section | None:
    """Kaplan–Meier curves before and after; the released one is dashed so that both show where they agree."""
    if not curves:
        return None
    parts: list[Part] = []
    for each in curves:
        gap = max(abs(a - b) for a, b in zip(each["before"], each["after"], strict=True))
        name = each["time"] if each["event"] is None else f"{each['time']}, {each['event']}"
        name += "" if each["event_value"] is None else f" = {each['event_value']}"
        if gap == 0:
            parts.append(
                f"{name}: the curves are the same, because times and events of a stratum are released unchanged."
            )
            continue
        rows = [
            {"at": at, "share": share, "table": label}
            for side, label in zip(SIDES, (BEFORE, AFTER), strict=True)
            for at, share in zip(each["at"], each[side], strict=True)
        ]
        drawing = charts.steps(
            rows, x="at", y="share", group="table", x_title=each["time"], y_title="still without the event",
            colors=COLORS, dashes={AFTER: "6 3"},
        )  # fmt: skip
        differ = f"differ by at most {percent(gap)}."
        alt = f"Kaplan–Meier curves of original and release; they {differ}"
        parts.append(Chart(name, alt, drawing, f"The curves {differ}"))
    return Section("Survival before and after", tuple(parts))


def marginals(found: Figures | None) -> Section | None:
    if found is None:
        return None
    parts = tuple(each for each in (_numbers(found["numbers"]), _levels(found["levels"])) if each.rows)
    return Section("Columns one by one", parts) if parts else None


def _numbers(rows: Sequence[Figures]) -> Table:
    missing = any(row[side]["missing"] for row in rows for side in SIDES)
    keys = ("mean", "median", "missing") if missing else ("mean", "median")
    heads = ("column", *(head for key in keys for head in (f"{key} before", "after")))
    cells = ((row["column"], *(plainly(row[side][key]) for key in keys for side in SIDES)) for row in rows)
    return Table("Numbers", heads, tuple(cells))


def _levels(rows: Sequence[Figures]) -> Table:
    return table_of(
        f"Levels (the first {LEVELS_SHOWN})" if len(rows) > LEVELS_SHOWN else "Levels",
        rows[:LEVELS_SHOWN],
        ("level", "", lambda row: f"{row['column']}: {row['level']}"),
        ("rows before", "before", number),
        ("after", "after", number),
    )


def plainly(value: Any) -> str:
    """A column's figure; four digits have no comma, as they may be a year."""
    written = number(value)
    return written.replace(",", "") if len(written) == len("1,988") else written


def correlations(found: Figures | None) -> Section | None:
    if found is None or len(found["columns"]) < 2:
        return None
    gap, largest = (f"{found[name]:.3f}" for name in ("mean_difference", "largest_difference"))
    names = [short(level_label(name), 24) for name in found["columns"]]
    chart = Chart(
        "Pearson correlations",
        f"Two heat maps of correlations; they differ by {gap} on average and by at most {largest}.",
        charts.heat(names, {BEFORE: found["before"], AFTER: found["after"]}),
        f"Mean absolute difference {gap}, largest {largest}.",
    )
    return Section("Correlations before and after", (chart,))


def any_use(measures: Figures) -> Section | None:
    rows = []
    if classes := measures.get("discernibility"):
        name = "rows that agree with a row on all quasi-identifiers, mean (discernibility by rows)"
        rows.append((name, *(number(classes[side] / classes["rows"]) for side in SIDES)))
    if left := measures.get("generalization"):
        rows += [
            (
                "values that a row's group leaves open, of all (loss metric)",
                percent(0),
                percent(left["loss"]),
            ),
            ("the same, halvings of a column's values (height)", "0", f"{left['height']:.2f}"),
            (
                "combinations of values that a row may stand for (ambiguity)",
                "1",
                f"10^{left['ambiguity']:.1f}",
            ),
        ]
    if told := measures.get("mutual_information"):
        name = (
            f"bits that two columns tell of each other, mean; off by {told['mean_difference']:.3f} on average"
        )
        rows.append((name, *(f"{told[side]:.3f}" for side in SIDES)))
    if counts := measures.get("range_counts"):
        name = f"mean relative error of {counts['queries']:,} counts of patients by ranges of columns"
        rows.append((name, percent(0), percent(counts["are"])))
    for each in measures.get("prediction") or ():
        shown = ("–" if each[side] is None else f"{each[side]:.3f}" for side in SIDES)
        rows.append(
            (f"area under the curve (of numbers R²), patients not trained on: {each['title']}", *shown)
        )
    table = Table("What is kept for any use", ("", BEFORE, AFTER), tuple(rows))
    return Section("Other measures of utility", (table,)) if rows else None


Attack = tuple[list[tuple[str, str, str]], str]
"""Rows of the table of attacks; what was tried, in words."""


def attacks(measures: Figures) -> Section | None:
    found = [tell(measures[name]) for name, tell in ATTACKS.items() if measures.get(name)]
    rows = tuple(row for each, _ in found for row in each)
    if not rows:
        return None
    parts: list[Part] = [
        Table("Attacks on the release", ("", "release", "chance"), rows),
        (
            "For times and groups, chance is a random released row; for distances, it is the distance of an "
            "original row to the other original rows. Whoever finds a patient's group has found at least k patients."
        ),
        *(text for _, text in found if text),
    ]
    privacy = measures.get("privacy")
    if privacy:
        parts += [
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
            ),
            (
                "Π is the range of a column, in its own unit, in which the original value stays uncertain for somebody "
                "who knows the released one: the larger, the less is given away."
            ),
        ]
    return Section("Attacks", tuple(parts))


def _exact_times(times: Figures) -> Attack:
    in_group = times.get("in_group")
    text = (
        "Tried: somebody who knows all columns but the times guesses the time of the nearest row of the stratum: "
        f"right for {percent(times['right'])} of {times['asked']:,} patients; 1/k is {percent(1 / times['k'])}."
    )
    if in_group:
        text += f" A random row of the patient's own group: {percent(in_group)}."
    # Right more often than 1/k or a random row of the group, by two standard errors.
    allowed = max(1 / times["k"], in_group or 0.0)
    if times["right"] > allowed + 2 * (allowed * (1 - allowed) / times["asked"]) ** 0.5:
        text += " **This exceeds 1/k: choose a larger k or `coarsen_time`.**"
    name = f"exact '{times['time']}' guessed from the nearest row"
    return [(name, percent(times["right"]), percent(times["chance"]))], text


def _other_times(others: Figures) -> Attack:
    return [], (
        f"Tried: somebody who knows a patient's exact '{others['told']}' reads the exact '{others['read']}' "
        f"in the same row: right for {percent(others['right'])} of {others['asked']:,} patients; "
        f"1/k is {percent(1 / others['k'])}."
    )


def _coarse_times(coarse: Figures) -> Attack:
    return [], (
        f"Tried: the pair of stratum and coarse time identifies a single group for {percent(coarse['one_group'])} of "
        f"{coarse['rows']:,} rows; `coarsen_groups` lets more groups share a time."
    )


def _membership(membership: Figures) -> Attack:
    return [("inference of membership (area under the curve)", f"{membership['auc']:.2f}", "0.50")], (
        "Tried: a table made from half the source, and the distance of each patient's row to the nearest "
        f"row of it: {percent(membership['caught'])} of those in it are recognized, at a level where 1 % of "
        f"the others are."
    )


def _linkage(linkage: Figures) -> Attack:
    own, chance = percent(linkage["own_group"]), percent(linkage["chance"], 2)
    return [("nearest released row is from the patient's own group", own, chance)], ""


def _closest(closest: Figures) -> Attack:
    lines = (
        ("distance to the closest original row, median", "median", number),
        ("the same, 5 % quantile", "5%", number),
        ("rows that equal an original row", "zero", percent),
    )
    released, original = closest["released"], closest["original"]
    return [(name, shown(released[key]), shown(original[key])) for name, key, shown in lines], ""


ATTACKS = {
    "exact_times": _exact_times,
    "other_times": _other_times,
    "coarse_times": _coarse_times,
    "membership": _membership,
    "linkage": _linkage,
    "closest": _closest,
}


def groups(measures: Figures) -> Section | None:
    facts = measures.get("method") or {}
    if "groups" not in facts:
        return None
    strata, parted, moved = facts.get("strata", 0), facts.get("parts", 1), facts.get("rows_moved")
    outcomes = (
        f", nor the outcomes of the plan's logistic models ({parted:,} parts)" if parted > strata else ""
    )
    squares = facts.get("sum_of_squares") or dict.fromkeys(("before_moving", "after_moving"))
    filling = (
        f"{number(squares['before_moving'])} before {moved:,} rows were moved to fill groups" if moved else ""
    )
    withheld, levels = facts.get("withheld_rows") or 0, sum((facts.get("withheld_levels") or {}).values())
    lines = {
        f"Algorithm: {NAMES.get(facts['algorithm'], facts['algorithm'])}.": True,
        f"{facts['groups']:,} groups of {facts['least']:,} to {facts['most']:,} patients.": True,
        f"{strata:,} strata are never mixed{outcomes}.": parted > 1,
        f"Within-group sum of squares (weighted, standardized): {number(squares['after_moving'])}; "
        f"{filling or 'no row was moved'}.": squares["after_moving"] is not None,
        f"**{withheld:,} rows** in strata below k were withheld.": withheld,
        f"**{levels:,} levels** that fewer than k patients have were withheld.": levels,
    }
    shown = tuple(line for line, holds in lines.items() if holds)
    parts = (Notes(shown), *_relations(facts.get("relations", {})), *_pilot(facts.get("pilot")))
    return Section("How it was made", parts)


def _relations(found: Figures) -> list[Part]:
    rows = [(text, "confirmed", "0") for text in found.get("confirmed", ())]
    rows += [(text, "found, and kept", "0") for text in found.get("kept", ())]
    proposed = found.get("proposed", ())
    rows += [(each["relation"], "not kept", number(each["broken"])) for each in proposed]
    heads = ("relation", "status", "released rows that break it")
    return [Table("Relations that every row of the source keeps", heads, tuple(rows))] if rows else []


def _pilot(found: Figures | None) -> list[Part]:
    if not found:
        return []
    table = table_of(
        f"The pilot, on {found['rows']:,} rows (lower is better)",
        found["tried"],
        ("algorithm", "algorithm", str),
        ("weight", "weight", number),
        ("score", "score", lambda score: f"{score:.3f}"),
        ("fits that did not converge", "did_not_converge", number),
    )
    return [table]


def costs(release: Release, measures: Mapping[str, Any]) -> Costs:
    """The recipient's models in the worst case, else correlations; rows and levels that were withheld."""
    models = (measures.get("models") or {}).get("models", ())
    metrics = [model["metrics"] for model in models if model.get("metrics")]
    outside = max((each["outside"] for each in metrics), default=0.0)
    figures = (*_of_models(metrics, outside), *_of_correlations(measures.get("correlations")))
    useless = max((1 - (1 - each["outside"]) * (1 - each.get("lost", 0.0)) for each in metrics), default=0.0)
    return Costs((*figures, withheld(measures.get("method", {})))[:3], little_left(useless))


def _of_models(metrics: Sequence[Figures], outside: float) -> list[Cost]:
    if not metrics:
        return []
    changed = max(each["direction"] for each in metrics)
    worst = ", in the planned model that lost most" if len(metrics) > 1 else ", in the planned model"
    return [
        share(outside, f"of the coefficients left their 95 % interval{worst}", warn=0.05, bad=0.2),
        share(changed, f"of the significant coefficients changed direction{worst}", warn=0.0, bad=0.1),
    ]


def _of_correlations(together: Figures | None) -> list[Cost]:
    if not together or len(together["columns"]) < 2:
        return []
    off = together["mean_difference"]
    tone: Tone = "bad" if off > OFF[1] else "warn" if off > OFF[0] else "good"
    return [Cost(f"{off:.3f}", "mean difference of correlations between columns", tone)]


def withheld(facts: Mapping[str, Any]) -> Cost:
    rows = int(facts.get("withheld_rows") or 0)
    levels = sum((facts.get("withheld_levels") or {}).values())
    what = "rows withheld" + (f", and {number(levels)} rare levels" if levels else "")
    return Cost(number(rows), what, "warn" if rows or levels else "good")


def little_left(useless: float) -> str:
    if useless <= USELESS:
        return ""
    return (
        f"{percent(useless)} of the coefficients of a planned model left their 95 % interval or cannot be estimated; "
        "try a smaller k, fewer columns (`--drop`), or a shorter plan."
    )
