"""`leeward audit`."""

from __future__ import annotations

import click

from leeward.cli.options import json_option, print_json, print_lines


@click.command()
@click.argument("index", metavar="INDEX")
@click.option("--ledger", "url", metavar="URL", envvar="LEEWARD_LEDGER",
              help="Database with the budget [default: the ledger in INDEX].")  # fmt: skip
@click.option(
    "--expect", metavar="HASH", help="A head that an earlier audit printed: it has to be in the log."
)
@json_option
def audit(index: str, url: str | None, expect: str | None, as_json: bool) -> None:
    """Check the ledger of INDEX: its log's chain of hashes, its accounts, its caps, its stored answers.

    Keep the printed head where nobody who can write to the ledger can: a log written anew does not have it.

    \b
    Examples:
      leeward audit INDEX
      leeward audit INDEX --expect 5f2b…
      leeward audit INDEX --ledger postgresql://leeward@host/ledger --json

    Exit status: 0 everything agrees; 4 something does not.
    """
    from leeward.errors import VerificationFailed
    from leeward.queries.answer.api import audit as run

    outcome = run(index, expect=expect, ledger=url)
    if as_json:
        print_json(outcome.to_json())
    else:
        marks = {True: "passed", False: "FAILED"}
        print_lines(
            *(f"{marks[each.passed]}  {each.name}: {each.detail}" for each in outcome.checks),
            f"spent   epsilon {outcome.spent:g} of {outcome.total:g}",
            f"head    {outcome.head}",
        )
    if not outcome.passed:
        raise VerificationFailed("the ledger is inconsistent; stop querying this index.")
