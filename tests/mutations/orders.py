"""Orders that tell: records numbered, or rows put, by the source, by custody's groups, or by what the share shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
from tests.forging import write_parquet
from tests.mutations.copies import Change, Kinds, Mutation, in_table, parquets

NUMBERS = frozenset({"record", "node"})

Places = list[int]
"""Records in a new order: their old numbers."""


def order_kinds(out: Path, known: dict[str, pl.Series], files: dict[str, str]) -> Kinds:
    """Orders of the files' rows and of the records' numbers.

    known : column -> what custody or source knows of each record, by its number (`share: …` for what the share shows).
    files : path of each file with a `record` column -> the custody files that follow the numbers.
    """
    for path in parquets(out):
        table = pl.read_parquet(out / path)
        name = path.rsplit("/", 1)[1]
        if NUMBERS & set(table.columns):  # else the reverse of a random order is a random order
            yield Mutation(
                f"{name}: rows reversed", "order", in_table(path, lambda t: t.reverse()), tells="share"
            )
        for column, kind in table.schema.items():
            keyed = pl.col(column).list.join(",") if isinstance(kind, pl.List) else pl.col(column)
            ordered = table.with_columns(key=keyed).sort("key", maintain_order=True).drop("key")
            if not ordered.equals(table):
                yield Mutation(
                    f"{name}: rows sorted by {column}",
                    "order",
                    in_table(
                        path,
                        lambda t, k=keyed: t.with_columns(key=k).sort("key", maintain_order=True).drop("key"),
                    ),
                    tells="share",
                )
    for column, values in known.items():
        tells = "share" if column.startswith("share: ") else "source"
        name = column.removeprefix("share: ")
        if isinstance(values.dtype, pl.List):
            values = values.list.join(",")
        for what, order in by(values):
            yield Mutation(f"records numbered by {name}{what}", "order", renumber(files, order), tells=tells)


def by(values: pl.Series) -> Iterator[tuple[str, Places]]:
    """By these values, rising, falling, dealt out in turn, and sorted but for a tenth."""
    rising = values.arg_sort().to_list()
    yield "", rising
    yield ", falling", rising[::-1]
    yield ", dealt out in turn", [rising[i] for start in range(7) for i in range(start, len(rising), 7)]
    kept = set(range(0, len(rising), 10))
    moved = [rising[i] for i in sorted(kept, key=lambda i: (i * 7919) % 104729)]
    spare = iter(moved)
    yield ", but for a tenth", [next(spare) if i in kept else each for i, each in enumerate(rising)]


def renumber(files: dict[str, str], order: Places) -> Change:
    """Number the records by their place in `order`, in share and custody, rows in the order of the new numbers."""

    def apply(out: Path) -> None:
        new = pl.DataFrame(
            {"record": order, "new": range(len(order))}, schema={"record": pl.Int64, "new": pl.Int64}
        )
        for path in [*files, *(each for each in files.values() if each)]:
            for one in path.split(","):
                table = pl.read_parquet(out / one)
                if "record" not in table.columns:  # a table of rows, whose place is their number
                    write_parquet(table[order], out / one)
                    continue
                numbered = table.join(new, on="record", how="left", maintain_order="left").with_columns(
                    record=pl.col("new")
                )
                rest = [name for name in ("position", "visit", "code") if name in table.columns]
                write_parquet(numbered.drop("new").select(table.columns).sort("record", *rest), out / one)

    return apply


Renumber = Callable[[Path], None]
