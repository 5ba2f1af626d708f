"""A disassociated release against the data it came from: nothing lost, nothing invented."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.verify.checks import Check, Source, of_count
from leeward.verify.disassociation import candidate_kernels as counting
from leeward.verify.disassociation.layout import Layout, count_bounds
from leeward.verify.disassociation.members import against_members, pairs_of
from leeward.verify.disassociation.payload import has_columns, with_payload
from leeward.verify.disassociation.singles import counts_of_single_codes
from leeward.verify.flat import Ints, Longs, offsets_of
from leeward.verify.manifest import Share

SAMPLED_RECORDS = 300
"""Source records whose place in some cluster is looked for."""


def against_source(
    layout: Layout, source: Source, share: Share, *, fit: bool = True, payload: bool = False
) -> list[Check]:
    """Every source code is released and no other, records agree, counts lie in their bounds, records fit a
    cluster: the one that custody names, or any (which is left out without `fit`). `payload`: whether each cluster has
    one value a record and column."""
    parameters = share.manifest["parameters"]
    events = number_repeats(source.events) if parameters.get("repeats") else source.events
    events = with_enum(where(events.select("patient", "code"), pl.col("patient", "code").is_not_null()))
    released = layout.chunks.codes
    enum = events.schema["code"]
    categories = enum.categories.to_list() if isinstance(enum, pl.Enum) else []
    held = events["code"].to_physical().unique().to_list()
    wanted = {categories[c] for c in held}
    patients = events["patient"].n_unique()
    # For l-diversity, occurrences of sensitive codes (all in item chunks) may have been suppressed.
    sensitive = set(parameters.get("sensitive") or ()) if parameters.get("diversity") else set()
    missing = {code for code in wanted - set(released) if base_code(code, parameters) not in sensitive}
    lost, invented = len(missing), len(set(released) - wanted)
    checks = [
        of_count(
            "nothing_invented",
            invented,
            "Every released code is in the source.",
            "codes are not in the source.",
        ),
        Check(
            "source_records",
            patients == share.manifest["records"],
            f"The source has {patients:,} patients, the release {share.manifest['records']:,} records.",
            {"source": patients, "release": share.manifest["records"]},
        ),
    ]
    if parameters.get("attacker") == "algorithm":
        return [*checks, counts_of_single_codes(layout, events)]
    of_codes = of_count(
        "source_codes", lost, "Every code of the source is released.", "codes of the source are missing."
    )
    checks.insert(0, of_codes)
    if lost or invented:
        return checks
    number = {code: i for i, code in enumerate(released)}
    translate = np.array([number.get(code, -1) for code in categories], np.int32)
    numbered = pl.DataFrame(
        {"patient": events["patient"], "code": translate[events["code"].to_physical().to_numpy()]}
    )
    open_codes = np.array([base_code(code, parameters) in sensitive for code in released], np.bool_)
    kept = where(numbered, pl.col("code") >= 0)
    del events, numbered
    held_by = pairs_of(kept, max(len(released), 1))
    checks.append(counts_in_bounds(layout, held_by[1], open_codes))
    custody = share.folder.parent / "custody" / "data"
    if (custody / "clusters.parquet").is_file():
        if payload and source.patients is not None and has_columns(share, source.patients):
            layout, kept = with_payload(layout, kept, share, source.patients)
            held_by = pairs_of(kept, len(layout.chunks.codes))
            open_codes = np.append(open_codes, np.zeros(len(layout.chunks.codes) - len(released), np.bool_))
        return checks + against_members(layout, share, kept, held_by, custody, open_codes)
    if not fit:
        return checks
    return [*checks, records_fit(layout, kept.filter(~open_codes[kept["code"].to_numpy()]))]


def where(frame: pl.DataFrame, condition: pl.Expr) -> pl.DataFrame:
    """The rows that meet a condition; no copy where all of them do."""
    met = frame.select(pl.all_horizontal(condition)).to_series()
    return frame if met.all() else frame.filter(met)


def with_enum(events: pl.DataFrame) -> pl.DataFrame:
    """The same events with `code` as an Enum."""
    if isinstance(events.schema["code"], pl.Enum):
        return events
    text = events["code"].cast(pl.String)
    return events.with_columns(code=text.cast(pl.Enum(text.unique().sort())))


def number_repeats(events: pl.DataFrame) -> pl.DataFrame:
    """Repeated codes renamed as the release names them: the i-th of a patient is `code#i` (paper, section
    7)."""
    if "visit" in events.columns:
        events = events.unique(["patient", "visit", "code"])
    instance = pl.int_range(1, pl.len() + 1).over("patient", "code").cast(pl.String)
    return events.with_columns(pl.col("code").cast(pl.String) + "#" + instance)


def base_code(code: str, parameters: Mapping[str, Any]) -> str:
    """The code of the source behind a released one."""
    return code.rsplit("#", 1)[0] if parameters.get("repeats") else code


def counts_in_bounds(layout: Layout, keys: Longs, suppressible: NDArray[np.bool_]) -> Check:
    """Each code's number of patients is between what its chunks show: exact but for item chunks (1 to
    all). Codes that may have been suppressed have no upper bound. `keys`: see `pairs_of`."""
    low, high = count_bounds(layout)
    true = np.bincount(keys % max(len(low), 1), minlength=len(low))
    outside = int(((true < low) | ((true > high) & ~suppressible)).sum())
    return of_count(
        "source_counts",
        outside,
        "Each code's number of patients is within what the chunks show.",
        "codes have a number of patients that the chunks exclude.",
    )


def records_fit(layout: Layout, events: pl.DataFrame) -> Check:
    """Sampled source records each fit some cluster: every code visible, every projection one of the
    subrecords."""
    patients = events["patient"].unique().sort()
    generator = np.random.Generator(np.random.Philox(key=len(patients)))
    chosen = patients.gather(np.sort(generator.permutation(len(patients))[:SAMPLED_RECORDS]))
    taken = events.filter(pl.col("patient").is_in(chosen.implode()))
    records = [
        np.array(r, np.int32)
        for r in taken.group_by("patient").agg(pl.col("code").unique())["code"].to_list()
    ]
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
        by_code = np.argsort(layout.codes, kind="stable")
        self.nodes: Ints = layout.chunks.node[layout.group[by_code]]
        self.offsets = offsets_of(np.bincount(layout.codes, minlength=len(layout.chunks.codes)))
        self.stamp = np.zeros(max(len(layout.chunks.codes), 1), np.int64)

    def fit(self, record: Ints) -> bool:
        """True when some cluster may hold the record."""
        rarest = min(record, key=lambda c: self.offsets[c + 1] - self.offsets[c])
        holders = self.nodes[self.offsets[rarest] : self.offsets[rarest + 1]]
        return bool(counting.fits_somewhere(record, holders, self.layout.flat, self.stamp))
