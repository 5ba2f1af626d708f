"""Whether an order reveals something: places in a file against what the source, custody or the file itself knows.

A release numbers its records in shuffled order. Then what is known of them (the source's row, the identifier's rank,
the group, the codes, the payload) is a random permutation of the places, ties broken at random. Three statistics of a
random permutation x of n have a known mean and variance; the test is two-sided with `LIMIT` standard deviations each,
which chance exceeds about twice in 10^9:

- trend, the sum of i x(i): rising or falling with the place. Mean n(n + 1)^2 / 4, variance n^2 (n + 1)^2 (n - 1) / 144.
- rises, how often x(i) < x(i + 1): mean (n - 1) / 2, variance (n + 1) / 12.
- steps, the sum of |x(i + 1) - x(i)|: neighbours alike (sorted, grouped, dealt out in turn). Mean (n^2 - 1) / 3,
  variance (n + 1) (n - 2) (4 n - 7) / 90.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import polars as pl
import polars.selectors as cs
import pyarrow.parquet as pq

from leeward.verify.checks import Check, Source
from leeward.verify.flat import LARGEST, Longs, heads_of
from leeward.verify.manifest import Share

LIMIT = 6.0
"""Standard deviations from what chance makes."""

FEWEST = 8
"""Of fewer places nothing can be said."""


def deviations(ranks: Longs) -> dict[str, float]:
    """The three statistics of a permutation of 0 … n-1, in standard deviations."""
    n = len(ranks)
    if n < FEWEST:
        return {}
    step = np.diff(ranks)
    place = np.arange(n) - (n - 1) / 2
    trend = float((place * (ranks - (n - 1) / 2)).sum())
    rises = int(np.count_nonzero(step > 0)) - (n - 1) / 2
    steps = int(np.abs(step).sum()) - (n * n - 1) / 3
    return {
        "trend": trend / np.sqrt(float(n) * n * (n + 1) ** 2 * (n - 1) / 144),
        "rises": rises / np.sqrt((n + 1) / 12),
        "steps": steps / np.sqrt((n + 1) * (n - 2) * (4 * n - 7) / 90),
    }


def ranks_of(known: pl.Series) -> Longs:
    """The rank of each value, ties broken at random (in a fixed way); what is missing comes first."""
    ranks = np.empty(len(known), np.int64)
    ranks[by_value(known)] = np.arange(len(known))
    return ranks


def by_value(known: pl.Series) -> Longs:
    """The places of the values in ascending order, those of equal ones in a fixed random order."""
    return ascending(numbers_of(known), ties_of(len(known)))


def ascending(numbers: Longs, order: Longs) -> Longs:
    """The places `order`, stably sorted by their numbers, none of which is negative: 16 bits at a time, which NumPy
    sorts by counting."""
    most = int(numbers.max(initial=0))
    for shift in range(0, max(1, most.bit_length()), 16):
        digits = (numbers >> shift).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    return order


def numbers_of(known: pl.Series) -> Longs:
    """Whole numbers in the order of the values, 0 for what is missing."""
    values = known
    if isinstance(known.dtype, pl.List):
        values = known.cast(pl.List(pl.String)).list.join("\x1f")
    elif isinstance(known.dtype, pl.Enum | pl.Categorical | pl.Boolean):
        values = known.cast(pl.String)
    if values.dtype == pl.String:
        values = values.cast(pl.Enum(values.drop_nulls().unique().sort())).to_physical()
    if values.dtype.is_integer() and len(present := values.drop_nulls().to_numpy()):
        least, most = int(present.min()), int(present.max())
        if max(-least, most) < LARGEST:
            return (values.cast(pl.Int64) - (least - 1)).fill_null(0).to_numpy()
    return values.rank("dense").fill_null(0).to_numpy().astype(np.int64)


@lru_cache(maxsize=2)
def ties_of(n: int) -> Longs:
    """A fixed random order of n things."""
    order = np.empty(n, np.int64)
    order[np.random.Generator(np.random.Philox(key=n)).permutation(n)] = np.arange(n)
    return order


def telling(deviations: Mapping[str, float]) -> list[str]:
    return [name for name, z in deviations.items() if abs(z) > LIMIT]


def order_check(name: str, known: Mapping[str, pl.Series], what: str) -> Check:
    """A check that the order of `what` says nothing of any of the columns `known`, each in the order of the places."""
    exact = {
        f"{column}: {statistic}": float(z)
        for column, values in known.items()
        for statistic, z in deviations(ranks_of(values)).items()
    }
    found = {each: round(z, 2) for each, z in exact.items()}
    told = sorted({each.split(":")[0] for each in telling(found)})
    worst = max(map(abs, exact.values()), default=0.0)
    detail = (
        f"The order of {what} reveals {'something' if told else 'nothing'} about {', '.join(told or known)}: "
    )
    detail += f"at most {worst:.1f} standard deviations from chance."
    return Check(name, not told, detail, {"deviations": found, "limit": LIMIT})


def within_check(name: str, group: pl.Series, known: Mapping[str, pl.Series], what: str) -> Check:
    """A check that the order inside each group (rows in order) says nothing of the columns `known`: the sum over groups
    of the covariance of place and rank, against a shuffle inside each group."""
    found: dict[str, float] = {}
    places = numbers_of(group)
    order = ascending(places, np.arange(len(places)))
    starts = np.flatnonzero(heads_of(places[order]))
    sizes = np.diff(np.append(starts, len(order)))
    begin, several = np.repeat(starts, sizes), sizes > 1
    middle = np.repeat((sizes - 1) / 2, sizes)
    place = np.arange(len(order)) - begin - middle
    for column, values in known.items():
        ranked = ascending(places, by_value(values))
        rank = np.empty(len(ranked))
        rank[ranked] = np.arange(len(ranked)) - begin
        x = rank[order] - middle
        t, p, v = (np.add.reduceat(each, starts)[several] for each in (place * x, place**2, x**2))
        variance = float((p * v / (sizes[several] - 1)).sum())
        found[column] = round(float(t.sum()) / np.sqrt(variance), 2) if variance > 0 else 0.0
    told = sorted(telling(found))
    detail = (
        f"The order of {what} reveals {'something' if told else 'nothing'} about {', '.join(told or known)}."
    )
    return Check(name, not told, detail, {"deviations": found, "limit": LIMIT})


NUMBERS = frozenset({"record", "position", "visit"})
"""Columns that number things: what they number is tested, not they."""


def check_orders(share: Share, files: Sequence[str]) -> list[Check]:
    """The order of records against what each file shows of them (of several rows of a record, the first)."""
    found: dict[str, pl.Series] = {}
    for name in files:
        stored = pq.ParquetFile(share.data(name))
        groups = range(stored.num_row_groups)
        parts = (
            [share.table(name)] if len(groups) < 2 else map(pl.from_arrow, map(stored.read_row_group, groups))
        )
        table = of_first_rows(pl.concat(map(of_first_rows, map(pl.DataFrame, parts))))
        for column in table.columns:
            if column not in NUMBERS:
                # `age` is a label of records and the age of a pair: neither hides the other
                found[f"{column} ({name})" if column in found else column] = table[column]
    return [order_check("order_of_rows", found, "records")] if found else []


def of_first_rows(table: pl.DataFrame) -> pl.DataFrame:
    """The first row of each record; of lists the first entry."""
    if "record" in table.columns and not (first := first_rows(table["record"])).all():
        table = table.filter(first)
    return table.with_columns(cs.list().list.first())


def first_rows(record: pl.Series) -> pl.Series:
    """Where each record's first row is; ascending ones, as they should be, are compared with their neighbours alone."""
    if record.null_count() or not record.is_sorted():
        return record.is_first_distinct()
    return (record != record.shift(1)).fill_null(value=True)


