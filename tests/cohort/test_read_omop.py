"""OMOP CDM: folders in any case, Parquet, parts; domains, concepts, ages and notes."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cohort.sources import OMOP, changed, frame_of, kinds, whole_ages, write_csv

from leeward.cohort import Cohort, read
from leeward.errors import BadInput
from leeward.vocabulary import load


def events(cohort: Cohort) -> list[tuple[Any, ...]]:
    return cohort.require_events().select("patient", "code", "visit", "date").rows()


EVENTS = [
    (1, "201826", 101, datetime.date(2010, 6, 14)),
    (1, "320128", 101, datetime.date(2010, 6, 15)),
    (2, "201826", 102, datetime.date(2015, 1, 1)),
    (3, "320128", 103, datetime.date(2015, 3, 2)),
]


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("gz", [False, True])
def test_folder_of_csv_in_any_case(tmp_path: Path, upper: bool, gz: bool) -> None:
    cohort = read(write_csv(tmp_path / "cdm", OMOP, upper=upper, gz=gz))
    assert events(cohort) == EVENTS
    # Patient 2's day of birth is 15 June 1980, patient 3's 29 February 2000.
    assert whole_ages(cohort) == [49, 50, 34, 15]
    assert cohort.name == "cdm"
    assert kinds(cohort)["missing code"] == (1, (4,))
    assert kinds(cohort)["date of the visit"] == (1, (5,))
    assert kinds(cohort)["record without codes"][0] == 1


def test_parquet_and_parts_give_the_same(tmp_path: Path) -> None:
    for name, rows in OMOP.items():
        frame_of(rows).write_parquet(tmp_path / f"{name}.parquet")
    whole = read(tmp_path)
    assert events(whole) == EVENTS
    conditions = frame_of(OMOP["condition_occurrence"])
    (tmp_path / "condition_occurrence.parquet").unlink()
    parts = tmp_path / "condition_occurrence"
    parts.mkdir()
    conditions.head(2).write_parquet(parts / "part-0.parquet")
    conditions.slice(2).write_parquet(parts / "part-1.parquet")
    in_parts = read(tmp_path)
    assert in_parts.require_events().equals(whole.require_events())


def test_patients_have_attributes_but_no_identifier_of_the_source(tmp_path: Path) -> None:
    patients = read(write_csv(tmp_path / "cdm", OMOP)).patients
    assert patients is not None
    assert patients["patient"].to_list() == [1, 2, 3]
    assert patients["gender_source_value"].to_list() == ["M", "F", "M"]
    assert patients["year_of_birth"].to_list() == [1960, 1980, 2000]
    assert "person_source_value" not in patients.columns
    chosen = read(tmp_path / "cdm", columns={"patients": ["GENDER_CONCEPT_ID"]}).patients
    assert chosen is not None
    assert chosen.columns == ["patient", "GENDER_CONCEPT_ID"]


def test_notes_without_text_are_left_out(tmp_path: Path) -> None:
    cohort = read(write_csv(tmp_path / "cdm", OMOP))
    assert cohort.notes is not None
    assert cohort.notes.rows() == [(31, 1, datetime.date(2010, 6, 14), "First line,\nsecond line.")]
    assert kinds(cohort)["note without text"] == (1, (2,))


@pytest.mark.parametrize("code", ["condition_source_value", "source_value", "CONDITION_SOURCE_VALUE"])
def test_source_values(tmp_path: Path, code: str) -> None:
    cohort = read(write_csv(tmp_path / "cdm", OMOP), columns={"code": code}, vocabulary="icd10")
    assert cohort.require_events()["code"].to_list() == ["E11.9", "I10", "E11.9", "I10", "I10"]
    assert cohort.vocabulary == "icd10"


def test_domains_follow_each_other(tmp_path: Path) -> None:
    cohort = read(write_csv(tmp_path / "cdm", OMOP), domains=["condition", "drug"])
    assert events(cohort) == [*EVENTS, (2, "1503297", 102, datetime.date(2015, 1, 2))]
    assert cohort.require_events()["row"].to_list() == [1, 2, 3, 5, 6]


def test_concepts_become_codes_of_their_vocabularies(tmp_path: Path) -> None:
    cohort = read(write_csv(tmp_path / "cdm", OMOP), concepts=True, domains=["condition", "drug"])
    frame = cohort.require_events()
    assert frame["code"].to_list() == ["44054006", "38341003", "44054006", "38341003", "1503297"]
    assert frame["vocabulary"].to_list() == [*["SNOMED"] * 4, None]
    assert kinds(cohort)["concept not in CONCEPT"][0] == 1
    named = read(tmp_path / "cdm", concepts=True, vocabulary="icd10", accept_unknown=True)
    assert "vocabulary" not in named.require_events().columns


def test_concepts_keep_the_hierarchy_beside_them(tmp_path: Path) -> None:
    ancestors = {
        "ancestor_concept_id": [4008576, 4008576, 4008576, 9],
        "descendant_concept_id": [201826, 4008576, 320128, 4008576],
        "min_levels_of_separation": [1, 0, 1, 1],
        "max_levels_of_separation": [1, 0, 1, 1],
    }
    concept = {
        "concept_id": [201826, 320128, 4008576],
        "concept_code": ["44054006", "38341003", "73211009"],
        "concept_name": ["Type 2 diabetes", "Hypertension", "Diabetes"],
        "vocabulary_id": ["SNOMED"] * 3,
    }
    folder = write_csv(tmp_path / "cdm", {**OMOP, "concept_ancestor": ancestors, "concept": concept})
    for concepts in (False, True):
        cohort = read(folder, concepts=concepts)
        assert kinds(cohort)["hierarchy"][0] == 1 and "no hierarchy" not in kinds(cohort)
        assert cohort.vocabulary is not None
        vocabulary = load(cohort.vocabulary)
        codes = cohort.code_sets().codes
        assert len(vocabulary.level_groups(codes, 1)) == 1 < len(codes)
        assert vocabulary.level(codes[0], 1) == ("73211009" if concepts else "4008576")
    (folder / "concept_ancestor.csv").unlink()
    assert "no hierarchy" in kinds(read(folder, concepts=True))


def test_icd_concepts_are_written_as_icd(tmp_path: Path) -> None:
    tables = changed(OMOP, "concept", concept_code=["E119", "I10"], vocabulary_id=["ICD10CM", "ICD10CM"])
    frame = read(write_csv(tmp_path / "cdm", tables), concepts=True).require_events()
    assert frame["code"].to_list() == ["E11.9", "I10", "E11.9", "I10"]
    assert set(frame["vocabulary"]) == {"icd10"}


def test_year_of_birth_alone_is_the_first_event_of_that_year(tmp_path: Path) -> None:
    dates = ["1980-03-01", "1985-03-01", "1980-12-01", "1990-06-14", "1990-06-15"]
    tables = changed(OMOP, "condition_occurrence", condition_start_date=dates, person_id=[1, 1, 1, 2, 2])
    tables = changed(tables, "person", year_of_birth=[1980, 1980, 2000, 1970], month_of_birth=[None] * 4)
    tables = changed(tables, "condition_occurrence", condition_concept_id=[7] * 5)
    assert whole_ages(read(write_csv(tmp_path / "cdm", tables))) == [0, 5, 0, 9, 10]


def test_births_that_are_no_dates(tmp_path: Path) -> None:
    tables = changed(OMOP, "person", year_of_birth=["secret", "1980", "2000", "1970"])
    cohort = read(write_csv(tmp_path / "cdm", tables))
    assert whole_ages(cohort) == [None, None, 34, 15]
    assert kinds(cohort)["unreadable birth"] == (1, (1,))
    assert kinds(cohort)["age unknown"] == (2, (1, 2))


@pytest.mark.parametrize(
    ("lacking", "options", "message"),
    [
        ("person", {}, "cdm: there is no table PERSON"),
        ("drug_exposure", {"domains": ["drug"]}, "no table DRUG_EXPOSURE, which the domain 'drug' needs"),
        ("concept", {"concepts": True}, "no table CONCEPT, which `concepts` needs"),
        (None, {"domains": ["drugs"]}, "no domain 'drugs'. Did you mean 'drug'"),
        (None, {"columns": {"code": "condition_sourc_value"}}, "Did you mean 'condition_source_value'"),
        (
            None,
            {"columns": {"date": "x"}},
            "fixes its columns; the column map can only say `code` and `patients`",
        ),
        (None, {"columns": {"patients": ["nope"]}}, "person: no column 'nope'"),
        (None, {"concepts": True, "columns": {"code": "source_value"}}, "leave one of the two out"),
        (None, {"query": "SELECT 1"}, "`query` is for the format sql; this is 'omop'"),
        ("condition_occurrence", {"format": "omop"}, "no table CONDITION_OCCURRENCE"),
    ],
)
def test_bad_input(tmp_path: Path, lacking: str | None, options: dict[str, Any], message: str) -> None:
    folder = write_csv(tmp_path / "cdm", {name: rows for name, rows in OMOP.items() if name != lacking})
    with pytest.raises(BadInput) as error:
        read(folder, **options)
    assert message in str(error.value)


def test_bad_rows_and_files_are_named(tmp_path: Path) -> None:
    folder = write_csv(tmp_path / "cdm", changed(OMOP, "condition_occurrence", person_id=[1, None, 2, 3, 3]))
    with pytest.raises(
        BadInput, match=r"condition_occurrence\.csv: column 'person_id' names no patient in row 2"
    ):
        read(folder)
    frame_of(OMOP["person"]).write_parquet(folder / "PERSON.parquet")
    with pytest.raises(BadInput, match="the table person is there twice"):
        read(folder)


def test_a_file_is_no_cdm(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("patient,code\n1,401.1\n")
    with pytest.raises(BadInput, match="the format 'omop' needs the folder that holds its tables"):
        read(tmp_path / "a.csv", format="omop")
