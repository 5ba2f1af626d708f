"""The head of a ledger's log, kept apart from the ledger and compared at each opening.

A copy of the database from yesterday agrees with itself, so only something outside it can tell that it is old. Files
remember the last head that was on the disk: `ledger.head` in the index's folder, which a copy of the folder has too,
and one in each state folder (`leeward.queries.state`): the account's, and the machine's where there is one. A ledger
whose log does not contain a remembered head is refused; `leeward budget INDEX --accept-restored REASON` takes it back,
with what is remembered to have been spent. Who asks where nothing is remembered yet is told so.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from leeward.queries.ledger import tables
from leeward.queries.ledger.opening import LOGGER, Ledger
from leeward.queries.ledger.replay import LedgerInconsistent, Replay
from leeward.queries.state import state_folders, write_whole
from leeward.release.aside import alone_in

NAME = "ledger.head"


@dataclass(frozen=True)
class Head:
    """A log's end as it was seen: the hash of its first entry (which log it is), how many entries, the last hash, and
    account -> [most, spent]."""

    first: str
    entries: int
    head: str
    accounts: Mapping[str, list[int]]

    @staticmethod
    def of(known: Replay) -> Head:
        """The end of a replayed log."""
        return Head(known.first, known.entries, known.head, {a: list(s) for a, s in known.accounts.items()})


def remember(ledger: Ledger, head: Head) -> None:
    """Write a head where it is kept, unless a later one is there already. Places that cannot be written are left."""
    text = json.dumps(vars(head)).encode()
    for path in _places(ledger, head.first):
        with contextlib.suppress(OSError), alone_in(path.parent):
            before = _read(path)
            if before is None or before.first != head.first or before.entries < head.entries:
                write_whole(path, text)


def tell_first_time(ledger: Ledger, known: Replay) -> None:
    """Say where nothing was remembered of a log before, so that an older copy could not be told from the newest."""
    if not any(path.exists() for path in _of_state(known.first)):
        LOGGER.warning(
            f"{ledger.place}: asked for the first time from this account, so an older copy that was put back would not "
            f"be noticed. Its log has {known.entries} entries, the last with hash {known.head}: compare it with the "
            "hash that was kept from `leeward audit INDEX`."
        )


def compare(
    connection: sa.Connection, ledger: Ledger, family: str, heads: Sequence[Head], known: Replay
) -> None:
    """LedgerInconsistent where one of the remembered heads is not in the log."""
    for head in heads:
        if not contains(connection, family, head):
            raise LedgerInconsistent(
                f"{ledger.place}: this is an older or another copy of the ledger: an entry that was seen before "
                f"({head.entries}) is not in its log of {known.entries}. No answer was given and nothing was charged. "
                "Put the newest copy back; if it is lost, `leeward budget INDEX --accept-restored REASON` goes on with "
                "this one and keeps what is remembered to have been spent."
            )


def read_heads(ledger: Ledger, first: str) -> list[Head]:
    """The heads of this log that were kept; LedgerInconsistent for a file that cannot be read."""
    found = []
    for path in _places(ledger, first):
        try:
            head = _read(path)
        except (ValueError, TypeError, KeyError, OSError):
            raise LedgerInconsistent(
                f"{path}: the remembered head of the ledger is damaged, so an old copy could not be told from the "
                "newest. No answer was given. Run `leeward audit INDEX`; if it passes, remove this file."
            ) from None
        if head is not None and head.first == first:
            found.append(head)
    return found


def contains(connection: sa.Connection, family: str, head: Head) -> bool:
    """Whether a family's log has a remembered head."""
    log = tables.log.c
    asked = sa.select(log.hash).where(log.family == family, log.number == head.entries)
    return bool(connection.execute(asked).scalar() == head.head)


def forget(ledger: Ledger, first: str) -> None:
    """Remove the remembered heads of a log; a new one follows at once."""
    for path in _places(ledger, first):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _places(ledger: Ledger, first: str) -> list[Path]:
    beside = [] if ledger.beside is None else [ledger.beside / NAME]
    return [*beside, *_of_state(first)]


def _of_state(first: str) -> list[Path]:
    return [folder / f"{first[:32]}.json" for folder in state_folders("heads")]


def _read(path: Path) -> Head | None:
    try:
        return Head(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
