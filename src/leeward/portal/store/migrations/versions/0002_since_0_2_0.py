"""All that came after 0.2.0. Ledgers by their names in the settings: addresses with passwords go, out of indexes and
proposals, and places stay. Addresses of people go too, until the provider says that they are verified.
"""

from __future__ import annotations

import json
import logging
import secrets

import sqlalchemy as sa
from alembic import op

from leeward.portal.people import LOCAL
from leeward.portal.store import tables
from leeward.queries.ledger.engines import parse_url, place_of

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def _place(ledger: str) -> str:
    return place_of(parse_url(ledger)) if "://" in ledger else ledger


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA secure_delete=ON")  # what goes is overwritten, not only let go
    tables.add_missing(connection)
    op.execute("DROP TABLE IF EXISTS portal_counters")
    connection.execute(tables.key.insert().values(one=1, value=secrets.token_hex(32)))
    people, indexes, proposals = tables.people, tables.indexes, tables.proposals
    connection.execute(people.update().where(people.c.issuer != LOCAL).values(email=None))
    # begun, never paid
    connection.execute(tables.idempotency.delete().where(tables.idempotency.c.answers.is_(None)))
    for text in connection.scalars(sa.select(tables.journal.c.body)).all():
        entry = json.loads(text)
        if entry.get("event") == "password set" and "by" in entry:  # an administrator made the account
            maker = sa.select(people.c.id).where(people.c.id == entry["by"]).scalar_subquery()
            connection.execute(people.update().where(people.c.id == entry["person"]).values(maker=maker))
    places = set()
    for row in connection.execute(sa.select(indexes.c.id, indexes.c.ledger)).all():
        if row.ledger is not None:
            places.add(place := _place(row.ledger))
            connection.execute(indexes.update().where(indexes.c.id == row.id).values(ledger=place))
    asked = sa.select(proposals.c.id, proposals.c.body).where(proposals.c.kind == "index")
    for row in connection.execute(asked).all():
        body = row.body
        ledger = body.get("ledger")
        body["place"] = "in the index's folder" if ledger is None else _place(ledger)
        body["ledger"] = None if ledger is None else body["place"]
        connection.execute(proposals.update().where(proposals.c.id == row.id).values(body=body))
    for place in sorted(places):
        logging.getLogger("leeward.portal").warning(
            f"{place}: name this ledger in portal.toml, with its password if it has one: [ledgers] NAME = URL"
        )
