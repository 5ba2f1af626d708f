"""Going on with a restored copy of a ledger when the newest one is lost; what is remembered as spent stays spent."""

from __future__ import annotations

import sqlalchemy as sa

from leeward.errors import BadInput
from leeward.queries.ledger import tables, witness
from leeward.queries.ledger.families import changing
from leeward.queries.ledger.opening import Ledger
from leeward.queries.ledger.replay import forget


def accept_restored(ledger: Ledger, data_set: str, reason: str) -> int:
    """Take an older copy of a ledger for the ledger, for a stated reason that its log keeps.

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
            head
            for head in witness.read_heads(ledger, known.first)
            if not witness.contains(connection, change.family, head)
        ]
        if not heads:
            raise BadInput(
                "this ledger holds everything that is remembered of it; there is nothing to accept."
            )
        raised = {name: list(sums) for name, sums in known.accounts.items()}
        for head in heads:
            for name, (most, spent) in head.accounts.items():
                before = raised.get(name, [most, 0])
                raised[name] = [max(before[0], spent), max(before[1], spent)]
        for name, (most, spent) in raised.items():
            _set(connection, change.family, name, most, spent, name in known.accounts)
        lost = max(head.entries for head in heads) - known.entries
        change.append([{"event": "restored", "reason": reason, "lost": lost, "accounts": raised}])
        witness.forget(ledger, known.first)
    return lost


def _set(connection: sa.Connection, family: str, account: str, most: int, spent: int, there: bool) -> None:
    if not there:
        connection.execute(
            tables.accounts.insert().values(account=account, family=family, most=most, spent=spent)
        )
        return
    connection.execute(
        tables.accounts.update().where(tables.accounts.c.account == account).values(most=most, spent=spent)
    )
