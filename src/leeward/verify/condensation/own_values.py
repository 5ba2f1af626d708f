"""Values and times of groups against their source rows, and released rows against the nearest source row.

Where a group's own values are published (docs/methods/condensation.md#group-marginals), the i-th number of a released
group lies within half the gap from the i-th own value to a neighbour, ends moving outwards too, rounded as the column
is. Of several exact times (docs/methods/condensation.md#several-exact-times) a known one must not lead to another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.compiled import njit
from leeward.contracts.condensation import columns_of
from leeward.verify.checks import Check, of_count
from leeward.verify.flat import Floats, Longs, heads_of

MOST_ROWS, MOST_SOURCE = 1_000, 20_000
"""Released rows whose distances are looked at, and source rows that they are compared with, drawn in a fixed way."""

FEW, OF_SMALL = 0.1, 0.5
"""Such a share of near twins more than by chance, and this part of 1/k: small groups' own values come back beside each
other."""

FEWEST_NUMBERS = 3

NEAR = 0.25
"""A near twin: nearer than this part of the distance from that source row to its own nearest."""


def is_number(kind: pl.DataType) -> bool:
    return kind.is_numeric() or kind.is_temporal()


def values_of_groups(
    parameters: Mapping[str, Any],
    before: pl.DataFrame,
    after: pl.DataFrame,
    times: Sequence[str],
    strata: Sequence[str],
    k: int,
) -> Check:
    """Numbers, times and missing values of each group, column by column, but for columns that a relation names (they
    may follow from others). Both tables have a column `group`."""
    left_out = {"group", *strata, *columns_of(parameters.get("relations") or ())}
    columns = [name for name, kind in before.schema.items() if is_number(kind) and name not in left_out]
    before, after = before.sort("group"), after.sort("group")
    return of_count(
        "values_of_groups",
        sum(strange_values(parameters, before, after, name, times, strata, k) for name in columns),
        "Every group shows its own numbers, moved by no more than half the gap to a neighbour, and the times it may.",
        "columns of groups show other numbers or times than their source rows have.",
    )


def strange_values(
    parameters: Mapping[str, Any],
    before: pl.DataFrame,
    after: pl.DataFrame,
    name: str,
    times: Sequence[str],
    strata: Sequence[str],
    k: int,
) -> int:
    """Groups that show other numbers of a column than they may. Fewer than k missing values of a column are imputed, as
    all are with `missing: impute`; then none may be missing, and groups without one count."""
    matched = name in times and parameters.get("algorithm") in ("balanced", "improved")
    if matched and parameters.get("coarsen_time"):
        return 0 if parameters.get("coarsen_groups") else not_medians(before, after, name)
    if matched and name != times[0]:
        pools = pools_of(before, name, strata)
        own, made = (each.join(pools, on="group").select(name, group="pool") for each in (before, after))
        return strange_groups(own.sort("group"), made.sort("group"), name, True, None)
    return strange_groups(before, after, name, matched, k if parameters.get("missing") != "impute" else None)


def numbers_of(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """`group`, `value` (float, ascending in the group, what is missing last); the table is sorted by `group`."""
    value = table[name].to_physical().cast(pl.Float64).fill_null(float("nan")).to_numpy()
    order = order_inside(table["group"].to_numpy(), value)
    return table.select("group", pl.Series("value", value[order]).fill_nan(None))


def strange_groups(
    before: pl.DataFrame, after: pl.DataFrame, name: str, exact: bool, least: int | None
) -> int:
    """Groups whose released numbers are not their own, or that miss more or fewer values. Missing values are imputed
    where there are fewer than `least`; None: always."""
    own, made = numbers_of(before, name), numbers_of(after, name)
    missing = [each.group_by("group").agg(pl.col("value").null_count()).sort("group") for each in (own, made)]
    if least is None or own["value"].null_count() < least:
        if made["value"].null_count():
            return missing[1].filter(pl.col("value") > 0).height
        whole = missing[0].filter(pl.col("value") == 0)  # ranks fit where nothing was imputed
        own, made = (each.join(whole, on="group", how="semi", maintain_order="left") for each in (own, made))
    elif not missing[0].equals(missing[1]):
        both = missing[0].join(missing[1], on="group", how="full", coalesce=True)
        return int((both["value"].fill_null(-1) != both["value_right"].fill_null(-1)).sum())
    own, made = own.drop_nulls(), made.drop_nulls()
    if exact:
        return own.filter(own["value"] != made["value"])["group"].n_unique()
    step = float(np.diff(np.unique(own["value"].to_numpy())).min(initial=np.inf))
    bound = own.with_columns(
        gap=pl.max_horizontal(
            (pl.col("value") - pl.col("value").shift(1)).over("group"),
            (pl.col("value").shift(-1) - pl.col("value")).over("group"),
        ).fill_null(0.0)
    )
    slack = (0.5 * step if np.isfinite(step) else 0.0) + 1e-9 * np.abs(own["value"].to_numpy()) + 1e-12
    far = np.abs(made["value"].to_numpy() - bound["value"].to_numpy()) > bound["gap"].to_numpy() / 2 + slack
    return bound.filter(pl.Series(far))["group"].n_unique()


def order_inside(groups: Longs, values: Floats) -> Longs:
    """The places in ascending order of their values inside each group; rows of a group are together, NaN comes last."""
    return np.lexsort((values, np.cumsum(heads_of(groups))))


def not_medians(before: pl.DataFrame, after: pl.DataFrame, name: str) -> int:
    """Groups whose coarse times are not the lower median of their own."""
    own = numbers_of(before, name).drop_nulls()
    median = own.group_by("group").agg(typical=pl.col("value").get((pl.len() - 1) // 2))
    shown = numbers_of(after, name).group_by("group").agg(pl.col("value").unique())
    both = median.join(shown, on="group", how="full", coalesce=True)
    one = (pl.col("value").list.len() == 1) & (pl.col("value").list.first() == pl.col("typical"))
    return both.filter(~one.fill_null(False)).height


def nearer_than_chance(
    table: pl.DataFrame, original: pl.DataFrame, chance: pl.DataFrame, leave: Sequence[str], k: int
) -> list[Check]:
    """Released rows are near twins of source rows hardly more often than chance makes them.

    The distance of two rows is the sum over the columns of numbers of the difference of ranks (0 to 1); strata and
    times, which are published as they are, are left out, and levels, which groups keep. A near twin of a source row is
    nearer to it than `NEAR` times its distance to the nearest other source row. With fewer than `FEWEST_NUMBERS`
    columns likeness is not told from chance, and nothing is said.

    chance : the source's rows with each column shuffled inside the groups. Among many rows of few values such rows are
        near twins often enough; a source row itself is never another's.
    """
    names = [
        name
        for name, kind in original.schema.items()
        if name in table.columns and name not in leave and is_number(kind)
    ]
    if len(names) < FEWEST_NUMBERS or original.height < 20:
        return []
    draws = np.random.Generator(np.random.Philox(key=original.height))
    own, made, other = (
        each.select(names)[np.sort(draws.permutation(each.height)[:most])]
        for each, most in ((original, MOST_SOURCE), (table, MOST_ROWS), (chance, MOST_ROWS))
    )
    found, usual = (float(twins_of(own, each).mean()) for each in (made, other))
    allowed = usual + FEW + OF_SMALL / k + 4 * float(np.sqrt(max(usual, 1 / own.height) / len(made)))
    return [
        Check(
            "near_twins",
            found <= allowed,
            f"{100 * found:.1f} % of the released rows are near twins of a source row; at most {100 * allowed:.1f} % "
            "are taken for chance.",
            {"share": found, "allowed": allowed, "rows": made.height},
        )
    ]


def twins_of(own: pl.DataFrame, made: pl.DataFrame) -> NDArray[np.bool_]:
    """Which of the rows made are near twins of one of the source's: nearer than a part of that row's distance to its
    own nearest. Rows that another source row equals single nobody out and have no near twins."""
    numbers, levels = places(own, made)
    rows = np.arange(own.height, len(numbers))
    far, where = nearest(numbers, levels, own.height, rows, np.full(made.height, -1, np.int64))
    gap, _ = nearest(numbers, levels, own.height, where, where)
    return np.asarray((gap > 0) & (far < NEAR * gap))


def places(own: pl.DataFrame, made: pl.DataFrame) -> tuple[Floats, Longs]:
    """Ranks of numbers among the source's (0 to 1; missing: -1) and numbers of levels, source rows first."""
    numbers, levels = [], []
    for name, kind in own.schema.items():
        if is_number(kind):
            both = [each[name].to_physical().cast(pl.Float64).fill_nan(None) for each in (own, made)]
            known = np.sort(both[0].drop_nulls().to_numpy())
            for_rows = []
            for each in both:
                values = each.fill_null(0.0).to_numpy()
                rank = (np.searchsorted(known, values) + np.searchsorted(known, values, side="right")) / 2
                for_rows.append(np.where(each.is_null().to_numpy(), -1.0, rank / max(len(known), 1)))
            numbers.append(np.concatenate(for_rows))
        else:
            texts = pl.concat([each[name].cast(pl.String) for each in (own, made)])
            levels.append(texts.rank("dense").fill_null(0).to_numpy().astype(np.int64))
    rows = own.height + made.height
    return (
        np.column_stack(numbers) if numbers else np.zeros((rows, 0)),
        np.column_stack(levels) if levels else np.zeros((rows, 0), np.int64),
    )


