"""A release as tables of the OMOP CDM: `leeward omop`."""

from __future__ import annotations

import click

from leeward.cli.options import flag, json_option, print_result


@click.command()
@click.argument("release", metavar="RELEASE")
@flag("-o --out", "CDM", "The folder of tables to write; must not exist.", required=True)
@flag("--format kind", None, "Of the files.", type=click.Choice(["csv", "parquet"]), default="csv")
@json_option
def omop(release: str, out: str, kind: str, as_json: bool) -> None:
    """Write RELEASE, by visits, trajectories, censoring or constraints, as tables of the OMOP CDM 5.4.

    Dates are artificial, and CDM_SOURCE and METADATA say so. A concept is given where the CONCEPT_ANCESTOR that was
    added (`leeward vocabulary add omop`) has it, else 0, and the released label as source value. The tables are checked
    before they are handed over.

    \b
    Examples:
      leeward omop constrained/share -o cdm
      leeward omop constrained/share --format parquet -o cdm --json

    Exit status: 0 done; 2 bad input, or a release of another method; 4 a rule fails (nothing is written).
    """
    from leeward.runs.omop import omop as write

    rules = write(release, out, format=kind)
    failed = [each for each in rules if each["failed"]]
    lines = [f"OMOP tables: {out}. {len(rules)} rules checked, {len(failed)} fail as expected."]
    lines += [
        f"  {each['table']}.{each['field']} {each['rule']}: {each['failed']:,} rows; {each['expected']}"
        for each in failed
    ]
    print_result(as_json, {"out": out, "rules": rules}, lines)
