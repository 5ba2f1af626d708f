"""Codes with dates (docs/methods/trajectories.md#dates): the worked example, the oracle, files, errors."""

from __future__ import annotations

import datetime
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.methods.trajectories.frames import HIERARCHY, cohort
from tests.oracles import trajectories as oracle
from tests.vocabulary.test_dates import way_up

import leeward as lw
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.runs.protect import Result

YEARS = (2008, 2013)
TIME = "2008-2013"


@pytest.fixture(scope="module")
def hierarchy(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("hierarchy") / "codes.csv"
    path.write_text(HIERARCHY)
    return str(path)


def with_dates(patients: int = 120, seed: int = 3) -> Cohort:
    """The small cohort without ages; each patient's dates are within two years of a start."""
    made, random = cohort(patients), np.random.Generator(np.random.Philox(seed))
    events = made.require_events()
    start = 365 * random.integers(0, 5, patients)[events["patient"].to_numpy()]
    day = pl.Series(start + random.integers(0, 700, events.height)).cast(pl.Int64)
    dated = events.drop("age").with_columns(date=pl.date(2008, 1, 1) + pl.duration(days=day))
    return replace(made, events=dated)


def released(out: Path, source: Cohort, **parameters: Any) -> Result:
    return lw.protect(source, lw.Trajectories(time=TIME, **parameters), out, seed=1, threads=1)


def test_worked_example(tmp_path: Path) -> None:
    """Four patients, two groups: what both of a group share is a quarter, a month, a year."""
    rows = [
        ("A", "401.0", "2010-01-09"), ("A", "401.1", "2011-05-02"),
        ("B", "401.0", "2010-03-30"), ("B", "401.9", "2011-05-20"),
        ("C", "401.9", "2010-11-01"),
        ("D", "401.9", "2010-02-14"),
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["patient", "code", "date"], orient="row")
    file = tmp_path / "401.csv"
    file.write_text("node,parent\n401,\n401.0,401\n401.1,401\n401.9,401\n")
    source = lw.read(frame, vocabulary=str(file))
    method = lw.Trajectories(k=2, time="2010-2011", clustering="alignment")
    result = lw.protect(source, method, tmp_path / "out", seed=1)
    shown = result.release.table("trajectories.parquet").collect()
    pairs = shown.select("record", pl.concat_str("code", "date", separator=" ")).group_by("record").all()
    assert sorted(map(tuple, pairs["code"].to_list())) == [
        ("401.0 2010-Q1", "401 2011-05"), ("401.0 2010-Q1", "401 2011-05"), ("401.9 2010",), ("401.9 2010",),
    ]  # fmt: skip
    assert result.measures["loss"]["ilm"] == pytest.approx(1 / 4)
    assert result.measures["loss"]["alm"] == pytest.approx(9 / 32)
    assert result.verification.passed and result.release.parameters["time"] == "2010-2011"
    assert "ages" not in result.release.parameters


def test_losses_and_groups_are_the_oracles(tmp_path: Path, hierarchy: str) -> None:
    source = with_dates(60)
    found = released(
        tmp_path / "out", source, k=3, hierarchy=hierarchy, clustering="alignment", joining="thesis"
    )
    first, last = YEARS
    parents: dict[str, str | None] = {}
    for year in range(first, last + 1):
        for month in range(1, 13):  # leaves are numbers: the oracle orders pairs by them
            way = [str(12 * year + month - 1), *way_up(year, month, first, last)[1:]]
            parents |= dict(zip(way, [*way[1:], None], strict=True))
    dates = oracle.Tree(list(parents.items()))
    codes = oracle.Tree([(node, up or None) for node, up in (r.split(",") for r in HIERARCHY.split()[1:])])
    lens = source.trajectories(12 * first, 12 * last + 11, dated=True)
    records = [tuple((code, str(month)) for code, month in lens.record(r)) for r in range(len(lens))]
    clusters = oracle.mdav(records, 3, codes, dates, joining="thesis")
    ilm, alm = oracle.losses(records, clusters, codes, dates)
    assert found.measures["loss"]["ilm"] == pytest.approx(float(ilm))
    assert found.measures["loss"]["alm"] == pytest.approx(float(alm))
    assert alm > Fraction(0)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"order": "kept", "widest_age": 1},
        {"clustering": "alignment"},
        {"payload": ("sex",), "sensitive_column": "sex", "diversity": 2},
        {"demographics": ("sex",)},
    ],
    ids=lambda p: "-".join(p),
)
def test_every_release_of_dates_is_verified_and_measured(
    tmp_path: Path, hierarchy: str, parameters: dict[str, Any]
) -> None:
    result = released(tmp_path / "out", with_dates(), k=4, hierarchy=hierarchy, **parameters)
    assert result.verification.passed and result.verification["owners"].figures["matched"]
    pairs = result.release.table("trajectories.parquet").collect()
    assert pairs.columns == ["record", "position", "code", "date"]
    first, last = YEARS
    labels = {
        each for year in range(first, last + 1) for m in range(1, 13) for each in way_up(year, m, *YEARS)
    }
    assert set(pairs["date"]) <= labels
    if "widest_age" in parameters:
        assert all("-" not in each or len(each) < 9 for each in pairs["date"])
    levels = [row["level"] for row in result.measures["loss"]["levels"]["age"]]
    assert levels == ["month", "quarter", "year", "decade", "all years"]
    if "demographics" not in parameters:
        assert result.measures["loss"]["total"] == pytest.approx(result.measures["method"]["total"])
    report, text = result.report.read_text(), (result.release.share / "README.md").read_text()
    assert "date within a year" in report and "age within" not in report
    assert "codes and dates" in text and "years of birth" in text


