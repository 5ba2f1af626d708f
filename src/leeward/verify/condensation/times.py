"""Several exact times: somebody who knows one of them must not be led to another
(docs/methods/condensation.md#several-exact-times)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import polars as pl

from leeward.verify.checks import Check

ALLOWED = 4.0
"""Standard deviations above one in k that the times beside known ones may be right."""


def pools_of(before: pl.DataFrame, time: str, strata: Sequence[str]) -> pl.DataFrame:
    """`group` and `pool`: the groups among whose rows a further exact time is given at random.

    The groups of a stratum in the order of their lower medians (equal: of their numbers), two and two; three at the end
    where their number is odd.
    """
    median = pl.col(time).sort().get((pl.len() - 1) // 2)
    groups = (
        before.group_by("group").agg(pl.col(strata).first(), median=median).sort(*strata, "median", "group")
    )
    stratum = pl.struct(*strata).rank("dense") if strata else pl.lit(0)
    place, count = pl.int_range(pl.len()).over("stratum"), pl.len().over("stratum")
    pair = pl.min_horizontal(place // 2, (count // 2 - 1).clip(0))
    numbered = groups.with_columns(stratum=stratum).with_columns(pair=pair)
    return numbered.select("group", pool=pl.struct("stratum", "pair").rank("dense"))


def times_apart(
    table: pl.DataFrame,
    original: pl.DataFrame,
    chance: pl.DataFrame,
    times: Sequence[str],
    strata: Sequence[str],
    k: int,
) -> list[Check]:
    """The time beside a patient's exact time is the patient's own at most once in k.

    chance : the source's rows with each column shuffled inside the groups: where times tie, that is right more often.
    """
    found, allowed, asked = 0.0, 1.0, 0
    for told, read in permutations(times, 2):
        rows, right = beside(table, original, told, read, strata)
        _, usual = beside(chance, original, told, read, strata)
        share = max(1 / k, usual)
        most = share + ALLOWED * (share * (1 - share) / max(1, rows)) ** 0.5
        if rows and right - most > found - allowed:
            found, allowed, asked = right, most, rows
    return [
        Check(
            "times_apart",
            found <= allowed,
            f"The time beside a known exact time is the patient's in {100 * found:.1f} % of {asked:,} cases; at most "
            f"{100 * allowed:.1f} % are taken for chance.",
            {"share": found, "allowed": allowed, "rows": asked},
        )
    ]


def beside(
    table: pl.DataFrame, original: pl.DataFrame, told: str, read: str, strata: Sequence[str]
) -> tuple[int, float]:
    """Of the patients whose two times differ, how many find theirs, and which share reads the other one right there.

    Several rows with the time known count by their share.
    """
    patients = original.filter(pl.col(told) != pl.col(read)).select(*strata, told, read)
    known = table.group_by(*strata, told).len("rows")
    both = table.group_by(*strata, told, read).len("right")
    found = patients.join(known, on=[*strata, told], nulls_equal=True)
    asked = found.join(both, on=[*strata, told, read], how="left", nulls_equal=True)
    share = asked.select((pl.col("right").fill_null(0) / pl.col("rows")).mean()).item()
    return asked.height, float(share or 0.0)
