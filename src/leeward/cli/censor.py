"""`leeward censor`."""

from __future__ import annotations

from typing import Any

import click

from leeward.cli.options import commas, run_options, with_source
from leeward.cli.running import run_and_tell


@click.command()
@click.argument("path", metavar="SAMPLE")
@click.option(
    "--population", required=True, metavar="P", help="Everybody the sample comes from; read like SAMPLE."
)
@click.option("--k", type=int, required=True, help="Fewest people who contain a released record, at least 2.")
@click.option(
    "--cap", type=int, metavar="N", help="Most mentions of a code in a record [default: as in the sample]."
)
@click.option(
    "--caps",
    metavar="CODE=N[,…]|FILE",
    help="Caps of single codes; a file is a CSV with the columns code,cap. Without --cap, other codes go.",
)
@click.option(
    "--scope",
    type=click.Choice(["global", "record"]),
    help="global (default): caps fall for all records alike (GCCens); record: each record by itself keeps as much as "
    "k people share, which who knows this rule can turn against it.",
)
@click.option(
    "--payload",
    metavar="COL[,COL…]",
    callback=commas,
    help="Columns of the sample that go along as they are.",
)
@with_source
@run_options
def censor(source: Any, population: str, caps: str | None, payload: tuple[str, ...], **flags: Any) -> None:
    """Release repeated diagnosis codes in SAMPLE, censored to a k-map of the population P.

    Mentions of codes are taken out until every record of SAMPLE is contained in the records of at least K people of P.

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

    everybody = replace(source, path=population)
    if payload:
        # A column map names all its columns: with payload alone the usual names are still meant.
        source = replace(
            source,
            columns={"patient": "patient", "code": "code", **source.columns, "patients": list(payload)},
        )
        everybody = replace(
            everybody, columns={key: v for key, v in source.columns.items() if key != "patients"}
        )
    run_and_tell(
        "censoring",
        source,
        population=everybody,
        caps=None if caps is None else caps_of(caps),
        payload=payload,
        **flags,
    )


def caps_of(text: str) -> dict[str, int]:
    """`250=4,401=2` or a CSV file with the columns `code,cap`.

    Raises
    ------
    BadInput
        Neither, or a cap that is no whole number, or a code twice.
    """
    from pathlib import Path

    from leeward.errors import BadInput

    if "=" in text:
        pairs = [
            (code.strip(), cap.strip()) for code, _, cap in (part.partition("=") for part in text.split(","))
        ]
        where = "--caps"
    else:
        import csv

        if not Path(text).is_file():
            raise BadInput(f"--caps: `{text}` is neither CODE=N nor a file.")
        with Path(text).open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            if not {"code", "cap"} <= set(rows.fieldnames or ()):
                raise BadInput(f"{text}: the columns `code` and `cap` are needed.")
            pairs = [(str(row["code"]).strip(), str(row["cap"]).strip()) for row in rows]
        where = text
    for place, (code, cap) in enumerate(pairs, start=1):
        if not code or not cap.isdigit():
            raise BadInput(f"{where}: entry {place} is not a code with a whole number.")
    if len({code for code, _ in pairs}) < len(pairs):
        raise BadInput(f"{where}: a code is named twice; keep one cap for each.")
    return {code: int(cap) for code, cap in pairs}


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
    """Write a population with repeated codes in the shape of Tamersoy (2011), one row a mention.

    \b
    Examples:
      leeward synth repeats -o everybody.parquet --sample sample.parquet
      leeward synth repeats --patients 1000000 --codes 500 --seed 1 -o everybody.parquet --sample sample.parquet
    """
    from pathlib import Path

    from leeward.errors import BadInput
    from leeward.runs.protect import watched
    from leeward.synthetic.repeats import write_repeats

    for file in (out, sample):
        if file is not None and Path(file).exists():
            raise BadInput(f"{file}: exists already; name another file, or remove this one.")
    with watched(None) as say:
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
