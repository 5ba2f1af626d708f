"""What a release of each method may hold, to the letter: files, columns, types, manifest keys, parameters, words.

Each method has one table of its own, `verify/<method>/contract.py`: a further data file, parameter or sentence is a
line there. The sentences of the guarantee are written again, on purpose: the method owns its words, and a release whose
words are not those that its method and parameters call for is refuted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from leeward.verify.checks import Check, of_count
from leeward.verify.manifest import REQUIRED_KEYS, Share
from leeward.verify.readme import Words as Words
from leeward.verify.readme import readme_of
from leeward.verify.storage import UNREADABLE

Rule = Callable[[Any], bool]
"""Whether a parameter's value is one that the method can have."""

FILE_KEYS = ("path", "rows", "sha256")
VERSION = re.compile(r"\d+\.\d+\.\d+([.+-]?[a-z0-9.]+)?")

ROWS_AT_ONCE = 1 << 20

LISTS = ("list<element: string>", "list<item: string>")


OF_CLASSES = frozenset({"keep", "small", "recoding", "hierarchies"})
"""Parameters of classes, which only a release with demographics has."""

ALWAYS_OF_CLASSES = ("small", "recoding")
"""Those that such a release always states, where its method has them."""


def always(parameters: Mapping[str, Any]) -> bool:
    """A data file that every release of the method has."""
    return True


@dataclass(frozen=True)
class Table:
    """One data file, or several of one form.

    Attributes
    ----------
    path : str
        A regular expression that the path below `data/` matches as a whole.
    columns : mapping of column to Arrow types, in order; None: the source's own columns.
    payload : bool
        The columns that `parameters.payload` names follow.
    nullable : names of columns that may hold nulls (payload columns may).
    count : how many such files a release with these parameters has.
    made : the columns where they follow from the parameters, in place of `columns`.
    order : the numbers by which rows ascend, so that their order says no more than these do; a null is before 0.
    """

    path: str
    columns: Mapping[str, Sequence[str]] | None
    payload: bool = False
    nullable: frozenset[str] = frozenset()
    count: Callable[[Mapping[str, Any]], int] = field(default=lambda parameters: 1)
    made: Callable[[Mapping[str, Any]], Mapping[str, Sequence[str]]] | None = None

    def columns_of(self, parameters: Mapping[str, Any]) -> Mapping[str, Sequence[str]] | None:
        """The columns in order, for these parameters."""
        return self.columns if self.made is None else self.made(parameters)

    order: tuple[str, ...] = ()


CODES = Table(
    r"codes\.parquet",
    {"code": ("string",), "name": ("string",), "vocabulary": ("string",), "suppressed": ("bool",)},
)
"""The list of codes, which every release of codes has (see `verify.codes`)."""


@dataclass(frozen=True)
class Contract:
    """What a release of a method may hold.

    Attributes
    ----------
    tables : the data files.
    parameters : the keys that `parameters` may have, each with the rule of its values.
    required : the keys that it must have.
    numbers : numbers of the guarantee that must also be the parameter of that name.
    model : whom the attacker of a guarantee with k looks for: somebody known to be in the data (`prosecutor`), or
        somebody of a population (`journalist`).
    words : the manifest -> every wording that the method can have given (more than one only where the choice between
        them is not in the manifest).
    records : files with the records in the order of their numbers: what they show must not say that order.
    owners : file of `custody/data` -> its column that tells whose each record is: nor must this.
    only : parameter -> of which other parameters it can be one (all parameters -> whether it may be there).
    needed : parameter -> beside which others it is always stated (all parameters -> whether it must be there).
    """

    tables: Sequence[Table]
    parameters: Mapping[str, Rule]
    required: Sequence[str]
    words: Callable[[Share], Sequence[Words]]
    numbers: Sequence[str] = ("k",)
    records: Sequence[str] = ()
    owners: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, Rule] = field(default_factory=dict)
    needed: Mapping[str, Rule] = field(default_factory=dict)
    model: str = "prosecutor"


def whole(least: int, most: int | None = None) -> Rule:
    """A whole number in a range."""

    def fits(value: Any) -> bool:
        return type(value) is int and value >= least and (most is None or value <= most)

    return fits


def number(low: float, high: float) -> Rule:
    """A number between two others."""
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


def contract_checks(share: Share, contract: Contract) -> list[Check]:
    """The manifest's keys, parameters, numbers and words, and the data files' names, columns and nulls."""
    known = parameters_known(share, contract)
    checks = [manifest_keys(share), known, numbers_agree(share, contract)]
    if not known.passed:
        return [*checks, Check("words", False, "The words cannot be derived: the parameters are wrong.")]
    return [
        *checks,
        guarantee_words(share, contract),
        files_of_contract(share, contract),
        columns_of_contract(share, contract),
        rows_in_order(share, contract),
    ]


