"""A copy of a release folder that a mutation changes, and what a forger would restate after it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from tests.forging import write_parquet

Change = Callable[[Path], Any]
"""Changes a copy of a release folder in place."""


@dataclass(frozen=True)
class Mutation:
    """One change of a release.

    Attributes
    ----------
    name : str
    part : str
        `guarantee`, `content`, `order`, `words`, `claims`, `form`, `custody`, `metadata` or `random`.
    change : callable
    tells : str
        For an order: `source` when only source or custody show what it tells, `share` when the share shows it; else ``.
    restated : bool
        Whether digests and rows are restated after it.
    worded : bool
        Whether the guarantee's sentences and the README were written anew to fit it.
    """

    name: str
    part: str
    change: Change
    tells: str = ""
    restated: bool = True
    worded: bool = False


Kinds = Iterator[Mutation]


READ: dict[tuple[str, int, int], pl.DataFrame] = {}


def unchanged(file: Path, other: Path) -> bool:
    """Whether a copy (`shutil.copytree` keeps times) was not written since."""
    one, two = file.stat(), other.stat()
    return (one.st_mtime_ns, one.st_size) == (two.st_mtime_ns, two.st_size)


def read(file: Path) -> pl.DataFrame:
    """A Parquet file, read once for all copies that were not written since."""
    stat = file.stat()
    key = (file.name, stat.st_mtime_ns, stat.st_size)
    if key not in READ:
        if len(READ) > 200:
            READ.clear()
        READ[key] = pl.read_parquet(file)
    return READ[key]


def parquets(out: Path) -> list[str]:
    """The Parquet files of the share, by their path in the release folder."""
    return sorted(path.relative_to(out).as_posix() for path in (out / "share" / "data").rglob("*.parquet"))


def csvs(out: Path) -> list[str]:
    """The CSV files of the share that are no copies."""
    found = sorted(path for path in (out / "share" / "data").rglob("*.csv"))
    return [path.relative_to(out).as_posix() for path in found if not path.with_suffix(".parquet").is_file()]


def manifest_of(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "share" / "release.json").read_text(encoding="utf-8"))
    return found


def put_manifest(out: Path, manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    (out / "share" / "release.json").write_text(text, encoding="utf-8")


def in_manifest(change: Callable[[dict[str, Any]], Any]) -> Change:
    """A change of release.json."""

    def apply(out: Path) -> None:
        manifest = manifest_of(out)
        change(manifest)
        put_manifest(out, manifest)

    return apply


def in_table(path: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Change:
    """A change of a Parquet file's rows, written again as releases are written."""

    def apply(out: Path) -> None:
        before = pl.read_parquet(out / path)
        after = change(before)
        write_parquet(after, out / path)
        if (manifest := manifest_of(out))[
            "records"
        ] == before.height != after.height and "chunks" not in path:
            manifest["records"] = after.height
            readme = out / "share" / "README.md"
            old, new = f"{before.height:,} records, anonymized", f"{after.height:,} records, anonymized"
            readme.write_text(readme.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
            put_manifest(out, manifest)

    return apply


def in_text(path: str, change: Callable[[str], str]) -> Change:
    """A change of a text file."""

    def apply(out: Path) -> None:
        file = out / path
        file.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")

    return apply


def both(*changes: Change) -> Change:
    """Several changes, one after the other."""

    def apply(out: Path) -> None:
        for change in changes:
            change(out)

    return apply


def at(column: pl.Series, row: int, value: Any) -> pl.Series:
    """The column with another value in one row."""
    values = column.to_list()
    values[row] = value
    return pl.Series(column.name, values, column.dtype)


def having(table: pl.DataFrame, column: str, row: int, value: Any) -> pl.DataFrame:
    """The table with another value in one cell."""
    return table.with_columns(at(table[column], row, value))


def swapped(table: pl.DataFrame, columns: list[str], a: int, b: int) -> pl.DataFrame:
    """The table with the values of some columns exchanged between two rows."""
    for column in columns:
        first, second = table[column][a], table[column][b]
        as_value = [each.to_list() if isinstance(each, pl.Series) else each for each in (first, second)]
        table = having(having(table, column, a, as_value[1]), column, b, as_value[0])
    return table


def renumbered(table: pl.DataFrame, order: list[int], number: str = "record") -> pl.DataFrame:
    """Rows of a file numbered 0 … n-1 in the order given (places of the rows)."""
    taken = table[order]
    return taken.with_columns(pl.Series(number, range(taken.height), dtype=pl.Int64))
