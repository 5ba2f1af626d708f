"""Indexes that the portal answers from: opened once, and only those whose ledger gives nothing by default."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.portal.models import Index as PublicIndex
from leeward.portal.settings import Settings, check_private
from leeward.portal.store import Database, tables
from leeward.portal.store.rows import Row, fetch_all, row_of
from leeward.portal.terms import example_of
from leeward.queries.answer.plan import IndexSession, open_session
from leeward.queries.ledger import budgets, spending
from leeward.queries.privacy.accounting import MICRO, Budget, spent_epsilon, to_epsilon


def child_folder(folder: Path, name: str) -> Path:
    """The folder `name` in `folder`: one step down, no link. BadInput for anything else."""
    if not name or name in {".", ".."} or "/" in name or "\\" in name or "\x00" in name:
        raise BadInput("name a folder by its last part alone.")
    path = folder / name
    if path.is_symlink() or not path.is_dir():
        raise BadInput(f"there is no folder {name!r} among those that may be proposed.")
    return path


@dataclass(frozen=True)
class Balance:
    """A project's remaining budget on an index, and the spending of all together, in ε."""

    most: float
    left: float
    ends: str
    most_an_answer: float | None


class Indexes:
    """The registered indexes, opened when first asked for and kept open."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database, self.settings = database, settings
        self._open: dict[str, IndexSession] = {}
        self._lock = Lock()

    def rows(self) -> list[Row]:
        """Every registered index, by name."""
        return fetch_all(self.database, sa.select(tables.indexes).order_by(tables.indexes.c.name))

    def row(self, index: str) -> Row:
        """A registered index; Unknown for another."""
        return row_of(self.database, tables.indexes, index)

    def session(self, index: str) -> IndexSession:
        """An index with its ledger; LedgerUnreachable where it cannot be asked."""
        with self._lock:
            found = self._open.get(index)
        if found is None:
            row = self.row(index)
            found = self.open(Path(row["folder"]), row["ledger"])
            if found.index.meta.id != row["data_set"]:
                raise BadInput("the index in this folder is another one than the one that was confirmed.")
            with self._lock:
                self._open[index] = found
        return found

    def open(self, folder: Path, ledger: str | None) -> IndexSession:
        """An index with the ledger of a name (None: the one in its folder). BadInput where others can read its files,
        or its ledger gives to everybody."""
        check_private(folder)
        session = open_session(folder, None if ledger is None else self.settings.ledger(ledger))
        if session.terms.default_allotment != "none":
            raise BadInput(
                "the ledger of this index lets a name without an allotment spend (default_allotment: all); the portal "
                "opens only those that do not."
            )
        return session

    def balances(self, project: str) -> list[tuple[Row, Balance]]:
        """The indexes that a project was allotted something of, with what is left."""
        asked = (
            sa.select(tables.indexes, tables.allotments.c.ends, tables.allotments.c.most_an_answer)
            .join(tables.allotments, tables.allotments.c.index == tables.indexes.c.id)
            .where(tables.allotments.c.project == project)
            .order_by(tables.indexes.c.name)
        )
        return [(row, self._balance(row, project)) for row in fetch_all(self.database, asked)]

    def paid(self, index: str, project: str) -> int:
        """What a project paid for an index, in micro-ε at the budget's δ, rounded up."""
        session = self.session(index)
        terms = session.terms
        spent = sum(each.spent for each in _allotments(session, project))
        budget = Budget(epsilon=terms.total, accounting=terms.accounting, delta=terms.delta)
        return math.ceil(round(spent_epsilon(spent, budget) * MICRO, 3))

    def _balance(self, row: Row, project: str) -> Balance:
        session = self.session(row["id"])
        most = sum(each.most for each in _allotments(session, project))
        left = spending.left(session.ledger, session.index.meta.id, None, project).user
        ceiling = None if row["most_an_answer"] is None else to_epsilon(row["most_an_answer"])
        return Balance(to_epsilon(most), to_epsilon(left), row["ends"], ceiling)


def _allotments(session: IndexSession, project: str) -> list[budgets.Allotment]:
    every = budgets.allotments(session.ledger, session.index.meta.id)
    return [each for each in every if each.project and each.user == project]


def public_facts(session: IndexSession) -> PublicIndex:
    """What the model names of an index and its terms, and no more."""
    example = {"example": example_of(session.index.terms)}
    return PublicIndex.model_validate({**vars(session.index.meta), **vars(session.terms), **example})
