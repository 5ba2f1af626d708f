"""Mutations of the payload of disassociated chunks: values in other clusters, orders that say whose they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from tests.forging import write_parquet
from tests.mutations.copies import Change, Kinds, Mutation, in_table
from tests.mutations.definitions import Truth

FILE = "share/data/payload.parquet"


def payload_kinds(out: Path, truth: Truth, names: list[str]) -> Kinds:
    """Where values are, and in what order."""
    own = owners(truth, names)
    shuffled = own.sample(fraction=1, shuffle=True, seed=4)
    for name, change in {
        "two values exchanged between clusters": in_table(FILE, exchanged),
        "two clusters of a size exchange their values": in_table(FILE, lambda t: moved(t, pairs_of(t))),
        "every cluster has the values of the next of its size": in_table(
            FILE, lambda t: moved(t, rings_of(t))
        ),
        "a column's values shuffled over all clusters": in_table(FILE, shuffled_over_all),
        "a column's values are the next column's": in_table(FILE, lambda t: columns_exchanged(t, names)),
    }.items():
        yield Mutation(f"payload: {name}", "guarantee", change)
    for name, change, tells in (
        ("sorted inside clusters", arranged(names, lambda t: t.sort("value", nulls_last=True)), "share"),
        ("sorted inside clusters, falling", arranged(names, lambda t: t.sort("value", descending=True)), "share"),
        ("sorted inside nine clusters of ten", arranged(names, most_sorted), "share"),
        ("in the order of the source", put(own, names), "source"),
        ("against the order of the source", put(own.reverse(), names), "source"),
        ("the columns of a cluster in one order", put(shuffled, names), "source"),
        ("in the order of a chunk's subrecords", in_order_of_chunks(own, truth, names), "source"),
        ("columns in another order", in_table(FILE, lambda t: other_columns(t, names)), "share"),
        ("columns in turn", in_table(FILE, in_turn), "share"),
    ):  # fmt: skip
        yield Mutation(f"payload: {name}", "order", change, tells=tells)


def owners(truth: Truth, names: list[str]) -> pl.DataFrame:
    """`patient`, `node`, payload of every patient, in the source's order."""
    people = truth.case.cohort.patients
    assert people is not None
    order = pl.DataFrame({"patient": list(truth.held)})
    clusters = truth.custody("clusters.parquet")
    found = order.join(clusters, on="patient", maintain_order="left")
    return found.join(people.select("patient", *names), on="patient", maintain_order="left")


def payload_truth(out: Path, truth: Truth, names: list[str]) -> set[str]:
    """Every cluster has the values of its patients."""
    table = pl.read_parquet(out / FILE)
    found, wanted = table.rows(), rows_of(owners(truth, names), names).rows()
    return set() if sorted(found, key=repr) == sorted(wanted, key=repr) else {"payload"}


def rows_of(own: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """The payload file of patients in their order."""
    place = pl.col("column").replace_strict({name: i for i, name in enumerate(names)}, return_dtype=pl.Int64)
    long = own.with_columns(pl.col(names).cast(pl.String)).unpivot(
        names, index="node", variable_name="column", value_name="value"
    )
    return long.sort("node", place, maintain_order=True)


def put(own: pl.DataFrame, names: list[str]) -> Change:
    return lambda copy: write_parquet(rows_of(own, names), copy / FILE)


def arranged(names: list[str], change: Callable[[pl.DataFrame], pl.DataFrame]) -> Change:
    """Rows in the order of `change`, put back by cluster and column."""
    place = pl.col("column").replace_strict({name: i for i, name in enumerate(names)}, return_dtype=pl.Int64)
    return in_table(FILE, lambda t: change(t).sort("node", place, maintain_order=True))


def most_sorted(table: pl.DataFrame) -> pl.DataFrame:
    few = table.filter(pl.col("node") % 10 == 0)
    return pl.concat([few, table.filter(pl.col("node") % 10 != 0).sort("value", nulls_last=True)])


def with_values(table: pl.DataFrame, values: list[Any]) -> pl.DataFrame:
    return table.with_columns(value=pl.Series(values, dtype=table.schema["value"]))


def exchanged(table: pl.DataFrame) -> pl.DataFrame:
    values, first = table["value"].to_list(), table.row(0)
    other = next(
        place
        for place, (node, column, value) in enumerate(table.iter_rows())
        if node != first[0] and column == first[1] and value != first[2]
    )
    values[0], values[other] = values[other], values[0]
    return with_values(table, values)


def sizes_of(table: pl.DataFrame) -> dict[int, list[int]]:
    """Size -> the clusters of it."""
    found: dict[int, list[int]] = {}
    for node, size in table.group_by("node").len().sort("node").iter_rows():
        found.setdefault(size, []).append(node)
    return found


def pairs_of(table: pl.DataFrame) -> dict[int, int]:
    """Two clusters of one size, each to the other."""
    a, b = next(nodes for nodes in sizes_of(table).values() if len(nodes) > 1)[:2]
    return {a: b, b: a}


def rings_of(table: pl.DataFrame) -> dict[int, int]:
    """Each cluster to the next of its size."""
    rings = sizes_of(table).values()
    return {a: b for nodes in rings for a, b in zip(nodes, [*nodes[1:], nodes[0]], strict=True)}


def moved(table: pl.DataFrame, to: dict[int, int]) -> pl.DataFrame:
    node = pl.col("node").replace(to)
    return table.with_columns(node).sort("node", maintain_order=True)


def shuffled_over_all(table: pl.DataFrame) -> pl.DataFrame:
    mine = pl.col("column") == table["column"][0]
    new = table.filter(mine)["value"].shuffle(seed=3).to_list()
    values = [
        new.pop() if column == table["column"][0] else value
        for column, value in table.select("column", "value").iter_rows()
    ]
    return with_values(table, values)


def columns_exchanged(table: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Under the name of one column the values of the other."""
    order = dict(zip(names, [*names[1:], names[0]], strict=True))
    place = pl.col("column").replace_strict({name: i for i, name in enumerate(names)}, return_dtype=pl.Int64)
    return table.with_columns(pl.col("column").replace(order)).sort("node", place, maintain_order=True)


def other_columns(table: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    place = pl.col("column").replace_strict({name: -i for i, name in enumerate(names)}, return_dtype=pl.Int64)
    return table.sort("node", place, maintain_order=True)


def in_turn(table: pl.DataFrame) -> pl.DataFrame:
    """The first value of each column, then the second of each."""
    number = pl.int_range(pl.len()).over("node", "column").alias("number")
    return table.with_columns(number).sort("node", "number", maintain_order=True).drop("number")


def in_order_of_chunks(own: pl.DataFrame, truth: Truth, names: list[str]) -> Change:
    """Each cluster's values in the order of its first chunk's subrecords, each of a patient with their codes."""
    chunks = pl.read_parquet(truth.out / "share/data/chunks.parquet").filter(pl.col("kind") == "record")
    order: list[int] = []
    for (node,), part in chunks.sort("subrecord").group_by("node", maintain_order=True):
        first = part.filter(pl.col("chunk") == part["chunk"].min())
        domain = {code for codes in first["codes"] for code in codes}
        left = np.flatnonzero((own["node"] == node).to_numpy()).tolist()
        for codes in first["codes"].to_list():
            place = next(at for at in left if mine(truth, own["patient"][at]) & domain == set(codes))
            left.remove(place)
            order.append(place)
    rest = sorted(set(range(own.height)) - set(order))
    return put(own[[*order, *rest]], names)


def mine(truth: Truth, patient: Any) -> set[str]:
    return {code for _, code, _ in truth.held[patient]}
