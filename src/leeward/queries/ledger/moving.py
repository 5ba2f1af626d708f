"""Move a family of data sets from an index's own ledger to a database: what was spent goes along, nothing refills.

The old ledger is closed first and says where the family went; then everything is copied in one transaction. Dying in
between leaves a closed ledger, and the same move again finishes it: until it has arrived nothing can be spent in the
new place, so the copy is whole. Once it has arrived it is never made again.

A restored copy can be continued when the newest one is lost; what is remembered as spent stays spent.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.queries.ledger import chain, tables
from leeward.queries.ledger.families import (
    changing,
    contains,
    family_of,
    find_family,
    forget,
    forget_heads,
    line_of,
    lock,
    read_heads,
)
from leeward.queries.ledger.opening import Ledger, LedgerUnreachable, reading, writing

OF_A_FAMILY = (tables.data_sets, tables.accounts, tables.answers, tables.log)


def move(old: Ledger, new: Ledger, data_set: str) -> None:
    """Move the family of `data_set` from `old` to `new`, whose schema must be there. BadInput if it went elsewhere."""
    family = _close(old, new, data_set)
    with reading(old, snapshot=True) as connection:
        row = connection.execute(sa.select(tables.families).where(tables.families.c.family == family)).one()
        copies = {
            table.name: [dict(each) for each in connection.execute(_of(table, family)).mappings()]
            for table in OF_A_FAMILY
        }
    with writing(new) as connection:
        there = find_family(connection, data_set) is not None
        if not there and row.arrived:
            raise LedgerUnreachable(
                f"{new.place}: the budget had arrived here and is gone. It is not made again from an old copy, which "
                "does not know what was spent since; restore the database."
            )
        if not there:
            values = dict(row._mapping) | {"moved": None, "arrived": True}
            connection.execute(tables.families.insert().values(**values))
            parents = {each["data_set"]: each["parent"] for each in copies["data_sets"]}
            copies["data_sets"].sort(key=lambda each: len(line_of(parents, each["data_set"])))
            for table in OF_A_FAMILY:
                for each in copies[table.name]:
                    connection.execute(table.insert().values(**each))
    with writing(old) as connection:
        connection.execute(
            tables.families.update().where(tables.families.c.family == family).values(arrived=True)
        )


def _close(old: Ledger, new: Ledger, data_set: str) -> str:
    """Close the family in the old ledger: from now on nothing is spent or stored there."""
    families = tables.families.c
    with writing(old) as connection:
        family = family_of(connection, old, data_set)
        moved = connection.execute(sa.select(families.moved).where(families.family == family)).scalar()
        if moved is not None and moved != new.place:
            raise BadInput(f"{old.place}: the budget has moved to {moved} already; move it on from there.")
        if moved is None:
            row = lock(connection, old, family)
            chain.append(connection, family, row.entries, row.head, [{"event": "moved", "to": new.place}])
            connection.execute(
                tables.families.update()
                .where(families.family == family)
                .values(moved=new.place, arrived=False)
            )
    return family


def _of(table: sa.Table, family: str) -> sa.Select[Any]:
    if table is tables.answers:
        inside = sa.select(tables.data_sets.c.data_set).where(tables.data_sets.c.family == family)
        return sa.select(table).where(table.c.data_set.in_(inside))
    return sa.select(table).where(table.c.family == family)


def accept_restored(ledger: Ledger, data_set: str, reason: str) -> int:
    """Continue with an older copy of a ledger, for a stated reason that its log keeps.

    Each account is raised to what the remembered heads say was spent; answers that were paid after the copy was made
    are lost, and asking them again is charged again. Returns how many entries of the log were lost. BadInput where no
    reason is given, or nothing is missing.
    """
    if not reason.strip():
        raise BadInput("`--accept-restored` needs a reason; it is kept in the log.")
    forget(ledger)
    with changing(ledger, data_set) as change:
        connection, known = change.connection, change.known
        heads = [
            head for head in read_heads(ledger, known.first) if not contains(connection, change.family, head)
        ]
        if not heads:
            raise BadInput(
                "this ledger holds everything that is remembered of it; there is nothing to accept."
            )
        raised = known.copy().accounts
        for head in heads:
            for name, (most, spent) in head.accounts.items():
                before = raised.get(name, [most, 0])
                raised[name] = [max(before[0], spent), max(before[1], spent)]
        accounts = tables.accounts
        for name, (most, spent) in raised.items():
            held = {"most": most, "spent": spent}
            if name in known.accounts:
                connection.execute(accounts.update().where(accounts.c.account == name).values(held))
            else:
                connection.execute(accounts.insert().values(account=name, family=change.family, **held))
        lost = max(head.entries for head in heads) - known.entries
        change.append([{"event": "restored", "reason": reason, "lost": lost, "accounts": raised}])
        forget_heads(ledger, known.first)
    return lost
