"""`leeward censor`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.flags import parameter_options
from leeward.cli.options import run_options, with_source
from leeward.cli.running import run_and_tell
from leeward.methods.censoring.parameters import Censoring

WITHOUT_POPULATION = (
    "P is everybody from whom SAMPLE could have been drawn, such as all patients of the hospital: a file with the "
    "columns of SAMPLE. Each released record then fits at least K people of P."
)


def _given(ctx: click.Context, param: click.Parameter, value: str | None) -> str:
    """The population; without one the error says what it is."""
    if value is None:
        raise click.MissingParameter(WITHOUT_POPULATION, ctx, param)
    return value


@click.command()
@click.argument("path", metavar="SAMPLE")
@click.option(
    "--population",
    callback=_given,
    metavar="P",
    help="The population that the sample comes from; read like SAMPLE. Needed.",
)
@parameter_options(Censoring)
@with_source
@run_options
def censor(source: Any, population: str, **flags: Any) -> None:
    """Release repeated diagnosis codes in SAMPLE, censored to a k-map of the population P.

    Mentions of codes are removed until every record of SAMPLE is contained in the records of at least K people of P.

    \b
    Examples:
      leeward censor sample.csv --population everybody.csv --k 5 --cap 3 -o release
      leeward censor sample.csv --population everybody.csv --patient pid --code icd --visit enc \\
          --k 5 --caps 250=4,401=2 --cap 1 --payload dna -o release
      leeward censor sample.csv --population everybody.csv --k 10 --cap 3 --scope record -o release

    SAMPLE and P are CSV, TSV or Parquet files, folders or globs, with the same columns. Exit status: 0 done; 2 bad
    input; 3 K is above the number of people in P; 4 verification failed. In the last three cases nothing is written.
    """
    from dataclasses import replace

    run_and_tell("censoring", source, population=replace(source, path=population), **flags)


@click.command()
@click.option(
    "--patients",
    type=int,
    default=301_423,
    show_default=True,
    metavar="N",
    help="Patients of the population.",
)
@click.option("-o", "--out", required=True, metavar="FILE", help="The population: .parquet, .csv or .csv.gz.")
@click.option("--sample", metavar="FILE", help="Write a sample of it, too.")
@click.option(
    "--sample-patients", type=int, metavar="N", help="Patients of the sample [default: 2,676 of 301,423]."
)
@click.option("--codes", "distinct", type=int, default=4, show_default=True, help="Number of distinct codes.")
@click.option("--seed", type=int, metavar="N", help="The same seed gives the same files.")
def repeats(
    patients: int, out: str, sample: str | None, sample_patients: int | None, distinct: int, seed: int | None
) -> None:
    """Write a population with repeated codes in the shape of Tamersoy (2011), one row per mention.

    \b
    Examples:
      leeward synth repeats -o everybody.parquet --sample sample.parquet
      leeward synth repeats --patients 1000000 --codes 500 --seed 1 -o everybody.parquet --sample sample.parquet
    """

    from leeward.paths import require_new
    from leeward.runs.protect import watch
    from leeward.synthetic.repeats import write_repeats

    for file in (out, sample):
        if file is not None:
            require_new(file, option=None)
    with watch(None) as say:
        rows = write_repeats(
            out,
            patients,
            distinct,
            seed,
            sample=sample,
            sample_patients=sample_patients,
            progress=lambda done: say(f"{done:,} of {patients:,} patients"),
        )
    click.echo(f"{out}: {patients:,} patients, {rows:,} rows")
