"""A release that grows: the rows of each batch follow those of the batches before (docs/methods/refresh.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from leeward.arrays import Int64s
from leeward.contracts.contract import Words
from leeward.contracts.versions import of_versions
from leeward.errors import BadInput
from leeward.release.content import Anonymized, ReleaseTable
from leeward.release.reading import Release

CODES = "data/codes.parquet"
"""The list of codes: one for all batches."""

NODES = "data/nodes.parquet"

NUMBERED = {"node": NODES, "parent": NODES, "record": ""}
"""Columns that number things, each with the file that has a row for each of them; records are counted."""

Tables = dict[str, pa.Table]


def row_files(paths: Sequence[str]) -> list[str]:
    """The files whose rows are those of batches."""
    return [path for path in paths if path.endswith(".parquet") and path != CODES]


def tables_of(release: Release) -> Tables:
    paths = row_files([str(entry["path"]) for entry in release.manifest["files"]])
    return {path: pq.read_table(release.share / path) for path in paths}


def versions_of(release: Release) -> tuple[Mapping[str, Any], ...]:
    """What the manifest of a release says of its batches; of one without batches what it would say."""
    stated = release.manifest.get("versions")
    return tuple(stated) if stated else (version_of(1, tables_of(release), release.records),)


def version_of(batch: int, tables: Tables, records: int) -> dict[str, Any]:
    rows = {path: table.num_rows for path, table in tables.items()}
    return {"batch": batch, "rows": rows, "sha256": digest_of(tables), "records": records}


def digest_of(tables: Tables) -> str:
    """SHA-256 of the rows of some files, each row as a line, the lines of a file sorted: the order of rows does not
    count."""
    found = hashlib.sha256()
    for path, table in sorted(tables.items()):
        found.update(f"{path}\n".encode())
        for line in lines_of(pl.DataFrame(pl.from_arrow(table))).sort():
            found.update(line.encode() + b"\n")
    return found.hexdigest()


def lines_of(frame: pl.DataFrame) -> pl.Series:
    """Each row as one text: values parted by \\x1e, those of a list by \\x1f, a missing one \\x00."""
    texts = [
        pl.col(name).cast(pl.List(pl.String)).list.join("\x1f")
        if isinstance(kind, pl.List)
        else pl.col(name).cast(pl.String)
        for name, kind in frame.schema.items()
    ]
    return frame.select(
        pl.concat_str([text.fill_null("\x00") for text in texts], separator="\x1e")
    ).to_series()


def batch_numbers(release: Release, path: str) -> Int64s:
    """The batch of each row of a file."""
    rows = [version["rows"][path] for version in versions_of(release)]
    return np.repeat(np.arange(1, len(rows) + 1), rows)


def first_batches(release: Release) -> Int64s:
    """The batch in which each record entered."""
    records = [version["records"] for version in versions_of(release)]
    return np.repeat(np.arange(1, len(records) + 1), records)


def number_on(before: Release, batch: Release) -> Tables:
    """The rows of a batch whose records and nodes are all new, numbered after those of the release."""
    counts = (
        {NODES: pq.read_metadata(before.share / NODES).num_rows} if (before.share / NODES).is_file() else {}
    )
    counts[""] = before.records
    return {path: _shift(table, counts) for path, table in tables_of(batch).items()}


def _shift(table: pa.Table, counts: Mapping[str, int]) -> pa.Table:
    for place, name in enumerate(table.column_names):
        if name in NUMBERED:
            table = table.set_column(place, name, pc.add(table[name], counts[NUMBERED[name]]))
    return table


def number_again(before: Release, batch: Release, number: Int64s) -> Tables:
    """The rows of a batch of visits whose record r has the number `number[r]` of the release: a record that it has
    already keeps its row, and its visits are numbered on."""
    path = "data/visits.parquet"
    seen = np.bincount(
        before.table("visits.parquet").select("record").collect()["record"], minlength=number.max() + 1
    )
    visits = pl.DataFrame(pl.from_arrow(tables_of(batch)[path]))
    visits = visits.with_columns(record=number[visits["record"].to_numpy()])
    visits = visits.with_columns(visit=pl.col("visit") + seen[visits["record"].to_numpy()]).sort(
        "record", "visit"
    )
    new = np.sort(number[number >= before.records])
    return {path: visits.to_arrow(), "data/records.parquet": pa.table({"record": new})}


def append(before: Release, batch: Release, added: Tables, made: Anonymized, returning: str) -> Anonymized:
    """The release with a batch: `added` are its rows as the release numbers them, `made` is what its method made.

    Raises
    ------
    BadInput
        The batch has other files or columns than the release.
    """
    tables = tables_of(before)
    records = len(added["data/records.parquet"]) if returning == "kept" else batch.records
    versions = versions_of(before)
    versions += (version_of(len(versions) + 1, added, records),)
    files = [
        path
        for path in map(str, (entry["path"] for entry in before.manifest["files"]))
        if path.endswith(".parquet")
    ]
    told = made.guarantee
    words = Words(told.name, told.attacker, told.not_protected, made.readme, told.facts)
    words = of_versions(words, {"versions": versions, "returning": returning})
    guarantee = replace(told, attacker=words.attacker, not_protected=words.not_protected, unit=words.unit)
    rows = {path: _below(path, table, added.get(path)) for path, table in tables.items()}
    return replace(
        made,
        guarantee=guarantee,
        records=before.records + records,
        tables=tuple(
            ReleaseTable.of(
                path.removeprefix("data/"), _codes(before, batch) if path == CODES else rows[path]
            )
            for path in files
        ),
        readme=words.readme,
        custody_tables=(),
        seeded=before.seeded or made.seeded,
        versions=versions,
        returning=returning,
    )


def _below(path: str, table: pa.Table, added: pa.Table | None) -> pa.Table:
    plain = (
        None
        if added is None or added.column_names != table.column_names
        else added.cast(table.schema, safe=True)
    )
    if plain is None:
        raise BadInput(
            f"{Path(path).name}: the batch has other columns than the release; give the columns that it had."
        )
    return pa.concat_tables([table, plain])


def _codes(before: Release, batch: Release) -> pa.Table:
    """The list of codes of both: a code is suppressed where neither shows it."""
    both = [each.table("codes.parquet").collect() for each in (before, batch)]
    return (
        pl.concat(both)
        .group_by("code")
        .agg(pl.col("name").max(), pl.col("vocabulary").max(), pl.col("suppressed").all())
        .sort("code")
        .to_arrow()
    )
