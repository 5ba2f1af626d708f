"""The report's section on demographics: what they keep together with codes, and what the joint attacker finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.analysis.demographics.joint import WholePatient
from leeward.arrays import count_noun
from leeward.release import Release
from leeward.report.sections import Section, Table, number, percent, table_of


def section(
    release: Release,
    measures: Mapping[str, Any],
    m: int = 0,
    lost: tuple[float, float] | None = None,
    *,
    with_risk: bool = True,
) -> Section | None:
    """Demographics and codes in one release; None without demographics. `m`: codes that the attacker knows. `lost`: the
    share of code occurrences that is lost, here and in a release without demographics, where the method's facts do not
    have it. `with_risk`: False where another section has the joint attacker."""
    found: WholePatient = measures.get("demographics") or {}
    if not found:
        return None
    k, facts = int(release.guarantee["k"]), measures.get("method") or {}
    searched, lost = facts.get("demographics_search", ()), lost or losses_of(facts)
    return Section(
        "Demographics and codes together",
        (
            (
                f"Patients are released in **{found['classes']:,} classes** of at least {found['smallest_class']:,} "
                "who share their released demographics. Questions such as 'patients of this age and sex with these "
                "codes' are answered inside the classes."
            ),
            errors_table(found),
            (
                "'Apart' is the best that a recipient could do with codes and demographics in two releases: the "
                "true number of patients with the codes, times the true share of the demographics."
            ),
            columns_table(found),
            *([search_table(searched)] if searched else []),
            *((risk_table(found, k, m), in_the_release(found, k, m)) if with_risk else ()),
            *([cost(*lost)] if lost else []),
        ),
    )


def in_the_release(found: WholePatient, k: int, m: int) -> str:
    after = found["after"]
    alone = f"In the release: exact demographics alone leave at least **{after['by_demographics']:,}** candidates."
    if not after["sets"]:
        return alone
    return (
        f"{alone} Of {after['sets']:,} pieces of knowledge of real patients (exact demographics and up to "
        f"{count_noun('code', m)}), {after['below_k']:,} leave fewer than {k} candidates; the smallest number is "
        f"**{after['smallest']:,}**."
    )


def losses_of(facts: Mapping[str, Any]) -> tuple[float, float] | None:
    """The share of code occurrences that is lost here and without demographics, where the method's facts have both."""
    if "lost_without_demographics" not in facts:
        return None
    return facts["lost"], facts["lost_without_demographics"]


def cost(lost: float, without: float) -> str:
    return (
        f"**{percent(lost, 1)}** of the code occurrences are lost, against {percent(without, 1)} in a release of the "
        "codes without demographics."
    )


def errors_table(found: WholePatient) -> Table:
    ways = [each["way"] for each in found["asked"][0]["errors"]] if found["asked"] else []
    rows = tuple(
        (
            f"{count_noun('code', each['codes'])}, true count of {each['at_least']} or more",
            number(each["questions"]),
            *(percent(error["are"], 1) for error in each["errors"]),
        )
        for each in found["asked"]
    )
    return Table(
        "Average relative error of counts of demographics with codes", ("questions", "number", *ways), rows
    )


def columns_table(found: WholePatient) -> Table:
    return table_of(
        "Demographic columns",
        found["columns"],
        ("column", "column", str),
        ("asked for at", "asked", str),
        ("loss (LM)", "loss", percent),
    )


def search_table(searched: Sequence[Mapping[str, Any]]) -> Table:
    """What the search for levels or cuts measured; of candidates that another one beats in both losses, none."""
    front = [
        each
        for each in searched
        if not any(
            (other["loss"] <= each["loss"] and other["lost"] < each["lost"])
            or (other["loss"] < each["loss"] and other["lost"] <= each["lost"])
            for other in searched
        )
    ]  # fmt: skip
    return table_of(
        f"Loss of demographics against loss of codes: the frontier of {len(searched)} candidates",
        sorted(front, key=lambda each: float(each["loss"])),
        ("candidate", "", lambda each: each["candidate"] + ("" if each["all_records"] else " (sample)")),
        ("classes", "classes", number),
        ("demographics (LM)", "loss", percent),
        ("code occurrences lost", "lost", percent),
        ("objective", "objective", percent),
    )


def risk_table(found: WholePatient, k: int, m: int) -> Table:
    rows = [
        (
            "exact demographics" + (f" and {count_noun('code', each['codes'])}" if each["codes"] else ""),
            number(each["unique"]),
            number(each["below_k"]),
            percent(each["below_k"] / max(1, each["patients"]), 1),
            *(["none" if each["codes"] <= m else "not protected"] if found["after"]["sets"] else []),
        )
        for each in found["risk"]["before"]
    ]
    return Table(
        f"Patients whom an attacker singles out in the original data, of {found['risk']['patients']:,}",
        (
            "known of a patient",
            "alone",
            f"among fewer than {k}",
            "share",
            *([f"fewer than {k} in the release"] if found["after"]["sets"] else []),
        ),
        tuple(rows),
    )
