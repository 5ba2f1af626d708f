"""`leeward trajectories`, and `leeward synth trajectories`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.flags import parameter_options
from leeward.cli.options import run_options, with_source
from leeward.cli.running import run_and_tell
from leeward.methods.trajectories.parameters import Trajectories


@click.command()
@click.argument("path", metavar="EVENTS")
@parameter_options(Trajectories)
@with_source
@run_options
def trajectories(source: Any, **flags: Any) -> None:
    """Release the codes in EVENTS in order, with the age at each.

    An attacker who knows all of a patient's codes and ages finds at least K records that look alike. Codes and ages
    are generalized along hierarchies; what cannot be grouped is suppressed.

    \b
    Examples:
      leeward trajectories events.csv --patient pid --code icd --age age --vocabulary icd9 --k 5 -o release
      leeward trajectories events.parquet --age age --vocabulary codes.csv --age-hierarchy hipaa --k 5 -o release
      leeward trajectories events.csv --age age --vocabulary icd9 --k 5 --weights 0.8,0.2 \\
          --odd-ages "leave out" -o release

    EVENTS is a CSV, TSV, Parquet, .xlsx, SAS, Stata or SPSS file, a .zip of one, a folder, a glob or a database. Exit
    status: 0 done; 2 bad input; 3 the guarantee cannot be met on this data; 4 verification failed. In the last three
    cases nothing is written.
    """
    run_and_tell("trajectories", source, **flags)


@click.command()
@click.option(
    "--patients",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of patients [default: as in the thesis].",
)
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

    from leeward.paths import require_new
    from leeward.runs.protect import watch
    from leeward.synthetic.trajectories import write_trajectories

    require_new(out)
    with watch(None) as say:
        rows = write_trajectories(out, patients, shape, seed, lambda done: say(f"{done:,} patients"))
    click.echo(f"{out}: {rows:,} pairs")
