"""A release that grows: the rows of each batch follow those of the batches before (docs/methods/refresh.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from leeward.arrays import Int64s
from leeward.contracts.contract import Words
from leeward.contracts.versions import of_versions
from leeward.errors import BadInput
from leeward.release.content import Anonymized, ReleaseTable
from leeward.release.reading import Release

CODES = "data/codes.parquet"
"""The list of codes: one for all batches."""

NODES, RECORDS, VISITS = (f"data/{name}.parquet" for name in ("nodes", "records", "visits"))

TABLE = "data/table.parquet"
"""A table of patients: its columns are the source's, whatever their names."""

Tables = dict[str, pa.Table]


def tables_of(release: Release) -> Tables:
    """The files whose rows are those of batches."""
    paths = [str(entry["path"]) for entry in release.manifest["files"]]
    rows = [path for path in paths if path.endswith(".parquet") and path != CODES]
    return {path: pq.read_table(release.share / path) for path in rows}


def versions_of(release: Release) -> tuple[Mapping[str, Any], ...]:
    """What the manifest of a release says of its batches; of one without batches what it would say."""
    stated = release.manifest.get("versions")
    return tuple(stated) if stated else (version_of(1, tables_of(release), release.records),)


def version_of(batch: int, tables: Tables, records: int) -> dict[str, Any]:
    rows = {path: table.num_rows for path, table in tables.items()}
    return {"batch": batch, "rows": rows, "sha256": digest_of(tables), "records": records}


def digest_of(tables: Tables) -> str:
    """SHA-256 of the rows of some files: of each file, by name, its path and its rows as lines of JSON."""
    found = hashlib.sha256()
    for path, table in sorted(tables.items()):
        found.update(f"{path}\n{pl.DataFrame(pl.from_arrow(table)).write_ndjson()}".encode())
    return found.hexdigest()


def batch_numbers(release: Release, path: str) -> Int64s:
    """The batch of each row of a file."""
    rows = [version["rows"][path] for version in versions_of(release)]
    return np.repeat(np.arange(1, len(rows) + 1), rows)


def first_batches(release: Release) -> Int64s:
    """The batch in which each record entered."""
    records = [version["records"] for version in versions_of(release)]
    return np.repeat(np.arange(1, len(records) + 1), records)


def number_on(before: Release, batch: Release, number: Int64s) -> Tables:
    """The rows of a batch as the release numbers them: record r is `number[r]`. Nodes are numbered after those of the
    release, the visits of a record after those that it has; a record that is there keeps its row."""
    found = tables_of(batch)
    for path, table in found.items():
        if path == TABLE:
            continue
        rows = pl.DataFrame(pl.from_arrow(table))
        if "record" in rows.columns:
            rows = rows.with_columns(record=number[rows["record"].to_numpy()])
        if "node" in rows.columns:
            nodes = pq.read_metadata(before.share / NODES).num_rows
            rows = rows.with_columns(pl.col("^(node|parent)$") + nodes)
        if path == VISITS:
            shown = before.table("visits.parquet").select("record").collect()["record"]
            seen = np.bincount(shown, minlength=int(number.max(initial=0)) + 1)
            rows = rows.with_columns(visit=pl.col("visit") + seen[rows["record"].to_numpy()])
            rows = rows.sort("record", "visit")
        if path == RECORDS:
            rows = rows.filter(pl.col("record") >= before.records).sort("record")
        found[path] = rows.to_arrow()
    return found


def append(before: Release, batch: Release, number: Int64s, made: Anonymized, returning: str) -> Anonymized:
    """The release with a batch, whose record r becomes `number[r]`; `made` is what the method made of it.

    Raises
    ------
    BadInput
        The batch has other files or columns than the release.
    """
    added = number_on(before, batch, number)
    records = int(np.count_nonzero(number >= before.records))
    versions = versions_of(before)
    versions += (version_of(len(versions) + 1, added, records),)
    told = made.guarantee
    words = Words(told.name, told.attacker, told.not_protected, made.readme, told.facts)
    words = of_versions(words, {"versions": versions, "returning": returning})
    guarantee = replace(told, attacker=words.attacker, not_protected=words.not_protected, unit=words.unit)
    rows = {path: _below(path, table, added.get(path)) for path, table in tables_of(before).items()}
    if CODES in (entry["path"] for entry in before.manifest["files"]):
        rows[CODES] = _codes(before, batch)
    return replace(
        made,
        guarantee=guarantee,
        records=before.records + records,
        tables=tuple(
            ReleaseTable.of(name, rows[f"data/{name}"]) for name in before.names() if f"data/{name}" in rows
        ),
        readme=words.readme,
        custody_tables=(),
        seeded=before.seeded or made.seeded,
        versions=versions,
        returning=returning,
    )


def _below(path: str, table: pa.Table, added: pa.Table | None) -> pa.Table:
    if added is None or added.column_names != table.column_names:
        raise BadInput(
            f"{Path(path).name}: the batch has other columns than the release; give the columns that it had."
        )
    return pa.concat_tables([table, added.cast(table.schema)])


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
