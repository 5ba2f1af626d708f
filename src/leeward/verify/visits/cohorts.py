"""A cohort drawn from a master: its sets are counted in the master, its records are the master's, unchanged, and what
it says of itself (parameters, payload, the figures on known members) is counted again."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leeward.contracts.visits import CONTRACT, count_sentences, limits_of_cohort
from leeward.errors import BadInput
from leeward.verify.checks import Check, failing, of_count, other_payload, payload_of
from leeward.verify.classes import Placed, demographics_of, place_in_classes, place_records
from leeward.verify.contract_checks import columns_of_contract, numbers_agree, parameters_known
from leeward.verify.flat import Longs
from leeward.verify.manifest import DRAWING, Share, manifest_checks, manifest_types, open_share
from leeward.verify.visits.layout import VisitLists, apart, layout, place
from leeward.verify.visits.levels import (
    code_check,
    joint,
    level_checks,
    number_sets,
    people_with,
    visit_check,
)


def extract_checks(share: Share, visits: VisitLists, k: int, level: str) -> list[Check]:
    """The master passes its own checks of files and sets, and the extract shows its records as the master does."""
    master = open_master(share.folder.parent / "custody")
    if (unfit := fault_of(share, master, k, level)) is not None:
        return [Check("master", False, unfit)]
    checks = [
        Check("master", True, f"Master of {master.manifest['records']:,} records, k = {k}, level {level}."),
        of_count(
            "master_files",
            len(failing(manifest_checks(master))),
            "The master's files are as its manifest states.",
            "checks of the master's files failed.",
        ),
    ]
    columns = columns_of_contract(master, CONTRACT)
    if not columns.passed:
        return [*checks, columns]
    found, population = layout(master)
    if population is None:
        return [*checks, *(each for each in found if not each.passed)]
    pairs = pl.read_parquet(share.folder.parent / "custody" / "data" / "records.parquet").select(
        "record", "master_record"
    )
    checks += [parameters_of_master(share, master), *payload_of_master(share, master, pairs)]
    checks += as_drawn(share, pairs)
    classes, placed = None, None
    if demographics_of(share):
        more, drawn, placed = place_drawn(share, master, pairs)
        checks += more
        if drawn is None or placed is None:
            return checks
        visits, population, classes = apart(visits, drawn), apart(population, placed), (drawn, placed)
    checks += sets_of_population(master, visits, population, k, level, placed)
    checks += check_figures(share, visits, population, k, classes)
    return [*checks, same_records(visits, population, pairs, int(share.manifest["records"]))]


def fault_of(share: Share, master: Share, k: int, level: str) -> str | None:
    """Why a release is not the master of an extract; None where it may be."""
    formed = manifest_types(master).passed and parameters_known(master, CONTRACT).passed
    if not formed or not numbers_agree(master, CONTRACT).passed:
        return "The master's release.json is not of the contract of visits."
    same = master.manifest["guarantee"].get("k") == k and master.manifest["parameters"].get("level") == level
    if not same or demographics_of(master) != demographics_of(share):
        return "The extract does not state its master's k, level and demographics."
    return None


def sets_of_population(
    master: Share, visits: VisitLists, population: VisitLists, k: int, level: str, placed: Placed | None
) -> list[Check]:
    """What the extract shows is shared by k of the master's records; at levels that custody counts, the master's."""
    if level in ("codes", "containment"):
        return level_checks(master, population, k, level, placed)
    return [visit_check(visits, population, k) if level == "visit" else code_check(visits, population, k)]


def place_drawn(
    share: Share, master: Share, pairs: pl.DataFrame
) -> tuple[list[Check], Placed | None, Placed | None]:
    """The classes of a cohort and of its master, and every record of both in a class of the master's; None where they
    are not as they must be. The classes have at least k records in the master, not in the cohort."""
    records = share.table("records.parquet").sort("record")
    own, _ = place_in_classes(share, records)
    found, whole = place(master)
    checks = [each for each in own if each.name != "class_sizes"]
    of_master = of_count(
        "master_classes",
        len(failing(found)),
        f"The master's classes have at least {master.guarantee('k')} records each, and labels of its hierarchies.",
        "checks of the master's classes failed.",
    )
    checks.append(of_master)
    if whole is None:
        return checks, None, None
    _, of_record = place_records(records, whole.classes)
    masters = pairs.sort("record")["master_record"].to_numpy()
    known = masters[(masters >= 0) & (masters < len(whole.of_record))]
    theirs = whole.of_record[known] if len(known) == len(of_record) else np.full(len(of_record), -2)
    checks.append(
        of_count(
            "same_demographics",
            int((of_record != theirs).sum()),
            "Every record has the released demographics of its own record in the master.",
            "records have demographics that differ from those of the master's record.",
        )
    )
    return checks, None if failing(checks) else Placed(whole.classes, of_record), whole


def open_master(custody: Path) -> Share:
    """The master's share, as `custody/master.json` names it. Raises BadInput when it is not there, or another one."""
    note = custody / "master.json"
    if not note.is_file():
        raise BadInput(
            "a cohort's k is about the population it was drawn from: verify the whole folder, with "
            "custody/master.json."
        )
    try:
        named = json.loads(note.read_text(encoding="utf-8"))
        given, digest = Path(str(named["path"])), named["sha256"]
    except (ValueError, KeyError, TypeError):
        raise BadInput("custody/master.json is damaged: it names no master.") from None
    path = given if given.is_absolute() else (custody.parent / given)
    manifest = path / "share" / "release.json"
    if not manifest.is_file():
        raise BadInput(
            f"{path}: the master named in custody/master.json is not there; put it back, or correct the path."
        )
    if hashlib.sha256(manifest.read_bytes()).hexdigest() != digest:
        raise BadInput(f"{path}: not the master that this cohort was drawn from (its release.json differs).")
    return open_share(path)


