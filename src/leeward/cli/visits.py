"""`leeward visits`, and `leeward synth visits`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.flags import parameter_options
from leeward.cli.options import run_options, threads_option, with_source
from leeward.cli.running import run_and_tell
from leeward.methods.visits.parameters import Visits


@click.command()
@click.argument("path", metavar="EVENTS")
@parameter_options(Visits)
@with_source
@run_options
def visits(source: Any, **flags: Any) -> None:
    """Release the visits in EVENTS: at least K patients have exactly the set of codes of each visit.

    Give the whole population; draw the cohorts that you share from the release, with `leeward cohort`.

    \b
    Examples:
      leeward visits events.csv --patient pid --code icd --visit enc --k 5 -o master
      leeward visits diabetic_data.csv.gz --patient patient_nbr --code diag_1,diag_2,diag_3 \\
          --visit encounter_id --missing '?' --k 5 -o master
      leeward cohort master --select patients.csv -o cohort

    Exit status: 0 done; 2 bad input; 3 the guarantee cannot be met on this data; 4 verification failed. In the
    last three cases nothing is written.
    """
    run_and_tell("visits", source, **flags)


@click.command()
@click.option(
    "--patients", type=click.IntRange(min=1), required=True, metavar="N", help="Number of patients."
)
@click.option(
    "-o", "--out", required=True, metavar="FOLDER", help="A folder for events.parquet and patients.parquet."
)
@click.option("--seed", type=int, metavar="N", help="The same seed gives the same files.")
@threads_option
def synth(patients: int, out: str, seed: int | None, threads: int | None) -> None:
    """Write a population's visits with correlated ICD-9-CM codes, nested cohorts, and six SNPs with planted effects.

    \b
    Examples:
      leeward synth visits --patients 20000 -o population
      leeward synth visits --patients 1366786 --seed 1 -o population
    """
    from leeward.runs.protect import watch
    from leeward.synthetic.visits import write_visits

    with watch(None) as say:
        rows = write_visits(
            out,
            patients,
            seed,
            threads=threads,
            progress=lambda done: say(f"{done:,} of {patients:,} patients"),
        )
    click.echo(f"{out}: {patients:,} patients, {rows:,} rows")
