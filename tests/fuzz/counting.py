"""Rows in, rows kept and rows noticed: no reader may lose one without a word."""

from __future__ import annotations

from leeward.cohort import Cohort

LEFT_OUT = frozenset({"missing code", "refuted condition", "other facts", "repeated fact"})
"""Notices that count rows of events that are left out."""


class LostRows(AssertionError):
    """Rows of the source that are neither in the cohort nor in a notice."""


def rows_accounted(cohort: Cohort, rows: int) -> None:
    """Every one of `rows` rows is in the events, or counted by a notice of what is left out."""
    kept = cohort.require_events()["row"].n_unique()
    noticed = sum(notice.count for notice in cohort.notices if notice.kind in LEFT_OUT)
    counted(rows, kept, noticed)


def counted(rows: int, kept: int, noticed: int = 0) -> None:
    """LostRows where rows are missing, or are there twice."""
    COUNTED[0] += rows
    if kept + noticed != rows:
        raise LostRows(f"{rows} rows in, {kept} kept, {noticed} noticed")


COUNTED = [0]
"""Rows that were counted in this process."""


def plain_rows(data: bytes, separator: str = ",") -> int | None:
    """Rows of a CSV file below its header that are not blank; None where its form leaves that open."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    if any(sign in text for sign in '"\r\0\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029') or not text.strip():
        return None
    lines = text.split("\n")
    width = lines[0].count(separator)
    if not width or any(line.count(separator) != width for line in lines if line):
        return None
    return sum(any(cell for cell in line.split(separator)) for line in lines[1:])
