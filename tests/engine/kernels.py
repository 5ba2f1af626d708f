"""Kernels for the tests of the engines."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

SCHEMA = pa.schema(
    [("group", pa.int64()), ("place", pa.int64()), ("value", pa.int64()), ("names", pa.list_(pa.string()))]
)


def echo(rows: pa.Table) -> pa.Table:
    """Every row as it came, with its place in the group; groups that are divisible by five give nothing."""
    if rows["group"][0].as_py() % 5 == 0:
        return SCHEMA.empty_table()
    names = [[name, name] if name is not None else None for name in rows["name"].to_pylist()]
    columns = [
        rows["group"],
        pa.array(range(rows.num_rows)),
        rows["value"],
        pa.array(names, SCHEMA.field("names").type),
    ]
    return pa.table(columns, schema=SCHEMA)


SUMS = pa.schema([("sum", pa.int64())])


def total(rows: pa.Table) -> pa.Table:
    """The sum of a group's values, without its key."""
    return pa.table({"sum": pa.array([pc.sum(rows["value"]).as_py() or 0], pa.int64())})


def types(rows: pa.Table) -> pa.Table:
    """The types in which the rows arrive."""
    return pa.table({"types": [",".join(str(field.type) for field in rows.schema)]})