def owner_orders(share: Share, owners: Mapping[str, str], source: Source | None = None) -> list[Check]:
    """The order of records against what custody says of each; none without custody. `owners`: file of `custody/data`
    with a row a record -> its column that tells whose the record is."""
    found: dict[str, pl.Series] = {}
    for name, column in owners.items():
        file = share.kept(name)
        if file is None or not {"record", column} <= set(pl.read_parquet_schema(file)):
            continue
        found[column] = pl.read_parquet(file).sort("record")[column]
        if source is not None and column in ("patient", "place"):
            found["source row"] = source_rows(found[column], source)
    return [order_check("order_of_records", found, "records")] if found else []


def read_first_rows(source: Source) -> tuple[pl.Series, pl.Series]:
    """The patients, ascending, and a number of each one's first row, which ascend with the source's rows."""
    patients, first = source.numbered.patients, pl.Series(source.numbered.first)
    return patients, source.events["row"].gather(first) if "row" in source.events.columns else first


def source_rows(owner: pl.Series, source: Source) -> pl.Series:
    """The first row of each record's patient in the source; nulls where custody names patients otherwise. `owner`:
    identifiers, or places among the patients in ascending order."""
    parts = [read_first_rows(part) for part in source.parts()]
    patients, first = (pl.concat(each, rechunk=True) for each in zip(*parts, strict=True))
    if owner.name == "place":
        inside = owner.is_between(0, len(first) - 1)
        return first.gather(pl.select(pl.when(inside).then(owner)).to_series())
    if patients.dtype != owner.dtype:
        return pl.Series([None] * len(owner), dtype=pl.UInt32)
    known = pl.DataFrame({"patient": patients, "at": first})
    table = owner.to_frame("patient").join(known, on="patient", how="left", maintain_order="left")
    return table["at"]
