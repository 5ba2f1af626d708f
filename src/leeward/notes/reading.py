"""Notes from files: a folder of texts, CSV, TSV, Parquet, JSON lines, or FHIR's DocumentReference.

All readers return one frame: `row` (counted in the whole input from 1), `file`, `note`, `patient`, the metadata of
`pipeline.KNOWN`, `text`, all but `row` as text; and `controls`, the number of control characters removed from `text`.
Errors name file and row, never their content.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from leeward.cohort.readers import parquet
from leeward.cohort.readers.copies import copies, local
from leeward.cohort.readers.files import refuse_log
from leeward.errors import BadInput
from leeward.notes.pipeline import KNOWN
from leeward.paths import exists

LONGEST = 1_000_000
"""Most characters of a note; a longer one is a file of many notes."""

BLANKS = "[\x0b\x1c-\x1f\x85]"
"""Control characters between words, each replaced by a blank."""

CONTROLS = "[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]"
"""Control characters inside words, removed so that names are read whole. A note without NUL can be padded."""

STRAY = 0.01
"""Largest share of control characters in a note (one is always allowed); above, it is no plain text."""

TEXTS = (".txt", ".text", ".note")
TABLES = (".csv", ".tsv", ".tab", ".parquet", ".pq", ".jsonl", ".ndjson")
SHOWN = 5
"""Most row numbers listed in a message."""

ALSO = {
    "sex": ("gender",),
    "birth_date": ("dob", "birthdate", "date_of_birth"),
    "zip": ("zip_code", "zipcode", "postal_code"),
    "place": ("city", "location"),
    "text": ("note_text", "transcription", "content"),
    "patient": ("patient_id", "pid", "subject_id", "person_id"),
    "note": ("note_id", "id", "document_id"),
    "date": ("visit_date", "note_date", "charttime", "chartdate"),
    "race": ("ethnicity",),
}
"""Alternative column names, used if the first is missing."""

COLUMNS = ("note", "patient", "text", *KNOWN)


@copies()
def read(
    path: str | Path, columns: Mapping[str, str] | None = None, metadata: str | Path | None = None
) -> pl.DataFrame:
    """Read the notes of a folder of texts (a subfolder is a patient; without subfolders each text is a patient of its
    own), a table, or FHIR NDJSON (a file or folder).

    `columns` maps `text`, `patient`, `note` or a name of `KNOWN` to the table's column; by default columns have these
    names or those in `ALSO`. `metadata` is a table of registration data with the column `patient` or `note` and any of
    `KNOWN`. Raises BadInput for unreadable input, and for a note that is empty, longer than `LONGEST`, binary or in two
    encodings (more control characters than `STRAY`).
    """
    given = Path(local(path))
    if not exists(given):
        raise BadInput(f"{given.name}: no such file or folder.")
    refuse_log(given)
    frame = _check(_read(given, dict(columns or {})), given.name)
    if metadata is not None:
        frame = _join_registration(frame, Path(local(metadata)))
    return frame.select("row", "file", "note", "patient", *KNOWN, "text", "controls")


def _read(path: Path, columns: Mapping[str, str]) -> pl.DataFrame:
    if path.is_dir():
        texts = sorted(f for f in path.rglob("*") if f.is_file() and f.suffix.lower() in TEXTS)
        if texts:
            return _of_texts(path, texts)
        tables = sorted(f for f in path.iterdir() if f.is_file() and _ending(f) in TABLES)
        if not tables:
            raise BadInput(f"{path.name}: the folder has no notes ({', '.join(TEXTS + TABLES)}).")
        if any(_is_fhir(f) for f in tables):
            return _of_fhir(path)
        return pl.concat([_of_table(f, columns) for f in tables])
    if path.suffix.lower() in TEXTS:
        return _of_texts(path.parent, [path])
    if _is_fhir(path):
        return _of_fhir(path)
    return _of_table(path, columns)


def _of_texts(folder: Path, files: Sequence[Path]) -> pl.DataFrame:
    rows = []
    for file in files:
        owner = file.relative_to(folder).parts[0] if file.parent != folder else file.stem
        note = str(file.relative_to(folder))
        rows.append({"file": file.name, "note": note, "patient": owner, "text": _text_of(file)})
    return _to_frame(rows)


def _text_of(file: Path) -> str:
    raw = file.read_bytes()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return raw.decode("utf-16")
        except UnicodeDecodeError:
            raise BadInput(
                f"{file.name}: begins as UTF-16 and goes on otherwise; save it as UTF-8."
            ) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if b"\0" in raw:
            raise BadInput(f"{file.name}: is a binary file; notes are plain text in UTF-8.") from None
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"{file.name}: line {line} is not UTF-8 (another or a mixed encoding); save the file as UTF-8."
        ) from None


def _of_table(file: Path, columns: Mapping[str, str]) -> pl.DataFrame:
    ending = _ending(file)
    if ending in (".parquet", ".pq"):
        table = parquet.frame(file)
    elif ending in (".jsonl", ".ndjson"):
        table = _json_lines(file)
    elif ending in (".csv", ".tsv", ".tab"):
        table = _read_delimited(file)
    else:
        raise BadInput(
            f"{file.name}: not a file of notes; give {', '.join(TEXTS + TABLES)} or a folder of them."
        )
    names = {name: _column(file, name, table.columns, columns) for name in COLUMNS}
    if names["text"] is None:
        raise BadInput(
            f"{file.name}: no column 'text' among {', '.join(table.columns)}; name it with --text-column."
        )
    number = pl.int_range(1, table.height + 1, dtype=pl.Int64).cast(pl.String)
    chosen = [
        (pl.lit(None) if source is None else pl.col(source)).cast(pl.String).alias(name)
        for name, source in names.items()
    ]
    frame = table.select(*chosen, pl.lit(file.name).alias("file"), number.alias("_number"))
    return frame.with_columns(
        pl.col("note").fill_null(pl.col("_number")),
        (pl.col("patient") if names["patient"] else pl.col("_number")).alias("patient"),
    ).select("file", *COLUMNS)


def _column(file: Path, name: str, there: Sequence[str], columns: Mapping[str, str]) -> str | None:
    if name in columns:
        if columns[name] not in there:
            raise BadInput(f"{file.name}: no column '{columns[name]}' among {', '.join(there)}.")
        return columns[name]
    folded = {column.lower(): column for column in reversed(there)}
    return next((folded[each] for each in (name, *ALSO.get(name, ())) if each in folded), None)


def _read_delimited(file: Path) -> pl.DataFrame:
    """Read a CSV or TSV file whose rows are all as wide as its header."""
    from leeward.cohort.readers.delimited import batches, header

    names = header(file)
    if len(set(names)) < len(names):
        raise BadInput(f"{file.name}: two columns have the same name; rename one of them.")
    frames = [pl.DataFrame(pl.from_arrow(batch)) for batch in batches(file, names)]
    if not frames:
        raise BadInput(f"{file.name}: has a header and no notes.")
    table = pl.concat(frames)
    return table.with_columns(pl.when(pl.all() != "").then(pl.all()))


def _json_lines(file: Path) -> pl.DataFrame:
    rows = [row for _, row in _json_rows(file)]
    if not rows:
        raise BadInput(f"{file.name}: has no notes.")
    keys = list(dict.fromkeys(key for row in rows for key in row))
    as_text = [{key: None if row.get(key) is None else str(row[key]) for key in keys} for row in rows]
    return pl.DataFrame(as_text, schema=dict.fromkeys(keys, pl.String))


def _json_rows(file: Path) -> Iterator[tuple[int, dict[str, object]]]:
    number = 0
    with file.open("rb") as stream:
        for line in stream:
            if not line.strip():
                continue
            number += 1
            try:
                row = json.loads(line)
            except UnicodeDecodeError:
                raise BadInput(f"{file.name}: row {number} is not UTF-8; save the file as UTF-8.") from None
            except (ValueError, RecursionError):
                raise BadInput(
                    f"{file.name}: row {number} is not JSON; one whole object a line is needed."
                ) from None
            if not isinstance(row, dict):
                raise BadInput(f'{file.name}: row {number} is no JSON object; a note is {{"text": …}}.')
            yield number, row


def _is_fhir(file: Path) -> bool:
    """Whether the first line of a JSON file is a FHIR resource."""
    name = file.name.lower().removesuffix(".gz")
    if not name.endswith((".jsonl", ".ndjson")):
        return False
    if file.name.lower().endswith(".gz"):
        return True
    with file.open("rb") as stream:
        return b'"resourceType"' in stream.read(4096)


def _of_fhir(path: Path) -> pl.DataFrame:
    """Read notes of DocumentReference, with sex, birth date and race of Patient if available."""
    from leeward.cohort.readers import read as read_cohort

    cohort = read_cohort(path, format="fhir")
    if cohort.notes is None or not cohort.notes.height:
        raise BadInput(f"{path.name}: no DocumentReference with readable text.")
    notes = cohort.notes.with_columns(pl.all().cast(pl.String), pl.lit(path.name).alias("file"))
    if cohort.patients is not None:
        people = cohort.patients.with_columns(pl.all().cast(pl.String))
        kept = [c for c in ("gender", "birth_date", "race") if c in people.columns]
        notes = notes.join(people.select("patient", *kept), on="patient", how="left", maintain_order="left")
        notes = notes.rename({"gender": "sex"} if "gender" in kept else {})
    return _to_frame(notes.to_dicts())


def _to_frame(rows: Iterable[Mapping[str, str | None]]) -> pl.DataFrame:
    names = ("file", *COLUMNS)
    return pl.DataFrame(
        [{name: row.get(name) for name in names} for row in rows], schema=dict.fromkeys(names, pl.String)
    )


def _check(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Add row numbers and remove control characters; BadInput naming the first bad rows."""
    if not frame.height:
        raise BadInput(f"{name}: has no notes.")
    frame = frame.with_row_index("row", offset=1).with_columns(
        pl.col("row").cast(pl.Int64), (pl.int_range(pl.len()).over("file") + 1).alias("at")
    )
    text, without = pl.col("text"), pl.col("text").str.replace_all(BLANKS, " ").str.replace_all(CONTROLS, "")
    controls = text.str.count_matches(BLANKS) + text.str.count_matches(CONTROLS)
    many = controls > pl.max_horizontal(1, STRAY * text.str.len_chars())
    wrong = (
        (without.is_null() | (without.str.strip_chars() == ""), "has an empty note; remove it or fill it in"),
        (many & text.str.contains("\0", literal=True), "holds binary data; notes are plain text"),
        (
            text.str.contains("\ufffd", literal=True) | many,
            "has characters of a broken or mixed encoding; save the source as UTF-8",
        ),
        (
            text.str.len_chars() >= LONGEST,
            f"has a note of {LONGEST:,} characters or more; split it into its notes",
        ),
        (pl.col("patient").is_null(), "has a note without a patient; fill the column in"),
    )
    for condition, told in wrong:
        bad = frame.filter(condition)
        if bad.height:
            raise BadInput(f"{_where(bad)} {told}.")
    return frame.with_columns(without.alias("text"), controls.alias("controls"))


