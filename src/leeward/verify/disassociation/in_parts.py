"""A large release of disassociated chunks, checked in parts of whole trees.

No chunk and no guarantee crosses a tree of joint clusters, so some trees are a release of their own, and every check of
a release is made of each part; what is counted in a part is at most what is counted in all of them. Every tree, every
row of a chunk and, beside the source, every patient is in one part, or a check fails. Statistics of orders are looked
at in every part and added up over all of them. In memory are the nodes, and one part at a time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from leeward.errors import BadInput
from leeward.verify.checks import Check, Source, merge_checks, of_count
from leeward.verify.disassociation.layout import Nodes, StructureFault, read_nodes
from leeward.verify.flat import Longs, find
from leeward.verify.manifest import Share

MOST_AT_ONCE = 2_000_000
"""Releases of more records are checked in parts."""

RECORDS_A_PART = 250_000

BATCH_ROWS = 1 << 18

ROWS_A_GROUP = 1 << 20
"""As in a release, so that no batch of what reads it is of two groups of rows."""

WHOLE = ("demographics", "diversity", "reconstructions", "sensitive_columns")
"""Parameters of releases whose parts are no releases of their own."""

CLUSTERS = "clusters.parquet"

SPREAD = "spread.parquet"
"""The rows of a part's chunks, as they come."""

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
        for part, folder in enumerate(folders):
            chunks = pq.read_table(folder / SPREAD)
            pq.write_table(chunks, folder / "share" / "data" / "chunks.parquet", row_group_size=ROWS_A_GROUP)
            (folder / SPREAD).unlink()
            own = part_of == part
            held = int(nodes.records[own & nodes.leaf].sum())
            beside = None
            if source is not None:
                beside = _source_of(share, source, nodes.numbers[own], folder)
                if beside is None:
                    return [
                        Check(
                            "members", False, f"custody/data/{CLUSTERS} names other patients than the source."
                        )
                    ]
                rows, patients = rows + beside[1].events.height, patients + beside[0]
            manifest = {**share.manifest, "records": held}
            made.append(check(Share(folder / "share", manifest), None if beside is None else beside[1]))
    records = int(nodes.records[nodes.leaf].sum())
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
    parts[drawn] = (np.cumsum(held[drawn]) - held[drawn]).astype(np.int64) // RECORDS_A_PART
    _, dense = np.unique(parts[above], return_inverse=True)
    return dense.reshape(-1).astype(np.int64)


def _spread(share: Share, nodes: Nodes, part_of: Longs, folders: list[Path]) -> None:
    """Write the nodes and the chunks of each part; a row of no node goes to the first, where it is refuted."""
    table = pq.read_table(share.data("nodes.parquet"))
    part = pa.array(part_of[find(nodes.numbers, table["node"].to_numpy().astype(np.int64), 0)])
    for number, folder in enumerate(folders):
        (folder / "share" / "data").mkdir(parents=True)
        pq.write_table(table.filter(pc.equal(part, number)), folder / "share" / "data" / "nodes.parquet")
    source = pq.ParquetFile(share.data("chunks.parquet"))
    with ExitStack() as files:
        writers = [
            files.enter_context(pq.ParquetWriter(folder / SPREAD, source.schema_arrow, compression="lz4"))
            for folder in folders
        ]
        for batch in source.iter_batches(BATCH_ROWS):
            at = find(nodes.numbers, pc.fill_null(batch.column("node"), -1).to_numpy().astype(np.int64), -1)
            of_row = np.where(at >= 0, part_of[at], 0)
            for number in np.unique(of_row):
                writers[number].write_batch(batch.filter(pa.array(of_row == number)))


def _source_of(share: Share, source: Source, numbers: Longs, folder: Path) -> tuple[int, Source] | None:
    """The patients whom custody names in the nodes, written to the part's custody, and their rows of the source; None
    where their identifiers are of another type."""
    clusters = pl.scan_parquet(_custody(share))
    nodes = pl.LazyFrame({"node": numbers})
    members = clusters.join(nodes, on="node", how="semi", maintain_order="left").collect()
    (folder / "custody" / "data").mkdir(parents=True)
    members.write_parquet(folder / "custody" / "data" / CLUSTERS)
    rows = pl.scan_parquet(list(source.stored)) if source.stored else source.events.lazy()
    if rows.collect_schema()["patient"] != members.schema["patient"]:
        return None
    inside = rows.join(members.select("patient").lazy(), on="patient", how="semi").collect(engine="streaming")
    return members.height, replace(source, events=inside, stored=())


def _custody(share: Share) -> Path:
    return share.folder.parent / "custody" / "data" / CLUSTERS


def _together(parts: list[list[Check]]) -> dict[str, Check]:
    """The checks of all parts as one each, by name."""
    found: dict[str, list[Check]] = {}
    for checks in parts:
        for check in checks:
            found.setdefault(check.name, []).append(check)
    return {name: merge_checks(checks, len(parts), "parts") for name, checks in found.items()}
