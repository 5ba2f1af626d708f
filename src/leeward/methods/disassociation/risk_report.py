"""The report's section on risk: patients whom some of their codes single out, before and after, for each attacker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.analysis.code_figures import RiskRow
from leeward.analysis.demographics.figures import KnownBy, WholePatient
from leeward.analysis.reidentification import Further
from leeward.arrays import count_noun
from leeward.contracts.classes import in_words
from leeward.methods.disassociation.measures.figures import Candidates, Risk
from leeward.release import Release
from leeward.report import charts
from leeward.report.code_sets import risk_table
from leeward.report.sections import Chart, Section, percent

BEFORE, AFTER = "Original data", "This release"
WITHOUT, WITH = "This release, if they do not use the algorithm", "if they do (at least)"
COLORS = {BEFORE: charts.VERMILION, AFTER: charts.BLUE, WITHOUT: charts.BLUE, WITH: charts.ORANGE}


def section(release: Release, measures: Mapping[str, Any]) -> Section | None:
    """How many patients could be singled out by what is known of them, before; and what is left, for each attacker."""
    found, whole = Risk.of(measures, "risk"), WholePatient.of(measures, "demographics")
    if found is None or not found.by_m:
        return None
    rows: Sequence[RiskRow | KnownBy] = found.by_m if whole is None else whole.risk.before
    beside = beside_of(release) if whole is not None else ""
    exact = (
        [row.patients_exact for row in found.by_m]
        if whole is None
        else [row.exact for row in whole.risk.before]
    )
    bounds = (
        "" if all(exact) else "; where the sets were too many to count, estimated from a sample of patients"
    )
    table = risk_table(
        f"The same in numbers (original data{', known beside ' + beside if beside else ''}){bounds}",
        rows,
        found.k,
    )
    further = Further.of(measures.get("reidentification") or {}, "further")
    return Section(
        "Risk before and after",
        (
            chart(release, rows, beside, further),
            *candidates(release, found.after, beside, measures.get("method", {})),
            table,
        ),
    )


def beside_of(release: Release) -> str:
    """What attackers know beside codes."""
    names = [str(name) for name in release.parameters.get("demographics") or ()]
    return f"the exact {in_words(names)}" if names else ""


def covers_algorithm(release: Release) -> bool:
    """Whether the release was made for an attacker who knows the algorithm: counts of single codes, no item chunks."""
    return release.parameters.get("attacker") == "algorithm"


def chart(release: Release, rows: Sequence[RiskRow | KnownBy], beside: str, further: Further | None) -> Chart:
    """Patients at risk by the codes known, one bar for the source and for each attacker of the release."""
    k, m = int(release.guarantee["k"]), int(release.guarantee["m"])
    after = AFTER if covers_algorithm(release) else WITHOUT
    least = further.patients / max(1, further.among) if further else 0.0
    bars: list[tuple[str, float, str]] = []
    for row in rows:
        known = f"up to {count_noun('code', row.m)}" if row.m else "no code"
        shares = {BEFORE: row.below_k_share}
        if row.m <= m:
            shares[after] = 0.0
        if further and 0 < row.m <= m:
            shares[WITH] = least
        bars += [(known, share, data) for data, share in shares.items()]
    worst = next(row for row in reversed(rows) if row.m <= m)
    said = (
        f"In the original data {percent(worst.below_k_share)} of the patients are at risk with "
        f"{beside + ' and ' if beside else ''}{count_noun('code', worst.m)} known; in the release none with up to {m}"
    )
    captions = [
        f"A patient is at risk when fewer than {k} patients have some combination of what is known; shares of all."
    ]
    if any(row.m > m for row in rows):
        captions.append(
            f"Beyond {m} codes nothing is promised: a missing bar means no promise; the risk may be high."
        )
    if further:
        said += f" for attackers who do not use the algorithm, at least {percent(least)} for those who do"
        captions.append(
            "For attackers who use the algorithm one code was counted: more put at least as many at risk."
        )
    return Chart(
        f"Patients at risk: fewer than {k} share some combination of "
        + (f"{beside} and their codes" if beside else "their codes"),
        f"Bars by number of codes known. {said}.",
        charts.bars_by_group(
            bars,
            x_title=f"known of a patient beside {beside}"
            if beside
            else "codes of a patient that the attacker knows",
            y_title="patients at risk",
            colors={data: COLORS[data] for data in dict.fromkeys(data for _, _, data in bars)},
        ),
        " ".join(captions),
    )


def candidates(
    release: Release, after: Candidates | None, beside: str, facts: Mapping[str, Any]
) -> tuple[str, ...]:
    """What attackers with codes of real patients find in the release."""
    if after is None or not after.sets:
        return ()
    k = release.guarantee["k"]
    tried = (
        f"Tried: {after.sets:,} sets of up to {count_noun('code', after.largest_set)} were drawn from real patients"
        f"{', with ' + beside if beside else ''}, the rarest first, and looked up in the release. The smallest number "
        f"of candidate records was **{after.smallest_candidates:,}**; {after.below_k:,} sets had fewer than {k}."
    )
    if covers_algorithm(release):
        return (
            tried,
            (
                "An attacker who knows the algorithm finds as many: no code is listed without its count, and where a "
                "count is near the least, whether the code is shown is drawn at random."
            ),
        )
    if after.below_k_algorithm_known is None:
        return (tried,)
    moved = facts.get("empty_item_chunk_condition_fired")
    capped = (
        f"Whoever uses the algorithm knows that a code of an item chunk has at most {k - 1} patients in its cluster"
        f"{f' (but for one code in {moved:,} clusters)' if moved else ''}: **{after.below_k_algorithm_known:,}** of "
        f"these sets have fewer than {k} candidates then."
    )
    return (tried, capped)
