"""The patients frame: attributes and payload, one row a patient."""

from __future__ import annotations

import polars as pl

from leeward.cohort.notices import Notice
from leeward.cohort.readers.values import in_one_type, with_points

WHOLE_NUMBER = r"^-?(0|[1-9][0-9]{0,17})$"
DECIMAL_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$"


def one_row_each(
    gathered: pl.DataFrame, patient: pl.Series, missing: frozenset[str]
) -> tuple[pl.DataFrame, list[Notice]]:
    """The first recorded value of every attribute of each patient of the events, patients ascending.

    A patient whose rows disagree is counted in a notice.
    """
    names = [name for name in gathered.columns if name != "patient"]
    typed = [(_parse_numbers(gathered[name], missing)) for name in names]
    gathered = gathered.with_columns(each for each, _ in typed)
    frame = gathered.group_by("patient", maintain_order=True).agg(
        *(pl.col(name).drop_nulls().first() for name in names),
        *(pl.col(name).drop_nulls().n_unique().gt(1).alias(f"{name}\x1f") for name in names),
    )
    notices = [comma_notice(name) for name, (_, comma) in zip(names, typed, strict=True) if comma]
    for name in names:
        count = int(frame[f"{name}\x1f"].sum())
        if count:
            people = f"{count:,} patient{'s' if count > 1 else ''}"
            notices.append(
                Notice(
                    "conflicting attribute",
                    f"{people} with several values of '{name}': the first is kept",
                    count,
                )
            )
    frame, absent = _of_events(frame.select("patient", *names), patient)
    if absent:
        people = f"{absent:,} patient{'s' if absent > 1 else ''}"
        notices.append(
            Notice("patient without attributes", f"{people} of the events without attributes", absent)
        )
    return frame, notices


def _of_events(frame: pl.DataFrame, patient: pl.Series) -> tuple[pl.DataFrame, int]:
    wanted = patient.unique().sort()
    wanted, known = in_one_type(wanted, frame["patient"])
    frame = frame.with_columns(known.alias("patient"))
    absent = int((~wanted.is_in(known.implode())).sum())
    joined = pl.DataFrame({"patient": wanted}).join(frame, on="patient", how="left", maintain_order="left")
    return joined.with_columns(pl.Series("patient", patient.unique().sort())), absent


def comma_notice(name: str) -> Notice:
    """The notice of a column of numbers with decimal commas."""
    return Notice("decimal comma", f"the commas of column '{name}' are read as decimal points", 1)


def _parse_numbers(series: pl.Series, missing: frozenset[str]) -> tuple[pl.Series, bool]:
    """Text as whole or decimal numbers where every value is one ('007' and '0/1' stay text), and whether it had decimal
    commas."""
    if series.dtype != pl.String:
        return series, False
    stripped = series.str.strip_chars()
    series = series.set(stripped.is_in(["", *missing]).fill_null(False), None)
    values = series.drop_nulls()
    if len(values) == 0:
        return series, False
    if values.str.contains(WHOLE_NUMBER).all():
        return series.cast(pl.Int64), False
    if values.str.contains(DECIMAL_NUMBER).all():
        return series.cast(pl.Float64), False
    pointed = with_points(series)
    return (series, False) if pointed is None else (pointed.cast(pl.Float64), True)
