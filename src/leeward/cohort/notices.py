"""Notices: what a reader or a lens has to say of the input."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.errors import one_line

ROWS_SHOWN = 20
"""A notice lists at most this many row numbers."""


@dataclass(frozen=True)
class Notice:
    """Something a custodian should know about the input: what was repaired, left out or looks odd.

    `rows` holds the first row numbers concerned (1-based, counted as in the file, header excluded).
    """

    kind: str
    message: str
    count: int
    rows: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", one_line(self.message))

    def __str__(self) -> str:
        if not self.rows:
            return self.message
        shown = ", ".join(str(row) for row in self.rows[:ROWS_SHOWN])
        return f"{self.message} (rows {shown}{', …' if self.count > min(len(self.rows), ROWS_SHOWN) else ''})"
