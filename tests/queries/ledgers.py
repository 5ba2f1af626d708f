"""Paying from ledgers, for the tests of this folder."""

from __future__ import annotations

import uuid
from pathlib import Path

import sqlalchemy as sa
from tests.queries.made import question

from leeward.queries.answer.charged_query import answer_all
from leeward.queries.answer.plan import open_session
from leeward.queries.ledger import families, spending
from leeward.queries.ledger.chain import digest
from leeward.queries.ledger.opening import Ledger
from leeward.queries.ledger.spending import Charge
from leeward.queries.privacy.accounting import micro


def fresh_database(server: str) -> str:
    name = f"ledger_{uuid.uuid4().hex}"
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    return sa.make_url(server).set(database=name).render_as_string(hide_password=False)


def charge(text: str, epsilon: float = 0.5) -> Charge:
    return Charge(key=digest(text), question=text, epsilon=micro(epsilon))


def pay(ledger: Ledger, data_set: str, text: str, epsilon: float = 0.5, user: str = "ann") -> int:
    (paid,) = spending.reserve(ledger, data_set, user, [charge(text, epsilon)])
    if paid.payload is None:
        spending.store(ledger, data_set, {paid.key: f"answer to {text}"})
    return paid.cost


def left(ledger: Ledger, data_set: str = "all", user: str = "ann") -> float:
    return spending.left(ledger, data_set, user).user / 1e6


def ask(folder: Path, text: str = "chills") -> float:
    """What is left after a question of epsilon 1 to the index in `folder`."""
    session = open_session(folder)
    try:
        (answer,) = answer_all(session, [question(text, 1)], "ann")
    finally:
        families.close(session.ledger)
    return answer.remaining / 1e6
