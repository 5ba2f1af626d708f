"""Linking: somebody knows all codes and ages of a patient, in order, has share/ and reads its hierarchies."""

from __future__ import annotations

import csv
import datetime
from pathlib import Path

import polars as pl
import pytest
from tests.laws.cases import cohort_of_events, events

import leeward as lw

Pair = tuple[str, str]


def parents(file: Path) -> dict[str, str]:
    with file.open(newline="", encoding="utf-8") as text:
        return {row["node"]: row["parent"] for row in csv.DictReader(text)}


def above(value: str, parent: dict[str, str]) -> set[str]:
    """A value and all nodes above it."""
    found = {value}
    while value := parent.get(value, ""):
        found.add(value)
    return found


def explains(published: list[Pair], known: list[tuple[set[str], set[str]]]) -> bool:
    """Whether each published pair can be one of the patient's, each of them used once (greedy over few pairs)."""

    def place(rest: list[Pair], left: frozenset[int]) -> bool:
        if not rest:
            return True
        code, age = rest[0]
        fits = (n for n in left if code in known[n][0] and age in known[n][1])
        return any(place(rest[1:], left - {n}) for n in fits)

    return place(published, frozenset(range(len(known))))


def dated_events() -> pl.DataFrame:
    """The events with a date in the place of the age: a year of care of each patient, and a month of each visit."""
    start, month = pl.col("age") // 20 + 2008, 1 + pl.col("visit").hash(1) % 12
    year = start.cast(pl.Int64) + pl.col("age") % 2
    return events().with_columns(date=pl.date(year, month, 15)).drop("age")


@pytest.mark.parametrize("time", ["age", "2008-2013"])
@pytest.mark.parametrize(
    "parameters", [{}, {"clustering": "alignment"}, {"clustering": "alignment", "joining": "thesis"}], ids=str
)
def test_every_patient_has_k_records_that_look_alike(
    parameters: dict[str, object], time: str, tmp_path: Path
) -> None:
    """An attacker who knows dates knows the day: the month of it is what the release could show."""
    method = lw.Trajectories(k=4, time=time, **parameters)  # type: ignore[arg-type]  # parameters by name
    known_rows, cohort, column = (
        events().with_columns(pl.col("age").cast(pl.String)),
        cohort_of_events(),
        "age",
    )
    if time != "age":
        cohort, column = lw.read(dated_events(), vocabulary="icd9"), "date"
        known_rows = dated_events().with_columns(pl.col("date").dt.strftime("%Y-%m"))
    data = lw.protect(cohort, method, tmp_path / "out", seed=1).release.share / "data"
    codes, times = parents(data / "code_hierarchy.csv"), parents(data / f"{column}_hierarchy.csv")
    pairs = pl.read_parquet(data / "trajectories.parquet").sort("record", "position")
    published = {
        record: list(zip(rows["code"], rows[column], strict=True))
        for (record,), rows in pairs.group_by("record", maintain_order=True)
    }
    empty = pl.read_parquet(data / "records.parquet").height - len(published)
    for _, rows in known_rows.unique(["patient", "code", column]).group_by("patient"):
        known = [
            (above(code, codes), above(when, times))
            for code, when in zip(rows["code"], rows[column], strict=True)
        ]
        fitting = [tuple(each) for each in published.values() if explains(each, known)]
        assert fitting or empty >= 4
        # Whatever the attacker takes for the patient's trajectory, at least k records are published with it.
        assert all(fitting.count(each) >= 4 for each in set(fitting))


@pytest.mark.parametrize("column", ["age", "date"])
def test_the_same_attack_singles_out_patients_of_the_unprotected_data(column: str) -> None:
    rows = (events() if column == "age" else dated_events()).unique(["patient", "code", column])
    whole = [
        tuple(zip(r["code"], r[column], strict=True))
        for _, r in rows.sort(column, "code").group_by("patient", maintain_order=True)
    ]
    assert sum(whole.count(each) == 1 for each in whole) > len(whole) / 2


def test_dates_beside_ages_of_the_same_patients_tell_years_of_birth(tmp_path: Path) -> None:
    """What a release of dates says that it does not protect."""
    rows = [(f"p{n}", "401.9", 52, datetime.date(2011, 3, 1 + n)) for n in range(8)]
    rows += [(f"p{n}", "250.00", 70, datetime.date(2012, 5, 1 + n)) for n in range(10, 18)]
    cohort = lw.read(
        pl.DataFrame(rows, schema=["patient", "code", "age", "date"], orient="row"), vocabulary="icd9"
    )
    shown = {}
    for time, column in (("age", "age"), ("2011-2012", "date")):
        out = lw.protect(cohort, lw.Trajectories(k=4, time=time), tmp_path / column, seed=1)
        shown[column] = out.release.table("trajectories.parquet").collect().select("code", column).unique()
    births = {
        code: int(date[:4]) - int(age)
        for code, age, date in shown["age"].join(shown["date"], on="code").rows()
    }
    assert births == {"401.9": 1959, "250.00": 1942}, "or the year before, of everybody with the code"
