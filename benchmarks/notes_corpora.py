"""Public annotated notes in formats of their own, as `AnnotatedNote`s: for `study_notes.py` alone.

Where they come from (all public on GitHub): `medcat-deid/` CogStack/MedCAT, tests/resources/deid_train_data.json, notes
written by a language model; `phi-synthetic-queries/` JamesWeatherhead/synthetic-phi-query-framework,
data/synthetic_dataset.txt; `presidio-synth/` microsoft/presidio-research, data/synth_dataset_v2.json;
`mtsamples-medcat/` CogStack/MedCATtutorials (MTSamples with made-up patients); `aci-bench/` wyim/aci-bench.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from leeward.errors import BadInput
from leeward.notes.spans import AnnotatedNote, Kind, Span

Target = tuple[Kind, str]

MEDCAT: dict[str, Target] = {
    "PATIENT": ("EID", "name"),
    "DOCTOR": ("EID", "name"),
    # The label stands on street lines and cities; `place` is what evaluation counts both as.
    "HOSPITAL": ("QID", "place"),
}

QUERIES: dict[str, Target] = {
    "NAME": ("EID", "name"),
    "GEOGRAPHIC_LOCATION": ("QID", "place"),
    "DATE": ("QID", "date"),
    "MEDICAL_RECORD_NUMBER": ("EID", "record_number"),
    "HEALTH_PLAN_BENEFICIARY_NUMBER": ("EID", "plan_number"),
    "PHONE_NUMBER": ("EID", "phone"),
    "SOCIAL_SECURITY_NUMBER": ("EID", "ssn"),
    "EMAIL_ADDRESS": ("EID", "email"),
    "UNIQUE_IDENTIFIER": ("EID", "other_id"),
    "ACCOUNT_NUMBER": ("EID", "account_number"),
    "FAX_NUMBER": ("EID", "fax"),
    "CERTIFICATE_LICENSE_NUMBER": ("EID", "licence_number"),
    "IP_ADDRESS": ("EID", "ip"),
}

PRESIDIO: dict[str, Target] = {
    "PERSON": ("EID", "name"),
    "STREET_ADDRESS": ("EID", "address"),
    "GPE": ("QID", "place"),
    "ORGANIZATION": ("EID", "facility"),
    "CREDIT_CARD": ("EID", "account_number"),
    "IBAN_CODE": ("EID", "account_number"),
    "DATE_TIME": ("QID", "date"),
    "PHONE_NUMBER": ("EID", "phone"),
    "AGE": ("QID", "age"),
    "EMAIL_ADDRESS": ("EID", "email"),
    "ZIP_CODE": ("QID", "zip"),
    "DOMAIN_NAME": ("EID", "url"),
    "US_SSN": ("EID", "ssn"),
    "IP_ADDRESS": ("EID", "ip"),
    "US_DRIVER_LICENSE": ("EID", "licence_number"),
}
"""TITLE (Mr., Dr.) and NRP (nationality, religion, politics) are left out: no identities here."""


def medcat(data: Path) -> list[AnnotatedNote]:
    """60 notes with patients' and doctors' names and addresses. Offsets are those of the file."""
    (project,) = json.loads((data / "medcat-deid" / "deid_train_data.json").read_text(encoding="utf-8"))[
        "projects"
    ]
    notes = []
    for number, document in enumerate(project["documents"], 1):
        spans = []
        for place, tag in enumerate(document["annotations"], 1):
            start, end = tag["start"], tag["end"]
            if tag["value"].strip() != document["text"][start:end]:
                raise BadInput(
                    f"medcat-deid: document {number}, annotation {place}: its text is not at its offsets."
                )
            spans.append(Span(start, end, *MEDCAT[tag["cui"]], source="gold"))
        notes.append(AnnotatedNote(document["name"], document["text"], tuple(sorted(spans)), "medcat-deid"))
    return notes


def queries(data: Path) -> list[AnnotatedNote]:
    """1,051 questions of clinicians. The file gives values without offsets: every whole occurrence of a value is a
    span, longer values first. A value that does not occur as given, but for the form of its quotes, is an error.
    """
    text = (data / "phi-synthetic-queries" / "synthetic_dataset.txt").read_text(encoding="utf-8")
    notes = []
    for number, record in enumerate(text.split("===QUERY===")[1:], 1):
        query, _, tags = record.partition("===PHI_TAGS===")
        query = query.strip()
        values = [json.loads(line) for line in tags.splitlines() if line.strip()]
        notes.append(AnnotatedNote(f"query-{number}", query, tuple(_found(query, values, number)), "queries"))
    return notes


def _found(query: str, values: list[dict[str, str]], number: int) -> list[Span]:
    plain = query.replace("’", "'")
    taken = [False] * len(query)
    spans = []
    for value in sorted(values, key=lambda one: -len(one["value"])):
        words = value["value"].replace("’", "'")
        pattern = re.compile(rf"(?<!\w){re.escape(words)}(?!\w)")
        places = [match.span() for match in pattern.finditer(plain)] or [
            match.span() for match in re.finditer(re.escape(words), plain)
        ]
        if not places:
            raise BadInput(f"phi-synthetic-queries: query {number}: a tagged value does not occur in it.")
        for start, end in places:
            if not any(taken[start:end]):
                taken[start:end] = [True] * (end - start)
                spans.append(Span(start, end, *QUERIES[value["identifier_type"]], source="gold"))
    return sorted(spans)


def presidio(data: Path) -> list[AnnotatedNote]:
    """1,500 sentences of everyday life, not clinical, with names and addresses of many countries."""
    rows = json.loads((data / "presidio-synth" / "synth_dataset_v2.json").read_text(encoding="utf-8"))
    return [
        AnnotatedNote(
            f"sentence-{number}",
            row["full_text"],
            tuple(
                sorted(
                    Span(
                        tag["start_position"],
                        tag["end_position"],
                        *PRESIDIO[tag["entity_type"]],
                        source="gold",
                    )
                    for tag in row["spans"]
                    if tag["entity_type"] in PRESIDIO
                )
            ),
            "presidio-synth",
        )
        for number, row in enumerate(rows, 1)
    ]


def mtsamples(data: Path) -> Iterator[tuple[str, str]]:
    """Name and text of 1,088 notes."""
    with gzip.open(data / "mtsamples-medcat" / "pt_notes.csv.gz", "rt", encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            yield f"mtsamples-{number}", row["text"]


def aci(data: Path) -> Iterator[tuple[str, str]]:
    """Name and note of 207 encounters."""
    csv.field_size_limit(sys.maxsize)
    for path in sorted((data / "aci-bench").glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                yield f"aci-{path.stem}-{row['encounter_id']}", row["note"]
