"""Synthea's CSV of several versions."""

from __future__ import annotations

import datetime
import gzip
from pathlib import Path

import pytest
from tests.cohort.sources import kinds, whole_ages

from leeward.cohort import read
from leeward.errors import BadInput

NOW = {
    "conditions.csv": "START,STOP,PATIENT,ENCOUNTER,SYSTEM,CODE,DESCRIPTION\n"
    "2010-06-14,,p1,e1,http://snomed.info/sct,44054006,Diabetes\n"
    ",,p1,e2,http://snomed.info/sct,38341003,Hypertension\n"
    "2011-01-01,,p2,e3,http://snomed.info/sct,38341003,Hypertension\n",
    "patients.csv": "Id,BIRTHDATE,DEATHDATE,SSN,FIRST,LAST,RACE,GENDER,ADDRESS\n"
    "p1,1960-06-15,,999-60-7250,Secret,Name,white,F,1 Secret Street\n"
    "p2,2011-01-02,,999-60-7251,Secret,Name,asian,M,1 Secret Street\n"
    "p3,2011-01-02,,999-60-7252,Secret,Name,asian,M,1 Secret Street\n",
    "encounters.csv": "Id,START,STOP,PATIENT,CODE\ne2,2010-06-15T10:00:00Z,,p1,185349003\n",
    "medications.csv": "START,STOP,PATIENT,ENCOUNTER,CODE\n2012-01-01,,p1,e4,860975\n",
}

OLD = {
    "conditions.csv.gz": "con_start_date,con_pat_id,con_enc_id,con_code\n2008-05-01,p1,e1,1\n2010-05-28,p2,e2,1\n",
    "patients.csv": "pat_id,birth_date,gender\np1,9/22/36,F\np2,5/28/08,M\np3,BAD_DATA,M\n",
}


def written(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        data = text.encode()
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def test_conditions_of_today(tmp_path: Path) -> None:
    cohort = read(written(tmp_path / "s", NOW))
    assert cohort.require_events().select("patient", "code", "visit", "date").rows() == [
        ("p1", "44054006", "e1", datetime.date(2010, 6, 14)),
        ("p1", "38341003", "e2", datetime.date(2010, 6, 15)),
        ("p2", "38341003", "e3", datetime.date(2011, 1, 1)),
    ]
    assert set(cohort.require_events()["vocabulary"]) == {"http://snomed.info/sct"}
    assert whole_ages(cohort) == [49, 50, None]
    found = kinds(cohort)
    assert found["event before birth"] == (1, (3,))
    assert found["date of the visit"] == (1, (2,))
    assert found["record without codes"][0] == 1


def test_patients_have_attributes_but_no_names(tmp_path: Path) -> None:
    patients = read(written(tmp_path / "s", NOW)).patients
    assert patients is not None
    assert set(patients.columns) == {"patient", "gender", "race", "birth_date", "death_date"}
    assert patients["gender"].to_list() == ["F", "M"]
    chosen = read(tmp_path / "s", columns={"patients": ["RACE"]}).patients
    assert chosen is not None
    assert chosen.rows() == [("p1", "white"), ("p2", "asian")]


def test_years_of_two_digits_put_nobody_after_the_first_event(tmp_path: Path) -> None:
    cohort = read(written(tmp_path / "s", OLD))
    # 9/22/36 is 1936 (2036 would be after 2008), 5/28/08 is 2008 and not 1908.
    assert whole_ages(cohort) == [71, 2]
    assert kinds(cohort)["unreadable birth"] == (1, (3,))


def test_events_with_years_of_two_digits(tmp_path: Path) -> None:
    files = {
        "conditions.csv": "DATE,PATIENT,CODE\n5/1/2008,p1,1\n10/2/71,p1,1\nsecret,p1,1\n",
        "patients.csv": "ID,BIRTHDATE\np1,9/22/36\n",
    }
    cohort = read(written(tmp_path / "s", files))
    assert whole_ages(cohort) == [71, 35, None]
    assert kinds(cohort)["unreadable date"] == (1, (3,))


def test_further_tables(tmp_path: Path) -> None:
    files = {
        **NOW,
        "conditions.csv": NOW["conditions.csv"].replace("SYSTEM,", "").replace("http://snomed.info/sct,", ""),
    }
    cohort = read(written(tmp_path / "s", files), domains=["condition", "drug"])
    assert cohort.require_events()["code"].to_list() == ["44054006", "38341003", "38341003", "860975"]
    described = read(tmp_path / "s", columns={"code": "DESCRIPTION"})
    assert described.require_events()["code"].to_list() == ["Diabetes", "Hypertension", "Hypertension"]


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({**NOW, "patients.csv": "who,BIRTHDATE\np1,1960-06-15\n"}, {}, "patients: no column of the patient"),
        (
            {**NOW, "conditions.csv": "START,PATIENT\n2010-01-01,p1\n"},
            {},
            "conditions: no column of the code",
        ),
        (NOW, {"domains": ["procedure"]}, "there is no table PROCEDURES"),
        (NOW, {"domains": ["drugs"]}, "no domain 'drugs'. Did you mean 'drug'?"),
        (NOW, {"domains": ["condition", "drug"]}, "medications: its columns differ"),
        (NOW, {"concepts": True}, "`concepts` is for the format omop; this is 'synthea'"),
        (NOW, {"patients": "patients.csv"}, "`patients` is for the format events"),
    ],
)
def test_bad_input(tmp_path: Path, files: dict[str, str], options: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput) as error:
        read(written(tmp_path / "s", files), **options)  # type: ignore[arg-type]  # several options at once
    assert message in str(error.value)
