"""Files that are read at once: sheets of a workbook, and tables of SAS, Stata and SPSS (extra `files`)."""

from __future__ import annotations

import datetime
import re
import zipfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl

from leeward.arrays import count_noun
from leeward.cohort.notices import Notice, row_text
from leeward.cohort.readers.columns import require_columns
from leeward.cohort.readers.files import WORKBOOKS, damage_error, require_memory, suffix
from leeward.errors import BadInput, did_you_mean, require_extra
from leeward.texts import outside_xml

READERS_OF = {
    ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport", ".dta": "read_dta", ".sav": "read_sav", ".zsav": "read_sav",
    ".por": "read_por",
}  # fmt: skip
ERROR_CELL = re.compile(rb'<c (?=[^>]*\bt="e")[^>]*\br="([A-Z]+)([0-9]+)"')
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
LINK = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


def read_whole(
    file: Path, table: str | None, codes: Collection[str]
) -> tuple[pl.DataFrame, str, list[Notice]]:
    """The table of a file, what messages call it, and notices; `codes` are the columns of codes."""
    if file.stat().st_size == 0:
        raise BadInput(f"{file.name}: the file is empty.")
    if suffix(file) in WORKBOOKS:
        return _sheet(file, table, codes)
    if table is not None:
        raise BadInput(
            f"{file.name}: --table is for workbooks, .zip files and databases; this file has one table."
        )
    return _statistics(file), file.name, []


def _statistics(file: Path) -> pl.DataFrame:
    require_extra(f"{file.name}: a {suffix(file)} file", "files", "pyreadstat")
    import pyreadstat

    try:
        frame, _ = getattr(pyreadstat, READERS_OF[suffix(file)])(str(file), output_format="polars")
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except Exception:  # compiled code has errors of many kinds, whose texts may hold values
        raise damage_error(file) from None
    if not isinstance(frame, pl.DataFrame):
        raise damage_error(file)
    if frame.height == 0:
        raise BadInput(f"{file.name}: the file has column names but no rows.")
    return frame.with_columns(
        each.cast(pl.Int64) for each in frame if each.dtype == pl.Float64 and _whole_numbers(each)
    )


def _whole_numbers(numbers: pl.Series) -> bool:
    known = numbers.drop_nulls()
    return bool(known.is_finite().all() and (known == known.floor()).all() and (known.abs() < 2**53).all())


def _sheet(file: Path, table: str | None, codes: Collection[str]) -> tuple[pl.DataFrame, str, list[Notice]]:
    name, rows, errors = _open_sheet(file, table)
    title = f"{file.name}, sheet '{name}'"
    if not rows or not _has_value(rows[0]):
        raise BadInput(f"{title}: the first row is blank; it must hold the column names.")
    header = [str(cell).strip() for cell in rows[0]]
    width = max(place for place, cell in enumerate(header, 1) if cell)
    require_columns(title, list(filter(None, header)), header)
    if errors:
        cell, column, row = errors[0]
        named = f"'{header[column]}'" if "".join(header[column : column + 1]) else str(column + 1)
        raise BadInput(
            f"{title}: cell {cell} (row {row} of column {named}) holds an error of a formula; repair or empty it."
        )
    body = _body_of(rows[1:], header, width, title)
    notices: list[Notice] = []
    columns = {
        each: _column([row[place] for row in body], title, each, each in codes, notices)
        for place, each in enumerate(header[:width])
    }
    return pl.DataFrame(columns), title, notices


def _open_sheet(file: Path, table: str | None) -> tuple[str, list[list[Any]], list[tuple[str, int, int]]]:
    require_extra(f"{file.name}: a {suffix(file)} file", "files", "python_calamine")
    import python_calamine as calamine

    require_memory(file)
    try:
        book = calamine.CalamineWorkbook.from_path(str(file))
        name = _sheet_name(file, book.sheet_names, table)
        rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
        return name, rows, list(_error_cells(file, book.sheet_names.index(name)))
    except BadInput:
        raise
    except calamine.PasswordError:
        raise BadInput(f"{file.name}: the workbook is encrypted; save it without a password.") from None
    except (
        calamine.CalamineError,
        zipfile.BadZipFile,
        ElementTree.ParseError,
        OSError,
        ValueError,
        KeyError,
    ):
        raise damage_error(file) from None


