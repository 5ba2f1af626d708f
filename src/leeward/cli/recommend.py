"""`leeward recommend`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.options import json_option, print_json, print_lines, schema_option


def _schema() -> dict[str, Any]:
    from leeward.advise.plan import plan_schema

    return plan_schema()


@click.command()
@click.argument("plan_file", metavar="PLAN.yaml")
@click.option(
    "-o", "--out", metavar="FOLDER", help="Write the advice and specs that run; must not exist yet."
)
@click.option("--sample", type=click.IntRange(min=10), default=100_000, show_default=True, metavar="N",
              help="Most patients that a spec is tried on.")  # fmt: skip
@click.option("--why", metavar="METHOD", help="Print the reasons for one method.")
@json_option
@schema_option("plan", _schema)
def recommend(plan_file: str, out: str | None, sample: int, why: str | None, as_json: bool) -> None:
    """Advise on method, k, m and epsilon for the data, recipient and lines of PLAN.yaml. For the custodian only.

    Rules choose, each with its reason. Every spec that is handed out was run on the data (or a sample), verified and
    measured; what was not measured is "with care" at best. `leeward explore` measures more.

    \b
    A plan:
      source:    {path: events.parquet, columns: {patient: pid, code: icd, age: age}}
      recipient: {who: named researchers, controls: [contract], knows: {codes: 2, in_study: true}}
      threshold: 0.1
      plan:
        - counts: {of: "hierarchy:1", within: "10 %", from: 50}
        - query:  {questions: 20, within: "20 patients"}

    \b
    Examples:
      leeward recommend plan.yaml
      leeward recommend plan.yaml --why disassociation
      leeward recommend plan.yaml -o advice
    """
    from leeward.advise.wording import lines_of, why_lines
    from leeward.runs.recommend import recommend as advise
    from leeward.runs.recommend import write_specs

    found = advise(None, plan_file, sample=sample)
    files = [] if out is None else write_specs(found, out)
    if as_json:
        print_json(found.to_json())
    elif why is not None:
        print_lines(*why_lines(found, why))
    else:
        print_lines(*lines_of(found, [str(file) for file in files]))
