"""The log of a family of data sets: each entry's hash covers the entry and the hash before it.

Whoever changes, removes or inserts an entry has to write every later one anew; the last hash, which `leeward audit`
prints, is the custodian's to keep elsewhere, and `leeward audit --expect HASH` finds it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from leeward.queries.ledger import tables

START: Final = "0" * 64
"""What the first entry's hash covers in place of one before it."""


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
    """SHA-256 as hex."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def link(previous: str, number: int, time: str, body: str) -> str:
    """The hash of an entry."""
    return digest("\n".join((previous, str(number), time, body)))


def append(
    connection: sa.Connection, family: str, entries: int, head: str, bodies: Iterable[Mapping[str, Any]]
) -> None:
    """Write entries after the `entries` there are, of which the last has hash `head`; the caller locked the family."""
    rows = []
    for body in bodies:
        entries, time, text = entries + 1, now(), text_of(body)
        head = link(head, entries, time, text)
        rows.append({"family": family, "number": entries, "time": time, "body": text, "hash": head})
    connection.execute(tables.log.insert(), rows)
    connection.execute(
        tables.families.update().where(tables.families.c.family == family).values(entries=entries, head=head)
    )


def entries_of(connection: sa.Connection, family: str) -> Iterator[Entry]:
    """The log of a family, oldest first."""
    log = tables.log.c
    rows = connection.execute(
        sa.select(log.number, log.time, log.body, log.hash).where(log.family == family).order_by(log.number)
    )
    for row in rows:
        yield Entry(row.number, row.time, row.body, row.hash)


def broken(entries: Iterable[Entry], count: int, head: str) -> str | None:
    """Where the chain does not hold, in words; None where it does."""
    previous, seen = START, 0
    for entry in entries:
        seen += 1
        if entry.number != seen:
            return f"entry {seen} is missing"
        if link(previous, entry.number, entry.time, entry.body) != entry.hash:
            return f"entry {seen} was changed, or one before it"
        previous = entry.hash
    if seen != count:
        return f"the log has {seen} entries of {count}"
    return None if previous == head else "the last entry is not the one that the ledger remembers"
