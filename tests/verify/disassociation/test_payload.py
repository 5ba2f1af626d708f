"""Payload beside disassociated chunks: values in the clusters of their patients, in an order that says nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.forging import by_method, restate, write_parquet
from tests.methods.disassociation.test_whole_patient import people

from leeward.methods.disassociation import Disassociation
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import Source, verify

FILE = "share/data/payload.parquet"
PAYLOAD = ("zip", "result")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    cohort = people(500, seed=5)
    method = Disassociation(
        k=4, m=2, demographics=("age", "sex"), keep={"age": 20, "sex": "exact"}, payload=PAYLOAD
    )
    out = tmp_path_factory.mktemp("payload") / "out"
    return write(method.protect(cohort, randomness=Randomness.of(3)), out), Source(
        cohort.require_events(), cohort.patients
    )


def failing(
    made: tuple[Path, Source], tmp_path: Path, changed: Callable[[pl.DataFrame], pl.DataFrame]
) -> tuple[set[str], set[str]]:
    """The failed checks with source and custody, and of the share alone."""
    out = tmp_path / "broken"
    shutil.copytree(made[0], out)
    write_parquet(changed(pl.read_parquet(out / FILE)), out / FILE)
    restate(out)
    whole = by_method(verify(out, made[1]))
    shutil.copytree(out / "share", tmp_path / "alone")
    return whole, by_method(verify(tmp_path / "alone"))


def members(made: tuple[Path, Source]) -> pl.DataFrame:
    """`node`, `patient` and payload, in the source's order."""
    clusters = pl.read_parquet(made[0] / "custody/data/clusters.parquet")
    first = made[1].events.select("patient").unique(keep="first", maintain_order=True)
    assert made[1].patients is not None
    return first.join(clusters, on="patient", maintain_order="left").join(
        made[1].patients, on="patient", maintain_order="left"
    )


def by_column(own: pl.DataFrame) -> pl.DataFrame:
    """The payload file of members in their order."""
    order = pl.col("column").replace_strict(
        {name: i for i, name in enumerate(PAYLOAD)}, return_dtype=pl.Int64
    )
    long = own.unpivot(PAYLOAD, index="node", variable_name="column", value_name="value")
    return long.with_columns(order=order).sort("node", "order", maintain_order=True).drop("order")


def test_the_release_as_it_was_made_passes(made: tuple[Path, Source], tmp_path: Path) -> None:
    assert failing(made, tmp_path, lambda table: table) == (set(), set())


def test_values_exchanged_between_clusters(made: tuple[Path, Source], tmp_path: Path) -> None:
    def exchanged(table: pl.DataFrame) -> pl.DataFrame:
        values = table["value"].to_list()
        mine = table.with_row_index().filter(pl.col("column") == "zip")
        a = mine["index"][0]
        other = mine.filter(pl.col("node") != mine["node"][0], pl.col("value") != values[a])
        b = other["index"][0]
        values[a], values[b] = values[b], values[a]
        return table.with_columns(value=pl.Series(values, dtype=pl.String))

    whole, alone = failing(made, tmp_path, exchanged)
    assert "subrecords_of_members" in whole
    assert "payload_source" not in whole, "over all clusters they are the patients'"
    assert alone == set()


@pytest.mark.parametrize("falling", [False, True])
def test_values_sorted_inside_clusters(falling: bool, made: tuple[Path, Source], tmp_path: Path) -> None:
    def ordered(table: pl.DataFrame) -> pl.DataFrame:
        own = table.with_row_index().sort("value", descending=falling, nulls_last=True, maintain_order=True)
        order = {name: i for i, name in enumerate(PAYLOAD)}
        place = pl.col("column").replace_strict(order, return_dtype=pl.Int64)
        return own.sort("node", place, maintain_order=True).drop("index")

    whole, alone = failing(made, tmp_path, ordered)
    assert "payload_shuffled" in whole
    assert alone == {"payload_shuffled"}


def test_values_in_the_order_of_the_source(made: tuple[Path, Source], tmp_path: Path) -> None:
    whole, _ = failing(made, tmp_path, lambda _: by_column(members(made)))
    assert whole == {"zipped_subrecords"}


def test_columns_in_one_order(made: tuple[Path, Source], tmp_path: Path) -> None:
    """The i-th values of a cluster's columns are one patient's."""
    own = members(made).sample(fraction=1, shuffle=True, seed=2)
    assert failing(made, tmp_path, lambda _: by_column(own)) == ({"zipped_subrecords"}, set())


def test_rows_of_a_cluster_in_another_order_of_columns(made: tuple[Path, Source], tmp_path: Path) -> None:
    found = failing(made, tmp_path, lambda t: t.sort("node", "column", maintain_order=True))
    assert found == ({"payload_counts"}, {"payload_counts"})
    found = failing(made, tmp_path / "nodes", lambda t: t.sort("node", descending=True, maintain_order=True))
    assert found[1] == {"payload_counts"}


@pytest.mark.parametrize("node", [None, -1, 10**6])
def test_a_value_of_no_cluster(node: int | None, made: tuple[Path, Source], tmp_path: Path) -> None:
    def stray(table: pl.DataFrame) -> pl.DataFrame:
        return table.with_columns(node=pl.when(pl.int_range(pl.len()) == 3).then(node).otherwise("node"))

    assert ("layout" if node is None else "payload_counts") in failing(made, tmp_path, stray)[0]
