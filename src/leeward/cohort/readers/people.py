"""What the readers of whole databases share: events, births, patients' attributes, visits' dates and notes by table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

import polars as pl

from leeward.arrays import count_noun
from leeward.cohort.cohort import Cohort
from leeward.cohort.notices import Notice
from leeward.cohort.readers.ages import ISO, dates_leniently
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnMap, ColumnNames, as_tuple, require_columns
from leeward.cohort.readers.stores import Store, frames
from leeward.cohort.readers.values import identifiers, in_one_type, one_row_each, stack
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


def code_and_patients(columns: ColumnNames | None, what: str) -> tuple[str | None, list[str] | None]:
    """The `code` column and the attributes that a column map asks of a format whose other columns are fixed."""
    given = dict(columns or {})
    code, patients = as_tuple(given.pop("code", ())), given.pop("patients", None)
    if given:
        raise BadInput(
            f"The format '{what}' fixes its columns; the column map can only say `code` and `patients`, not "
            f"{', '.join(f'`{role}`' for role in given)}."
        )
    if len(code) > 1:
        raise BadInput(f"The format '{what}' takes one column of codes; got {len(code)}.")
    return code[0] if code else None, None if patients is None else list(as_tuple(patients))


def add_events(collector: Collector, store: Store, tables: Mapping[str, ColumnMap]) -> None:
    """Put the events of the tables into the collector; the tables' columns must have the same roles."""
    for table, mapped in tables.items():
        if mapped.optional().keys() != collector.columns.optional().keys():
            raise BadInput(
                f"{table}: its columns differ from those of the first table (only one has a visit, a date "
                f"or a vocabulary); add the column, empty where unknown, or read the table alone."
            )
        current = None
        for title, batch in store.batches(table, mapped.columns_to_read(), mapped.columns_of_codes()):
            if title != current:
                collector.begin(title, mapped)
                current = title
            collector.add(batch)


def gather(
    store: Store, table: str, columns: Sequence[str], convert: Callable[[str, pl.DataFrame], pl.DataFrame]
) -> pl.DataFrame | None:
    """What `convert` makes of each part of a table, in one frame with the `row` in its file; None without rows."""
    parts = [convert(title, frame) for title, frame in frames(store, table, columns)]
    return stack(parts) if parts else None


def births_part(
    file: str | pl.Series,
    frame: pl.DataFrame,
    patient: pl.Series,
    birth: pl.Series,
    bad: pl.Series,
    two_digits: pl.Series | bool = False,
    year_only: pl.Series | bool = False,
) -> pl.DataFrame:
    """Births of the rows of a `frame` (of `gather`): `patient`, the columns of `ages.BIRTH`, `file` and `row`, and
    whether the date is `bad` (cannot be read)."""
    flags = {"two_digits": two_digits, "year_only": year_only, "bad": bad}
    return pl.DataFrame({"patient": patient, "birth": birth, "file": file, "row": frame["row"], **flags})


def births_of(
    store: Store, table: str, patient: str, birth: str | None, forms: Sequence[str] = ISO
) -> pl.DataFrame | None:
    """The births in a column of dates, as `births_part` has them; None without such a column."""
    if birth is None:
        return None

    def convert(title: str, frame: pl.DataFrame) -> pl.DataFrame:
        read, two_digits, bad = dates_leniently(frame[birth], title, birth, frozenset(), forms)
        return births_part(title, frame, identifiers(frame[patient], title, patient), read, bad, two_digits)

    return gather(store, table, [patient, birth], convert)


def birth_notices(births: pl.DataFrame | None) -> list[Notice]:
    if births is None:
        return []
    bad = births.filter("bad").group_by("file", maintain_order=True).agg("row")
    return [
        Notice.of_rows(
            "unreadable birth",
            f"{title}: {count_noun('date', len(rows))} of birth that cannot be read",
            rows,
        )
        for title, rows in bad.iter_rows()
    ]


def patients_of(
    store: Store,
    table: str,
    patient: str,
    asked: Sequence[str] | None,
    known: Mapping[str, str] | Collection[str],
    cohort: Cohort,
    missing: frozenset[str],
) -> tuple[pl.DataFrame | None, list[Notice]]:
    """The attributes of the events' patients, and what was noticed: those asked for, or of the `known` ones as many as
    there are, under the names that a mapping gives."""
    available = store.columns(table)
    if asked is not None:
        titles = {name.lower(): name for name in asked}
    else:
        renamed = known if isinstance(known, Mapping) else {}
        titles = {name: renamed.get(name, name) for name in known if name in available}
    require_columns(table, [patient, *titles], available)

    def convert(title: str, frame: pl.DataFrame) -> pl.DataFrame:
        who = identifiers(frame[patient], title, patient).alias("patient")
        return frame.select(
            who, *(frame[name].alias(titles[name]) for name in titles if name != patient)
        ).filter(who.is_not_null())

    gathered = gather(store, table, list(dict.fromkeys([patient, *titles])), convert)
    if gathered is None:
        return None, [Notice("patient without attributes", f"{table}: the table has no rows", 1)]
    patient_of_events = cohort.require_events()["patient"]
    kept, notices = one_row_each(gathered, patient_of_events, missing)
    with_events, there = in_one_type(patient_of_events.unique(), gathered["patient"].unique())
    without = int((~there.is_in(with_events.implode())).sum())
    if without:
        message = f"{count_noun('patient', without)} without any code left out"
        notices.append(Notice("record without codes", message, without))
    return kept, notices


def visits_of(store: Store, table: str, visit: str, date: str | None) -> pl.DataFrame | None:
    """`visit` and `date` of a table of visits, if it is there."""
    if date is None or not store.has(table) or date not in store.columns(table):
        return None

    def convert(title: str, frame: pl.DataFrame) -> pl.DataFrame:
        read, _, _ = dates_leniently(frame[date], title, date, frozenset(), ISO)
        return pl.DataFrame({"visit": identifiers(frame[visit], title, visit), "date": read})

    return gather(store, table, [visit, date], convert)


def notes_of(
    store: Store, table: str, note: str, patient: str, date: str, text: str
) -> tuple[pl.DataFrame | None, list[Notice]]:
    """The notes frame of a table of notes, if it is there; notes without text or patient are left out."""
    if not store.has(table):
        return None, []

    def convert(title: str, frame: pl.DataFrame) -> pl.DataFrame:
        read, _, bad = dates_leniently(frame[date], title, date, frozenset(), ISO)
        ids = {
            role: identifiers(frame[name], title, name)
            for role, name in (("note", note), ("patient", patient))
        }
        return pl.DataFrame({**ids, "date": read, "text": frame[text].cast(pl.String), "bad": bad})

    notes = gather(store, table, [note, patient, date, text], convert)
    if notes is None:
        return None, []
    row = pl.int_range(1, notes.height + 1, eager=True)
    empty = notes["patient"].is_null() | (notes["text"].fill_null("").str.strip_chars() == "")
    notices = [
        Notice.of_rows(kind, f"{table.upper()}: {count_noun('note', len(rows))} {what}", rows)
        for kind, what, rows in (
            ("note without text", "without text or patient left out", row.filter(empty)),
            ("unreadable date", "whose date cannot be read", row.filter(notes["bad"])),
        )
        if len(rows)
    ]
    return notes.filter(~empty).drop("bad"), notices
