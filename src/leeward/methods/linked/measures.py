"""What linked tables keep: codes of patients, and counts of codes (docs/methods/linked.md#measures)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from leeward.analysis.figures import Figures
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.release import Release

DEFAULTS: tuple[Mapping[str, Any], ...] = ({"kept": {}},)


@dataclass(frozen=True)
class Kept(Figures):
    """Pairs of a patient and a code, in the source and released; the average relative error of the number of patients
    with a code, over all codes; and codes of which no patient is left."""

    pairs: int
    released: int
    error: float
    codes: int
    codes_lost: int


def measure(release: Release, cohort: Cohort, wanted: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of linked tables against their source. BadInput for an unknown measure or option."""
    for each in wanted:
        for name, options in each.items():
            if name != "kept" or options:
                raise BadInput(
                    f"`measure`: unknown `{name}` for linked tables; known: kept, without options."
                )
    return {"kept": kept(release, cohort).to_json()}


def kept(release: Release, cohort: Cohort) -> Kept:
    """How much of the source's codes is left."""
    sets = cohort.code_sets()
    source = pl.DataFrame({"code": sets.codes, "source": sets.supports()})
    shown = (
        release.table("events.parquet").select("record", pl.col("code").cast(pl.String)).unique().collect()
    )
    both = source.join(shown.group_by("code").agg(released=pl.len()), on="code", how="left")
    both = both.with_columns(pl.col("released").fill_null(0).cast(pl.Int64))
    errors = both.select((pl.col("source") - pl.col("released")) / pl.col("source"))
    return Kept(
        pairs=len(sets.values),
        released=shown.height,
        error=float(errors.to_series().to_numpy().mean()),
        codes=len(sets.codes),
        codes_lost=both.filter(pl.col("released") == 0).height,
    )
