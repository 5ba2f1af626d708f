"""`leeward trajectories`, and `leeward synth trajectories`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.options import commas, policy_option, run_options, with_source
from leeward.cli.running import run_and_tell


def numbers(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[float, ...]:
    """`0.5,0.5` as numbers."""
    try:
        return tuple(float(part) for part in value.split(",")) if value else ()
    except ValueError:
        raise click.BadParameter("numbers between commas, such as 0.5,0.5.", context, parameter) from None


@click.command()
@click.argument("path", metavar="EVENTS")
@click.option("--k", type=int, required=True, help="Fewest records that look alike, at least 2.")
@click.option(
    "--joining",
    type=click.Choice(["normalised", "size", "thesis"]),
    help="How a group chooses its next record [default: normalised, which loses least].",
)
@click.option(
    "--weights", metavar="CODES,AGES", callback=numbers, help="Which to keep finer; sum 1 [default: 0.5,0.5]."
)
@click.option(
    "--hierarchy", metavar="icd9|icd10|FILE.csv", help="Of the codes [default: the cohort's vocabulary]."
)
@click.option("--codes", metavar="CODE[,CODE…]", callback=commas, help="The list that the hierarchy spans.")
@click.option("--ages", metavar="0-127|1-128|hipaa|FILE.csv", help="Hierarchy of ages [default: 0-127].")
@click.option(
    "--odd-ages",
    type=click.Choice(["refuse", "leave out"]),
    help="Rows without a usable age [default: refuse, naming them].",
)
@click.option("--improve", is_flag=True, default=None, help="Local search after clustering: less is lost.")
@click.option("--improve-rounds", type=int, metavar="N", help="Most rounds of it [default: 6].")
@click.option("--improve-seconds", type=float, metavar="S", help="Most seconds of it [default: 120].")
@click.option(
    "--partition", type=int, metavar="N", help="Most records clustered at once; 0: all [default: 65000]."
)
@click.option("--payload", metavar="COL[,COL…]", callback=commas, help="Columns that ride along unprotected.")
@click.option("--sensitive", metavar="CODE[,CODE…]", callback=commas, help="Codes that must not be told.")
@click.option("--sensitive-column", metavar="COL", help="A payload column to keep diverse.")
@click.option("--diversity", type=int, metavar="L", help="A sensitive value is told of at most 1 in L.")
@click.option("--widest-age", type=int, metavar="YEARS", help="Publish no wider age; suppress instead.")
@policy_option
@with_source
@run_options
def trajectories(source: Any, **flags: Any) -> None:
    """Release the codes in EVENTS in order, with the age at each.

    Whoever knows all of a patient's codes and ages finds at least K records that look alike. Codes and ages
    are generalized along hierarchies; what resembles nothing is suppressed.

    \b
    Examples:
      leeward trajectories events.csv --patient pid --code icd --age age --vocabulary icd9 --k 5 -o release
      leeward trajectories events.parquet --age age --hierarchy codes.csv --ages hipaa --k 5 --improve -o release
      leeward trajectories events.csv --age age --vocabulary icd9 --k 5 --weights 0.8,0.2 \\
          --odd-ages "leave out" -o release

    EVENTS is a CSV, TSV or Parquet file, a folder or a glob. Exit status: 0 done; 2 bad input; 3 the
    guarantee cannot be met on this data; 4 verification failed. In the last three cases nothing is written.
    """
    run_and_tell("trajectories", source, **flags)


@click.command()
@click.option("--patients", type=click.IntRange(min=1), metavar="N", help="Default: as many as the thesis.")
@click.option("-o", "--out", required=True, metavar="FILE", help="A .parquet or .csv file.")
@click.option(
    "--shape",
    type=click.Choice(["d50-pop", "d4-pop", "d4-smp"]),
    default="d50-pop",
    show_default=True,
    help="Which set of Table 3 of Tamersoy (2011).",
)
@click.option("--seed", type=int, metavar="N", help="The same seed gives the same file.")
def synth(patients: int | None, out: str, shape: str, seed: int | None) -> None:
    """Write patients' (code, age) trajectories, as a file with the columns patient, code and age.

    \b
    Examples:
      leeward synth trajectories -o events.parquet
      leeward synth trajectories --shape d4-smp --seed 1 -o small.csv
      leeward synth trajectories --patients 1000000 -o million.parquet
    """
    from pathlib import Path

    from leeward.errors import BadInput
    from leeward.runs.protect import watched
    from leeward.synthetic.trajectories import write_trajectories

    if Path(out).exists():
        raise BadInput(f"{out}: exists already; name another file with -o, or remove this one.")
    with watched(None) as say:
        rows = write_trajectories(out, patients, shape, seed, lambda done: say(f"{done:,} patients"))
    click.echo(f"{out}: {rows:,} pairs")
