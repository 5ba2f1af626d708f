"""Families of data sets in the ledger: membership, and the lock that writers take first."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa

from leeward.queries.ledger import chain, tables
from leeward.queries.ledger.chain import Entry
from leeward.queries.ledger.engines import BUSY_SECONDS, state_of
from leeward.queries.ledger.opening import (
    CANCELED,
    LOCKED,
    Ledger,
    LedgerUnreachable,
    close_engine,
    reading,
    writing,
)
from leeward.queries.ledger.replay import (
    Head,
    LogShortened,
    Replay,
    check,
    compare,
    entries_so_far,
    forget,
    read_heads,
    remember,
    tell_first_time,
)

SNAPSHOTS: Final = 20
"""Number of times a family's state is read again if other threads write to it meanwhile."""

_families_of, _sets_of = tables.families.c, tables.data_sets.c
# Built once, as all that every question asks: SQLAlchemy takes longer to build a statement than to run it.
FAMILY: Final = sa.select(_sets_of.family).where(_sets_of.data_set == sa.bindparam("data_set"))
TERMS: Final = sa.select(tables.families).where(_families_of.family == sa.bindparam("family"))
LOCK: Final = TERMS.where(_families_of.moved.is_(None)).with_for_update()


def find_family(connection: sa.Connection, data_set: str) -> str | None:
    """The family of a data set, None for one that the ledger does not know."""
    return connection.scalar(FAMILY, {"data_set": data_set})


def family_of(connection: sa.Connection, ledger: Ledger, data_set: str) -> str:
    family = find_family(connection, data_set)
    if family is None:
        raise unknown_data(ledger)
    return family


def family_terms(connection: sa.Connection, family: str) -> Any:
    return connection.execute(TERMS, {"family": family}).one()


def line_of(connection: sa.Connection, data_set: str) -> list[str]:
    """The data set, its parent, and so on to the first of the family."""
    line = [data_set]
    while True:
        parent = connection.scalar(sa.select(_sets_of.parent).where(_sets_of.data_set == line[-1]))
        if parent is None:
            return line
        line.append(parent)


@dataclass(frozen=True)
class Change:
    """A family locked by this transaction, and the state of its log."""

    connection: sa.Connection
    family: str
    terms: Any
    """The family's row."""
    known: Replay
    written: list[Entry] = field(default_factory=list)

    def append(self, bodies: Iterable[Mapping[str, Any]]) -> None:
        """Write entries at the end of the log; once in a transaction, after the accounts were changed."""
        known = self.known
        self.written.extend(
            chain.append(self.connection, self.family, known.entries, known.head, bodies, known.time)
        )


@contextmanager
def changing(ledger: Ledger, data_set: str, *, durable: bool = True) -> Iterator[Change]:
    """A transaction on the family of a data set: locked against other writers, its accounts checked against its log.

    LedgerInconsistent before anything is changed where they disagree. What is `durable` is remembered apart.
    """
    family = _family_to_wait_for(ledger, data_set)
    with writing(ledger, durable=durable, family=family) as connection:
        row = lock(connection, ledger, family)
        known = check(connection, ledger, family, row.entries, row.head)
        change = Change(connection, family, row, known)
        yield change
    if durable:  # what was checked and written, all of it on the disk now
        for entry in change.written:
            known.take(change.family, entry)
        remember(ledger, Head.of(known))


_families: dict[tuple[str, str], str] = {}


def _family_to_wait_for(ledger: Ledger, data_set: str) -> str:
    """The family of a data set, asked once in a process: it stays the same."""
    found = _families.get((ledger.key, data_set))
    if found is None:
        with reading(ledger) as connection:
            found = _families[ledger.key, data_set] = family_of(connection, ledger, data_set)
    return found


def remember_head(ledger: Ledger, data_set: str) -> None:
    """Remember the head of a data set's family as it is now on the disk."""
    known = state_of_log(ledger, data_set)
    if known is not None:
        remember(ledger, Head.of(known))


def check_opening(ledger: Ledger, data_set: str) -> None:
    """Compare accounts, log and the remembered heads of a data set's family; LedgerInconsistent where they disagree."""
    known = _snapshot(ledger, data_set, compared=True)
    if known is not None:
        tell_first_time(ledger, known)


def state_of_log(ledger: Ledger, data_set: str) -> Replay | None:
    """Totals of the log of a data set's family, checked against the accounts; None for one that moved away."""
    return _snapshot(ledger, data_set, compared=False)


def _snapshot(ledger: Ledger, data_set: str, *, compared: bool) -> Replay | None:
    """A family's checked state at one moment; None for one that has moved away, or that others are writing to."""
    with reading(ledger) as connection:
        family = family_of(connection, ledger, data_set)
    heads: list[Head] = []
    for _ in range(SNAPSHOTS):
        least = entries_so_far(ledger, family)
        try:
            with reading(ledger, snapshot=True) as connection:
                row = family_terms(connection, family)
                if row.moved is not None:
                    break
                known = check(connection, ledger, family, row.entries, row.head)
                if compared and not heads:
                    heads = read_heads(ledger, known.first)
                    if any(head.entries > known.entries for head in heads):
                        continue  # another process may have gone on since this read began; the next has it then
                compare(connection, ledger, family, heads, known)
                return known
        except LogShortened as error:
            if error.entries < least:
                raise
            # Another thread went on after this read began: what it checked is newer. Read again.
    return None


def close(ledger: Ledger) -> None:
    """Close every connection and forget what was read; the next opening begins anew."""
    forget(ledger)
    close_engine(ledger)


def lock(connection: sa.Connection, ledger: Ledger, family: str) -> Any:
    """Lock the family against other writers; return its row. A failed lock leaves the transaction unchanged."""
    in_turn = connection.dialect.name == "sqlite"  # whose writers have no lock but the transaction itself
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            with nullcontext() if in_turn else connection.begin_nested():
                row = connection.execute(LOCK, {"family": family}).first()
            break
        except sa.exc.DBAPIError as error:
            if state_of(error) not in {*LOCKED, CANCELED} or time.monotonic() > until:
                raise
    if row is None:
        raise error_of_move(ledger)
    return row


def unknown_data(ledger: Ledger) -> LedgerUnreachable:
    """The refusal of a ledger that does not know a data set."""
    return LedgerUnreachable(
        f"{ledger.place}: this ledger has no budget for the index's data set. No answer was given. "
        "An index is answered from the ledger that `leeward index` opened for it; "
        "`leeward budget INDEX --move-to URL` moves its budget."
    )


def error_of_move(ledger: Ledger) -> LedgerUnreachable:
    """The refusal of a ledger whose family is elsewhere."""
    return LedgerUnreachable(
        f"{ledger.place}: the budget has moved to another ledger. No answer was given. Name it with --ledger URL."
    )
