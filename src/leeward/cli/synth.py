"""`leeward synth KIND`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from leeward.cli.main import LazyGroup
from leeward.cli.options import Option, flag, stack, threads_option

KINDS = {
    "codes": ("synth", "Diagnosis codes: Zipf frequencies, comorbidity, ICD-9-CM."),
    "claims": ("synth", "Inpatient claims: ten ordered diagnoses, chronic codes, rare tail."),
    "visits": ("synth", "Visits of a population, nested cohorts, SNPs with planted effects."),
    "trajectories": ("synth", "(code, age) trajectories shaped like a thesis's sets."),
    "repeats": ("synth", "Repeated codes of a population, and a sample of it."),
    "notes": ("synth", "Clinical notes of several kinds, with their spans."),
    "registry": ("synth", "A cancer registry, for tables of patients."),
}  # fmt: skip
"""Each kind of made-up data. A new kind adds a row."""


@click.group(cls=LazyGroup, table=KINDS)
def synth() -> None:
    """Write made-up data with the shape of real data.

    \b
    Example:
      leeward synth codes --patients 25000 -o events.parquet
    """


def _options(
    out: str = "A .parquet, .csv or .csv.gz file.", metavar: str = "FILE", **patients: Any
) -> Option:
    words = patients.pop("text", "Number of patients.")
    return stack(
        flag("--patients", "N", words, **{"type": click.IntRange(min=1), "required": True} | patients),
        flag("-o --out", metavar, out, required=True),
        flag("--seed", "N", "The same seed gives the same file.", type=int),
    )


def _write(
    write: Callable[..., int],
    out: str,
    *given: Any,
    of: int | None = None,
    what: str = "file",
    **options: Any,
) -> int:
    """Write a new file or folder with a line of progress; returns its rows."""
    from leeward.paths import require_new
    from leeward.runs.progress import watch

    require_new(out, what)
    total = "" if of is None else f" of {of:,}"
    with watch(None) as say:
        return write(out, *given, progress=lambda done: say(f"{done:,}{total} patients"), **options)


@click.command()
@_options()
@flag("--codes distinct", None, "Number of distinct codes.", type=int, default=631, show_default=True)
@flag("--mean", None, "Mean number of codes per patient.", type=float, default=5.1, show_default=True)
@threads_option
def codes(patients: int, out: str, distinct: int, mean: float, seed: int | None, threads: int | None) -> None:
    """Write patients with correlated ICD-9-CM codes, as a file with the columns patient and code.

    \b
    Examples:
      leeward synth codes --patients 25000 -o events.parquet
      leeward synth codes --patients 1000 --codes 200 --mean 12 --seed 1 -o events.csv.gz
    """
    from leeward.synthetic import write_codes

    rows = _write(write_codes, out, patients, distinct, mean, seed, of=patients, threads=threads)
    click.echo(f"{out}: {patients:,} patients, {rows:,} rows")


@click.command()
@_options()
@flag("--codes distinct", None, "Number of distinct codes [default: 6700].", type=int)
def claims(patients: int, out: str, distinct: int | None, seed: int | None) -> None:
    """Write inpatient claims in wide form: patient, claim, date, age, sex, diag_1 to diag_10.

    \b
    Example:
      leeward synth claims --patients 50000 --seed 1 -o claims.parquet
    """
    from leeward.synthetic.claims import CODES, write_claims

    rows = _write(write_claims, out, patients, distinct or CODES, seed, of=patients)
    click.echo(f"{out}: {patients:,} patients, {rows:,} claims")


@click.command()
@_options("A folder for events.parquet and patients.parquet.", "FOLDER")
@threads_option
def visits(patients: int, out: str, seed: int | None, threads: int | None) -> None:
    """Write a population's visits with correlated ICD-9-CM codes, nested cohorts, and six SNPs with planted effects.

    \b
    Examples:
      leeward synth visits --patients 20000 -o population
      leeward synth visits --patients 100000 --seed 1 -o population
    """
    from leeward.synthetic.visits import write_visits

    rows = _write(write_visits, out, patients, seed, of=patients, what="folder", threads=threads)
    click.echo(f"{out}: {patients:,} patients, {rows:,} rows")


@click.command()
@_options("A .parquet or .csv file.", required=False, text="Number of patients [default: as in the thesis].")
@flag("--shape", None, "Which set of Table 3 of Tamersoy (2011).", default="d50-pop", show_default=True,
      type=click.Choice(["d50-pop", "d4-pop", "d4-smp"]))  # fmt: skip
def trajectories(patients: int | None, out: str, shape: str, seed: int | None) -> None:
    """Write patients' (code, age) trajectories, as a file with the columns patient, code and age.

    \b
    Examples:
      leeward synth trajectories -o events.parquet
      leeward synth trajectories --shape d4-smp --seed 1 -o small.csv
      leeward synth trajectories --patients 100000 -o large.parquet
    """
    from leeward.synthetic.trajectories import write_trajectories

    rows = _write(write_trajectories, out, patients, shape, seed)
    click.echo(f"{out}: {rows:,} pairs")


@click.command()
@_options("The population: .parquet, .csv or .csv.gz.", text="Patients of the population.", required=False,
          type=int, default=301_423, show_default=True)  # fmt: skip
@flag("--sample", "FILE", "Write a sample of it, too.")
@flag("--sample-patients", "N", "Patients of the sample [default: 2,676 of 301,423].", type=int)
@flag("--codes distinct", None, "Number of distinct codes.", type=int, default=4, show_default=True)
def repeats(
    patients: int, out: str, sample: str | None, sample_patients: int | None, distinct: int, seed: int | None
) -> None:
    """Write a population with repeated codes in the shape of Tamersoy (2011), one row per mention.

    \b
    Examples:
      leeward synth repeats -o everybody.parquet --sample sample.parquet
      leeward synth repeats --patients 100000 --codes 500 --seed 1 -o everybody.parquet --sample sample.parquet
    """
    from leeward.paths import require_new
    from leeward.synthetic.repeats import write_repeats

    if sample is not None:
        require_new(sample, option=None)
    further: dict[str, Any] = {"sample": sample, "sample_patients": sample_patients}
    rows = _write(write_repeats, out, patients, distinct, seed, of=patients, **further)
    click.echo(f"{out}: {patients:,} patients, {rows:,} rows")


@click.command()
@_options("A .parquet file: note, patient, date, text.")
@flag("--notes count", "N", "Notes in all [default: 1 to 3 each].", type=click.IntRange(min=1))
@flag("--spans", "FILE", "A .jsonl file for the notes with their true spans.")
@flag("--held-out", None, "Templates and identities that the models were not trained with.", is_flag=True)
@flag("--seasons", "STRENGTH", "How strongly conditions follow their seasons: 0 not at all, 1 as published.",
      type=float, default=0, show_default=True)  # fmt: skip
def notes(patients: int, out: str, count: int | None, spans: str | None, held_out: bool, **plan: Any) -> None:
    """Write made-up clinical notes of several kinds, as a file with the columns note, patient, date and text.

    \b
    Examples:
      leeward synth notes --patients 1500 --notes 2867 --seed 1 -o notes.parquet
      leeward synth notes --patients 100 -o notes.parquet --spans gold.jsonl
      leeward synth notes --patients 100 --held-out --seed 7 -o notes.parquet --spans gold.jsonl
      leeward synth notes --patients 1500 --notes 2867 --seasons 1 --seed 1 -o seasons.parquet

    With --seasons coughs are met more often in winter, rhinitis in June …; months keep their shares of the visits.
    """
    from leeward.runs.progress import watch
    from leeward.synthetic.notes import NotePlan, write_notes

    planned = NotePlan(patients, count, "held-out" if held_out else "training", **plan)
    with watch(None) as say:
        written = write_notes(out, planned, spans=spans, progress=lambda done: say(f"{done:,} notes"))
    click.echo(f"{out}: {written:,} notes of {patients:,} patients")


@click.command()
@_options(required=False, text="Rows [default: the paper's number of cases].")
@flag("--site", None, "Tumour.", type=click.Choice(["colon", "lung"]), default="lung", show_default=True)
@flag("--variables", None, "Number of columns; the first nine are those of the paper.", default=9, show_default=True,
      type=click.IntRange(2, 13))  # fmt: skip
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
