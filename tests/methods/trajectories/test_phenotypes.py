"""Phenotypes and PheWAS found on a release of trajectories: by hand, against plain code, in the report."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, median
from typing import Any

import polars as pl
import pytest
from tests.laws.cases import events

import leeward as lw
from leeward.runs.measure import measure
from leeward.vocabulary import load, phecode
from leeward.vocabulary.phecode import PhecodeMap

MAP = """ICD9,PheCode,Phenotype,Excl. Phecodes
250.0,250.1,diabetes of a kind,249-250.99
250.1,250.1,diabetes of a kind,249-250.99
250.2,250.1,diabetes of a kind,249-250.99
272.0,272.1,lipids,272-272.99
401.0,401.1,pressure,401-405.99
401.1,401.1,pressure,401-405.99
401.2,401.2,pressure of another kind,401-405.99
428.0,428.1,failure,425-429.99
"""


@pytest.fixture
def map_file(tmp_path: Path) -> Path:
    (tmp_path / "map.csv").write_text(MAP)
    return tmp_path / "map.csv"


def told_by(label: str, codes: list[str], mapping: PhecodeMap) -> set[str]:
    """What all codes at or below a label have, of the map and of the data: plain."""
    tree = load("icd9").hierarchy(sorted({*codes, *mapping.codes["icd9"]}))
    below = [code for code in tree.leaf_labels() if tree.is_ancestor(tree.index[label], tree.index[code])]
    return set.intersection(*(set(mapping.roll_up(code)) for code in below))


def years_of(label: str) -> float:
    low, _, high = label.partition("-")
    return (int(low) + int(high or low)) / 2


def test_cases_and_onsets_are_those_of_the_definition(tmp_path: Path, map_file: Path) -> None:
    source = lw.read(
        events(), columns={"patient": "patient", "code": "code", "age": "age"}, vocabulary="icd9"
    )
    out = lw.protect(source, lw.Trajectories(k=3), tmp_path / "out", seed=1).path
    found = measure(out, source, [{"phenotypes": {"map": str(map_file)}}])["phenotypes"]
    mapping, codes = phecode.load(map_file), events()["code"].unique().to_list()
    first: dict[tuple[str, str], int] = {}
    for patient, code, age in events().select("patient", "code", "age").iter_rows():
        for each in mapping.roll_up(code):
            first[patient, each] = min(age, first.get((patient, each), 999))
    patients = sorted(set(events()["patient"]))
    whose = dict(pl.read_parquet(out / "custody/data/records.parquet").select("record", "place").iter_rows())
    shown: dict[tuple[str, str], float] = {}
    for record, _, code, age in pl.read_parquet(out / "share/data/trajectories.parquet").iter_rows():
        for each in told_by(code, codes, mapping):
            key = patients[whose[record]], each
            shown[key] = min(years_of(age), shown.get(key, 999.0))
    kept = sorted(first.keys() & shown.keys())
    errors = [abs(shown[key] - first[key]) for key in kept]
    assert found["cases"] == {
        "original": len(first),
        "kept": len(kept),
        "false": len(shown.keys() - first.keys()),
    }
    assert 0 < len(kept) < len(first) and not shown.keys() - first.keys()
    assert found["onset"]["median"] == pytest.approx(median(errors))
    assert found["onset"]["mean"] == pytest.approx(mean(errors))
    assert found["onset"]["within_1"] == pytest.approx(mean(each <= 1 for each in errors))
    assert found["phecodes"]["original"] == len({each for _, each in first})
    most = found["most"][0]
    assert most["original"] == sum(each == most["phecode"] for _, each in first)
    assert most["kept"] == sum(each == most["phecode"] for _, each in kept)


def test_a_category_tells_its_phecode_and_a_chapter_none(tmp_path: Path, map_file: Path) -> None:
    """250.0 and 250.1 are published as 250, which all of the map's codes there tell; 401.0 and 401.2 as 401, of which
    no phecode is common; onsets are the middles of [40-43]."""
    rows = [("a", "250.0", 40), ("b", "250.1", 43), ("c", "401.0", 60), ("d", "401.2", 60)]
    source = lw.read(pl.DataFrame(rows, schema=["patient", "code", "age"], orient="row"), vocabulary="icd9")
    method = lw.Trajectories(k=2, codes=("250.0", "250.1", "401.0", "401.2", "493.0"))
    out = lw.protect(source, method, tmp_path / "out", seed=1).path
    shown = set(pl.read_parquet(out / "share/data/trajectories.parquet").select("code", "age").iter_rows())
    assert shown == {("250", "40-43"), ("401", "60")}
    found = measure(out, source, [{"phenotypes": {"map": str(map_file)}}])["phenotypes"]
    assert found["cases"] == {"original": 4, "kept": 2, "false": 0}
    assert found["phecodes"] == {"original": 3, "kept": 1, "false": 0}
    assert found["onset"] == {"median": 1.5, "mean": 1.5, "within_1": 0.0, "within_5": 1.0}


def test_dates_have_onsets_in_years(tmp_path: Path, map_file: Path) -> None:
    rows = [("a", "250.0", "2010-02-01"), ("b", "250.1", "2010-11-30")]
    frame = pl.DataFrame(rows, schema=["patient", "code", "date"], orient="row")
    source = lw.read(frame.with_columns(pl.col("date").str.to_date()), vocabulary="icd9")
    out = lw.protect(source, lw.Trajectories(k=2, time="2010-2011"), tmp_path / "out", seed=1).path
    found = measure(out, source, [{"phenotypes": {"map": str(map_file)}}])["phenotypes"]
    assert found["onset"]["median"] == pytest.approx(
        4.5 / 12
    )  # February and November from the middle of June and July


def test_associations_on_the_release_are_in_the_report(tmp_path: Path, map_file: Path) -> None:
    dosed = events().with_columns(rs1=pl.col("patient").str.slice(1).cast(pl.Int64) % 3)
    columns: dict[str, Any] = {"patient": "patient", "code": "code", "age": "age", "patients": ["rs1"]}
    source = lw.read(dosed, columns=columns, vocabulary="icd9")
    wanted = [
        {"phewas": {"map": str(map_file), "predictors": "rs1", "min_cases": 3}},
        {"phenotypes": {"map": str(map_file)}},
    ]
    result = lw.protect(
        source, lw.Trajectories(k=3, payload=("rs1",)), tmp_path / "out", measures=wanted, seed=1
    )
    found = result.measures["phewas"]
    assert 0 < found["phecodes"]["anonymized"] <= found["phecodes"]["original"]
    assert {row["phecode"] for row in found["tests"]} == {"250.1", "272.1", "401.1", "401.2", "428.1"}
    report = result.report.read_text()
    assert "Associations (PheWAS)" in report and "The phecodes of most patients" in report
