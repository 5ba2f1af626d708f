"""FHIR R4 bulk data: NDJSON files of Patient, Encounter, Condition and DocumentReference.

A file's resources are known by what they say they are, not by its name. Conditions that were entered in error or
refuted are no events. A date without a day or month is its first day.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
from leeward.cohort.readers.delimited import not_utf8, open_bytes
from leeward.cohort.readers.files import find_files, suffix
from leeward.cohort.readers.people import birth_notices, births_part, code_and_patients
from leeward.cohort.readers.request import Request
from leeward.cohort.readers.trees import with_tree
from leeward.cohort.readers.values import identifiers, one_row_each
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


def is_ndjson(file: Path) -> bool:
    return suffix(file) in ENDINGS


def read_fhir(asked: Request) -> Cohort:
    """A cohort from NDJSON files; `columns` may name attributes (`ATTRIBUTES`) as `patients`. Of a condition's
    codings the first is taken, or the first of the `vocabulary` icd9 or icd10."""
    code, attributes = code_and_patients(asked.columns, "fhir")
    if code is not None:
        raise BadInput("The format 'fhir' has its codes in `Condition.code`; leave the code column out.")
    name = Path(asked.path).name
    files = _files_by_type(asked.path)
    if "Condition" not in files and "DocumentReference" not in files:
        raise BadInput(f"{name}: no file holds Condition or DocumentReference; nothing can be protected.")
    people = _people(files.get("Patient", []))
    births = None
    if people.height:
        born = pl.Series(map(_whole_date, people["birth_date"]), dtype=pl.String)
        read, _, bad = dates_leniently(born, "Patient", "birthDate", frozenset(), ISO)
        births = births_part(people["file"], people, people["patient"], read, bad)
    notes, notices = _notes(files.get("DocumentReference", []))
    cohort = Cohort(name=name)
    if "Condition" in files:
        cohort = _conditions(asked, files, births)
    patients, told = _attributes(people, attributes, cohort, asked.missing)
    return replace(cohort, notes=notes, patients=patients).with_notices(
        *birth_notices(births), *told, *notices
    )


def _people(files: Sequence[Path]) -> pl.DataFrame:
    """The patients with their attributes as texts, and the `file` and `row` of each."""
    rows: list[tuple[Any, ...]] = []
    for file in files:
        for row, resource in _resources(file, "Patient"):
            who = _text(resource, "id")
            if who is None:
                raise BadInput(f"{file.name}: row {row} is a Patient without an id.")
            rows.append(
                (
                    file.name,
                    row,
                    who,
                    _text(resource, "gender"),
                    _text(resource, "birthDate"),
                    (_text(resource, "deceasedDateTime") or "")[:10] or None,
                    _us_core(resource, "race"),
                    _us_core(resource, "ethnicity"),
                    _text(resource, "maritalStatus", "text")
                    or _text(resource, "maritalStatus", "coding", "code"),
                )
            )
    texts = dict.fromkeys(("patient", *ATTRIBUTES), pl.String)
    frame = pl.DataFrame(rows, schema={"file": pl.String, "row": pl.Int64, **texts}, orient="row")
    return frame.with_columns(identifiers(frame["patient"], "Patient", "id").alias("patient"))


def _attributes(
    people: pl.DataFrame, names: Sequence[str] | None, cohort: Cohort, missing: frozenset[str]
) -> tuple[pl.DataFrame | None, list[Notice]]:
    """The patients frame with the attributes `names`, or with all that some patient has."""
    if not people.height:
        return None, []
    require_columns("Patient", names or (), ATTRIBUTES)
    if names is None:
        names = [each for each in ATTRIBUTES if people[each].null_count() < people.height]
    frame = people.select("patient", *names)
    return (frame, []) if cohort.events is None else one_row_each(frame, cohort.events["patient"], missing)


def _conditions(asked: Request, files: Mapping[str, Sequence[Path]], births: pl.DataFrame | None) -> Cohort:
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
            if _text(resource, "verificationStatus", "coding", "code") in WRONG:
                wrong.append(before + row)
                continue
            found = _condition(resource, wanted)
            rows.append((before + row, found[:-1]))
            displays.append((found[0], as_written(found[3] or ""), found[-1]))
            if len(rows) == BATCH_ROWS:
                _add(collector, rows)
        _add(collector, rows)
        collector.last_row = before + row
    cohort = collector.cohort(vocabulary, births, lambda: _encounters(files.get("Encounter", [])))
    cohort = with_tree(replace(cohort, names=_names(displays, cohort)))
    if not wrong:
        return cohort
    message = f"{len(wrong):,} conditions that were refuted or entered in error were left out"
    return cohort.with_notices(Notice.of_rows("refuted condition", message, wrong))


def _names(displays: list[tuple[str | None, ...]], cohort: Cohort) -> dict[str, CodeName]:
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
    ways = (("onsetDateTime",), ("onsetPeriod", "start"), ("recordedDate",))
    onset = next(filter(None, (_text(resource, *way) for way in ways)), None)
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
    if not files:
        return None, []
    rows: list[tuple[str | None, str | None, str | None, str]] = []
    without: list[int] = []
    documents = ((file, *each) for file in files for each in _resources(file, "DocumentReference"))
    for number, (file, row, resource) in enumerate(documents, 1):
        who = _id(_text(resource, "subject", "reference"))
        text = _document(resource, file.name, row)
        if text is None or who is None or resource.get("status") == WRONG[0]:
            without.append(number)
            continue
        date = _text(resource, "date") or _text(resource, "context", "period", "start")
        rows.append((_text(resource, "id") or str(number), who, _whole_date(date), text))
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
    kinds = [((_text(each, "contentType") or "").lower(), _text(each, "data")) for each in attachments]
    usable = [(kind, data) for kind, data in kinds if kind.startswith("text/") and data]
    if not usable:
        return None
    kind, data = min(usable, key=lambda each: not each[0].startswith("text/plain"))
    return _decode(data, kind.partition("charset=")[2].partition(";")[0].strip(" \"'") or "utf-8", name, row)


def _decode(data: str, charset: str, name: str, row: int) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode(charset) or None
    except (binascii.Error, ValueError, LookupError):
        raise BadInput(
            f"{name}: row {row} has an attachment that is not base64 of {charset} text; repair or remove it."
        ) from None


def _files_by_type(path: str | Path) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    given = Path(path)
    if is_folder(given):
        found = sorted(file for file in given.iterdir() if file.is_file() and is_ndjson(file))
    else:
        found = find_files(path, ENDINGS)
    for file in found:
        for _, first in itertools.islice(_resources(file, None), 1):
            kind = first.get("resourceType")
            if not isinstance(kind, str):
                raise BadInput(f"{file.name}: row 1 has no resourceType; FHIR resources are needed.")
            if kind in READ:
                files.setdefault(kind, []).append(file)
    return files


def _resources(file: Path, kind: str | None) -> Iterator[tuple[int, Resource]]:
    """Each resource with its row; blank lines are no rows, resources of another `kind` are refused."""
    with open_bytes(file) as stream:
        for row, line in enumerate((line for line in stream if line.strip()), 1):
            resource = _parse(line, file, row)
            if kind is not None and resource.get("resourceType") != kind:
                raise BadInput(
                    f"{file.name}: row {row} is no {kind}; a bulk file holds resources of one kind."
                )
            yield row, resource


def _parse(line: bytes, file: Path, row: int) -> Resource:
    try:
        resource = json.loads(line)
    except UnicodeDecodeError:
        raise not_utf8(file, f"row {row}") from None
    except (ValueError, RecursionError):
        raise BadInput(
            f"{file.name}: row {row} is not JSON; NDJSON has one whole resource on each line."
        ) from None
    if not isinstance(resource, dict):
        raise BadInput(f"{file.name}: row {row} is not a FHIR resource.")
    return resource


def _text(content: Any, *path: str) -> str | None:
    """The text at a path of keys, or None; of a concept's codings the first."""
    for key in path:
        if key == "coding":
            content = next(iter(_list(content, key)), None)
        else:
            content = content.get(key) if isinstance(content, Mapping) else None
    return content if isinstance(content, str) and content else None


def _list(content: Any, key: str) -> list[Resource]:
    found = content.get(key) if isinstance(content, Mapping) else None
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


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
    return (reference or "").partition("/_history/")[0].removeprefix("urn:uuid:").rpartition("/")[2] or None


def _whole_date(text: str | None) -> str | None:
    """The date of an instant; the first day of a month or year."""
    day = (text or "")[:10]
    return None if text is None else day + {4: "-01-01", 7: "-01"}.get(len(day), "")
