"""Families of data sets in the ledger: membership, the lock that writers take first, and the check of accounts against
the log, which is the ledger; the tables are its totals.

Every transaction that writes first reads the entries that are new since the last time, checks that each hash covers the
entry before it, and compares every account with the sum of the log. An edited account, a log that was cut or written
anew, and an older copy of the database that was put back while a process runs are refused before anything is charged.

A copy of the database from yesterday agrees with itself, so only something outside it can tell that it is old. Files
remember the last head that was on the disk: `ledger.head` in the index's folder, which a copy of the folder has too,
and one in each state folder (`leeward.queries.state`): the account's, and the machine's where there is one. A ledger
whose log does not contain a remembered head is refused; `leeward budget INDEX --accept-restored REASON` takes it back,
with what is remembered to have been spent. Who asks where nothing is remembered yet is told so.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, Final

import sqlalchemy as sa

from leeward.queries.ledger import chain, tables
from leeward.queries.ledger.opening import (
    LOGGER,
    Ledger,
    LedgerUnreachable,
    close_engine,
    lock_row,
    reading,
    writing,
)
from leeward.queries.state import state_folders, write_whole
from leeward.release.aside import alone_in


class LedgerInconsistent(LedgerUnreachable):
    """The ledger's accounts, its log and what was seen of it before do not agree; so nothing is answered."""


class OlderCopy(LedgerInconsistent):
    """An entry that was seen before is not in the log: another copy of the ledger was put back."""


class LogShortened(OlderCopy):
    """The log has fewer entries than it had; a read that began before the last of them sees that too."""

    def __init__(self, message: str, entries: int) -> None:
        super().__init__(message)
        self.entries = entries


@dataclass
class Replay:
    """The accounts of a family as its log has them after `entries` entries, the last of which has hash `head`.

    `accounts`: account -> [most, spent] in smallest units; `paid`: the same sums for every user and project that was
    charged, with an account or without.
    """

    entries: int = 0
    head: str = chain.START
    time: str = ""
    first: str = ""
    parents: dict[str, str | None] = field(default_factory=dict)
    accounts: dict[str, list[int]] = field(default_factory=dict)
    paid: Counter[str] = field(default_factory=Counter)
    separately: bool = False
    payments: set[tuple[str, str, str]] = field(default_factory=set)
    """Project, data set and key of each question that a project paid, where projects pay separately; it only grows, and
    copies share it."""

    def copy(self) -> Replay:
        """Independent copy that later entries do not change."""
        accounts = {account: list(sums) for account, sums in self.accounts.items()}
        return replace(self, parents=dict(self.parents), accounts=accounts, paid=Counter(self.paid))

    def take(self, family: str, entry: chain.Entry) -> str | None:
        """Apply the next entry; return what is wrong with it, or None."""
        fault = chain.broken_link(entry, self.entries + 1, self.head, self.time)
        if fault is not None:
            return fault
        try:
            self._apply(family, json.loads(entry.body))
        except (ValueError, KeyError, TypeError, AttributeError):
            return f"entry {entry.number} cannot be read"
        if entry.number == 1:
            self.first = entry.hash
        self.entries, self.head, self.time = entry.number, entry.hash, max(entry.time, self.time)
        return None

    def _apply(self, family: str, event: Mapping[str, Any]) -> None:
        kind = event["event"]
        if kind == "opened":
            self.parents[event["data_set"]] = event["parent"]
            self.accounts[f"data:{event['data_set']}"] = [event["most"], 0]
            self.separately |= event.get("charge_projects_separately", False)
        elif kind == "allotted":
            account = account_of(family, event.get("for"), event.get("project"))
            self.accounts[account] = [event["most"], self.paid[account]]
        elif kind in CHARGES:
            accounts = accounts_of_charge(event, family, self.line(event["data_set"]))
            if self.separately and event.get("project") is not None:
                self.payments.add((event["project"], event["data_set"], event["key"]))
            for account in accounts:
                self.paid[account] += event["cost"]
                if account in self.accounts:
                    self.accounts[account][1] += event["cost"]
        elif kind == "restored":
            for account, (most, spent) in event["accounts"].items():
                self.accounts[account] = [most, spent]
                self.paid[account] = max(spent, self.paid[account])

    def line(self, data_set: str) -> list[str]:
        return line_of(self.parents, data_set)


def line_of(parents: Mapping[str, str | None], data_set: str) -> list[str]:
    """The data set, its parent, and so on to the first of the family."""
    line = [data_set]
    while (parent := parents[line[-1]]) is not None:
        line.append(parent)
    return line


CHARGES: Final = ("charged", "charged again")
"""Kinds of entries that take a price: from all, and (again) from one more project for an answer that all paid."""


