"""Payload of a disassociated release: values in the clusters of their patients, in an order that says nothing.

Beside custody a column of payload is a chunk like others: every cluster holds its members' values, and the order of
its rows says neither whose they are nor which values or subrecords belong to one patient (see `zipping`).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl

from leeward.verify.checks import Check, of_count
from leeward.verify.disassociation.files import PAYLOAD, Chunks
from leeward.verify.disassociation.layout import Layout, lay_out
from leeward.verify.flat import find
from leeward.verify.manifest import Share
from leeward.verify.order import within_check

MISSING = "\x1f"
"""A missing value as a text; others have a mark before them."""


def payload_checks(share: Share, layout: Layout) -> list[Check]:
    """What the share shows of its payload."""
    table = pl.read_parquet(share.data("payload.parquet"))
    counts = payload_counts(share, layout, table)
    if not counts.passed:
        return [counts]
    chunk = pl.struct("node", "column").rank("dense")
    known = {"value": table["value"]}
    group = table.select(chunk).to_series()
    return [counts, within_check("payload_shuffled", group, known, "payload values inside a cluster")]


def payload_counts(share: Share, layout: Layout, table: pl.DataFrame) -> Check:
    """Every cluster has one value a record of each payload column, and no other node has any; rows stand by cluster,
    then by column."""
    names, nodes = _names(share), layout.nodes
    node = table["node"].fill_null(-1).to_list()
    place = find(nodes.numbers, np.array(node, np.int64), -1)
    number = {name: i for i, name in enumerate(names)}
    column = table["column"].replace_strict(number, default=-1, return_dtype=pl.Int64).to_numpy()
    strange = int(((place < 0) | (column < 0)).sum())
    wrong = sum(a > b for a, b in pairwise(zip(node, column.tolist(), strict=True)))
    for each in number.values():
        counts = np.bincount(place[(column == each) & (place >= 0)], minlength=len(nodes.numbers))
        wrong += int((counts != np.where(nodes.leaf, nodes.records, 0)).sum())
    return of_count(
        "payload_counts",
        strange + wrong,
        f"Every cluster has one value a record of {len(names)} payload columns.",
        "clusters have another number of payload values than records, or values belong to no cluster or column, or "
        "stand in another order.",
    )


def payload_source(share: Share, patients: pl.Series, people: pl.DataFrame | None) -> Check:
    """The payload values are those of the patients: none lost, none invented, as often as there."""
    names = _names(share)
    if not has_columns(share, people):
        return Check("payload_source", False, "The source has not the payload columns of the release.")
    assert people is not None
    released = pl.read_parquet(share.data("payload.parquet"))
    own = patients.alias("patient").to_frame().join(people, on="patient", how="left")
    wrong = 0
    for name in names:
        shown = released.filter(pl.col("column") == name)["value"].sort(nulls_last=True)
        wrong += not shown.equals(own[name].cast(pl.String).sort(nulls_last=True), null_equal=True)
    return of_count(
        "payload_source",
        wrong,
        "The payload values are the patients' own.",
        "payload columns have other values than the patients.",
    )


def has_columns(share: Share, people: pl.DataFrame | None) -> bool:
    """Whether the source has the payload columns, and the release has any."""
    names = _names(share)
    return bool(names) and people is not None and set(names) <= set(people.columns)


def with_payload(
    layout: Layout, events: pl.DataFrame, share: Share, people: pl.DataFrame
) -> tuple[Layout, pl.DataFrame]:
    """The release and its source with a chunk, and a code of every patient, for each column of payload.

    events : `patient`, `code` (the released code's number).
    """
    names, chunks, nodes = _names(share), layout.chunks, layout.nodes
    table = pl.read_parquet(share.data("payload.parquet")).select(
        "node", "column", value=_as_text(pl.col("column"), pl.col("value"))
    )
    patients = events.select("patient").unique()
    own = patients.join(people.select("patient", *names), on="patient").select(
        "patient", *(_as_text(pl.lit(name), pl.col(name).cast(pl.String)).alias(name) for name in names)
    )
    values = own.unpivot(names, index="patient", variable_name="column", value_name="value")
    texts = pl.concat([table["value"], values["value"]]).unique().sort()
    number = pl.DataFrame({"value": texts, "code": np.arange(len(texts)) + len(chunks.codes)})
    rows = table.join(number, on="value", maintain_order="left")
    head = (rows["node"] != rows["node"].shift()) | (rows["column"] != rows["column"].shift())
    first = np.flatnonzero(head.fill_null(True).to_numpy())
    size = np.diff(np.append(first, rows.height))
    joined = Chunks(
        np.append(chunks.node, find(nodes.numbers, rows["node"].to_numpy()[first], -1)).astype(np.int32),
        np.append(chunks.kind, np.full(len(first), PAYLOAD)).astype(np.int8),
        np.append(chunks.start, chunks.start[-1] + np.cumsum(size)),
        np.append(chunks.number, np.arange(rows.height) - np.repeat(first, size)),
        np.append(chunks.offsets, chunks.offsets[-1] + np.arange(1, rows.height + 1)),
        np.append(chunks.values, rows["code"].to_numpy()).astype(np.int32),
        (*chunks.codes, *texts),
    )
    codes = values.join(number, on="value").select("patient", pl.col("code").cast(events.schema["code"]))
    return lay_out(nodes, joined), pl.concat([events.select("patient", "code"), codes])


def _names(share: Share) -> list[str]:
    return [str(name) for name in share.manifest["parameters"].get("payload") or ()]


def _as_text(column: pl.Expr, value: pl.Expr) -> pl.Expr:
    """A value of a column as a text that no other column or missing value has."""
    return pl.concat_str(column, pl.lit(MISSING), pl.coalesce(pl.lit("=") + value, pl.lit("")))