def _where(bad: pl.DataFrame) -> str:
    first = bad.row(0, named=True)
    rows = bad.filter(pl.col("file") == first["file"])["at"].head(SHOWN).to_list()
    numbers = ", ".join(map(str, rows)) + (", …" if bad.height > len(rows) else "")
    label = "row" if bad.height == 1 else "rows"
    return f"{first['file']}: {label} {numbers}" + (
        f" ({bad.height:,} in all) each" if bad.height > 1 else ""
    )


def _join_registration(frame: pl.DataFrame, file: Path) -> pl.DataFrame:
    """Join registration data of the patients (or of the notes themselves) to the notes."""
    if not file.is_file():
        raise BadInput(f"--metadata {file.name}: no such file.")
    refuse_log(file)
    ending = _ending(file)
    table = parquet.frame(file) if ending in (".parquet", ".pq") else _read_delimited(file)
    by = next((c for c in ("note", "patient") if _column(file, c, table.columns, {}) is not None), None)
    if by is None:
        raise BadInput(
            f"--metadata {file.name}: no column 'patient' or 'note' among {', '.join(table.columns)}."
        )
    names = {name: _column(file, name, table.columns, {}) for name in (by, *KNOWN)}
    kept = [name for name in KNOWN if names[name] is not None]
    facts = table.select(pl.col(str(names[n])).cast(pl.String).alias(n) for n in (by, *kept))
    if facts[by].n_unique() < facts.height:
        raise BadInput(f"--metadata {file.name}: a {by} has several rows; one is needed.")
    joined = frame.join(facts, on=by, how="left", suffix="_known", maintain_order="left")
    return joined.with_columns(pl.coalesce(f"{n}_known", n).alias(n) for n in kept).select(frame.columns)


def _ending(file: Path) -> str:
    endings = [e.lower() for e in file.suffixes if e.lower() != ".gz"]
    return endings[-1] if endings else ""
