"""Level `codes`: every set of at most m codes that a visit shows is counted (docs/methods/visits.md#codes)."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from leeward.verify.checks import Check
from leeward.verify.flat import offsets_of
from leeward.verify.visits.counting import check_shared, joint
from leeward.verify.visits.kernels import count_containers
from leeward.verify.visits.reading import VisitLists
from leeward.verify.visits.shown import holders_of, parts_shown


def check_known_codes(name: str, wanted: VisitLists, population: VisitLists, k: int, m: int) -> Check:
    """Visits apart: each set that a visit of `wanted` shows is in one visit each of k records."""
    wanted, population = joint(wanted, population)
    most = min(m, longest(wanted, population))
    columns = [f"c{i}" for i in range(most)]
    held = subsets_of(population, most).unique().group_by(columns).agg(pl.len().alias("records"))
    asked = subsets_of(wanted, most).select(columns).unique()
    counts = asked.join(held, on=columns, how="left", nulls_equal=True)["records"].fill_null(0).to_numpy()
    return check_shared(
        name, counts.astype(np.int64), k, population, f"sets of at most {m} codes of visits", "show"
    )


def check_codes_shown(
    sets: VisitLists, population: VisitLists, k: int, m: int, name: str = "known_codes"
) -> Check:
    """Each set of a source visit that its record shows, by whatever visit, is in k records."""
    sets, population = joint(sets, population)
    most = min(m, longest(sets, population))
    columns = [f"c{i}" for i in range(most)]
    asked = subsets_of(parts_shown(sets, population), most).select(columns).unique()
    codes = asked.fill_null(-1).to_numpy()
    sizes = (codes >= 0).sum(axis=1)
    offsets = offsets_of(sizes)
    holders = holders_of(population)
    counts = count_containers(offsets, codes[codes >= 0].astype(np.int32), *holders, k)
    what = f"sets of at most {m} codes of source visits that records show"
    return check_shared(name, counts, k, population, what, "contain")


def longest(*several: VisitLists) -> int:
    """The codes of the largest visit, at least 1: no set of codes has more."""
    return max(1, *(int(visits.sizes().max(initial=1)) for visits in several))


def subsets_of(visits: VisitLists, m: int) -> pl.DataFrame:
    """`record`, `c0` … (ascending; null after the last) of every set of at most m codes of each visit."""
    sizes = visits.sizes()
    parts = []
    for length in np.unique(sizes[sizes > 0]):
        rows = np.flatnonzero(sizes == length)
        block = visits.values[visits.offsets[rows][:, None] + np.arange(length)]
        for size in range(1, min(m, int(length)) + 1):
            for chosen in combinations(range(int(length)), size):
                columns: dict[str, Any] = {"record": visits.record[rows]}
                columns |= {f"c{i}": block[:, place] for i, place in enumerate(chosen)}
                columns |= {f"c{i}": pl.Series([None] * len(rows), dtype=pl.Int32) for i in range(size, m)}
                parts.append(pl.DataFrame(columns))
    schema = {"record": pl.Int64} | {f"c{i}": pl.Int32 for i in range(m)}
    return pl.concat(parts, rechunk=False) if parts else pl.DataFrame(schema=schema)
