"""Encode frames as numbered rows, grouped by patient.

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
import pyarrow.compute as pc
from pyroaring import BitMap

from leeward.arrays import Int64s
from leeward.cohort.lenses.code_sets import patient_numbers
from leeward.errors import BadInput
from leeward.queries.index.store import Qid, QidKind
from leeward.queries.language.query import WHEN, fold, month_number, month_text
from leeward.queries.language.vocabulary import Vocabulary

NOTE_COLUMNS = ("note", "row", "patient", "terms")
"""Columns of a table of notes that are no quasi-identifier."""
MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
          "november", "december")  # fmt: skip


@dataclass(frozen=True)
class Coded:
    """A quasi-identifier's values by row: `codes[r]` is an index into `values`, or −1 for none."""

    codes: Int64s
    values: tuple[str, ...]


@dataclass(frozen=True)
class Rows:
    """Rows of some patients.

    Attributes
    ----------
    patient : int64[rows]
        The patient's number, from 0, ascending; every number occurs.
    fact_row, fact_term : int64[facts]
        Row r holds term t, a place in `terms`, in any order; repeats count once.
    terms : tuple of str
    qids : mapping
        Quasi-identifier -> its values.
    left_out : mapping
        Counts of what was left out, by reason; for the custodian.
    """

    patient: Int64s
    fact_row: Int64s
    fact_term: Int64s
    terms: tuple[str, ...]
    qids: Mapping[str, Coded]
    left_out: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.patient)

    def bitmaps(self) -> dict[tuple[str, str], BitMap]:
        """(column, value) -> its rows; terms have the empty column. Values that no row holds are absent."""
        found = {
            ("", self.terms[t]): rows for t, rows in _group(self.fact_term, self.fact_row, len(self)).items()
        }
        everyone = np.arange(len(self), dtype=np.int64)
        for name, coded in self.qids.items():
            has = coded.codes >= 0
            for v, rows in _group(coded.codes[has], everyone[has], len(self)).items():
                found[name, coded.values[v]] = rows
        return found


def _group(group: Int64s, row: Int64s, rows: int) -> dict[int, BitMap]:
    if not len(group):
        return {}
    keys = group * np.int64(rows)
    keys += row
    keys.sort()
    group = keys // rows
    members = (keys - group * rows).astype(np.uint32)
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    ends = np.r_[starts[1:], len(group)].astype(np.int64)
    return {
        int(group[low]): BitMap(members[low:high])
        for low, high in zip(starts.tolist(), ends.tolist(), strict=True)
    }


# -- tables of notes ----


def qids_of_table(schema: Mapping[str, Any], domains: Mapping[str, tuple[str, ...]]) -> tuple[Qid, ...]:
    """The quasi-identifiers of a table of notes, from its columns' names and types alone.

    `visit_month` (a date, `YYYY-MM`, or a month beside `visit_year`) becomes `when`; columns of lists and flags, and
    those that say where a value came from (`…_source`), are none.
    """
    found = []
    for column, dtype in schema.items():
        name = fold(column)
        if column in NOTE_COLUMNS or name.endswith("_source") or dtype == pl.Boolean or dtype.is_nested():
            continue
        if name == "visit_month" and dtype.is_numeric() and "visit_year" not in schema:
            found.append(Qid("month", "integer", domains.get("month")))
        elif name == "visit_month":
            found.append(Qid(WHEN, "month", domains.get(WHEN)))
        elif name == "visit_year":
            if "visit_month" not in schema:
                found.append(Qid("year", "integer", domains.get("year")))
        elif name == WHEN or dtype.is_temporal():
            found.append(Qid(name, "month", domains.get(name)))
        else:
            found.append(Qid(name, "integer" if dtype.is_numeric() else "text", domains.get(name)))
    return _check_qids(tuple(found), domains)


def rows_of_table(table: pl.DataFrame, qids: Sequence[Qid], vocabulary: Vocabulary) -> Rows:
    """The rows of a table of notes: `patient`, `terms` (lists of text), `note` where known, quasi-identifiers.

    Raises
    ------
    BadInput
        A column is missing, a patient is missing, or nothing is left.
    """
    for needed in ("patient", "terms"):
        if needed not in table.columns:
            raise BadInput(f"a table of notes has the columns patient and terms; this one lacks {needed!r}.")
    if table.height == 0:
        raise BadInput("the table of notes has no row.")
    without = table["patient"].null_count()
    table = table.filter(pl.col("patient").is_not_null())
    if table.height == 0:
        raise BadInput("the table of notes has no row with a patient.")
    number, _ = patient_numbers(table["patient"])
    order = np.lexsort((_rank(table["note"]) if "note" in table.columns else np.arange(table.height), number))
    table = table[order]
    lists = table["terms"]
    lengths = lists.list.len().fill_null(0).to_numpy()
    values = flatten(lists)
    fact_row = np.repeat(np.arange(table.height, dtype=np.int64), lengths)
    held, unknown = code_terms(values, vocabulary)
    known = held.codes >= 0
    coded, odd = {}, {}
    for qid in qids:
        column = _column(table, qid)
        coded[qid.name] = code_column(column, qid)
        odd[_odd(qid)] = not_taken(column, coded[qid.name])
    left_out = {"notes without a patient": without, "terms that the vocabulary lacks": unknown, **odd}
    return Rows(number[order], fact_row[known], held.codes[known], held.values, coded, left_out)