def manifest_keys(share: Share) -> Check:
    """The manifest has the keys of the contract and no others, and is written as releases write it."""
    manifest = share.manifest
    strange = [key for key in manifest if key not in (*REQUIRED_KEYS, "seeded")]
    wrong = len(strange) + ("seeded" in manifest and manifest["seeded"] is not True)
    wrong += not (isinstance(manifest["leeward"], str) and VERSION.fullmatch(manifest["leeward"]))
    wrong += type(manifest["records"]) is not int or manifest["records"] < 0
    for entry in manifest["files"]:
        wrong += not isinstance(entry, dict) or tuple(sorted(entry)) != FILE_KEYS
    written = (share.folder / share.name).read_text(encoding="utf-8")
    wrong += written != json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    return of_count(
        "manifest_keys",
        int(wrong),
        "release.json has the keys of the contract and no others.",
        "keys or values of release.json are not of the contract, or its text holds more than its content.",
    )


def parameters_known(share: Share, contract: Contract) -> Check:
    """Every parameter is one of the method's, with a value that it can have."""
    stated = share.manifest["parameters"]
    if not isinstance(stated, dict):
        return Check("parameters", False, "`parameters` of release.json is no object.")
    wrong = sum(key not in stated for key in contract.required)
    wrong += "demographics" not in stated and bool(OF_CLASSES & set(stated))
    if "demographics" in stated:
        wrong += sum(key in contract.parameters and key not in stated for key in ALWAYS_OF_CLASSES)
    wrong += sum(key not in stated and bool(rule(stated)) for key, rule in contract.needed.items())
    for key, value in stated.items():
        rule = contract.parameters.get(key)
        wrong += rule is None or not rule(value)
        wrong += key in contract.only and not contract.only[key](stated)
    return of_count(
        "parameters",
        int(wrong),
        f"All {len(stated)} parameters are the method's, with values that it takes.",
        "parameters are missing, unknown, or have a value that the method does not take.",
    )


def numbers_agree(share: Share, contract: Contract) -> Check:
    """The numbers of the guarantee are those of the parameters; k is at least 2, m at least 1."""
    guarantee, parameters = share.manifest["guarantee"], share.manifest["parameters"]
    wrong = 0
    for name in ("k", "m"):
        stated = guarantee.get(name)
        if name in contract.numbers:
            wrong += stated != parameters.get(name) or type(stated) not in (int, type(None))
        else:
            wrong += name in guarantee
    if "k" in contract.numbers:
        wrong += type(guarantee.get("k")) is not int or guarantee["k"] < 2
    if guarantee.get("m") is not None:
        wrong += type(guarantee["m"]) is not int or guarantee["m"] < 1
    wrong += guarantee.get("risk") != risk_stated(guarantee, contract.model)
    return of_count(
        "numbers_agree",
        int(wrong),
        "The guarantee's numbers are those of the parameters, and its risk follows from them.",
        "numbers of the guarantee are missing, out of range, or not those of the parameters.",
    )


def risk_stated(guarantee: Mapping[str, Any], model: str) -> dict[str, Any] | None:
    """The `risk` that the numbers of a guarantee call for: 1/k, or with epsilon alone what a prior of one half may
    become."""
    k, epsilon = guarantee.get("k"), guarantee.get("epsilon")
    if type(k) is int and k > 0:
        return {"model": model, "maximum": 1 / k}
    if isinstance(epsilon, int | float) and epsilon >= 0 and not guarantee.get("delta"):
        return {"model": "anybody", "prior": 0.5, "maximum": 1 / (1 + math.exp(-epsilon))}
    return None


def guarantee_words(share: Share, contract: Contract) -> Check:
    """The guarantee and the README say what the method and its parameters call for, word by word."""
    guarantee = dict(share.manifest["guarantee"])
    for name in ("k", "m", "epsilon", "delta", "risk"):
        guarantee.pop(name, None)
    path = share.folder / "README.md"
    try:
        written = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        written = None
    spoken = read = False
    for words in contract.words(share):
        words = replace(words, lists_codes=CODES in contract.tables)
        wanted: dict[str, Any] = {
            "name": words.name,
            "unit": "patient",
            "attacker": words.attacker,
            "not_protected": list(words.not_protected),
        }
        if words.facts:
            wanted["facts"] = dict(words.facts)
        said = guarantee == wanted
        spoken = spoken or said
        read = read or (said and written is not None and reads(written, share, words))
    faults = []
    if not spoken:
        faults.append("The guarantee's words are not those of the method and its parameters.")
    if written is None:
        faults.append("README.md is missing or no text.")
    elif not read:
        faults.append("README.md is not what the manifest and the method call for.")
    good = "The guarantee and the README say what the method and its parameters call for."
    return Check("words", not faults, " ".join(faults) or good)


