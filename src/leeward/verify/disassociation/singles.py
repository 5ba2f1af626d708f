"""Releases made for an attacker who knows the algorithm: counts of single codes
(docs/methods/disassociation.md#attacker-algorithm)."""

from __future__ import annotations

import numpy as np
import polars as pl

from leeward.verify.checks import Check, of_count
from leeward.verify.disassociation.files import ITEM
from leeward.verify.disassociation.layout import Layout, first_chunk


def single_codes(layout: Layout) -> Check:
    """Against an attacker who knows the algorithm: no item chunk, and no chunk of two codes, so that neither a bound on
    uncounted codes nor a refusal to put codes together can be read from the files."""
    several = (layout.chunks.kind == ITEM) | (np.diff(layout.bounds) != 1)
    return of_count(
        "single_codes",
        int(several.sum()),
        "Every chunk counts one code; there are no item chunks.",
        "chunks are item chunks or hold several codes." + first_chunk(layout, several),
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
