"""Mutations that follow from what any release has: every file, column, row and byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from tests.mutations.copies import (
    Change,
    Kinds,
    Mutation,
    csvs,
    having,
    in_table,
    in_text,
    parquets,
    swapped,
)

UNSEEN_CODE = "999.9"
"""A code that nobody has."""

NUMBERS = frozenset({"record", "node", "chunk", "subrecord", "position", "visit", "parent"})
"""Columns that number things and hold no content."""


def content_kinds(out: Path) -> Kinds:
    """Any value of any column altered; rows lost, doubled, inserted."""
    for path in parquets(out):
        table = pl.read_parquet(out / path)
        name = path.rsplit("/", 1)[1]
        for column, kind in table.schema.items():
            for what, change in of_column(table, column, kind):
                yield Mutation(f"{name}: {column}: {what}", "content", in_table(path, change))
        for what, change in of_rows(table):
            yield Mutation(f"{name}: {what}", "content", in_table(path, change))
    for path in csvs(out):
        name = path.rsplit("/", 1)[1]
        for what, edit in of_tree((out / path).read_text(encoding="utf-8").splitlines()):
            yield Mutation(f"{name}: {what}", "content", in_text(path, edit))


Edit = tuple[str, Callable[[pl.DataFrame], pl.DataFrame]]


def of_column(table: pl.DataFrame, column: str, kind: pl.DataType) -> Iterator[Edit]:
    """What can be done to one column."""
    rows = table.height
    if isinstance(kind, pl.List):
        yield from of_lists(table, column)
        return
    values = table[column]
    known = values.drop_nulls().unique().sort()
    first = next(row for row in range(rows) if values[row] is not None)
    other = next((row for row in range(rows) if values[row] not in (values[first], None)), None)
    yield "one value missing", lambda t: having(t, column, first, None)
    if column not in NUMBERS and other is not None:
        yield "two rows exchange it", lambda t: swapped(t, [column], first, other)
        yield (
            "every row has the next row's",
            lambda t: t.with_columns(pl.concat([t[column][1:], t[column][:1]])),
        )
        yield (
            "all rows have the most frequent",
            lambda t: t.with_columns(pl.lit(values.mode()[0], dtype=kind).alias(column)),
        )
    if kind == pl.String:
        if other is not None:
            yield "one value is another", lambda t: having(t, column, first, values[other])
        yield "one value is unknown", lambda t: having(t, column, first, "p001")
        yield "one value is empty", lambda t: having(t, column, first, "")
        yield (
            "a value renamed everywhere",
            lambda t: t.with_columns(pl.col(column).replace({known[0]: UNSEEN_CODE})),
        )
        if len(known) > 1:
            yield (
                "two values are one everywhere",
                lambda t: t.with_columns(pl.col(column).replace({known[0]: known[1]})),
            )
    elif kind.is_numeric():
        step = 1 if kind.is_integer() else 0.37
        yield "one value is larger", lambda t: having(t, column, first, values[first] + step)
        yield "one value is beyond the others", lambda t: having(t, column, first, known[-1] * 2 + 1)
        yield "one value is negative", lambda t: having(t, column, first, -1)
        if column not in NUMBERS:
            yield "every value is larger", lambda t: t.with_columns(pl.col(column) + step)
            yield "two columns' order reversed", lambda t: t.with_columns(pl.col(column).reverse())
    elif kind == pl.Boolean:
        yield "one value is the opposite", lambda t: having(t, column, first, not values[first])
        yield "every value is the opposite", lambda t: t.with_columns(~pl.col(column))


def of_lists(table: pl.DataFrame, column: str) -> Iterator[Edit]:
    """What can be done to a column of code lists."""
    lists = [list(each) for each in table[column].to_list()]
    codes = sorted({code for each in lists for code in each})
    filled = [row for row, each in enumerate(lists) if each]
    long = next((row for row in filled if len(lists[row]) > 1), filled[0])
    lone = next((row for row in filled if len(lists[row]) == 1), filled[0])
    rarest = min(codes, key=lambda code: (sum(code in each for each in lists), code))
    most = max(codes, key=lambda code: (sum(code in each for each in lists), code))

    def by(row: int, new: Callable[[list[str]], list[str]]) -> Callable[[pl.DataFrame], pl.DataFrame]:
        return lambda t: having(t, column, row, new(list(t[column][row])))

    def everywhere(new: Callable[[list[str]], list[str]]) -> Callable[[pl.DataFrame], pl.DataFrame]:
        return lambda t: t.with_columns(
            pl.Series(column, [new(list(e)) for e in t[column]], t.schema[column])
        )

    absent = next((code for code in codes if code not in lists[long]), UNSEEN_CODE)
    yield "a code lost", by(long, lambda e: e[1:])
    yield "a row's only code lost", by(lone, lambda e: [])
    yield "a code added", by(long, lambda e: sorted([*e, absent]))
    yield "the rarest code added", by(lone, lambda e: sorted([*e, rarest] if rarest not in e else [*e, most]))
    yield "an unknown code added", by(long, lambda e: sorted([*e, UNSEEN_CODE]))
    yield "a code is another", by(long, lambda e: sorted([absent, *e[1:]]))
    yield "a code is unknown", by(long, lambda e: sorted([UNSEEN_CODE, *e[1:]]))
    yield "a code twice", by(long, lambda e: sorted([*e, e[0]]))
    yield "codes in another order", by(long, lambda e: e[::-1])
    yield "a null among the codes", by(long, lambda e: [*e, None])  # type: ignore[list-item]
    yield "two rows exchange it", lambda t: swapped(t, [column], long, lone)
    yield "all rows have the next row's", lambda t: t.with_columns(pl.concat([t[column][1:], t[column][:1]]))
    yield "the rarest code gone everywhere", everywhere(lambda e: [c for c in e if c != rarest])
    yield "the most frequent code gone everywhere", everywhere(lambda e: [c for c in e if c != most])
    yield (
        "the rarest code renamed everywhere",
        everywhere(lambda e: sorted(UNSEEN_CODE if c == rarest else c for c in e)),
    )
    yield (
        "two codes are one everywhere",
        everywhere(lambda e: sorted({rarest if c == most else c for c in e})),
    )
    yield (
        "two codes exchanged everywhere",
        everywhere(lambda e: sorted({most: rarest, rarest: most}.get(c, c) for c in e)),
    )
    yield "every list cut to one code", everywhere(lambda e: e[:1])


def of_rows(table: pl.DataFrame) -> Iterator[Edit]:
    """What can be done to the rows of a file."""
    n = table.height
    number = next(
        (name for name in ("record", "node") if name in table.columns and table[name].n_unique() == n), None
    )

    def numbered(t: pl.DataFrame) -> pl.DataFrame:
        return t if number is None else t.with_columns(pl.Series(number, range(t.height), dtype=pl.Int64))

    yield "the last row lost", lambda t: numbered(t.head(n - 1))
    yield "the first row lost", lambda t: numbered(t.tail(n - 1))
    yield "a tenth of the rows lost", lambda t: numbered(t.gather_every(1).filter(pl.int_range(n) % 10 != 3))
    yield "half of the rows lost", lambda t: numbered(t.head(n // 2))
    yield "a row doubled", lambda t: numbered(pl.concat([t, t[n // 2 : n // 2 + 1]]))
    yield "every row doubled", lambda t: numbered(pl.concat([t, t]))
    yield "a row replaced by another", lambda t: numbered(pl.concat([t.head(n - 1), t[:1]]))
    if number is not None:
        yield "a row doubled with its number", lambda t: pl.concat([t, t[n // 2 : n // 2 + 1]])
        yield "a row lost, its number too", lambda t: t.head(n - 1)


def of_tree(lines: list[str]) -> Iterator[tuple[str, Callable[[str], str]]]:
    """What can be done to a hierarchy of `node,parent`: its text lines."""
    head, rows = lines[0], lines[1:]

    def text(new: Sequence[str]) -> Callable[[str], str]:
        return lambda _: "\n".join([head, *new]) + "\n"

    last = rows[-1].split(",")
    yield "a node lost", text(rows[:-1])
    yield "a node more", text([*rows, f'"{UNSEEN_CODE}",{last[1]}'])
    yield "a node renamed", text([*rows[:-1], f'"{UNSEEN_CODE}",{last[1]}'])
    yield "a node under another parent", text([*rows[:-1], f"{last[0]},{rows[1].split(',')[0]}"])
    yield "a node twice", text([*rows, rows[-1]])
    yield (
        "every node under the root",
        text([rows[0], *(f"{row.split(',')[0]},{rows[0].split(',')[0]}" for row in rows[1:])]),
    )
    yield "rows reversed", text(rows[::-1])
    yield "no rows", text([])


def metadata_kinds(out: Path) -> Kinds:
    """Riders in the bytes of data files, and files or folders more or less."""

    def again(path: str, **options: Any) -> Change:
        chosen = {
            "compression": "zstd",
            "store_schema": False,
            "version": "2.6",
            "row_group_size": 1 << 20,
            **options,
        }
        return lambda copy: pq.write_table(pq.read_table(copy / path), copy / path, **chosen)

    def tagged(path: str) -> Change:
        return lambda copy: pq.write_table(
            pq.read_table(copy / path).replace_schema_metadata({"p001": "G1"}),
            copy / path,
            compression="zstd",
        )

    def gap(path: str) -> Change:
        def apply(copy: Path) -> None:
            content = (copy / path).read_bytes()
            footer = int.from_bytes(content[-8:-4], "little") + 8
            (copy / path).write_bytes(content[:-footer] + b"p001" * 250 + content[-footer:])

        return apply

    def further(path: str) -> Change:
        def apply(copy: Path) -> None:
            table = pq.read_table(copy / path)
            pid = pa.array([f"p{row:03d}" for row in range(table.num_rows)])
            from tests.forging import write_parquet

            write_parquet(table.append_column("pid", pid), copy / path)

        return apply

    for path in parquets(out):
        name = path.rsplit("/", 1)[1]
        for what, change in (
            ("key-value metadata", tagged(path)),
            ("Arrow's schema kept", again(path, store_schema=True)),
            ("another compression", again(path, compression="snappy")),
            ("small row groups", again(path, row_group_size=2)),
            ("no statistics", again(path, write_statistics=False)),
            ("no dictionaries", again(path, use_dictionary=False)),
            ("bytes before the footer", gap(path)),
            ("a column of identifiers more", further(path)),
        ):
            yield Mutation(f"{name}: {what}", "metadata", change)
    data = "share/data"
    yield Mutation("a file more", "metadata", lambda c: (c / data / "linkage.csv").write_text("0,p001\n"))
    yield Mutation("a folder with a name", "metadata", lambda c: (c / data / "p001").mkdir())
    yield Mutation("a link", "metadata", lambda c: (c / data / "p001").symlink_to("/"))
    yield Mutation("a hidden file", "metadata", lambda c: (c / "share" / ".p001").write_text("p001"))
    yield Mutation("a data file missing", "metadata", lambda c: next((c / data).iterdir()).unlink())


def random_kinds(out: Path, count: int, seed: int = 1) -> Kinds:
    """Random edits: a byte of a data file, a value of a cell, two rows exchanged."""
    draws = np.random.Generator(np.random.Philox(key=seed))
    files = parquets(out)
    everything = sorted(
        path.relative_to(out).as_posix() for path in (out / "share").rglob("*") if path.is_file()
    )
    for number in range(count):
        kind = number % 3
        path = str(draws.choice(everything if kind == 0 else files))
        name = path.rsplit("/", 1)[1]
        if kind == 0:
            place, flip = int(draws.integers((out / path).stat().st_size)), int(draws.integers(1, 256))
            yield Mutation(
                f"random {number}: byte {place} of {name}",
                "random",
                _byte(path, place, flip),
                restated="data/" in path,
            )
            continue
        table = pl.read_parquet(out / path)
        a, b = (int(each) for each in draws.choice(table.height, 2, replace=False))
        if kind == 1:
            column = str(draws.choice(table.columns))
            value = table[column][b]
            value = value.to_list() if isinstance(value, pl.Series) else value
            yield Mutation(
                f"random {number}: {name}: {column} of row {a} is row {b}'s",
                "random",
                in_table(path, lambda t, c=column, r=a, v=value: having(t, c, r, v)),
            )
        else:
            columns = [
                each for each in table.columns if each not in ("record", "position", "visit", "subrecord")
            ]
            columns = columns or table.columns
            yield Mutation(
                f"random {number}: {name}: rows {a} and {b} exchanged",
                "random",
                in_table(path, lambda t, c=columns, x=a, y=b: swapped(t, c, x, y)),
            )


def _byte(path: str, place: int, flip: int) -> Change:
    def apply(out: Path) -> None:
        content = bytearray((out / path).read_bytes())
        content[place] ^= flip
        (out / path).write_bytes(bytes(content))

    return apply