def reads(written: str, share: Share, words: Words) -> bool:
    """Whether a README is the one that these words call for."""
    body = words.readme.strip()
    if not words.tail:
        return written == readme_of(share, words)
    before, after = readme_of(share, words).split(body)
    whole = re.escape(before) + re.escape(body) + words.tail + re.escape(after)
    return re.fullmatch(whole, written) is not None


def files_of_contract(share: Share, contract: Contract) -> Check:
    """The data files are those of the contract; a CSV copy is beside a Parquet file; no further folders."""
    parameters = share.manifest["parameters"]
    listed = [str(entry["path"]) for entry in share.manifest["files"]]
    wrong = len(listed) - len(set(listed))
    known: set[str] = set()
    for table in contract.tables:
        found = [path for path in listed if re.fullmatch("data/" + table.path, path)]
        wrong += abs(len(found) - table.count(parameters))
        known.update(found)
    copies = {path for path in listed if path.endswith(".csv") and path[:-4] + ".parquet" in known}
    with_copy = [path for path in known if path.endswith(".parquet")]
    wrong += len(set(listed) - known - copies) + (len(copies) not in (0, len(with_copy)))
    folders = {path.parent.as_posix() for path in map(share.folder.joinpath, listed)}
    folders = {folder.removeprefix(share.folder.as_posix()).strip("/") for folder in folders} | {"data"}
    there = {path.relative_to(share.folder).as_posix() for path in share.folder.rglob("*") if path.is_dir()}
    return of_count(
        "files_of_contract",
        wrong + len(there - folders),
        "The files are those of the contract.",
        "files or folders are missing or not of the contract.",
    )


def columns_of_contract(share: Share, contract: Contract) -> Check:
    """Every data file has the columns and types of the contract, and nulls only where it allows them."""
    wrong = 0
    payload = [str(name) for name in share.manifest["parameters"].get("payload") or ()]
    for entry in share.manifest["files"]:
        name = str(entry["path"]).removeprefix("data/")
        table = next((t for t in contract.tables if re.fullmatch(t.path, name)), None)
        columns = None if table is None else table.columns_of(share.manifest["parameters"])
        if table is None or columns is None or not name.endswith(".parquet"):
            continue
        try:
            stored = pq.ParquetFile(share.data(name))
            schema = stored.schema_arrow
            wrong += sum(
                _has_nulls(stored, column)
                for column in columns
                if column in schema.names and column not in table.nullable
            )
        except UNREADABLE:
            wrong += 1
            continue
        carried = payload if table.payload else []
        wrong += schema.names != [*columns, *carried]
        wrong += bool(set(carried) & {"record", "visit", "codes", "patient"})
        for column, kinds in columns.items():
            if column in schema.names:
                wrong += str(schema.field(column).type) not in kinds
    return of_count(
        "columns_of_contract",
        int(wrong),
        "Every file has the columns and types of the contract.",
        "columns are missing, not of the contract, of another type, or hold nulls.",
    )


def rows_in_order(share: Share, contract: Contract) -> Check:
    """Rows stand in the order of their numbers, so that only the numbers can say something."""
    wrong = 0
    for entry in share.manifest["files"]:
        name = str(entry["path"]).removeprefix("data/")
        table = next((t for t in contract.tables if re.fullmatch(t.path, name)), None)
        if table is None or not table.order or not name.endswith(".parquet"):
            continue
        try:
            wrong += not ascending(share.data(name), table.order)
        except UNREADABLE:
            wrong += 1
    return of_count(
        "rows_in_order",
        wrong,
        "Rows stand in the order of their numbers.",
        "files have rows in another order than that of their numbers.",
    )


def ascending(file: Path, columns: Sequence[str]) -> bool:
    """Whether rows ascend by whole-number columns, the first one first; equal rows do not."""
    last: tuple[int, ...] | None = None
    stored = pq.ParquetFile(file)
    if not set(columns) <= set(stored.schema_arrow.names):
        return False
    for batch in stored.iter_batches(ROWS_AT_ONCE, columns=list(columns)):
        if not batch.num_rows:
            continue
        numbers = [pc.fill_null(batch.column(each).cast(pa.int64()), -1).to_numpy() for each in columns]
        rises, same = np.zeros(batch.num_rows - 1, np.bool_), np.ones(batch.num_rows - 1, np.bool_)
        for each in numbers:
            rises |= same & (each[1:] > each[:-1])
            same &= each[1:] == each[:-1]
        first = tuple(int(each[0]) for each in numbers)
        if not rises.all() or (last is not None and first <= last):
            return False
        last = tuple(int(each[-1]) for each in numbers)
    return True


def _has_nulls(stored: pq.ParquetFile, column: str) -> bool:
    """Whether a flat column has a null; lists are left to the method's own reader."""
    kind = stored.schema_arrow.field(column).type
    if pa.types.is_list(kind):
        return False
    return any(batch.column(0).null_count for batch in stored.iter_batches(columns=[column]))
