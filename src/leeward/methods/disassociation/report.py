"""The report on a disassociated release: risk, what it cost, where codes sit, what is left open."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from leeward.release import Release
from leeward.report import charts
from leeward.report.sections import Chart, Notes, Section, Table, Tile, Tiles, number, percent

RECORD, SHARED, ITEM = "record chunk", "shared chunk", "item chunk"
COLORS = {RECORD: charts.BLUE, SHARED: "#56B4E9", ITEM: charts.ORANGE}
CODES_SHOWN = 25
CONSTRAINTS_SHOWN = 15
BIN, BINS_TO = 0.025, 0.4
"""Width of a bar of the histogram of errors, and where its axis ends."""

Figures = Mapping[str, Any]


def sections(release: Release, measures: Figures, verification: Figures) -> list[Section]:
    """The sections of the report that are this method's own."""
    found = [
        glance(release, measures, verification),
        risk(release, measures),
        loss(measures),
        placement(measures),
        policy(measures),
        unusable(release, measures),
        plain_words(release, measures),
    ]
    return [section for section in found if section is not None]


def glance(release: Release, measures: Figures, verification: Figures) -> Section:
    """The four figures that a privacy board and a researcher ask for first."""
    k, m = release.guarantee["k"], release.guarantee["m"]
    codes = "code" if m == 1 else "codes"
    tiles = [
        Tile(f"≥ {k}", f"candidate records for anyone who knows up to {m} {codes} of a patient", tone="good")
    ]
    lost = next(
        (c["figures"]["violations"] for c in verification["checks"] if c["name"] == "source_codes"), None
    )
    if lost is not None:
        total = measures["source"]["codes"]
        tone = "warn" if lost else "good"
        tiles.append(
            Tile(number(lost), "codes suppressed or generalized", f"of {total:,} distinct codes", tone)
        )
    places = measures.get("placement")
    if places:
        share = places["occurrences"]["item"] / max(1, places["occurrences"]["total"])
        tiles.append(
            Tile(
                percent(share),
                "of code occurrences lie in item chunks",
                "present, but how often is hidden",
                "warn",
            )
        )
    first = next(iter(measures.get("are", {}).get("workloads", ())), None)
    if first:
        tiles.append(Tile(percent(first["are"]), "mean relative error of counts", workload(first), "plain"))
    return Section("At a glance", (Tiles(tuple(tiles)),))


def risk(release: Release, measures: Figures) -> Section | None:
    """How many patients could be singled out by m of their codes, before; and what the release leaves."""
    rows = measures.get("risk", {}).get("by_m", ())
    if not rows:
        return None
    k, m = release.guarantee["k"], release.guarantee["m"]
    before, after = "Original data", "This release, by its guarantee"
    bars: list[dict[str, Any]] = []
    for row in rows:
        known = f"{row['m']} code{'s' if row['m'] > 1 else ''}"
        bars.append({"known": known, "share": at_risk(row, "below_k"), "data": before})
        if row["m"] <= m:
            bars.append({"known": known, "share": 0.0, "data": after})
    worst = next(row for row in reversed(rows) if row["m"] <= m)
    share = percent(at_risk(worst, "below_k"))
    chart = Chart(
        f"Patients whom fewer than {k} patients resemble in some codes that an attacker may know",
        f"Bars by number of codes known. In the original data {share} of the patients are at risk with "
        f"{worst['m']} codes known; in the release none with up to {m}.",
        charts.grouped_bars(
            bars,
            x="known",
            y="share",
            group="data",
            x_title="codes of a patient that the attacker knows",
            y_title="patients at risk",
            colors={before: charts.VERMILION, after: charts.BLUE},
        ),
        "A patient is at risk when some combination of that many of the patient's codes occurs in fewer "
        f"than {k} patients. Shares are of the patients with at least so many codes. Beyond {m} codes the "
        "guarantee says nothing, so no bar is drawn there for the release.",
    )
    table = Table(
        "The same in numbers (original data)",
        ("codes known", "patients with so many codes", f"fewer than {k} alike", "share", "unique", "share"),
        tuple(
            (
                str(row["m"]),
                number(row["patients"]),
                number(row["below_k"]),
                percent(at_risk(row, "below_k")),
                number(row["unique"]),
                percent(at_risk(row, "unique")),
            )
            for row in rows
        ),
    )
    bounds = (
        ""
        if all(row["patients_exact"] for row in rows)
        else "; where the sets were too many to count, estimated from a sample of patients"
    )
    table = dataclasses.replace(table, caption=table.caption + bounds)
    return Section("Risk before and after", (chart, *candidates(measures["risk"].get("after"), k), table))


def at_risk(row: Figures, figure: str) -> float:
    """Share of the patients with so many codes; a figure extrapolated from a sample may exceed them all."""
    share: float = row[figure] / max(1, row["patients"])
    return min(1.0, share)


