"""Notices: what a reader or a lens has to say of the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from leeward.errors import listed, one_line

ROWS_SHOWN = 20
"""A notice lists at most this many row numbers."""

ROWS_KEPT = 1000
"""A notice keeps at most this many."""


def row_text(rows: Any) -> str:
    """'row 4' or 'rows 4, 9, …' for a message."""
    return f"row{'s' if len(rows) > 1 else ''} {listed(rows, ROWS_SHOWN)}"


@dataclass(frozen=True)
class Notice:
    """What was repaired, left out or looks odd in the input. `rows`: the first ones (1-based, without header)."""

    kind: str
    message: str
    count: int
    rows: tuple[int, ...] = ()

    @classmethod
    def of_rows(cls, kind: str, message: str, rows: Any, count: int | None = None) -> Self:
        """A notice of these rows (anything with numbers); `count`: of how many things, where it is not one a row."""
        kept = tuple(int(row) for row in rows[:ROWS_KEPT])
        return cls(kind, message, len(rows) if count is None else count, kept)

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", one_line(self.message))

    def __str__(self) -> str:
        if not self.rows:
            return self.message
        shown = ", ".join(str(row) for row in self.rows[:ROWS_SHOWN])
        more = ", …" if self.count > min(len(self.rows), ROWS_SHOWN) else ""
        return f"{self.message} ({'rows' if len(self.rows) > 1 or more else 'row'} {shown}{more})"
