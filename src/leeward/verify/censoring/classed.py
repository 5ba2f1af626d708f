"""A k-map over demographics and counts: the people who could be a record's owner fit its labels and hold all of it
(docs/methods/whole-patient.md#verifier)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from leeward.verify.apart import code_of_class, of_class
from leeward.verify.censoring.holders import Postings, Shown
from leeward.verify.checks import Check, Source, of_count
from leeward.verify.classes import (
    Classes,
    class_checks,
    exact_values,
    place_records,
    read_classes,
    together,
)
from leeward.verify.flat import distinct
from leeward.verify.manifest import Share
from leeward.verify.numbered import Numbered

Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Placed:
    """The classes of a release, the class of each record in the order of the rows, and the exact values of everybody in
    the population, with their identifiers."""

    classes: Classes
    of_row: Longs
    people: pl.Series
    values: list[tuple[str, ...]]

    def fitting(self, number: int) -> pl.Series:
        """The people of the population whose exact values fit a class."""
        fits = {each: bool(self.classes.fit(each)[number]) for each in set(self.values)}
        return self.people.filter(pl.Series([fits[each] for each in self.values], dtype=pl.Boolean))


def place_in_classes(table: pa.Table, share: Share, source: Source) -> tuple[list[Check], Placed | None]:
    """The checks of the classes, whose sizes are those in the population; None where they are not as they must be."""
    assert source.population_events is not None  # asked for before
    classes = read_classes(share)
    placed, of_row = place_records(pl.DataFrame(pl.from_arrow(table.select(classes.names))), classes)
    # `class_sizes` is about the records of a class; a k-map needs k people of the population.
    checks = [*(each for each in class_checks(classes, share) if each.name != "class_sizes"), placed]
    people = source.population_events["patient"].unique().sort()
    values = exact_values(classes, replace(source, patients=source.population_patients), people)
    if values is None:
        detail = "The population has not the demographic columns of the release."
        return [*checks, Check("class_people", False, detail)], None
    found = Placed(classes, of_row, people, values)
    k = share.guarantee("k")
    sizes = [len(found.fitting(number)) for number in range(len(classes.labels))]
    few = sum(size < k for size in sizes)
    checks.append(
        of_count(
            "class_people",
            few,
            f"At least {k} people of the population could have the labels of each of {len(sizes):,} classes.",
            f"classes have labels that fewer than {k} people of the population could have.",
            {"classes": len(sizes), "smallest": min(sizes, default=None)},
        )
    )
    return checks, found if all(each.passed for each in checks) else None


def k_map_of_classes(shown: Shown, placed: Placed, events: pl.DataFrame, k: int) -> Check:
    """At least k people of the population fit each record's labels and hold all of it."""
    parts = []
    for number in range(len(placed.classes.labels)):
        rows = np.flatnonzero(placed.of_row == number)
        fitting = events.filter(pl.col("patient").is_in(placed.fitting(number).implode()))
        counts = Postings.of(Numbered(fitting)).holders(shown.taken(rows), len(rows), k)
        few = int((counts < k).sum())
        parts.append(
            [
                of_count(
                    "k_map",
                    few,
                    f"each record is contained in at least {k} people who fit its labels.",
                    f"of {len(rows):,} records are contained in fewer than {k} people who fit their labels.",
                    {"records": len(rows)},
                )
            ]
        )
    return together(parts)[0]


def split_by_class(shown: Shown, placed: Placed) -> Shown:
    """The mentions, the codes of each class apart."""
    width = max(1, len(shown.codes))
    keys = placed.of_row[shown.place] * width + shown.code
    used = distinct(keys)
    codes = [code_of_class(key // width, shown.codes[key % width]) for key in used.tolist()]
    return replace(shown, codes=codes, code=np.searchsorted(used, keys))


def events_apart(events: pl.DataFrame, placed: Placed, table: pa.Table, owners: pl.DataFrame) -> pl.DataFrame:
    """The events of the released patients, the codes of each class apart."""
    classes = pl.DataFrame({"record": table["record"].to_numpy(), "class": placed.of_row})
    of_patient = owners.join(classes, on="record").select("patient", "class")
    return events.join(of_patient, on="patient").with_columns(of_class("code")).drop("class")


def owners_in_order(table: pa.Table, owners: pl.DataFrame) -> pl.Series:
    """The patient of each row, as custody names them (`record`, `patient`)."""
    rows = pl.DataFrame({"record": table["record"].to_numpy()})
    return rows.join(owners, on="record", how="left", maintain_order="left")["patient"]
