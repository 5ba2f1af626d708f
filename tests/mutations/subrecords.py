"""Orders inside a disassociated release: of subrecords in their chunks, of codes in lists, of clusters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from tests.forging import write_parquet
from tests.mutations.copies import Change, Kinds, Mutation, in_table
from tests.mutations.definitions import Truth

DATA = "share/data/"
CHUNKS = DATA + "chunks.parquet"
Rows = list[dict[str, Any]]


def subrecord_kinds(out: Path, truth: Truth) -> Kinds:
    """Every order by what the share shows, and by what custody knows."""
    nodes = pl.read_parquet(out / DATA / "nodes.parquet")
    by_size = nodes.sort("records", "node")["node"].to_list()
    shown: dict[str, Change] = {
        "subrecords numbered by their codes": numbered(
            lambda rows: sorted(rows, key=lambda row: row["codes"])
        ),
        "filled subrecords first": numbered(lambda rows: sorted(rows, key=lambda row: not row["codes"])),
        "codes of every list reversed": lists(lambda place, codes: codes[::-1]),
        "codes of every list turned by its place": lists(turned),
        "clusters numbered by their records": renumbered(by_size),
    }
    for name, change in shown.items():
        yield Mutation(name, "order", change, tells="share")
    if not (out / "custody/data/clusters.parquet").is_file():
        return
    clusters = truth.custody("clusters.parquet")
    members: dict[int, list[Any]] = {}
    for patient, node in clusters.iter_rows():
        members.setdefault(node, []).append(patient)
    draws = np.random.Generator(np.random.Philox(key=8))
    shuffled = {node: [mine[i] for i in draws.permutation(len(mine))] for node, mine in members.items()}
    source = {node: sorted(mine, key=list(truth.held).index) for node, mine in members.items()}
    first = sorted(members, key=lambda node: min(map(list(truth.held).index, members[node])))
    joint = [node for node in nodes["node"].to_list() if node not in members]
    for name, change in {
        "subrecords numbered by their owners": by_owner(truth, source),
        "subrecords numbered by their owners, but for a tenth of the clusters": by_owner(
            truth, {node: mine for node, mine in source.items() if node % 10}
        ),
        "subrecords of a cluster in one shuffled order": by_owner(truth, shuffled),
        "clusters numbered by the source": renumbered([*joint, *first]),
    }.items():
        yield Mutation(name, "order", change, tells="source")


def numbered(order: Callable[[Rows], Rows]) -> Change:
    """Subrecords of each chunk but item chunks numbered in an order."""

    def apply(out: Path) -> None:
        table = pl.read_parquet(out / CHUNKS)
        rows: Rows = []
        for (_, _, kind), part in table.group_by(["node", "chunk", "kind"], maintain_order=True):
            mine = part.to_dicts()
            if kind != "item":
                mine = [{**row, "subrecord": number} for number, row in enumerate(order(mine))]
            rows += mine
        write_parquet(pl.DataFrame(rows, schema=table.schema), out / CHUNKS)

    return apply


def lists(change: Callable[[int, list[str]], list[str]]) -> Change:
    def of(table: pl.DataFrame) -> pl.DataFrame:
        new = [change(place, list(codes)) for place, codes in enumerate(table["codes"].to_list())]
        return table.with_columns(codes=pl.Series(new, dtype=table.schema["codes"]))

    return in_table(CHUNKS, of)


def turned(place: int, codes: list[str]) -> list[str]:
    at = place % len(codes) if codes else 0
    return codes[at:] + codes[:at]


def by_owner(truth: Truth, members: dict[int, list[Any]]) -> Change:
    """Subrecords of the record chunks of these clusters in the order of their patients (equal ones: in turn)."""

    def apply(out: Path) -> None:
        table = pl.read_parquet(out / CHUNKS)
        rows: Rows = []
        for (node, _, kind), part in table.group_by(["node", "chunk", "kind"], maintain_order=True):
            if kind != "record" or node not in members:
                rows += part.to_dicts()
                continue
            domain = {code for codes in part["codes"] for code in codes}
            left = part.to_dicts()
            for number, patient in enumerate(members[int(node)]):  # type: ignore[call-overload]
                mine = sorted({code for _, code, _ in truth.held[patient]} & domain)
                row = next(each for each in left if sorted(each["codes"]) == mine)
                left.remove(row)
                rows.append({**row, "subrecord": number})
        write_parquet(pl.DataFrame(rows, schema=table.schema), out / CHUNKS)

    return apply


def renumbered(order: list[int]) -> Change:
    """Nodes numbered by their place in `order`, in share and custody."""

    def apply(out: Path) -> None:
        new = {old: number for number, old in enumerate(order)}
        for path in ("share/data/nodes", "share/data/chunks", "share/data/payload", "custody/data/clusters"):
            file = out / f"{path}.parquet"
            if not file.is_file():
                continue
            table = pl.read_parquet(file)
            columns = [name for name in ("node", "parent") if name in table.columns]
            table = table.with_columns(pl.col(columns).replace(new))
            if "patient" not in table.columns:
                table = table.sort("node", maintain_order=True)
            write_parquet(table, file)

    return apply
