"""FHIR R4 bulk NDJSON: conditions, patients, encounters and documents."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from tests.cohort.sources import attachment, kinds, whole_ages, write_ndjson

from leeward.cohort import read
from leeward.errors import BadInput

US_CORE = "http://hl7.org/fhir/us/core/StructureDefinition/us-core-"
SNOMED = "http://snomed.info/sct"
ICD10 = "http://hl7.org/fhir/sid/icd-10-cm"

PATIENTS: list[dict[str, Any]] = [
    {
        "resourceType": "Patient",
        "id": "a",
        "gender": "female",
        "birthDate": "1960-06-15",
        "name": [{"family": "Secretname"}],
        "extension": [
            {"url": US_CORE + "race", "extension": [{"url": "text", "valueString": "White"}]},
            {
                "url": US_CORE + "ethnicity",
                "extension": [{"url": "ombCategory", "valueCoding": {"display": "Not Hispanic"}}],
            },
        ],
        "maritalStatus": {"coding": [{"code": "M"}]},
    },
    {"resourceType": "Patient", "id": "b", "gender": "male", "birthDate": "1980"},
]


def condition(patient: str, *codings: tuple[str, str], **rest: Any) -> dict[str, Any]:
    """A Condition; each coding is (system, code)."""
    coding = [{"system": system, "code": code} for system, code in codings]
    return {
        "resourceType": "Condition",
        "subject": {"reference": patient},
        "code": {"coding": coding},
        **rest,
    }


CONDITIONS = [
    condition(
        "Patient/a",
        (SNOMED, "44054006"),
        (ICD10, "E119"),
        onsetDateTime="2010-06-14T23:59:00-05:00",
        encounter={"reference": "Encounter/e1"},
    ),
    condition("urn:uuid:a", (SNOMED, "38341003"), onsetPeriod={"start": "2010-06-15"}),
    condition("https://host/fhir/Patient/b/_history/2", (ICD10, "I10"), recordedDate="2011-03"),
    condition("Patient/b", (ICD10, "I10"), encounter={"reference": "Encounter/e2"}),
    condition("Patient/b", (ICD10, "I10"), verificationStatus={"coding": [{"code": "refuted"}]}),
    condition("Patient/b", onsetDateTime="2011-03-01"),
    condition("Patient/b", (ICD10, "I10"), verificationStatus={"coding": [{"code": "entered-in-error"}]}),
]
ENCOUNTERS = [
    {"resourceType": "Encounter", "id": "e1", "period": {"start": "2010-06-14T10:00:00Z"}},
    {"resourceType": "Encounter", "id": "e2", "period": {"start": "2012-01-02T10:00:00Z"}},
]


def document(number: str, *content: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {
        "resourceType": "DocumentReference",
        "id": number,
        "status": "current",
        "subject": {"reference": "Patient/a"},
        "date": "2010-06-14T12:00:00.123Z",
        "content": list(content),
        **rest,
    }


DOCUMENTS = [
    document("d1", attachment("<p>x</p>", "text/html"), attachment("Straße\n")),
    document("d2", attachment("%PDF", "application/pdf")),
    document("d3", attachment("x"), status="entered-in-error"),
    document("d4", attachment("x"), subject={}),
    document("d5", {"attachment": {"contentType": "text/plain", "url": "Binary/1"}}),
    document("d6", attachment("late"), date=None, context={"period": {"start": "2011-01-01"}}),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_ndjson(tmp_path / "Patient.000.ndjson", PATIENTS)
    # Files are known by their content.
    write_ndjson(tmp_path / "1.ndjson", CONDITIONS)
    write_ndjson(tmp_path / "Encounter.000.ndjson.gz", ENCOUNTERS)
    write_ndjson(tmp_path / "DocumentReference.000.ndjson.gz", DOCUMENTS)
    write_ndjson(tmp_path / "Claim.000.ndjson", [{"resourceType": "Claim", "id": "c"}])
    return tmp_path


def test_conditions_are_events(folder: Path) -> None:
    cohort = read(folder)
    assert cohort.require_events().select("patient", "code", "vocabulary", "visit", "date", "row").rows() == [
        ("a", "44054006", SNOMED, "e1", datetime.date(2010, 6, 14), 1),
        ("a", "38341003", SNOMED, None, datetime.date(2010, 6, 15), 2),
        ("b", "I10", "icd10", None, datetime.date(2011, 3, 1), 3),
        ("b", "I10", "icd10", "e2", datetime.date(2012, 1, 2), 4),
    ]
    assert whole_ages(cohort) == [49, 50, 31, 32]
    found = kinds(cohort)
    assert found["refuted condition"] == (2, (5, 7))
    assert found["missing code"] == (1, (6,))
    assert found["date of the visit"] == (1, (4,))


def test_the_coding_of_the_asked_vocabulary_is_taken(folder: Path) -> None:
    cohort = read(folder, vocabulary="icd10", accept_unknown=True)
    assert cohort.require_events()["code"].to_list() == ["E11.9", "38341003", "I10", "I10"]
    assert cohort.vocabulary == "icd10"
    assert kinds(cohort)["unknown code"] == (1, (2,))


def test_patients_have_attributes_but_no_names(folder: Path) -> None:
    patients = read(folder).patients
    assert patients is not None
    assert patients.rows(named=True) == [
        {
            "patient": "a",
            "gender": "female",
            "birth_date": "1960-06-15",
            "race": "White",
            "ethnicity": "Not Hispanic",
            "marital_status": "M",
        },
        {
            "patient": "b",
            "gender": "male",
            "birth_date": "1980",
            "race": None,
            "ethnicity": None,
            "marital_status": None,
        },
    ]
    chosen = read(folder, columns={"patients": "gender"}).patients
    assert chosen is not None
    assert chosen.columns == ["patient", "gender"]


def test_documents_are_notes(folder: Path) -> None:
    cohort = read(folder)
    assert cohort.notes is not None
    assert cohort.notes.rows() == [
        ("d1", "a", datetime.date(2010, 6, 14), "Straße\n"),
        ("d6", "a", datetime.date(2011, 1, 1), "late"),
    ]
    assert kinds(cohort)["note without text"] == (4, (2, 3, 4, 5))


def test_documents_alone_are_a_cohort_without_events(tmp_path: Path) -> None:
    write_ndjson(tmp_path / "notes.ndjson", DOCUMENTS)
    cohort = read(tmp_path / "notes.ndjson")
    assert cohort.events is None
    assert cohort.notes is not None
    assert cohort.notes.height == 2
    by_pattern = read(tmp_path / "*.ndjson").notes
    assert by_pattern is not None
    assert by_pattern.equals(cohort.notes)


def test_rows_count_on_through_files(folder: Path) -> None:
    write_ndjson(folder / "2.ndjson", [condition("Patient/a", (ICD10, "I10"), recordedDate="1950-01-01")])
    cohort = read(folder)
    assert cohort.require_events()["row"].to_list() == [1, 2, 3, 4, 8]
    assert kinds(cohort)["event before birth"] == (1, (8,))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"resourceType": "Condition", "id": "secret"', "f.ndjson: row 2 is not JSON"),
        ('{"resourceType": "Patient", "id": "secret"}', "f.ndjson: row 2 is no Condition"),
        ('["secret"]', "f.ndjson: row 2 is not a FHIR resource"),
        (
            json.dumps({**CONDITIONS[0], "subject": {}}),
            "f.ndjson: column 'subject' names no patient in row 2",
        ),
        ('{"resourceType": "Condition", "id": "\udcff"}', "f.ndjson: row 2 is not UTF-8 text"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, line: str, message: str) -> None:
    text = json.dumps(CONDITIONS[0]) + "\n\n" + line + "\n"
    (tmp_path / "f.ndjson").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadInput) as error:
        read(tmp_path)
    assert message in str(error.value)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"contentType": "text/plain", "data": "not base64 at all"},
        {"contentType": "text/plain; charset=secret", "data": "eA=="},
        {"contentType": "text/plain; charset=utf-8", "data": "/w=="},
    ],
)
def test_attachments_that_are_no_text(tmp_path: Path, wrong: dict[str, str]) -> None:
    write_ndjson(tmp_path / "d.ndjson", [DOCUMENTS[0], document("d9", {"attachment": wrong})])
    with pytest.raises(BadInput, match=r"d\.ndjson: row 2 has an attachment that is not base64 of"):
        read(tmp_path)


def test_other_bad_input(tmp_path: Path, folder: Path) -> None:
    (folder / "Encounter.000.ndjson.gz").write_bytes(b"\x1f\x8bnothing")
    with pytest.raises(BadInput, match=r"Encounter\.000\.ndjson\.gz: this is not a complete gzip file"):
        read(folder)
    with pytest.raises(BadInput, match="leave the code column out"):
        read(folder, columns={"code": "x"})
    with pytest.raises(BadInput, match="`domains` is for the format"):
        read(folder, domains=["condition"])
    write_ndjson(tmp_path / "only.ndjson", PATIENTS)
    with pytest.raises(BadInput, match=r"only\.ndjson: no file holds Condition or DocumentReference"):
        read(tmp_path / "only.ndjson")
