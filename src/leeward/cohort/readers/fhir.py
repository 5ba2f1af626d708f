"""FHIR R4 bulk data: NDJSON files of Patient, Encounter, Condition and DocumentReference.

A file's resources are known by what they say they are, not by its name. Conditions that were entered in error or
refuted are no events. A date without a day or month is its first day.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.cohort.cohort import CodeName, Cohort
from leeward.cohort.names import names_of_events, vocabularies_of
from leeward.cohort.notices import Notice
from leeward.cohort.readers.ages import ISO, dates_leniently
from leeward.cohort.readers.codes import VOCABULARY_NAMES, as_written
from leeward.cohort.readers.collect import Collector
from leeward.cohort.readers.columns import ColumnMap, require_columns
from leeward.cohort.readers.delimited import gzip_error, not_utf8
from leeward.cohort.readers.files import find_files, is_gzip, suffix
from leeward.cohort.readers.patients import one_row_each
from leeward.cohort.readers.people import Births, code_and_patients
from leeward.cohort.readers.request import Request
from leeward.cohort.readers.trees import with_tree
from leeward.cohort.readers.values import identifiers
from leeward.errors import BadInput
from leeward.paths import is_folder
from leeward.vocabulary.names import system_name

ENDINGS = (".ndjson", ".jsonl")
READ = ("Patient", "Encounter", "Condition", "DocumentReference")
BATCH_ROWS = 100_000

ATTRIBUTES = ("gender", "birth_date", "death_date", "race", "ethnicity", "marital_status")
"""What goes into the patients frame; names, addresses, telephones and identifiers do not."""

US_CORE = "http://hl7.org/fhir/us/core/StructureDefinition/us-core-"
WRONG = ("entered-in-error", "refuted")

Resource = Mapping[str, Any]


def has_resources(folder: Path) -> bool:
    """Whether the folder has files of NDJSON."""
    return any(is_ndjson(file) and file.is_file() for file in folder.iterdir())


def is_ndjson(file: Path) -> bool:
    """Whether the name says that the file is NDJSON."""
    return suffix(file) in ENDINGS


def read_fhir(asked: Request) -> Cohort:
    """A cohort from NDJSON files; `columns` may name attributes (`ATTRIBUTES`) as `patients`.

    Of a condition's codings the first is taken, or the first of the `vocabulary` icd9 or icd10.
    """
    code, attributes = code_and_patients(asked.columns, "fhir")
    if code is not None:
        raise BadInput("The format 'fhir' has its codes in `Condition.code`; leave the code column out.")
    name = Path(asked.path).name
    files = _files_by_type(asked.path)
    if "Condition" not in files and "DocumentReference" not in files:
        raise BadInput(f"{name}: no file holds Condition or DocumentReference; nothing can be protected.")
    people = _people(files.get("Patient", []))
    notes, notices = _notes(files.get("DocumentReference", []))
    cohort = Cohort(name=name)
    if "Condition" in files:
        cohort = _conditions(asked, files, people)
    patients, told = _attributes(people, attributes, cohort, asked.missing)
    return replace(cohort, notes=notes, patients=patients).with_notices(
        *people.births.notices(), *told, *notices
    )


@dataclass
class _People:
    births: Births = field(default_factory=Births)
    rows: list[dict[str, str | None]] = field(default_factory=list)


def _people(files: Sequence[Path]) -> _People:
    people = _People()
    for file in files:
        before = len(people.rows)
        for row, resource in _resources(file, "Patient"):
            who = _text(resource, "id")
            if who is None:
                raise BadInput(f"{file.name}: row {row} is a Patient without an id.")
            people.rows.append(
                {
                    "patient": who,
                    "gender": _text(resource, "gender"),
                    "birth_date": _text(resource, "birthDate"),
                    "death_date": (_text(resource, "deceasedDateTime") or "")[:10] or None,
                    "race": _us_core(resource, "race"),
                    "ethnicity": _us_core(resource, "ethnicity"),
                    "marital_status": _text(resource, "maritalStatus", "text")
                    or _text(_first(resource.get("maritalStatus"), "coding"), "code"),
                }
            )
        rows = people.rows[before:]
        births = [_whole_date(each["birth_date"]) for each in rows]
        read, _, bad = dates_leniently(
            pl.Series(births, dtype=pl.String), file.name, "birthDate", frozenset(), ISO
        )
        who_all = pl.Series([each["patient"] for each in rows], dtype=pl.String)
        people.births.add(file.name, 0, identifiers(who_all, file.name, "id"), read, bad)
    return people


def _attributes(
    people: _People, names: Sequence[str] | None, cohort: Cohort, missing: frozenset[str]
) -> tuple[pl.DataFrame | None, list[Notice]]:
    if not people.rows:
        return None, []
    wanted = list(ATTRIBUTES if names is None else names)
    require_columns("Patient", wanted, ATTRIBUTES)
    frame = pl.DataFrame(people.rows, schema=dict.fromkeys(("patient", *ATTRIBUTES), pl.String))
    frame = frame.select(identifiers(frame["patient"], "Patient", "id").alias("patient"), *wanted)
    if names is None:
        frame = frame.select("patient", *(c for c in wanted if frame[c].null_count() < frame.height))
    if cohort.events is None:
        return frame, []
    return one_row_each(frame, cohort.events["patient"], missing)


def _conditions(asked: Request, files: Mapping[str, Sequence[Path]], people: _People) -> Cohort:
    vocabulary = asked.vocabulary
    system = "system" if vocabulary is None else None
    mapped = ColumnMap("subject", ("code",), visit="encounter", date="onset", vocabulary=system)
    collector = Collector(Path(asked.path).name, mapped, asked.missing, lenient=True)
    wanted = VOCABULARY_NAMES.get((vocabulary or "").lower())
    wrong: list[int] = []
    displays: list[tuple[str | None, ...]] = []
    for file in files["Condition"]:
        collector.begin(file.name)
        before, row = collector.last_row, 0
        rows: list[tuple[int, tuple[str | None, ...]]] = []
        for row, resource in _resources(file, "Condition"):
            if _code_of(resource.get("verificationStatus")) in WRONG:
                wrong.append(before + row)
                continue
            found = _condition(resource, wanted)
            rows.append((before + row, found[:-1]))
            displays.append((found[0], as_written(found[3] or ""), found[-1]))
            if len(rows) == BATCH_ROWS:
                _add(collector, rows)
        _add(collector, rows)
        collector.last_row = before + row
    cohort = collector.cohort(
        vocabulary, people.births.frame(), lambda: _encounters(files.get("Encounter", []))
    )
    cohort = with_tree(replace(cohort, names=_names(displays, cohort)))
    if not wrong:
        return cohort
    message = f"{len(wrong):,} conditions that were refuted or entered in error left out"
    return cohort.with_notices(Notice.of_rows("refuted condition", message, wrong))


def _names(displays: list[tuple[str | None, ...]], cohort: Cohort) -> dict[str, CodeName]:
    """The names that the codings display, with the vocabulary of their code."""
    rows = pl.DataFrame(displays, schema=dict.fromkeys(("patient", "code", "name"), pl.String), orient="row")
    found = names_of_events(rows, rows["code"], rows["name"])
    systems = vocabularies_of(cohort)
    return {
        code: replace(each, vocabulary=system_name(systems.get(code, ""))) for code, each in found.items()
    }


CONDITION = ("subject", "encounter", "onset", "code", "system")


def _condition(resource: Resource, wanted: str | None) -> tuple[str | None, ...]:
    codings = [c for c in _list(resource.get("code"), "coding") if _text(c, "code") is not None]
    ours = [c for c in codings if VOCABULARY_NAMES.get((_text(c, "system") or "").lower()) == wanted]
    coding = next(iter(ours if wanted and ours else codings), {})
    onset = (
        _text(resource, "onsetDateTime")
        or _text(resource, "onsetPeriod", "start")
        or _text(resource, "recordedDate")
    )
    return (
        _id(_text(resource, "subject", "reference")),
        _id(_text(resource, "encounter", "reference")),
        _whole_date(onset),
        _text(coding, "code"),
        _text(coding, "system"),
        _text(coding, "display"),
    )


def _add(collector: Collector, rows: list[tuple[int, tuple[str | None, ...]]]) -> None:
    if rows:
        numbers = np.array([row for row, _ in rows], np.uint32)
        columns = [pa.array(values, pa.string()) for values in zip(*(each for _, each in rows), strict=True)]
        collector.add(pa.RecordBatch.from_arrays(columns, list(CONDITION)), numbers)
        rows.clear()


def _encounters(files: Sequence[Path]) -> pl.DataFrame | None:
    rows = [
        (_text(resource, "id"), _whole_date(_text(resource, "period", "start")))
        for file in files
        for _, resource in _resources(file, "Encounter")
    ]
    if not rows:
        return None
    visit, start = zip(*rows, strict=True)
    date, _, _ = dates_leniently(pl.Series(start, dtype=pl.String), "Encounter", "period", frozenset(), ISO)
    visits = identifiers(pl.Series(visit, dtype=pl.String), "Encounter", "id")
    return pl.DataFrame({"visit": visits, "date": date})


def _notes(files: Sequence[Path]) -> tuple[pl.DataFrame | None, list[Notice]]:
    """The text of every document that has one."""
    rows: list[tuple[str | None, str | None, str | None, str]] = []
    without: list[int] = []
    number = 0
    for file in files:
        for row, resource in _resources(file, "DocumentReference"):
            number += 1
            who = _id(_text(resource, "subject", "reference"))
            text = _document(resource, file.name, row)
            if text is None or who is None or resource.get("status") == WRONG[0]:
                without.append(number)
                continue
            date = _text(resource, "date") or _text(resource, "context", "period", "start")
            rows.append((_text(resource, "id") or str(number), who, _whole_date(date), text))
    if not files:
        return None, []
    notes = pl.DataFrame(
        rows, schema=dict.fromkeys(("note", "patient", "date", "text"), pl.String), orient="row"
    )
    written, _, _ = dates_leniently(notes["date"], "DocumentReference", "date", frozenset(), ISO)
    patient = identifiers(notes["patient"], "DocumentReference", "subject")
    notes = notes.with_columns(written.alias("date"), patient.alias("patient"))
    if not without:
        return notes, []
    message = (
        f"{len(without):,} documents without readable text, without a patient or entered in error left out"
    )
    return notes, [Notice.of_rows("note without text", message, without)]


def _document(resource: Resource, name: str, row: int) -> str | None:
    """The text of the first attachment that holds text (plain text before other kinds)."""
    attachments = [content.get("attachment") or {} for content in _list(resource, "content")]
    usable = [
        (kind, each)
        for each in attachments
        if (kind := (_text(each, "contentType") or "").lower()).startswith("text/") and _text(each, "data")
    ]
    if not usable:
        return None
    kind, attachment = min(usable, key=lambda each: not each[0].startswith("text/plain"))
    charset = kind.partition("charset=")[2].partition(";")[0].strip(" \"'") or "utf-8"
    try:
        return base64.b64decode(attachment["data"], validate=True).decode(charset) or None
    except (binascii.Error, ValueError, LookupError):
        raise BadInput(
            f"{name}: row {row} has an attachment that is not base64 of {charset} text; repair or remove it."
        ) from None


def _files_by_type(path: str | Path) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    given = Path(path)
    found = (
        sorted(f for f in given.iterdir() if f.is_file() and is_ndjson(f))
        if is_folder(given)
        else find_files(path, ENDINGS)
    )
    for file in found:
        first = next(_resources(file, None), None)
        if first is not None:
            kind = first[1].get("resourceType")
            if not isinstance(kind, str):
                raise BadInput(f"{file.name}: row 1 has no resourceType; FHIR resources are needed.")
            if kind in READ:
                files.setdefault(kind, []).append(file)
    return files


def _resources(file: Path, kind: str | None) -> Iterator[tuple[int, Resource]]:
    """Each resource with its row; blank lines are no rows, resources of another `kind` are refused."""
    row = 0
    try:
        with gzip.open(file, "rb") if is_gzip(file) else file.open("rb") as stream:
            for line in stream:
                if not line.strip():
                    continue
                row += 1
                resource = _parse(line, file, row)
                if kind is not None and resource.get("resourceType") != kind:
                    raise BadInput(
                        f"{file.name}: row {row} is no {kind}; a bulk file holds resources of one kind."
                    )
                yield row, resource
    except (OSError, EOFError, zlib.error) as error:
        raise gzip_error(file) from error


def _parse(line: bytes, file: Path, row: int) -> Resource:
    try:
        resource = json.loads(line)
    except UnicodeDecodeError:
        raise not_utf8(file, f"row {row}") from None
    except (ValueError, RecursionError):
        raise BadInput(f"{file.name}: row {row} is not JSON; NDJSON has one whole resource a line.") from None
    if not isinstance(resource, dict):
        raise BadInput(f"{file.name}: row {row} is no FHIR resource.")
    return resource


def _text(content: Any, *path: str) -> str | None:
    """The text at a path of keys, or None."""
    for key in path:
        content = content.get(key) if isinstance(content, Mapping) else None
    return content if isinstance(content, str) and content else None


def _list(content: Any, key: str) -> list[Resource]:
    found = content.get(key) if isinstance(content, Mapping) else None
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _first(content: Any, key: str) -> Resource:
    return next(iter(_list(content, key)), {})


def _code_of(concept: Any) -> str | None:
    return _text(_first(concept, "coding"), "code")


def _us_core(resource: Resource, name: str) -> str | None:
    for extension in _list(resource, "extension"):
        if extension.get("url") == US_CORE + name:
            parts = {part.get("url"): part for part in _list(extension, "extension")}
            return _text(parts.get("text"), "valueString") or _text(
                parts.get("ombCategory"), "valueCoding", "display"
            )
    return None


def _id(reference: str | None) -> str | None:
    """The id in 'Patient/1', 'https://host/fhir/Patient/1', 'Patient/1/_history/2' or 'urn:uuid:1'."""
    if reference is None:
        return None
    return reference.partition("/_history/")[0].removeprefix("urn:uuid:").rpartition("/")[2] or None


def _whole_date(text: str | None) -> str | None:
    """The date of an instant; the first day of a month or year."""
    if text is None:
        return None
    day = text[:10]
    return day + {4: "-01-01", 7: "-01"}.get(len(day), "")