@njit
def nearest(numbers: Floats, levels: Longs, n: int, rows: Longs, themselves: Longs) -> tuple[Floats, Longs]:
    """For each of `rows` the distance to the nearest of the first `n` rows but itself, and which that is."""
    far, where = np.full(len(rows), np.inf), np.zeros(len(rows), np.int64)
    for i in range(len(rows)):
        for j in range(n):
            if j == themselves[i]:
                continue
            d = 0.0
            for c in range(numbers.shape[1]):
                d += abs(numbers[rows[i], c] - numbers[j, c])
                if d >= far[i]:
                    break
            for c in range(levels.shape[1]):
                d += levels[rows[i], c] != levels[j, c]
            if d < far[i]:
                far[i], where[i] = d, j
    return far, where


ALLOWED = 4.0
"""Standard deviations above one in k that the times beside known ones may be right."""


def pools_of(before: pl.DataFrame, time: str, strata: Sequence[str]) -> pl.DataFrame:
    """`group` and `pool`: the groups among whose rows a further exact time is given at random. A stratum's groups, by
    lower median (equal ones by number), go two and two; three at the end where their number is odd."""
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
    """The time beside a patient's exact time is the patient's own at most once in k. `chance`: the source's rows with
    each column shuffled inside the groups: where times tie, that is right more often."""
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
    Several rows with the time known count by their share."""
    patients = original.filter(pl.col(told) != pl.col(read)).select(*strata, told, read)
    known = table.group_by(*strata, told).len("rows")
    both = table.group_by(*strata, told, read).len("right")
    found = patients.join(known, on=[*strata, told], nulls_equal=True)
    asked = found.join(both, on=[*strata, told, read], how="left", nulls_equal=True)
    share = asked.select((pl.col("right").fill_null(0) / pl.col("rows")).mean()).item()
    return asked.height, float(share or 0.0)
