"""Faults under the number that a person is told: where in the code they happened and why, never with a value."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from leeward.errors import LeewardError
from leeward.portal.store import Database, from_now, now, tables, writing
from leeward.portal.store.rows import Row, fetch_all
from leeward.queries.ledger.families import LedgerInconsistent, OlderCopy
from leeward.queries.ledger.opening import LedgerUnreachable

PACKAGE: Final = Path(__file__).parents[1]
DAYS: Final = 30
MOST: Final = 1000
"""Faults that are kept; with so many, further ones are in the log only."""

_OLDER: Final = (
    "An older copy of this index's ledger was put back, so nothing is answered from it. A custodian puts the newest "
    "copy back or, where it is lost, accepts this one with `leeward budget INDEX --accept-restored REASON`."
)
_INCONSISTENT: Final = "The ledger of this index contradicts itself. A custodian runs `leeward audit INDEX`."
_SILENT: Final = (
    "A database that is needed does not answer, so nothing was answered and nothing is lost: what was paid is not paid "
    "again. Try again later, or tell the administrator the number below."
)
REASONS: Final[Mapping[type[Exception], tuple[str, str]]] = {
    OlderCopy: ("older copy", _OLDER),
    LedgerInconsistent: ("inconsistent", _INCONSISTENT),
    LedgerUnreachable: ("unreachable", _SILENT),
    Exception: ("fault", "This is a fault of the portal. Tell its administrator the number below."),
}
"""Kind of an error -> its code in log and health, and what people are told; the first that fits."""


def reason_of(error: Exception) -> tuple[str, str]:
    return next(found for kind, found in REASONS.items() if isinstance(error, kind))


def frames_of(error: BaseException | None) -> list[str]:
    """Kinds of an error and of those before it, each with its frames in Leeward: file, line and function."""
    found = []
    while error is not None:
        found.append(type(error).__name__)
        for frame, line in traceback.walk_tb(error.__traceback__):
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE):
                found.append(f"{path.relative_to(PACKAGE)}:{line} {frame.f_code.co_name}")
        error = error.__cause__ or error.__context__
    return found


def keep(database: Database, number: str, route: str, error: Exception) -> None:
    """Keep a fault under its number, if the database answers."""
    faults = tables.faults
    row = {
        "number": number, "time": now(), "route": route, "fault": type(error).__name__, "reason": reason_of(error)[0],
        "frames": frames_of(error),
    }  # fmt: skip
    with suppress(LeewardError), writing(database, durable=False) as connection:
        connection.execute(faults.delete().where(faults.c.time < from_now(days=-DAYS)))
        if connection.execute(sa.select(sa.func.count()).select_from(faults)).scalar_one() < MOST:
            connection.execute(faults.insert().values(**row))


def newest(database: Database, number: str = "", most: int = 20) -> list[Row]:
    """The newest faults, or the one of a number."""
    faults = tables.faults
    asked = sa.select(faults).order_by(faults.c.time.desc()).limit(most)
    return fetch_all(database, asked.where(faults.c.number == number.strip()) if number else asked)
