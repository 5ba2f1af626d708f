"""From originals and caps to censored records, by each scope but `groups`; and what the custodian should know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from leeward.analysis.containment import Index, Multisets, Population, largest_parts
from leeward.arrays import Int64s
from leeward.errors import BadInput
from leeward.methods.censoring import gccens, raising


@dataclass(frozen=True)
class Outcome:
    """Censored records in the order of the sample.

    kept : the records.
    start_caps, caps : int64[codes], before and at the end (`scope: record` leaves them as they were).
    facts : JSON-able, for the custodian.
    """

    kept: Multisets
    start_caps: Int64s
    caps: Int64s
    facts: Mapping[str, Any]
    notices: tuple[str, ...] = ()


def censored(population: Population, originals: Multisets, caps: Int64s, k: int, scope: str) -> Outcome:
    """Censor the originals to a k-map; `k` must not exceed the population."""
    capped = originals.capped(caps)
    if scope in ("global", "raise"):
        if scope == "global":
            result = gccens.censor(population, capped, k)
        elif isinstance(population, Index):
            result = raising.censor(population, capped, k)
        else:
            raise BadInput("`scope: raise` needs the population in memory: give a file or a cohort.")
        facts = {
            "rounds": len(result.picked),
            "counted_multisets": result.counted,
            "capped_mentions": int(capped.sizes().sum()),
        }
        return Outcome(result.kept, caps, result.caps, facts, notice_emptied(originals, result.kept))
    parts = largest_parts(population, capped, k)
    greedy = int((~parts.exact).sum())
    facts = {
        "exact_records": int(parts.exact.sum()),
        "greedy_records": greedy,
        "capped_mentions": int(capped.sizes().sum()),
    }
    notices = notice_emptied(originals, parts.kept)
    if greedy:
        notices += (
            (
                f"{greedy:,} records were too large for the exact search and keep the best part found; "
                "custody/data/records.parquet says which."
            ),
        )
    return Outcome(parts.kept, caps, caps, {**facts, "exact": parts.exact}, notices)


def notice_emptied(originals: Multisets, kept: Multisets) -> tuple[str, ...]:
    """A notice, if records lost all their codes."""
    emptied = int(np.count_nonzero((kept.sizes() == 0) & (originals.sizes() > 0)))
    return (f"{emptied:,} of {len(kept):,} records are released without any code.",) if emptied else ()
