"""What the readers of whole databases share: births, patients' attributes, visits' dates and notes by table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import polars as pl

from leeward.cohort.cohort import Cohort
from leeward.cohort.notices import Notice
from leeward.cohort.readers.ages import ISO, dates_leniently
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnMap, ColumnNames, require_columns
from leeward.cohort.readers.patients import one_row_each
from leeward.cohort.readers.stores import Store, frames, pick
from leeward.cohort.readers.values import identifiers, in_one_type, stack
from leeward.errors import BadInput, did_you_mean

Domain = TypeVar("Domain")


def domains_of(names: Sequence[str], known: Mapping[str, Domain]) -> list[Domain]:
    """The domains of these names, each once; conditions where none is named. BadInput for an unknown one."""
    for name in names:
        if name not in known:
            raise BadInput(
                f"`domains`: no domain '{name}'.{did_you_mean(name, known)} Domains: {', '.join(known)}."
            )
    return [known[name] for name in dict.fromkeys(names or ("condition",))]


@dataclass
class Births:
    """The births of the patients, gathered batch by batch."""

    _parts: list[pl.DataFrame] = field(default_factory=list)
    _bad: dict[str, list[int]] = field(default_factory=dict)

    def add(
        self,
        title: str,
        before: int,
        patient: pl.Series,
        birth: pl.Series,
        bad: pl.Series,
        two_digits: pl.Series | bool = False,
        year_only: pl.Series | bool = False,
    ) -> None:
        """Births of the next rows of a file, `before` which it has so many; `bad` marks those that cannot be read."""
        flags = {"two_digits": two_digits, "year_only": year_only}
        part = pl.DataFrame({"patient": patient, "birth": birth, **flags})
        self._parts.append(part.filter(patient.is_not_null()))
        if bad.any():
            self._bad.setdefault(title, []).extend(i + before + 1 for i in bad.arg_true())

    def frame(self) -> pl.DataFrame | None:
        """`patient` and the columns of `ages.BIRTH`; None without any."""
        return stack(self._parts) if self._parts else None

    def notices(self) -> list[Notice]:
        """The rows of the patients' files whose date of birth cannot be read."""
        return [
            Notice.of_rows(
                "unreadable birth",
                f"{title}: {len(rows):,} date{'s' if len(rows) > 1 else ''} of birth that cannot be read",
                rows,
            )
            for title, rows in self._bad.items()
        ]


def code_and_patients(columns: ColumnNames | None, what: str) -> tuple[str | None, list[str] | None]:
    """The `code` column and the attributes that a column map asks of a format whose other columns are fixed."""
    given = dict(columns or {})
    code, patients = given.pop("code", None), given.pop("patients", None)
    if given:
        raise BadInput(
            f"The format '{what}' fixes its columns; the column map can only say `code` and `patients`, not "
            f"{', '.join(f'`{role}`' for role in given)}."
        )
    if code is not None and not isinstance(code, str):
        if len(code) != 1:
            raise BadInput(f"The format '{what}' takes one column of codes; got {len(code)}.")
        code = code[0]
    return code, None if patients is None else [patients] if isinstance(patients, str) else list(patients)


def events_of(store: Store, table: str, mapped: ColumnMap, collector: Collector) -> None:
    """Put a table's events into the collector."""
    current = None
    for title, batch in store.batches(table, mapped.columns_to_read(), mapped.columns_of_codes()):
        if title != current:
            collector.begin(title, mapped)
            current = title
        collector.add(batch)


def births_of(
    store: Store, table: str, patient: str, birth: str | None, forms: Sequence[str] = ISO
) -> Births:
    """The births in a column of dates."""
    births = Births()
    if birth is None:
        return births
    for title, before, frame in frames(store, table, [patient, birth]):
        read, two_digits, bad = dates_leniently(frame[birth], title, birth, frozenset(), forms)
        births.add(title, before, identifiers(frame[patient], title, patient), read, bad, two_digits)
    return births


def patients_of(
    store: Store,
    table: str,
    patient: str,
    asked: Sequence[str] | None,
    known: Collection[str],
    cohort: Cohort,
    missing: frozenset[str],
    renamed: Mapping[str, str] | None = None,
) -> tuple[pl.DataFrame | None, list[Notice]]:
    """The attributes of the events' patients, and what was noticed: those asked for, or of the `known` ones as many as
    there are, some `renamed`."""
    available = store.columns(table)
    wanted = [each for each in known if each in available] if asked is None else [n.lower() for n in asked]
    require_columns(table, [patient, *wanted], available)
    titles = dict(renamed or {}) if asked is None else {name.lower(): name for name in asked}
    parts = []
    for title, _, frame in frames(store, table, list(dict.fromkeys([patient, *wanted]))):
        attributes = {titles.get(name, name): frame[name] for name in wanted if name != patient}
        who = identifiers(frame[patient], title, patient)
        parts.append(pl.DataFrame({"patient": who, **attributes}).filter(who.is_not_null()))
    if not parts:
        return None, [Notice("patient without attributes", f"{table}: the table has no rows", 1)]
    gathered, patient_of_events = stack(parts), cohort.require_events()["patient"]
    kept, notices = one_row_each(gathered, patient_of_events, missing)
    with_events, there = in_one_type(patient_of_events.unique(), gathered["patient"].unique())
    without = int((~there.is_in(with_events.implode())).sum())
    if without:
        people = f"{without:,} patient{'s' if without > 1 else ''}"
        notices.append(Notice("record without codes", f"{people} without any code left out", without))
    return kept, notices


def visits_of(store: Store, table: str, visit: str, date: str | None) -> pl.DataFrame | None:
    """`visit` and `date` of a table of visits, if it is there."""
    if not store.has(table) or date is None or pick(store, table, [date]) is None:
        return None
    parts = []
    for title, _, frame in frames(store, table, [visit, date]):
        read, _, _ = dates_leniently(frame[date], title, date, frozenset(), ISO)
        parts.append(pl.DataFrame({"visit": identifiers(frame[visit], title, visit), "date": read}))
    return stack(parts) if parts else None


def notes_of(
    store: Store, table: str, note: str, patient: str, date: str, text: str
) -> tuple[pl.DataFrame | None, list[Notice]]:
    """The notes frame of a table of notes, if it is there; notes without text or patient are left out."""
    if not store.has(table):
        return None, []
    parts, row = [], 0
    for title, _, frame in frames(store, table, [note, patient, date, text]):
        read, _, bad = dates_leniently(frame[date], title, date, frozenset(), ISO)
        parts.append(
            pl.DataFrame(
                {
                    "note": identifiers(frame[note], title, note),
                    "patient": identifiers(frame[patient], title, patient),
                    "date": read,
                    "text": frame[text].cast(pl.String),
                    "row": pl.int_range(row + 1, row + 1 + frame.height, eager=True),
                    "bad": bad,
                }
            )
        )
        row += frame.height
    if not parts:
        return None, []
    notes = stack(parts)
    empty = notes["patient"].is_null() | (notes["text"].fill_null("").str.strip_chars() == "")
    notices = []
    for kind, what, rows in (
        ("note without text", "without text or patient left out", notes.filter(empty)["row"]),
        ("unreadable date", "whose date cannot be read", notes.filter("bad")["row"]),
    ):
        if len(rows):
            count = f"{len(rows):,} note{'s' if len(rows) > 1 else ''}"
            notices.append(Notice.of_rows(kind, f"{table.upper()}: {count} {what}", rows))
    return notes.filter(~empty).drop("row", "bad"), notices
