"""`leeward compare`."""

from __future__ import annotations

import click

from leeward.cli.options import json_option, print_json, print_lines


@click.command()
@click.argument("outs", metavar="OUT1 OUT2 …", nargs=-1, required=True)
@click.option("--plan", metavar="PLAN.yaml", help="The lines to measure, and the threshold.")
@click.option("-o", "--out", required=True, metavar="FOLDER", help="For the custodian; must not exist yet.")
@json_option
def compare(outs: tuple[str, ...], plan: str | None, out: str, as_json: bool) -> None:
    """Compare finished releases of one source: risk against what each keeps of a plan, on the page of explore.

    Each release is verified again, against its source.

    \b
    Example:
      leeward compare release-1 release-2 --plan plan.yaml -o compared
    """
    from leeward.cli.explore import lines_of
    from leeward.runs.compare import compare as run

    found = run(outs, out, plan=plan)
    if as_json:
        print_json(
            {"folder": str(found.folder), "lines": list(found.lines), "points": found.points.to_dicts()}
        )
    else:
        print_lines(*lines_of(found))