def test_usable_dates_are_of_a_year(tmp_path: Path, hierarchy: str) -> None:
    result = released(tmp_path / "out", with_dates(), k=3, hierarchy=hierarchy)
    shown = result.release.table("trajectories.parquet").collect()
    total = len(with_dates().require_events())
    years = {label: 1 + int(label[-4:]) - int(label[:4]) if len(label) == 9 else 1 for label in shown["date"]}
    fine = [
        c not in {"C1", "C2", "Any"} and years[d] == 1 for c, d in shown.select("code", "date").iter_rows()
    ]
    assert result.measures["usable"]["usable"] == pytest.approx(sum(fine) / total)
    assert result.measures["usable"]["usable"] <= result.measures["usable"]["at_most"]


def test_same_seed_same_bytes_whatever_the_threads(tmp_path: Path, hierarchy: str) -> None:
    shares = []
    for threads in (1, 3):
        method = lw.Trajectories(k=3, time=TIME, hierarchy=hierarchy)
        lw.protect(with_dates(), method, tmp_path / str(threads), seed=7, threads=threads)
        data = tmp_path / str(threads) / "share/data"
        shares.append({file.name: file.read_bytes() for file in data.iterdir()})
    assert shares[0] == shares[1]


def test_no_dates(tmp_path: Path, hierarchy: str) -> None:
    with pytest.raises(BadInput, match="need the date of each event; give its column with --date"):
        released(tmp_path / "out", cohort(20), k=3, hierarchy=hierarchy)
    assert not (tmp_path / "out").exists()


def test_dates_outside_the_years_are_refused_by_row_or_left_out(tmp_path: Path, hierarchy: str) -> None:
    source = with_dates(40)
    events = source.require_events().with_columns(
        date=pl.when(pl.col("row") == 7).then(pl.date(1999, 1, 1)).when(pl.col("row") != 9).then("date")
    )
    source = replace(source, events=events)
    with pytest.raises(BadInput) as problem:
        released(tmp_path / "out", source, k=3, hierarchy=hierarchy)
    assert "1 rows without a readable date (row 9)" in str(problem.value)
    assert "1 rows with a date outside 2008–2013 (row 7)" in str(problem.value) and "--time" in str(
        problem.value
    )
    result = released(tmp_path / "out", source, k=3, hierarchy=hierarchy, odd_ages="leave out")
    assert result.verification.passed


def test_ages_do_not_go_with_dates() -> None:
    with pytest.raises(BadInput, match="`ages` goes with `time: age`"):
        lw.Trajectories(k=3, time=TIME, ages="hipaa")
    with pytest.raises(BadInput, match="neither age nor"):
        lw.Trajectories(k=3, time="dates")


def test_omop_tables_have_the_released_month(tmp_path: Path, hierarchy: str) -> None:
    out = released(tmp_path / "out", with_dates(), k=4, hierarchy=hierarchy).path
    lw.omop(out / "share", tmp_path / "cdm")
    shown = pl.read_parquet(out / "share/data/trajectories.parquet")
    rows = pl.read_csv(tmp_path / "cdm/CONDITION_OCCURRENCE.csv", try_parse_dates=True)
    days = dict(zip(shown["date"], rows["condition_start_date"], strict=True))
    middle = {
        label: day for label, day in days.items() if label in ("2009", "2009-Q1", "2009-02", "2008-2009")
    }
    expected = {"2009": (2009, 6), "2009-Q1": (2009, 2), "2009-02": (2009, 2), "2008-2009": (2008, 12)}
    assert middle and all(day == datetime.date(*expected[label], 1) for label, day in middle.items())
