"""Mutations that aim at classes of demographics, linked tables and catalogues (see `guarantees`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from tests.mutations.classed import OF_RECORDS, labels_of, names_of
from tests.mutations.copies import Change, Kinds, Mutation, both, in_manifest, in_table, manifest_of
from tests.mutations.guarantees import DATA, Rows, exchange, in_rows, iterate, named
from tests.mutations.restating import claiming
from tests.verify.made import CODES

Row = dict[str, Any]


def classed_kinds(out: Path) -> Kinds:
    """Records, nodes and classes given other labels or sizes."""
    names, k = names_of(out), manifest_of(out)["guarantee"]["k"]
    labels = labels_of(out, names)
    first, second = 0, next(n for n in labels if labels[n][1:] != labels[0][1:])
    file = next((name for name in OF_RECORDS if (out / DATA / name).is_file()), None)

    def put(row: Row, values: tuple[str, ...]) -> None:
        row.update(zip(names, values, strict=True))

    def of(row: Row, number: int) -> bool:
        return tuple(row[name] for name in names) == labels[number]

    def classes(change: Callable[[Rows], Rows | None]) -> Change:
        return in_rows("classes.parquet", change)

    def sizes(row: int, step: int) -> Change:
        return classes(lambda rows: rows[row].update(records=rows[row]["records"] + step))

    changes: dict[str, Change] = {
        "a class with a record more": sizes(0, 1),
        "a class with a record less": sizes(0, -1),
        "a record of one class counted in another": both(sizes(0, 1), sizes(1, -1)),
        "a class of k - 1 records": both(
            classes(lambda rows: rows[1].update(records=rows[1]["records"] + rows[0]["records"] - k + 1)),
            classes(lambda rows: rows[0].update(records=k - 1)),
        ),
        "two classes exchange labels": classes(
            lambda rows: (put(rows[first], labels[second]), put(rows[second], labels[first]), None)[2]
        ),
        "a class labelled as another": classes(lambda rows: put(rows[first], labels[second])),
        "a class lost": classes(lambda rows: rows[1:]),
        "a class without records": classes(
            lambda rows: [*rows, {**rows[-1], "class": len(rows), "records": 0}]
        ),
        "a class with an exact age": classes(lambda rows: rows[first].update({names[0]: "33"})),
        "a class of everybody": classes(lambda rows: put(rows[first], ("*",) * len(names))),
        "all classes of everybody": classes(
            lambda rows: [put(row, ("*",) * len(names)) for row in rows] and None
        ),
    }
    if file is not None:
        table = pl.read_parquet(out / DATA / file).to_dicts()
        mine = [place for place, row in enumerate(table) if of(row, first)]
        other = next(place for place, row in enumerate(table) if of(row, second))

        def records(change: Callable[[Rows], Rows | None]) -> Change:
            return in_rows(file, change)

        def crossed(rows: Rows) -> None:
            put(rows[mine[0]], labels[second])
            put(rows[other], labels[first])

        def everywhere(rows: Rows) -> None:
            for row in rows:
                put(row, labels[second] if of(row, first) else labels[first] if of(row, second) else
                    tuple(row[name] for name in names))  # fmt: skip

        def few(rows: Rows, members: list[int]) -> None:
            for place in members:
                rows[place][names[0]] = "33"

        def split(members: list[int]) -> Change:
            """Some records of a class become a class of their own, with an exact age."""

            def more(rows: Rows) -> Rows:
                rows[first]["records"] -= len(members)
                new = {**rows[first], names[0]: "33", "class": len(rows), "records": len(members)}
                return [*rows, new]

            def above(copy: Path) -> None:
                csv = copy / DATA / "hierarchies" / f"{names[0]}.csv"
                csv.write_text(csv.read_text() + f'"33","{labels[first][0]}"\n', encoding="utf-8")

            return both(records(lambda rows: few(rows, members)), classes(more), above)

        changes |= {
            "a record with another class's labels": records(lambda rows: put(rows[mine[0]], labels[second])),
            "a record counted with its new class": both(
                records(lambda rows: put(rows[mine[0]], labels[second])), sizes(first, -1), sizes(second, 1)
            ),
            "records of two classes exchange labels": records(crossed),
            "two classes exchange records": both(
                records(everywhere),
                classes(lambda rows: exchange(rows, first, second, "records")),
            ),
            "a record with an exact age": records(lambda rows: few(rows, mine[:1])),
            "a class with an exact age, its records too": split(mine),
            "a class of k - 1 split off": split(mine[: k - 1]),
            "a class of one split off": split(mine[:1]),
            "a record of no class": records(lambda rows: put(rows[mine[0]], ("p001",) * len(names))),
        }
    else:
        changes |= {
            "a node in another class": in_rows(
                "nodes.parquet", lambda rows: rows[0].update({"class": (rows[0]["class"] + 1) % len(labels)})
            ),
            "every node in the next class": in_rows(
                "nodes.parquet",
                lambda rows: [{**row, "class": (row["class"] + 1) % len(labels)} for row in rows],
            ),
            "a node of no class": in_rows("nodes.parquet", lambda rows: rows[0].update({"class": 99})),
        }
    yield from named("guarantee", changes)


def singles_kinds(out: Path) -> Kinds:
    """On counts of single codes, a chunk each: two of one cluster."""
    k = manifest_of(out)["guarantee"]["k"]
    table = pl.read_parquet(out / DATA / "chunks.parquet").filter(pl.col("kind") == "record")
    home = table.filter(pl.col("chunk") == 1)["node"][0]

    def of(rows: Rows, chunk: int) -> Rows:
        return [row for row in rows if row["chunk"] == chunk and row["node"] == home]

    def filled(rows: Rows, chunk: int) -> Rows:
        return [row for row in of(rows, chunk) if row["codes"]]

    def file(change: Callable[[Rows], Any]) -> Change:
        return in_rows("chunks.parquet", lambda rows: (change(rows), None)[1])

    def zipped_chunks(rows: Rows) -> None:
        for a, b in zip(of(rows, 0), of(rows, 1), strict=False):
            a["codes"], b["codes"] = sorted([*a["codes"], *b["codes"]]), []

    def one_more(rows: Rows) -> Rows:
        last = of(rows, 0)[-1]
        at = rows.index(last) + 1
        return [*rows[:at], {**last, "subrecord": last["subrecord"] + 1}, *rows[at:]]

    def item(rows: Rows) -> Rows:
        code = filled(rows, 0)[0]["codes"]
        last = max(row["chunk"] for row in rows if row["node"] == home) + 1
        return [*rows, {"node": home, "chunk": last, "kind": "item", "subrecord": None, "codes": code}]

    yield from named(
        "guarantee",
        {
            "a code with k - 1 subrecords": file(
                lambda rows: [row.update(codes=[]) for row in filled(rows, 0)[k - 1 :]]
            ),
            "a code with a subrecord less": file(lambda rows: filled(rows, 0)[0].update(codes=[])),
            "a code with a subrecord more": in_rows("chunks.parquet", one_more),
            "a code gone": file(lambda rows: [row.update(codes=[]) for row in filled(rows, 0)]),
            "two chunks zipped to one": file(zipped_chunks),
            "a code of one chunk in another": file(
                lambda rows: filled(rows, 0)[0].update(codes=filled(rows, 1)[0]["codes"])
            ),
            "codes of two chunks exchanged": file(
                lambda rows: [
                    exchange([a, b], 0, 1, "codes") for a, b in zip(of(rows, 0), of(rows, 1), strict=False)
                ]
            ),
            "an item chunk": in_rows("chunks.parquet", item),
            "a cluster with a record more": in_rows(
                "nodes.parquet", lambda r: r[0].update(records=r[0]["records"] + 1)
            ),
        },
    )


def linked_kinds(out: Path) -> Kinds:
    """Codes with fewer than k sharers, rows moved between visits and patients, days that say more."""
    manifest = manifest_of(out)
    k, step = manifest["guarantee"]["k"], manifest["parameters"].get("days")
    events = pl.read_parquet(out / DATA / "events.parquet").to_dicts()
    holders: dict[str, set[int]] = {}
    for row in events:
        holders.setdefault(row["code"], set()).add(row["record"])
    rare = min(holders, key=lambda code: (len(holders[code]), code))
    most = max(holders, key=lambda code: (len(holders[code]), code))
    rich = max(iterate(events, "record"), key=lambda each: len({row["visit"] for row in each[1]}))[0][0]
    lone = next(
        record for (record,), part in iterate(events, "record") if most not in {r["code"] for r in part}
    )

    def settled(rows: Rows) -> Rows:
        kept = {(row["record"], row["visit"], row["code"]) for row in rows}
        return [dict(zip(("record", "visit", "code"), each, strict=True)) for each in sorted(kept)]

    def file(change: Callable[[Rows], Rows]) -> Change:
        return in_rows("events.parquet", lambda rows: settled(change(rows)))

    def kept(test: Callable[[Row], bool]) -> Change:
        return file(lambda rows: [row for row in rows if test(row)])

    def lost_visit(record: int, *, events_too: bool) -> Change:
        def of(rows: Rows) -> Rows:
            rest = [row for row in rows if (row["record"], row["visit"]) != (record, 0)]
            return [{**row, "visit": row["visit"] - (row["record"] == record)} for row in rest]

        return both(
            in_rows("visits.parquet", of), in_rows("events.parquet", of) if events_too else lambda c: None
        )

    def one_more(rows: Rows) -> Row:
        mine = [row for row in rows if row["record"] == rich]
        return {**mine[-1], "visit": len(mine)}

    sharers, other, two = sorted(holders[rare]), {rare: most, most: rare}, {rich: lone, lone: rich}
    changes: dict[str, Change] = {
        "a code that k - 1 patients have": kept(lambda r: r["code"] != rare or r["record"] in sharers[: k - 1]),
        "a code that one patient has": kept(lambda r: r["code"] != rare or r["record"] == sharers[0]),
        "a code suppressed": kept(lambda r: r["code"] != rare),
        "a code lost in a patient": kept(lambda r: (r["record"], r["code"]) != (sharers[0], rare)),
        "all codes of a patient lost": kept(lambda r: r["record"] != rich),
        "all codes lost": file(lambda rows: []),
        "a code more in a visit": file(lambda rows: [*rows, {"record": lone, "visit": 0, "code": most}]),
        "the rarest code more in a visit": file(lambda rows: [*rows, {"record": lone, "visit": 0, "code": rare}]),
        "a code in another visit of the patient": file(
            lambda rows: [{**r, "visit": int((r["record"], r["visit"]) == (rich, 0)) or r["visit"]} for r in rows]
        ),
        "codes of two patients exchanged": file(
            lambda rows: [{**r, "record": two[r["record"]], "visit": 0} if r["record"] in two else r for r in rows]
        ),
        "two codes exchanged everywhere": file(
            lambda rows: [{**r, "code": other.get(r["code"], r["code"])} for r in rows]
        ),
        "two codes exchanged in a patient": file(
            lambda rows: [
                {**r, "code": other.get(r["code"], r["code"])} if r["record"] == sharers[0] else r for r in rows
            ]
        ),
        "every visit a single code": file(
            lambda rows: [part[0] for _, part in iterate(rows, "record", "visit")]
        ),
        "all codes in the first visit": file(lambda rows: [{**row, "visit": 0} for row in rows]),
        "a visit lost with its codes": lost_visit(rich, events_too=True),
        "a visit lost without its codes": lost_visit(rich, events_too=False),
        "a visit more": in_rows(
            "visits.parquet",
            lambda rows: sorted([*rows, one_more(rows)], key=lambda r: (r["record"], r["visit"])),
        ),
    }  # fmt: skip
    if step is not None:

        def days(change: Callable[[Row], int]) -> Change:
            return in_rows("visits.parquet", lambda rows: [{**row, "day": change(row)} for row in rows])

        changes |= {
            "an exact day": days(lambda r: r["day"] + ((r["record"], r["visit"]) == (rich, 1))),
            "a day one step later": days(lambda r: r["day"] + step * ((r["record"], r["visit"]) == (rich, 1))),
            "all days one step later": days(lambda r: r["day"] + step),
            "all days one step later but the first": days(lambda r: r["day"] + step * (r["day"] > 0)),
            "a patient's days one step later": days(lambda r: r["day"] + step * (r["record"] == rich)),
            "a day nobody else has": days(lambda r: r["day"] + 50 * step * ((r["record"], r["visit"]) == (rich, 1))),
            "days of a patient reversed": days(lambda r: -r["day"] if r["record"] == rich else r["day"]),
            "all days 0": days(lambda r: 0),
        }  # fmt: skip
    yield from named("guarantee", changes)


def catalogue_kinds(out: Path) -> Kinds:
    """Counts, sets, thresholds, levels and shares of epsilon that are not those paid for."""
    table = pl.read_parquet(out / DATA / "itemsets.parquet")
    sizes = table["items"].list.len().to_list()
    pair = next(place for place, size in enumerate(sizes) if size == 2)
    last = sum(size == 1 for size in sizes) - 1

    def put(change: Callable[[Rows], Any]) -> Change:
        def apply(rows: Rows) -> Rows:
            change(rows)
            return sorted(rows, key=lambda row: (len(row["items"]), -row["count"], row["items"]))

        return in_rows("itemsets.parquet", apply)

    def level(number: int, **values: Any) -> Change:
        return in_manifest(lambda m: m["parameters"]["levels"][number].update(values))

    def listed(number: int, step: int) -> Change:
        def change(manifest: dict[str, Any]) -> None:
            manifest["parameters"]["levels"][number]["listed"] += step

        return in_manifest(change)

    levels = manifest_of(out)["parameters"]["levels"]
    changes: dict[str, Change] = {
        "all counts one less": put(lambda rows: [r.update(count=r["count"] - 1) for r in rows]),
        "all counts rounded to tens": put(
            lambda rows: [r.update(count=10.0 * (r["count"] // 10)) for r in rows]
        ),
        "a count one more": put(lambda rows: rows[0].update(count=rows[0]["count"] + 1)),
        "a count below the threshold": put(
            lambda rows: rows[last].update(count=levels[0]["threshold"] - 1.0)
        ),
        "two counts exchanged": put(lambda rows: exchange(rows, 0, last, "count")),
        "a set lost, stated": both(in_rows("itemsets.parquet", lambda rows: rows[:-1]), listed(1, -1)),
        "a set lost": in_rows("itemsets.parquet", lambda rows: rows[:-1]),
        "a set more": put(lambda rows: rows.append({"items": ["p001"], "count": rows[0]["count"]})),
        "a set more, stated": both(
            put(lambda rows: rows.append({"items": ["p001"], "count": rows[0]["count"]})), listed(0, 1)
        ),
        "a set without a term": both(
            put(lambda rows: rows.append({"items": ["sex=F"], "count": rows[0]["count"]})), listed(0, 1)
        ),
        "a set of two values": both(
            put(lambda rows: rows.append({"items": ["sex=F", "sex=M"], "count": rows[pair]["count"]})),
            listed(1, 1),
        ),
        "an item of a pair another": put(
            lambda rows: rows[pair].update(items=["p001", rows[pair]["items"][1]])
        ),
        "items of a pair in another order": put(
            lambda rows: rows[pair].update(items=rows[pair]["items"][::-1])
        ),
        "a pair twice": both(put(lambda rows: rows.append(dict(rows[pair]))), listed(1, 1)),
        "a set of three": put(
            lambda rows: rows[pair].update(items=[*rows[pair]["items"], rows[last]["items"][0]])
        ),
        "no sets": both(in_rows("itemsets.parquet", lambda rows: []), level(0, listed=0), level(1, listed=0)),
        "epsilon halved": in_manifest(lambda m: m["guarantee"].update(epsilon=m["guarantee"]["epsilon"] / 2)),
        "epsilon doubled": in_manifest(
            lambda m: m["guarantee"].update(epsilon=m["guarantee"]["epsilon"] * 2)
        ),
        "epsilon and its levels halved": in_manifest(halved),
        "all counts of single terms equal": put(
            lambda rows: [r.update(count=rows[0]["count"]) for r in rows if len(r["items"]) == 1]
        ),
        "a term for another everywhere": put(lambda rows: renamed(rows, rows[last]["items"][0])),
        "every pair turned": put(lambda rows: [r.update(items=r["items"][::-1]) for r in rows]),
        "thresholds lowered": in_manifest(lowered),
        "a candidate more of the first size": level(0, candidates=levels[0]["candidates"] + 1),
        "values of a domain in another order": in_manifest(turned_domains),
        "the terms gone": in_table(
            DATA + "itemsets.parquet", lambda t: t.with_columns(items=pl.col("items").list.head(0))
        ),
    }
    for number, stated in enumerate(levels):
        for key in ("candidates", "epsilon", "scale", "threshold", "listed"):
            for factor in (0.5, 2):
                changes[f"level {number}: {key} times {factor}"] = level(
                    number, **{key: type(stated[key])(stated[key] * factor)}
                )
    yield from named("guarantee", changes)
    half = claiming(epsilon=manifest_of(out)["guarantee"]["epsilon"] / 2)
    change = both(half, in_manifest(halved_truly))
    yield Mutation("epsilon and its levels halved, scales doubled", "guarantee", change, worded=True)


def renamed(rows: Rows, term: str) -> None:
    """A term called as another of the vocabulary that is not listed, or as none."""
    listed = {item for row in rows for item in row["items"]}
    other = next((code for code in CODES if code not in listed), "p001")
    for row in rows:
        row["items"] = sorted((other if item == term else item for item in row["items"]), key=is_value)


def is_value(item: str) -> tuple[bool, str]:
    return "=" in item, item


def lowered(manifest: dict[str, Any]) -> None:
    for each in manifest["parameters"]["levels"]:
        each["threshold"] -= 1


def turned_domains(manifest: dict[str, Any]) -> None:
    for values in manifest["parameters"]["domains"].values():
        values.reverse()


def halved_truly(manifest: dict[str, Any]) -> None:
    """As for half of epsilon, with the noise that it calls for."""
    for each in manifest["parameters"]["levels"]:
        each["epsilon"] /= 2
        each["scale"] *= 2
    epsilon = manifest["guarantee"]["epsilon"]
    manifest["guarantee"]["risk"]["maximum"] = 1 / (1 + math.exp(-epsilon))


def halved(manifest: dict[str, Any]) -> None:
    """Everything that states epsilon, as for half of it; the noise is not said to be larger."""
    manifest["guarantee"]["epsilon"] /= 2
    for level in manifest["parameters"]["levels"]:
        level["epsilon"] /= 2
