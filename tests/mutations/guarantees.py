"""Mutations that aim at what each method guarantees: things moved, merged, split, added, dropped, exchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
from tests.forging import write_parquet
from tests.mutations.copies import Change, Kinds, Mutation, both, in_manifest, in_table, in_text, manifest_of

DATA = "share/data/"
Rows = list[dict[str, Any]]


def in_rows(name: str, change: Callable[[Rows], Rows | None]) -> Change:
    """A change of a file's rows as dictionaries."""

    def apply(out: Path) -> None:
        table = pl.read_parquet(out / DATA / name)
        rows = table.to_dicts()
        after = change(rows)
        write_parquet(pl.DataFrame(rows if after is None else after, schema=table.schema), out / DATA / name)

    return apply


def named(part: str, changes: dict[str, Change], tells: str = "") -> Kinds:
    for name, change in changes.items():
        yield Mutation(name, part, change, tells)


# Disassociation


def disassociation_kinds(out: Path) -> Kinds:
    """On one cluster with two record chunks and an item chunk, on clusters of one size, on a joint cluster."""
    nodes = pl.read_parquet(out / DATA / "nodes.parquet")
    chunks = pl.read_parquet(out / DATA / "chunks.parquet")
    leaves = nodes.filter(pl.col("kind") == "cluster")["node"].to_list()
    size = dict(nodes.select("node", "records").iter_rows())
    kinds = {node: set(chunks.filter(pl.col("node") == node)["kind"]) for node in leaves}
    several = {
        node: chunks.filter((pl.col("node") == node) & (pl.col("kind") == "record"))["chunk"].n_unique()
        for node in leaves
    }
    rich = next(node for node in leaves if several[node] > 1 and "item" in kinds[node])
    other = next(node for node in leaves if node != rich and "item" in kinds[node])
    twin = next(
        (node for node in leaves if node != rich and size[node] == size[rich] and several[node]), other
    )
    joint = nodes.filter(pl.col("kind") == "joint")["node"].to_list()
    inside = nodes.filter(pl.col("parent").is_not_null())["node"].to_list()

    def of(rows: Rows, node: int, kind: str = "record", chunk: int | None = None) -> Rows:
        found = [row for row in rows if row["node"] == node and row["kind"] == kind]
        first = min(row["chunk"] for row in found) if found and chunk is None else chunk
        return [row for row in found if row["chunk"] == first]

    def filled(rows: Rows) -> Rows:
        return [row for row in rows if row["codes"]]

    def second(rows: Rows) -> Rows:
        return of(
            rows,
            rich,
            chunk=sorted({row["chunk"] for row in rows if row["node"] == rich and row["kind"] == "record"})[
                1
            ],
        )

    def item_to_record(rows: Rows) -> None:
        code = of(rows, rich, "item")[0]["codes"].pop()
        row = of(rows, rich)[0]
        row["codes"] = sorted([*row["codes"], code])

    def item_shown_everywhere(rows: Rows) -> None:
        code = of(rows, rich, "item")[0]["codes"][0]
        for row in of(rows, rich):
            row["codes"] = sorted([*row["codes"], code])

    def record_to_item(rows: Rows) -> None:
        code = filled(of(rows, rich))[0]["codes"][0]
        for row in of(rows, rich):
            row["codes"] = [each for each in row["codes"] if each != code]
        of(rows, rich, "item")[0]["codes"] = sorted([*of(rows, rich, "item")[0]["codes"], code])

    def support_of_k_less_one(rows: Rows) -> None:
        k = manifest_of(out)["guarantee"]["k"]
        code = filled(of(rows, rich))[0]["codes"][0]
        for row in [row for row in of(rows, rich) if code in row["codes"]][k - 1 :]:
            row["codes"] = [each for each in row["codes"] if each != code]

    def merged_chunks(rows: Rows) -> Rows:
        for a, b in zip(of(rows, rich), second(rows), strict=True):
            a["codes"] = sorted({*a["codes"], *b["codes"]})
        gone = second(rows)[0]["chunk"]
        kept = [
            row
            for row in rows
            if not (row["node"] == rich and row["chunk"] == gone and row["kind"] == "record")
        ]
        for row in kept:
            if row["node"] == rich and row["chunk"] > gone:
                row["chunk"] -= 1
        return kept

    def moved_subrecord(rows: Rows) -> None:
        a, b = filled(of(rows, rich))[0], filled(second(rows))[0]
        a["codes"], b["codes"] = b["codes"], a["codes"]

    def within_chunk(rows: Rows) -> None:
        a = filled(of(rows, rich))
        b = next((row for row in a[1:] if row["codes"] != a[0]["codes"]), a[-1])
        union = sorted({*a[0]["codes"], *b["codes"]})
        a[0]["codes"], b["codes"] = union, sorted({*a[0]["codes"]} & {*b["codes"]})

    def exchanged(kind: str, a: int, b: int) -> Callable[[Rows], None]:
        def change(rows: Rows) -> None:
            for x, y in zip(of(rows, a, kind), of(rows, b, kind), strict=False):
                x["codes"], y["codes"] = y["codes"], x["codes"]

        return change

    def without_item(rows: Rows) -> Rows:
        return [row for row in rows if not (row["node"] == rich and row["kind"] == "item")]

    def from_to(a: int, b: int) -> Callable[[Rows], None]:
        def change(rows: Rows) -> None:
            code = of(rows, a, "item")[0]["codes"].pop(0)
            of(rows, b, "item")[0]["codes"] = sorted({*of(rows, b, "item")[0]["codes"], code})

        return change

    def records(node: int, step: int) -> Change:
        return in_rows(
            "nodes.parquet",
            lambda rows: [{**r, "records": r["records"] + step * (r["node"] == node)} for r in rows],
        )

    def without_node(rows: Rows) -> Rows:
        return [row for row in rows if row["node"] != rich]

    def as_one(rows: Rows) -> Rows:
        """The second cluster's rows become the first's."""
        at = {row["chunk"] for row in rows if row["node"] == rich and row["kind"] == "record"}
        for row in rows:
            if row["node"] == twin and row["kind"] == "record":
                row["node"], row["subrecord"] = rich, row["subrecord"] + size[rich]
                row["chunk"] = min(row["chunk"], max(at))
        return sorted(
            rows, key=lambda r: (r["node"], r["chunk"], -1 if r["subrecord"] is None else r["subrecord"])
        )

    def split(rows: Rows) -> Rows:
        """A cluster of two records beside the others, with one of its codes."""
        new = max(size) + 1
        codes = filled(of(rows, rich))[0]["codes"]
        return [
            *rows,
            *({"node": new, "chunk": 0, "kind": "record", "subrecord": i, "codes": codes} for i in range(2)),
        ]

    def new_node(rows: Rows) -> Rows:
        less = [{**r, "records": r["records"] - 2 * (r["node"] == rich)} for r in rows]
        return [*less, {"node": max(size) + 1, "parent": None, "kind": "cluster", "records": 2}]

    def parent(node: int, to: int | None) -> Change:
        return in_rows(
            "nodes.parquet",
            lambda rows: [{**r, "parent": to if r["node"] == node else r["parent"]} for r in rows],
        )

    changes = {
        "an item code shown in one subrecord": in_rows("chunks.parquet", item_to_record),
        "an item code shown in all subrecords": in_rows("chunks.parquet", item_shown_everywhere),
        "a code of a record chunk put into the item chunk": in_rows("chunks.parquet", record_to_item),
        "a code with k - 1 subrecords": in_rows("chunks.parquet", support_of_k_less_one),
        "two chunks zipped to one": in_rows("chunks.parquet", merged_chunks),
        "subrecords exchanged between chunks": in_rows("chunks.parquet", moved_subrecord),
        "codes of two subrecords put together": in_rows("chunks.parquet", within_chunk),
        "item chunks of two clusters exchanged": in_rows("chunks.parquet", exchanged("item", rich, other)),
        "record chunks of two clusters exchanged": in_rows("chunks.parquet", exchanged("record", rich, twin)),
        "an item chunk lost": in_rows("chunks.parquet", without_item),
        "an item code moved to another cluster": in_rows("chunks.parquet", from_to(rich, other)),
        "a cluster with a record more": records(rich, 1),
        "a cluster with a record less": records(rich, -1),
        "a cluster of one record": records(rich, 1 - size[rich]),
        "a cluster lost": both(
            in_rows("chunks.parquet", without_node), in_rows("nodes.parquet", without_node)
        ),
        "a cluster's rows lost": in_rows("chunks.parquet", without_node),
        "two clusters' rows in one": in_rows("chunks.parquet", as_one),
        "a cluster of two records split off": both(
            in_rows("chunks.parquet", split), in_rows("nodes.parquet", new_node)
        ),
        "a cluster its own parent": parent(rich, rich),
        "a cluster as a parent": parent(rich, other),
        "a parent that is not there": parent(rich, 10**6),
    }
    if joint:
        own = next(iter(inside))
        was = dict(nodes.select("node", "parent").iter_rows())[own]
        changes |= {
            "a cluster out of its joint cluster": parent(own, None),
            "a cluster in another joint cluster": parent(
                own, next((j for j in joint if j not in (own, was)), None)
            ),
            "a joint cluster with a record more": records(joint[0], 1),
            "a joint cluster called a cluster": in_table(
                DATA + "nodes.parquet", lambda t: t.with_columns(kind=pl.lit("cluster"))
            ),
        }
    yield from named("guarantee", changes)


