"""The digest of what a release says: equal for the same release again, whatever the numbers drawn, and for no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import leeward as lw
from leeward.release.canonical import content_digest


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lw.synth.write_claims("claims.csv", patients=200, codes=100, seed=1)


def claims() -> lw.Cohort:
    columns = {"code": [f"diag_{each}" for each in range(1, 11)], "visit": "claim"}
    return lw.read("claims.csv", columns=columns)


@pytest.mark.parametrize("method", [lw.Disassociation(k=5, m=2), lw.Visits(k=5)])
def test_the_same_release_again_has_the_same_digest(method: lw.Disassociation | lw.Visits) -> None:
    made = [
        lw.protect(claims(), method, out, formats=formats)
        for out, formats in (("a", ()), ("b", ("parquet",)))
    ]
    tables = [each.release.table(each.release.names()[0]).collect() for each in made]
    assert not tables[0].equals(tables[1])  # other numbers were drawn
    assert len({content_digest(each.release) for each in made}) == 1


def _swap(column: str, one: int, other: int) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Give two rows each other's value."""

    def changed(table: pl.DataFrame) -> pl.DataFrame:
        rows = list(range(table.height))
        rows[one], rows[other] = rows[other], rows[one]
        return table.with_columns(table[column].gather(rows))

    return changed


def _altered(file: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> str:
    path = Path("a/share/data") / file
    before = path.read_bytes()
    change(pl.read_parquet(path)).write_parquet(path)
    found = content_digest(lw.Release.open("a", compare=False))
    path.write_bytes(before)
    return found


def test_another_visit_of_a_record_or_another_owner_is_another_content() -> None:
    whole = content_digest(lw.protect(claims(), lw.Visits(k=5), "a", formats=("parquet",)).release)
    visits = pl.read_parquet("a/share/data/visits.parquet")
    other = next(
        place for place in range(1, visits.height)
        if visits["codes"][place].to_list() != visits["codes"][0].to_list()
        and visits["record"][place] != visits["record"][0]
        and visits.filter(pl.col("record") == visits["record"][place]).height > 1
    )  # fmt: skip
    assert _altered("visits.parquet", lambda table: table) == whole
    assert _altered("visits.parquet", lambda table: table.sample(fraction=1, shuffle=True, seed=1)) == whole
    assert _altered("visits.parquet", _swap("codes", 0, other)) != whole  # the same visits, of other records
    assert _altered("visits.parquet", lambda table: table[1:]) != whole


def test_another_place_in_the_tree_of_clusters_is_another_content() -> None:
    whole = content_digest(
        lw.protect(claims(), lw.Disassociation(k=5, m=2), "a", formats=("parquet",)).release
    )
    nodes = pl.read_parquet("a/share/data/nodes.parquet")
    one, other = next(
        (one, other)
        for one in range(nodes.height)
        for other in range(nodes.height)
        if nodes["records"][one] != nodes["records"][other]
        and nodes["parent"][one] != nodes["parent"][other]
        and nodes["kind"][one] == nodes["kind"][other] == "cluster"
    )
    assert _altered("nodes.parquet", lambda table: table[::-1]) == whole
    assert _altered("nodes.parquet", _swap("parent", one, other)) != whole
    chunks = pl.read_parquet("a/share/data/chunks.parquet")
    records = dict(nodes.select("node", "records").iter_rows())
    told = chunks.select("kind", "codes").rows()
    one, other = next(  # rows that say the same, or of clusters of one size, could change places unseen
        (one, other)
        for one in range(chunks.height)
        for other in range(chunks.height)
        if told[one] != told[other] and records[chunks["node"][one]] != records[chunks["node"][other]]
    )
    assert _altered("chunks.parquet", _swap("node", one, other)) != whole
