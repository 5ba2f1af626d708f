"""The report on generalized records: what became of the codes, what counts cost, the risk before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.methods.disassociation.report import bins, workload
from leeward.release import Release
from leeward.report import charts
from leeward.report.sections import Chart, Notes, Part, Section, Table, Tile, Tiles, number, percent

INTACT, GENERALIZED, SUPPRESSED = "intact", "generalized", "suppressed"
COLORS = {INTACT: charts.BLUE, GENERALIZED: charts.ORANGE, SUPPRESSED: charts.GREY}
CONSTRAINTS_SHOWN = 15
LABELS_SHOWN = 10

NAMES = {
    "cba": "CBA: the merge that loses least",
    "ugaclip": "UGACLIP: the rarest code first",
    "coat": "COAT: the rarest code first, with a cap on suppression",
    "apriori": "Apriori: whole subtrees of the vocabulary",
    "mapping": "the mapping of an earlier release",
}

Figures = Mapping[str, Any]


def sections(release: Release, measures: Figures, verification: Figures) -> list[Section]:
    """The sections of the report that are this method's own."""
    found = [
        glance(release, measures),
        fate(release, measures),
        risk(release, measures),
        counting(measures),
        policy(measures),
        plain_words(release),
    ]
    return [section for section in found if section is not None]


def glance(release: Release, measures: Figures) -> Section:
    """What a privacy board and a researcher ask for first."""
    k, m = release.guarantee["k"], release.guarantee.get("m")
    sets = f"every set of up to {m} released codes" if m else "every listed code set"
    tiles = [Tile(f"0 or ≥ {k}", f"records hold {sets}", tone="good")]
    codes = measures.get("codes")
    if codes:
        of = codes["codes"]
        lost = codes["occurrences"]["suppressed"] / max(1, codes["occurrences"]["total"])
        tiles += [
            Tile(
                number(of["suppressed"]),
                f"of {of['total']:,} codes suppressed",
                f"{percent(lost)} of all occurrences",
                "warn" if of["suppressed"] else "good",
            ),
            Tile(
                number(of["generalized"]),
                "codes merged with others",
                f"{codes['labels']:,} labels are released",
                "warn" if of["generalized"] else "good",
            ),
        ]
    first = next(iter(measures.get("are", {}).get("workloads", ())), None)
    if first:
        tiles.append(Tile(percent(first["are"]), "mean relative error of counts", workload(first), "plain"))
    return Section("At a glance", (Tiles(tuple(tiles)),))


def fate(release: Release, measures: Figures) -> Section | None:
    """Codes and occurrences that stayed, were merged, or went."""
    codes = measures.get("codes")
    if not codes:
        return None
    parts = (INTACT, GENERALIZED, SUPPRESSED)
    rows = [
        {"what": what, "share": codes[key][part] / max(1, codes[key]["total"]), "fate": part}
        for what, key in (("codes", "codes"), ("occurrences", "occurrences"))
        for part in parts
    ]
    text = "; ".join(
        f"{percent(codes['occurrences'][part] / max(1, codes['occurrences']['total']))} {part}"
        for part in parts
    )
    chart = Chart(
        "What became of the codes",
        f"Two lying bars, distinct codes and code occurrences. Of the occurrences: {text}.",
        charts.stacked(rows, y="what", x="share", part="fate", x_title="share", colors=COLORS, share=True),
        f"Of all code occurrences: {text}.",
    )
    facts = measures.get("method", {})
    algorithm = NAMES[release.parameters["algorithm"]]
    lines = [f"Algorithm: {algorithm}."]
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
    found: list[Part] = [chart, Notes(tuple(lines))]
    if codes["largest_labels"]:
        table = Table(
            "The largest labels",
            ("codes in the label", "patients who hold it"),
            tuple(
                (number(each["members"]), number(each["records"]))
                for each in codes["largest_labels"][:LABELS_SHOWN]
            ),
        )
        found.append(table)
    return Section("What became of the codes", tuple(found))


def risk(release: Release, measures: Figures) -> Section | None:
    """How many patients could be singled out by m of their codes before."""
    rows = measures.get("risk", {}).get("by_m", ())
    if not rows:
        return None
    k = release.guarantee["k"]
    table = Table(
        f"Original data: patients with a set of codes that fewer than {k} patients share",
        ("codes known", "patients with so many codes", f"fewer than {k} alike", "share", "unique", "share"),
        tuple(
            (
                str(row["m"]),
                number(row["patients"]),
                number(row["below_k"]),
                percent(row["below_k_share"]),
                number(row["unique"]),
                percent(row["unique_share"]),
            )
            for row in rows
        ),
    )
    m = release.guarantee.get("m")
    after = (
        f"In the release nobody can be told from fewer than {k - 1:,} others by up to {m} codes."
        if m
        else "The release protects the listed code sets only; attackers may know others of the table."
    )
    return Section("Risk before and after", (table, after))


def counting(measures: Figures) -> Section | None:
    """How far estimated counts are from the true ones."""
    are = measures.get("are")
    if not are or not are["workloads"]:
        return None
    rows = tuple(
        (
            workload(each),
            number(each["queries"]),
            percent(each["are"], 2),
            number(each["kept"]["queries"]),
            percent(each["kept"]["are"], 2),
            number(each["skipped"]),
        )
        for each in are["workloads"]
    )
    table = Table(
        "Average relative error (ARE) of estimated counts",
        (
            "code sets asked for",
            "queries",
            "ARE",
            "on released codes",
            "ARE of these",
            "true count 0, left out",
        ),
        rows,
    )
    return Section(
        "What it cost: counts of code sets",
        (
            (
                "A recipient estimates how many patients have a set of codes together: the records that hold "
                "the codes' labels, times the probability that the labels mean these codes. A question about "
                "a suppressed code is answered with 0."
            ),
            table,
            f"Generalized codes are read as `{are['reading']}`.",
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
        f"{within} of the groups lie within ±5 % (shaded). What is lost here was suppressed: codes that were "
        "merged inside their group are still counted in full.",
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
    intro = "A patient matches a code group by having at least one of its codes."
    return Section("What it cost: the utility policy", (intro, chart, table))


def plain_words(release: Release) -> Section:
    """The guarantee and its limits for people who do not read proofs."""
    k, m = release.guarantee["k"], release.guarantee.get("m")
    knows = f"up to **{m} codes** of a patient" if m else "one of the **listed code sets** of a patient"
    return Section(
        "In plain words",
        (
            (
                f"Somebody knows {knows} and holds this release. At least **{k} records** fit what they "
                "know, or the codes they know were taken out and tell nothing."
            ),
            "What a board should know before it signs:",
            Notes(tuple(release.guarantee["not_protected"])),
        ),
    )