def accounts_of_charge(event: Mapping[str, Any], family: str, line: Iterable[str]) -> list[str]:
    """The accounts that an entry of a charge takes its price from; `line`: its data set and the ancestors."""
    accounts = [f"data:{each}" for each in line] if event["event"] == "charged" else []
    return accounts + own_accounts(family, event["user"], event.get("project"))


def own_accounts(family: str, user: str | None, project: str | None) -> list[str]:
    """The accounts of a user and of a project, as far as they are named."""
    accounts = [] if user is None else [account_of(family, user)]
    return accounts if project is None else [*accounts, account_of(family, None, project)]


def account_of(family: str, user: str | None = None, project: str | None = None) -> str:
    return f"user:{family}:{user}" if project is None else f"project:{family}:{project}"


_account = tables.accounts.c
BALANCES: Final = sa.select(_account.account, _account.most, _account.spent)
ACCOUNTS: Final = BALANCES.where(_account.family == sa.bindparam("family"))

_seen: dict[tuple[str, str], Replay] = {}
_own: dict[tuple[str, str], list[chain.Entry]] = {}
"""What this process wrote last of a family's log and is not surely on the disk: it need not be read where the head
says that it is there."""
_lock = Lock()


def check(connection: sa.Connection, ledger: Ledger, family: str, entries: int, head: str) -> Replay:
    """Take up what is new in a family's log and compare it with the accounts; `entries` and `head` are those of its
    row, as this transaction sees it. LedgerInconsistent where they disagree."""
    key = ledger.key, family
    with _lock:
        known, own = _seen.pop(key, Replay()), _own.pop(key, [])
        if entries < known.entries:
            _seen[key] = known
            why = f"its log has {entries} entries and had {known.entries} before: an old copy was put back"
            raise LogShortened(_error_text(ledger, why), entries)
        fault = None
        if (known.entries, known.head) != (entries, head):
            ours = bool(own) and own[-1].hash == head and own[0].number == known.entries + 1
            for entry in own if ours else chain.entries_of(connection, family, known.entries):
                fault = fault or known.take(family, entry)
        if fault is None and (known.entries, known.head) != (entries, head):
            fault = f"the log has {known.entries} of {entries} entries, or another last one"
        if fault := fault or _other_accounts(connection, family, known):
            raise LedgerInconsistent(_error_text(ledger, fault))
        _seen[key] = known
        return known.copy()


def _other_accounts(connection: sa.Connection, family: str, known: Replay) -> str | None:
    accounts = connection.execute(ACCOUNTS, {"family": family})
    held = {row.account: [row.most, row.spent] for row in accounts}
    wrong = [name for name in {*held, *known.accounts} if held.get(name) != known.accounts.get(name)]
    return f"{len(wrong)} of {len(held)} accounts differ from the log" if wrong else None


def forget(ledger: Ledger) -> None:
    """Read the whole log again at the next check."""
    with _lock:
        for key in [key for key in _seen if key[0] == ledger.key]:
            del _seen[key]


def _error_text(ledger: Ledger, why: str) -> str:
    return (
        f"{ledger.place}: the ledger is inconsistent: {why}. No answer was given and nothing was charged. Stop "
        "querying this index; `leeward audit INDEX` lists what disagrees."
    )


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
        return Head(known.first, known.entries, known.head, {a: list(s) for a, s in known.accounts.items()})


def remember(ledger: Ledger, head: Head) -> None:
    """Write a head where it is kept, unless a later one is there already. Places that cannot be written are left."""
    text = json.dumps(vars(head)).encode()
    for path in _places(ledger, head.first):
        with contextlib.suppress(OSError), alone_in(path.parent):
            before = _read(path)
            if before is None or before.first != head.first or before.entries < head.entries:
                write_whole(path, text)