def candidates(after: Figures | None, k: int) -> tuple[str, ...]:
    """What an attacker with codes of real patients finds in the release."""
    if not after or not after["sets"]:
        return ()
    return (
        (
            f"Tried out: {after['sets']:,} sets of up to {after['largest_set']} codes were drawn from real "
            "patients and looked up in the release. The smallest number of candidate records was "
            f"**{after['smallest_candidates']:,}**; {after['below_k']:,} sets had fewer than {k}."
        ),
    )


def loss(measures: Figures) -> Section | None:
    """How far counts estimated from the release are from the true ones."""
    are = measures.get("are")
    if not are or not are["workloads"]:
        return None
    rows = tuple(
        (workload(each), number(each["queries"]), percent(each["are"], 2), number(each["skipped"]))
        for each in are["workloads"]
    )
    table = Table(
        "Average relative error (ARE) of estimated counts",
        ("code sets asked for", "queries", "ARE", "left out, true count 0"),
        rows,
    )
    return Section(
        "What it cost: counts of code sets",
        (
            (
                "A recipient estimates how many patients have a set of codes together. Here the estimates "
                "are compared with the true counts: an ARE of 2 % means that an estimate is off by 2 % of "
                "the true count on average."
            ),
            table,
            (
                "How often a code of an item chunk occurs is not released; the estimates assume the prior "
                f"`{are['prior']}`."
            ),
        ),
    )


def placement(measures: Figures) -> Section | None:
    """Which codes sit in which kind of chunk."""
    places = measures.get("placement")
    if not places:
        return None
    total = max(1, places["occurrences"]["total"])
    kinds = {RECORD: "record", SHARED: "shared", ITEM: "item"}
    shares = {name: places["occurrences"][key] / total for name, key in kinds.items()}
    overall = Chart(
        "All code occurrences",
        "Of all code occurrences, "
        + ", ".join(f"{percent(s)} in {name}s" for name, s in shares.items())
        + ".",
        charts.stacked(
            [{"what": "all codes", "share": s, "kind": name} for name, s in shares.items()],
            y="what",
            x="share",
            part="kind",
            x_title="share of code occurrences",
            colors=COLORS,
            share=True,
        ),
        "; ".join(f"{percent(share)} in {name}s" for name, share in shares.items()) + ".",
    )
    top = places["codes"][:CODES_SHOWN]
    bars = [
        {"code": row["code"], "count": row[key], "kind": name}
        for row in top
        for name, key in kinds.items()
        if row[key]
    ]
    by_code = Chart(
        f"The {len(top)} most frequent codes",
        "Lying bars, one a code, split by the kind of chunk in which its occurrences lie.",
        charts.stacked(
            bars, y="code", x="count", part="kind", x_title="patients with the code", colors=COLORS
        ),
        "Frequent codes stay in record and shared chunks, where they are counted exactly together with "
        "the other codes of their chunk. Rare ones move to item chunks.",
    )
    return Section(
        "Which codes sit in which kind of chunk",
        (
            (
                "Patients are put into small clusters, and the codes of a cluster into chunks. In a "
                "**record chunk** and a **shared chunk** it is known which codes go together in a "
                "patient, and how often. In an **item chunk** only the presence of a code in the cluster "
                "is known."
            ),
            overall,
            by_code,
        ),
    )


def policy(measures: Figures) -> Section | None:
    """How well the code groups of the utility policy are kept."""
    mre = measures.get("mre")
    if not mre or not mre["constraints"]:
        return None
    constraints = mre["constraints"]
    within = percent(mre["within_5_percent"])
    chart = Chart(
        "Error of each code group of the policy",
        f"Histogram of the relative error of {len(constraints):,} code groups; {within} lie within ±5 %.",
        charts.histogram(
            bins([each["mre"] for each in constraints]),
            x_title="relative error, (true − estimate) / true",
            y_title="code groups",
            mark=(-0.05, 0.05),
        ),
        f"{within} of the groups are estimated within ±5 % (shaded). Below zero the release overestimates. "
        "The two outermost bars hold all that lies beyond.",
    )
    worst = sorted(constraints, key=lambda each: -abs(each["mre"]))[:CONSTRAINTS_SHOWN]
    table = Table(
        f"The {len(worst)} code groups with the largest error",
        ("code group", "patients, true", "estimated", "error"),
        tuple(
            (
                each["name"],
                number(each["true"]),
                number(float(each["estimate"])),
                f"{100 * each['mre']:+.1f} %",
            )
            for each in worst
        ),
    )
    by_interval = Table(
        "The same by the intervals of the paper",
        ("relative error", "code groups", "share"),
        tuple((span(each), number(each["count"]), percent(each["share"])) for each in mre["intervals"]),
    )
    intro = (
        "A utility policy names groups of codes whose analysis is to survive. A patient matches a group "
        "by having at least one of its codes; below, the number of matching patients as the release gives "
        "it is compared with the true one."
    )
    return Section("What it cost: the utility policy", (intro, chart, table, by_interval))


