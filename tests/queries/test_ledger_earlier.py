"""A ledger as the version of schema 0002 left it: what was paid then is answered now, at no cost.

Who changes the form of a question has to find answers by the old one too."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.queries.made import five_notes, question, session_of

from leeward.queries.answer.charged_query import answer_all
from leeward.queries.answer.plan import open_session
from leeward.queries.ledger import auditing, families

DUMP = Path(__file__).parent / "earlier" / "ledger-0002.sql"
PAID = (
    (question("fever", 0.5), (9,)),
    (question("sore throat & fever", 0.5, when="2009-04..2009-06", zip="1230*"), (8,)),
    (
        question("fever & headache", 0.25, by="age", age="0..20"),
        (5, 2, -7, -4, 4, 0, -7, -46, -5, 58, 0, 21, -10, 1, -14, 11, -34, -28, 1, 8, 5),
    ),
    (question("chills", 0.5, gender="m"), (-3,)),
)


def earlier_index(folder: Path) -> Path:
    """An index of today, with the ledger that its data had then."""
    families.close(session_of(five_notes(), folder).ledger)
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.head"):
        (folder / name).unlink(missing_ok=True)
    with sqlite3.connect(folder / "ledger.db") as connection:
        connection.executescript(DUMP.read_text(encoding="utf-8"))
    return folder


def test_what_was_paid_is_answered_as_it_was(tmp_path: Path) -> None:
    session = open_session(earlier_index(tmp_path / "index"))
    found = answer_all(session, [asked for asked, _ in PAID], "bob")
    assert [(answer.values, answer.cost) for answer in found] == [(values, 0) for _, values in PAID]
    assert found[0].remaining == 3_250_000
    assert auditing.audit(session.ledger, session.index.meta.id).passed
