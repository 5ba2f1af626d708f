"""The ledgers' logs and the portal's journal, a part at a time, filtered by their databases."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from leeward.errors import BadInput, LeewardError
from leeward.portal.indexes import Indexes
from leeward.portal.permissions import Viewer
from leeward.portal.store import Database, reading, tables
from leeward.portal.store.rows import fetch_all
from leeward.queries.ledger.families import family_of
from leeward.queries.ledger.tables import log as ledger_log

PLACE: Final = re.compile(r"[0-9]{0,18}|[a-z0-9]+:[0-9]{1,18}(,[a-z0-9]+:[0-9]{1,18})*")
"""Where a part begins: the number of an entry in each log, or one number for all."""


@dataclass(frozen=True)
class Wanted:
    """Which entries a person wants to see."""

    indexes: Indexes
    viewer: Viewer
    index: str = ""
    """An index's identifier, `portal`, or empty: all logs."""
    event: str = ""
    find: str = ""

    def part(self, place: str, most: int, *, newest: bool = False) -> tuple[list[dict[str, Any]], str | None]:
        """Entries after `place`, oldest first, or before it, newest first; and the place of the next part. A lead sees
        the entries of own projects."""
        if not PLACE.fullmatch(place):
            raise BadInput("`after` is a number, or what the part before has given.")
        pairs = [pair.split(":") for pair in place.split(",") if ":" in place]
        places = {log: int(number) for log, number in pairs}
        later = min if newest else max
        found = []
        for log, name, where, asked in self._logs():
            number = asked.selected_columns.number
            if place.isdecimal():
                places[log] = int(place)
            if log in places:
                asked = asked.where(number < places[log] if newest else number > places[log])
            time = ""
            for row in fetch_all(where, asked.order_by(number.desc() if newest else number).limit(most + 1)):
                time = later(time or row["time"], row["time"])  # a clock may have been set back
                found.append((time, name, row["number"], log, row))
        found.sort(key=lambda each: each[:3], reverse=newest)
        taken = found[:most]
        places |= {log: number for _, _, number, log, _ in taken}
        following = ",".join(f"{log}:{number}" for log, number in places.items())
        return [_plain(row, name) for _, name, _, _, row in taken], following if len(found) > most else None

    def _logs(self) -> Iterator[tuple[str, str, Database, sa.Select[Any]]]:
        """(identifier, name, database, question) of each log that this person may read."""
        mine = self.viewer.projects("read log")
        for row in self.indexes.rows():
            if self.index in ("", row["id"]):
                with suppress(LeewardError):
                    session = self.indexes.session(row["id"])
                    with reading(session.ledger) as connection:
                        family = family_of(connection, session.ledger, row["data_set"])
                    asked = self._filter(ledger_log, mine).where(ledger_log.c.family == family)
                    yield row["id"], row["name"], session.ledger, asked
        if mine is None and self.index in ("", "portal"):
            yield "portal", "portal", self.indexes.database, self._filter(tables.journal, mine)

    def _filter(self, table: sa.Table, mine: tuple[str, ...] | None) -> sa.Select[Any]:
        """Bodies are JSON without blanks, in which a quotation mark of a text is written out."""
        body = table.c.body
        asked = sa.select(table.c.number, table.c.time, body, table.c.hash)
        if self.event:
            asked = asked.where(body.contains(f'"event":{json.dumps(self.event)}', autoescape=True))
        if self.find:
            asked = asked.where(body.icontains(self.find, autoescape=True))
        if mine is not None:
            ours = [body.contains(f'"project":"{each}"', autoescape=True) for each in mine]
            asked = asked.where(sa.or_(sa.false(), *ours))
        return asked


def _plain(row: dict[str, Any], log: str) -> dict[str, Any]:
    try:
        body = json.loads(row["body"])
    except ValueError:
        body = {"event": "cannot be read"}
    return {**body, "log": log, **{name: row[name] for name in ("number", "time", "hash")}}
