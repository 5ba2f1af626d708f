"""What a release with demographics must say, and the tables it must have (docs/methods/whole-patient.md#guarantee)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leeward.contracts.contract import Table, texts_of

TEXT = texts_of("classes")


INSIDE = ", inside classes of demographics"
"""What classes add to the name of a guarantee."""


def facts(parameters: Mapping[str, Any]) -> dict[str, list[str]]:
    names = names_of(parameters)
    return {"demographics": names} if names else {}


def limits(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """What a guarantee with classes does not protect, beside the limits of the method."""
    return (TEXT.small_classes,) if names_of(parameters) else ()


def in_words(names: Sequence[str]) -> str:
    """`age`, `age and sex`, `age, sex and zip`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def exact(names: Sequence[str]) -> str:
    """What attackers know of demographics, before what they know beside; nothing without demographics."""
    return f"the exact {in_words(names)} and " if names else ""


def names_of(parameters: Mapping[str, Any], key: str = "demographics") -> list[str]:
    given = parameters.get(key)
    return [str(name) for name in given] if isinstance(given, list) else []


def ells_of(parameters: Mapping[str, Any]) -> dict[str, int]:
    """The sensitive columns, each with its L: at most 1 in L records of a class may have the same value."""
    given = parameters.get("sensitive_columns")
    return {str(name): ell for name, ell in given.items()} if isinstance(given, dict) else {}


def readme(parameters: Mapping[str, Any]) -> str:
    names = names_of(parameters)
    if not names:
        return ""
    text: str = TEXT.readme.format(names=in_words(names))
    return text + (TEXT.left_out if parameters.get("small") == "drop" else "")


def class_columns(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"class": "int64", **dict.fromkeys(names_of(parameters), "string"), "records": "int64"}


def label_columns(columns: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """The columns of a table of records: these, then each demographic's label."""
    return lambda parameters: {**columns, **dict.fromkeys(names_of(parameters), "string")}


TABLES = (
    Table(lambda p: ["classes.parquet"] if names_of(p) else [], {}, made=class_columns, order=("class",)),
    Table(lambda p: [f"hierarchies/{name}.csv" for name in names_of(p)], None),
)
"""The data files that classes add."""
