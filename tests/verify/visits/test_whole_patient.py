"""Visits with demographics, broken one way a test: classes, labels of records, sets inside a class, custody, source."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.forging import by_method, restate, write_parquet
from tests.methods.visits.test_whole_patient import with_people

from leeward.methods.visits import Visits
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import Source, verify

K = 4
Frame = pl.DataFrame


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    cohort = with_people(200)
    method = Visits(k=K, demographics=("age", "sex"), keep={"age": 20, "sex": "exact"})
    out = tmp_path_factory.mktemp("whole") / "out"
    write(method.protect(cohort, randomness=Randomness.of(3)), out)
    return out, Source(cohort.require_events(), cohort.patients)


def change(out: Path, name: str, changed: Callable[[Frame], Frame], part: str = "share") -> None:
    file = out / part / "data" / name
    write_parquet(changed(pl.read_parquet(file)), file)
    restate(out)


def broken(
    made: tuple[Path, Source],
    tmp_path: Path,
    name: str,
    changed: Callable[[Frame], Frame],
    part: str = "share",
) -> set[str]:
    """The checks that fail beside the source once a file was changed."""
    out = tmp_path / "broken"
    shutil.copytree(made[0], out)
    change(out, name, changed, part)
    return by_method(verify(out, made[1]))


def test_a_set_that_k_patients_share_but_not_k_of_the_class(
    made: tuple[Path, Source], tmp_path: Path
) -> None:
    """One of the k patients of a class who share a set loses it to a patient of another class."""
    out = tmp_path / "broken"
    shutil.copytree(made[0], out)
    records = pl.read_parquet(out / "share/data/records.parquet").with_columns(
        label=pl.concat_str("age", "sex", separator=" ")
    )
    visits = pl.read_parquet(out / "share/data/visits.parquet").join(
        records.select("record", "label"), on="record"
    )
    visits = visits.with_columns(set=pl.col("codes").list.join("+"))
    held = (
        visits.group_by("label", "set")
        .agg(pl.col("record").unique().sort())
        .sort(pl.col("record").list.len(), "set", "label")
    )
    one = next(row for row in held.rows(named=True) if (held["set"] == row["set"]).sum() > 1)
    where = held.filter((pl.col("set") == one["set"]) & (pl.col("label") != one["label"]))["record"][0][0]
    assert len(one["record"]) >= K

    def shift(table: Frame) -> Frame:
        goes = pl.col("record").is_in(one["record"][K - 1 :]) & (pl.col("codes").list.join("+") == one["set"])
        moved = table.with_columns(record=pl.when(goes).then(where).otherwise(pl.col("record")))
        return moved.sort("record", maintain_order=True).with_columns(
            visit=pl.int_range(pl.len()).over("record")
        )

    change(out, "visits.parquet", shift)
    assert by_method(verify(out)) >= {"visit_sets"}


def test_a_record_number_that_tells_the_class(made: tuple[Path, Source], tmp_path: Path) -> None:
    """Records numbered class by class: the labels, and what the visits show, follow the number."""
    out = tmp_path / "broken"
    shutil.copytree(made[0], out)
    order = pl.read_parquet(out / "share/data/records.parquet").sort("age", "sex")["record"].to_list()
    number = pl.DataFrame({"record": order, "new": np.arange(len(order))})

    def renumber(table: Frame) -> Frame:
        found = table.join(number, on="record").with_columns(record="new").drop("new")
        return found.sort("record", *(["visit"] if "visit" in found.columns else []))

    for part, name in (("share", "records.parquet"), ("share", "visits.parquet"),
                       ("custody", "patients.parquet"), ("custody", "visits.parquet")):  # fmt: skip
        change(out, name, renumber, part)
    assert {check.name for check in verify(out).failures} >= {"order_of_rows"}


def test_what_became_of_a_code_in_another_class(made: tuple[Path, Source], tmp_path: Path) -> None:
    """The custodian's table of codes without its classes, and with those of two classes exchanged."""
    assert broken(made, tmp_path / "a", "codes.parquet", lambda t: t.drop("class"), "custody") == {"witness"}
    without = broken(made, tmp_path / "b", "labels.parquet", lambda t: t.drop("class"), "custody")
    assert without == {"labels_read"}
    exchanged = broken(
        made,
        tmp_path / "c",
        "labels.parquet",
        lambda t: t.with_columns(pl.col("class").replace({0: 1, 1: 0})),
        "custody",
    )
    assert exchanged == {"labels_read"}


def test_patients_are_named_once_each(made: tuple[Path, Source], tmp_path: Path) -> None:
    def twice(people: Frame) -> Frame:
        return people.with_columns(record=pl.when(pl.col("record") == 1).then(0).otherwise(pl.col("record")))

    assert broken(made, tmp_path, "patients.parquet", twice, "custody") >= {"witness"}
