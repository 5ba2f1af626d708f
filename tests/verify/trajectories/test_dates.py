"""The verifier of trajectories with dates, by breaking releases: one violation a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.methods.trajectories.frames import HIERARCHY
from tests.methods.trajectories.test_dates import TIME, with_dates
from tests.verify.test_trajectories import failed, rewritten, stated

import leeward as lw
from leeward.verify import Source

Made = tuple[Path, Source]


@pytest.fixture
def out(tmp_path: Path) -> Made:
    file, source = tmp_path / "codes.csv", with_dates()
    file.write_text(HIERARCHY)
    method = lw.Trajectories(k=4, time=TIME, hierarchy=str(file), clustering="alignment")
    result = lw.protect(source, method, tmp_path / "out", seed=1, threads=1)
    return result.path, Source(source.require_events(), source.patients)


def first_group(path: Path, column: str) -> list[int]:
    """The records of one group."""
    table = pl.read_parquet(path / "share/data/trajectories.parquet")
    kinds = table.group_by("record").agg(pl.concat_str("code", column).str.join(";").alias("all"))
    return kinds.filter(pl.col("all") == kinds.sort("all")["all"][0])["record"].to_list()


def test_untouched_release_of_dates_passes(out: Made) -> None:
    assert failed(*out) == set()


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("2011-02", "2011-2"),
        lambda text: text.replace('"2011-03","2011-Q1"', '"2011-03","2011-Q2"'),
        lambda text: "".join(row for row in text.splitlines(True) if not row.startswith('"2011-12"')),
        lambda text: text + '"2014-01","2008-2013"\n',
        lambda text: text.replace("2008-2009", "2007-2009"),
        lambda text: text.replace("2011-Q1", "2011-QX").replace("2011-Q2", "2011-Q1").replace("2011-QX", "2011-Q2"),
    ],
    ids=["label", "quarter", "month missing", "month more", "decade", "quarters swapped"],
)  # fmt: skip
def test_another_tree_of_dates_is_caught(out: Made, change: Callable[[str], str]) -> None:
    path, _ = out
    rewritten(path, "date_hierarchy.csv", change)
    assert failed(path) == {"layout"}


@pytest.mark.parametrize("years", ["2008-2014", "2009-2013", "2013-2008", "1000-9999", "age", "08-13"])
def test_other_years_than_stated_are_caught(out: Made, years: str) -> None:
    path, _ = out
    stated(path, time=years)
    found = lw.verify(path)
    assert {check.name for check in found.failures} & {"layout", "parameters"}


def test_a_release_of_dates_that_says_it_has_ages_is_caught(out: Made) -> None:
    path, _ = out
    stated(path, ages="0-127")
    assert not lw.verify(path)["parameters"].passed


def test_a_group_at_another_date_is_caught(out: Made) -> None:
    """All records of a group are moved to a month in which none of their patients has anything: k holds."""
    path, source = out
    chosen = first_group(path, "date")
    moved = pl.when(pl.col("record").is_in(chosen)).then(pl.lit("2013-12")).otherwise("date")
    rewritten(path, "trajectories.parquet", lambda t: t.with_columns(date=moved))
    assert failed(path) == set() and failed(path, source) == {"owners", "own_patients"}


def test_dates_that_fall_are_caught(out: Made) -> None:
    path, _ = out
    table = pl.read_parquet(path / "share/data/trajectories.parquet")
    kinds = table.group_by("record").agg(pl.concat_str("code", "date").str.join(";").alias("all"), pl.len())
    long = kinds.filter(pl.col("len") > 1).sort("all", "record")["all"][0]
    chosen = pl.col("record").is_in(kinds.filter(pl.col("all") == long)["record"].to_list())
    late = pl.when(pl.col("position") == 0).then(pl.lit("2012-Q2")).otherwise(pl.lit("2012-03"))
    rewritten(
        path,
        "trajectories.parquet",
        lambda t: t.with_columns(date=pl.when(chosen).then(late).otherwise("date")),
    )
    assert failed(path) == {"ages_in_order"}


def test_a_date_wider_than_stated_is_caught(out: Made) -> None:
    path, _ = out
    assert "2010-2013" in set(pl.read_parquet(path / "share/data/trajectories.parquet")["date"])
    stated(path, widest_age=4)
    assert "ages_not_wider" not in failed(path)
    stated(path, widest_age=3)
    assert "ages_not_wider" in failed(path)


def test_a_source_without_dates_is_not_the_releases(out: Made) -> None:
    path, source = out
    assert source.events is not None
    assert "source_patients" in failed(path, Source(source.events.drop("date"), source.patients))


def test_a_date_of_the_source_outside_the_years_is_no_patients_pair(out: Made) -> None:
    path, source = out
    assert source.events is not None
    alone = source.events.head(1).with_columns(date=pl.date(2014, 1, 1), patient=pl.lit(10**6).cast(pl.Int64))
    assert "source_patients" not in failed(path, Source(pl.concat([source.events, alone]), source.patients))
