"""Who of a population holds each released record: a count up to k, by the postings of the record's rarest code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from leeward.compiled import njit

Longs = NDArray[np.int64]


def mentions_of(events: pl.DataFrame) -> pl.DataFrame:
    """`patient`, `code` (text), `has`: mentions; with a visit column a code counts once a visit."""
    kept = [name for name in ("patient", "code", "visit") if name in events.columns]
    rows = events.select(kept)
    if "visit" in kept:
        known = rows.filter(pl.col("visit").is_not_null()).unique()
        rows = pl.concat([known, rows.filter(pl.col("visit").is_null())])
    return rows.group_by("patient", "code").agg(pl.len().cast(pl.Int64).alias("has"))


def shown_by(table: pa.Table) -> pl.DataFrame:
    """`place` (of the record in the file), `code`, `shows`: the mentions of released records."""
    lists = pl.DataFrame(pl.from_arrow(table.select(["codes"]))).with_row_index("place")
    flat = lists.explode("codes", empty_as_null=False).rename({"codes": "code"})
    return flat.group_by("place", "code").agg(pl.len().cast(pl.Int64).alias("shows"))


@dataclass(frozen=True)
class Postings:
    """Per code the people who hold it, ascending, with their mentions: code c has people[starts[c]:starts[c + 1]]."""

    n: int
    codes: dict[str, int]
    starts: Longs
    people: Longs
    has: Longs

    @staticmethod
    def of(events: pl.DataFrame) -> Postings:
        """The postings of a population's events."""
        counted = mentions_of(events)
        people = events.select("patient").unique().with_row_index("person")
        names = counted["code"].unique()
        numbers = pl.Series(range(len(names)), dtype=pl.Int64)
        rows = counted.join(people, on="patient").select(
            pl.col("code").replace_strict(names, numbers).cast(pl.Int64).alias("number"),
            pl.col("person").cast(pl.Int64),
            "has",
        )
        key = rows["number"].to_numpy() * people.height + rows["person"].to_numpy()
        order = np.argsort(key, kind="stable")
        number = rows["number"].to_numpy()[order]
        starts = np.searchsorted(number, np.arange(len(names) + 1)).astype(np.int64)
        codes = {str(name): place for place, name in enumerate(names.cast(pl.String).to_list())}
        return Postings(
            people.height, codes, starts, rows["person"].to_numpy()[order], rows["has"].to_numpy()[order]
        )

    def holders(self, shown: pl.DataFrame, records: int, enough: int) -> Longs:
        """For each record how many people hold all of it; counted up to `enough`."""
        if not shown.height:  # all records are empty, and everybody contains them
            return np.full(records, self.n, np.int64)
        distinct = shown["code"].unique()
        places = pl.Series([self.codes.get(code, -1) for code in distinct.to_list()], dtype=pl.Int64)
        rows = shown.with_columns(number=pl.col("code").replace_strict(distinct, places)).sort("place")
        offsets = np.searchsorted(rows["place"].to_numpy(), np.arange(records + 1)).astype(np.int64)
        counts: Longs = count_holders(
            offsets, rows["number"].to_numpy(), rows["shows"].to_numpy(), self.starts, self.people, self.has,
            self.n, enough,
        )  # fmt: skip
        return counts


@njit(cache=True, nogil=True)
def count_holders(
    offsets: Longs, codes: Longs, shows: Longs, starts: Longs, people: Longs, has: Longs, n: int, enough: int
) -> Longs:
    """People who hold each record: those of its rarest code, looked up among the holders of each other code."""
    counts = np.zeros(len(offsets) - 1, np.int64)
    for record in range(len(offsets) - 1):
        first, last = offsets[record], offsets[record + 1]
        if first == last:
            counts[record] = n
            continue
        rarest, fewest = first, np.int64(-1)
        for i in range(first, last):
            size = starts[codes[i] + 1] - starts[codes[i]] if codes[i] >= 0 else np.int64(0)
            if fewest < 0 or size < fewest:
                rarest, fewest = i, size
        if fewest == 0:
            continue
        for p in range(starts[codes[rarest]], starts[codes[rarest] + 1]):
            if has[p] < shows[rarest]:
                continue
            whole = True
            for i in range(first, last):
                if i == rarest:
                    continue
                low, high = starts[codes[i]], starts[codes[i] + 1]
                at = low + np.searchsorted(people[low:high], people[p])
                if at == high or people[at] != people[p] or has[at] < shows[i]:
                    whole = False
                    break
            if whole:
                counts[record] += 1
                if counts[record] >= enough:
                    break
    return counts
