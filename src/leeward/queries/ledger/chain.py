"""The log of a family of data sets: each entry's hash covers the entry and the hash before it.

Whoever changes, removes or inserts an entry has to write every later one anew; the last hash, which `leeward audit`
prints, is the custodian's to keep elsewhere, and `leeward audit --expect HASH` finds it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from leeward.queries.ledger import tables

START: Final = "0" * 64
"""Previous hash that the first entry's hash covers."""

_log = tables.log.c
ENTRY: Final = tables.log.insert()
END: Final = tables.families.update().where(tables.families.c.family == sa.bindparam("changed"))
LATER: Final = (
    sa.select(_log.number, _log.time, _log.body, _log.hash)
    .where(_log.family == sa.bindparam("family"), _log.number > sa.bindparam("after"))
    .order_by(_log.number)
)

CLOCK: Final = timedelta(minutes=5)
"""Largest backward step accepted for a corrected clock."""


@dataclass(frozen=True)
class Entry:
    """An entry as it is written: its number in the family (from 1), time (UTC), body (JSON) and hash (hex)."""

    number: int
    time: str
    body: str
    hash: str


def now() -> str:
    """The time in UTC to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def text_of(value: Mapping[str, Any]) -> str:
    """One text for one value: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def link(previous: str, number: int, time: str, body: str) -> str:
    return digest("\n".join((previous, str(number), time, body)))


def append(
    connection: sa.Connection,
    family: str,
    entries: int,
    head: str,
    bodies: Iterable[Mapping[str, Any]],
    after: str = "",
) -> list[Entry]:
    """Append entries to the `entries` existing ones, the last of which has hash `head`; return them. The caller
    holds the lock of the family. No entry is dated before `after`, the time of the last one, whatever the clock
    says."""
    written = []
    for body in bodies:
        entries, time, text = entries + 1, max(now(), after), text_of(body)
        head = link(head, entries, time, text)
        written.append(Entry(entries, time, text, head))
    connection.execute(ENTRY, [{"family": family, **vars(entry)} for entry in written])
    connection.execute(END, {"changed": family, "entries": entries, "head": head})
    return written


def entries_of(connection: sa.Connection, family: str, after: int = 0) -> Iterator[Entry]:
    """The log of a family, oldest first, from the entry after number `after`."""
    for row in connection.execute(LATER, {"family": family, "after": after}):
        yield Entry(*row)


def broken_link(entry: Entry, number: int, previous: str, time: str) -> str | None:
    """Why an entry cannot follow one with hash `previous` and `time` as number `number`; None where it can."""
    if entry.number != number:
        return f"entry {number} is missing"
    if link(previous, entry.number, entry.time, entry.body) != entry.hash:
        return f"entry {number} was changed, or one before it"
    return f"entry {number} is dated before the one before it" if _falls(time, entry.time) else None


def _falls(before: str, time: str) -> bool:
    """Whether time falls by more than a clock's correction (earlier versions wrote the clock's time unadjusted)."""
    if not before or time >= before:
        return False
    try:
        return datetime.fromisoformat(before) - datetime.fromisoformat(time) > CLOCK
    except (ValueError, TypeError):
        return True


@dataclass(frozen=True)
class End:
    """How far a chain was checked: so many entries, the hash of the last one, and the latest time."""

    entries: int = 0
    head: str = START
    time: str = ""


def follow(entries: Iterable[Entry], count: int, head: str, checked: End = End()) -> tuple[End, str | None]:
    """The end of a chain of `count` entries, whose `entries` are those after the `checked` ones, and a description of
    where it is broken; None if it is intact."""
    for entry in entries:
        if fault := broken_link(entry, checked.entries + 1, checked.head, checked.time):
            return checked, fault
        checked = End(entry.number, entry.hash, max(checked.time, entry.time))
    if checked.entries != count:
        return checked, f"the log has {checked.entries} entries of {count}"
    wrong = "the last entry is not the one that the ledger remembers"
    return checked, None if checked.head == head else wrong
