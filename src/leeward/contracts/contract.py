"""What a release of a method may hold, to the letter: files, columns, types, manifest keys, parameters, words.

Each method has one contract of its own: a further data file or parameter is a line of `contracts/METHOD.py`, a further
sentence one of `contracts/METHOD.yaml`, and a release that holds or says something else is refuted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import yaml

LARGEST = 2**63 - 1
"""No number of a release is larger: kernels, Parquet and README can hold it."""

Schema = Mapping[str, Any]
"""JSON Schema of a parameter's value as a manifest shows it, and beside it (`fields.Parameter`): `default`, `shown`,
`when`, `form`, `word`, `found`, `ascending`."""

Columns = Mapping[str, str | Sequence[str]]
"""Columns of a table in order, each with its Arrow type, or the types that stand for the same."""

LISTS = ("list<element: string>", "list<item: string>")


@dataclass(frozen=True)
class Words:
    """What the manifest's guarantee and the README must say.

    readme : how a recipient reads and analyses the files.
    facts : see `stated_facts`.
    unit : whom the guarantee protects.
    """

    name: str
    attacker: str
    not_protected: tuple[str, ...]
    readme: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    unit: str = "patient"


@dataclass(frozen=True)
class Counting:
    """Lines of pandas and of R for a README, and what they do."""

    intro: str
    pandas: str
    r: str


def stated_facts(knows: str, candidates: str, as_is: Iterable[str] = (), **more: Any) -> dict[str, Any]:
    """A guarantee's facts: what the attacker knows, among whom candidates are counted, columns released as they are."""
    return {"attacker_knows": knows, "candidates": candidates, "released_as_is": list(as_is), **more}


@dataclass(frozen=True)
class Table:
    """One data file, or several of one form.

    path : below `data/`; with parameters, the paths of all such files of a release with them, in the manifest's order
    columns : None: the source's own columns
    payload : the columns that `parameters.payload` names follow
    nullable : names of columns that may hold nulls (payload columns may)
    made : the columns where they follow from the parameters, in place of `columns`
    order : the numbers by which rows ascend, so that their order says no more than these do; a null is before 0
    """

    path: str | Callable[[Mapping[str, Any]], Iterable[str]]
    columns: Columns | None
    payload: bool = False
    nullable: frozenset[str] = frozenset()
    made: Callable[[Mapping[str, Any]], Columns] | None = None
    order: tuple[str, ...] = ()

    def columns_of(self, parameters: Mapping[str, Any]) -> Mapping[str, Sequence[str]] | None:
        columns = self.columns if self.made is None else self.made(parameters)
        if columns is None:
            return None
        return {name: (kind,) if isinstance(kind, str) else kind for name, kind in columns.items()}


CODES = Table(
    "codes.parquet", {"code": "string", "name": "string", "vocabulary": "string", "suppressed": "bool"}
)
"""The list of codes, which every release of codes has (see `verify.codes`)."""


def lists_shown_only(method: str, parameters: Mapping[str, Any]) -> bool:
    """Whether the list of codes names no suppressed ones. That k of the patients have one tells whoever has everybody's
    records who is in a censored sample, and whoever knows the algorithm how often a code is."""
    return method == "censoring" or parameters.get("attacker") == "algorithm"


@dataclass(frozen=True)
class Contract:
    """What a release of a method may hold.

    tables : the data files, in the manifest's order.
    parameters : what a manifest can state, in its order: as the method's fields declare it (`declared`).
    completed : parameters -> the same, with what the method makes of them or decides where they leave it open.
    undecided : what a spec asks for and what the manifest states -> the parameters that the data decide, but never so.
    rules : parameters -> whether they go together, where their declarations do not tell.
    numbers : which of k, m, epsilon and delta the guarantee may have; one that is a parameter has that value.
    model : whom the attacker of a guarantee with k looks for: somebody known to be in the data (`prosecutor`), or
        somebody of a population (`journalist`).
    words : the manifest's parameters, and by name the facts beside them -> the words of the guarantee and the README.
    records : files with the records in the order of their numbers: what they show must not say that order.
    owners : file of `custody/data` -> its column that tells whose each record is: nor must this.
    meanings : file, column and meaning, for the README; a function of the parameters where these tell.
    counting : lines for the README that count the patients with a code, or the rows with a value.
    """

    tables: Sequence[Table]
    parameters: Mapping[str, Schema]
    words: Callable[..., Words]
    numbers: Sequence[str] = ("k",)
    records: Sequence[str] = ()
    owners: Mapping[str, str] = field(default_factory=dict)
    completed: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    undecided: Callable[[Mapping[str, Any], Mapping[str, Any]], set[str]] = lambda asked, stated: set()
    rules: Callable[[Mapping[str, Any]], bool] = lambda parameters: True
    model: Literal["prosecutor", "journalist"] = "prosecutor"
    meanings: Sequence[Sequence[str]] | Callable[[Mapping[str, Any]], Sequence[Sequence[str]]] = ()
    counting: Counting | None = None

    @property
    def lists_codes(self) -> bool:
        return CODES in self.tables

    def files_of(self, parameters: Mapping[str, Any]) -> Iterator[tuple[str, Table]]:
        """The data files of a release with these parameters, in order, without CSV copies: path in `share/`, form."""
        for table in self.tables:
            for path in (table.path,) if isinstance(table.path, str) else table.path(parameters):
                yield f"data/{path}", table


def declared(method: str) -> Mapping[str, Schema]:
    """What the fields of a method's parameters declare (written by scripts/reference.py)."""
    known: dict[str, dict[str, Schema]] = json.loads(_content("parameters.json"))
    return known.get(method, {})


def texts_of(method: str) -> SimpleNamespace:
    """The sentences of a method, by name: `contracts/METHOD.yaml`."""
    return SimpleNamespace(**yaml.load(_content(f"{method}.yaml"), yaml.CSafeLoader))


def _content(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
