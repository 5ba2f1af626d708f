"""Encode frames as bitmaps of numbered rows, grouped by patient.

A row is a note, a visit or a patient. Rows are sorted by patient and, within one, by their own key, so that the index
of the same data is the same whatever the order of the input and whoever cut it into stretches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pyroaring import BitMap

from leeward.arrays import Int64s
from leeward.cohort.lenses.code_sets import patient_numbers
from leeward.errors import BadInput
from leeward.queries.index.store import Qid, QidKind
from leeward.queries.language.query import WHEN, fold
from leeward.queries.language.vocabulary import Vocabulary

NOTE_COLUMNS = ("note", "row", "patient", "terms")
"""Columns of a table of notes that are no quasi-identifier."""
MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
          "november", "december")  # fmt: skip
MONTH_NUMBERS = {
    text: number
    for number, name in enumerate(MONTHS, 1)
    for text in (name, name[:3], f"{number}", f"{number:02d}")
}
Bitmaps = dict[tuple[str, str], BitMap]
"""(column, value) -> the rows that hold it; terms have the empty column. Values that no row holds are absent."""
Domains = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Stretch:
    """Bitmaps of some patients' rows, numbered from 0; patients are in ascending order.

    `left_out` counts what was left out, by reason; for the custodian.
    """

    rows_of_patient: NDArray[np.int32]
    bitmaps: Bitmaps
    left_out: Mapping[str, int]


# -- tables of notes ----


def qids_of_table(schema: Mapping[str, Any], domains: Domains) -> tuple[Qid, ...]:
    """The quasi-identifiers of a table of notes, from its columns' names and types alone.

    `visit_month` (a date, `YYYY-MM`, or a month beside `visit_year`) becomes `when`; columns of lists and flags, and
    those that say where a value came from (`…_source`), are none.
    """
    known: dict[str, tuple[str, QidKind]] = {
        "visit_month": (WHEN, "month"), "visit_year": ("year", "integer"), WHEN: (WHEN, "month")
    }  # fmt: skip
    found = []
    for column, dtype in schema.items():
        name = fold(column)
        if column in NOTE_COLUMNS or name.endswith("_source") or _is_flag_or_list(dtype):
            continue
        if name == "visit_year" and "visit_month" in schema:
            continue
        if name == "visit_month" and "visit_year" not in schema and dtype.is_numeric():
            name = "month"
        name, kind = known.get(name, (name, _kind(dtype)))
        found.append(Qid(name, kind, domains.get(name)))
    return _check_qids(found, domains)


def rows_of_table(table: pl.DataFrame, qids: Sequence[Qid], vocabulary: Vocabulary) -> Stretch:
    """The rows of a table of notes: `patient`, `terms` (lists of text), `note` where known, quasi-identifiers;
    BadInput where a column or a patient is missing, or nothing is left."""
    if "patient" not in table.columns:
        raise BadInput("a table of notes has the columns patient and terms; this one lacks 'patient'.")
    if table.height == 0:
        raise BadInput("the table of notes has no row.")
    left_out = {"notes without a patient": table["patient"].null_count()}
    table = table.filter(pl.col("patient").is_not_null())
    if table.height == 0:
        raise BadInput("the table of notes has no row with a patient.")
    patient, _ = patient_numbers(table["patient"])
    order = np.lexsort(
        (_rank(table["note"]) if "note" in table.columns else np.arange(table.height), patient)
    )
    table = table[order]
    facts = table.select("terms").with_row_index("row")
    facts = facts.explode("terms", empty_as_null=False, keep_nulls=False)
    terms, codes = encode(facts["terms"].cast(pl.String), vocabulary.term_of)
    left_out["terms that the vocabulary lacks"] = codes.null_count()
    bitmaps = _bitmaps("", terms, codes, facts["row"])
    for qid in qids:
        values, codes = _encode_column(_column(table, qid), qid, left_out)
        bitmaps |= _bitmaps(qid.name, values, codes, pl.int_range(table.height, eager=True))
    return Stretch(np.bincount(patient).astype(np.int32), bitmaps, left_out)


def _column(table: pl.DataFrame, qid: Qid) -> pl.Series:
    by_name = {fold(column): column for column in table.columns}
    if qid.name in by_name:
        return table[by_name[qid.name]]
    if qid.name in ("year", "month"):
        return table[by_name[f"visit_{qid.name}"]]
    month = table[by_name["visit_month"]]
    if "visit_year" not in by_name or month.dtype.is_temporal():
        return month
    text = month.cast(pl.String)
    if text.drop_nulls().str.contains(r"^\d{4}-").all():
        return month
    number = text.str.to_lowercase().replace_strict(MONTH_NUMBERS, default=None, return_dtype=pl.Int64)
    year = table[by_name["visit_year"]].cast(pl.Int64, strict=False)
    return (year * 100 + number).cast(pl.String).str.replace(r"^(\d{4})", "$1-")


# -- cohorts ----


def qids_of_events(
    columns: Sequence[str], attributes: Mapping[str, Any], domains: Domains, row: str
) -> tuple[Qid, ...]:
    """The quasi-identifiers of a cohort: `when` of dates, `age`, and the patients' attributes."""
    found = []
    if "date" in columns:
        found.append(Qid(WHEN, "month", domains.get(WHEN), row == "patient"))
    if "age" in columns and "age" not in attributes:
        found.append(Qid("age", "integer", domains.get("age"), row == "patient"))
    for column, dtype in attributes.items():
        if column != "patient" and not _is_flag_or_list(dtype):
            found.append(Qid(fold(column), _kind(dtype), domains.get(fold(column)), True))
    return _check_qids(found, domains)