def flatten(lists: pl.Series) -> pl.Series:
    """Elements of the lists in order; empty and missing lists have none."""
    return pl.Series(pl.from_arrow(pc.list_flatten(lists.to_arrow())), dtype=pl.String)


def _column(table: pl.DataFrame, qid: Qid) -> pl.Series:
    by_name = {fold(column): column for column in table.columns}
    if qid.name in by_name:
        return table[by_name[qid.name]]
    if qid.name in ("year", "month"):
        return table[by_name[f"visit_{qid.name}"]]
    if qid.name != WHEN or "visit_month" not in by_name:
        raise BadInput(f"the table has no column {qid.name!r}.")
    month = table[by_name["visit_month"]]
    if "visit_year" not in by_name or month.dtype.is_temporal():
        return month
    text = month.cast(pl.String)
    if text.drop_nulls().str.contains(r"^\d{4}-").all():
        return month
    named = {name: i + 1 for i, name in enumerate(MONTHS)} | {
        name[:3]: i + 1 for i, name in enumerate(MONTHS)
    }
    number = text.str.to_lowercase().replace_strict(named | {str(i): i for i in range(1, 13)}
                                                    | {f"{i:02d}": i for i in range(1, 13)},
                                                    default=None, return_dtype=pl.Int64)  # fmt: skip
    year = table[by_name["visit_year"]].cast(pl.Int64, strict=False)
    return pl.Series("when", (year * 100 + number).cast(pl.String)).str.replace(r"^(\d{4})", "$1-")


# -- cohorts ----


def qids_of_events(
    schema: Mapping[str, Any], attributes: Mapping[str, Any], domains: Mapping[str, tuple[str, ...]], row: str
) -> tuple[Qid, ...]:
    """The quasi-identifiers of a cohort: `when` of dates, `age`, and the patients' attributes."""
    one = row == "patient"
    found = []
    if "date" in schema:
        found.append(Qid(WHEN, "month", domains.get(WHEN), one))
    if "age" in schema and "age" not in attributes:
        found.append(Qid("age", "integer", domains.get("age"), one))
    for column, dtype in attributes.items():
        name = fold(column)
        if column == "patient" or dtype == pl.Boolean or dtype.is_nested():
            continue
        kind: QidKind = "month" if dtype.is_temporal() else "integer" if dtype.is_numeric() else "text"
        found.append(Qid(name, kind, domains.get(name), True))
    return _check_qids(tuple(found), domains)


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


def rows_of_events(events: pl.DataFrame, qids: Sequence[Qid], vocabulary: Vocabulary, row: str) -> Rows:
    """The rows of recorded codes: `patient`, `code`, and where known `visit`, `date`, `age` and attributes.

    A row is a visit (without visits a day), or the whole patient; its month and age are the first ones in it.
    Attributes (columns named as a quasi-identifier) are the same in every event of a patient.
    """
    number, _ = patient_numbers(events["patient"])
    own = "visit" if "visit" in events.columns else "date" if "date" in events.columns else None
    if row == "patient" or own is None:
        of_event, patient = number, np.arange(int(number.max()) + 1, dtype=np.int64)
    else:
        key = _rank(events[own])
        width = np.int64(key.max(initial=0)) + 2
        distinct, of_event = np.unique(number * width + key + 1, return_inverse=True)
        patient = distinct // width
    held, unknown = code_terms(events["code"], vocabulary)
    known = held.codes >= 0
    by_name = {fold(column): column for column in events.columns}
    coded, odd = {}, {}
    for qid in qids:
        column = events["date" if qid.name == WHEN and WHEN not in by_name else by_name[qid.name]]
        taken = code_column(column, qid)
        odd[_odd(qid)] = not_taken(column, taken)
        coded[qid.name] = _first_in_row(taken, of_event, len(patient), qid)
    return Rows(
        patient,
        of_event[known].astype(np.int64),
        held.codes[known],
        held.values,
        coded,
        {"codes that the vocabulary lacks": unknown, **odd},
    )


