"""Selection of patients from a master by a file or an expression, and of the payload joined at extraction."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from leeward.arrays import Int64s
from leeward.cohort.readers import parquet
from leeward.cohort.readers.files import refuse_log
from leeward.errors import BadInput
from leeward.methods.visits.extract import Master
from leeward.methods.visits.visit_lists import read_visit_lists


def select_patients(master: Master, selection: str | Path | pl.Series, column: str) -> pl.Series:
    """The identifiers in a series, in a file's column, or of patients for whom an expression holds. Raises BadInput:
    the file lacks the column, or the expression names none."""
    if isinstance(selection, pl.Series):
        return selection
    if not Path(selection).is_file():
        if Path(selection).suffix in (".csv", ".tsv", ".txt", ".parquet"):
            raise BadInput(f"--select: {selection}: no such file.")
        return select_by_expression(master, str(selection))
    table = _table(str(selection))
    if table.width == 1:
        return table.to_series()
    return table[_find_column(str(selection), table.columns, column)]


def select_by_expression(master: Master, expression: str) -> pl.Series:
    """The identifiers of the master's patients for whom an SQL expression holds. Its columns are `patient`, the
    payload, `codes` (a list: released codes of all visits) and `visits` (their number)."""
    entries = read_visit_lists(master.release.path("visits.parquet")).entries().lazy()
    by_record = entries.group_by("record")
    sets = by_record.agg(pl.col("code").cast(pl.String).unique().sort().alias("codes"))
    counts = by_record.agg(pl.col("visit").n_unique().cast(pl.Int64).alias("visits"))
    frame = (
        master.people.lazy()
        .select("record", "patient")
        .join(master.release.table("records.parquet"), on="record", how="left")
        .join(sets, on="record", how="left")
        .join(counts, on="record", how="left")
        .with_columns(pl.col("visits").fill_null(0))
        .collect()
    )
    try:
        return frame.filter(pl.sql_expr(expression))["patient"]
    except pl.exceptions.PolarsError:
        raise BadInput(
            "--select: neither a file nor an expression over the columns "
            f"{', '.join(name for name in frame.columns if name != 'record')}; "
            "for example \"array_contains(codes, '250.00')\"."
        ) from None


def records_of(master: Master, patients: pl.Series) -> tuple[Int64s, int]:
    """(master records of the patients, ascending; how many named patients the master lacks)."""
    kind = master.people["patient"].dtype
    wanted = patients.drop_nulls().unique().cast(kind, strict=False)
    found = (
        master.people.filter(pl.col("patient").is_in(wanted.drop_nulls().implode()))["record"]
        .sort()
        .to_numpy()
    )
    return found, len(wanted) - len(found)


def carry_payload(
    payload: str | Path | pl.DataFrame, column: str, master: Master, records: Int64s
) -> pl.DataFrame:
    """The payload's columns for the chosen records, in their order; null where it lacks a patient."""
    table = payload if isinstance(payload, pl.DataFrame) else _table(str(payload))
    patient = _find_column("--payload", table.columns, column)
    kind = master.people["patient"].dtype
    keyed = table.with_columns(pl.col(patient).cast(kind, strict=False))
    if keyed[patient].is_duplicated().any():
        raise BadInput("--payload: a patient is there more than once; keep one row for each.")
    taken = {"record", "visit", "codes"} & set(keyed.columns)
    if taken:
        raise BadInput(f"--payload: rename the column `{min(taken)}`; that name is the release's own.")
    wanted = master.people.sort("record")["patient"].gather(records).alias(patient).to_frame()
    return wanted.join(keyed, on=patient, how="left", maintain_order="left").drop(patient)


def _find_column(file: str, columns: list[str], column: str) -> str:
    if column not in columns:
        raise BadInput(
            f"{Path(file).name}: no column '{column}' among {', '.join(columns)}; name it with --patient."
        )
    return column


def _table(path: str) -> pl.DataFrame:
    refuse_log(path)
    if path.endswith(".parquet"):
        return parquet.frame(Path(path))
    try:
        return pl.read_csv(path, separator="\t" if ".tsv" in path else ",", infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError):
        raise BadInput(
            f"{path}: cannot be read as a table; give a CSV, TSV or Parquet file with a header."
        ) from None