def row_kind(columns: Sequence[str], asked: str | None = None) -> str:
    """What a row of a cohort is: a visit where visits or dates are known, else a patient."""
    found = "visit" if "visit" in columns or "date" in columns else "patient"
    if asked not in (None, "visit", "patient"):
        raise BadInput(f"a row of a cohort is a visit or a patient; got {asked!r}.")
    if asked == "visit" and found == "patient":
        raise BadInput(
            "rows cannot be visits: the cohort has neither a visit nor a date; name one with --visit."
        )
    return asked or found


def rows_of_events(events: pl.DataFrame, qids: Sequence[Qid], vocabulary: Vocabulary, row: str) -> Stretch:
    """The rows of recorded codes (`patient`, `code`, where known `visit`, `date`, `age` and attributes, which do not
    vary in a patient). A row is a visit (without visits a day) or the whole patient, with its lowest month and age."""
    patient, _ = patient_numbers(events["patient"])
    row_of_event = patient
    own = next((column for column in ("visit", "date") if column in events.columns), None)
    if row != "patient" and own is not None:
        key = _rank(events[own])
        width = np.int64(key.max(initial=0)) + 2
        distinct, row_of_event = np.unique(patient * width + key + 1, return_inverse=True)
        patient = distinct // width
    else:
        patient = np.arange(int(patient.max()) + 1)
    terms, codes = encode(events["code"], vocabulary.term_of)
    left_out = {"codes that the vocabulary lacks": codes.null_count()}
    bitmaps = _bitmaps("", terms, codes, pl.Series(row_of_event))
    by_name = {fold(column): column for column in events.columns}
    for qid in qids:
        column = events["date" if qid.name == WHEN and WHEN not in by_name else by_name[qid.name]]
        values, codes = _encode_column(column, qid, left_out)
        lowest = np.full(len(patient), len(values), np.int64)
        np.minimum.at(lowest, row_of_event, codes.fill_null(len(values)).to_numpy())
        has = np.flatnonzero(lowest < len(values))
        bitmaps |= _bitmaps(qid.name, values, pl.Series(lowest[has]), pl.Series(has))
    return Stretch(np.bincount(patient).astype(np.int32), bitmaps, left_out)


