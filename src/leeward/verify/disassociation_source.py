"""A disassociated release against the data it came from: nothing lost, nothing invented."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from leeward.verify import _kernels as kernels
from leeward.verify.checks import Check, Source, of_count
from leeward.verify.flat import ITEM, Ints, Longs
from leeward.verify.manifest import Share

if TYPE_CHECKING:
    from leeward.verify.disassociation import Layout

SAMPLED_RECORDS = 300
"""Source records whose place in some cluster is looked for."""


def against_source(layout: Layout, source: Source, share: Share) -> list[Check]:
    """Every source code is released and no other, records agree, counts lie in their bounds, records fit a cluster."""
    events = source.events.select("patient", pl.col("code").cast(pl.String)).drop_nulls()
    if share.manifest["parameters"].get("repeats"):
        events = numbered_repeats(events)
    events = events.unique()
    released = layout.chunks.codes
    wanted = set(events["code"].unique())
    patients = events["patient"].n_unique()
    lost, invented = len(wanted - set(released)), len(set(released) - wanted)
    checks = [
        of_count("source_codes", lost, "Every code of the source is released.", "codes of the source are missing."),
        of_count("nothing_invented", invented, "Every released code is in the source.", "codes are not in the source."),
        Check(
            "source_records",
            patients == share.manifest["records"],
            f"The source has {patients:,} patients with a code, the release {share.manifest['records']:,} records.",
            {"source": patients, "release": share.manifest["records"]},
        ),
    ]
    if lost or invented:
        return checks
    numbered = events.with_columns(
        pl.col("code").replace_strict(list(released), range(len(released)), return_dtype=pl.Int32)
    )
    return [*checks, counts_in_bounds(layout, numbered["code"].to_numpy()), records_fit(layout, numbered)]


def numbered_repeats(events: pl.DataFrame) -> pl.DataFrame:
    """Repeated codes renamed as the release names them: the i-th of a patient is `code#i` (paper, section 7)."""
    instance = pl.int_range(1, pl.len() + 1).over("patient", "code").cast(pl.String)
    return events.with_columns(pl.col("code") + "#" + instance)


def counts_in_bounds(layout: Layout, codes: Ints) -> Check:
    """Each code's number of patients lies between what its chunks show: exact but for item chunks (1 to all)."""
    n = len(layout.chunks.codes)
    true = np.bincount(codes, minlength=n)
    group = np.repeat(np.arange(len(layout.chunks.kind)), np.diff(layout.bounds))
    item = layout.chunks.kind[group] == ITEM
    most = np.where(item, layout.nodes.records[layout.chunks.node[group]], layout.supports)
    low = np.bincount(layout.codes, weights=np.where(item, 1, layout.supports), minlength=n)
    high = np.bincount(layout.codes, weights=most, minlength=n)
    outside = int(((true < low) | (true > high)).sum())
    return of_count(
        "source_counts",
        outside,
        "Each code's number of patients lies within what the chunks show.",
        "codes have a number of patients that the chunks exclude.",
    )


def records_fit(layout: Layout, events: pl.DataFrame) -> Check:
    """Sampled source records each fit some cluster: every code visible, every projection one of the subrecords."""
    patients = events["patient"].unique(maintain_order=True)
    generator = np.random.Generator(np.random.Philox(key=len(patients)))
    chosen = patients.gather(np.sort(generator.permutation(len(patients))[:SAMPLED_RECORDS]))
    taken = events.filter(pl.col("patient").is_in(chosen.implode()))
    records = [np.array(r, np.int32) for r in taken.group_by("patient").agg("code")["code"].to_list()]
    holders = Holders(layout)
    lost = sum(not holders.fit(record) for record in records)
    return of_count(
        "source_records_fit",
        lost,
        f"Each of {len(records):,} sampled source records fits a cluster.",
        f"of {len(records):,} sampled source records fit no cluster.",
        {"sampled": len(records)},
    )


class Holders:
    """Which chunks hold a code, so that only clusters that may hold a record's rarest code are looked at."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        group = np.repeat(np.arange(len(layout.chunks.kind)), np.diff(layout.bounds))
        by_code = np.argsort(layout.codes, kind="stable")
        self.nodes: Ints = layout.chunks.node[group[by_code]]
        self.offsets: Longs = np.zeros(len(layout.chunks.codes) + 1, np.int64)
        np.cumsum(np.bincount(layout.codes, minlength=len(layout.chunks.codes)), out=self.offsets[1:])
        self.position = np.argsort(layout.order)
        self.stamp = np.zeros(max(len(layout.chunks.codes), 1), np.int64)

    def fit(self, record: Ints) -> bool:
        """True when some cluster may hold the record."""
        layout, chunks = self.layout, self.layout.chunks
        rarest = min(record, key=lambda c: self.offsets[c + 1] - self.offsets[c])
        return bool(
            kernels.fits_somewhere(
                record, self.nodes[self.offsets[rarest] : self.offsets[rarest + 1]], layout.order, self.position,
                layout.end, layout.nodes.leaf, layout.nodes.parent, layout.node_groups, layout.groups_of, chunks.kind,
                chunks.start, chunks.offsets, chunks.values, layout.bounds, layout.codes, self.stamp,
            )
        )  # fmt: skip
