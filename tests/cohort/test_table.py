"""The table lens, the source format `table` and the made-up registry."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.cohort.sources import read_table

from leeward.cohort import Cohort, read
from leeward.cohort.lenses.table import decimals_of, half_away
from leeward.errors import BadInput
from leeward.synthetic.registry import VARIABLES, registry, write_registry

TEXT = "id, stage ,age,dose,day,zip\n1, I a ,50,1.50,2010-01-02,00123\n2,II,,2.25,2010-02-03,04567\n3,?,60,0.75,,1\n"


def test_types_blanks_and_missing(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(TEXT)
    cohort = read(file, format="table", missing=["?"], drop=["id"])
    frame = cohort.patients
    assert frame is not None
    assert frame.schema == {
        " stage ": pl.String,
        "age": pl.Int64,
        "dose": pl.Float64,
        "day": pl.Date,
        "zip": pl.String,
    }
    assert frame[" stage "].to_list() == ["I a", "II", None]
    kinds = {column.name: (column.kind, column.decimals) for column in cohort.table().columns}
    assert kinds["dose"] == ("number", 2)
    assert kinds["day"][0] == "date"
    assert kinds[" stage "][0] == "levels"


def test_words_for_no_value_are_told(tmp_path: Path) -> None:
    """R writes NA: with it a column of numbers is one of texts, which nobody would see."""
    file = tmp_path / "t.csv"
    file.write_text("stage,score,age\nI,1.5,50\nNA,NA,51\nII,2.5,52\nII,n/a,53\n")
    told = [each for each in read(file, format="table").notices if each.kind == "looks missing"]
    assert [each.count for each in told] == [3] and told[0].rows == (2, 2, 4)
    assert "'NA', 'n/a'" in told[0].message and "'stage', 'score'" in told[0].message
    assert "'score' would hold numbers or dates" in told[0].message
    assert told[0].message.endswith("--missing 'NA' --missing 'n/a'")
    cohort = read(file, format="table", missing=["NA", "n/a"])
    assert not cohort.notices and cohort.patients is not None
    assert cohort.patients.schema["score"] == pl.Float64


def test_decoding_is_the_way_back() -> None:
    frame = pl.DataFrame(
        {
            "n": pl.Series([1, 2, None], dtype=pl.Int16),
            "x": pl.Series([0.5, None, 2.0], dtype=pl.Float32),
            "day": [datetime.date(2001, 2, 3), None, datetime.date(1969, 1, 1)],
            "at": [datetime.datetime(2001, 2, 3, 4, 5), None, datetime.datetime(1960, 1, 1)],
            "b": [True, None, False],
            "e": pl.Series(["u", "v", None], dtype=pl.Enum(["v", "u", "w"])),
            "nothing": pl.Series([None, None, None], dtype=pl.String),
        }
    )
    table = read_table(frame).table()
    for column in table.columns:
        assert column.decode(table.encode(column.name)).equals(frame[column.name], null_equal=True), (
            column.name
        )


def test_permissible_values_are_rounded_and_clipped() -> None:
    frame = pl.DataFrame({"n": [1, 5], "x": [0.25, 0.5]})
    table = read_table(frame, domains={"n": {"low": 0, "high": 9}}).table()
    assert table.column("n").permissible(np.array([-3.0, 2.5, 99.0])).tolist() == [0.0, 3.0, 9.0]
    assert table.column("x").permissible(np.array([0.3333, 9.0])).tolist() == [0.33, 0.5]
    assert half_away(np.array([-2.5, -0.5, 0.5, 1.5])).tolist() == [-3.0, -1.0, 1.0, 2.0]
    assert decimals_of(np.array([1.5, 2.25])) == 2
    assert decimals_of(np.array([1 / 3])) is None


@pytest.mark.parametrize(
    ("domains", "message"),
    [
        ({"stag": ["a"]}, "no column 'stag'. Did you mean 'stage'"),
        ({"stage": ["a", "b"]}, r"1 values that are not declared levels \(row 3\)"),
        ({"age": {"low": 0, "high": 40}}, r"1 values outside its declared domain \(row 3\)"),
        ({"age": {"lowest": 0}}, "is a list of levels"),
        ({"stage": {"levels": []}}, "a list of different values"),
        ({"age": {"low": "young"}}, "must be a number"),
    ],
)
def test_domains_are_checked(domains: dict, message: str) -> None:
    frame = pl.DataFrame({"stage": ["a", "b", "c"], "age": [10, 20, 50]})
    with pytest.raises(BadInput, match=message):
        read_table(frame, domains=domains).table()


def test_declared_levels_keep_their_order() -> None:
    frame = pl.DataFrame({"grade": [3, 1, 2], "size": ["small", "big", "small"]})
    domains = {"grade": [3, 2, 1], "size": {"levels": ["small", "big", "huge"], "ordered": True}}
    table = read_table(frame, domains=domains).table()
    assert table.encode("grade").tolist() == [0.0, 2.0, 1.0]
    assert (table.column("size").kind, table.column("size").high) == ("ordered", 2.0)


def test_what_cannot_be_read() -> None:
    with pytest.raises(BadInput, match="no column 'x'"):
        read_table(pl.DataFrame({"a": [1]}), drop=["x"])
    with pytest.raises(BadInput, match="no rows"):
        read_table(pl.DataFrame({"a": []}))
    with pytest.raises(BadInput, match="belong to a source of the format `table`"):
        read(pl.DataFrame({"patient": [1], "code": ["a"]}), drop=["code"])
    with pytest.raises(BadInput, match="no column is left"):
        read_table(pl.DataFrame({"id": [1, 2]}), columns={"patient": "id"}).table()


def test_constant_and_empty_columns_are_noticed() -> None:
    notices = read_table(pl.DataFrame({"a": [1, 1], "b": [None, None], "c": [1, 2]})).notices
    assert [notice.kind for notice in notices] == ["constant column", "empty column"]


def test_registry_is_the_same_for_a_seed_and_has_the_papers_shape(tmp_path: Path) -> None:
    lung = registry(17_421, "lung", 13, 1)
    assert lung.columns == list(VARIABLES)
    assert lung.equals(registry(17_421, "lung", 13, 1))
    assert not lung.equals(registry(17_421, "lung", 13, 2))
    deceased = lung.filter(pl.col("VitalStat") == 0)
    assert 0.8 < deceased.height / lung.height < 0.95
    assert 4 < deceased["SurvInterval"].median() < 12
    assert 0.25 < (lung["Appalachia"] == "yes").mean() < 0.35
    assert write_registry(tmp_path / "colon.csv.gz", site="colon", seed=1) == 9_552
    colon = read(tmp_path / "colon.csv.gz", format="table").patients
    assert colon is not None
    assert colon.equals(registry(9_552, "colon", 9, 1))
    with pytest.raises(BadInput, match="`site` must be one of"):
        registry(5, "skin")


def test_a_column_without_a_name_is_dropped_by_the_name_that_messages_give_it(tmp_path: Path) -> None:
    """R writes row names under an empty header."""
    (tmp_path / "table.csv").write_text('"","age","sex"\n"1",50,"f"\n"2",60,"m"\n')
    assert columns_of(read_table(tmp_path / "table.csv")) == ["column_0", "age", "sex"]
    for name in ("column_0", ""):
        assert columns_of(read_table(tmp_path / "table.csv", drop=[name])) == ["age", "sex"]


def columns_of(cohort: Cohort) -> list[str]:
    assert cohort.patients is not None
    return cohort.patients.columns
