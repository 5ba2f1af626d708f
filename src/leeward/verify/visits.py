"""The attacker of visits: counts from the files how many patients share each visit's set; compares with the source.

Written from the definitions (Heatherly et al. 2013; ALGORITHMS §5.2) and shares nothing with the method. The
custodian's files are used as witnesses only: they say where to look, and what they say is checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from leeward.errors import BadInput
from leeward.verify.checks import Check, Source, of_count
from leeward.verify.manifest import Share

SEPARATOR = "\x1f"
"""Joins the codes of a set into one text to be counted; no code holds it."""

LEVELS = ("code", "containment", "visit")


def check(share: Share, source: Source | None = None) -> list[Check]:
    """Every check of a release of visits, or of a cohort drawn from one.

    Raises
    ------
    BadInput
        What the guarantee speaks of is not at hand: the master of an extract, the custodian's visit sets at level
        `containment`.
    """
    checks, visits = layout(share)
    if visits is None:
        return checks
    k, level = share.guarantee("k"), str(share.manifest["parameters"].get("level"))
    if level not in LEVELS:
        return [*checks, Check("level", False, f"the manifest's level is none of {', '.join(LEVELS)}.")]
    if share.manifest["parameters"].get("extract"):
        from leeward.verify.visits_extract import extract_checks

        return [*checks, *extract_checks(share, visits, k, level)]
    checks += level_checks(share, visits, visits, k, level)
    if source is not None:
        from leeward.verify.visits_source import source_checks

        checks += source_checks(share, visits, source)
    return checks


def layout(share: Share) -> tuple[list[Check], pl.DataFrame | None]:
    """Both tables have their columns and types, records and visits are numbered, sets are sorted."""
    try:
        table = pq.read_table(share.data("visits.parquet"))
        numbers = pq.read_table(share.data("records.parquet"))
    except (OSError, pa.ArrowInvalid):
        return [
            Check("layout", False, "visits.parquet or records.parquet is missing or cannot be read.")
        ], None
    payload = [str(name) for name in share.manifest["parameters"].get("payload", [])]
    wrong = table.column_names != ["record", "visit", "codes"] or numbers.column_names != ["record", *payload]
    if wrong or not pa.types.is_list(table.schema.field("codes").type):
        detail = "visits.parquet or records.parquet has other columns than the contract and the manifest's payload."
        return [Check("layout", False, detail)], None
    visits = pl.DataFrame(pl.from_arrow(table))
    records = int(share.manifest["records"])
    whole = np.array_equal(np.sort(numbers["record"].to_numpy()), np.arange(records))
    checks = [
        Check("layout", True, "visits.parquet and records.parquet have the columns of the contract."),
        Check(
            "records_numbered",
            whole,
            "Records are numbered from 0, each once."
            if whole
            else "Record numbers have gaps, repeats or a wrong count.",
        ),
        *_visit_checks(visits, records),
    ]
    return checks, visits if all(each.passed for each in checks) else None


def _visit_checks(visits: pl.DataFrame, records: int) -> list[Check]:
    strangers = visits.filter(
        ~pl.col("record").is_between(0, records - 1) | pl.col("record").is_null()
    ).height
    ends = visits.group_by("record").agg(
        pl.col("visit").min().alias("low"),
        pl.col("visit").max().alias("high"),
        pl.len(),
        pl.col("visit").n_unique().alias("distinct"),
    )
    loose = ends.filter(
        (pl.col("low") != 0) | (pl.col("high") != pl.col("len") - 1) | (pl.col("distinct") != pl.col("len"))
    )
    sets = visits.select("codes", size=pl.col("codes").list.len())
    flat = sets.with_row_index("at").drop_nulls("codes").filter(pl.col("size") > 0).explode("codes")
    before = pl.col("codes").shift(1).over("at") if flat.height < 1 else pl.col("codes").shift(1)
    same = pl.col("at") == pl.col("at").shift(1)
    disordered = flat.filter((same & (pl.col("codes") <= before)) | pl.col("codes").is_null())[
        "at"
    ].n_unique()
    empty = sets.filter(pl.col("codes").is_null() | (pl.col("size") == 0)).height
    parted = flat.filter(pl.col("codes").str.contains(SEPARATOR, literal=True)).height
    return [
        of_count(
            "visits_of_records", strangers, "Every visit belongs to a record.", "visits belong to no record."
        ),
        of_count(
            "visits_numbered",
            loose.height,
            "Visits are numbered from 0 inside each record.",
            "records have visit numbers with gaps or repeats.",
        ),
        of_count(
            "sets_sorted",
            disordered + empty + parted,
            "Every visit holds distinct codes in ascending order.",
            "visits have no codes, null codes, repeats or another order.",
        ),
    ]


def level_checks(
    share: Share, wanted: pl.DataFrame, population: pl.DataFrame, k: int, level: str
) -> list[Check]:
    """The guarantee: what `wanted` shows is shared by k records of `population` (itself, or the master)."""
    if level == "visit":
        return [visit_check(wanted, population, k)]
    if level == "code":
        return [code_check(wanted, population, k)]
    return containment_checks(share, population, k)


def set_texts(visits: pl.DataFrame) -> pl.DataFrame:
    """`record` and `set` (one text) of every visit."""
    return visits.select("record", pl.col("codes").list.join(SEPARATOR).alias("set"))


def holders_of_sets(visits: pl.DataFrame) -> pl.DataFrame:
    """`set` and `holders`: records with exactly that set in some visit."""
    return set_texts(visits).unique().group_by("set").agg(pl.len().alias("holders"))


def visit_check(wanted: pl.DataFrame, population: pl.DataFrame, k: int) -> Check:
    """G3: every visit's set is held exactly by k records."""
    found = set_texts(wanted).select("set").unique().join(holders_of_sets(population), on="set", how="left")
    return _shared("visit_sets", found["holders"].fill_null(0), k, population, "visit sets", "have exactly")


