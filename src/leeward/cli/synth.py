"""`leeward synth KIND`."""

from __future__ import annotations

import click

from leeward.cli.main import LazyGroup
from leeward.cli.options import threads_option

KINDS = {
    "codes": ("leeward.cli.synth:codes", "Diagnosis codes: Zipf frequencies, comorbidity, ICD-9-CM."),
    "claims": (
        "leeward.cli.synth:claims",
        "Inpatient claims: ten ordered diagnoses, chronic codes, rare tail.",
    ),
    "visits": (
        "leeward.cli.visits:synth",
        "Visits of a population, nested cohorts, SNPs with planted effects.",
    ),
    "trajectories": (
        "leeward.cli.trajectories:synth",
        "(code, age) trajectories shaped like a thesis's sets.",
    ),
    "repeats": ("leeward.cli.censor:repeats", "Repeated codes of a population, and a sample of it."),
    "notes": ("leeward.cli.notes_learn:synth", "Clinical notes of several kinds, with their spans."),
    "registry": ("leeward.cli.condense:registry", "A cancer registry, for tables of patients."),
}
"""Each kind of made-up data. A new kind adds a row."""


@click.group(cls=LazyGroup, table=KINDS)
def synth() -> None:
    """Write made-up data: no patient behind it, but the shape of real data.

    \b
    Example:
      leeward synth codes --patients 25000 -o events.parquet
    """


@click.command()
@click.option(
    "--patients", type=click.IntRange(min=1), required=True, metavar="N", help="Number of patients."
)
@click.option("-o", "--out", required=True, metavar="FILE", help="A .parquet, .csv or .csv.gz file.")
@click.option(
    "--codes", "distinct", type=int, default=631, show_default=True, help="Number of distinct codes."
)
@click.option("--mean", type=float, default=5.1, show_default=True, help="Mean number of codes a patient.")
@click.option("--seed", type=int, metavar="N", help="The same seed gives the same file.")
@threads_option
def codes(patients: int, out: str, distinct: int, mean: float, seed: int | None, threads: int | None) -> None:
    """Write patients with correlated ICD-9-CM codes, as a file with the columns patient and code.

    \b
    Examples:
      leeward synth codes --patients 25000 -o events.parquet
      leeward synth codes --patients 1000 --codes 200 --mean 12 --seed 1 -o events.csv.gz
    """

    from leeward.paths import require_new
    from leeward.runs.protect import watch
    from leeward.synthetic import write_codes

    require_new(out)
    with watch(None) as say:
        rows = write_codes(
            out,
            patients,
            distinct,
            mean,
            seed,
            threads=threads,
            progress=lambda done: say(f"{done:,} of {patients:,} patients"),
        )
    click.echo(f"{out}: {patients:,} patients, {rows:,} rows")


@click.command()
@click.option(
    "--patients", type=click.IntRange(min=1), required=True, metavar="N", help="Number of patients."
)
@click.option("-o", "--out", required=True, metavar="FILE", help="A .parquet, .csv or .csv.gz file.")
@click.option("--codes", "distinct", type=int, help="Number of distinct codes [default: 6700].")
@click.option("--seed", type=int, metavar="N", help="The same seed gives the same file.")
def claims(patients: int, out: str, distinct: int | None, seed: int | None) -> None:
    """Write inpatient claims in wide form: patient, claim, date, age, sex, diag_1 to diag_10.

    \b
    Example:
      leeward synth claims --patients 50000 --seed 1 -o claims.parquet
    """

    from leeward.paths import require_new
    from leeward.runs.protect import watch
    from leeward.synthetic.claims import CODES, write_claims

    require_new(out)
    with watch(None) as say:
        rows = write_claims(
            out,
            patients,
            distinct or CODES,
            seed,
            progress=lambda done: say(f"{done:,} of {patients:,} patients"),
        )
    click.echo(f"{out}: {patients:,} patients, {rows:,} claims")
