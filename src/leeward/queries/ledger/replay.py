"""What the accounts must hold, replayed from the log: the log is the ledger, the tables are what it adds up to.

Every transaction that writes first reads the entries that are new since the last time, checks that each hash covers the
entry before it, and compares every account with the sum of the log. An edited account, a log that was cut or written
anew, and an older copy of the database that was put back while a process runs are refused before anything is charged.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Final

import sqlalchemy as sa

from leeward.queries.ledger import chain, tables
from leeward.queries.ledger.opening import Ledger, LedgerUnreachable


class LedgerInconsistent(LedgerUnreachable):
    """The ledger's accounts, its log and what was seen of it before do not agree; so nothing is answered."""


class LogShortened(LedgerInconsistent):
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
        """A state of its own, which later entries leave as it is."""
        accounts = {account: list(sums) for account, sums in self.accounts.items()}
        return replace(self, parents=dict(self.parents), accounts=accounts, paid=Counter(self.paid))

    def take(self, family: str, entry: chain.Entry) -> str | None:
        """Take up the next entry; what is wrong with it in words, None where nothing is."""
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
            accounts = accounts_charged(event, family, self.line(event["data_set"]))
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
        """The data set, its parent, and so on to the first of the family."""
        found: list[str] = []
        current: str | None = data_set
        while current is not None:
            found.append(current)
            current = self.parents[current]
        return found


CHARGES: Final = ("charged", "charged again")
"""Kinds of entries that take a price: from all, and (again) from one more project for an answer that all paid."""


def accounts_charged(event: Mapping[str, Any], family: str, line: Iterable[str]) -> list[str]:
    """The accounts that an entry of a charge takes its price from; `line`: its data set and the ancestors."""
    accounts = [f"data:{each}" for each in line] if event["event"] == "charged" else []
    accounts.append(account_of(family, event["user"]))
    if event.get("project") is not None:
        accounts.append(account_of(family, None, event["project"]))
    return accounts


def account_of(family: str, user: str | None = None, project: str | None = None) -> str:
    """The account of a user or of a project of a family."""
    return f"user:{family}:{user}" if project is None else f"project:{family}:{project}"


ACCOUNTS: Final = sa.select(tables.accounts).where(tables.accounts.c.family == sa.bindparam("family"))

_seen: dict[tuple[str, str], Replay] = {}
_lock = Lock()


def check(connection: sa.Connection, ledger: Ledger, family: str, entries: int, head: str) -> Replay:
    """Take up what is new in a family's log and compare it with the accounts; `entries` and `head` are those of its
    row, as this transaction sees it. LedgerInconsistent where they disagree.
    """
    with _lock:
        known = _seen.pop((ledger.key, family), Replay())
        if entries < known.entries:
            _seen[ledger.key, family] = known
            why = f"its log has {entries} entries and had {known.entries} before: an old copy was put back"
            raise LogShortened(_error_text(ledger, why), entries)
        _take_up(ledger, family, known, chain.entries_of(connection, family, known.entries), entries, head)
        accounts = connection.execute(ACCOUNTS, {"family": family})
        held = {row.account: [row.most, row.spent] for row in accounts}
        wrong = [name for name in {*held, *known.accounts} if held.get(name) != known.accounts.get(name)]
        if wrong:
            raise LedgerInconsistent(
                _error_text(ledger, f"{len(wrong)} of {len(held)} accounts differ from the log")
            )
        _seen[ledger.key, family] = known
        return known.copy()


def _take_up(
    ledger: Ledger, family: str, known: Replay, later: Iterable[chain.Entry], entries: int, head: str
) -> None:
    for entry in later:
        if fault := known.take(family, entry):
            raise LedgerInconsistent(_error_text(ledger, fault))
    if (known.entries, known.head) != (entries, head):
        raise LedgerInconsistent(
            _error_text(ledger, f"the log has {known.entries} of {entries} entries, or another last one")
        )


def entries_checked(ledger: Ledger, family: str) -> int:
    """How many entries of a family's log this process has checked."""
    with _lock:
        known = _seen.get((ledger.key, family))
        return 0 if known is None else known.entries


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
