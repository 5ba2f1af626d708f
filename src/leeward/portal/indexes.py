"""Indexes that the portal answers from: opened once, and only those whose ledger gives nothing by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.portal.settings import Settings, check_private
from leeward.portal.store import Database, Row, fetch_all, fetch_one, reading, tables
from leeward.queries.answer.plan import IndexSession, open_session
from leeward.queries.ledger import budgets, spending
from leeward.queries.privacy.accounting import to_epsilon


class Unknown(BadInput):
    """Nothing of this name exists or is visible to the viewer; both get the same message."""

    def __str__(self) -> str:
        return "there is nothing at this address."


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


class Indexes:
    """The registered indexes, opened when first asked for and kept open."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database, self.settings = database, settings
        self._open: dict[str, IndexSession] = {}
        self._lock = Lock()

    def rows(self) -> list[Row]:
        """Every registered index, by name."""
        with reading(self.database) as connection:
            return fetch_all(connection, sa.select(tables.indexes).order_by(tables.indexes.c.name))

    def row(self, index: str) -> Row:
        """A registered index; Unknown for another."""
        with reading(self.database) as connection:
            found = fetch_one(connection, sa.select(tables.indexes).where(tables.indexes.c.id == index))
        if found is None:
            raise Unknown
        return found

    def session(self, index: str) -> IndexSession:
        """An index with its ledger; LedgerUnreachable where it cannot be asked."""
        with self._lock:
            found = self._open.get(index)
        if found is None:
            row = self.row(index)
            found = open_for_portal(Path(row["folder"]), row["ledger"])
            if found.index.meta.id != row["data_set"]:
                raise BadInput("the index in this folder is another one than the one that was confirmed.")
            with self._lock:
                self._open[index] = found
        return found

    def balances(self, project: str) -> list[tuple[Row, Balance]]:
        """The indexes that a project was allotted something of, with what is left."""
        with reading(self.database) as connection:
            asked = (
                sa.select(tables.indexes, tables.allotments.c.ends)
                .join(tables.allotments, tables.allotments.c.index == tables.indexes.c.id)
                .where(tables.allotments.c.project == project)
                .order_by(tables.indexes.c.name)
            )
            rows = fetch_all(connection, asked)
        return [(row, self.balance(row["id"], project, row["ends"])) for row in rows]

    def balance(self, index: str, project: str, ends: str) -> Balance:
        """What a project has left of an index."""
        session = self.session(index)
        data_set = session.index.meta.id
        allotted = [
            each
            for each in budgets.allotments(session.ledger, data_set)
            if each.project and each.user == project
        ]
        most = to_epsilon(allotted[0].most) if allotted else 0.0
        left = to_epsilon(spending.left(session.ledger, data_set, None, project).user)
        return Balance(most, left, ends)


def open_for_portal(folder: Path, ledger: str | None) -> IndexSession:
    """Open an index for the portal. BadInput where others can read its files, or its ledger gives to everybody."""
    check_private(folder)
    session = open_session(folder, ledger)
    if session.terms.default_allotment != "none":
        raise BadInput(
            "the ledger of this index lets a name without an allotment spend (default_allotment: all); the portal "
            "opens only those that do not."
        )
    return session


def public_facts(session: IndexSession) -> Mapping[str, Any]:
    """What is public about an index."""
    meta, terms = session.index.meta, session.terms
    return {
        "row": meta.row,
        "vocabulary": meta.vocabulary,
        "vocabulary_public": meta.vocabulary_public,
        "max_rows_per_patient": meta.max_rows_per_patient,
        "synthetic": meta.synthetic,
        "unit": terms.unit,
        "threshold": terms.threshold,
        "accounting": terms.accounting,
        "delta": terms.delta,
        "charge_projects_separately": terms.charge_projects_separately,
        "qids": [
            {"name": qid.name, "kind": qid.kind, "domain": None if qid.domain is None else list(qid.domain)}
            for qid in meta.qids
        ],
    }
