"""A large release of disassociated chunks, checked in parts of whole trees.

No chunk and no guarantee crosses a tree of joint clusters, so some trees are a release of their own, and every check of
a release is made of each part; what is counted in a part is at most what is counted in all of them. Every tree, every
row of a chunk and, beside the source, every patient is in one part, or a check fails. Statistics of orders are looked
at in every part and added up over all of them. In memory are the nodes, and one part at a time; every file is read once
or twice, however many parts there are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet as pq

from leeward.errors import BadInput
from leeward.verify.checks import Check, Source, merge_checks, of_count
from leeward.verify.disassociation.layout import Nodes, StructureFault, read_nodes
from leeward.verify.flat import Longs, find
from leeward.verify.manifest import Share

MOST_AT_ONCE = 2_000_000
"""Releases of more records are checked in parts."""

RECORDS_A_PART = 250_000

MOST_PARTS = 400
"""All their files are open at once."""

BATCH_ROWS = 1 << 18

ROWS_A_GROUP = 1 << 20
"""As in a release, so that no batch of what reads it is of two groups of rows."""

WHOLE = ("demographics", "diversity", "reconstructions", "sensitive_columns")
"""Parameters of releases whose parts are no releases of their own."""

CLUSTERS = "clusters.parquet"

Checker = Callable[[Share, Source | None], list[Check]]


def goes_in_parts(share: Share, source: Source | None) -> bool:
    """Whether the release is checked in parts; BadInput where it must be, for its source is on the disk, and cannot."""
    parameters, records = share.manifest["parameters"], share.manifest["records"]
    stored = source is not None and len(source.stored) > 0
    apart = not any(map(parameters.get, WHOLE)) and parameters.get("attacker") != "algorithm"
    apart &= source is None or _custody(share).is_file()
    if stored and not apart:
        raise BadInput(
            "this release cannot be checked in parts beside its source, which is larger than memory."
        )
    return apart and (stored or (isinstance(records, int) and records > MOST_AT_ONCE))


def check_parts(share: Share, source: Source | None, check: Checker) -> list[Check]:
    """`check` of every part, as one check each, and whether the parts are the whole."""
    try:
        nodes = read_nodes(share.data("nodes.parquet"))
    except StructureFault as fault:
        return [Check("layout", False, str(fault))]
    part_of = parts_of(nodes)
    parts = int(part_of.max(initial=0)) + 1
    made: list[list[Check]] = []
    rows = patients = 0
    with tempfile.TemporaryDirectory(prefix="leeward-verify-") as place:
        folders = [Path(place) / str(part) for part in range(parts)]
        try:
            _spread(share, nodes, part_of, folders)
        except MemoryError:  # Arrow's is an ArrowException too
            raise
        except (StructureFault, OSError, pa.ArrowException, KeyError) as fault:
            return [
                Check("layout", False, f"The rows of the chunks cannot be read ({type(fault).__name__}).")
            ]
        if source is not None and not _spread_source(share, source, nodes, part_of, folders):
            return [Check("members", False, f"custody/data/{CLUSTERS} names other patients than the source.")]
        held = np.bincount(part_of[nodes.leaf], nodes.records[nodes.leaf], parts).astype(np.int64)
        for records, folder in zip(held.tolist(), folders, strict=True):
            for name in ("nodes", "chunks"):
                file = folder / "share" / "data" / f"{name}.parquet"
                pq.write_table(_take(folder / name), file, row_group_size=ROWS_A_GROUP)
            beside = None
            if source is not None:
                members, events = _take(folder / "members"), _frame(_take(folder / "events"))
                pq.write_table(members, folder / "custody" / "data" / CLUSTERS)
                beside = replace(source, events=events, stored=())
                rows, patients = rows + events.height, patients + members.num_rows
            made.append(check(Share(folder / "share", {**share.manifest, "records": records}), beside))
    records = int(held.sum())
    found = _together(made)
    stated = share.manifest["records"]
    figures = {"clusters": records, "manifest": stated}
    detail = f"The clusters hold {records:,} records, the manifest states {stated:,}."
    found["record_count"] = Check("record_count", records == stated, detail, figures)
    if source is not None:
        height = sum(pq.read_metadata(file).num_rows for file in source.stored) + source.events.height
        left = height - rows, pq.read_metadata(_custody(share)).num_rows - patients
        found["parts_of_source"] = of_count(
            "parts_of_source",
            abs(left[0]) + abs(left[1]),
            f"Each of the {patients:,} patients, with all rows, is in one of {parts:,} parts.",
            "rows of the source, or patients of custody, are in no part or in several.",
        )
    return list(found.values())


def parts_of(nodes: Nodes) -> Longs:
    """The part of each node, int64[nodes]: whole trees, about as many records each, drawn whatever their numbers (else
    the orders of a part would say something). Nodes of a circle go anywhere: in its part each has an unknown parent, or
    is one of the circle."""
    above = np.where(nodes.parent >= 0, nodes.parent, np.arange(len(nodes.parent)))
    for _ in range(max(1, len(above).bit_length())):
        above = above[above]
    held = np.bincount(above, weights=np.where(nodes.leaf, nodes.records, 0), minlength=len(above))
    drawn = np.random.Generator(np.random.Philox(key=len(above))).permutation(len(above))
    parts = np.empty(len(above), np.int64)
    size = max(RECORDS_A_PART, -(-int(held.sum()) // MOST_PARTS))
    parts[drawn] = (np.cumsum(held[drawn]) - held[drawn]).astype(np.int64) // size
    _, dense = np.unique(parts[above], return_inverse=True)
    return dense.reshape(-1).astype(np.int64)


def _spread(share: Share, nodes: Nodes, part_of: Longs, folders: list[Path]) -> None:
    """Write the nodes and the chunks of each part; a row of no node goes to the first, where it is refuted."""
    for folder in folders:
        (folder / "share" / "data").mkdir(parents=True)
        (folder / "custody" / "data").mkdir(parents=True)
    for name in ("nodes", "chunks"):
        file = pq.ParquetFile(share.data(f"{name}.parquet"))
        batches = map(_table, file.iter_batches(BATCH_ROWS))
        placed = ((rows, _part_of_rows(rows, nodes, part_of, 0)) for rows in batches)
        _shuffle(placed, file.schema_arrow, [folder / name for folder in folders])


def _spread_source(share: Share, source: Source, nodes: Nodes, part_of: Longs, folders: list[Path]) -> bool:
    """Write the patients whom custody names in the nodes of each part, and their rows of the source; False where their
    identifiers are of another type. Custody and the source are cut by a hash of the patient first, so that neither is
    held, nor read again for each part."""
    custody = pq.ParquetFile(_custody(share))
    head = pl.DataFrame(schema=pl.read_parquet_schema(source.stored[0])) if source.stored else source.events
    blocks = map(pl.read_parquet, source.stored) if source.stored else head.iter_slices(BATCH_ROWS)
    schemas = {
        "members": pa.schema([custody.schema_arrow.field(name) for name in ("patient", "node")]),
        "parts": pa.schema([custody.schema_arrow.field("patient"), ("part", pa.int64())]),
        "rows": _arrow(head.clear()).schema,
    }
    if _frame(schemas["parts"].empty_table()).schema["patient"] != head.schema["patient"]:
        return False

    def shuffle(placed: Iterable[tuple[pa.Table, Longs]], schema: str, name: str) -> None:
        _shuffle(placed, schemas[schema], [folder / name for folder in folders])

    def members() -> Iterator[tuple[pa.Table, Longs]]:
        for batch in custody.iter_batches(BATCH_ROWS, columns=["patient", "node"]):
            rows = _table(batch)
            yield rows, _part_of_rows(rows, nodes, part_of, -1)

    def bucket(patients: pl.Series) -> Longs:
        found: Longs = (patients.hash(1) % len(folders)).to_numpy().astype(np.int64)
        return found

    def parts() -> Iterator[tuple[pa.Table, Longs]]:
        for rows, part in members():
            known = pa.table([rows["patient"], part], schema=schemas["parts"])
            yield known, bucket(_frame(known)["patient"])

    def events() -> Iterator[tuple[pa.Table, Longs]]:
        for folder in folders:
            known = _frame(_take(folder / "parts")).unique()
            rows = _frame(_take(folder / "rows")).join(known, on="patient")
            yield _arrow(rows.drop("part")), rows["part"].to_numpy()

    shuffle(members(), "members", "members")
    shuffle(parts(), "parts", "parts")
    shuffle(((_arrow(block), bucket(block["patient"])) for block in blocks), "rows", "rows")
    shuffle(events(), "rows", "events")
    return True


def _part_of_rows(rows: pa.Table, nodes: Nodes, part_of: Longs, otherwise: int) -> Longs:
    """The part of the node of each row; `otherwise` for no node of the release."""
    numbers = pc.fill_null(rows["node"], -1).to_numpy().astype(np.int64)
    found: Longs = np.append(part_of, otherwise)[find(nodes.numbers, numbers, -1)]
    return found


def _shuffle(placed: Iterable[tuple[pa.Table, Longs]], schema: pa.Schema, files: list[Path]) -> None:
    """Each row to the end of the file of its number, in one pass; a row below 0 to none."""
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with ExitStack() as opened:
        sinks = [opened.enter_context(pa.OSFile(str(file), "wb")) for file in files]
        writers = [opened.enter_context(pa.ipc.new_stream(sink, schema, options=options)) for sink in sinks]
        for rows, number in placed:
            order = np.argsort(number.astype(np.int16), kind="stable")  # of 16 bits it sorts by counting
            bounds = np.searchsorted(number[order], np.arange(len(files) + 1))
            rows = rows.take(pa.array(order))
            for each in np.flatnonzero(np.diff(bounds)):
                writers[each].write_table(rows.slice(bounds[each], bounds[each + 1] - bounds[each]))


def _take(file: Path) -> pa.Table:
    """The rows of a file, which is removed."""
    with pa.OSFile(str(file)) as rows:
        table = pa.ipc.open_stream(rows).read_all()
    file.unlink()
    return table


def _table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def _arrow(rows: pl.DataFrame) -> pa.Table:
    return rows.to_arrow(compat_level=pl.CompatLevel.oldest())


def _frame(rows: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(rows))


def _custody(share: Share) -> Path:
    return share.folder.parent / "custody" / "data" / CLUSTERS


def _together(parts: list[list[Check]]) -> dict[str, Check]:
    """The checks of all parts as one each, by name."""
    found: dict[str, list[Check]] = {}
    for checks in parts:
        for check in checks:
            found.setdefault(check.name, []).append(check)
    return {name: merge_checks(checks, len(parts), "parts") for name, checks in found.items()}
