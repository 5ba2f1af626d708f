"""`leeward itemsets`: the catalogue of itemsets of an index, as one private release paid from the budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from leeward.cli.options import commas, json_option, print_json, print_lines

SHOWN = 20


@click.command()
@click.argument("path", metavar="INDEX")
@click.option("--epsilon", required=True, metavar="E", help="Privacy price of the whole catalogue.")
@click.option(
    "-o", "--out", metavar="OUT", help="The release folder to write [default: print the catalogue]."
)
@click.option("--max-size", type=click.IntRange(min=1), default=2, show_default=True, metavar="N",
              help="Most items of an itemset; the sizes share epsilon.")  # fmt: skip
@click.option("--contributions", type=click.IntRange(min=1), default=10, show_default=True, metavar="N",
              help="A patient is counted in at most N itemsets of each size.")  # fmt: skip
@click.option("--threshold", type=click.IntRange(min=1), metavar="N",
              help="Noisy counts below N are not listed; public [default: noise alone is rarely listed].")  # fmt: skip
@click.option("--quasi-identifiers", metavar="NAME[,NAME…]", callback=commas,
              help="Quasi-identifiers whose values take part; their domains must be public.")  # fmt: skip
@click.option("--user", metavar="NAME", envvar="LEEWARD_USER", help="Who asks [default: the login name].")
@click.option("--ledger", metavar="URL", envvar="LEEWARD_LEDGER",
              help="Database with the budget [default: the ledger in INDEX].")  # fmt: skip
@click.option("--format", "formats", metavar="parquet,csv", callback=commas,
              help="Parquet is always written; csv adds a copy.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print the price and the first threshold; nothing is charged.")
@click.option(
    "--yes",
    is_flag=True,
    help="Pay also where next to nothing can reach the threshold, or nothing public says so.",
)
@json_option
def itemsets(path: str, out: str | None, as_json: bool, **flags: Any) -> None:
    """List which health terms of INDEX are frequent, alone and together, with noise that protects each patient.

    What may be listed is decided by the public vocabulary and by noisy counts, never by exact ones; the whole catalogue
    is paid once. Its price, and the noisy count from which a term is listed, are printed before. The same catalogue
    asked for again is the same, at no cost.

    \b
    Examples:
      leeward itemsets INDEX --epsilon 1 -o catalogue
      leeward itemsets INDEX --epsilon 1 --max-size 3 --quasi-identifiers sex --threshold 50 -o catalogue

    Exit status: 0 done; 2 bad input; 3 the budget does not pay for it; 4 verification failed (nothing is shared).
    """
    from leeward.runs.itemsets import itemsets as run

    found = run(path, out, tell=lambda text: click.echo(f"leeward: {text}", err=True), **flags)
    if as_json:
        print_json(found)
        return
    if flags["dry_run"]:
        print_lines("dry run: nothing was charged.")
        return
    listed = found["itemsets"]
    lines = [
        f"{len(listed):,} itemsets (epsilon {found['epsilon']:g} for each patient; {found['remaining']:g} left)."
    ]
    lines += [f"  {each['count']:>10,}  {' & '.join(each['items'])}" for each in listed[:SHOWN]]
    if len(listed) > SHOWN:
        lines.append("  … (--json prints all)")
    if out is not None:
        lines += [
            f"For the recipient: {Path(out) / 'share'}",
            f"Report:            {Path(out) / 'custody' / 'report.html'}",
        ]
    print_lines(*lines)
