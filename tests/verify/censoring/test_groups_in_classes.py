"""Scope `groups` with demographics, broken one way a test: who has which labels, what groups share."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.forging import by_method, restate, write_parquet
from tests.methods.visits.test_whole_patient import with_people
from tests.verify.made import sample_of

from leeward.errors import BadInput
from leeward.methods.censoring import Censoring
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import Source, verify

Frame = pl.DataFrame


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    everyone = with_people(200)
    sample = sample_of(everyone, 80)
    method = Censoring(k=4, demographics=("age", "sex"), keep={"age": 20, "sex": "exact"})
    out = tmp_path_factory.mktemp("groups") / "out"
    write(method.protect(sample, population=everyone, randomness=Randomness.of(3)), out)
    events, people = everyone.require_events(), everyone.patients
    return out, Source(sample.require_events(), sample.patients, events, population_patients=people)


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


def test_a_release_as_it_was_made_passes(made: tuple[Path, Source]) -> None:
    found = verify(made[0], made[1])
    assert by_method(found) == set()
    assert found["published_alike"].figures["fewest"] >= 4


def test_a_mention_taken_from_one_record(made: tuple[Path, Source], tmp_path: Path) -> None:
    def shorter(records: Frame) -> Frame:
        longest = records.sort(pl.col("codes").list.len(), "record", descending=True)["record"][0]
        return records.with_columns(
            codes=pl.when(pl.col("record") == longest).then(pl.col("codes").list.head(1)).otherwise("codes")
        )

    assert "public_rule" in broken(made, tmp_path, "records.parquet", shorter)


def test_a_person_of_the_population_with_labels_that_do_not_fit(
    made: tuple[Path, Source], tmp_path: Path
) -> None:
    def other_sex(people: Frame) -> Frame:
        one = people.filter(pl.col("sex") == "F")["place"][0]
        return people.with_columns(sex=pl.when(pl.col("place") == one).then(pl.lit("M")).otherwise("sex"))

    assert "population_classes" in broken(made, tmp_path, "people.parquet", other_sex, "custody")


def test_a_class_of_three_people(made: tuple[Path, Source], tmp_path: Path) -> None:
    """Of one class only three people of the population are left; the others would not be published."""

    def few(people: Frame) -> Frame:
        labels = people.row(0, named=True)
        mine = (pl.col("age") == labels["age"]) & (pl.col("sex") == labels["sex"])
        rest = people.filter(mine)["place"][3:].implode()
        gone = mine & pl.col("place").is_in(rest)
        names = ("age", "sex")
        return people.with_columns(pl.when(gone).then(None).otherwise(pl.col(n)).alias(n) for n in names)

    assert "published_alike" in broken(made, tmp_path, "people.parquet", few, "custody")


def test_somebody_of_the_population_is_missing(made: tuple[Path, Source], tmp_path: Path) -> None:
    failed = broken(made, tmp_path, "people.parquet", lambda people: people.head(-1), "custody")
    assert failed == {"population_classes"}


def test_people_who_are_alike_in_different_classes(made: tuple[Path, Source], tmp_path: Path) -> None:
    """A second person with everything that the first has, published with the root instead."""
    source = made[1]
    assert source.population_events is not None and source.population_patients is not None
    twin = source.population_events.filter(pl.col("patient") == "p000").with_columns(patient=pl.lit("z"))
    people = source.population_patients.filter(pl.col("patient") == "p000").with_columns(patient=pl.lit("z"))
    out = tmp_path / "broken"
    shutil.copytree(made[0], out)
    file = out / "custody/data/people.parquet"
    said = pl.read_parquet(file)
    more = said.tail(1).with_columns(place=pl.lit(said.height, said["place"].dtype), age=None, sex=None)
    write_parquet(pl.concat([said, more.cast(dict(said.schema))]), file)
    both = Source(
        source.events,
        source.patients,
        pl.concat([source.population_events, twin]),
        population_patients=pl.concat([source.population_patients, people]),
    )
    assert "population_classes" in by_method(verify(out, both))


def test_without_the_custodian_s_file_nothing_is_checked(made: tuple[Path, Source], tmp_path: Path) -> None:
    shutil.copytree(made[0], tmp_path / "broken")
    (tmp_path / "broken/custody/data/people.parquet").unlink()
    restate(tmp_path / "broken")
    with pytest.raises(BadInput, match=r"custody/data/people\.parquet"):
        verify(tmp_path / "broken", made[1])
