"""The report on released trajectories: groups, loss of codes and ages, and errors of counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.contracts.trajectories import axis_of
from leeward.methods import demographics_report, phewas_report
from leeward.methods.trajectories.hierarchies import CHAPTER
from leeward.release import Release
from leeward.report import charts
from leeward.report.codes import names_of_release
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
from leeward.report.summary import Cost, Costs, cost_of_share, counts_off, share

ENOUGH, USELESS = 0.5, 0.1
"""Shares of usable pairs: no warning from the first up; little is left below the second."""

SAYS_NOTHING = ("classification", "root")
"""Levels of a code hierarchy that carry no information about the code."""

WITHIN = {"age": ("8 years", "16 years"), "date": ("a year", "ten years")}
"""The widest time of usable and of coarse pairs."""


def sections(release: Release, measures: Figures, verification: Figures) -> list[Section]:
    usable, lost, time = measures.get("usable"), measures.get("loss"), axis_of(release.parameters)
    run = measures.get("method") or {}
    found = [
        glance(release, lost),
        pairs(usable, lost, time),
        levels(lost, time),
        counts(measures.get("avgre"), time),
        classes(measures.get("cm")),
        phenotypes(measures.get("phenotypes"), time),
        *phewas_report.sections(measures.get("phewas")),
        groups(run, names_of_release(release), time),
        partitions(run),
        demographics_report.section(release, measures),
        plain_words(release),
    ]
    return [section for section in found if section is not None]


def widths(lost: Figures | None) -> tuple[str, str, str]:
    """Names of the levels `usable` and `chapter` and of the categories of a hierarchy."""
    if lost and CHAPTER in {row["level"] for row in lost["levels"]["code"]}:
        return "of 3 characters or finer", "chapter or finer", "3-character categories"
    return "finer than the hierarchy's widest groups", "one of the widest groups or finer", "groups"


def glance(release: Release, lost: Figures | None) -> Section:
    tiles = [Tile(f"≥ {release.guarantee['k']}", "records share every released trajectory", tone="good")]
    if lost:
        tiles += [
            Tile(percent(lost["kept_pairs"]), "of pairs published at all", "exact or generalized"),
            Tile(
                percent(lost["ilm"]),
                "of the codes' information lost (ILM)",
                f"on a scale from 0 % (exact) to 100 % (suppressed); of the {axis_of(release.parameters)}s' loss "
                f"(ALM): {percent(lost['alm'])}",
            ),
        ]
    return Section("At a glance", (Tiles(tuple(tiles)),))


def pairs(found: Figures | None, lost: Figures | None, time: str) -> Section | None:
    """Published pairs by tier: usable, chapter, root and lost pairs."""
    if not found:
        return None
    (fine, wide, categories), (narrow, broad) = widths(lost), WITHIN[time]
    rows = (
        (f"usable: code {fine}, {time} within {narrow}", percent(found["usable"])),
        (f"coarse: {wide}, {time} within {broad} (usable pairs among them)", percent(found["chapter"])),
        (f"root: any code at some {time}", percent(found["root"])),
        ("lost: not published", percent(found["lost"])),
        ("patients without any usable pair", percent(found["none"])),
        (f"{categories} among usable pairs", number(found["categories"])),
    )
    text = (
        f"For most studies a pair is usable if its published code is {fine} and its {time} is within {narrow}. "
        f"At most {percent(found['at_most'])} of this cohort's pairs could be usable at this k."
    )
    table = Table("Shares of the original pairs", ("", "share"), rows)
    return Section("What the published pairs show", (text, table))


def levels(lost: Figures | None, time: str) -> Section | None:
    """How finely codes and ages are released (Figs. 13 and 14 of the thesis)."""
    if not lost:
        return None
    titles = {"code": "Codes", "age": f"{time.title()}s"}
    parts: list[Any] = [
        (
            "How finely values are released: each original value counts at the level of the value published for it. "
            "Suppressed values count at the last level."
        )
    ]
    for name, title in titles.items():
        rows = lost["levels"][name]
        bars = [(row["level"], row["share"], title) for row in rows]
        finest = next((row for row in rows if row["share"]), rows[0])
        parts.append(
            Chart(
                f"{title} by level of their hierarchy",
                f"Bars from the finest level to the coarsest. {percent(finest['share'])} are at {finest['level']}, "
                f"{percent(rows[-1]['share'])} at {rows[-1]['level']}.",
                charts.bars_by_group(
                    bars,
                    x_title="level",
                    y_title=f"share of the {title.lower()}",
                    colors={title: charts.BLUE},
                ),
            )
        )
    parts.append(
        Table(
            "The same in numbers",
            ("level", "share"),
            tuple(
                (f"{title}: {row['level']}", percent(row["share"]))
                for name, title in titles.items()
                for row in lost["levels"][name]
            ),
        )
    )
    if "iloss" in lost:
        iloss = {name: percent(share) for name, share in lost["iloss"].items()}
        parts.append(
            "ILoss, the other values that a published one may stand for as a share of all (suppressed: any): codes "
            f"{iloss['code']}, {time}s {iloss['age']}, both by the weights of the release {iloss['both']}."
        )
    return Section(f"How finely codes and {time}s are released", tuple(parts))


def counts(found: Figures | None, time: str) -> Section | None:
    if not found:
        return None
    support = percent(found["min_support"])
    asked = f"(code, {time}) pairs{ranges_of(found, time)}"
    if found["avgre"] is None:
        text = f"No combination of {asked} occurs in {support} of the patients, so no counts were compared."
        return Section("What it cost: counts", (text,))
    text = (
        f"A recipient counts patients with some {asked}, reading a generalized value as any leaf below it "
        f"with equal chance. All {number(found['queries'])} combinations that at least {support} of the "
        f"patients have were counted."
    )
    scale = "0 % is exact; 100 % is as far off as an answer of 0"
    mean = Tile(percent(found["avgre"]), "average relative error (AvgRE)", scale)
    median = Tile(percent(found["median"]), "median relative error")
    return Section("What it cost: counts", (text, Tiles((mean, median))))


def ranges_of(found: Figures, time: str) -> str:
    if time == "date" and found.get("years", 1) == 1:
        return ", dates by their year"
    return f", {time}s in ranges of {found['years']} years" if found.get("years", 1) > 1 else ""


def classes(found: Sequence[Figures] | None) -> Section | None:
    """How well published trajectories tell payload columns (the classification metric)."""
    if not found:
        return None
    text = (
        "Each payload column is guessed from the published trajectory, as the value of most records that share it. A "
        "record with nothing published counts as wrong. Most of a small group fit by chance: compare with the values "
        "shuffled among the records."
    )
    names = ("cm", "shuffled", "alone")
    rows = tuple((each["column"], *(percent(each[name]) for name in names)) for each in found)
    head = ("column", "wrong (CM)", "wrong if shuffled", "wrong without trajectories")
    return Section("What it cost: classes", (text, Table("Guesses of payload columns", head, rows)))


def phenotypes(found: Figures | None, time: str) -> Section | None:
    """Cases of phecodes that the release tells, and from when on."""
    if not found:
        return None
    cases, phecodes, onset = (found[name] for name in ("cases", "phecodes", "onset"))
    told = percent(cases["kept"] / max(1, cases["original"]))
    text = (
        "A recipient counts a published code as a phecode where all codes below it have that phecode. Of "
        f"{number(cases['original'])} cases (a patient with a phecode) {told} are told, and of "
        f"{number(phecodes['original'])} phecodes {number(phecodes['kept'])}; {number(cases['false'])} cases are "
        f"false. First {time}s told are {years_of(onset['median'])} off (median)."
    )
    table = table_of(
        "The phecodes of most patients",
        found["most"],
        ("phecode", "phecode", str),
        ("phenotype", "phenotype", str),
        ("cases", "original", number),
        ("kept", "kept", number),
        ("false", "false", number),
        (f"first {time} off (median)", "median", years_of),
    )
    return Section("Phenotypes", (text, table))


def years_of(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} years"


def groups(run: Figures, names: Mapping[str, str], time: str) -> Section | None:
    if not run.get("examples"):
        return None
    examples = tuple(
        (" ".join(each["pairs"]), number(each["records"]), percent(each["lost_a_pair"]))
        for each in run["examples"]
    )
    shown = dict.fromkeys(pair[1:].rpartition(", ")[0] for each in run["examples"] for pair in each["pairs"])
    meant = "; ".join(f"{code}: {names[code]}" for code in shown if code in names)
    sizes = tuple((size, number(count)) for size, count in run["sizes"].items())
    return Section(
        "Groups",
        (
            f"{number(run['groups'])} groups were formed. Examples, from little to much lost:",
            Table("Released trajectories", (f"pairs (code, {time})", "records", "lost a pair"), examples),
            *([f"The codes: {meant}."] if meant else []),
            Table("Sizes of groups", ("records", "groups"), sizes),
        ),
    )


def partitions(run: Figures) -> Section | None:
    if run.get("partitions", 1) < 2:
        return None
    halvings = max(1, (run["partitions"] - 1).bit_length())
    parts = f"{number(run['partitions'])} parts of similar trajectories (halved {halvings} times)"
    return Section("Clustered in parts", (f"The records were clustered in {parts}.",))


def plain_words(release: Release) -> Section:
    groups = (
        f"Patients with similar histories were put into groups of at least {release.guarantee['k']}, and each group "
        "is released as one common trajectory."
    )
    time = axis_of(release.parameters)
    spans = "an age by a span of years" if time == "age" else "a date by its quarter, year or decade"
    differ = (
        f"If members differ, a code is replaced by the group of codes above it, and {spans}; whatever has no "
        "counterpart in all members is left out."
    )
    ordered = release.parameters.get("order", "kept") == "kept"
    order = (
        "The order of events is kept."
        if ordered
        else f"The time of an event is known only from its published {time}."
    )
    return Section("In plain words", (Notes((groups, differ, order)),))


def costs(release: Release, measures: Mapping[str, Any]) -> Costs:
    figures: list[Cost] = []
    usable, loss, counts = (measures.get(name) for name in ("usable", "loss", "avgre"))
    if usable:
        named = {each["level"] for each in loss["levels"]["code"]} if loss else {CHAPTER}
        fine = "3-character code or finer" if CHAPTER in named else "finer than the hierarchy's widest groups"
        time = axis_of(release.parameters)
        words = f"of the (code, {time}) pairs are usable: {fine}, {time} within {WITHIN[time][0]}"
        figures.append(cost_of_share(usable["usable"], words, warn=ENOUGH, bad=USELESS))
    if loss:
        words = "of the pairs are not published, or show only that there was some code"
        figures.append(share(empty_pairs(loss["levels"]["code"]), words, warn=0.1, bad=0.5))
    if counts and counts.get("avgre") is not None:
        words = f"mean error of counts of frequent pairs{ranges_of(counts, axis_of(release.parameters))}"
        figures.append(counts_off(counts["avgre"], words))
    return Costs(tuple(figures), little_left(usable, release.parameters))


def empty_pairs(levels: Sequence[Mapping[str, Any]]) -> float:
    """Share of pairs whose code is suppressed, the root, or a whole classification."""
    last = len(levels) - 1
    return float(
        sum(each["share"] for i, each in enumerate(levels) if i == last or each["level"] in SAYS_NOTHING)
    )


def little_left(usable: Figures | None, parameters: Figures) -> str:
    """A sentence where few pairs are usable."""
    if not usable or usable["usable"] >= USELESS:
        return ""
    further = "" if parameters.get("order") == "free" else "`--clustering cells --order free`, "
    return (
        f"{percent(usable['usable'])} of the (code, {axis_of(parameters)}) pairs are usable; try {further}a smaller "
        f"k, or `leeward disassociate` where {axis_of(parameters)}s are not needed."
    )
