"""Report on a disassociated release: risk, errors of counts, placement of codes, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from leeward.arrays import count_noun
from leeward.contracts.classes import in_words
from leeward.contracts.disassociation import counted_from
from leeward.methods import demographics_report
from leeward.methods.disassociation.reidentification import covers_algorithm, knows_rules
from leeward.release import Release
from leeward.report import charts
from leeward.report.codes import group_errors, label_code, names_of_release, risk_table, worst_groups
from leeward.report.sections import (
    Chart,
    Figures,
    Section,
    Table,
    Tile,
    Tiles,
    number,
    percent,
    table_of,
    words_section,
)
from leeward.report.summary import Costs, errors_of_pairs_and_triples, share

RECORD, SHARED, ITEM, SUPPRESSED = "record chunk", "shared chunk", "item chunk", "suppressed"
COLORS = {RECORD: charts.BLUE, SHARED: "#56B4E9", ITEM: charts.ORANGE, SUPPRESSED: charts.ORANGE}
CODES_SHOWN = 25


def sections(release: Release, measures: Figures, verification: Figures) -> list[Section]:
    places, errors, facts = (measures.get(name) or {} for name in ("placement", "are", "method"))
    found = [
        glance(verification, places, errors, measures["source"]["codes"]),
        risk(release, measures),
        loss(errors),
        demographics_report.section(release, measures, release.guarantee["m"], with_risk=False),
        placement(release, places, names_of_release(release)),
        policy(measures.get("mre"), names_of_release(release)),
        unusable(release, places),
        plain_words(release, int(facts.get("suppressed_occurrences", 0))),
    ]
    return [section for section in found if section is not None]


def glance(verification: Figures, places: Figures, errors: Figures, codes_before: int) -> Section:
    tiles: list[Tile] = []
    covers = places.get("covers")
    if covers and covers["of_chunks"]:
        share = covers["chunks"] / covers["of_chunks"]
        what = "of chunks with several codes hold a code that gives away another"
        tiles.append(Tile(percent(share), what, "the cover problem", "warn" if share else "good"))
    for lost in (c["figures"]["violations"] for c in verification["checks"] if c["name"] == "source_codes"):
        what, among = "codes suppressed or generalized", f"of {codes_before:,} distinct codes"
        tiles.append(Tile(number(lost), what, among, "warn" if lost else "good"))
    for first in (errors.get("workloads") or [])[:1]:
        what = f"mean relative error of counts of {first['label']}"
        tiles.append(
            Tile(percent(first["are"]), what, "the easiest sets; pairs and triples are above", "plain")
        )
    return Section("At a glance", (Tiles(tuple(tiles)),))


def loss(errors: Figures) -> Section | None:
    if not errors.get("workloads"):
        return None
    table = table_of(
        "Average relative error (ARE) of estimated counts",
        errors["workloads"],
        ("code sets asked for", "label", str),
        ("queries", "queries", number),
        ("mean error", "are", partial(percent, digits=2)),
        ("left out, true count 0", "skipped", number),
    )
    intro = (
        "A recipient estimates how many patients have a set of codes together. Here the estimates are compared with "
        "the true counts: a mean error of 2 % means that an estimate is off by 2 % of the true count on average."
    )
    assumed = f"the estimates assume the prior `{errors['prior']}`."
    last = f"How often a code of an item chunk occurs is not released; {assumed}"
    return Section("What it cost: counts of code sets", (intro, table, last))


def placement(release: Release, places: Figures, names: Mapping[str, str]) -> Section | None:
    if not places:
        return None
    uncounted = SUPPRESSED if covers_algorithm(release) else ITEM
    kinds = {"record": RECORD, "shared": SHARED, "item": uncounted}
    colors = {name: COLORS[name] for name in kinds.values()}
    total = max(1, places["occurrences"]["total"])
    rows = [{"kind": name, "share": places["occurrences"][kind] / total} for kind, name in kinds.items()]
    where = {name: name if name == SUPPRESSED else f"in {name}s" for name in kinds.values()}
    shares = [f"{percent(row['share'])} {where[row['kind']]}" for row in rows]
    overall = Chart(
        "All code occurrences",
        f"Of all code occurrences, {', '.join(shares)}.",
        charts.stacked_bars(
            [{"what": "all codes", **row} for row in rows],
            y="what",
            x="share",
            part="kind",
            x_title="share of code occurrences",
            colors=colors,
            share=True,
        ),
        f"{'; '.join(shares)}.",
    )
    top = places["codes"][:CODES_SHOWN]
    bars = [
        {"code": label_code(row["code"], names), "count": row[kind], "kind": name}
        for row in top
        for kind, name in kinds.items()
        if row[kind]
    ]
    by_code = Chart(
        f"The {len(top)} most frequent codes",
        "Horizontal bars, one a code, split by the kind of chunk that its occurrences are in.",
        charts.stacked_bars(
            bars, y="code", x="count", part="kind", x_title="patients with the code", colors=colors
        ),
        FREQUENT[uncounted],
    )
    return Section(
        "Which codes are in which kind of chunk",
        (INTRODUCTION[uncounted], overall, by_code, *covers_found(release, places.get("covers"), names)),
    )


INTRODUCTION = {
    SUPPRESSED: "Patients are put into small clusters. Each code is counted in the clusters where enough patients have "
    "it (**record chunk**), or together in a joint cluster (**shared chunk**); where that is not enough either, it is "
    "**suppressed**.",
    ITEM: "Patients are put into small clusters, and the codes of a cluster into chunks. A **record chunk** "
    "or **shared chunk** shows which codes patients have together, and how often. An **item chunk** "
    "shows only that a code occurs in the cluster.",
}
FREQUENT = {
    SUPPRESSED: "Frequent codes are counted in clusters, rarer ones in joint clusters, the rarest are suppressed.",
    ITEM: "Frequent codes stay in record and shared chunks, where they are counted exactly together with "
    "the other codes of their chunk. Rare ones move to item chunks.",
}
"""By the fate of codes that no chunk counts."""


def policy(found: Figures | None, names: Mapping[str, str]) -> Section | None:
    if not found or not found["constraints"]:
        return None
    chart = group_errors(
        found["constraints"],
        found["within_5_percent"],
        f"{percent(found['within_5_percent'])} of the groups are estimated within ±5 % (shaded). Above zero the "
        "release overestimates. The two outermost bars hold all larger errors.",
    )
    by_interval = table_of(
        "The same by the intervals of the paper, whose sign is the other way round: (true − estimate) / true",
        found["intervals"],
        ("relative error", "", span),
        ("code groups", "count", number),
        ("share", "share", percent),
    )
    intro = (
        "A utility policy names groups of codes that should stay analysable. A patient with at least one "
        "code of a group matches it; below, the number of matching patients estimated from the "
        "release is compared with the true one."
    )
    return Section(
        "What it cost: the utility policy",
        (intro, chart, worst_groups(found["constraints"], names), by_interval),
    )


def span(interval: Figures) -> str:
    low, high = interval["low"], interval["high"]
    if low is None:
        return f"below {100 * (high or 0.0):+g} %"
    return f"{100 * low:+g} % and more" if high is None else f"{100 * low:+g} to {100 * high:+g} %"


def unusable(release: Release, places: Figures) -> Section | None:
    if not places or covers_algorithm(release):
        return None
    exact = places.get("item_only_records")
    count = places["item_only_records_at_least"] if exact is None else exact
    least = "At least " if exact is None else ""
    share = percent(count / max(1, release.records))
    advice = (
        "`partitioning: recut` moves such records to clusters that keep one of their codes."
        if release.parameters["partitioning"] == "paper"
        else "Records were already moved to clusters that keep one of their codes; these are left."
    )
    text = (
        f"**{least}{count:,} of {release.records:,} patients** ({share}) have all their codes in the item chunk of "
        "their cluster. The model allows this, but their codes cannot be analysed, and an attacker who "
        f"guesses does better against them than the guarantee suggests. {advice}"
    )
    return Section("Patients whose whole record is in an item chunk", (text,))


def plain_words(release: Release, taken_out: int) -> Section:
    k, m = release.guarantee["k"], release.guarantee["m"]
    codes = "diagnosis code" if m == 1 else "diagnosis codes"
    return words_section(
        f"Somebody knows up to **{m} {codes}** of a patient and holds this release. Among all data sets "
        f"that could have produced the release, at least one has **{k} or more patients** with these "
        f"codes, and the files do not show who is meant. {suppression_line(release, taken_out)} Combinations "
        f"of rare codes are hidden."
    )


def suppression_line(release: Release, count: int) -> str:
    if count and covers_algorithm(release):
        return f"{count:,} mentions of codes that too few patients share were removed."
    if count:
        return f"For the diversity of sensitive codes, {count:,} mentions of codes were removed."
    return "No code was removed or generalized."


def covers_found(
    release: Release, covers: Figures | None, names: Mapping[str, str] | None = None
) -> tuple[str | Table, ...]:
    """The cover problem: its frequency in this release, the option that avoids it, and which codes give away which."""
    if covers is None or covers_algorithm(release):
        return ()
    apart = (
        "Here such codes are in separate chunks (`safe`); no theorem is claimed for this."
        if release.parameters.get("safe")
        else "`--safe` puts such codes into separate chunks; it costs utility, and no theorem is claimed for it."
    )
    everywhere = covers.get("everywhere", 0)
    alone = (
        f" {everywhere:,} of the pairs hold wherever the first code is listed: that code and the files are "
        f"then enough."
        if everywhere
        else ""
    )
    found = (
        "**One code may reveal another**: if all patients of a chunk with code x also have code y, whoever "
        f"knows x learns y (the cover problem). {covers['chunks']:,} of {covers['of_chunks']:,} chunks with several "
        f"codes hold such a pair, {covers['pairs']:,} pairs in all.{alone} {apart}"
    )
    if not covers.get("codes"):
        return (found,)
    name = partial(label_code, names=names or {})
    table = table_of(
        f"Which codes give away which: the {len(covers['codes'])} pairs with the most patients",
        [{**row, "share": row["patients"] / max(1, row["of"])} for row in covers["codes"]],
        ("whoever knows", "code", name),
        ("learns", "reveals", name),
        ("in clusters", "clusters", number),
        ("of patients", "patients", number),
        ("of all with the first code", "share", percent),
    )
    return (found, table)


BEFORE, AFTER = "Original data", "This release"
WITHOUT, WITH = "This release, by its guarantee", "algorithm known (at least)"
RISK_COLORS = {BEFORE: charts.VERMILION, AFTER: charts.BLUE, WITHOUT: charts.BLUE, WITH: charts.ORANGE}


def risk(release: Release, measures: Mapping[str, Any]) -> Section | None:
    """Patients at risk in the original data, and in the release for each attacker."""
    found, whole = measures.get("risk"), measures.get("demographics")
    if not found or not found["by_m"]:
        return None
    rows = found["by_m"] if not whole else [share_of_patients(each) for each in whole["risk"]["before"]]
    names = [str(name) for name in release.parameters.get("demographics") or ()]
    beside = f"the exact {in_words(names)}" if whole and names else ""
    exact = all(row["patients_exact"] for row in rows)
    bounds = "" if exact else "; where the sets were too many to count, estimated from a sample of patients"
    table = risk_table(
        f"The same in numbers (original data{', known beside ' + beside if beside else ''}){bounds}",
        rows,
        found["k"],
    )
    further = (measures.get("reidentification") or {}).get("further")
    return Section(
        "Risk before and after",
        (
            chart(release, rows, beside, further),
            *candidates(release, found.get("after"), beside, measures.get("method", {})),
            table,
        ),
    )


def share_of_patients(known: Figures) -> Figures:
    """Row of the joint risk in the format of the risk of codes alone."""
    everybody = max(1, known["patients"])
    shares = {f"{name}_share": known[name] / everybody for name in ("unique", "below_k")}
    return {**known, "m": known["codes"], "patients_exact": known["exact"], **shares}


def chart(release: Release, rows: Sequence[Figures], beside: str, further: Figures | None) -> Chart:
    """Patients at risk by number of known codes, one bar each for the source and the attackers of the release."""
    k, m = int(release.guarantee["k"]), int(release.guarantee["m"])
    least = further["patients"] / max(1, further["among"]) if further else None
    bars = risk_bars(rows, m, AFTER if covers_algorithm(release) else WITHOUT, least)
    worst = next(row for row in reversed(rows) if row["m"] <= m)
    known, and_known, axis = (
        (f"{beside} and their codes", f"{beside} and ", f"known of a patient beside {beside}")
        if beside
        else ("their codes", "", "codes of a patient that the attacker knows")
    )
    text = (
        f"In the original data {percent(worst['below_k_share'])} of the patients are at risk with {and_known}"
        f"{count_noun('code', worst['m'])} known; in the release none with up to {m}"
    )
    captions = [
        f"A patient is at risk when fewer than {k} patients have some combination of what is known; shares of all."
    ]
    if rows[-1]["m"] > m:
        captions.append(
            f"Beyond {m} codes nothing is promised: a missing bar means no promise; the risk may be high."
        )
    if least is not None:
        text += f" for the attacker of its guarantee, at least {percent(least)} for one who knows all of the algorithm"
        captions.append(
            "For attackers who know all of the algorithm one code was counted: more put at least as many at risk."
        )
    return Chart(
        f"Patients at risk: fewer than {k} share some combination of {known}",
        f"Bars by number of codes known. {text}.",
        charts.bars_by_group(
            bars,
            x_title=axis,
            y_title="patients at risk",
            colors={data: RISK_COLORS[data] for data in dict.fromkeys(data for _, _, data in bars)},
        ),
        " ".join(captions),
    )


def risk_bars(
    rows: Sequence[Figures], m: int, after: str, least: float | None
) -> list[tuple[str, float, str]]:
    """Codes known, share of the patients at risk, data; `least`: the share for attackers who use the algorithm."""
    bars = []
    for row in rows:
        known = f"up to {count_noun('code', row['m'])}" if row["m"] else "no code"
        bars.append((known, float(row["below_k_share"]), BEFORE))
        if row["m"] <= m:
            bars.append((known, 0.0, after))
        if least is not None and 0 < row["m"] <= m:
            bars.append((known, least, WITH))
    return bars


def candidates(
    release: Release, after: Figures | None, beside: str, facts: Mapping[str, Any]
) -> tuple[str, ...]:
    """Text on the candidates found in the release for codes of real patients."""
    if not after or not after["sets"]:
        return ()
    k = release.guarantee["k"]
    tried = (
        f"Tried: {after['sets']:,} sets of up to {count_noun('code', after['largest_set'])} were drawn from real "
        f"patients{', with ' + beside if beside else ''}, the rarest first, and looked up in the release. "
        f"The smallest number of candidate records was **{after['smallest_candidates']:,}**; "
        f"{after['below_k']:,} sets had fewer than {k}."
    )
    if covers_algorithm(release):
        as_many = (
            "An attacker who knows the algorithm finds as many: no code is listed without its count, and "
            "whether a code with a count near the least is shown is random."
        )
        return (tried, as_many)
    if knows_rules(release):
        as_many = (
            "An attacker who knows what is counted and listed finds as many: a code is listed for up to k patients of "
            "a cluster, and what was not counted above it may have been held back at random."
        )
        return (tried, as_many)
    if after.get("below_k_algorithm_known") is None:
        return (tried,)
    moved, least = facts.get("empty_item_chunk_condition_fired"), counted_from(release.parameters)
    capped = (
        f"Whoever uses the algorithm knows that a code of an item chunk has at most {least - 1} patients in its "
        "cluster"
        f"{f' (but for one code in {moved:,} clusters)' if moved else ''}, and in all clusters that were joined and "
        f"count it nowhere: **{after['below_k_algorithm_known']:,}** of "
        f"these sets have fewer than {k} candidates then."
    )
    return (tried, capped)


def costs(release: Release, measures: Mapping[str, Any]) -> Costs:
    figures = errors_of_pairs_and_triples(measures)
    places = measures.get("placement")
    fate = (
        "suppressed"
        if covers_algorithm(release)
        else "in item chunks: how often such a code occurs is hidden"
    )
    if places:
        figures += (share(places["item_share"], f"of the codes' occurrences are {fate}", warn=0.1, bad=0.5),)
    return Costs(figures)
