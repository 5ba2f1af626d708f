"""From a stream of Arrow batches to a cohort: what every tabular reader shares.

Only the distinct codes are ever normalised; a row keeps a 32-bit number. So ten million patients fit in a
few GB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from leeward.arrays import Bools, Int32s, Int64s, UInt32s, count_noun
from leeward.cohort.cohort import Cohort
from leeward.cohort.notices import Notice
from leeward.cohort.readers.ages import BIRTH, ISO, add_ages, dates_leniently, notice_rows
from leeward.cohort.readers.codes import AS_WRITTEN, VOCABULARY_NAMES, Normalised, normalise, rules_of
from leeward.cohort.readers.columns import ColumnMap
from leeward.cohort.readers.values import (
    DECIMAL_COMMA,
    GERMAN,
    GERMAN_DATE,
    NO_CODE,
    CodeNumbers,
    dates,
    identifiers,
    identify_patients,
    in_one_type,
    look_up,
    one_row_each,
    plain,
    simplify,
    stack,
    years,
)
from leeward.errors import BadInput

UNREADABLE = "unreadable {}"
"""The column of events that says where a role's value is no date; a notice of the same kind tells of it."""


@dataclass
class Collector:
    """Gathers the batches of one source; `cohort()` closes it. Rows count from 1 through all files, without headers."""

    name: str
    columns: ColumnMap
    missing: frozenset[str]
    date_format: str | None = None
    unit: str = "row"
    lenient: bool = False
    """Dates that cannot be read become notices, not errors; so they do where ages come from births."""
    forms: tuple[str, ...] = (*ISO, GERMAN)
    """How dates may be written where they are read leniently and `date_format` says nothing."""
    separator: str | None = None
    """What stands between the codes of a cell; None: a cell is one code."""
    last_row: int = 0
    codes: CodeNumbers = field(init=False)
    vocabularies: CodeNumbers = field(init=False)
    _file: str = field(init=False)
    _rows_before: int = 0
    _events: list[pl.DataFrame] = field(default_factory=list)
    """`patient`, `row`, `code` (its number), and the columns of `_values_of`."""
    _gaps: list[pl.DataFrame] = field(default_factory=list)
    """Rows with an empty cell of a code: `patient`, `row`, how many `cells`, whether they are `all`."""
    _attributes: list[pl.DataFrame] = field(default_factory=list)
    _converted: dict[str, list[UInt32s]] = field(default_factory=dict)
    """Rows whose dates are day.month.year, and whose ages have a decimal comma, by role."""

    def __post_init__(self) -> None:
        if self.separator is not None and not self.separator.strip():
            raise BadInput(
                "--code-separator is blank; give the separator of the codes in a cell, such as ','."
            )
        self._file = self.name
        self.lenient |= self.columns.birth is not None
        self.codes, self.vocabularies = CodeNumbers(self.missing), CodeNumbers(self.missing)

    def begin(self, file: str, columns: ColumnMap | None = None) -> None:
        """The next batches come from `file`, which errors name with its own rows, and whose columns are called
        `columns`."""
        self._file = file
        self._rows_before = self.last_row
        self.columns = columns or self.columns

    def translate(self, meanings: Mapping[str, tuple[str, str]], *, named: bool) -> int:
        """Put the code of each number (`meanings`: number to code and vocabulary) in its place, with `named` its
        vocabulary too. Returns how many numbers have no meaning: they stay."""
        found = [meanings.get(text, (text, None)) for text in self.codes.texts]
        if named:
            of_code = self.vocabularies.number(pa.array([v for _, v in found], pa.string()), self.name, "")
            self._events = [
                part.with_columns(vocabulary=pl.Series(of_code[part["code"].to_numpy()]))
                for part in self._events
            ]
        self.codes.texts[:] = [code for code, _ in found]
        return sum(vocabulary is None for _, vocabulary in found)

    def add(self, batch: pa.RecordBatch, row: UInt32s | None = None) -> None:
        """Take the next rows of the source; `row` numbers them where they are not simply the next ones."""
        if batch.num_rows == 0:
            return
        if row is None:
            row = np.arange(self.last_row + 1, self.last_row + 1 + batch.num_rows, dtype=np.uint32)
        self.last_row = int(row[-1])
        own, who = row.astype(np.int64) - self._rows_before, self.columns.patient
        patient = identify_patients(batch.column(who), self._file, who, own, self.missing)
        source, numbers, gaps = self._codes_of(batch, own)
        if gaps is not None:
            empty = {"cells": gaps.sum(axis=1), "all": gaps.all(axis=1)}
            self._gaps.append(
                pl.DataFrame({"patient": patient, "row": row, **empty}).filter(pl.col("cells") > 0)
            )
        self._note_conversions(batch, row)
        rows = pl.DataFrame({"patient": patient, "row": row, **self._values_of(batch, int(own[0]))})
        events = rows if source is None else rows[source]
        self._events.append(events.with_columns(code=pl.Series(numbers)))
        if self.columns.patients:
            attributes = {c: plain(batch.column(c), self._file, c) for c in self.columns.patients}
            self._attributes.append(pl.DataFrame({"patient": patient, **attributes}))

    def _codes_of(self, batch: pa.RecordBatch, rows: Int64s) -> tuple[Int64s | None, Int32s, Bools | None]:
        """Of each event its row's place (None: one a row) and its code's number; the cells without a code (rows by
        columns of codes; None: none is)."""
        titles, between = self.columns.code, self.separator
        if between is not None:
            cells = [self.codes.numbers_apart(batch.column(c), self._file, c, rows, between) for c in titles]
            source = np.concatenate([places for places, _ in cells])
            order = np.argsort(source, kind="stable")
            empty = [np.bincount(places, minlength=batch.num_rows) == 0 for places, _ in cells]
            numbers = np.concatenate([numbers for _, numbers in cells])
            return source[order], numbers[order], np.stack(empty, axis=1)
        wide = np.stack([self.codes.number(batch.column(c), self._file, c, rows) for c in titles], axis=1)
        numbers = wide.ravel()
        kept = np.flatnonzero(numbers != NO_CODE)
        if len(kept) == wide.size:
            return (None if len(titles) == 1 else kept // len(titles)), numbers, None
        return kept // len(titles), numbers[kept], wide == NO_CODE

    def _values_of(self, batch: pa.RecordBatch, first_row: int) -> dict[str, pl.Series]:
        found: dict[str, pl.Series] = {}
        for role, name in self.columns.optional().items():
            column = batch.column(name)
            if role == "vocabulary":
                found[role] = pl.Series(self.vocabularies.number(column, self._file, name))
            elif role == "visit":
                found[role] = identifiers(column, self._file, name)
            elif role == "age":
                found[role] = years(column, self._file, name, self.missing, first_row)
            elif role == "date" and not self.lenient:
                found[role] = dates(column, self._file, name, self.missing, self.date_format, first_row)
            else:
                forms = self.forms if self.date_format is None else (self.date_format,)
                read, two_digits, bad = dates_leniently(column, self._file, name, self.missing, forms)
                found |= {role: read, UNREADABLE.format(role): bad}
                if role == "birth":
                    found |= {"two_digits": two_digits, "year_only": pl.repeat(False, len(read), eager=True)}
        return found

    def _note_conversions(self, batch: pa.RecordBatch, row: UInt32s) -> None:
        german = GERMAN_DATE if self.date_format is None else None
        looks = {"age": DECIMAL_COMMA, "date": german, "birth": german}
        for role, name in self.columns.optional().items():
            if looks.get(role) and pa.types.is_string(batch.column(name).type):
                hits = pc.match_substring_regex(batch.column(name), looks[role])
                self._converted.setdefault(role, []).append(row[np.asarray(hits.fill_null(False))])

    def _conversion_notices(self) -> list[Notice]:
        found = []
        for role, parts in self._converted.items():
            rows, name = np.concatenate(parts), self.columns.optional()[role]
            how = "a decimal comma, read as a point" if role == "age" else "points, read as day.month.year"
            message = f"{count_noun('value', len(rows))} of column '{name}' with {how}"
            found += [Notice.of_rows(f"form of {role}", message, rows)] if len(rows) else []
        return found

    def take(self) -> list[pl.DataFrame]:
        """`patient`, `row` and `code` (its text's number) of events added since the last call, which are let go."""
        parts, self._events = self._events, []
        return parts

    def normalise_texts(
        self, vocabulary: str | None, entries: Int64s, first_row: UInt32s, patients: Callable[[], pl.Series]
    ) -> tuple[Normalised, list[Notice]]:
        """The codes of all texts, and notices, after `take`: of each text `entries` and `first_row`; `patients` with
        codes."""
        self._refuse_nothing(int(entries.sum()))
        normalised = normalise(self.codes.texts, vocabulary, entries)
        texts = np.argsort(first_row, kind="stable").astype(np.int32)
        gaps = self._gap_notices(patients()) if self._gaps else []
        notices = [*self._conversion_notices(), *gaps]
        return normalised, [*notices, *normalised.notices(texts, first_row[texts], self._where(), entries)]

    def cohort(
        self,
        vocabulary: str | None,
        births: pl.DataFrame | None = None,
        visits: Callable[[], pl.DataFrame | None] | None = None,
    ) -> Cohort:
        """The cohort of all that was added. `births` (`patient` and the columns of `ages.BIRTH`) gives events ages;
        `visits` reads `visit` and `date` where events lack a date."""
        self._refuse_nothing(sum(part.height for part in self._events))
        rows = stack(self._events)
        patient, row, numbers = rows["patient"], rows["row"].to_numpy(), rows["code"].to_numpy()
        extra = {each.name: each for each in rows if each.name in ("visit", "date", "age")}
        if "vocabulary" in rows.columns:
            named = [VOCABULARY_NAMES.get(v.lower(), v) for v in self.vocabularies.texts]
            normalised, numbers, of_rows = self._normalise_by_vocabulary(numbers, rows["vocabulary"], named)
            extra = {"vocabulary": of_rows, **extra}
        else:
            entries = np.bincount(numbers, minlength=len(self.codes.texts)).astype(np.int64)
            normalised = normalise(self.codes.texts, vocabulary, entries)
        notices = [
            *self._conversion_notices(),
            *self._gap_notices(patient),
            *_alike(patient, row),
            *normalised.notices(numbers, row, self._where()),
            *self._date_notices(rows),
        ]
        if visits is not None:
            notices += _date_by_visit(extra, visits, row)
        if "birth" in rows.columns:
            notices += _add_ages(extra, rows, rows.select(list(BIRTH)))
        elif births is not None:
            notices += _add_ages(extra, rows, look_up(patient, births))
        events = pl.DataFrame({"patient": patient, "code": normalised.as_enum(numbers), "row": row, **extra})
        patients = None
        if self._attributes:
            patients, conflicts = one_row_each(stack(self._attributes), patient, self.missing)
            notices += conflicts
        return Cohort(
            events=events,
            patients=patients,
            notices=tuple(notices),
            name=self.name,
            vocabulary=normalised.vocabulary,
        )

    def _refuse_nothing(self, events: int) -> None:
        if self.last_row == 0:
            raise BadInput(f"{self.name}: the file has column names but no rows.")
        if not events:
            raise BadInput(
                f"{self.name}: no {self.unit} has a code{self._where()}; nothing remains to protect."
            )

    def _normalise_by_vocabulary(
        self, numbers: Int32s, of_rows: pl.Series, named: list[str]
    ) -> tuple[Normalised, Int32s, pl.Series]:
        """Codes whose row names the vocabulary, each pair (code, vocabulary) by its own rules: the codes, the number of
        each row's, and its vocabulary as an Enum."""
        width = np.int64(len(named) + 1)
        pairs, renumbered = np.unique(numbers * width + (of_rows.to_numpy() + 1), return_inverse=True)
        texts = [self.codes.texts[pair // width] for pair in pairs]
        known = ("icd9", "icd10")
        unnamed = rules_of("icd") if named and all(name in known for name in named) else AS_WRITTEN
        of_name = [unnamed, *(rules_of(name) if name in known else AS_WRITTEN for name in named)]
        normalised = Normalised.by_each([of_name[pair % width] for pair in pairs], texts)
        names = pl.Series([None, *named], dtype=pl.Enum(sorted(set(named))))
        return normalised, renumbered.astype(np.int32), names.gather(of_rows + 1)

    def _date_notices(self, rows: pl.DataFrame) -> list[Notice]:
        found = []
        for role, name in self.columns.optional().items():
            kind = UNREADABLE.format(role)
            if kind in rows.columns:
                message = f"{{}} whose value in column '{name}' is not a readable date"
                found += notice_rows(kind, rows[kind], rows["row"].to_numpy(), message)
        return found

    def _gap_notices(self, patient: pl.Series) -> list[Notice]:
        if not self._gaps:
            return []
        gaps = stack(self._gaps)
        empty, found = gaps.filter("all"), []
        if len(self.columns.code) > 1:  # of a wide form's columns the last ones are empty as a rule
            message = f"{count_noun('row', empty.height)} without any code{self._where()} left out"
            found = [Notice.of_rows("missing code", message, empty["row"])] if empty.height else []
        elif self.unit == "row" or self.missing:
            count = int(gaps["cells"].sum())
            message = f"{count_noun('missing code', count)}{self._where()} left out"
            found = [Notice.of_rows("missing code", message, gaps["row"], count)]
        if empty.height:
            without, with_codes = in_one_type(empty["patient"], patient)
            lost = empty.filter(~without.is_in(with_codes.unique().implode()))
            people = lost["patient"].n_unique()
            message = (
                f"{count_noun('patient' if self.unit == 'row' else 'line', people)} without any code left out"
            )
            rows = lost["row"].sort()
            found += [Notice.of_rows("record without codes", message, rows, people)] if people else []
        return found

    def _where(self) -> str:
        if self.unit != "row":
            return ""
        names = self.columns.code
        return f" in {len(names)} code columns" if len(names) > 1 else f" in column '{names[0]}'"


def _date_by_visit(
    extra: dict[str, pl.Series], read: Callable[[], pl.DataFrame | None], row: UInt32s
) -> list[Notice]:
    """Fill the dates that are missing with those of the visits, which are read only where they are needed."""
    if "visit" not in extra or "date" not in extra or not extra["date"].null_count():
        return []
    visits, before = read(), extra["date"]
    if visits is None:
        return []
    extra["date"] = before.fill_null(look_up(extra["visit"], visits.drop_nulls())["date"])
    filled = before.is_null() & extra["date"].is_not_null()
    return notice_rows(
        "date of the visit", filled, row, "{} without their own date: the visit's date is used"
    )


def _add_ages(extra: dict[str, pl.Series], rows: pl.DataFrame, births: pl.DataFrame) -> list[Notice]:
    """Give the events ages at their dates, if they have such, from each one's birth."""
    if "date" not in extra:
        return []
    extra["age"], notices = add_ages(rows["patient"], rows["row"].to_numpy(), extra["date"], births)
    return notices


def _alike(patient: pl.Series, row: UInt32s) -> list[Notice]:
    """A notice of identifiers that differ in blanks, leading zeros or `.0` alone: they may be one patient's."""
    if patient.dtype != pl.String:
        return []
    rows = pl.DataFrame({"patient": patient, "row": row})
    first = rows.unique("patient", keep="first", maintain_order=True)
    twice = first.filter(simplify(first["patient"]).is_duplicated())
    if not twice.height:
        return []
    message = (
        f"{twice.height:,} identifiers of patients differ from another one only in blanks, leading zeros or "
        f"'.0'; they are read as different patients"
    )
    return [Notice.of_rows("identifiers alike", message, twice["row"])]
