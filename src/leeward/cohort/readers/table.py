"""The format `table`: one row per patient, any columns, each with the type its values have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leeward.arrays import count_noun
from leeward.cohort.cohort import Cohort
from leeward.cohort.notices import Notice, row_text
from leeward.cohort.readers.columns import require_columns
from leeward.cohort.readers.files import find_files
from leeward.cohort.readers.request import Request
from leeward.cohort.readers.values import (
    DECIMAL_NUMBER,
    GERMAN_DATE,
    NO_VALUE_TEXTS,
    blank_as_null,
    comma_notice,
    german_dates,
    numbers_of,
    plain,
)
from leeward.errors import BadInput, did_you_mean

ISO_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
NOT_XML = r"[^\t\n\r\x{20}-\x{D7FF}\x{E000}-\x{FFFD}\x{10000}-\x{10FFFF}]"
SCIENTIFIC = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def read_table(asked: Request) -> Cohort:
    """A table of patients as a cohort whose `patients` frame has the table's columns.

    `columns` is `{patient: COL}`, the identifier: it is checked to be unique and never released. Without it each row
    counts as a patient. Outer blanks of texts are removed; dates are ISO 8601 or day.month.year unless `date_format`
    says otherwise. Raises BadInput for whatever cannot be read, an unknown column, an empty table.
    """
    if isinstance(asked.source, pl.DataFrame):
        name, frame = asked.name, asked.source
    else:
        name, frame = Path(asked.source).name, _of_files(asked.source)
    if frame.height == 0:
        raise BadInput(f"{name}: the table has column names but no rows.")
    drop = asked.drop
    if "" in frame.columns:  # row names of R; what the column is called below, `drop` may call it too
        unnamed = f"column_{frame.columns.index('')}"
        frame, drop = frame.rename({"": unnamed}), [each or unnamed for each in drop]
    patient = _patient(asked.columns)
    frame = _drop_columns(name, frame, drop, patient)
    frame, notices = _clean(name, frame, asked.missing, patient, asked.date_format)
    if patient:
        frame = frame.rename({patient: "patient"})
    return Cohort(patients=frame, notices=tuple(notices), name=name, domains=dict(asked.domains))


def _patient(columns: Mapping[str, Any] | None) -> str | None:
    other = next((role for role in columns or {} if role != "patient"), None)
    if other is not None:
        raise BadInput(
            f"A table's column map has the role `patient` only; got '{other}'.{did_you_mean(other, ['patient'])}"
        )
    return str(columns["patient"]) if columns else None


def _drop_columns(name: str, frame: pl.DataFrame, drop: Sequence[str], patient: str | None) -> pl.DataFrame:
    for each in drop if patient is None else (*drop, patient):
        if each not in frame.columns:
            require_columns(name, [each], frame.columns)
    if patient not in (None, "patient") and "patient" in set(frame.columns) - set(drop):
        raise BadInput(
            f"{name}: column '{patient}' names the patients, and another column is called 'patient'; rename that one "
            f"or leave it out (--drop patient)."
        )
    return frame.drop({each for each in drop if each != patient})


def _of_files(path: str | Path) -> pl.DataFrame:
    from leeward.cohort.readers.stores import reader_of

    frames: list[pl.DataFrame] = []
    for file in find_files(path):
        reader = reader_of(file)
        header = reader.header(file)
        require_columns(file.name, header, header)
        if frames and header != frames[0].columns:
            raise BadInput(
                f"{file.name}: its columns differ from those of the first file; read them separately."
            )
        batches = [*reader.batches(file, header)]
        frames += [
            pl.DataFrame({each: plain(batch.column(each), file.name, each) for each in header})
            for batch in batches
        ] or [pl.DataFrame({each: [] for each in header})]
    try:
        return pl.concat(frames, how="vertical_relaxed", rechunk=True)
    except pl.exceptions.PolarsError:
        raise BadInput(
            f"{Path(path).name}: the types of its columns differ between files; read them separately."
        ) from None


def _clean(
    title: str, frame: pl.DataFrame, missing: frozenset[str], patient: str | None, date_format: str | None
) -> tuple[pl.DataFrame, list[Notice]]:
    """Texts without outer blanks, blank and `missing` as null, and as numbers or dates where all of them are."""
    notices: list[Notice] = []
    series = []
    for each in frame:
        if each.dtype == pl.String:
            each = _clean_text(title, each, missing, date_format, notices)
        elif each.dtype.is_numeric():
            each = each.fill_nan(None) if each.dtype.is_float() else each
            each = (
                each.set(each.cast(pl.String).is_in(list(missing)).fill_null(False), None)
                if missing
                else each
            )
        if each.null_count() == len(each):
            notices.append(Notice("empty column", f"column '{each.name}' has no value at all", len(each)))
        elif each.name != patient and each.n_unique() == 1:
            message = f"column '{each.name}' has one value in every row"
            notices.append(Notice("constant column", message, len(each)))
        series.append(each)
    cleaned = pl.DataFrame(series)
    return cleaned, [*notices, *_looks_missing(cleaned, missing, date_format)]


def _clean_text(
    title: str, texts: pl.Series, missing: frozenset[str], date_format: str | None, notices: list[Notice]
) -> pl.Series:
    """Texts as what all of them are; BadInput for a control character: levels go into XML."""
    bad = texts.str.contains(NOT_XML).fill_null(False)
    if bad.any():
        raise BadInput(
            f"{title}: column '{texts.name}' holds a text with a control character ({row_text(bad.arg_true() + 1)}); "
            f"remove it from the file."
        )
    trimmed = int((texts != texts.str.strip_chars()).sum())
    if trimmed:
        message = f"blanks around {count_noun('value', trimmed)} of column '{texts.name}' removed"
        notices.append(Notice("trimmed", message, trimmed))
    read = _parse_text(texts, missing, date_format)
    if read.dtype == pl.Float64 and texts.str.contains(",", literal=True).any():
        notices.append(comma_notice(texts.name))
    return read


def _looks_missing(frame: pl.DataFrame, missing: frozenset[str], date_format: str | None) -> list[Notice]:
    """A notice of texts that are what tables write where there is no value; the words are ours, not a patient's."""
    texts = frame.select(pl.col(pl.String))
    at = texts.select(pl.all().str.to_lowercase().is_in(list(NO_VALUE_TEXTS)).fill_null(False))
    found = {each.name: each.filter(hit) for each, hit in zip(texts, at, strict=True) if hit.any()}
    if not found:
        return []
    typed = [
        name
        for name, each in found.items()
        if _parse_text(texts[name], missing | set(each), date_format).dtype != pl.String
    ]
    words = sorted({word for each in found.values() for word in each})
    hits = sum(map(len, found.values()))
    rows = np.sort(np.concatenate([hit.arg_true().to_numpy() for hit in at])) + 1
    message = (
        f"{count_noun('value', hits)} {_quote(words)} in {_quote(found)} may mean 'no value' but "
        f"{'counts' if hits == 1 else 'count'} as one"
        + (f", and {_quote(typed)} would hold numbers or dates" if typed else "")
        + ": leave them out with "
        + " ".join(f"--missing {word!r}" for word in words)
    )
    return [Notice.of_rows("looks missing", message, rows, hits)]


def _quote(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _parse_text(texts: pl.Series, missing: frozenset[str], date_format: str | None) -> pl.Series:
    texts = blank_as_null(texts, missing)
    values = texts.drop_nulls().unique()
    numbers = numbers_of(texts, f"{DECIMAL_NUMBER}|{SCIENTIFIC}")
    if numbers is not None or len(values) == 0:
        return texts if numbers is None else numbers
    dates = None
    if date_format is not None:
        dates = texts.str.to_date(date_format, strict=False)
    elif values.str.contains(ISO_DATE).all():
        dates = texts.str.to_date("%Y-%m-%d", strict=False)
    elif values.str.contains(GERMAN_DATE).all():
        dates = german_dates(texts)
    return texts if dates is None or dates.null_count() > texts.null_count() else dates
