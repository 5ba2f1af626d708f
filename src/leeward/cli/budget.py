"""`leeward budget`."""

from __future__ import annotations

import click

from leeward.cli.options import json_option, print_json, print_lines


@click.command()
@click.argument("index", metavar="INDEX")
@click.option("--allot", metavar="NAME=E", multiple=True,
              help="Let a user spend at most E, below the cap of all. Repeatable.")  # fmt: skip
@click.option("--allot-project", metavar="NAME=E", multiple=True,
              help="Let a project spend at most E, whoever asks for it. Repeatable.")  # fmt: skip
@click.option("--accept-restored", metavar="REASON",
              help="Go on with an older copy of the ledger, because the newest is lost; what is remembered as spent "
              "stays spent. REASON is kept in the log.")  # fmt: skip
@click.option(
    "--move-to", metavar="URL", help="Move the budget, with all that was spent, from INDEX to a database."
)
@click.option("--ledger", "url", metavar="URL", envvar="LEEWARD_LEDGER",
              help="Database with the budget [default: the ledger in INDEX].")  # fmt: skip
@json_option
def budget(index: str, allot: tuple[str, ...], allot_project: tuple[str, ...], accept_restored: str | None,
           move_to: str | None, url: str | None, as_json: bool) -> None:  # fmt: skip
    """What may be spent on INDEX and what was; allotments of users; the move to another ledger.

    A budget never refills. An allotment may be changed, never below what was spent. Who has none spends nothing, unless
    the index was made with --default-allotment all.

    \b
    Examples:
      leeward budget INDEX
      leeward budget INDEX --allot ann=1 --allot bob=0.5
      leeward budget INDEX --move-to postgresql://leeward@host/ledger
    """
    from leeward.queries.answer.api import budget as run

    found = run(
        index,
        allot=dict(_pair(text) for text in allot),
        allot_project=dict(_pair(text) for text in allot_project),
        accept_restored=accept_restored,
        move_to=move_to,
        ledger=url,
    )
    if as_json:
        print_json(found)
        return
    at = "" if found["delta"] is None else f" (zCDP, at delta {found['delta']:g})"
    print_lines(
        f"{found['ledger']}",
        f"  epsilon {found['spent']:g} of {found['total']:g} spent{at}, for each {found['unit']}; "
        f"one more answer may cost {found['remaining']:g}",
        *(
            f"  {each.get('user') or 'project ' + each['project']}: {each['left']:g} left of {each['most']:g}"
            for each in found["allotments"]
        ),
    )


def _pair(text: str) -> tuple[str, str]:
    from leeward.errors import BadInput

    user, equals, epsilon = text.rpartition("=")
    if not equals:
        raise BadInput(f"--allot takes NAME=E, for example ann=0.5; got {text}.")
    return user, epsilon
