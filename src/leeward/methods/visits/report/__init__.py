"""The report on a release of visits: who shares a visit, what was kept, and whether associations survive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.release import Release
from leeward.report import charts
from leeward.report.sections import Chart, Notes, Section, Table, Tile, Tiles, number, percent

Figures = Mapping[str, Any]

RULES = {"p05": "p < 0.05", "bonferroni": "Bonferroni", "fdr": "false discovery rate 5 %"}


def sections(release: Release, measures: Figures, verification: Figures) -> list[Section]:
    """The sections of the report that are this method's own."""
    found = [
        glance(release, measures),
        membership(release, measures),
        risk(release, measures),
        retention(measures),
        *associations(measures),
        plain_words(release),
    ]
    return [section for section in found if section is not None]


def glance(release: Release, measures: Figures) -> Section:
    """The figures that a privacy board and a researcher ask for first."""
    shared = {
        "visit": "patients share the exact set of every released visit",
        "containment": "patients have all codes of every released visit in their record",
        "codes": f"patients share any {release.guarantee.get('m')} codes that a visit shows",
        "code": "patients have every released code",
    }[str(release.parameters["level"])]
    of = " of the population" if release.parameters.get("extract") else ""
    inside = measures.get("method", {}).get("shared_by")
    tiles = []
    if inside and inside["few"]:
        label = f"of this cohort's visits have a set that fewer than {inside['k']} members share"
        tiles.append(Tile(percent(inside["few_share"]), label, "membership must stay secret", tone="warn"))
    tiles.append(Tile(f"≥ {release.guarantee['k']}", shared + of, tone="good"))
    kept = measures.get("retention")
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
    emptied = measures.get("method", {}).get("emptied_visits")
    if emptied is not None:
        visits = measures["method"]["visits"]
        tiles.append(
            Tile(percent(emptied / max(1, visits), 2), "of visits lost all their codes", f"{emptied:,}")
        )
    return Section("At a glance", (Tiles(tuple(tiles)),))


def membership(release: Release, measures: Figures) -> Section | None:
    """For a cohort drawn from a master: who shares a visit there, and here."""
    shared = measures.get("method", {}).get("shared_by")
    if not shared:
        return None
    rows = (
        ("people", number(shared["population"]), number(measures["source"]["patients"])),
        (
            "fewest people who share a visit's set",
            number(shared["population_smallest"]),
            number(shared["smallest"]),
        ),
        (
            f"visits whose set fewer than {shared['k']} share",
            "0",
            f"{shared['few']:,} ({percent(shared['few_share'])})",
        ),
        (
            "visits whose set is one person's alone",
            "0",
            f"{shared['alone']:,} ({percent(shared['alone_share'])})",
        ),
        (
            "people whose visits, all together, nobody else has",
            f"{shared['members_alone_population']:,} of this cohort",
            number(shared["members_alone"]),
        ),
    )
    reason = release.parameters.get("membership_is_secret")
    stated = f" The custodian states why membership is secret: “{reason}”" if reason else ""
    table = Table("Who shares a visit's set of codes", ("", "in the population", "in this cohort"), rows)
    return Section(
        "If membership in the cohort is known",
        (
            (
                "The guarantee speaks of the population: an attacker who knows that somebody is a patient finds at "
                f"least {shared['k']} candidates. **An attacker who knows that the person is in this cohort finds "
                f"fewer:** {percent(shared['few_share'])} of its visits have a set that fewer than {shared['k']} "
                "members share. "
                "Where membership is public, or follows from published inclusion criteria, anonymize the cohort itself."
                f"{stated}"
            ),
            table,
        ),
    )


def risk(release: Release, measures: Figures) -> Section | None:
    """How many visits point at few patients, before and after."""
    found = measures.get("risk")
    if not found:
        return None
    before, after, k = found["before"], found["after"], found["k"]
    names = {"few_share": f"fewer than {k} patients", "alone_share": "one patient"}
    colors = {"Original data": charts.VERMILION, "This release": charts.BLUE}
    bars = [
        {"who": f"set of {name}", "share": figures[key], "data": data}
        for key, name in names.items()
        for data, figures in zip(colors, (before, after), strict=True)
    ]
    chart = Chart(
        "Visits whose exact set of codes points at few patients",
        f"In the original data {percent(before['few_share'])} of the visits have a set that fewer than {k} patients "
        f"share; in the release {percent(after['few_share'])}.",
        charts.grouped_bars(
            bars,
            x="who",
            y="share",
            group="data",
            x_title="the visit has the",
            y_title="visits",
            colors=colors,
        ),
        f"{percent(before['people_few_share'])} of the patients have at least one such visit in the original data.",
    )
    rows = tuple(
        (label, number(before[key]), number(after[key]))
        for label, key in (
            ("visits", "visits"),
            ("distinct sets", "sets"),
            (f"visits with a set of fewer than {k} patients", "few"),
            ("visits with a set of one patient", "alone"),
        )
    )
    return Section("Risk before and after", (chart, Table("In numbers", ("", "original", "release"), rows)))


