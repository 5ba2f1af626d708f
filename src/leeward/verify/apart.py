"""What is counted among the patients of one class: the codes of each class told apart, and the source's patients beside
the classes (docs/methods/whole-patient.md#verifier). The attacker knows the exact demographics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.verify.checks import Check, Source
from leeward.verify.classes import (
    Classes,
    check_demographics,
    class_source,
    exact_values,
    find_released,
)
from leeward.verify.manifest import Share

BETWEEN = "\x1f"
"""Between a class and a code of it."""


def code_of_class(number: int, code: str) -> str:
    """A code or label with its class before it."""
    return f"{number:06d}{BETWEEN}{code}"


def of_class(column: str) -> pl.Expr:
    """As `code_of_class`, of a column beside the column `class`."""
    number = pl.col("class").cast(pl.String).str.zfill(6)
    return pl.concat_str(number, pl.lit(BETWEEN), pl.col(column).cast(pl.String)).alias(column)


def select_released(share: Share, classes: Classes, source: Source) -> Source:
    """The source without the patients whom `small: drop` leaves out: those who fit no class."""
    patients = source.events["patient"].unique().sort()
    kept, _ = find_released(share, classes, source, patients)
    if len(kept) == len(patients):
        return source
    return replace(source, events=source.events.filter(pl.col("patient").is_in(kept.implode())))


def demographics_of_patients(
    classes: Classes, of_record: NDArray[np.int64], source: Source, owners: pl.Series | None
) -> list[Check]:
    """Whether exact values fit the classes with their sizes, and each record's labels those of its patient.

    owners : the patient of each record, in the order of `of_record`, as custody names them; None without custody.
    """
    values = exact_values(classes, source, source.events["patient"].unique().sort())
    checks = [class_source(classes, values, all_released=True)]
    if owners is None:
        return checks
    return [*checks, check_demographics(classes, of_record, exact_values(classes, source, owners))]
