"""Trajectories with demographics, broken one way a test."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from tests.forging import by_method
from tests.methods.trajectories.test_whole_patient import cohort_of, rows_of
from tests.verify.disassociation.test_whole_patient import change, copy_of, source_of

from leeward.methods.trajectories import Trajectories
from leeward.randomness import Randomness
from leeward.release import write
from leeward.verify import Source, verify

K = 3
Frame = pl.DataFrame


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    cohort = cohort_of(rows_of(women=18, men=30))
    method = Trajectories(k=K, demographics=("sex",), keep={"sex": "exact"})
    out = tmp_path_factory.mktemp("whole") / "out"
    return write(method.protect(cohort, randomness=Randomness.of(3)), out), source_of(cohort)


def bare(made: tuple[Path, Source], target: Path) -> Path:
    """A copy without the custodian's folder."""
    out = copy_of(made[0], target)
    shutil.rmtree(out / "custody")
    return out


def groups(out: Path) -> pl.DataFrame:
    """The records of each published trajectory: `sex`, `key`, `record`."""
    pairs = pl.read_parquet(out / "share/data/trajectories.parquet").sort("record", "position")
    keys = pairs.group_by("record").agg(key=pl.concat_str("code", "age", separator=" ").str.join("|"))
    records = pl.read_parquet(out / "share/data/records.parquet")
    return records.join(keys, on="record", how="left").group_by("sex", "key").agg("record").sort("sex", "key")


def test_a_group_over_two_classes(made: tuple[Path, Source], tmp_path: Path) -> None:
    """A man of a group of k and a woman exchange their labels: each is then alone with the trajectory in the class."""
    out = copy_of(made[0], tmp_path / "broken")
    first = {sex: groups(out).filter(sex=sex)["record"][0][0] for sex in "FM"}
    swap = pl.col("record").is_in(list(first.values()))

    def exchange(table: Frame) -> Frame:
        other = pl.col("sex").replace({"F": "M", "M": "F"})
        return table.with_columns(sex=pl.when(swap).then(other).otherwise("sex"))

    change(out, "records.parquet", exchange)
    assert by_method(verify(out)) == {"k_anonymous"}


def test_groups_joined_to_the_wrong_class(made: tuple[Path, Source], tmp_path: Path) -> None:
    """Two whole groups exchange their labels: the files agree; custody says that the patients do not fit, and without
    custody no patient of that sex has such a trajectory."""
    for folder in (copy_of(made[0], tmp_path / "custody"), bare(made, tmp_path / "bare")):
        found = groups(folder).drop_nulls("key").with_columns(n=pl.col("record").list.len())
        pair = found.join(found, on="n").filter(
            (pl.col("sex") == "F") & (pl.col("sex_right") == "M") & (pl.col("key") != pl.col("key_right"))
        )
        caught = []
        for women, men in pair.select("record", "record_right").rows():
            target = tmp_path / f"{folder.name}-{len(caught)}"
            out = shutil.copytree(folder, target)
            swap = pl.col("record").is_in([*women, *men])

            def exchange(table: Frame, swap: pl.Expr = swap) -> Frame:
                other = pl.col("sex").replace({"F": "M", "M": "F"})
                return table.with_columns(sex=pl.when(swap).then(other).otherwise("sex"))

            change(out, "records.parquet", exchange)
            assert by_method(verify(out / "share")) == set()
            caught.append(by_method(verify(out if folder.name == "custody" else out / "share", made[1])))
            if len(caught) == 3:
                break
        assert all("own_patients" in each for each in caught if folder.name == "custody")
        assert any("owners" in each for each in caught), folder.name
