"""From a stream of Arrow batches to a cohort: what every tabular reader shares.

Only the distinct codes are ever normalised; a row keeps a 32-bit number. So ten million patients fit in a
few GB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from leeward.arrays import Bools, Int32s, Int64s, UInt32s, count_noun
from leeward.cohort.cohort import Cohort
from leeward.cohort.notices import Notice
from leeward.cohort.readers.ages import (
    BIRTH,
    ISO,
    add_ages,
    dates_leniently,
    dates_of_visits,
    notice_rows,
    of_patients,
)
from leeward.cohort.readers.code_numbers import NO_CODE, CodeNumbers
from leeward.cohort.readers.codes import (
    AS_WRITTEN,
    ROWS_KEPT,
    VOCABULARY_NAMES,
    Normalised,
    normalise,
    rules_of,
)
from leeward.cohort.readers.columns import ColumnMap
from leeward.cohort.readers.patients import one_row_each
from leeward.cohort.readers.values import (
    DECIMAL_COMMA,
    GERMAN,
    GERMAN_DATE,
    dates,
    identifiers,
    identify_patients,
    plain,
    same_type,
    simplify,
    years,
)
from leeward.errors import BadInput


@dataclass
class Collector:
    """Gathers the batches of one source; `cohort()` closes it.

    Rows are counted from 1 through all files in order, headers excluded.
    """

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
    _file: str = field(init=False)
    _rows_before: int = 0
    codes: CodeNumbers = field(init=False)
    vocabularies: CodeNumbers = field(init=False)
    _patients: list[pl.Series] = field(default_factory=list)
    _code_numbers: list[Int32s] = field(default_factory=list)
    _vocabulary_numbers: list[Int32s] = field(default_factory=list)
    _event_rows: list[UInt32s] = field(default_factory=list)
    _optional: dict[str, list[pl.Series]] = field(default_factory=dict)
    _attributes: list[pl.DataFrame] = field(default_factory=list)
    _rows_without_code: list[pl.DataFrame] = field(default_factory=list)
    _rows_with_gap: list[Int64s] = field(default_factory=list)
    _gaps: int = 0
    _births: list[pl.DataFrame] = field(default_factory=list)
    _unreadable: dict[str, list[pl.Series]] = field(default_factory=dict)
    _converted: dict[str, list[UInt32s]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.separator is not None and not self.separator.strip():
            raise BadInput(
                "--code-separator is blank; give what stands between the codes of a cell, such as ','."
            )
        self._file = self.name
        self.lenient |= self.columns.birth is not None
        self.codes = CodeNumbers(self.missing)
        self.vocabularies = CodeNumbers(self.missing)
        self._optional = {role: [] for role in self.columns.optional() if role not in ("vocabulary", "birth")}

    def begin(self, file: str, columns: ColumnMap | None = None) -> None:
        """The next batches come from `file`: errors name it and count its own rows.

        `columns`, with the same roles, says what its columns are called where they differ.
        """
        self._file = file
        self._rows_before = self.last_row
        self.columns = columns or self.columns

    def translate(self, meanings: Mapping[str, tuple[str, str]], *, named: bool) -> int:
        """Put the code of each number (`meanings`: number to code and vocabulary) in its place.

        With `named` the events get the column `vocabulary`. Returns how many numbers have no meaning: they stay.
        """
        found = [meanings.get(text, (text, None)) for text in self.codes.texts]
        if named:
            of_code = self.vocabularies.number(pa.array([v for _, v in found], pa.string()), self.name, "")
            self._vocabulary_numbers = [of_code[numbers] for numbers in self._code_numbers]
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
            self._note_gaps(patient, row, gaps)
        self._add_events(batch, patient, row, source, numbers)
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

    def _add_events(
        self, batch: pa.RecordBatch, patient: pl.Series, row: UInt32s, source: Int64s | None, numbers: Int32s
    ) -> None:
        def of_events(series: pl.Series) -> pl.Series:
            return series if source is None else series.gather(source)

        self._code_numbers.append(numbers)
        self._patients.append(of_events(patient))
        self._event_rows.append(row if source is None else row[source])
        first_row = int(row[0]) - self._rows_before
        self._note_conversions(batch, row)
        for role, name in self.columns.optional().items():
            column = batch.column(name)
            if role == "vocabulary":
                of_rows = self.vocabularies.number(column, self._file, name)
                self._vocabulary_numbers.append(of_rows if source is None else of_rows[source])
            elif role == "visit":
                self._optional[role].append(of_events(identifiers(column, self._file, name)))
            elif role == "birth" or (role == "date" and self.lenient):
                self._add_leniently(role, name, column, of_events)
            elif role == "date":
                parsed = dates(column, self._file, name, self.missing, self.date_format, first_row)
                self._optional[role].append(of_events(parsed))
            else:
                self._optional[role].append(
                    of_events(years(column, self._file, name, self.missing, first_row))
                )

    def _note_conversions(self, batch: pa.RecordBatch, row: UInt32s) -> None:
        """Remember the rows whose dates are day.month.year and whose ages have a decimal comma."""
        optional = self.columns.optional()
        looks = [("age", DECIMAL_COMMA)]
        if self.date_format is None:
            looks += [("date", GERMAN_DATE), ("birth", GERMAN_DATE)]
        for role, pattern in looks:
            if role in optional and pa.types.is_string(batch.column(optional[role]).type):
                hits = pc.match_substring_regex(batch.column(optional[role]), pattern)
                at = np.flatnonzero(pl.Series(pl.from_arrow(hits)).fill_null(False).to_numpy())
                if len(at):
                    self._converted.setdefault(role, []).append(row[at])

    def _conversion_notices(self) -> list[Notice]:
        found = []
        for role, parts in self._converted.items():
            rows = np.concatenate(parts)
            name = self.columns.optional()[role]
            how = "a decimal comma, read as a point" if role == "age" else "points, read as day.month.year"
            message = f"{count_noun('value', len(rows))} of column '{name}' with {how}"
            found.append(
                Notice(f"form of {role}", message, len(rows), tuple(int(r) for r in rows[:ROWS_KEPT]))
            )
        return found

    def _add_leniently(
        self, role: str, name: str, column: pa.Array, of_events: Callable[[pl.Series], pl.Series]
    ) -> None:
        forms = self.forms if self.date_format is None else (self.date_format,)
        read, two_digits, bad = dates_leniently(column, self._file, name, self.missing, forms)
        self._unreadable.setdefault(role, []).append(of_events(bad))
        if role == "date":
            self._optional[role].append(of_events(read))
        else:
            year_only = pl.repeat(False, len(read), eager=True)
            known = zip(BIRTH, (read, two_digits, year_only), strict=True)
            self._births.append(pl.DataFrame({key: of_events(series) for key, series in known}))

    def _note_gaps(self, patient: pl.Series, row: UInt32s, gaps: Bools) -> None:
        self._gaps += int(gaps.sum())
        self._rows_with_gap.append(row[gaps.any(axis=1)].astype(np.int64))
        empty = gaps.all(axis=1)
        if empty.any():
            self._rows_without_code.append(
                pl.DataFrame({"patient": patient.filter(pl.Series(empty)), "row": row[empty]})
            )

    def taken(self) -> tuple[list[pl.Series], Int32s, UInt32s]:
        """Patients (in parts), numbers of texts, and rows of the events added since the last call; they are let go."""
        patients, self._patients = self._patients, []
        if not patients:
            return [], np.empty(0, np.int32), np.empty(0, np.uint32)
        return patients, _concatenate(self._code_numbers), _concatenate(self._event_rows)

    def stored(
        self, vocabulary: str | None, entries: Int64s, first_row: UInt32s, patients: Callable[[], pl.Series]
    ) -> tuple[Normalised, list[Notice]]:
        """The codes of all texts, and what is noticed, where the events were `taken` (patients and codes alone).

        entries, first_row : of each text how often it occurs, and its first row
        patients : all patients with codes, where they are needed
        """
        self._refuse_nothing(int(entries.sum()))
        normalised = normalise(self.codes.texts, vocabulary, entries)
        texts = np.argsort(first_row, kind="stable").astype(np.int32)
        gaps = self._gap_notices(patients()) if self._gaps else []
        return normalised, [*gaps, *normalised.notices(texts, first_row[texts], self._where(), entries)]

    def cohort(
        self,
        vocabulary: str | None,
        births: pl.DataFrame | None = None,
        visits: Callable[[], pl.DataFrame | None] | None = None,
    ) -> Cohort:
        """The cohort of all that was added.

        `births` (`patient` and the columns of `ages.BIRTH`) gives the events ages; `visits` reads `visit` and
        `date` where events lack a date.
        """
        self._refuse_nothing(sum(map(len, self._code_numbers)))
        return self._assemble(vocabulary, births, visits)

    def _refuse_nothing(self, events: int) -> None:
        if self.last_row == 0:
            raise BadInput(f"{self.name}: the file has column names but no rows.")
        if not events:
            raise BadInput(
                f"{self.name}: no {self.unit} has a code{self._where()}; nothing remains to protect."
            )

    def _assemble(
        self,
        vocabulary: str | None,
        births: pl.DataFrame | None,
        visits: Callable[[], pl.DataFrame | None] | None,
    ) -> Cohort:
        patient = same_type(self._patients)
        self._patients = []
        row = _concatenate(self._event_rows)
        numbers = _concatenate(self._code_numbers)
        extra: dict[str, pl.Series] = {}
        if self._vocabulary_numbers:
            named = [VOCABULARY_NAMES.get(v.lower(), v) for v in self.vocabularies.texts]
            normalised, numbers = self._normalise_by_vocabulary(numbers, named)
            extra["vocabulary"] = _texts(named, _concatenate(self._vocabulary_numbers))
        else:
            entries = np.bincount(numbers, minlength=len(self.codes.texts)).astype(np.int64)
            normalised = normalise(self.codes.texts, vocabulary, entries)
        notices = [
            *self._conversion_notices(),
            *self._gap_notices(patient),
            *_alike(patient, row),
            *normalised.notices(numbers, row, self._where()),
        ]
        extra |= {role: same_type(parts) for role, parts in self._optional.items()}
        notices += self._date_notices(row)
        if visits is not None and "visit" in extra and "date" in extra and extra["date"].null_count():
            notices += _date_by_visit(extra, visits(), row)
        if self._births:
            of_events: pl.DataFrame | None = pl.concat(self._births)
        else:
            of_events = None if births is None else of_patients(patient, births)
        if of_events is not None and "date" in extra:
            extra["age"], about_ages = add_ages(patient, row, extra["date"], of_events)
            notices += about_ages
        code = normalised.as_enum(numbers)
        del numbers
        events = pl.DataFrame({"patient": patient, "code": code, "row": row, **extra})
        patients, conflicts = self._patients_frame(patient)
        return Cohort(
            events=events,
            patients=patients,
            notices=(*notices, *conflicts),
            name=self.name,
            vocabulary=normalised.vocabulary,
        )

    def _normalise_by_vocabulary(self, numbers: Int32s, named: list[str]) -> tuple[Normalised, Int32s]:
        """Codes whose row names the vocabulary: each pair (code, vocabulary) by its own rules."""
        of_rows = np.concatenate(self._vocabulary_numbers).astype(np.int64) + 1
        pairs, renumbered = np.unique(numbers * np.int64(len(named) + 1) + of_rows, return_inverse=True)
        texts = [self.codes.texts[pair // (len(named) + 1)] for pair in pairs]
        known = ("icd9", "icd10")
        unnamed = rules_of("icd") if named and all(name in known for name in named) else AS_WRITTEN
        of_name = [unnamed, *(rules_of(name) if name in known else AS_WRITTEN for name in named)]
        normalised = Normalised.by_each([of_name[pair % (len(named) + 1)] for pair in pairs], texts)
        return normalised, renumbered.astype(np.int32)

    def _date_notices(self, row: UInt32s) -> list[Notice]:
        found = []
        for role, parts in self._unreadable.items():
            title = self.columns.optional()[role]
            message = f"{{}} whose value in column '{title}' is no date that can be read"
            found += notice_rows(f"unreadable {role}", pl.concat(parts), row, message)
        return found

    def _gap_notices(self, patient: pl.Series) -> list[Notice]:
        if not self._gaps:
            return []
        found = []
        if len(self.columns.code) > 1:  # of a wide form's columns the last ones are empty as a rule
            empty = sum(each.height for each in self._rows_without_code)
            if empty:
                at = pl.concat([each["row"] for each in self._rows_without_code]).head(ROWS_KEPT)
                message = f"{count_noun('row', empty)} without any code{self._where()} left out"
                found.append(Notice("missing code", message, empty, tuple(at.to_list())))
        elif self.unit == "row" or self.missing:
            rows = tuple(int(row) for row in np.concatenate(self._rows_with_gap)[:ROWS_KEPT])
            message = f"{self._gaps:,} missing code{'s' if self._gaps > 1 else ''}{self._where()} left out"
            found.append(Notice("missing code", message, self._gaps, rows))
        if self._rows_without_code:
            parts = self._rows_without_code
            without = pl.DataFrame(
                {
                    "patient": same_type([p["patient"] for p in parts]),
                    "row": pl.concat([p["row"] for p in parts]),
                }
            )
            both = same_type([without["patient"], patient])
            without = without.with_columns(both.head(without.height).alias("patient"))
            lost = without.join(
                pl.DataFrame({"patient": both.slice(without.height)}), on="patient", how="anti"
            )
            if lost.height:
                people = lost["patient"].n_unique()
                who = "patient" if self.unit == "row" else "line"
                found.append(
                    Notice(
                        "record without codes",
                        f"{people:,} {who}{'s' if people > 1 else ''} without any code left out",
                        people,
                        tuple(lost["row"].sort().head(ROWS_KEPT).to_list()),
                    )
                )
        return found

    def _where(self) -> str:
        if self.unit != "row":
            return ""
        names = self.columns.code
        return f" in {len(names)} code columns" if len(names) > 1 else f" in column '{names[0]}'"

    def _patients_frame(self, patient: pl.Series) -> tuple[pl.DataFrame | None, list[Notice]]:
        if not self._attributes:
            return None, []
        names = self.columns.patients
        gathered = pl.DataFrame(
            {
                "patient": same_type([part["patient"] for part in self._attributes]),
                **{name: same_type([part[name] for part in self._attributes]) for name in names},
            }
        )
        return one_row_each(gathered, patient, self.missing)


def _date_by_visit(extra: dict[str, pl.Series], visits: pl.DataFrame | None, row: UInt32s) -> list[Notice]:
    """Fill the dates that are missing with those of the visits."""
    if visits is None:
        return []
    before = extra["date"]
    extra["date"] = dates_of_visits(extra["visit"], before, visits)
    filled = before.is_null() & extra["date"].is_not_null()
    return notice_rows(
        "date of the visit", filled, row, "{} without a date of their own: the visit's is taken"
    )


def _alike(patient: pl.Series, row: UInt32s) -> list[Notice]:
    """A notice of identifiers that differ in blanks, leading zeros or `.0` alone: they may be one patient's."""
    if patient.dtype != pl.String:
        return []
    first = pl.DataFrame({"patient": patient, "row": row}).unique(
        "patient", keep="first", maintain_order=True
    )
    twice = first.filter(simplify(first["patient"]).is_duplicated())
    if not twice.height:
        return []
    message = (
        f"{twice.height:,} identifiers of patients differ from another one in blanks, leading zeros or '.0' alone; "
        f"they are read as different patients"
    )
    return [Notice("identifiers alike", message, twice.height, tuple(twice["row"].head(ROWS_KEPT).to_list()))]


Number = TypeVar("Number", np.int32, np.uint32)


def _concatenate(parts: list[NDArray[Number]]) -> NDArray[Number]:
    """One array of all parts; the parts are let go."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def _texts(texts: list[str], numbers: Int32s) -> pl.Series:
    """The text of each number as an Enum; NO_CODE is null."""
    distinct = sorted(set(texts))
    places = pl.Series([*texts, None], dtype=pl.Enum(distinct))
    return places.gather(np.where(numbers == NO_CODE, len(texts), numbers))