# Records of codes: constraints and censoring


def constraints_kinds(out: Path) -> Kinds:
    k = manifest_of(out)["guarantee"]["k"]
    codes = pl.read_parquet(out / DATA / "codes.parquet")
    kept = codes.filter(~pl.col("suppressed"))
    wide = kept.filter(pl.col("members").list.len() > 1)["code"].to_list()
    label, narrow = wide[0], kept["code"].to_list()[-1]
    members = kept.filter(pl.col("code") == label)["members"][0].to_list()

    def records(change: Callable[[list[list[str]]], Any]) -> Change:
        def apply(rows: Rows) -> None:
            lists = [row["codes"] for row in rows]
            change(lists)

        return in_rows("records.parquet", apply)

    def fewer(lists: list[list[str]]) -> None:
        for each in [each for each in lists if narrow in each][k - 1 :]:
            each.remove(narrow)

    def fewer_pairs(lists: list[list[str]]) -> None:
        for each in [each for each in lists if narrow in each and label in each][k - 1 :]:
            each.remove(narrow)

    def label_of(new: list[str]) -> str:
        return new[0] if len(new) == 1 else "(" + ",".join(new) + ")"

    def relabel(old: str, new: list[list[str]], pick: int = 0) -> Change:
        def change_codes(rows: Rows) -> Rows:
            more = [{"code": label_of(each), "members": each, "suppressed": False} for each in new]
            found = [row for row in rows if row["code"] != old] + more
            return sorted(found, key=lambda row: (row["suppressed"], row["code"]))

        def change_records(lists: list[list[str]]) -> None:
            for each in lists:
                each[:] = sorted(label_of(new[pick]) if code == old else code for code in each)

        return both(in_rows("codes.parquet", change_codes), records(change_records))

    def suppress(rows: Rows) -> Rows:
        kept = [row for row in rows if row["code"] != label]
        found = kept + [{"code": code, "members": [], "suppressed": True} for code in members]
        return sorted(found, key=lambda row: (row["suppressed"], row["code"]))

    def merged(rows: Rows) -> Rows:
        both_of = sorted([*members, *kept.filter(pl.col("code") == narrow)["members"][0].to_list()])
        rest = [row for row in rows if row["code"] not in (label, narrow)]
        found = [*rest, {"code": label_of(both_of), "members": both_of, "suppressed": False}]
        return sorted(found, key=lambda row: (row["suppressed"], row["code"]))

    def to_merged(lists: list[list[str]]) -> None:
        both_of = sorted([*members, *kept.filter(pl.col("code") == narrow)["members"][0].to_list()])
        for each in lists:
            each[:] = sorted({label_of(both_of) if code in (label, narrow) else code for code in each})

    def unused(rows: Rows) -> Rows:
        found = [*rows, {"code": "999.9", "members": ["999.9"], "suppressed": False}]
        return sorted(found, key=lambda row: (row["suppressed"], row["code"]))

    def gone(lists: list[list[str]]) -> None:
        for each in lists:
            each[:] = [code for code in each if code != label]

    yield from named(
        "guarantee",
        {
            "a label with k - 1 records": records(fewer),
            "a pair with k - 1 records": records(fewer_pairs),
            "a label taken apart in its records": relabel(label, [[each] for each in members]),
            "a member lost from a label": relabel(label, [members[1:]]),
            "a member more in a label": relabel(label, [sorted([*members, "999.9"])]),
            "a label split, all records to one half": relabel(label, [members[:1], members[1:]], 1),
            "a suppressed code listed that nobody has": in_rows(
                "codes.parquet", lambda r: [*r, {"code": "999.9", "members": [], "suppressed": True}]
            ),
            "an unused label that nobody has": in_rows("codes.parquet", unused),
            "an unused label of a source code": relabel(label, [members, ["V99.9"]]),
            "a label suppressed in the list alone": in_rows("codes.parquet", suppress),
            "a label suppressed": both(in_rows("codes.parquet", suppress), records(gone)),
            "a label gone from the records alone": records(gone),
            "two labels merged across the policy": both(in_rows("codes.parquet", merged), records(to_merged)),
            "two labels merged in the records alone": records(to_merged),
        },
    )


