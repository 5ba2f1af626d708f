"""What the readers of whole databases share: births, patients' attributes, visits' dates and notes by table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import polars as pl

from leeward.cohort.cohort import Cohort
from leeward.cohort.notices import Notice
from leeward.cohort.readers.ages import BIRTH, ISO, dates_leniently
from leeward.cohort.readers.codes import ROWS_KEPT
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnMap, ColumnNames, require_columns
from leeward.cohort.readers.patients import one_row_each
from leeward.cohort.readers.stores import Store, frames, pick
from leeward.cohort.readers.values import identifiers, same_type
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
        patient: pl.Series,
        title: str,
        column: str,
        birth: pl.Series,
        *,
        bad: pl.Series,
        before: int,
        two_digits: pl.Series | None = None,
        year_only: pl.Series | None = None,
    ) -> None:
        """Births of the next rows of a file; `bad` marks those that cannot be read."""
        never = pl.repeat(False, len(birth), eager=True)
        flags = (
            birth,
            never if two_digits is None else two_digits,
            never if year_only is None else year_only,
        )
        who = identifiers(patient.to_arrow(), title, column)
        self._parts.append(
            pl.DataFrame({"patient": who, **dict(zip(BIRTH, flags, strict=True))}).filter(who.is_not_null())
        )
        if bad.any():
            self._bad.setdefault(title, []).extend(i + before + 1 for i in bad.arg_true())

    @property
    def frame(self) -> pl.DataFrame | None:
        """`patient` and the columns of `ages.BIRTH`; None without any."""
        if not self._parts:
            return None
        return pl.DataFrame({c: same_type([part[c] for part in self._parts]) for c in ("patient", *BIRTH)})

    @property
    def notices(self) -> list[Notice]:
        """The rows of the patients' files whose date of birth cannot be read."""
        return [
            Notice(
                "unreadable birth",
                f"{title}: {len(rows):,} date{'s' if len(rows) > 1 else ''} of birth that cannot be read",
                len(rows),
                tuple(rows[:ROWS_KEPT]),
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
    for title, batch in store.batches(table, mapped.needed(), mapped.encoded()):
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
        read, two_digits, bad = dates_leniently(frame[birth].to_arrow(), title, birth, frozenset(), forms)
        births.add(frame[patient], title, patient, read, two_digits=two_digits, bad=bad, before=before)
    return births


def patients_of(
    store: Store,
    table: str,
    patient: str,
    names: Sequence[str],
    as_far_as_there: bool,
    cohort: Cohort,
    missing: frozenset[str],
    renamed: Mapping[str, str] | None = None,
) -> tuple[pl.DataFrame | None, list[Notice]]:
    """The attributes of the events' patients, and what was noticed; `renamed` gives columns other names."""
    available = store.columns(table)
    wanted = [name for name in names if name in available] if as_far_as_there else [n.lower() for n in names]
    require_columns(table, [patient, *wanted], available)
    titles = dict(renamed or {}) if as_far_as_there else {name.lower(): name for name in names}
    parts = []
    for title, _, frame in frames(store, table, list(dict.fromkeys([patient, *wanted]))):
        who = identifiers(frame[patient].to_arrow(), title, patient)
        attributes = {titles.get(name, name): frame[name] for name in wanted if name != patient}
        parts.append(pl.DataFrame({"patient": who, **attributes}).filter(who.is_not_null()))
    if not parts:
        return None, [Notice("patient without attributes", f"{table}: the table has no rows", 1)]
    gathered = pl.DataFrame({name: same_type([p[name] for p in parts]) for name in parts[0].columns})
    patient_of_events = cohort.require_events()["patient"]
    kept, notices = one_row_each(gathered, patient_of_events, missing)
    both = same_type([patient_of_events.unique(), gathered["patient"].unique()])
    count = int(patient_of_events.n_unique())
    without = int((~both.slice(count).is_in(both.head(count).implode())).sum())
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
        read, _, _ = dates_leniently(frame[date].to_arrow(), title, date, frozenset(), ISO)
        parts.append(
            pl.DataFrame({"visit": identifiers(frame[visit].to_arrow(), title, visit), "date": read})
        )
    if not parts:
        return None
    return pl.DataFrame({name: same_type([part[name] for part in parts]) for name in ("visit", "date")})


def notes_of(
    store: Store, table: str, note: str, patient: str, date: str, text: str
) -> tuple[pl.DataFrame | None, list[Notice]]:
    """The notes frame of a table of notes, if it is there; notes without text or patient are left out."""
    if not store.has(table):
        return None, []
    parts, row, lost, unread = [], 0, [], []
    for title, _, frame in frames(store, table, [note, patient, date, text]):
        read, _, bad = dates_leniently(frame[date].to_arrow(), title, date, frozenset(), ISO)
        notes = pl.DataFrame(
            {
                "note": identifiers(frame[note].to_arrow(), title, note),
                "patient": identifiers(frame[patient].to_arrow(), title, patient),
                "date": read,
                "text": frame[text].cast(pl.String),
            }
        )
        empty = notes["patient"].is_null() | (notes["text"].fill_null("").str.strip_chars() == "")
        lost += [row + i + 1 for i in empty.arg_true()]
        unread += [row + i + 1 for i in bad.arg_true()]
        row += frame.height
        parts.append(notes.filter(~empty))
    if not parts:
        return None, []
    frame = pl.DataFrame({name: same_type([p[name] for p in parts]) for name in parts[0].columns})
    return frame, [
        *_notices("note without text", f"{table.upper()}: {{}} without text or patient left out", lost),
        *_notices("unreadable date", f"{table.upper()}: {{}} whose date cannot be read", unread),
    ]


def _notices(kind: str, message: str, rows: list[int]) -> list[Notice]:
    if not rows:
        return []
    count = f"{len(rows):,} note{'s' if len(rows) > 1 else ''}"
    return [Notice(kind, message.format(count), len(rows), tuple(rows[:ROWS_KEPT]))]