# -- values ----


def _encode_column(column: pl.Series, qid: Qid, left_out: dict[str, int]) -> tuple[list[str], pl.Series]:
    """Encode a column as the index writes it; values that the type or the public domain rejects become missing and are
    counted."""
    text = column
    if column.dtype.is_temporal():
        text = column.cast(pl.Datetime).dt.strftime("%Y-%m")
    elif column.dtype.is_float():
        text = column.floor().cast(pl.Int64, strict=False)
    values, codes = encode(text, partial(_format_value, qid), qid.sort_key)
    reason = f"values of {qid.name} that its type or domain does not admit"
    left_out[reason] = codes.null_count() - column.null_count()
    return values, codes


def encode(
    column: pl.Series, name_of: Callable[[str], str | None], sort_key: Callable[[str], Any] | None = None
) -> tuple[list[str], pl.Series]:
    """The new names of a column's values, sorted, and the code of each row's name; null where a value has none."""
    if isinstance(column.dtype, pl.Enum | pl.Categorical):
        column = column.cast(pl.String)
    distinct = column.drop_nulls().unique()
    names = [name_of(str(value)) for value in distinct]
    kept = sorted({name for name in names if name is not None}, key=sort_key)
    place: dict[str | None, int] = {name: code for code, name in enumerate(kept)}
    codes = pl.Series([place.get(name) for name in names], dtype=pl.Int64)
    if not len(distinct):
        return kept, pl.Series([None] * len(column), dtype=pl.Int64)
    return kept, column.replace_strict(distinct, codes, default=None, return_dtype=pl.Int64)


def _bitmaps(column: str, names: Sequence[str], codes: pl.Series, row: pl.Series) -> Bitmaps:
    """The rows of each name, by its code; a row may hold several, and each of them more than once."""
    rows = pl.DataFrame({"code": codes, "row": row.cast(pl.UInt32)}).drop_nulls().sort("row")
    grouped = rows.group_by("code").agg("row")
    held = zip(grouped["code"], grouped["row"], strict=True)
    return {(column, names[code]): BitMap(each.to_numpy()) for code, each in held}


def _format_value(qid: Qid, value: str) -> str | None:
    text = fold(value)
    if qid.kind == "text":
        return text if text and (qid.domain is None or text in qid.domain) else None
    number = qid.number_of(text[:7] if qid.kind == "month" else text)
    if number is None:
        return None
    if qid.ends and not qid.ends[0] <= number <= qid.ends[1]:
        return None
    return qid.text_of(number)


def _rank(column: pl.Series) -> Int64s:
    """Ranks of the values; −1 for null."""
    return column.rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1


def _is_flag_or_list(dtype: Any) -> bool:
    return bool(dtype == pl.Boolean or dtype.is_nested())


def _kind(dtype: Any) -> QidKind:
    return "month" if dtype.is_temporal() else "integer" if dtype.is_numeric() else "text"


def _check_qids(qids: Sequence[Qid], domains: Domains) -> tuple[Qid, ...]:
    names = [qid.name for qid in qids]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"two columns are the quasi-identifier {name!r}; leave one out.")
    for name in domains:
        if name not in names:
            raise BadInput(
                f"a domain is given for {name!r}, which is not a quasi-identifier here: {', '.join(names)}."
            )
    for qid in qids:
        if qid.domain is not None:
            _check_domain(qid, qid.domain)
    return tuple(sorted(qids, key=lambda qid: qid.name))


def _check_domain(qid: Qid, domain: tuple[str, ...]) -> None:
    if qid.kind == "text":
        if not domain or any(not value or value != fold(value) for value in domain):
            raise BadInput(f"the domain of {qid.name!r} is a list of texts in lower case.")
        return
    if len(domain) != 2 or len(qid.ends) != 2 or qid.ends[0] > qid.ends[1]:
        raise BadInput(f"the domain of {qid.name!r} is its first and last value, as in FIRST..LAST.")