def retention(measures: Figures) -> Section | None:
    """DC and CC, as Tables 1 to 3 of the paper."""
    kept = measures.get("retention")
    if not kept:
        return None
    labels = (
        ("original", "original"),
        ("released, generalized codes included", "released"),
        ("released as single codes", "ungeneralized"),
        ("had rare codes been suppressed and nothing else done", "suppression_only"),
    )
    parts: list[Any] = []
    for key, title in (
        ("dc", "Diagnosis count (DC): distinct pairs of patient and code"),
        ("cc", "Code count (CC)"),
    ):
        figures = kept[key]
        extract = "original_population" in figures
        rows = []
        for label, name in labels:
            cells = [label, number(figures[name])]
            if extract:
                cells.append(percent(figures[f"{name}_population"], 2))
            cells.append(percent(1.0 if name == "original" else figures[f"{name}_local"], 2))
            rows.append(tuple(cells))
        columns = ("", "count", *(("of the population's",) if extract else ()), "of these patients'")
        parts.append(Table(title, columns, tuple(rows)))
    pairs = measures.get("method", {}).get("pairs")
    if pairs:
        total = max(1, pairs["original"])
        text = f"Of {total:,} (visit, code) pairs {percent(pairs['exact'] / total)} are released as they were"
        text += f", {percent(pairs['merged'] / total)} inside a generalized code" if pairs["merged"] else ""
        text += f", {percent(pairs['above'] / total)} as a node of the hierarchy" if pairs["above"] else ""
        parts.append(text + ".")
    return Section("What was kept", tuple(parts))


def associations(measures: Figures) -> list[Section]:
    """PheWAS before and after: the table, and the plots."""
    found = measures.get("phewas")
    if not found:
        return []
    from leeward.methods.visits.report import phewas_charts

    rows = tuple(
        (
            row["predictor"],
            RULES[row["rule"]],
            number(row["original"]),
            number(row["kept"]),
            number(row["lost"]),
            number(row["false"]),
        )
        for row in found["comparison"]
    )
    columns = ("predictor", "significant by", "original", "kept", "lost", "false")
    sums = found["totals"]
    intro = (
        f"Each of {found['phecodes']['original']:,} phecodes was tested against each predictor "
        f"({found['test']} test, at least {found['min_cases']} cases), in the original data and in the release. At "
        f"p < 0.05, {sums['p05']['lost']:,} of {sums['p05']['original']:,} associations were lost and "
        f"{sums['p05']['false']:,} appeared; after Bonferroni's correction {sums['bonferroni']['lost']:,} of "
        f"{sums['bonferroni']['original']:,} were lost. Lost: significant in the original only. "
        "False: in the release only."
    )
    intro += without_regression(found)
    table = Table("Associations lost and false", columns, rows)
    plots = [
        plot
        for predictor in dict.fromkeys(row["predictor"] for row in found["tests"])
        for plot in phewas_charts.of_predictor(predictor, found["tests"])
    ]
    return [Section("Associations (PheWAS)", (intro, table)), Section("Associations, plotted", tuple(plots))]


def without_regression(found: Figures) -> str:
    """Why tests have no p, where the test is a regression."""
    if found["test"] != "logistic":
        return ""
    parts = []
    for where, name in (("the original", "original"), ("the release", "anonymized")):
        outcomes = found["regressions"][name]
        reasons = [
            f"{number(outcomes[reason])} {words}"
            for reason, words in (
                (
                    "separated",
                    "because a column separates cases from controls, so that no finite coefficient exists",
                ),
                ("collinear", "because a column tells nothing new among these people"),
                ("few", f"because there are fewer than {found['min_cases']} cases or controls"),
            )
            if outcomes[reason]
        ]
        if reasons:
            parts.append(
                f" In {where} regressions are missing: {'; '.join(reasons)}. They have no p and count nowhere."
            )
    return "".join(parts)


def plain_words(release: Release) -> Section:
    """What one may say about this release to a patient or a board."""
    merged = "per patient" if release.parameters.get("merge_visits") else "per visit"
    k, population = release.guarantee["k"], release.parameters.get("population")
    if release.parameters["level"] == "code":
        left = "Whoever knows two codes of a person may find that person: only single codes are shared."
    elif release.parameters["level"] == "codes":
        m = release.guarantee["m"]
        left = f"Whoever knows up to {m} codes of one visit of a person finds none or at least {k} persons with them."
    elif population is None:
        left = f"Whoever knows one visit of a person completely is left with at least {k} persons."
    else:
        left = (
            f"Whoever knows one visit of a person completely is left with at least {k} persons of the "
            f"{population:,} it was drawn from; whoever also knows that the person is in this cohort, with fewer."
        )
    return Section(
        "In plain words",
        (
            Notes(
                (
                    f"The release lists sets of codes {merged}, without dates, order or identifiers.",
                    "A code that is shown was recorded in that visit; codes were left out or widened, none was added.",
                    left,
                )
            ),
        ),
    )
