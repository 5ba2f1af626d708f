"""Visits in classes of demographics: the codes of each class are told apart, so that whatever is counted is counted
among the patients of one class (docs/methods/whole-patient.md#verifier). The attacker knows the exact demographics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from leeward.verify.checks import Check, Source
from leeward.verify.classes import (
    Classes,
    class_checks,
    class_source,
    exact_values,
    own_demographics,
    place_records,
    read_classes,
    released_patients,
)
from leeward.verify.manifest import Share
from leeward.verify.visits.reading import Longs, VisitLists

BETWEEN = "\x1f"
"""Between a class and a code of it."""


@dataclass(frozen=True)
class Placed:
    """The classes of a release, and the class of each record by its number: int64[records]."""

    classes: Classes
    of_record: Longs

    def apart(self, visits: VisitLists) -> VisitLists:
        """The visits, the labels of each class apart."""
        width = max(1, len(visits.labels))
        keys = np.repeat(self.of_record[visits.record], visits.sizes()) * width + visits.values
        used, values = np.unique(keys, return_inverse=True)
        labels = tuple(f"{key // width:06d}{BETWEEN}{visits.labels[key % width]}" for key in used.tolist())
        return replace(visits, values=values.reshape(-1).astype(np.int32), labels=labels)

    def source_apart(self, source: Source, patients: pl.DataFrame) -> Source:
        """The events of the released patients (`record`, `patient`), the codes of each class apart."""
        classes = pl.DataFrame({"record": np.arange(len(self.of_record)), "class": self.of_record})
        owners = patients.select("patient", pl.col("record").cast(pl.Int64)).join(classes, on="record")
        events = source.events.join(owners.drop("record"), on="patient", how="inner", maintain_order="left")
        return replace(
            source, events=events.with_columns(of_class("code").cast(pl.Categorical)).drop("class")
        )

    def source_checks(self, source: Source, patients: pl.DataFrame | None) -> list[Check]:
        """Whether exact values fit the classes with their sizes, and each record's labels those of its patient."""
        people = source.events["patient"].unique().sort()
        values = exact_values(self.classes, source, people)
        checks = [class_source(self.classes, values, all_released=True)]
        if patients is None:
            return checks
        owners = patients.sort("record")["patient"]
        return [
            *checks,
            own_demographics(self.classes, self.of_record, exact_values(self.classes, source, owners)),
        ]


def of_class(column: str) -> pl.Expr:
    """A column of codes or labels, each with its class before it."""
    number = pl.col("class").cast(pl.String).str.zfill(6)
    return pl.concat_str(number, pl.lit(BETWEEN), pl.col(column).cast(pl.String)).alias(column)


def place(share: Share) -> tuple[list[Check], Placed | None]:
    """The checks of the classes, and every record in its class; None where they are not as they must be."""
    classes = read_classes(share)
    records = pl.read_parquet(share.data("records.parquet")).sort("record")
    placed, of_record = place_records(records, classes)
    checks = [*class_checks(classes, share), placed]
    return checks, Placed(classes, of_record) if all(each.passed for each in checks) else None


def only_released(share: Share, placed: Placed, source: Source) -> Source:
    """The source without the patients whom `small: drop` leaves out: those who fit no class."""
    people = source.events["patient"].unique().sort()
    values = exact_values(placed.classes, source, people)
    if values is None or share.manifest["parameters"].get("small") != "drop":
        return source
    released = people.filter(pl.Series(released_patients(placed.classes, values)))
    return replace(source, events=source.events.filter(pl.col("patient").is_in(released.implode())))


def read_named(file: Path, placed: Placed | None) -> pl.DataFrame | None:
    """A custodian's table of codes or labels, those of each class apart; None where it does not tell classes apart."""
    table = pl.read_parquet(file)
    if placed is None:
        return table
    if "class" not in table.columns:
        return None
    texts = [name for name, kind in table.schema.items() if kind == pl.String]
    return table.with_columns(of_class(name) for name in texts).drop("class")


def bare(codes: pl.DataFrame, placed: Placed | None) -> pl.DataFrame:
    """The same table without classes, each row once."""
    if placed is None:
        return codes
    return codes.with_columns(pl.col(pl.String).str.split(BETWEEN).list.last()).unique(maintain_order=True)
