"""`leeward split`."""

from __future__ import annotations

import click

from leeward.cli.options import print_lines


@click.command()
@click.argument("source", metavar="TABLE")
@click.option("-o", "--out", required=True, metavar="FOLDER", help="The folder to write; must not exist yet.")
@click.option("--parts", required=True, type=click.IntRange(min=2), help="Number of parts.")
@click.option("--patient", metavar="COL", help="The column of patients [default: one row is one patient].")
def split(source: str, out: str, parts: int, patient: str | None) -> None:
    """Cut TABLE (CSV or Parquet) into parts by patient, for a table that is larger than memory.

    All rows of a patient are in one part, drawn at random. Release each part by itself: no patient is in two parts, so
    the guarantee of the releases holds for all of them together. The parts are patient data: remove them when done.
    Files of a folder need columns of types that one type holds without a change.

    \b
    Examples:
      leeward split events.csv --patient pid --parts 4 -o parts
      leeward disassociate parts/part-001.parquet --patient pid --code icd --k 5 --m 2 -o release-1
    """
    from leeward.runs.split import split as cut

    rows = cut(source, out, parts, patient)
    print_lines(f"{sum(rows):,} rows in {parts} parts of {min(rows):,} to {max(rows):,} rows in {out}.")