def bins(errors: Sequence[float]) -> list[dict[str, float]]:
    """Counts of errors in steps of `BIN`; the outermost bins take what lies beyond."""
    last = round(BINS_TO / BIN)
    counts = Counter(max(-last, min(last - 1, math.floor(round(error / BIN, 9)))) for error in errors)
    return [{"low": n * BIN, "high": (n + 1) * BIN, "count": counts[n]} for n in range(-last, last)]


def span(interval: Figures) -> str:
    """An interval of errors, either end open."""
    low, high = interval["low"], interval["high"]
    if low is None:
        return f"below {100 * high:+g} %"
    return f"{100 * low:+g} % and more" if high is None else f"{100 * low:+g} to {100 * high:+g} %"


def unusable(release: Release, measures: Figures) -> Section | None:
    """Patients of whom nothing can be analysed."""
    places = measures.get("placement", {})
    count = places.get("item_only_records", places.get("item_only_records_at_least"))
    if count is None:
        return None
    least = "" if "item_only_records" in places else "At least "
    share = percent(count / max(1, release.records))
    advice = (
        "Records were already moved to clusters that keep one of their codes (`recut`); these are left."
        if release.parameters.get("recut")
        else "With the option `recut`, such records move to clusters that keep one of their codes."
    )
    return Section(
        "Patients whose whole record lies in an item chunk",
        (
            (
                f"**{least}{count:,} of {release.records:,} patients** ({share}) have all their codes in "
                "the item chunk of their cluster. The model allows it, yet nothing of them can be "
                "analysed, and an attacker who guesses does better against them than the guarantee "
                f"suggests. {advice}"
            ),
        ),
    )


def plain_words(release: Release, measures: Figures) -> Section:
    """The guarantee and its limits for people who do not read proofs
    (docs/methods/disassociation.md#what-it-does-not-protect)."""
    k, m = release.guarantee["k"], release.guarantee["m"]
    codes = "diagnosis code" if m == 1 else "diagnosis codes"
    return Section(
        "In plain words",
        (
            (
                f"Somebody knows up to **{m} {codes}** of a patient and holds this release. Among all data "
                f"sets that the release could stand for, at least one has **{k} or more patients** with "
                f"these codes: which of them is meant, the files do not tell. {suppressed(measures)} What "
                "is hidden is which rare codes go together."
            ),
            "What a board should know before it signs:",
            Notes(
                limits(
                    k,
                    m,
                    safe=bool(release.parameters.get("safe")),
                    covers=measures.get("placement", {}).get("covers"),
                )
            ),
        ),
    )


def suppressed(measures: Figures) -> str:
    """What was taken out, if anything."""
    count = measures.get("method", {}).get("suppressed_occurrences", 0)
    if count:
        return f"For the diversity of sensitive codes, {count:,} mentions of codes were taken out."
    return "No code was taken out or made coarser."


def _covers_found(covers: Mapping[str, int] | None) -> str:
    """How often that is so in this release."""
    if covers is None:
        return ""
    return (
        f"In this release {covers['chunks']:,} of {covers['of_chunks']:,} chunks with several codes hold such a "
        f"pair, {covers['pairs']:,} pairs in all. "
    )


def limits(k: int, m: int, *, safe: bool, covers: Mapping[str, int] | None = None) -> tuple[str, ...]:
    """What the guarantee leaves open."""
    cover = (
        "Such codes were put apart here (`safe`), for which no theorem is claimed."
        if safe
        else "The option `safe` puts such codes apart; it costs utility, and no theorem is claimed for it."
    )
    return (
        (
            "**The promise is about what the files could mean, not about how they were made.** Who knows "
            f"the algorithm knows that a code of an item chunk is had by fewer than {k} patients of its "
            "cluster, which rules some of those data sets out. Only attackers who know codes are covered."
        ),
        (
            "**One code may give away another.** Where all patients of a chunk with code x also have code "
            f"y, who knows x learns y (the cover problem). {_covers_found(covers)}{cover}"
        ),
        (
            f"**More than {m}.** Nothing is promised against somebody who knows more than {m} of a "
            "patient's codes, or codes that the patient does not have."
        ),
        (
            "**Presence is visible.** All codes are in the release, so a code that is known to be one "
            "person's alone shows that this person is in the data."
        ),
        (
            "**What all candidates share is told.** If all candidate records agree on a further code, it is "
            "learnt."
        ),
        (
            "**Releases and attackers add up.** Two releases of the same patients, knowledge of several "
            "patients at once, or attackers who pool what they know may undo the protection."
        ),
    )


def workload(each: Figures) -> str:
    """What a workload asks for."""
    if each.get("label"):
        return str(each["label"])
    if each.get("min_support"):
        return f"sets that at least {100 * each['min_support']:g} % of the patients have"
    return str(each.get("name", "code sets"))
