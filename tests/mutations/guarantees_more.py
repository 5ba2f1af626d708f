"""Mutations that aim at the guarantees of trajectories, visits, condensed and k-anonymous tables (see `guarantees`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from tests.forging import write_parquet
from tests.mutations.copies import Change, Kinds, in_table, manifest_of
from tests.mutations.guarantees import DATA, Rows, exchange, identified, in_rows, iterate, named

TABLE = DATA + "table.parquet"


def trajectories_kinds(out: Path) -> Kinds:
    rows = pl.read_parquet(out / DATA / "trajectories.parquet").to_dicts()
    records = {record: part for (record,), part in iterate(rows, "record")}
    k = manifest_of(out)["guarantee"]["k"]
    shapes: dict[Any, list[int]] = {}
    for record, part in records.items():
        shapes.setdefault(tuple((r["code"], r["age"]) for r in part), []).append(record)
    groups = sorted(shapes.values(), key=len)
    long = max(groups, key=lambda g: len(records[g[0]]))
    first, second = groups[0], groups[1] if groups[1] is not long else groups[2]

    def to_shape(members: list[int], shape: int | None) -> Callable[[Rows], Rows]:
        """Some records are published as another is; None: as nothing."""

        def change(rows: Rows) -> Rows:
            part = [] if shape is None else [r for r in rows if r["record"] == shape]
            rest = [r for r in rows if r["record"] not in members]
            more = [{**r, "record": record} for record in members for r in part]
            return sorted([*rest, *more], key=lambda r: (r["record"], r["position"]))

        return change

    def edit(members: list[int], change: Callable[[Rows], Rows]) -> Callable[[Rows], Rows]:
        def apply(rows: Rows) -> Rows:
            found: Rows = []
            for (record,), part in iterate(rows, "record"):
                new = change([dict(r) for r in part]) if record in members else part
                found += [{**r, "position": n} for n, r in enumerate(new)]
            return found

        return apply

    tree = [line.split(",") for line in (out / DATA / "code_hierarchy.csv").read_text().splitlines()[1:]]
    parent = {node.strip('"'): above.strip('"') for node, above in tree}
    root = next(node for node, above in parent.items() if not above)
    leaf = next(node for node in parent if node not in parent.values() and node != root)

    def cell(name: str, value: Callable[[Any], Any]) -> Callable[[Rows], Rows]:
        return lambda part: [{**part[0], name: value(part[0][name])}, *part[1:]]

    def file(change: Callable[[Rows], Rows]) -> Change:
        return in_rows("trajectories.parquet", change)

    changes: dict[str, Change] = {
        "one record published as another group": file(to_shape(first[:1], second[0])),
        "a group published as another": file(to_shape(first, second[0])),
        "two groups exchanged": file(lambda rows: to_shape(second, None)(rows)),
        "a record without its pairs": file(to_shape(long[:1], None)),
        "a group without its pairs": file(to_shape(long, None)),
        "every record without its pairs": file(lambda rows: []),
        "a record with another's pairs too": file(edit(first[:1], lambda part: [*part, *part])),
        "a pair of a record lost": file(edit(long[:1], lambda part: part[1:])),
        "a pair of a group lost": file(edit(long, lambda part: part[1:])),
        "a pair of k - 1 records lost": file(edit(long[: k - 1], lambda part: part[1:])),
        "a group's pairs doubled": file(edit(long, lambda part: [r for r in part for _ in (0, 1)])),
        "pairs of a record reversed": file(edit(long[:1], lambda part: part[::-1])),
        "pairs of a group reversed": file(edit(long, lambda part: part[::-1])),
        "a record's code more particular": file(edit(long[:1], cell("code", lambda _: leaf))),
        "a group's code more particular": file(edit(long, cell("code", lambda _: leaf))),
        "a group's code the root": file(edit(long, cell("code", lambda _: root))),
        "a record's code the root": file(edit(long[:1], cell("code", lambda _: root))),
        "a group's age another": file(edit(long, cell("age", lambda _: "1"))),
        "a record's age another": file(edit(long[:1], cell("age", lambda _: "1"))),
        "a group's age the greatest": file(edit(long, cell("age", lambda _: "127"))),
        "an exact age in a record": file(edit(long[:1], cell("age", lambda age: age.split("-")[0]))),
        "an exact age in a group": file(edit(long, cell("age", lambda age: age.split("-")[0]))),
        "an unknown age": file(edit(long, cell("age", lambda _: "33-99"))),
        "an age of words": file(edit(long, cell("age", lambda _: "p001"))),
        "two records exchange payload": in_rows("records.parquet", lambda r: exchange(r, *unlike(r), "snp")),
        "two records of a group exchange payload": in_rows(
            "records.parquet", lambda r: exchange(r, *unlike(r, long), "snp")
        ),
        "identifiers as payload": identified(DATA + "records.parquet"),
    }
    yield from named("guarantee", changes)


def unlike(rows: Rows, among: list[int] | None = None) -> tuple[int, int]:
    """Two records with different payload."""
    places = range(len(rows)) if among is None else among
    first = places[0]
    return first, next((place for place in places if rows[place]["snp"] != rows[first]["snp"]), first)


def visits_kinds(out: Path) -> Kinds:
    rows = pl.read_parquet(out / DATA / "visits.parquet").to_dicts()
    k, parameters = manifest_of(out)["guarantee"]["k"], manifest_of(out)["parameters"]
    holders: dict[Any, list[int]] = {}
    for place, row in enumerate(rows):
        holders.setdefault(tuple(row["codes"]), []).append(place)
    small = min(holders.values(), key=lambda places: (len({rows[p]["record"] for p in places}), places))
    large = max(range(len(rows)), key=lambda place: len(rows[place]["codes"]))
    lone = next(place for place, row in enumerate(rows) if len(row["codes"]) == 1)
    codes = sorted({code for row in rows for code in row["codes"]})
    spare = next((code for code in codes if code not in rows[large]["codes"]), "999.9")

    def settled(rows: Rows) -> Rows:
        """Visits without codes have no row; visits are numbered anew."""
        found: Rows = []
        for _, part in iterate([r for r in rows if r["codes"]], "record"):
            found += [{**row, "visit": n} for n, row in enumerate(part)]
        return found

    def at(places: list[int], change: Callable[[list[str]], list[str]]) -> Change:
        def apply(rows: Rows) -> Rows:
            for place in places:
                rows[place]["codes"] = sorted(set(change(rows[place]["codes"])))
            return settled(rows)

        return in_rows("visits.parquet", apply)

    def moved(rows: Rows) -> Rows:
        rows[small[0]]["record"] = (
            rows[large]["record"] if rows[small[0]]["record"] != rows[large]["record"] else 0
        )
        return settled(sorted(rows, key=lambda r: r["record"]))

    def united(rows: Rows) -> Rows:
        part = next(p for _, p in iterate(rows, "record") if len(p) > 1 or parameters.get("merge_visits"))
        part[0]["codes"] = sorted(
            {code for row in part for code in row["codes"]} | ({spare} if len(part) == 1 else set())
        )
        for row in part[1:]:
            row["codes"] = []
        return settled(rows)

    def divided(rows: Rows) -> Rows:
        row = rows[large]
        more = {**row, "codes": row["codes"][1:]}
        row["codes"] = row["codes"][:1]
        return settled(sorted([*rows, more], key=lambda r: (r["record"], r["visit"])))

    def doubled(rows: Rows) -> Rows:
        return settled(sorted([*rows, dict(rows[large])], key=lambda r: r["record"]))

    changes: dict[str, Change] = {
        "a set with k - 1 records": at(small[k - 1 :] or small[:1], lambda c: []),
        "a visit lost": at([large], lambda c: []),
        "a visit of one code lost": at([lone], lambda c: []),
        "every visit of a set lost": at(small, lambda c: []),
        "every visit lost": in_rows("visits.parquet", lambda rows: []),
        "a code lost from the largest visit": at([large], lambda c: c[1:]),
        "a code more in the largest visit": at([large], lambda c: [*c, spare]),
        "a code more in a visit of one code": at([lone], lambda c: [*c, *rows[large]["codes"]]),
        "a code of a visit another": at([large], lambda c: [spare, *c[1:]]),
        "a code of every visit of a set another": at(small, lambda c: [spare, *c[1:]]),
        "a visit moved to another record": in_rows("visits.parquet", moved),
        "visits of a record put together": in_rows("visits.parquet", united),
        "a visit divided": in_rows("visits.parquet", divided),
        "a visit doubled": in_rows("visits.parquet", doubled),
        "two visits exchanged": in_rows("visits.parquet", lambda r: exchange(r, large, lone, "codes")),
        "two records' visits exchanged": in_rows("visits.parquet", exchange_records),
        "every visit one code": in_rows(
            "visits.parquet", lambda rows: settled([{**r, "codes": r["codes"][:1]} for r in rows])
        ),
    }
    if "payload" in parameters:
        changes["two records exchange payload"] = in_rows(
            "records.parquet", lambda r: exchange(r, *unlike(r), "snp")
        )
        changes["identifiers as payload"] = identified(DATA + "records.parquet")
    yield from named("guarantee", changes)


def exchange_records(rows: Rows) -> Rows:
    """The visits of two records that differ change places."""
    parts = [part for _, part in iterate(rows, "record")]
    a = parts[0]
    b = next(part for part in parts[1:] if [r["codes"] for r in part] != [r["codes"] for r in a])
    one, other = a[0]["record"], b[0]["record"]
    for row in a:
        row["record"] = other
    for row in b:
        row["record"] = one
    return sorted(rows, key=lambda r: (r["record"], r["visit"]))


def table_kinds(out: Path, original: pl.DataFrame) -> Kinds:
    """Source rows among the released ones, near copies, columns in the source's order, groups undone."""
    table = pl.read_parquet(out / TABLE)
    parameters = manifest_of(out)["parameters"]
    fixed = [*(parameters.get("strata") or []), *(parameters.get("time") or [])]
    free = [name for name in table.columns if name not in fixed]
    numbers = [name for name in free if table.schema[name].is_numeric()]
    source_rows = pl.read_parquet(out / "custody/data/source_rows.parquet")
    released = pl.read_parquet(out / "custody/data/released_rows.parquet")
    own = original.select(table.columns)

    def put(frame: pl.DataFrame) -> Change:
        return lambda copy: write_parquet(frame, copy / TABLE)

    def of_groups(rows: pl.DataFrame) -> pl.DataFrame:
        """Source rows in the places of their groups' released rows."""
        members = source_rows.sort("group", "row")["row"].to_numpy() - 1
        places = released.sort("group", "record")["record"].to_numpy()
        order = pl.DataFrame({"record": places, "row": members}).sort("record")["row"]
        return rows[order.to_numpy()]

    placed = of_groups(own)
    step = {name: (1 if table.schema[name].is_integer() else 0.01) for name in numbers}
    near = placed.with_columns(pl.col(numbers[-1]) + step[numbers[-1]])
    swap = table.clone()
    half = table.height // 2
    changes: dict[str, Change] = {
        "all rows are the source's": put(placed),
        "all rows are the source's, in its order": put(own),
        "all rows are the source's but for 1 in a column": put(near),
        "all rows are the source's but for 1 in two columns": put(
            near.with_columns(pl.col(numbers[0]) + step[numbers[0]])
        ),
        "a tenth of the rows are the source's": put(
            pl.concat([placed[: table.height // 10], table[table.height // 10 :]])
        ),
        "a twentieth of the rows are the source's": put(
            pl.concat([placed[: table.height // 20], table[table.height // 20 :]])
        ),
        "half of the rows are the source's": put(pl.concat([placed[:half], table[half:]])),
        "two whole rows of the source": put(pl.concat([placed[:2], table[2:]])),
        "columns shuffled over the whole table": put(
            swap.with_columns(pl.col(name).shuffle(seed=n) for n, name in enumerate(table.columns))
        ),
        "one column shuffled over the whole table": put(table.with_columns(pl.col(free[0]).shuffle(seed=1))),
        "every number halved": put(
            table.with_columns((pl.col(name) / 2).cast(table.schema[name]) for name in numbers)
        ),
        "rows of two groups exchange a value": in_table(TABLE, lambda t: two(t, released, free[0])),
        "the most frequent row everywhere": put(pl.concat([table[:1]] * table.height)),
    }
    for name in free:
        order = released.with_columns(key=pl.col("group")).sort("key")["record"]
        changes[f"{name}: the source's, row by row in the groups"] = put(table.with_columns(placed[name]))
        changes[f"{name}: the source's column in its order"] = put(table.with_columns(own[name]))
        changes[f"{name}: sorted over the whole table"] = put(table.with_columns(table[name].sort()))
        changes[f"{name}: exchanged between neighbouring groups"] = put(across(table, order, name))
    names = parameters.get("quasi_identifiers")
    if names:
        k = manifest_of(out)["guarantee"]["k"]
        first = table.group_by(names, maintain_order=True).len()
        cls = table.join(first[:1].select(names), on=names, how="semi", nulls_equal=True)
        inside = table.with_row_index().join(first[:1].select(names), on=names, how="semi", nulls_equal=True)[
            "index"
        ]
        changes["a class of k - 1 rows"] = put(
            table.with_columns(
                pl.when(pl.int_range(pl.len()).is_in(inside[: len(inside) - k + 1].implode()))
                .then(pl.lit(table[names[0]].max()) + 1)
                .otherwise(pl.col(names[0]))
                .alias(names[0])
            )
        )
        changes["two classes made one"] = put(
            table.with_columns(
                pl.when(pl.int_range(pl.len()).is_in(inside.implode()))
                .then(pl.lit(first[names[0]][1]))
                .otherwise(pl.col(names[0]))
                .alias(names[0]),
                pl.when(pl.int_range(pl.len()).is_in(inside.implode()))
                .then(pl.lit(first[names[1]][1]))
                .otherwise(pl.col(names[1]))
                .alias(names[1]),
            )
        )
        changes["a class moved as a whole"] = put(
            table.with_columns(
                pl.when(pl.int_range(pl.len()).is_in(inside.implode()))
                .then(pl.lit(cls[names[0]][0]) + 1)
                .otherwise(pl.col(names[0]))
                .alias(names[0])
            )
        )
        changes["a quasi-identifier as in the source"] = put(table.with_columns(placed[names[0]]))
    yield from named("guarantee", changes)


def two(table: pl.DataFrame, released: pl.DataFrame, name: str) -> pl.DataFrame:
    """One value exchanged between rows of two groups that differ in it."""
    group = dict(released.select("record", "group").iter_rows())
    values = table[name].to_list()
    other = next(r for r in range(1, len(values)) if group[r] != group[0] and values[r] != values[0])
    values[0], values[other] = values[other], values[0]
    return table.with_columns(pl.Series(name, values, table.schema[name]))


def across(table: pl.DataFrame, order: pl.Series, name: str) -> pl.DataFrame:
    """A column moved by one row in the order of groups: the last row of a group gives its value to the next group."""
    values, places = table[name].to_list(), order.to_list()
    moved = values.copy()
    for a, b in zip(places, [*places[1:], places[0]], strict=True):
        moved[b] = values[a]
    return table.with_columns(pl.Series(name, moved, table.schema[name]))