def censoring_kinds(out: Path) -> Kinds:
    table = pl.read_parquet(out / DATA / "records.parquet")
    lists = table["codes"].to_list()
    payload = [name for name in table.columns if name not in ("record", "codes")]
    many = max(range(len(lists)), key=lambda row: len(lists[row]))
    few = min((row for row in range(len(lists)) if lists[row]), key=lambda row: len(lists[row]))
    equal = next(
        (
            r
            for r in range(len(lists))
            if r != many and lists[r] != lists[many] and table[payload[0]][r] != table[payload[0]][many]
        ),
        few,
    )

    def on(row: int, change: Callable[[list[str]], list[str]]) -> Change:
        return in_rows("records.parquet", lambda rows: rows[row].update(codes=change(rows[row]["codes"])))

    def all_rows(change: Callable[[list[str]], list[str]]) -> Change:
        return in_rows("records.parquet", lambda rows: [{**r, "codes": change(r["codes"])} for r in rows])

    def payload_of_other(rows: Rows) -> None:
        for name in payload:
            rows[many][name], rows[equal][name] = rows[equal][name], rows[many][name]

    def identifiers(copy: Path) -> None:
        file = copy / DATA / "records.parquet"
        frame = pl.read_parquet(file)
        write_parquet(frame.with_columns(pid=pl.Series([f"p{r:03d}" for r in range(frame.height)])), file)

    def named_payload(name: str) -> Change:
        return in_manifest(
            lambda m: m["parameters"].update(payload=[*m["parameters"].get("payload", []), name])
        )

    told = in_text(
        "share/README.md", lambda t: t.replace("and `snp` as they were", "and `snp`, `pid` as they were")
    )
    yield from named(
        "guarantee",
        {
            "a record as rich as two": on(few, lambda c: sorted([*c, *lists[many]])),
            "every code of the richest record twice": on(many, lambda c: sorted([*c, *c])),
            "a mention less": on(many, lambda c: c[1:]),
            "a mention more": on(many, lambda c: sorted([*c, c[0]])),
            "a mention more in every record": all_rows(lambda c: sorted([*c, *c[:1]])),
            "every record a single code": all_rows(lambda c: c[:1]),
            "every record empty": all_rows(lambda c: []),
            "every mention once": all_rows(lambda c: sorted(set(c))),
            "two records exchange codes": in_rows(
                "records.parquet", lambda r: exchange(r, many, few, "codes")
            ),
            "two records exchange payload": in_rows("records.parquet", payload_of_other),
            "two records' codes put together": in_rows(
                "records.parquet",
                lambda r: (
                    r[few].update(codes=sorted([*r[few]["codes"], *r[many]["codes"]])),
                    r[many].update(codes=[]),
                    None,
                )[2],
            ),
            "identifiers as payload": both(identifiers, named_payload("pid"), told),
        },
    )


def exchange(rows: Rows, a: int, b: int, name: str) -> None:
    rows[a][name], rows[b][name] = rows[b][name], rows[a][name]


def identified(path: str) -> Change:
    """A column of identifiers as payload, named in the manifest and the README."""

    def apply(copy: Path) -> None:
        frame = pl.read_parquet(copy / path)
        write_parquet(
            frame.with_columns(pid=pl.Series([f"p{r:03d}" for r in range(frame.height)])), copy / path
        )
        readme = copy / "share/README.md"
        text = readme.read_text(encoding="utf-8")
        for before, after in (
            ("`snp` as they were", "`snp`, `pid` as they were"),
            ("the payload `snp`", "the payload `snp`, `pid`"),
        ):
            text = text.replace(before, after)
        readme.write_text(text, encoding="utf-8")

    return both(
        apply,
        in_manifest(lambda m: m["parameters"].update(payload=[*m["parameters"].get("payload", []), "pid"])),
    )


def iterate(rows: Rows, *keys: str) -> Iterator[tuple[tuple[Any, ...], Rows]]:
    """Rows with equal keys together, in order."""
    found: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    yield from found.items()
