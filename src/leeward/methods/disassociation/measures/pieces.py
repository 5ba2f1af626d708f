"""The index of a large release in pieces of whole trees, on the disk, one of them in memory at a time.

The rule looks at the release alone, so that figures are the same wherever it was made and is measured.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from leeward.methods.disassociation.measures.estimates import read_once, stamp_of
from leeward.methods.disassociation.measures.published import (
    Array,
    Published,
    Totals,
    facts_of,
    index_of,
    leaves_of,
    nodes_of,
    parents_of,
    roots_of,
    rows_of,
)
from leeward.release import Release

MOST_AT_ONCE = 500_000
"""Releases of more records are measured in pieces."""

RECORDS_A_PIECE = 250_000


def published_of(release: Release) -> Published:
    """The index of a release, kept while its manifest stays the same; in pieces where it is large, but for one with
    demographics, whose questions are about some of the classes."""
    if release.records <= MOST_AT_ONCE or release.demographics:
        return read_once(release)
    return _cut(*stamp_of(release))[0]


@lru_cache(maxsize=1)
def _cut(path: str, stamp: tuple[int, ...]) -> tuple[Published, tempfile.TemporaryDirectory[str]]:
    """The index, and the folder of its files, which is removed with the last reference to it."""
    work = tempfile.TemporaryDirectory(prefix="leeward-measure-", ignore_cleanup_errors=True)
    return cut(Release.open(path), Path(work.name)), work


def cut(release: Release, folder: Path) -> Published:
    """The index in files below `folder`."""
    nodes, facts = nodes_of(release), facts_of(release)
    # A piece is whole trees, about as many records each.
    root = roots_of(parents_of(nodes))
    held = np.bincount(root, np.where(leaves_of(nodes), nodes["records"], 0), len(root)).astype(np.int64)
    piece_of: Array = ((np.cumsum(held) - held) // RECORDS_A_PIECE)[root]
    codes = _spread(release, nodes, piece_of, folder)
    files: list[Path] = []
    totals: list[Totals] = []
    for number in np.unique(piece_of).tolist():
        rows = folder / f"{number}.parquet"
        own = nodes.filter(pa.array(piece_of == number))
        piece = index_of(own, pa.concat_tables(rows_of(rows)), codes=codes, **facts)
        rows.unlink()
        totals.append(piece.totals)
        files.append(folder / f"{number}.npz")
        np.savez(files[-1], **_arrays(piece))
    nothing: dict[str, Any] = dict.fromkeys(_arrays(piece))  # what is read is read of the pieces
    return replace(piece, **nothing, files=tuple(files), of_all=Totals.add(totals))


def _arrays(p: Published) -> dict[str, Any]:
    values = {each.name: getattr(p, each.name) for each in fields(p)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def _spread(release: Release, nodes: pa.Table, piece_of: Array, folder: Path) -> tuple[str, ...]:
    """Write the rows of the chunks of each piece to a file; returns the codes of all, sorted."""
    numbers = nodes["node"].to_numpy()
    order, pieces = np.argsort(numbers), np.unique(piece_of).tolist()
    codes: set[str] = set()
    with ExitStack() as files:
        writers: dict[int, pq.ParquetWriter] = {}
        for rows in rows_of(release.path("chunks.parquet")):
            codes.update(pa.compute.list_flatten(rows["codes"]).unique().to_pylist())
            piece = piece_of[order[np.searchsorted(numbers, rows["node"].to_numpy(), sorter=order)]]
            for number in pieces:
                if number not in writers:
                    writer = pq.ParquetWriter(folder / f"{number}.parquet", rows.schema)
                    writers[number] = files.enter_context(writer)
                writers[number].write_table(rows.filter(pa.array(piece == number)))
    return tuple(sorted(codes))