def same_records(visits: VisitLists, population: VisitLists, pairs: pl.DataFrame, records: int) -> Check:
    """Each record has the visit sets of its own master record."""
    whole = pairs.height == records == pairs["record"].n_unique() == pairs["master_record"].n_unique()
    own, master = joint(visits, population)
    shown, held = number_sets(own, master)
    counted = [
        pl.DataFrame({of: each.record, "set": sets}).group_by(of, "set").len()
        for of, each, sets in (("record", own, shown), ("master_record", master, held))
    ]
    theirs = counted[1].join(pairs.cast(pl.Int64), on="master_record").drop("master_record")
    both = counted[0].join(theirs, on=["record", "set"], how="full", coalesce=True)
    differing = both.filter(pl.col("len").ne_missing(pl.col("len_right"))).height
    return of_count(
        "same_as_master",
        differing + (not whole),
        "Every record shows the visits of its own record in the master, no more and no less.",
        "visit sets differ from the master's record.",
    )


OWN = frozenset({"extract", "population", "membership_is_secret", "payload"})
"""Parameters that a cohort has of its own."""


def parameters_of_master(share: Share, master: Share) -> Check:
    """The master's parameters are the cohort's too, and the population is the master's."""
    own, theirs = share.manifest["parameters"], master.manifest["parameters"]
    wrong = [name for name in {*own, *theirs} - OWN if own.get(name) != theirs.get(name)]
    wrong += ["population"] if own.get("population") != master.manifest["records"] else []
    return of_count(
        "parameters_of_master",
        len(wrong),
        "The parameters are the master's.",
        f"parameters are not the master's: {', '.join(sorted(wrong))}.",
    )


def payload_of_master(share: Share, master: Share, pairs: pl.DataFrame) -> list[Check]:
    """Every record has the payload of its own record in the master, in the columns that the master has too."""
    held = payload_of(master.manifest["parameters"])
    names = [name for name in payload_of(share.manifest["parameters"]) if name in held]
    if not names:
        return []
    own = share.table("records.parquet").select("record", *names).join(pairs, on="record", how="left")
    theirs = master.table("records.parquet").rename({"record": "master_record"})
    return [
        of_count(
            "payload_of_master",
            other_payload(own, theirs, "master_record", names).height,
            "Every record has the payload of its own record in the master.",
            "records have a payload that differs from the master's record.",
        )
    ]


def as_drawn(share: Share, pairs: pl.DataFrame) -> list[Check]:
    """The reason and the payload are those with which the cohort was drawn: custody keeps the one, and a digest of the
    other. No check of a cohort that an earlier version drew."""
    file = share.kept(DRAWING)
    if file is None:
        return []
    parameters = share.manifest["parameters"]
    try:
        (kept,) = pl.read_parquet(file).select("membership_is_secret", "payload_sha256").rows()
    except (OSError, ValueError, pl.exceptions.PolarsError):
        return [Check("reason_as_given", False, f"custody/data/{DRAWING} cannot be read.")]
    names = payload_of(parameters)
    found = payload_digest(share, pairs, names) if names else None
    return [
        of_count(
            "reason_as_given",
            int(parameters.get("membership_is_secret") != kept[0]),
            "The reason why membership is secret is the one that custody keeps, or both have none.",
            "reason why membership is secret is not the one that custody keeps.",
        ),
        of_count(
            "payload_as_drawn",
            int(found != kept[1]),
            "The payload is the one with which the cohort was drawn, by its digest in custody.",
            "payload is not the one with which the cohort was drawn, by its digest in custody.",
        ),
    ]


