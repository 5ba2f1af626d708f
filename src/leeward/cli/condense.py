"""`leeward condense` and `leeward synth registry`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.flags import parameter_options
from leeward.cli.options import run_options, with_table
from leeward.cli.running import run_and_tell
from leeward.methods.condensation.parameters import Condensation


@click.command()
@click.argument("path", metavar="TABLE")
@parameter_options(Condensation)
@with_table
@run_options
def condense(source: Any, **flags: Any) -> None:
    """Release the TABLE of patients as synthetic rows that keep the recipient's regression models.

    Groups of at least K similar patients are replaced by as many synthetic ones with the group's means and covariances.

    \b
    Examples:
      leeward condense registry.csv --k 100 --plan plan.yaml -o release
      leeward condense registry.csv --k 50 --strata VitalStat --time SurvInterval --drop id -o release
      leeward condense registry.csv --k 100 --plan plan.yaml --algorithm auto --coarsen-time -o release

    TABLE is a CSV, TSV, Parquet, .xlsx, SAS, Stata or SPSS file, or a .zip of one, one row per patient. Exit status: 0
    done; 2 bad input; 3 fewer than K patients; 4 verification failed. In the last three cases nothing is written.
    """
    run_and_tell("condensation", source, **flags)


@click.command()
@click.option(
    "--patients", type=click.IntRange(min=1), metavar="N", help="Rows [default: the paper's number of cases]."
)
@click.option("-o", "--out", required=True, metavar="FILE", help="A .parquet, .csv or .csv.gz file.")
@click.option(
    "--site", type=click.Choice(["colon", "lung"]), default="lung", show_default=True, help="Tumour."
)
@click.option(
    "--variables",
    type=click.IntRange(2, 13),
    default=9,
    show_default=True,
    help="Number of columns; the first nine are those of the paper.",
)
@click.option("--seed", type=int, metavar="N", help="The same seed gives the same file.")
def registry(patients: int | None, out: str, site: str, variables: int, seed: int | None) -> None:
    """Write a made-up cancer registry with the nine variables of Gal et al. 2014, and up to four more.

    \b
    Examples:
      leeward synth registry --site colon -o colon.csv
      leeward synth registry --patients 430000 --variables 13 -o registry.parquet
    """

    from leeward.paths import require_new
    from leeward.synthetic.registry import write_registry

    require_new(out)
    rows = write_registry(out, patients, site, variables, seed)
    click.echo(f"{out}: {rows:,} patients, {variables} variables")
