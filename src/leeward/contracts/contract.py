"""What a release of a method may hold, to the letter: files, columns, types, manifest keys, parameters, words.

Each method has one contract of its own, `contracts/METHOD.py`: a further data file, parameter or sentence is a line
there, and a release that holds or says something else is refuted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from leeward.contracts.words import Words

LARGEST = 2**63 - 1
"""No number of a release is larger: kernels, Parquet and README can hold it."""

Rule = Callable[[Any], bool]
"""Whether a parameter's value is one that the method can have."""

LISTS = ("list<element: string>", "list<item: string>")

OF_CLASSES = frozenset({"keep", "small", "recoding", "hierarchies"})
"""Parameters of classes, which only a release with demographics has."""

ALWAYS_OF_CLASSES = ("small", "recoding")
"""Those that such a release always states, where its method has them."""


@dataclass(frozen=True)
class Table:
    """One data file, or several of one form.

    Attributes
    ----------
    path : str, or parameters -> paths
        Below `data/`; with parameters, the paths of all such files of a release with them, in the manifest's order.
    columns : mapping of column to Arrow types, in order; None: the source's own columns.
    payload : bool
        The columns that `parameters.payload` names follow.
    nullable : names of columns that may hold nulls (payload columns may).
    made : the columns where they follow from the parameters, in place of `columns`.
    order : the numbers by which rows ascend, so that their order says no more than these do; a null is before 0.
    """

    path: str | Callable[[Mapping[str, Any]], Iterable[str]]
    columns: Mapping[str, Sequence[str]] | None
    payload: bool = False
    nullable: frozenset[str] = frozenset()
    made: Callable[[Mapping[str, Any]], Mapping[str, Sequence[str]]] | None = None
    order: tuple[str, ...] = ()

    def paths_of(self, parameters: Mapping[str, Any]) -> Iterable[str]:
        """The paths in order, for these parameters."""
        return (self.path,) if isinstance(self.path, str) else self.path(parameters)

    def columns_of(self, parameters: Mapping[str, Any]) -> Mapping[str, Sequence[str]] | None:
        """The columns in order, for these parameters."""
        return self.columns if self.made is None else self.made(parameters)


CODES = Table(
    "codes.parquet",
    {"code": ("string",), "name": ("string",), "vocabulary": ("string",), "suppressed": ("bool",)},
)
"""The list of codes, which every release of codes has (see `verify.codes`)."""


@dataclass(frozen=True)
class Contract:
    """What a release of a method may hold.

    Attributes
    ----------
    tables : the data files, in the manifest's order.
    parameters : the keys that `parameters` may have, in their order, each with the rule of its values.
    required : the keys that it must have.
    numbers : which of k, m, epsilon and delta the guarantee may have; one that is a parameter has that value.
    model : whom the attacker of a guarantee with k looks for: somebody known to be in the data (`prosecutor`), or
        somebody of a population (`journalist`).
    words : the manifest's parameters, and by name the facts beside them -> the words of the guarantee and the README.
    records : files with the records in the order of their numbers: what they show must not say that order.
    owners : file of `custody/data` -> its column that tells whose each record is: nor must this.
    only : parameter -> of which other parameters it can be one (all parameters -> whether it may be there).
    needed : parameter -> beside which others it is always stated (all parameters -> whether it must be there).
    """

    tables: Sequence[Table]
    parameters: Mapping[str, Rule]
    required: Sequence[str]
    words: Callable[..., Words]
    numbers: Sequence[str] = ("k",)
    records: Sequence[str] = ()
    owners: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, Rule] = field(default_factory=dict)
    needed: Mapping[str, Rule] = field(default_factory=dict)
    model: Literal["prosecutor", "journalist"] = "prosecutor"

    def files_of(self, parameters: Mapping[str, Any]) -> Iterator[tuple[str, Table]]:
        """The data files of a release with these parameters, in order, without CSV copies: path in `share/`, form."""
        for table in self.tables:
            for path in table.paths_of(parameters):
                yield f"data/{path}", table


def whole(least: int, most: int = LARGEST) -> Rule:
    """A whole number in a range."""
    return lambda value: type(value) is int and least <= value <= most


def number(low: float, high: float = LARGEST) -> Rule:
    """A finite number between two others."""
    return lambda value: type(value) in (int, float) and low <= value <= high


def one_of(*choices: Any) -> Rule:
    """One of some values, of the same type."""
    return lambda value: any(type(value) is type(choice) and value == choice for choice in choices)


def text(pattern: str) -> Rule:
    """A text of a form."""
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def texts(value: Any) -> bool:
    """A list of distinct texts, not empty."""
    fits = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return fits and 0 < len(value) == len(set(value))


def optional(rule: Rule) -> Rule:
    """Null, or what the rule says."""
    return lambda value: value is None or rule(value)


flag: Rule = one_of(True, False)

POLICY = r"none|hierarchy:\d+|similarity:\d+|frequency:[0-9.e-]+|phecode(:[^/\\]+)?|file(:[^/\\]+)?"
"""A utility policy as manifests name it: a file without its folder."""
