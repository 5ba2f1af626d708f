"""How dates and numbers are written: ISO 8601, day.month.year, a form of one's own; decimal commas."""

from __future__ import annotations

import datetime
from pathlib import Path

import polars as pl
import pytest

from leeward.cohort import Cohort, read
from leeward.errors import BadInput

COLUMNS = {"patient": "pid", "code": "icd"}
DAY = datetime.date(2010, 4, 3)


def cohort(folder: Path, text: str, **further: object) -> Cohort:
    path = folder / "a.csv"
    path.write_text(text)
    options = {"columns": COLUMNS, "vocabulary": "none", **further}
    return read(path, **options)  # type: ignore[arg-type]  # options of several kinds


@pytest.mark.parametrize(
    "written", ["2010-04-03", "03.04.2010", "3.4.2010", "3.4.2010 12:30", "2010-04-03T12:30:00"]
)
@pytest.mark.parametrize("further", [{}, {"birth": "born"}], ids=["strict", "with births"])
def test_iso_and_german_dates(tmp_path: Path, written: str, further: dict[str, str]) -> None:
    text = f"pid;icd;day;born\n1;x;{written};1.2.1950\n1;y;2010-04-03;1950-02-01\n"
    found = cohort(tmp_path, text, columns={**COLUMNS, "date": "day", **further})
    assert found.require_events()["date"].to_list() == [DAY, DAY]
    if further:
        assert found.require_events()["age"].floor().to_list() == [60, 60]
    told = [each for each in found.notices if each.kind == "form of date"]
    assert [(each.count, each.rows) for each in told] == ([(1, (1,))] if "." in written else [])


def test_a_form_of_ones_own(tmp_path: Path) -> None:
    text = "pid,icd,day\n1,x,04/03/2010\n"
    found = cohort(tmp_path, text, columns={**COLUMNS, "date": "day"}, date_format="%m/%d/%Y")
    assert found.require_events()["date"].to_list() == [DAY]
    with pytest.raises(
        BadInput, match=r"is no date .*\(row 1\).* name the form \(`date_format`, --date-format\)"
    ):
        cohort(tmp_path, text, columns={**COLUMNS, "date": "day"})


@pytest.mark.parametrize("written", ["31.02.2010", "03.04.10", "4.13.2010", "3.4.20100"])
def test_what_is_no_date_is_refused(tmp_path: Path, written: str) -> None:
    with pytest.raises(BadInput, match="is no date") as caught:
        cohort(tmp_path, f"pid;icd;day\n1;x;{written}\n", columns={**COLUMNS, "date": "day"})
    assert written not in str(caught.value)


def test_ages_with_a_decimal_comma(tmp_path: Path) -> None:
    found = cohort(tmp_path, "pid;icd;years\n1;x;61,3\n1;y;70\n", columns={**COLUMNS, "age": "years"})
    assert found.require_events()["age"].to_list() == [61.3, 70.0]
    assert [(each.count, each.rows) for each in found.notices if each.kind == "form of age"] == [(1, (1,))]


@pytest.mark.parametrize(
    ("values", "expected", "kind"),
    [
        (["1,5", "2", "-0,25"], [1.5, 2.0, -0.25], pl.Float64),
        (["1,234", "5"], ["1,234", "5"], pl.String),  # perhaps thousands
        (["1,234", "0,5"], [1.234, 0.5], pl.Float64),
        (["1,5", "1.5"], ["1,5", "1.5"], pl.String),  # which of them is the point?
        (["1,5,2", "1,5"], ["1,5,2", "1,5"], pl.String),
    ],
)
def test_decimal_commas_of_attributes_and_tables(
    tmp_path: Path, values: list[str], expected: list[object], kind: pl.DataType
) -> None:
    text = "pid;icd;size\n" + "".join(f"{n};x;{value}\n" for n, value in enumerate(values))
    for further in (
        {"columns": {**COLUMNS, "patients": "size"}},
        {"columns": {"patient": "pid"}, "format": "table"},
    ):
        found = cohort(tmp_path, text, **further)
        assert found.patients is not None
        assert found.patients["size"].to_list() == expected
        assert found.patients.schema["size"] == kind
        assert any(each.kind == "decimal comma" for each in found.notices) == (kind == pl.Float64)


@pytest.mark.parametrize(
    ("written", "form"), [("3.4.2010", None), ("2010-04-03", None), ("04/03/2010", "%m/%d/%Y")]
)
def test_dates_of_tables(tmp_path: Path, written: str, form: str | None) -> None:
    text = f"pid,day\n1,{written}\n2,{written}\n"
    found = cohort(tmp_path, text, format="table", columns={"patient": "pid"}, date_format=form)
    assert found.patients is not None and found.patients["day"].to_list() == [DAY, DAY]


def test_attributes_alone_leave_the_other_columns_as_they_are_called(tmp_path: Path) -> None:
    text = "patient,code,visit,age,sex\n1,x,v1,old,f\n"
    found = cohort(tmp_path, text, columns={"patients": ["sex", "age"]})
    assert found.require_events().columns == ["patient", "code", "row", "visit"]
    assert found.patients is not None and found.patients.columns == ["patient", "sex", "age"]
