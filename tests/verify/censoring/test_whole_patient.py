"""Censored records with demographics, broken one way a test: classes, labels of records, owners inside a class."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.forging import by_method, restate, write_parquet
from tests.methods.visits.test_whole_patient import with_people
from tests.verify.made import sample_of

from leeward.methods.censoring import Censoring
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import Source, verify

Frame = pl.DataFrame


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    everyone = with_people(240)
    sample = sample_of(everyone, 90)
    method = Censoring(k=4, scope="raise", demographics=("age", "sex"), keep={"age": 20, "sex": "exact"})
    out = tmp_path_factory.mktemp("whole") / "out"
    write(method.protect(sample, population=everyone, randomness=Randomness.of(3)), out)
    source = Source(
        sample.require_events(),
        sample.patients,
        everyone.require_events(),
        population_patients=everyone.patients,
    )
    return out, source


def broken(
    made: tuple[Path, Source], folder: Path, name: str, changed: Callable[[Frame], Frame], part: str = "share"
) -> set[str]:
    """The checks that fail once a file was changed."""
    out = folder / "broken"
    shutil.copytree(made[0], out)
    file = out / part / "data" / name
    write_parquet(changed(pl.read_parquet(file)), file)
    restate(out)
    return by_method(verify(out, made[1]))


def test_labels_that_fewer_than_k_people_of_the_population_could_have(made: tuple[Path, Source]) -> None:
    """The same release beside a population in which the men of one class are women."""
    labels = (
        pl.read_parquet(made[0] / "share/data/classes.parquet")
        .filter(pl.col("sex") == "M")
        .row(0, named=True)
    )
    low, high = map(int, labels["age"].split("-"))
    people = made[1].population_patients
    assert people is not None
    others = people.with_columns(
        sex=pl.when(pl.col("age").is_between(low, high)).then(pl.lit("F")).otherwise(pl.col("sex"))
    )
    source = Source(made[1].events, made[1].patients, made[1].population_events, population_patients=others)
    assert by_method(verify(made[0], source)) == {"class_people"}


def test_a_record_that_k_people_contain_but_not_k_who_fit_its_labels(
    made: tuple[Path, Source], tmp_path: Path
) -> None:
    """Everybody's mentions are shown whole: many are contained in k people, of all classes together."""

    def whole(records: Frame) -> Frame:
        best = records.filter(pl.col("sex") == "F")["codes"].list.len().arg_max()
        assert best is not None
        longest = records.filter(pl.col("sex") == "F")["codes"][best].to_list()
        rows = [longest if sex == "M" else codes for codes, sex in records.select("codes", "sex").rows()]
        return records.with_columns(codes=pl.Series(rows, dtype=pl.List(pl.String)))

    assert broken(made, tmp_path, "records.parquet", whole) >= {"k_map"}


def test_caps_of_the_custodian_without_classes(made: tuple[Path, Source], tmp_path: Path) -> None:
    assert broken(made, tmp_path, "caps.parquet", lambda t: t.drop("class"), "custody") == {"mentions_read"}
