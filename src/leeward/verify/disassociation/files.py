"""A disassociated release as flat arrays, read from its two Parquet files in batches.

Reading is strict about form only: what cannot be laid out as arrays is reported as a structural fault, and
the properties that the guarantee needs are checked afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from leeward.verify.flat import Ints, Longs, find, offsets_of, places_of
from leeward.verify.storage import open_encoded

RECORD, SHARED, ITEM, PAYLOAD = 0, 1, 2, 3
CHUNK_KINDS = ("record", "shared", "item")
BATCH_ROWS = 1 << 19


class StructureFault(Exception):
    """The files cannot be laid out as a disassociated release; the message holds counts and names only."""


@dataclass(frozen=True)
class Nodes:
    """The clusters and joint clusters.

    numbers : int64[n], ascending
        The node numbers of the file.
    parent : int32[n]
        Index of the parent, -1 for a root, -2 when the parent named does not exist.
    leaf : bool[n]
        True for a cluster.
    records : int64[n]
    of_class : int64[n]
        The class of demographics; 0 in a release without classes.
    """

    numbers: Longs
    parent: Ints
    leaf: NDArray[np.bool_]
    records: Longs
    of_class: Longs


@dataclass(frozen=True)
class Chunks:
    """The rows of `chunks.parquet`, one group of consecutive rows a chunk.

    node : int32[g]
        Index of the node (-1: a number that `nodes.parquet` lacks); ascending where the file is.
    kind : int8[g]
    start : int64[g + 1]
        Group g holds the rows `start[g]:start[g + 1]`.
    number : int64[rows]
        The subrecord number, -1 where null.
    offsets : int64[rows + 1], values : int32
        Row r holds the codes `values[offsets[r]:offsets[r + 1]]`, indices into `codes`.
    codes : tuple of str, in order of first appearance
    """

    node: Ints
    kind: NDArray[np.int8]
    start: Longs
    number: Longs
    offsets: Longs
    values: Ints
    codes: tuple[str, ...]

    def rows(self) -> Longs:
        """Number of rows of each chunk."""
        return np.diff(self.start)


def read_nodes(file: Path, *, classed: bool = False) -> Nodes:
    """The nodes in ascending number, with their class where there are classes; StructureFault for missing columns,
    nulls, doubles, unknown kinds."""
    columns = ("node", "parent", "kind", "records", *(("class",) if classed else ()))
    table = _open(file, columns).read(list(columns))
    for column in columns:
        if column == "parent":
            continue
        if table.column(column).null_count:
            raise StructureFault(
                f"nodes.parquet: column `{column}` holds {table.column(column).null_count} nulls."
            )
    numbers = table.column("node").to_numpy().astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    doubles = int(np.count_nonzero(numbers[1:] == numbers[:-1]))
    if doubles:
        raise StructureFault(f"nodes.parquet: {doubles} node numbers occur twice.")
    kind = np.asarray(table.column("kind").cast(pa.string()).to_pylist(), dtype=object)[order]
    leaf = kind == "cluster"
    unknown = int(np.count_nonzero(~leaf & (kind != "joint")))
    if unknown:
        raise StructureFault(f"nodes.parquet: {unknown} nodes are neither `cluster` nor `joint`.")
    column = table.column("parent").cast(pa.int64()).combine_chunks()
    has_parent = pc.is_valid(column).to_numpy(zero_copy_only=False)[order]
    named = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)[order]
    parent = np.where(has_parent, find(numbers, named, -2), -1).astype(np.int32)
    records = table.column("records").to_numpy().astype(np.int64)[order]
    of_class = table.column("class").to_numpy().astype(np.int64)[order] if classed else np.zeros_like(numbers)
    return Nodes(numbers, parent, leaf.astype(np.bool_), records, of_class)


def read_chunks(file: Path, nodes: Nodes) -> Chunks:
    """The chunks of every node; StructureFault for missing columns, nulls, unknown kinds, and what cannot be read."""
    try:
        return _read_chunks(file, nodes)
    except MemoryError:  # Arrow's is an ArrowException too
        raise
    except (
        pa.ArrowException
    ):  # damaged pages; or a batch of two groups of rows, each with a dictionary of its own
        raise StructureFault(f"{file.name} cannot be read, or not in its groups of rows.") from None


def _read_chunks(file: Path, nodes: Nodes) -> Chunks:
    source = _open(file, ("node", "chunk", "kind", "subrecord", "codes"))
    total = source.metadata.num_rows
    node, chunk = np.empty(total, np.int32), np.empty(total, np.int64)
    kind, number = np.empty(total, np.int8), np.empty(total, np.int64)
    offsets = np.zeros(total + 1, np.int64)
    values: list[Ints] = []
    codes: dict[str, int] = {}
    at = filled = 0
    for batch in source.iter_batches(BATCH_ROWS, columns=["node", "chunk", "kind", "subrecord", "codes"]):
        end = at + batch.num_rows
        _no_nulls(batch)
        node[at:end] = find(nodes.numbers, batch.column("node").to_numpy(), -1)
        chunk[at:end] = batch.column("chunk").to_numpy()
        kind[at:end] = _kinds(batch.column("kind"))
        number[at:end] = pc.fill_null(batch.column("subrecord").cast(pa.int64()), -1).to_numpy(
            zero_copy_only=False
        )
        lengths, flat = _code_lists(batch.column("codes"), codes)
        offsets[at + 1 : end + 1] = lengths
        values.append(flat)
        at, filled = end, filled + len(flat)
    np.cumsum(offsets, out=offsets)
    flat_values = np.concatenate(values) if values else np.empty(0, np.int32)
    return _group(node, chunk, kind, number, offsets, flat_values, tuple(codes))


def _group(
    node: Ints,
    chunk: Longs,
    kind: NDArray[np.int8],
    number: Longs,
    offsets: Longs,
    values: Ints,
    codes: tuple[str, ...],
) -> Chunks:
    change = np.ones(len(node), np.bool_)
    if len(node):
        change[1:] = (node[1:] != node[:-1]) | (chunk[1:] != chunk[:-1]) | (kind[1:] != kind[:-1])
    first = np.flatnonzero(change)
    order = np.lexsort((kind[first], chunk[first], node[first]))
    ordered = first[order]
    doubled = (
        (node[ordered[1:]] == node[ordered[:-1]])
        & (chunk[ordered[1:]] == chunk[ordered[:-1]])
        & (kind[ordered[1:]] == kind[ordered[:-1]])
    )
    if doubled.any():  # the rows of some chunk are scattered: bring them together first
        rows = np.lexsort((kind, chunk, node))
        lengths = np.diff(offsets)[rows]
        values = values[places_of(offsets[:-1][rows], lengths)]
        return _group(node[rows], chunk[rows], kind[rows], number[rows], offsets_of(lengths), values, codes)
    start = np.append(first, len(node)).astype(np.int64)
    return Chunks(node[first], kind[first], start, number, offsets, values, codes)


def _open(file: Path, columns: tuple[str, ...]) -> Any:
    try:
        source = open_encoded(file, ("codes", "kind"))
    except (OSError, pa.ArrowInvalid):
        raise StructureFault(f"{file.name} cannot be read as Parquet.") from None
    lacking = [column for column in columns if column not in source.schema_arrow.names]
    if lacking:
        raise StructureFault(f"{file.name} lacks the columns {', '.join(lacking)}.")
    surplus = [column for column in source.schema_arrow.names if column not in columns]
    if surplus:
        raise StructureFault(f"{file.name} has {len(surplus)} columns that the format does not know.")
    return source


def _no_nulls(batch: Any) -> None:
    for column in ("node", "chunk", "kind", "codes"):
        if batch.column(column).null_count:
            raise StructureFault(f"chunks.parquet: column `{column}` holds nulls.")


def _kinds(column: Any) -> NDArray[np.int8]:
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    unknown = [name for name in names if name not in CHUNK_KINDS]
    if unknown:
        raise StructureFault(f"chunks.parquet: {len(unknown)} kinds of chunk that the format does not know.")
    lookup = np.array([CHUNK_KINDS.index(name) for name in names] or [0], np.int8)
    return lookup[encoded.indices.to_numpy(zero_copy_only=False)]


def _code_lists(column: Any, codes: dict[str, int]) -> tuple[Longs, Ints]:
    """Lengths and code numbers of a column of lists; new codes are added to `codes`."""
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False).astype(np.int64)
    flat = column.flatten()
    if flat.null_count:
        raise StructureFault("chunks.parquet: a subrecord holds a null code.")
    encoded = flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode()
    lookup = np.array(
        [codes.setdefault(code, len(codes)) for code in encoded.dictionary.to_pylist()] or [0], np.int32
    )
    return lengths, lookup[encoded.indices.to_numpy(zero_copy_only=False)]
