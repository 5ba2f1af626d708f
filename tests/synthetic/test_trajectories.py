"""The synthetic trajectories have the shapes of the thesis's Table 3."""

from __future__ import annotations

import polars as pl
import pytest

from leeward.errors import BadInput
from leeward.synthetic.trajectories import SETS, write_trajectories


@pytest.mark.parametrize("shape", list(SETS))
def test_table_3(tmp_path, shape):
    wanted = SETS[shape]
    rows = write_trajectories(tmp_path / "t.parquet", shape=shape, seed=1)
    table = pl.read_parquet(tmp_path / "t.parquet")
    n = table["patient"].n_unique()
    assert (table.height, n) == (rows, wanted.patients)
    assert table["code"].n_unique() == (50 if shape == "d50-pop" else 4)
    assert table.height / n == pytest.approx(wanted.pairs, rel=0.04)
    assert table.select("patient", "code").n_unique() / n == pytest.approx(wanted.codes, rel=0.04)
    assert table.select("patient", "age").n_unique() / n == pytest.approx(wanted.ages, rel=0.04)
    assert table["age"].min() >= 1 and table["age"].max() <= 102


def test_codes_come_together(tmp_path):
    write_trajectories(tmp_path / "t.parquet", 4000, seed=2)
    table = pl.read_parquet(tmp_path / "t.parquet").select("patient", "code").unique()
    holders = {code: set(part["patient"]) for (code,), part in table.group_by("code")}
    both = len(holders["401.9"] & holders["272.4"]) / 4000
    assert both > 2 * len(holders["401.9"]) * len(holders["272.4"]) / 4000**2


def test_chronic_codes_recur(tmp_path):
    write_trajectories(tmp_path / "t.parquet", 4000, seed=2)
    table = pl.read_parquet(tmp_path / "t.parquet")
    years = table.group_by("patient", "code").len().group_by("code").agg(pl.col("len").mean())
    mean = dict(years.iter_rows())
    assert mean["401.9"] > 1.3 > mean["786.50"]


def test_same_seed_same_rows(tmp_path):
    for name in ("a.csv", "b.csv"):
        write_trajectories(tmp_path / name, 300, seed=3)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@pytest.mark.parametrize(
    ("file", "options", "message"),
    [
        ("a.parquet", {"shape": "d9"}, "`shape` must be one of"),
        ("a.parquet", {"patients": 0}, "at least 1"),
        ("a.xlsx", {}, "written as .parquet or .csv"),
    ],
)
def test_bad_input(tmp_path, file, options, message):
    with pytest.raises(BadInput, match=message):
        write_trajectories(tmp_path / file, **options)
    assert not any(tmp_path.iterdir())
