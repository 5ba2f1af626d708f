"""The report on a censored release: risk before and after, what was censored, what studies keep, who could undo it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import polars as pl

from leeward.methods import demographics_report
from leeward.release import Release
from leeward.report import charts
from leeward.report.codes import label_code, names_of_release
from leeward.report.sections import (
    Chart,
    Figures,
    Section,
    Table,
    Tile,
    Tiles,
    figure_of,
    number,
    percent,
    table_of,
    words_section,
)
from leeward.report.summary import Costs, codes_gone, cost_of_share

FEW_CODES, FEW_REPEATS = 0.1, 0.1
"""Shares of codes and of repeats below which little is left."""

BEFORE, AFTER = "original records", "released records"
COLORS = {BEFORE: charts.VERMILION, AFTER: charts.BLUE}
CODES_SHOWN = 15


def sections(release: Release, measures: Figures, verification: Figures) -> list[Section]:
    risks, lost, attacked = (measures.get(name) for name in ("risk", "cul", "attack"))
    found = [
        glance(release, risks, lost, attacked),
        risk(release, risks),
        loss(lost),
        studies(measures),
        demographics_report.section(release, measures),
        caps(release),
        attack(release, attacked),
        plain_words(release),
    ]
    return [section for section in found if section is not None]


def glance(
    release: Release, risks: Figures | None, lost: Figures | None, attacked: Figures | None
) -> Section:
    tiles: list[Tile] = []
    if risks:
        tiles += [
            Tile(
                percent(risks["before"]["unique"]),
                "of the original records fit only one person of the population",
            ),
            Tile(number(risks["after"]["smallest"]), "or more people fit each released record", tone="good"),
        ]
    if lost:
        tiles.append(Tile(percent(lost["kept"]), "of all mentions of codes are released"))
    if attacked and attacked["records"]:
        pinned = attacked["pinned_down"]
        tiles.append(
            Tile(
                percent(pinned),
                "of the records fit only one person for somebody who knows the rule and everybody's records",
                tone="warn" if pinned else "plain",
            )
        )
    k = release.guarantee["k"]
    text = (
        f"{release.records:,} records with repeated codes, censored until at least **{k} people** of the population "
        "contain each of them."
    )
    return Section("At a glance", (text, Tiles(tuple(tiles))))


def chart_of_people(rows: charts.Rows, k: int) -> str:
    return charts.steps(
        rows,
        x="people",
        y="share",
        group="records",
        x_title="people of the population whose record contains it",
        y_title="share of the records",
        colors=COLORS,
        at=k,
    )


def risk(release: Release, figures: Figures | None) -> Section | None:
    """Figure 2 of the thesis, before and after, and the usual risks."""
    if not figures:
        return None
    rows = [
        {"people": people, "share": share, "records": name}
        for name, of in ((BEFORE, figures["before"]), (AFTER, figures["after"]))
        for people, share in zip(figures["at"], of["at_most"], strict=True)
    ]
    k, unique, sides = (
        release.guarantee["k"],
        figures["before"]["unique"],
        (figures["before"], figures["after"]),
    )
    risks = tuple(
        (name, *(shown(figure_of(side, figure)) for side in sides)) for name, figure, shown in RISKS
    )
    chart = Chart(
        "Distinguishability before and after",
        f"Two rising lines: the share of records that at most this many people contain. Of the original records "
        f"{percent(unique)} fit one person; of the released ones none fits fewer than {k}.",
        chart_of_people(rows, k),
        f"Share of the records that at most this many of {figures['population']:,} people contain. The grey line is k.",
    )
    return Section(
        "Risk in the population and in the sample",
        (
            (
                "**Distinguishability** is the number of people of the population whose records contain a "
                "record. One over it is the chance of guessing its owner."
            ),
            chart,
            Table("Risk by the usual definitions", ("", "before", "after"), risks),
            (
                "Prosecutor: somebody who knows that a person is in the sample and compares released records with one "
                "another; a k-map promises nothing against this. Journalist: somebody who does not know who is in it. "
                "Marketer: the share of right guesses when every record is guessed."
            ),
        ),
    )


RISKS = (
    ("records that one person contains", "unique", percent),
    ("records that fewer than k people contain", "below_k", percent),
    ("smallest distinguishability", "smallest", number),
    ("median distinguishability", "median", number),
    ("journalist risk, highest", "journalist.highest", percent),
    ("marketer risk", "marketer", partial(percent, digits=2)),
    ("smallest class of equal records in the sample", "smallest_class_in_sample", number),
    ("records unlike all others in the sample", "alone_in_sample", percent),
    ("prosecutor risk, mean", "prosecutor.mean", percent),
)


def loss(figures: Figures | None) -> Section | None:
    if not figures:
        return None
    intervals = figures["intervals"]
    total = max(1, sum(each["count"] for each in intervals))
    rows = [(_interval(each), each["count"] / total, AFTER) for each in intervals]
    chart = Chart(
        "Records by the share of their mentions that was censored",
        f"Bars, one an interval of loss; {percent(intervals[0]['count'] / total)} of the records lost nothing.",
        charts.bars_by_group(
            rows,
            x_title="share of the record's mentions that was censored (CUL)",
            y_title="records",
            colors={AFTER: charts.BLUE},
        ),
        f"{percent(figures['changed_records'])} of the records lost something; "
        f"{figures['emptied_records']:,} are empty.",
    )

    table = Table(
        "Censoring utility loss (CUL)",
        ("relative to", "mean", "standard deviation", "median", "skewness"),
        tuple(
            (name, *(f"{figures[of][key]:.3f}" for key in ("mean", "sd", "median", "skewness")))
            for name, of in (("the original record", "cul"), ("the record after its caps", "cul_after_cap"))
        ),
    )
    text = (
        f"Of {figures['mentions']:,} mentions of codes {figures['mentions_kept']:,} are released "
        f"({percent(figures['kept'])}; {percent(figures['kept_after_cap'])} of those that the caps leave)."
    )
    return Section("What was censored", (text, chart, table))


def studies(measures: Figures) -> Section | None:
    if not all(measures.get(name) for name in ("repeats", "pairs", "phenotypes")):
        return None
    cases = measures["phenotypes"]
    rows = (
        ("repeats (mentions of a code beyond the first)", measures["repeats"], ""),
        ("comorbidity pairs (two codes in one record)", measures["pairs"], ""),
        (f"cases (≥ {cases['mentions']} mentions of a code)", cases, "cases_"),
        ("patients with such a case", cases, "patients_"),
    )
    table = Table(
        "What studies keep",
        ("", "before", "after", "kept"),
        tuple(
            (name, number(of[f"{kind}before"]), number(of[f"{kind}after"]), percent(of[f"{kind}kept"]))
            for name, of, kind in rows
        ),
    )
    return Section("What studies of repeats and comorbidity keep", (table,))


def caps(release: Release) -> Section | None:
    """Where the caps ended, for the codes that were capped most often."""
    frame = release.custody_table("caps")
    if release.parameters.get("scope") not in ("global", "raise") or frame is None:
        return None
    if "class" in frame.columns:  # every class has caps of its own
        return None
    names = names_of_release(release)
    fell = frame.filter(pl.col("final_cap") < pl.col("cap"))
    gone = frame.filter(pl.col("final_cap") == 0).height
    shown = frame.sort("final_cap", "highest", "code", descending=[True, True, False]).head(CODES_SHOWN)
    table = table_of(
        f"The {shown.height} codes with the highest final caps",
        shown.to_dicts(),
        ("code", "code", lambda code: label_code(code, names)),
        ("most mentions in a record", "highest", number),
        ("cap at the start", "cap", number),
        ("final cap", "final_cap", number),
    )
    text = (
        f"The caps of {fell.height:,} of {frame.height:,} codes ended below where they began; "
        f"{gone:,} codes are gone altogether."
    )
    advice = (
        ()
        if not gone
        else ("With many rare codes, global caps cost much; fewer codes or `scope: groups` keep more.",)
    )
    return Section("The caps", (text, table, *advice))


def attack(release: Release, figures: Figures | None) -> Section | None:
    if not figures or not figures["records"]:
        return None
    k = release.guarantee["k"]
    table = Table(
        f"Consistent owners of {figures['records']:,} attacked records",
        ("", ""),
        (
            ("fewest", number(figures["smallest"])),
            ("median", number(figures["median"])),
            (f"records with fewer than {k}", percent(figures["below_k"])),
            ("records pinned down to one person", percent(figures["pinned_down"])),
            ("right guesses, on average", percent(figures["mean_success"])),
        ),
    )
    return Section(
        "Somebody who knows the rule",
        (
            (
                "The k-map counts people whose records contain a released record. Somebody who has the "
                "whole population, knows this rule, and knows that the sample has people's full "
                "records, can do more: apply the rule to each person, and keep those whose record it "
                "turns into exactly the released one, the **consistent owners**."
            ),
            table,
            (
                "This attack is outside the guarantee. It matters if a recipient may have the population's "
                "full records, for example as an employee of the hospital."
            ),
        ),
    )


def plain_words(release: Release) -> Section:
    k = release.guarantee["k"]
    return words_section(
        "Somebody knows which codes a person has, and how often. For every released record there are at least "
        f"**{k} people** in the population who have all of its codes at least as often, so a guess at its "
        f"owner is right at most once in {k}, as long as nobody knows who is in the sample."
    )


def _interval(each: Mapping[str, float]) -> str:
    if each["high"] == 0:
        return "none"
    return f"{100 * each['low']:.0f}–{100 * each['high']:.0f} %"


def costs(release: Release, measures: Mapping[str, Any]) -> Costs:
    total = int(measures["source"]["codes"])
    codes = release.table("records.parquet").select(pl.col("codes").list.explode(empty_as_null=False))
    left = int(codes.select(pl.col("codes").drop_nulls().n_unique()).collect().item())
    figures = [codes_gone(total - left, total, "codes are in no released record")]
    if measures.get("cul"):
        figures.append(
            cost_of_share(measures["cul"]["kept"], "of all mentions of codes are released", warn=0.9, bad=0.5)
        )
    repeats = measures.get("repeats") or {"before": 0, "kept": 1.0}
    if repeats["before"]:
        figures.append(
            cost_of_share(
                repeats["kept"], "of the repeats of a code in a record are released", warn=0.9, bad=0.5
            )
        )
    return Costs(tuple(figures), little_left(left, total, repeats, release.parameters["scope"]))


def little_left(left: int, total: int, repeats: Mapping[str, Any], scope: str = "global") -> str:
    """A sentence where most codes or nearly all repeats are gone."""
    few = left < FEW_CODES * total
    once = bool(repeats["before"]) and repeats["kept"] < FEW_REPEATS
    if not few and not once:
        return ""
    found = f"{number(left)} of {number(total)} codes are left"
    found += f", and {percent(repeats['kept'])} of the repeats" if repeats["before"] else ""
    groups = "" if scope == "groups" else "`--scope groups`, "
    return f"{found}; try {groups}codes of fewer digits, or a larger population."
