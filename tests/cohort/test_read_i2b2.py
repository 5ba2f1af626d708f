"""The i2b2 star schema."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cohort.sources import Rows, changed, kinds, whole_ages, write_csv

from leeward.cohort import read
from leeward.errors import BadInput

STAR: dict[str, Rows] = {
    "observation_fact": {
        "encounter_num": [1, 1, 1, 2, 2, 3],
        "patient_num": [7, 7, 7, 8, 8, 8],
        "concept_cd": ["ICD10:E11.9", "ICD10:E11.9", "LOINC:4548-4", "icd10:I10", "ICD9:401.1", "I10"],
        "provider_id": ["@"] * 6,
        "start_date": [
            "2010-06-14 10:00:00",
            "2010-06-14 10:00:00",
            "2010-06-14",
            None,
            "2011-01-01",
            "2011-01-01",
        ],
        "modifier_cd": ["@", "DiagObs:Primary", "@", "@", "@", "@"],
        "instance_num": [1, 1, 1, 1, 1, 1],
    },
    "patient_dimension": {
        "patient_num": [7, 8, 9],
        "birth_date": ["1960-06-15 00:00:00", "1980-01-01 00:00:00", "1990-01-01 00:00:00"],
        "sex_cd": ["F", "M", "M"],
        "zip_cd": ["02115", "02116", "02117"],
    },
    "visit_dimension": {
        "encounter_num": [1, 2, 3],
        "patient_num": [7, 8, 8],
        "start_date": ["2010-06-14 00:00:00", "2010-12-31 00:00:00", "2011-01-01 00:00:00"],
    },
}


@pytest.mark.parametrize("upper", [False, True])
def test_diagnoses_are_read_once(tmp_path: Path, upper: bool) -> None:
    cohort = read(write_csv(tmp_path / "star", STAR, upper=upper))
    assert cohort.require_events().select("patient", "code", "vocabulary", "visit", "date", "row").rows() == [
        (7, "E11.9", "icd10", 1, datetime.date(2010, 6, 14), 1),
        (8, "I10", "icd10", 2, datetime.date(2010, 12, 31), 4),
        (8, "401.1", "icd9", 2, datetime.date(2011, 1, 1), 5),
    ]
    assert whole_ages(cohort) == [49, 30, 31]
    found = kinds(cohort)
    assert found["repeated fact"][0] == 1
    assert found["other facts"][0] == 2
    assert found["date of the visit"] == (1, (4,))


def test_the_same_code_of_two_vocabularies_is_two_facts(tmp_path: Path) -> None:
    concepts = ["ICD9:V10", "ICD10:V10", "ICD10:I10", "ICD10:I10", "ICD10:I10", "ICD10:I10"]
    tables = changed(STAR, "observation_fact", concept_cd=concepts, start_date=["2010-06-14"] * 6)
    frame = read(write_csv(tmp_path / "star", tables)).require_events()
    assert frame.filter(frame["code"].cast(str) == "V10")["vocabulary"].to_list() == ["icd9", "icd10"]


def test_patients_have_attributes_but_no_place(tmp_path: Path) -> None:
    patients = read(write_csv(tmp_path / "star", STAR)).patients
    assert patients is not None
    assert patients.columns == ["patient", "birth_date", "sex_cd"]
    assert patients["sex_cd"].to_list() == ["F", "M"]


def test_other_prefixes(tmp_path: Path) -> None:
    cohort = read(write_csv(tmp_path / "star", STAR), domains=["LOINC:"])
    assert cohort.require_events()["code"].to_list() == ["4548-4"]


@pytest.mark.parametrize(
    ("lacking", "options", "message"),
    [
        ("patient_dimension", {}, "star: there is no table PATIENT_DIMENSION"),
        (None, {"domains": ["RXNORM"]}, "no row of OBSERVATION_FACT has a concept with the prefix RXNORM"),
        (None, {"columns": {"code": "concept_cd"}}, "has its codes in 'concept_cd'"),
        (None, {"columns": {"visit": "x"}}, "not `visit`"),
    ],
)
def test_bad_input(tmp_path: Path, lacking: str | None, options: dict[str, Any], message: str) -> None:
    folder = write_csv(tmp_path / "star", {name: rows for name, rows in STAR.items() if name != lacking})
    with pytest.raises(BadInput) as error:
        read(folder, **options)
    assert message in str(error.value)