def _odd(qid: Qid) -> str:
    return f"values of {qid.name} that its type or domain does not admit"


def not_taken(column: pl.Series, coded: Coded) -> int:
    """Number of values of a column that became missing."""
    return int((coded.codes < 0).sum()) - column.null_count()


def _first_in_row(coded: Coded, row: Int64s, rows: int, qid: Qid) -> Coded:
    """A row's value is the lowest one of its events."""
    ranks = sorted(range(len(coded.values)), key=lambda v: _sortable(qid, coded.values[v]))
    rank = np.empty(len(ranks), np.int64)
    rank[ranks] = np.arange(len(ranks))
    has = coded.codes >= 0
    none = np.int64(len(ranks))
    lowest = np.full(rows, none, np.int64)
    np.minimum.at(lowest, row[has], rank[coded.codes[has]])
    return Coded(np.where(lowest == none, -1, lowest), tuple(coded.values[v] for v in ranks))


# -- values ----


def code_terms(values: pl.Series, vocabulary: Vocabulary) -> tuple[Coded, int]:
    """Term of each value, and the number of values without one in the vocabulary."""
    coded = _rename(_code(values), vocabulary.term_of)
    return coded, int((coded.codes < 0).sum())


def code_column(column: pl.Series, qid: Qid) -> Coded:
    """Encode a column as the index writes it; values that the type or the public domain rejects become missing."""
    return _rename(_code(column), partial(_format_value, qid))


def _rename(coded: Coded, name_of: Callable[[str], str | None]) -> Coded:
    """Rename values, keeping them sorted; values without a new name become missing."""
    names = [name_of(value) for value in coded.values]
    distinct = sorted({name for name in names if name is not None})
    place: dict[str | None, int] = {name: i for i, name in enumerate(distinct)}
    table = np.array([*(place.get(name, -1) for name in names), -1], np.int64)
    return Coded(table[coded.codes], tuple(distinct))


def _code(column: pl.Series) -> Coded:
    if column.dtype.is_temporal():
        column = column.cast(pl.Datetime).dt.strftime("%Y-%m")
    elif column.dtype.is_float():
        column = column.floor().cast(pl.Int64, strict=False)
    if isinstance(column.dtype, pl.Enum | pl.Categorical):
        column = column.cast(pl.String)
    distinct = column.drop_nulls().unique().sort()
    numbered = pl.DataFrame({"value": distinct}).with_row_index("code")
    codes = column.to_frame("value").join(numbered, on="value", how="left", maintain_order="left")["code"]
    return Coded(codes.cast(pl.Int64).fill_null(-1).to_numpy(), tuple(str(v) for v in distinct.to_list()))


def _format_value(qid: Qid, value: str) -> str | None:
    text = fold(value)
    if qid.kind == "text":
        return text if text and (qid.domain is None or text in qid.domain) else None
    number = _sortable(qid, text)
    if not isinstance(number, int):
        return None
    if qid.domain is not None:
        low, high = (_sortable(qid, end) for end in qid.domain)
        if not int(low) <= number <= int(high):
            return None
    return month_text(number) if qid.kind == "month" else str(number)


def _sortable(qid: Qid, value: str) -> Any:
    """Sort key: the number of a month or a whole number, else the text itself."""
    if qid.kind == "month":
        found = month_number(value[:7])
        return value if found is None else found
    if qid.kind == "integer":
        return int(value) if value.lstrip("-").isdecimal() else value
    return value


def _rank(column: pl.Series) -> Int64s:
    """Ranks of the values; −1 for null."""
    return column.rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1


def _check_qids(qids: tuple[Qid, ...], domains: Mapping[str, tuple[str, ...]]) -> tuple[Qid, ...]:
    names = [qid.name for qid in qids]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"two columns are the quasi-identifier {name!r}; leave one out.")
    for name in domains:
        if name not in names:
            raise BadInput(
                f"a domain is given for {name!r}, which is no quasi-identifier here: {', '.join(names)}."
            )
    for qid in qids:
        if qid.domain is not None:
            _check_domain(qid, qid.domain)
    return tuple(sorted(qids, key=lambda qid: qid.name))


def _check_domain(qid: Qid, domain: tuple[str, ...]) -> None:
    if qid.kind == "text":
        if not domain or any(value != fold(value) or not value for value in domain):
            raise BadInput(f"the domain of {qid.name!r} is a list of texts in lower case.")
        return
    ends = [_sortable(qid, value) for value in domain]
    if len(ends) != 2 or not all(isinstance(end, int) for end in ends) or ends[0] > ends[1]:
        raise BadInput(f"the domain of {qid.name!r} is its first and last value, as in FIRST..LAST.")
