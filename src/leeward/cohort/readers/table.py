"""The format `table`: one row a patient, any columns, each with the type its values have."""

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
from leeward.cohort.readers.patients import DECIMAL_NUMBER, WHOLE_NUMBER, comma_notice
from leeward.cohort.readers.values import GERMAN_DATE, NO_VALUE_TEXTS, german_dates, plain, with_points
from leeward.errors import BadInput, did_you_mean

ISO_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
NOT_XML = r"[^\t\n\r\x{20}-\x{D7FF}\x{E000}-\x{FFFD}\x{10000}-\x{10FFFF}]"
SCIENTIFIC = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def read_table(
    path: str | Path | pl.DataFrame,
    *,
    name: str = "frame",
    columns: Mapping[str, Any] | None = None,
    missing: Iterable[str] = (),
    drop: Sequence[str] = (),
    domains: Mapping[str, Any] | None = None,
    date_format: str | None = None,
) -> Cohort:
    """A table of patients as a cohort whose `patients` frame has the table's columns.

    The parameters are those of `readers.read`; `columns` is `{patient: COL}`, the identifier: it is checked to be
    unique and never released. Without it each row counts as a patient. Outer blanks of texts are taken off; dates are
    ISO 8601 or day.month.year unless `date_format` says otherwise. Raises BadInput for whatever cannot be read, an
    unknown column, an empty table.
    """
    name = name if isinstance(path, pl.DataFrame) else Path(path).name
    frame = path if isinstance(path, pl.DataFrame) else _of_files(path)
    if frame.height == 0:
        raise BadInput(f"{name}: the table has column names but no rows.")
    if "" in frame.columns:  # row names of R; what the column is called below, `drop` may call it too
        unnamed = f"column_{frame.columns.index('')}"
        frame, drop = frame.rename({"": unnamed}), [each or unnamed for each in drop]
    patient = _patient(columns)
    frame = _drop_columns(name, frame, drop, patient)
    frame, notices = _clean(name, frame, frozenset(text.strip() for text in missing), patient, date_format)
    if patient:
        frame = frame.rename({patient: "patient"})
    return Cohort(patients=frame, notices=tuple(notices), name=name, domains=dict(domains or {}))


def _patient(columns: Mapping[str, Any] | None) -> str | None:
    for role in columns or {}:
        if role != "patient":
            raise BadInput(
                f"A table's column map has the role `patient` only; got '{role}'.{did_you_mean(role, ['patient'])}"
            )
    return None if not columns else str(columns["patient"])


def _drop_columns(name: str, frame: pl.DataFrame, drop: Sequence[str], patient: str | None) -> pl.DataFrame:
    """The frame without some columns; that of the patients stays."""
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
            f"{Path(path).name}: the types of its columns differ from file to file; read them separately."
        ) from None


def _refuse_control(title: str, name: str, texts: pl.Series) -> None:
    """Levels go into pages and pictures, which are XML: a sign that XML lacks is a fault of the file."""
    bad = texts.str.contains(NOT_XML).fill_null(False)
    if bad.any():
        raise BadInput(
            f"{title}: column '{name}' holds a text with a control character "
            f"({row_text(np.flatnonzero(bad.to_numpy()) + 1)}); take it out of the file."
        )


def _clean(
    title: str, frame: pl.DataFrame, missing: frozenset[str], patient: str | None, date_format: str | None
) -> tuple[pl.DataFrame, list[Notice]]:
    """Texts without outer blanks, blank and `missing` as null, and as numbers or dates where all of them are."""
    notices = []
    series = []
    for name in frame.columns:
        each = frame[name]
        if each.dtype in (pl.Float32, pl.Float64):
            each = each.fill_nan(None)
        if each.dtype == pl.String:
            _refuse_control(title, name, each)
            trimmed = int((each != each.str.strip_chars()).sum())
            if trimmed:
                message = f"blanks around {count_noun('value', trimmed)} of column '{name}' taken off"
                notices.append(Notice("trimmed", message, trimmed))
            read = _parse_text(each, missing, date_format)
            if read.dtype == pl.Float64 and each.str.contains(",", literal=True).any():
                notices.append(comma_notice(name))
            each = read
        elif missing and each.dtype.is_numeric():
            each = each.set(each.cast(pl.String).is_in(list(missing)).fill_null(False), None)
        if each.null_count() == len(each):
            notices.append(Notice("empty column", f"column '{name}' has no value at all", len(each)))
        elif name != patient and each.n_unique() == 1:
            notices.append(
                Notice("constant column", f"column '{name}' has one value in every row", len(each))
            )
        series.append(each)
    cleaned = pl.DataFrame(series)
    return cleaned, [*notices, *_looks_missing(cleaned, missing, date_format)]


def _looks_missing(frame: pl.DataFrame, missing: frozenset[str], date_format: str | None) -> list[Notice]:
    """A notice of texts that are what tables write where there is no value; the words are ours, not a patient's."""
    found: dict[str, pl.Series] = {}
    typed = []
    for each in frame.iter_columns():
        if each.dtype != pl.String:
            continue
        at = each.str.to_lowercase().is_in(list(NO_VALUE_TEXTS)).fill_null(False)
        if at.any():
            found[each.name] = at
            if _parse_text(each, missing | set(each.filter(at)), date_format).dtype != pl.String:
                typed.append(each.name)
    if not found:
        return []
    words = sorted({word for name, at in found.items() for word in frame[name].filter(at)})
    hits = sum(int(at.sum()) for at in found.values())
    rows = np.sort(np.concatenate([np.flatnonzero(at.to_numpy()) for at in found.values()])) + 1
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
    """Texts as numbers or dates where all of them are such."""
    texts = texts.str.strip_chars()
    texts = texts.set(texts.is_in(["", *missing]).fill_null(False), None)
    # What is written once a level is judged once a level.
    values = texts.drop_nulls().unique()
    if len(values) == 0:
        return texts
    if values.str.contains(WHOLE_NUMBER).all():
        return texts.cast(pl.Int64)
    if (
        values.str.contains(f"{DECIMAL_NUMBER}|{SCIENTIFIC}").all()
        and not values.str.contains(r"^-?0[0-9]").any()
    ):
        return texts.cast(pl.Float64)
    pointed = with_points(texts)
    if pointed is not None:
        return pointed.cast(pl.Float64)
    dates = None
    if date_format is not None:
        dates = texts.str.to_date(date_format, strict=False)
    elif values.str.contains(ISO_DATE).all():
        dates = texts.str.to_date("%Y-%m-%d", strict=False)
    elif values.str.contains(GERMAN_DATE).all():
        dates = german_dates(texts)
    return texts if dates is None or dates.null_count() > texts.null_count() else dates
