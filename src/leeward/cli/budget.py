"""`leeward budget`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.options import json_option, print_json, print_lines


@click.command()
@click.argument("index", metavar="INDEX")
@click.option("--allot", metavar="NAME=E", multiple=True,
              help="Let a user spend at most E, below the cap of all. Repeatable.")  # fmt: skip
@click.option(
    "--move-to", metavar="URL", help="Move the budget, with all that was spent, from INDEX to a database."
)
@click.option("--ledger", "url", metavar="URL", envvar="LEEWARD_LEDGER",
              help="Database with the budget [default: the ledger in INDEX].")  # fmt: skip
@json_option
def budget(index: str, allot: tuple[str, ...], move_to: str | None, url: str | None, as_json: bool) -> None:
    """What may be spent on INDEX and what was; allotments of users; the move to another ledger.

    A budget never refills. An allotment may be changed, never below what its user has spent.

    \b
    Examples:
      leeward budget INDEX
      leeward budget INDEX --allot ann=1 --allot bob=0.5
      leeward budget INDEX --move-to postgresql://leeward@host/ledger
    """
    from leeward.queries import ledger as books
    from leeward.queries.answer.charged_query import open_desk
    from leeward.queries.index.counts import Index
    from leeward.queries.privacy.accounting import micro, shown

    if move_to is not None:
        books.move(books.open_ledger(url or index), books.make_ledger(move_to), Index.open(index).meta.id)
        url = move_to
    desk = open_desk(index, url)
    data_set = desk.index.meta.id
    for user, epsilon in [_pair(text) for text in allot]:
        books.allot(desk.ledger, data_set, user, micro(epsilon, "allot"))
    left = books.left(desk.ledger, data_set, None)
    users = [
        {"user": each.user, "most": shown(each.most), "left": shown(each.left)}
        for each in books.allotments(desk.ledger, data_set)
    ]
    terms = desk.terms
    found: dict[str, Any] = {
        "ledger": desk.ledger.place,
        "unit": terms.unit,
        "accounting": terms.accounting,
        "delta": terms.delta,
        "total": shown(terms.total),
        "spent": left.spent_epsilon,
        "remaining": shown(left.anybody),
        "threshold": terms.threshold,
        "allotments": users,
    }
    if as_json:
        print_json(found)
        return
    at = "" if terms.delta is None else f" (zCDP, at delta {terms.delta:g})"
    print_lines(
        f"{found['ledger']}",
        f"  epsilon {found['spent']:g} of {found['total']:g} spent{at}, for each {terms.unit}; "
        f"one more answer may cost {found['remaining']:g}",
        *(f"  {each['user']}: {each['left']:g} left of {each['most']:g}" for each in users),
    )


def _pair(text: str) -> tuple[str, str]:
    from leeward.errors import BadInput

    user, equals, epsilon = text.rpartition("=")
    if not equals:
        raise BadInput(f"--allot takes NAME=E, for example ann=0.5; got {text}.")
    return user, epsilon