def _body_of(rows: list[list[Any]], header: Sequence[str], width: int, title: str) -> list[list[Any]]:
    """The rows below the header, without blank ones at the end. BadInput where a value has no column name above it."""
    filled = [number for number, row in enumerate(rows, 1) if _has_value(row)]
    beside = next((number for number in filled if _has_value(rows[number - 1][width:])), None)
    if beside or "" in header[:width]:
        place = f"row {beside} has a value" if beside else f"column {header.index('') + 1} is"
        raise BadInput(f"{title}: {place} below no column name; name the column, or empty it.")
    if not filled:
        raise BadInput(f"{title}: the sheet has column names but no rows.")
    return rows[: filled[-1]]


def _has_value(row: Sequence[Any]) -> bool:
    return any(cell != "" for cell in row)


def _sheet_name(file: Path, names: Sequence[str], table: str | None) -> str:
    if table is not None and table not in names:
        raise BadInput(f"{file.name}: no sheet '{table}'.{did_you_mean(table, names)}")
    if table is None and len(names) != 1:
        shown = ", ".join(outside_xml().sub("?", each) for each in names[:10])
        raise BadInput(f"{file.name}: it has {len(names)} sheets ({shown}); name one with --table.")
    return table if table is not None else names[0]


def _error_cells(file: Path, number: int) -> Iterator[tuple[str, int, int]]:
    """Cell, column from 0, row of data from 1 of each cell with an error, which calamine gives as an empty one."""
    with zipfile.ZipFile(file) as archive:
        sheets = ElementTree.fromstring(archive.read("xl/workbook.xml")).iter(f"{MAIN}sheet")
        link = [each.get(f"{LINK}id") for each in sheets][number]
        links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
        target = next(str(each.get("Target")) for each in links if each.get("Id") == link)
        part = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
        for letters, row in ERROR_CELL.findall(archive.read(part)):
            column = 0
            for letter in letters:
                column = 26 * column + letter - 64
            yield f"{letters.decode()}{row.decode()}", column - 1, int(row) - 1


def _column(cells: list[Any], title: str, name: str, is_code: bool, notices: list[Notice]) -> pl.Series:
    """The cells of a column: numbers, dates, or text where it holds several kinds; blank ones are null."""
    if is_code:
        _note_numbers(cells, title, name, notices)
    kinds = {type(cell) for cell in cells if cell != ""}
    if kinds <= {float}:
        series = pl.Series(cells, dtype=pl.Float64, strict=False)
        return series.cast(pl.Int64) if _whole_numbers(series) else series
    texts = pl.Series([None if cell == "" else _text(cell) for cell in cells], dtype=pl.String)
    dates = kinds <= {datetime.date, datetime.datetime}
    return texts.str.head(10).str.to_date("%Y-%m-%d") if dates else texts


def _note_numbers(cells: Sequence[Any], title: str, name: str, notices: list[Notice]) -> None:
    rows = [row for row, cell in enumerate(cells, 1) if isinstance(cell, float)]
    broken = [row for row in rows if not cells[row - 1].is_integer()]
    if broken:
        raise BadInput(
            f"{title}: column '{name}' holds codes as decimal numbers ({row_text(broken)}), where 250.1 and "
            f"250.10 are the same; store them as text."
        )
    message = (
        f"{count_noun('code', len(rows))} of column '{name}' as numbers: a sheet drops their zeros (250.00 becomes "
        f"250, 038 becomes 38); format the column as text where codes have such zeros"
    )
    notices += [Notice.of_rows("codes as numbers", message, rows)] if rows else []


def _text(value: Any) -> str:
    """A cell as text: whole numbers without a point, dates as ISO 8601."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)
