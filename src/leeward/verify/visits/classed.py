"""Visits in classes of demographics: the codes of each class are told apart, so that whatever is counted is counted
among the patients of one class (docs/methods/whole-patient.md#verifier). The attacker knows the exact demographics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from leeward.verify.apart import BETWEEN, code_of_class, of_class
from leeward.verify.checks import Check, Source
from leeward.verify.classes import (
    Classes,
    class_checks,
    place_records,
    read_classes,
)
from leeward.verify.flat import Longs
from leeward.verify.manifest import Share
from leeward.verify.visits.reading import VisitLists


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
        labels = tuple(code_of_class(key // width, visits.labels[key % width]) for key in used.tolist())
        return replace(visits, values=values.reshape(-1).astype(np.int32), labels=labels)

    def source_apart(self, source: Source, patients: pl.DataFrame) -> Source:
        """The events of the released patients (`record`, `patient`), the codes of each class apart."""
        classes = pl.DataFrame({"record": np.arange(len(self.of_record)), "class": self.of_record})
        owners = patients.select("patient", pl.col("record").cast(pl.Int64)).join(classes, on="record")
        events = source.events.join(owners.drop("record"), on="patient", how="inner", maintain_order="left")
        return replace(
            source, events=events.with_columns(of_class("code").cast(pl.Categorical)).drop("class")
        )


def place(share: Share) -> tuple[list[Check], Placed | None]:
    """The checks of the classes, and every record in its class; None where they are not as they must be."""
    classes = read_classes(share)
    records = pl.read_parquet(share.data("records.parquet")).sort("record")
    placed, of_record = place_records(records, classes)
    checks = [*class_checks(classes, share), placed]
    return checks, Placed(classes, of_record) if all(each.passed for each in checks) else None


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
