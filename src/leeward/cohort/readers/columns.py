"""The column map: the user's column names and the cohort's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leeward.errors import BadInput, did_you_mean, nearest
from leeward.texts import outside_xml

ColumnNames = Mapping[str, str | Sequence[str]]
"""What a caller gives: `{patient, code, visit, date, age, birth, vocabulary, patients}` to column names."""

OPTIONAL = ("visit", "date", "age", "birth", "vocabulary")
"""Columns that events may have beside `patient` and `code`, one source column each; from `birth` and `date`
comes `age`."""

FLAGS = {role: f"--{role}" for role in ("patient", "code", *OPTIONAL)} | {"vocabulary": "--vocabulary-column"}
"""Role -> its flag on the command line; in a spec it is the role itself, below `columns`."""

ALIKE = 0.55
"""How alike a column's name has to be to be proposed: `patient` is no `rtime`."""

ROLES = ("patient", "code", *OPTIONAL, "patients")


@dataclass(frozen=True)
class ColumnMap:
    """Source columns by role: one `code` (long form) or several (wide form), payload as `patients`; None: absent."""

    patient: str = "patient"
    code: tuple[str, ...] = ("code",)
    visit: str | None = None
    date: str | None = None
    age: str | None = None
    birth: str | None = None
    vocabulary: str | None = None
    patients: tuple[str, ...] = ()

    @staticmethod
    def of(columns: ColumnNames | None, available: Sequence[str]) -> ColumnMap:
        """The map that `columns` describes; without one, or with `patients` alone, the cohort's own names where they
        are there."""
        if columns is None or set(columns) == {"patients"}:
            payload = as_tuple(columns["patients"]) if columns else ()
            own: dict[str, Any] = {
                role: role for role in OPTIONAL if role in available and role not in payload
            }
            if "date" not in own or "age" in own:
                own.pop("birth", None)
            return ColumnMap(**own, patients=payload)
        named: dict[str, Any] = {}
        for role, names in columns.items():
            if role not in ROLES:
                raise BadInput(
                    f"The column map has no role '{role}'.{did_you_mean(role, ROLES)} Roles: {', '.join(ROLES)}."
                )
            if names:
                named[role] = as_tuple(names) if role in ("code", "patients") else _one(role, names)
        if "birth" in named and "age" in named:
            raise BadInput(
                "The column map has both 'age' and 'birth', from which the age would come; keep one."
            )
        if "birth" in named and "date" not in named:
            raise BadInput(
                "The column map has 'birth' but no 'date': an age needs the date of the event too."
            )
        return ColumnMap(**named)

    def optional(self) -> dict[str, str]:
        """The optional event columns that are mapped: role to source column."""
        named = {role: getattr(self, role) for role in OPTIONAL}
        return {role: name for role, name in named.items() if name is not None}

    def columns_of_codes(self) -> list[str]:
        """The columns whose values repeat, best read dictionary-encoded."""
        return [*self.code, *([self.vocabulary] if self.vocabulary else [])]

    def columns_to_read(self) -> list[str]:
        return list(dict.fromkeys([self.patient, *self.code, *self.optional().values(), *self.patients]))


def _one(role: str, names: str | Sequence[str]) -> str:
    if len(as_tuple(names)) != 1:
        raise BadInput(f"The role '{role}' takes one column; got {len(names)}.")
    return as_tuple(names)[0]


def as_tuple(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def require_columns(name: str, needed: Sequence[str], available: Sequence[str]) -> None:
    """Every needed column is there once, or an error names the file and the nearest column. The file's columns are
    listed only where one was found: the first row of a file without a header is a patient's record."""
    for number, column in enumerate(available, start=1):
        if outside_xml().search(column):
            raise BadInput(f"{name}: the name of column {number} has a control character; rename the column.")
    for column in needed:
        if column not in available:
            raise BadInput(f"{name}: no column '{column}'.{_advice(column, needed, available)}")
        if available.count(column) > 1:
            raise BadInput(
                f"{name}: {available.count(column)} columns are named '{column}'; rename all but one."
            )


def _advice(column: str, needed: Sequence[str], available: Sequence[str]) -> str:
    hint, near = did_you_mean(column, available, ALIKE), nearest(column, available, ALIKE)
    own = f" Name yours with {FLAGS[column]} {near or 'COL'}." if column in FLAGS else ""
    if set(needed) & set(available):
        return f"{hint}{own} Its columns: {', '.join(available)}."
    return f"{hint}{own}{'' if near else ' Check that its first row holds the column names.'}"
