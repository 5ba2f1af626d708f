"""What the parameters state: sensitive codes in item chunks only, no covers (`safe`), counts of single codes, sensitive
columns whose values are rare in every class (docs/methods/whole-patient.md#sensitive-columns), and payload.

Payload values are in the clusters of their patients, in an order that says nothing. Beside custody a column of payload
is a chunk like others: every cluster holds its members' values, and the order of its rows says neither whose they are
nor which values or subrecords belong to one patient (see `numbering`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from leeward.contracts.classes import ells_of
from leeward.verify.checks import Check, of_count, payload_of
from leeward.verify.classes import Classes
from leeward.verify.disassociation.layout import ITEM, PAYLOAD, Chunks, Layout, first_chunk, lay_out
from leeward.verify.flat import Longs, find, offsets_of, pairs_of_lists, places_of
from leeward.verify.manifest import Share
from leeward.verify.order import within_check


def sensitive_codes(layout: Layout, parameters: Mapping[str, Any]) -> list[Check]:
    """Sensitive codes are in item chunks only, where nothing says how many records hold them."""
    stated = {str(code) for code in parameters.get("sensitive") or ()}
    if not stated:
        return []
    named = [code.rsplit("#", 1)[0] if parameters.get("repeats") else code for code in layout.chunks.codes]
    sensitive = np.array([code in stated for code in named] or [False], np.bool_)
    open_chunk = np.zeros(len(layout.chunks.kind), np.bool_)
    open_chunk[layout.group[sensitive[layout.codes]]] = True
    open_chunk &= layout.chunks.kind != ITEM
    return [
        of_count(
            "sensitive_in_item_chunks",
            int(open_chunk.sum()),
            "Sensitive codes are in item chunks only.",
            "record or shared chunks hold a sensitive code." + first_chunk(layout, open_chunk),
        )
    ]


def covers(layout: Layout, parameters: Mapping[str, Any]) -> list[Check]:
    """With `safe` no code of a record or shared chunk is always with another (the cover problem)."""
    if not parameters.get("safe"):
        return []
    covered = covering(layout) > 0
    return [
        of_count(
            "no_covers",
            int(covered.sum()),
            "No code of a chunk always occurs with another one.",
            "chunks have a code that always occurs with another one." + first_chunk(layout, covered),
        )
    ]


def covering(layout: Layout) -> Longs:
    """For each chunk but item chunks the pairs (x, y) of its codes such that every subrecord with x has y."""
    chunks, width = layout.chunks, max(len(layout.chunks.codes), 1)
    rows = np.flatnonzero(np.repeat((chunks.kind != ITEM) & (chunks.rows() > 1), chunks.rows()))
    lengths = np.diff(chunks.offsets)[rows]
    owner = np.repeat(np.repeat(np.arange(len(chunks.kind)), chunks.rows())[rows], lengths)
    codes = chunks.values[places_of(chunks.offsets[rows], lengths)]
    column = find(layout.group * width + layout.codes, owner * width + codes, -1)
    column = column[np.lexsort((column, np.repeat(np.arange(len(rows)), lengths)))]
    pairs, together = pairs_of_lists(column, offsets_of(lengths), max(len(layout.codes), 1))
    x, y = np.divmod(pairs, max(len(layout.codes), 1))
    always = [(x != y) & (together == layout.supports[each]) for each in (x, y)]
    return np.bincount(layout.group[np.concatenate([x[always[0]], y[always[1]]])], minlength=len(chunks.kind))


def single_codes(layout: Layout, *, listed: bool) -> Check:
    """Against an attacker who knows rules or all of the algorithm: no chunk of two codes, so that no refusal to put
    codes together can be read from the files, and, unless codes may be `listed`, no item chunk, so that no bound on
    uncounted codes can."""
    item = layout.chunks.kind == ITEM
    several = np.where(item, not listed, np.diff(layout.bounds) != 1)
    return of_count(
        "single_codes",
        int(several.sum()),
        "Every chunk counts one code" + ("." if listed else "; there are no item chunks."),
        ("chunks" if listed else "chunks are item chunks or")
        + " hold several codes."
        + first_chunk(layout, several),
    )


def counts_of_single_codes(layout: Layout, events: pl.DataFrame) -> Check:
    """No code is counted more often than the source has it. Suppressed occurrences are counted."""
    released = layout.chunks.codes
    shown = np.zeros(len(released), np.int64)
    np.add.at(shown, layout.codes, layout.supports)
    true = dict(events.group_by(pl.col("code").cast(pl.String)).agg(pl.col("patient").n_unique()).iter_rows())
    more = sum(int(count) > true.get(code, 0) for code, count in zip(released, shown, strict=True))
    suppressed = sum(true.values()) - int(shown.sum())
    return Check(
        "source_counts",
        more == 0,
        f"No code is counted more often than the source has it; {suppressed:,} occurrences are suppressed."
        if more == 0
        else f"{more:,} codes are counted more often than the source has them.",
        {"violations": more, "suppressed": suppressed, "codes": len(set(true) - set(released))},
    )


def sensitive_values(share: Share, classes: Classes) -> list[Check]:
    """Each class has one count a value, which add up to its records, and no value is that of more than 1 in L."""
    ells = ells_of(share.manifest["parameters"])
    table = pl.read_parquet(share.data("sensitive.parquet"))
    known = pl.DataFrame({"class": classes.numbers, "all": classes.records})
    wanted = known.join(pl.DataFrame({"column": list(ells), "ell": list(ells.values())}), how="cross")
    sums = table.group_by("class", "column").agg(pl.col("records").sum())
    both = wanted.join(sums, on=["class", "column"], how="full", coalesce=True)
    unequal = both.filter(pl.col("all").ne_missing(pl.col("records"))).height
    unequal += table.height - table.select("class", "column", "value").unique().height
    unequal += table.filter(pl.col("records") < 1).height
    # By class, then by the column as the manifest names it, then by value: an order that says nothing else.
    places = {name: place for place, name in enumerate(ells)}
    keyed = table.with_columns(
        place=pl.col("column").replace_strict(places, default=-1, return_dtype=pl.Int64)
    )
    unequal += not keyed.equals(keyed.sort("class", "place", "value", nulls_last=True, maintain_order=True))
    limited = table.drop_nulls("value").join(wanted, on=["class", "column"])
    # more than 1 in L, by a quotient: a product with a large L would overflow
    frequent = limited.filter(pl.col("records") > pl.col("all") // pl.col("ell")).height
    return [
        of_count(
            "sensitive_counts",
            int(unequal),
            f"The values of {len(ells)} sensitive columns are counted once per class, and add up to its records.",
            "counts of sensitive values are missing, doubled, out of order, or not those of the class's records.",
        ),
        of_count(
            "sensitive_values_rare",
            frequent,
            "In every class at most 1 in L records has a given sensitive value.",
            "sensitive values are held by more than 1 in L records of a class.",
        ),
    ]


def sensitive_source(
    share: Share,
    classes: Classes,
    patients: pl.Series,
    values: list[tuple[str, ...]] | None,
    people: pl.DataFrame | None,
) -> Check:
    """The values are those of the patients, as often as there, and in a class no more often than among the patients
    whose exact demographics fit it."""
    names = list(ells_of(share.manifest["parameters"]))
    if people is None or values is None or not set(names) <= set(people.columns):
        return Check(
            "sensitive_source", False, "The source does not have the sensitive columns of the release."
        )
    table = pl.read_parquet(share.data("sensitive.parquet"))
    own = patients.alias("patient").to_frame().join(
        people.select("patient", *names), on="patient", how="left", maintain_order="left"
    )  # fmt: skip
    distinct = {each: number for number, each in enumerate(dict.fromkeys(values))}
    own = own.with_columns(exact=pl.Series([distinct[each] for each in values], dtype=pl.Int64))
    fitting = [
        (int(number), exact)
        for each, exact in distinct.items()
        for number in classes.numbers[classes.fit(each)]
    ]
    fits = pl.DataFrame(fitting, schema={"class": pl.Int64, "exact": pl.Int64}, orient="row")
    wrong = 0
    for name in names:
        rows = own.select("exact", value=pl.col(name).cast(pl.String))
        shown = table.filter(pl.col("column") == name)
        totals = shown.group_by("value").agg(pl.col("records").sum())
        both = (
            rows.group_by("value").len().join(totals, on="value", how="full", coalesce=True, nulls_equal=True)
        )
        wrong += both.filter(pl.col("len").ne_missing(pl.col("records").cast(pl.UInt32))).height
        there = rows.join(fits, on="exact").group_by("class", "value").agg(pl.len().alias("there"))
        placed = shown.join(there, on=["class", "value"], how="left", nulls_equal=True)
        wrong += placed.filter(pl.col("records") > pl.col("there").fill_null(0)).height
    return of_count(
        "sensitive_source",
        wrong,
        "The sensitive values are the patients' own, in classes that their demographics fit.",
        "sensitive values are not the patients', or are of a class that too few patients with them fit.",
    )


MISSING = "\x1f"
"""A missing value as a text; others have a mark before them."""


def payload_checks(share: Share, layout: Layout) -> list[Check]:
    table = pl.read_parquet(share.data("payload.parquet"))
    counts = payload_counts(share, layout, table)
    if not counts.passed:
        return [counts]
    chunk = pl.struct("node", "column").rank("dense")
    known = {"value": table["value"]}
    group = table.select(chunk).to_series()
    return [counts, within_check("payload_shuffled", group, known, "payload values inside a cluster")]


def payload_counts(share: Share, layout: Layout, table: pl.DataFrame) -> Check:
    """Every cluster has one value per record in each payload column, and no other node has any; rows stand by cluster,
    then by column."""
    names, nodes = payload_of(share.manifest["parameters"]), layout.nodes
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
        f"Every cluster has one value per record in {len(names)} payload columns.",
        "clusters have a different number of payload values than records, or values belong to no cluster or column, or "
        "are out of order.",
    )


def payload_source(share: Share, patients: pl.Series, people: pl.DataFrame | None) -> Check:
    """The payload values are those of the patients: none lost, none invented, as often as there."""
    names = payload_of(share.manifest["parameters"])
    if not has_columns(share, people):
        return Check("payload_source", False, "The source does not have the payload columns of the release.")
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
    names = payload_of(share.manifest["parameters"])
    return bool(names) and people is not None and set(names) <= set(people.columns)


def with_payload(
    layout: Layout, events: pl.DataFrame, share: Share, people: pl.DataFrame
) -> tuple[Layout, pl.DataFrame]:
    """The release and its source with a chunk, and a code of every patient, for each column of payload. `events`:
    `patient`, `code` (the released code's number)."""
    names, chunks, nodes = payload_of(share.manifest["parameters"]), layout.chunks, layout.nodes
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


def _as_text(column: pl.Expr, value: pl.Expr) -> pl.Expr:
    """A value of a column as a text that no other column or missing value has."""
    return pl.concat_str(column, pl.lit(MISSING), pl.coalesce(pl.lit("=") + value, pl.lit("")))
