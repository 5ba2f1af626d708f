"""What a cohort says of itself beside its master: parameters, payload, and the figures on known members, counted again.

With demographics, codes of each class are apart before anything is counted (`visits.classed`).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from leeward.contracts.visits import counted
from leeward.verify.checks import Check, of_count
from leeward.verify.custody import DRAWING
from leeward.verify.flat import Longs
from leeward.verify.manifest import Share
from leeward.verify.visits.classed import Placed
from leeward.verify.visits.counting import joint, number_sets, people_with
from leeward.verify.visits.reading import VisitLists

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


def payload_of_master(share: Share, master: Share, custody: Path) -> list[Check]:
    """Every record has the payload of its own record in the master, in the columns that the master has too."""
    payload = [str(name) for name in share.manifest["parameters"].get("payload") or ()]
    held = [str(name) for name in master.manifest["parameters"].get("payload") or ()]
    names = [name for name in payload if name in held]
    if not names:
        return []
    pairs = pl.read_parquet(custody / "data" / "records.parquet").select("record", "master_record")
    theirs = pl.read_parquet(master.data("records.parquet")).select(
        pl.col("record").alias("master_record"), *names
    )
    own = pl.read_parquet(share.data("records.parquet")).select("record", *names)
    both = own.join(pairs, on="record", how="left").join(
        theirs, on="master_record", how="left", suffix=" of master"
    )
    differs = pl.any_horizontal(
        pl.col(name).cast(pl.String).ne_missing(pl.col(f"{name} of master").cast(pl.String)) for name in names
    )
    return [
        of_count(
            "payload_of_master",
            both.select(differs.sum()).item(),
            "Every record has the payload of its own record in the master.",
            "records have another payload than the master's record.",
        )
    ]


def as_drawn(share: Share, custody: Path) -> list[Check]:
    """The reason and the payload are those with which the cohort was drawn: custody keeps the one, and a digest of the
    other. No check of a cohort that an earlier version drew."""
    file = custody / "data" / DRAWING
    if not file.is_file():
        return []
    parameters = share.manifest["parameters"]
    try:
        (kept,) = pl.read_parquet(file).select("membership_is_secret", "payload_sha256").rows()
    except (OSError, ValueError, pl.exceptions.PolarsError):
        return [Check("reason_as_given", False, f"custody/data/{DRAWING} cannot be read.")]
    names = [str(name) for name in parameters.get("payload") or ()]
    found = payload_digest(share, custody, names) if names else None
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


def payload_digest(share: Share, custody: Path, names: Sequence[str]) -> str:
    """SHA-256 of the payload in the order of the master's records: a line of JSON with the columns' names, and one for
    each record; what JSON has no value for is a text."""
    own = pl.read_parquet(share.data("records.parquet"))
    pairs = pl.read_parquet(custody / "data" / "records.parquet").select("record", "master_record")
    values = own.join(pairs, on="record", how="left").sort("master_record").select(names)
    found = hashlib.sha256()
    for row in (values.columns, *values.iter_rows()):
        found.update(json.dumps(row, ensure_ascii=False, default=str).encode("utf-8") + b"\n")
    return found.hexdigest()


def check_figures(
    share: Share, visits: VisitLists, population: VisitLists, k: int, classes: tuple[Placed, Placed] | None
) -> list[Check]:
    """The figures of the limits on known members and joined cohorts are what the files show, and a reason is stated
    where fewer than k members share something.

    visits, population : of the cohort and of its master, codes of classes apart.
    classes : the class of every record of both, for a release with demographics.
    """
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
    unlike = sum(one != other for one, other in zip(counted(parameters, figures), stated, strict=False))
    secret = few + few_in_class > 0 and not parameters.get("membership_is_secret")
    good = (
        "No reason is needed why membership is secret." if not few + few_in_class else "A reason is stated."
    )
    return [
        of_count(
            "figures_stated",
            unlike,
            "The figures on known members and on joined cohorts are those that the files show.",
            "of the limits state other figures than the files show.",
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
