"""Tables of events: delimited text, Parquet, or a frame in memory, whoever made it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from leeward.cohort.cohort import Cohort
from leeward.cohort.readers import parquet
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnMap, ColumnNames, require_columns
from leeward.cohort.readers.files import find_files
from leeward.cohort.readers.request import Request
from leeward.cohort.readers.stores import reader_of
from leeward.cohort.readers.values import identifiers, one_row_each, plain, stack
from leeward.errors import BadInput


def read_tables(asked: Request) -> Cohort:
    if isinstance(asked.source, pl.DataFrame):
        return _read_frame(asked, asked.source)
    files, mapped = map_files(asked.source, asked.columns, patients_apart=asked.patients is not None)
    payload = mapped.patients
    if asked.patients is not None:
        mapped = replace(mapped, patients=())
    collector = _collector(asked, Path(asked.source).name, mapped)
    for file in files:
        collector.begin(file.name)
        for batch in reader_of(file).batches(file, mapped.columns_to_read(), mapped.columns_of_codes()):
            collector.add(batch)
    cohort = collector.cohort(asked.vocabulary)
    if asked.patients is None:
        return cohort
    return _with_attributes(cohort, asked.patients, mapped.patient, payload, asked.missing)


def _read_frame(asked: Request, frame: pl.DataFrame) -> Cohort:
    mapped = ColumnMap.of(asked.columns, frame.columns)
    require_columns(asked.name, mapped.columns_to_read(), frame.columns)
    collector = _collector(asked, asked.name, mapped)
    table = frame.select(mapped.columns_to_read()).to_arrow()
    for batch in table.to_batches(max_chunksize=parquet.BATCH_ROWS):
        collector.add(batch)
    return collector.cohort(asked.vocabulary)


def _collector(asked: Request, name: str, mapped: ColumnMap) -> Collector:
    return Collector(name, mapped, asked.missing, asked.date_format, separator=asked.code_separator)


def map_files(
    path: str | Path, columns: ColumnNames | None, *, patients_apart: bool = False
) -> tuple[list[Path], ColumnMap]:
    """The files of a table, which have the same columns, and their roles; BadInput where one lacks.
    `patients_apart`: the patients' columns are in another file."""
    files = find_files(path)
    header = reader_of(files[0]).header(files[0])
    mapped = ColumnMap.of(columns, header)
    own = replace(mapped, patients=()) if patients_apart else mapped
    require_columns(files[0].name, own.columns_to_read(), header)
    require_same_columns(files, header)
    if len(files) > 1:
        common_types(files, mapped.code)  # the number 250 of one file may be the text 250.00 of another
    return files, mapped


def _with_attributes(
    cohort: Cohort, path: str | Path, patient: str, payload: Sequence[str], missing: frozenset[str]
) -> Cohort:
    """The cohort with the patients frame of a further table; without `payload`, all its columns."""
    tables = []
    for file in find_files(path):
        header = reader_of(file).header(file)
        names = list(payload) or [name for name in header if name != patient]
        require_columns(file.name, [patient, *names], header)
        for batch in reader_of(file).batches(file, [patient, *names]):
            who = identifiers(batch.column(patient), file.name, patient)
            tables.append(
                pl.DataFrame({"patient": who, **{name: plain(batch.column(name)) for name in names}})
            )
    if not tables:
        raise BadInput(f"{Path(path).name}: the file has column names but no rows.")
    patients, notices = one_row_each(stack(tables), cohort.require_events()["patient"], missing)
    return replace(cohort, patients=patients).with_notices(*notices)


def require_same_columns(files: Sequence[Path], expected: Sequence[str]) -> None:
    """BadInput where a file has other columns than the first, whose they are."""
    for file in files[1:]:
        header = reader_of(file).header(file)
        lacking = [column for column in expected if column not in header]
        further = [column for column in header if column not in expected]
        if lacking or further:
            parts = [f"lacks {len(lacking)} of them"] if lacking else []
            parts += [f"has {len(further)} others"] if further else []
            raise BadInput(
                f"{file.name}: its columns differ from those of {files[0].name} ({' and '.join(parts)}); "
                f"files that are read together must have the same columns."
            )


VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
"""Types whose rows Arrow cannot choose among, and those of the same values that it can."""


def common_types(files: Sequence[Path], columns: Sequence[str]) -> list[pa.DataType]:
    """The type that holds the values of each column of all files; BadInput where none does. Whole and decimal
    numbers become whole ones (`cast_column` refuses fractions): no code passes through a float."""
    found = [reader_of(file).types(file, columns) for file in files]
    common = [VIEWS.get(kind, kind) for kind in found[0]]
    for file, kinds in zip(files, found, strict=True):
        for place, (name, kind) in enumerate(zip(columns, kinds, strict=True)):
            both = _type_of_both(common[place], kind)
            if both is None:
                raise BadInput(
                    f"{file.name}: column '{name}' holds {kind}, in {files[0].name} {common[place]}: save them with "
                    f"one type."
                )
            common[place] = both
    return common


def _type_of_both(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if parquet.is_text(one) and parquet.is_text(other):
        return pa.large_string()
    if pa.types.is_floating(one) and pa.types.is_floating(other):
        return pa.float64()
    both = {pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in (one, other)}
    return pa.int64() if both == {True} else None


def cast_column(column: pa.Array, kind: pa.DataType, name: str, title: str) -> pa.Array:
    """The same values as another type; BadInput where one has none."""
    if pa.types.is_floating(column.type) and pa.types.is_integer(kind):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    try:
        return column.cast(kind)
    except pa.ArrowException:
        raise BadInput(
            f"{name}: column '{title}' holds fractions, or numbers beyond 64 bits, and in other files whole numbers: "
            f"save them with one type."
        ) from None


KINDS = "a path, or a frame of Polars, pandas, pyarrow or DuckDB, or an object with `__arrow_c_stream__`"


def as_frame(source: Any) -> pl.DataFrame | None:
    """The frame in Polars; None for a path. A named index of pandas becomes columns; BadInput for anything else."""
    if isinstance(source, str | os.PathLike):
        return None
    if isinstance(source, pl.DataFrame):
        return source
    try:
        return _to_polars(source)
    except (BadInput, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # each library has its own, and compiled ones panic outside of Exception
        raise BadInput(
            f"the frame cannot be read ({type(error).__name__}); a column may hold values of several types: make them "
            f"text, numbers or dates."
        ) from None


def _to_polars(source: Any) -> pl.DataFrame:
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if isinstance(source, pa.Table):
        source.validate(full=True)  # offsets and dictionary indexes out of bounds
    if hasattr(source, "reset_index") and any(
        name is not None for name in getattr(source.index, "names", ())
    ):
        source = source.reset_index()
    import narwhals as nw

    native = nw.from_native(source, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        native = native.collect(backend="polars")
    if isinstance(native, nw.DataFrame):
        return native.to_polars()
    if hasattr(source, "__arrow_c_stream__"):
        return pl.DataFrame(source)
    raise BadInput(f"a cohort cannot be read from {type(source).__name__}; give {KINDS}.")
