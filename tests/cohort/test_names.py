"""Names of codes: ICD's own, a vocabulary table's, and those beside the events of a source."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.cohort.sources import OMOP, write_csv, write_ndjson
from tests.cohort.test_read_synthea import NOW, written

from leeward.cohort import read
from leeward.cohort.cohort import CodeName
from leeward.cohort.names import names_of
from leeward.vocabulary.names import icd_name, icd_of


@pytest.mark.parametrize(
    ("code", "vocabulary", "name"),
    [
        ("250.02", "ICD-9-CM", "Diabetes mellitus (category)"),
        ("250", "ICD-9-CM", "Diabetes mellitus"),
        ("390-459", "ICD-9-CM", "Diseases of the circulatory system"),
        ("E11.9", "ICD-10-CM", "Type 2 diabetes mellitus (category)"),
        ("E849.0", "ICD-9-CM", "Place of occurrence (category)"),
        ("V20.2 (ICD-10-CM)", "ICD-10-CM", None),
        ("diabetes", "ICD-9-CM", ""),
        ("250.02", "SNOMED CT", None),
    ],
)
def test_icd_codes_are_called_by_their_category_and_say_so(
    code: str, vocabulary: str, name: str | None
) -> None:
    found = icd_name(code, vocabulary)
    assert found == name if vocabulary == "SNOMED CT" or name else isinstance(found, str)


def test_a_code_of_a_mixed_cohort_is_of_the_classification_that_has_it() -> None:
    assert icd_of("250.02", "icd") == "ICD-9-CM"
    assert icd_of("E11.9", "icd") == "ICD-10-CM"
    assert icd_of("390-459", "icd") == "ICD-9-CM"
    assert icd_of("xyz", "icd") is None
    assert icd_of("250.02", None) is None


def test_codes_of_no_vocabulary_have_no_name() -> None:
    cohort = read(pl.DataFrame({"patient": [1, 2], "code": ["a", "b"]}))
    assert names_of(cohort, ["a", "b"]) == {"a": CodeName("", ""), "b": CodeName("", "")}


def test_rows_that_name_their_vocabulary_name_their_codes() -> None:
    frame = pl.DataFrame({"patient": [1, 2], "code": ["250.02", "E11.9"], "vocabulary": ["9", "10"]})
    names = names_of(read(frame), ["250.02", "E11.9"])
    assert names["250.02"] == CodeName("Diabetes mellitus (category)", "ICD-9-CM")
    assert names["E11.9"] == CodeName("Type 2 diabetes mellitus (category)", "ICD-10-CM")


def test_omop_concepts_have_the_names_of_concept(tmp_path: Path) -> None:
    tables = {**OMOP, "concept": {**OMOP["concept"], "concept_name": ["Type 2 diabetes", "Hypertension"]}}
    cohort = read(write_csv(tmp_path / "cdm", tables))
    vocabulary = OMOP["concept"]["vocabulary_id"][0]
    assert names_of(cohort, ["201826"])["201826"] == CodeName("Type 2 diabetes", vocabulary)
    by_code = read(write_csv(tmp_path / "again", tables), concepts=True)
    assert "Type 2 diabetes" in {each.name for each in by_code.names.values()}


def test_descriptions_of_synthea_are_names_with_the_number_of_patients_behind_them(tmp_path: Path) -> None:
    cohort = read(written(tmp_path / "synthea", NOW))
    assert cohort.names["38341003"] == CodeName("Hypertension", "SNOMED CT", 2)
    assert cohort.names["38341003"].may_be_shown(2)
    assert not cohort.names["44054006"].may_be_shown(2)


def test_displays_of_fhir_are_names(tmp_path: Path) -> None:
    def condition(patient: str, display: str) -> dict[str, object]:
        coding = {"system": "http://snomed.info/sct", "code": "44054006", "display": display}
        subject = {"reference": f"Patient/{patient}"}
        return {"resourceType": "Condition", "subject": subject, "code": {"coding": [coding]}}

    folder = tmp_path / "fhir"
    folder.mkdir()
    resources = [
        condition("a", "Diabetes"),
        condition("b", "Diabetes"),
        condition("c", "diabetes of Mrs Smith"),
    ]
    write_ndjson(folder / "Condition.ndjson", resources)
    assert read(folder).names["44054006"] == CodeName("Diabetes", "SNOMED CT", 2)