def payload_digest(share: Share, pairs: pl.DataFrame, names: Sequence[str]) -> str:
    """SHA-256 of the payload in the order of the master's records: a line of JSON with the columns' names, and one for
    each record; what JSON has no value for is a text."""
    rows = share.table("records.parquet").join(pairs, on="record", how="left").sort("master_record")
    found = hashlib.sha256()
    for row in (names, *rows.select(names).iter_rows()):
        found.update(json.dumps(row, ensure_ascii=False, default=str).encode("utf-8") + b"\n")
    return found.hexdigest()


def check_figures(
    share: Share, visits: VisitLists, population: VisitLists, k: int, classes: tuple[Placed, Placed] | None
) -> list[Check]:
    """The figures of the limits on known members and joined cohorts are what the files show, and a reason is stated
    where fewer than k members share something. `visits` are the cohort's, `population` the master's, codes of classes
    apart; `classes` place the records of both, where there are demographics."""
    own, master = joint(visits, population)
    mine, theirs = number_sets(own, master)
    n = int(max(mine.max(initial=-1), theirs.max(initial=-1))) + 1
    inside = people_with(own, mine, n, of_visits=True)[mine]
    there = people_with(master, theirs, n, of_visits=True)[mine]
    few, alone, total = int((inside < k).sum()), int((inside == 1).sum()), len(mine)
    figures: dict[str, int] = {
        "few": few, "alone": alone, "visits": total,
        "smallest": inside.min() if total else 0, "population_smallest": there.min() if total else 0,
    }  # fmt: skip
    few_in_class = 0
    if classes is not None:
        here, everywhere = (
            np.bincount(each.of_record, minlength=len(each.classes.labels)) for each in classes
        )
        size, whole = here[classes[0].of_record], everywhere[classes[0].of_record]
        few_in_class = int((size < k).sum())
        figures |= {
            "few_in_class": few_in_class, "alone_in_class": int((size == 1).sum()),
            "smallest_class": size.min(), "population_smallest_class": whole.min(),
        }  # fmt: skip
    alone_there, alone_here = _alone(own, mine, master, theirs)
    figures |= {
        "members": int(share.manifest["records"]),
        "members_alone_population": alone_there,
        "members_alone": alone_here,
    }
    parameters = share.manifest["parameters"]
    stated = share.manifest["guarantee"]["not_protected"]
    unlike = sum(
        one != other for one, other in zip(count_sentences(parameters, figures), stated, strict=False)
    )
    secret = few + few_in_class > 0 and not parameters.get("membership_is_secret")
    good = (
        "No reason is needed why membership is secret." if not few + few_in_class else "A reason is stated."
    )
    return [
        of_count(
            "figures_stated",
            unlike,
            "The figures on known members and on joined cohorts are those that the files show.",
            "of the limits state figures that differ from those of the files.",
        ),
        Check(
            "reason_stated",
            not secret,
            "Fewer than k members share some of it, and no reason is stated why membership is secret."
            if secret
            else good,
        ),
    ]


def _alone(own: VisitLists, mine: Longs, master: VisitLists, theirs: Longs) -> tuple[int, int]:
    """Of the cohort's records, those whose visits, all together, no other record of the master has, and of the
    cohort."""
    members, everybody = _together(own, mine), _together(master, theirs)
    here, there = Counter(members), Counter(everybody)
    return sum(there[each] == 1 for each in members), sum(here[each] == 1 for each in members)


def _together(visits: VisitLists, sets: Longs) -> list[bytes]:
    """The sets of all visits of each record that has visits, in order of their numbers."""
    order = np.lexsort((sets, visits.record))
    bounds = np.flatnonzero(np.diff(visits.record[order], prepend=-1, append=-1))
    ordered = sets[order]
    return [ordered[low:high].tobytes() for low, high in pairwise(bounds)]


def facts_of(share: Share) -> list[dict[str, Any]]:
    """The figures that a cohort states, which its checks count again in the files; none of a release by itself."""
    parameters = share.manifest["parameters"]
    if not parameters.get("extract"):
        return [{}]
    figures: dict[str, int] = {}
    stated = share.manifest["guarantee"]["not_protected"]
    sentences = limits_of_cohort(parameters)
    if len(stated) < len(sentences):
        return []
    for sentence, text in zip(sentences, stated, strict=False):
        found = pattern_of(sentence).fullmatch(text)
        if found is None:
            return []
        figures |= {name: int(number.replace(",", "")) for name, number in found.groupdict().items()}
    return [{"figures": figures}]


def pattern_of(sentence: str) -> re.Pattern[str]:
    """A sentence with any figures in its places; shares follow from the others."""
    parts = re.split(r"\{(\w+)(:[^}]*)?\}", sentence)
    found = re.escape(parts[0])
    for name, form, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        found += r"[\d.]+%" if form == ":.1%" else rf"(?P<{name}>\d[\d,]*)"
        found += re.escape(text)
    return re.compile(found)
