"""A cohort drawn from a master: its sets are counted in the master, and its records are the master's, unchanged."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.contracts.visits import CONTRACT
from leeward.errors import BadInput
from leeward.verify.checks import Check, of_count
from leeward.verify.classes import class_checks, demographics_of, place_records, read_classes
from leeward.verify.contract_checks import numbers_agree
from leeward.verify.manifest import Share, manifest_checks, manifest_types, open_share
from leeward.verify.parameters import parameters_known
from leeward.verify.visits.classed import Placed, place
from leeward.verify.visits.counting import code_check, joint, number_sets, visit_check
from leeward.verify.visits.drawn import as_drawn, check_figures, parameters_of_master, payload_of_master
from leeward.verify.visits.layout import layout
from leeward.verify.visits.levels import level_checks
from leeward.verify.visits.reading import VisitLists


def extract_checks(share: Share, visits: VisitLists, k: int, level: str) -> list[Check]:
    """The master passes its own checks of files and sets, and the extract shows its records as the master does."""
    custody = share.folder.parent / "custody"
    master = open_master(custody)
    formed = [manifest_types(master)]
    formed += (
        [parameters_known(master, CONTRACT), numbers_agree(master, CONTRACT)] if formed[0].passed else []
    )
    if not all(each.passed for each in formed):
        return [Check("master", False, "The master's release.json is not of the contract of visits.")]
    same = master.manifest["guarantee"].get("k") == k and master.manifest["parameters"].get("level") == level
    same &= demographics_of(master) == demographics_of(share)
    checks = [
        Check(
            "master", same, f"Master of {int(master.manifest['records']):,} records, k = {k}, level {level}."
        )
    ]
    if not same:
        return [
            Check("master", False, "The extract states another k, level or demographics than its master.")
        ]
    files = manifest_checks(master)
    checks.append(
        of_count(
            "master_files",
            sum(not each.passed for each in files),
            "The master's files are as its manifest states.",
            "checks of the master's files failed.",
        )
    )
    found, population = layout(master)
    if population is None:
        return [*checks, *(each for each in found if not each.passed)]
    checks += [parameters_of_master(share, master), *payload_of_master(share, master, custody)]
    checks += as_drawn(share, custody)
    drawn: Placed | None = None
    placed: Placed | None = None
    if demographics_of(share):
        more, drawn, placed = place_drawn(share, master)
        checks += more
        if drawn is None or placed is None:
            return checks
        visits, population = drawn.apart(visits), placed.apart(population)
    if level in ("codes", "containment"):
        checks += level_checks(master, population, population, k, level, placed)
    else:
        checks.append(
            visit_check(visits, population, k) if level == "visit" else code_check(visits, population, k)
        )
    classes = None if drawn is None or placed is None else (drawn, placed)
    checks += check_figures(share, visits, population, k, classes)
    return [*checks, same_records(visits, population, custody, int(share.manifest["records"]))]


def place_drawn(share: Share, master: Share) -> tuple[list[Check], Placed | None, Placed | None]:
    """The classes of a cohort and of its master, and every record of both in a class of the master's; None where they
    are not as they must be. The classes have at least k records in the master, not in the cohort."""
    own = read_classes(share)
    found, whole = place(master)
    checks = [each for each in class_checks(own, share) if each.name != "class_sizes"]
    checks.append(
        of_count(
            "master_classes",
            sum(not each.passed for each in found),
            f"The master's classes have at least {master.guarantee('k')} records each, and labels of its hierarchies.",
            "checks of the master's classes failed.",
        )
    )
    if whole is None:
        return checks, None, None
    records = pl.read_parquet(share.data("records.parquet")).sort("record")
    checks.append(place_records(records, own)[0])
    _, of_record = place_records(records, whole.classes)
    pairs = pl.read_parquet(share.folder.parent / "custody" / "data" / "records.parquet").sort("record")
    masters = pairs["master_record"].to_numpy()
    known = masters[(masters >= 0) & (masters < len(whole.of_record))]
    theirs = whole.of_record[known] if len(known) == len(of_record) else np.full(len(of_record), -2)
    checks.append(
        of_count(
            "same_demographics",
            int((of_record != theirs).sum()),
            "Every record has the released demographics of its own record in the master.",
            "records have other released demographics than the master's record.",
        )
    )
    passed = all(each.passed for each in checks)
    return checks, Placed(whole.classes, of_record) if passed else None, whole


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


def same_records(visits: VisitLists, population: VisitLists, custody: Path, records: int) -> Check:
    """Each record has the visit sets of its own master record."""
    pairs = pl.read_parquet(custody / "data" / "records.parquet").select("record", "master_record")
    whole = pairs.height == records == pairs["record"].n_unique() == pairs["master_record"].n_unique()
    ordered = pairs.sort("master_record")
    owners = ordered["master_record"].to_numpy()
    place = np.minimum(np.searchsorted(owners, population.record), max(0, len(owners) - 1))
    theirs = (
        population.take(np.flatnonzero(owners[place] == population.record)) if len(owners) else population
    )
    own, master = joint(visits, theirs)
    shown, held = number_sets(own, master)
    width = int(max(shown.max(initial=0), held.max(initial=0))) + 1
    number = (
        ordered["record"].to_numpy()[np.searchsorted(owners, theirs.record)] if len(owners) else theirs.record
    )
    differing = _differing(own.record * width + shown, number * width + held)
    return of_count(
        "same_as_master",
        differing + (not whole),
        "Every record shows the visits of its own record in the master, no more and no less.",
        "visit sets differ from the master's record.",
    )


def _differing(one: NDArray[np.int64], other: NDArray[np.int64]) -> int:
    """Keys that are not in both equally often."""
    keys, counts = np.unique(one, return_counts=True)
    others, theirs = np.unique(other, return_counts=True)
    both, mine, yours = np.intersect1d(keys, others, assume_unique=True, return_indices=True)
    unequal = int(np.count_nonzero(counts[mine] != theirs[yours]))
    return len(keys) + len(others) - 2 * len(both) + unequal
