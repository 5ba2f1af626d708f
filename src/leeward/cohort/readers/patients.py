"""The patients frame: attributes and payload, one row a patient."""

from __future__ import annotations

import polars as pl

from leeward.arrays import count_noun
from leeward.cohort.notices import Notice
from leeward.cohort.readers.values import DECIMAL_NUMBER, in_one_type, numbers_of


def one_row_each(
    gathered: pl.DataFrame, patient: pl.Series, missing: frozenset[str]
) -> tuple[pl.DataFrame, list[Notice]]:
    """The first recorded value of every attribute of each patient of the events, patients ascending.

    A patient whose rows disagree is counted in a notice.
    """
    names = [name for name in gathered.columns if name != "patient"]
    notices = []
    for name in names:
        if gathered.schema[name] == pl.String:
            numbers, commas = _parse_numbers(gathered[name], missing)
            gathered = gathered.with_columns(numbers)
            notices += [comma_notice(name)] if commas else []
    values = {name: pl.col(name).drop_nulls() for name in names}
    frame = gathered.group_by("patient", maintain_order=True).agg(each.first() for each in values.values())
    several = gathered.group_by("patient").agg(each.n_unique() > 1 for each in values.values())
    for name in names:
        if count := int(several[name].sum()):
            message = f"{count_noun('patient', count)} with several values of '{name}': the first is kept"
            notices.append(Notice("conflicting attribute", message, count))
    wanted, known = in_one_type(patient.unique().sort(), frame["patient"])
    if absent := int((~wanted.is_in(known.implode())).sum()):
        message = f"{count_noun('patient', absent)} of the events without attributes"
        notices.append(Notice("patient without attributes", message, absent))
    frame = frame.with_columns(known.alias("patient"))
    joined = pl.DataFrame({"patient": wanted}).join(frame, on="patient", how="left", maintain_order="left")
    return joined.with_columns(patient.unique().sort().alias("patient")), notices


def comma_notice(name: str) -> Notice:
    """The notice of a column of numbers with decimal commas."""
    return Notice("decimal comma", f"the commas of column '{name}' are read as decimal points", 1)


def _parse_numbers(texts: pl.Series, missing: frozenset[str]) -> tuple[pl.Series, bool]:
    """Text as numbers where every value is one, and whether it had decimal commas."""
    texts = texts.set(texts.str.strip_chars().is_in(["", *missing]).fill_null(False), None)
    numbers = numbers_of(texts, DECIMAL_NUMBER)
    if numbers is None:
        return texts, False
    return numbers, bool(texts.str.contains(",", literal=True).any())
