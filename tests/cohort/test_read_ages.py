"""Ages from dates of birth: exact birthdays, and the rows that can have no age."""

from __future__ import annotations

import datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.cohort.sources import kinds, whole_ages

from leeward.cohort import read
from leeward.cohort.readers.ages import years_between
from leeward.errors import BadInput

COLUMNS = {"patient": "pid", "code": "icd", "birth": "dob", "date": "day"}
HEADER = "pid,icd,dob,day\n"
DAYS = st.dates(datetime.date(1850, 1, 1), datetime.date(2100, 12, 31))


def completed(birth: datetime.date, date: datetime.date) -> int:
    """Birthdays from birth to date, counted one by one; 29 February's is on 1 March of other years."""
    years = -1
    for year in range(birth.year, date.year + 1):
        try:
            birthday = birth.replace(year=year)
        except ValueError:
            birthday = datetime.date(year, 3, 1)
        years += birthday <= date
    return years


@given(DAYS, DAYS)
@example(datetime.date(1960, 2, 1), datetime.date(1990, 1, 31))
@example(datetime.date(1960, 3, 1), datetime.date(1991, 2, 28))
@example(datetime.date(1960, 2, 29), datetime.date(1991, 2, 28))
@example(datetime.date(1960, 1, 1), datetime.date(1990, 12, 31))
def test_completed_years_step_on_each_birthday(one: datetime.date, other: datetime.date) -> None:
    birth, date = sorted((one, other))
    frame = pl.DataFrame({"birth": [birth], "date": [date]})
    (age,) = frame.select(age=years_between(pl.col("birth"), pl.col("date")))["age"]
    assert int(age) == completed(birth, date)
    (back,) = frame.select(age=years_between(pl.col("date"), pl.col("birth")))["age"]
    assert back == 0 if one == other else back < 0


def test_age_of_plain_csv_and_parquet(tmp_path: Path) -> None:
    text = (
        HEADER
        + "1,401.1,1960-06-15,2010-06-14\n1,401.9,1960-06-15,2010-06-15\n2,401.1,2000-02-29,2001-02-28\n"
    )
    (tmp_path / "a.csv").write_text(text)
    cohort = read(tmp_path / "a.csv", columns=COLUMNS)
    assert whole_ages(cohort) == [49, 50, 0]
    assert "birth" not in cohort.require_events().columns
    assert "age unknown" not in kinds(cohort)
    pl.read_csv(text.encode(), try_parse_dates=True, schema_overrides={"icd": pl.String}).write_parquet(
        tmp_path / "a.parquet"
    )
    assert read(tmp_path / "a.parquet", columns=COLUMNS).require_events().equals(cohort.require_events())


def test_rows_without_an_age_stay_and_are_listed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        HEADER + "1,401.1,secret,2010-01-01\n2,401.1,1960-01-01,secret\n3,401.1,2011-01-01,2010-12-31\n"
        "4,401.1,1860-01-01,1988-01-01\n5,401.1,1860-01-02,1988-01-01\n6,401.1,,2010-01-01\n7,,secret,secret\n"
    )
    cohort = read(tmp_path / "a.csv", columns=COLUMNS)
    assert whole_ages(cohort) == [None, None, None, None, 127, None]
    found = kinds(cohort)
    assert found["unreadable birth"] == (1, (1,))
    assert found["unreadable date"] == (1, (2,))
    assert found["event before birth"] == (1, (3,))
    assert found["age out of range"] == (1, (4,))
    assert found["age unknown"] == (3, (1, 2, 6))
    assert not any("secret" in str(notice) or "1860" in str(notice) for notice in cohort.notices)


def test_date_form_with_two_digits_of_the_year(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        HEADER + "1,401.1,9/22/36,5/1/08\n1,401.1,9/22/36,5/1/09\n2,401.1,5/28/08,5/28/10\n"
    )
    assert whole_ages(read(tmp_path / "a.csv", columns=COLUMNS, date_format="%m/%d/%y")) == [71, 72, 2]


def test_own_names_give_an_age_only_with_a_date(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("patient,code,birth,date\n1,401.1,2000-01-01,2005-01-01\n")
    assert whole_ages(read(tmp_path / "a.csv")) == [5]
    (tmp_path / "b.csv").write_text("patient,code,birth\n1,401.1,2000-01-01\n")
    assert "age" not in read(tmp_path / "b.csv").require_events().columns


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"birth": "dob"}, "an age needs the date of the event too"),
        ({"birth": "dob", "date": "day", "age": "pid"}, "both 'age' and 'birth'"),
    ],
)
def test_maps_that_give_no_age(tmp_path: Path, columns: dict[str, str], message: str) -> None:
    (tmp_path / "a.csv").write_text(HEADER + "1,401.1,2000-01-01,2005-01-01\n")
    with pytest.raises(BadInput, match=message):
        read(tmp_path / "a.csv", columns={"patient": "pid", "code": "icd", **columns})


def test_numbers_are_no_dates(tmp_path: Path) -> None:
    pl.DataFrame(
        {"patient": [1], "code": ["401.1"], "birth": [1960.5], "date": [datetime.date(2000, 1, 1)]}
    ).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(BadInput, match=r"a\.parquet: column 'birth' holds Float64, not dates"):
        read(tmp_path / "a.parquet")