def code_check(wanted: pl.DataFrame, population: pl.DataFrame, k: int) -> Check:
    """G1: every code occurs in k records."""
    held = (
        population.select("record", "codes")
        .explode("codes")
        .unique()
        .group_by("codes")
        .agg(pl.len().alias("holders"))
    )
    found = wanted.select(pl.col("codes").explode().unique()).join(held, on="codes", how="left")
    return _shared("codes", found["holders"].fill_null(0), k, population, "codes", "have")


def _shared(name: str, holders: pl.Series, k: int, population: pl.DataFrame, what: str, verb: str) -> Check:
    figures: dict[str, Any] = {"k": k, "distinct": len(holders), "smallest": holders.min()}
    few = int((holders < k).sum())
    records = population["record"].n_unique()
    return of_count(
        name,
        few,
        f"Each of {len(holders):,} distinct {what} is shared: at least {k} of {records:,} records {verb} it.",
        f"of {len(holders):,} distinct {what} are shared by fewer than {k} records.",
        figures,
    )


def containment_checks(share: Share, population: pl.DataFrame, k: int) -> list[Check]:
    """G2: every visit set that the custodian keeps is part of k records; the records are those sets' unions."""
    file = share.folder.parent / "custody" / "data" / "visit_sets.parquet"
    if not file.is_file():
        raise BadInput(
            "level `containment` speaks of visit sets that the merged release does not show: verify the whole release "
            "folder, with custody/data/visit_sets.parquet."
        )
    sets = pl.read_parquet(file)
    pairs = sets.select("record", "codes").explode("codes").unique()
    shown = population.select("record", "codes").explode("codes")
    differing = pairs.join(shown, on=["record", "codes"], how="anti").height
    differing += shown.join(pairs, on=["record", "codes"], how="anti").height
    several = population["record"].is_duplicated().sum()
    counts = Containers.of(population).counts(set_texts(sets)["set"].unique().to_list(), k)
    return [
        of_count(
            "one_set_a_record",
            int(several),
            "Visits are merged: one set a record.",
            "rows show visits of a record apart.",
        ),
        of_count(
            "unions_of_visit_sets",
            differing,
            "Every record is the union of its visit sets.",
            "codes are in a record and in none of its visit sets, or the reverse.",
        ),
        _shared("contained_sets", pl.Series(counts), k, population, "visit sets", "contain"),
    ]


class Containers:
    """Who holds each code, to count the records that contain a set."""

    def __init__(self, holders: dict[str, np.ndarray[Any, np.dtype[np.int64]]]) -> None:
        self.holders = holders

    @staticmethod
    def of(population: pl.DataFrame) -> Containers:
        pairs = population.select("record", "codes").explode("codes").unique().sort("codes", "record")
        parts = pairs.partition_by("codes", as_dict=True, include_key=False)
        return Containers({str(code): part["record"].to_numpy() for (code,), part in parts.items()})

    def counts(self, sets: list[str], enough: int) -> list[int]:
        """Records that contain each set; counting stops where at least `enough` are found."""
        return [self._count(text.split(SEPARATOR), enough) for text in sets]

    def _count(self, codes: list[str], enough: int) -> int:
        nobody = np.zeros(0, np.int64)
        lists = sorted((self.holders.get(code, nobody) for code in codes), key=len)
        looked = 1024
        while True:
            found = lists[0][:looked]
            for others in lists[1:]:
                if len(others) == 0:
                    return 0
                place = np.minimum(np.searchsorted(others, found), len(others) - 1)
                found = found[others[place] == found]
            if looked >= len(lists[0]) or len(found) >= enough:
                return len(found)
            looked *= 16