def compare(
    connection: sa.Connection, ledger: Ledger, family: str, heads: Sequence[Head], known: Replay
) -> None:
    """Raise OlderCopy if a remembered head is not in the log."""
    for head in heads:
        if not contains(connection, family, head):
            raise OlderCopy(
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


def forget_heads(ledger: Ledger, first: str) -> None:
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


SNAPSHOTS: Final = 20
"""Number of times a family's state is read again if other threads write to it meanwhile."""

_family = tables.families.alias("f")
_families_of, _sets_of = _family.c, tables.data_sets.c
# Built once, as all that every question asks: SQLAlchemy takes longer to build a statement than to run it.
FAMILY: Final = sa.select(_sets_of.family).where(_sets_of.data_set == sa.bindparam("data_set"))
# Names are short because the driver reads each statement's text character by character (decision 0016).
TERMS: Final = sa.select(_family).where(_families_of.family == sa.bindparam("family"))
LOCK: Final = TERMS.where(_families_of.moved.is_(None)).with_for_update()


def find_family(connection: sa.Connection, data_set: str) -> str | None:
    """The family of a data set, None for one that the ledger does not know."""
    return connection.scalar(FAMILY, {"data_set": data_set})


def family_of(connection: sa.Connection, ledger: Ledger, data_set: str) -> str:
    family = find_family(connection, data_set)
    if family is None:
        raise LedgerUnreachable(
            f"{ledger.place}: this ledger has no budget for the index's data set. No answer was given. "
            "An index is answered from the ledger that `leeward index` opened for it; "
            "`leeward budget INDEX --move-to URL` moves its budget."
        )
    return family


def family_terms(connection: sa.Connection, family: str) -> Any:
    return connection.execute(TERMS, {"family": family}).one()


def parents_of(connection: sa.Connection, family: str) -> dict[str, str | None]:
    """The parent of each data set of a family."""
    asked = sa.select(_sets_of.data_set, _sets_of.parent).where(_sets_of.family == family)
    return {row.data_set: row.parent for row in connection.execute(asked)}


_placed: dict[tuple[str, str], tuple[Any, list[str]]] = {}


def terms_and_line(ledger: Ledger, data_set: str) -> tuple[Any, list[str]]:
    """The row of a data set's family, and the data set with its ancestors: asked once in a process, as terms stay."""
    found = _placed.get((ledger.key, data_set))
    if found is None:
        with reading(ledger) as connection:
            family = family_of(connection, ledger, data_set)
            line = line_of(parents_of(connection, family), data_set)
            found = _placed[ledger.key, data_set] = family_terms(connection, family), line
    return found


@dataclass(frozen=True)
class Change:
    """A family locked by this transaction, and the state of its log."""

    connection: sa.Connection
    family: str
    terms: Any
    """The family's row."""
    known: Replay
    written: list[chain.Entry] = field(default_factory=list)

    def append(self, bodies: Iterable[Mapping[str, Any]]) -> None:
        """Write entries at the end of the log; once in a transaction, after the accounts were changed."""
        known = self.known
        self.written.extend(
            chain.append(self.connection, self.family, known.entries, known.head, bodies, known.time)
        )
        for entry in self.written:
            known.take(self.family, entry)


@contextlib.contextmanager
def changing(ledger: Ledger, data_set: str, *, durable: bool = True) -> Iterator[Change]:
    """A transaction on the family of a data set, locked against other writers; LedgerInconsistent, with nothing
    changed, where accounts and log disagree. What is `durable` is remembered apart."""
    family = terms_and_line(ledger, data_set)[0].family
    with writing(ledger, durable=durable, family=family) as connection:
        row = lock(connection, ledger, family)
        known = check(connection, ledger, family, row.entries, row.head)
        change = Change(connection, family, row, known)
        yield change
    with _lock:
        if not durable:
            _own[ledger.key, family] = change.written
        elif (seen := _seen.get((ledger.key, family))) is not None and seen.entries < known.entries:
            _seen[ledger.key, family] = known.copy()
    if durable:  # what was checked and written, all of it on the disk now
        remember(ledger, Head.of(known))


def remember_head(ledger: Ledger, data_set: str) -> None:
    """Remember the head of a data set's family as it is now on the disk."""
    known = state_of_log(ledger, data_set)
    if known is not None:
        remember(ledger, Head.of(known))


def check_opening(ledger: Ledger, data_set: str) -> None:
    """Compare accounts, log and the remembered heads of a data set's family; LedgerInconsistent where they disagree.
    Warns where nothing was remembered of the log before, so that an older copy could not be recognized."""
    known = _snapshot(ledger, data_set, compared=True)
    if known is not None and not any(path.exists() for path in _of_state(known.first)):
        LOGGER.warning(
            f"{ledger.place}: asked for the first time from this account, so an older copy that was put back would not "
            f"be noticed. Its log has {known.entries} entries, the last with hash {known.head}: compare it with the "
            "hash that was kept from `leeward audit INDEX`."
        )


def state_of_log(ledger: Ledger, data_set: str) -> Replay | None:
    """Totals of the log of a data set's family, checked against the accounts; None for one that moved away."""
    return _snapshot(ledger, data_set, compared=False)


def _snapshot(ledger: Ledger, data_set: str, *, compared: bool) -> Replay | None:
    """A family's checked state at one moment; None for one that has moved away, or that others are writing to."""
    with reading(ledger) as connection:
        family = family_of(connection, ledger, data_set)
    heads: list[Head] = []
    for _ in range(SNAPSHOTS):
        with _lock:  # how many entries this process has checked
            least = _seen.get((ledger.key, family), Replay()).entries
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
    """Lock the family against other writers, before anything is written; return its row."""
    row = lock_row(connection, LOCK, {"family": family})
    if row is None:
        raise error_of_move(ledger)
    return row


def error_of_move(ledger: Ledger) -> LedgerUnreachable:
    return LedgerUnreachable(
        f"{ledger.place}: the budget has moved to another ledger. No answer was given. Name it with --ledger URL."
    )
