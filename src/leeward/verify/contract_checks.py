"""A release against its method's contract (`contracts`): manifest, parameters, words, files, columns, order of rows;
the parameters also against the custodian's spec of the run (`custody/spec.yaml`)."""

from __future__ import annotations

import json
import math
import operator as op
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from leeward.contracts.contract import LARGEST, Contract, Schema, Table, Words
from leeward.contracts.readme import READER, has_copies, reader, readme_of
from leeward.contracts.versions import of_versions
from leeward.verify.checks import Check, of_count, payload_of
from leeward.verify.flat import Longs
from leeward.verify.manifest import FILE_KEYS, GUARANTEE_KEYS, README, REQUIRED_KEYS, Share, read_spec
from leeward.verify.storage import unless_readable

VERSION = re.compile(r"\d+\.\d+\.\d+([.+-]?[a-z0-9.]+)?")
NUMBERS = ("k", "m", "epsilon", "delta")
ROWS_AT_ONCE = 1 << 20


def contract_checks(share: Share, contract: Contract) -> list[Check]:
    """The manifest's keys, parameters, numbers and words, and the data files' names, columns and nulls."""
    known = parameters_known(share, contract)
    checks = [manifest_keys(share, contract), known, numbers_agree(share, contract)]
    if not known.passed:
        return [*checks, Check("words", False, "The words cannot be derived: the parameters are wrong.")]
    return [
        *checks,
        guarantee_words(share, contract),
        files_of_contract(share, contract),
        columns_of_contract(share, contract),
        rows_in_order(share, contract),
    ]


def manifest_keys(share: Share, contract: Contract) -> Check:
    """The manifest has the keys of the contract, in their order, and no others, and is written as releases write it."""
    manifest = share.manifest
    objects: list[tuple[dict[str, Any], Iterable[str]]] = [(entry, FILE_KEYS) for entry in manifest["files"]]
    objects += [
        (manifest, (*REQUIRED_KEYS, "versions", "returning", "seeded")),
        (manifest["guarantee"], GUARANTEE_KEYS),
    ]
    wrong = sum(list(content) != [key for key in keys if key in content] for content, keys in objects)
    # others: see `parameters_known`
    stated = [key for key in manifest["parameters"] if key in contract.parameters]
    wrong += stated != [key for key in contract.parameters if key in stated]
    wrong += "seeded" in manifest and manifest["seeded"] is not True
    wrong += VERSION.fullmatch(manifest["leeward"]) is None
    written = (share.folder / share.name).read_bytes()
    wrong += written != (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode("utf-8")
    return of_count(
        "manifest_keys",
        wrong,
        "release.json has the keys of the contract and no others.",
        "keys or values of release.json are not in the contract, or its text holds more than its content.",
    )


def numbers_agree(share: Share, contract: Contract) -> Check:
    """The guarantee has the method's numbers and no others; they are those of the parameters, and the risk follows."""
    guarantee, parameters = share.manifest["guarantee"], share.manifest["parameters"]
    wrong = sum(name in guarantee and name not in contract.numbers for name in NUMBERS)
    for name in contract.numbers:
        if name in contract.parameters:
            wrong += guarantee.get(name) != parameters.get(name)
        else:
            wrong += name not in guarantee
    risk = risk_of(guarantee, contract.model)
    wrong += json.dumps(guarantee.get("risk")) != json.dumps(risk)
    return of_count(
        "numbers_agree",
        wrong,
        "The guarantee's numbers are those of the parameters, and its risk follows from them.",
        "numbers of the guarantee are missing, not the method's, or not those of the parameters.",
    )


def risk_of(guarantee: Mapping[str, Any], model: str) -> dict[str, Any] | None:
    """The `risk` that a guarantee calls for: 1/k, or with epsilon alone what a prior of one half may become."""
    k, epsilon = guarantee.get("k"), guarantee.get("epsilon")
    if k:
        return {"model": model, "maximum": 1 / k}
    if epsilon is not None and not guarantee.get("delta"):
        return {"model": "anybody", "prior": 0.5, "maximum": 1 / (1 + math.exp(-epsilon))}
    return None


def words_of(share: Share, contract: Contract) -> list[Words]:
    """Every wording that the method can have given; more than one only where the files leave it open."""
    parameters = share.manifest["parameters"]
    found = [contract.words(parameters, **facts) for facts in facts_of(share)]
    return [of_versions(words, share.manifest) for words in found]


def facts_of(share: Share) -> Sequence[Mapping[str, Any]]:
    """What the words rest on beside the parameters, each way that the files allow: `facts_of` of its `check.py` finds
    it where a method has such facts."""
    folder = share.method.replace("-", "_")
    if not (Path(__file__).parent / folder / "check.py").is_file():
        return [{}]
    module = import_module(f"leeward.verify.{folder}.check")
    found: Sequence[Mapping[str, Any]] = module.facts_of(share) if hasattr(module, "facts_of") else [{}]
    return found


def guarantee_words(share: Share, contract: Contract) -> Check:
    """The guarantee and the README say what the method and its parameters call for, word by word."""
    stated = share.manifest["guarantee"]
    guarantee = json.dumps({key: value for key, value in stated.items() if key not in (*NUMBERS, "risk")})
    fitting = [words for words in words_of(share, contract) if guarantee == json.dumps(guarantee_of(words))]
    faults = []
    if not fitting:
        faults.append("The guarantee's words are not those of the method and its parameters.")
    try:
        written = (share.folder / README).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        faults.append("README.md is missing or is not text.")
    else:
        if written not in [readme_of(share.manifest, words.readme, contract) for words in fitting]:
            faults.append("README.md is not what the manifest and the method call for.")
    file = share.folder / READER
    if has_copies(share.paths) and not (file.is_file() and file.read_bytes() == reader()):
        faults.append(f"{READER} is missing or not the one of this version.")
    good = "The guarantee and the README say what the method and its parameters call for."
    return Check("words", not faults, " ".join(faults) or good)


def guarantee_of(words: Words) -> dict[str, Any]:
    texts = {"name": words.name, "unit": words.unit, "attacker": words.attacker}
    facts = {"facts": dict(words.facts)} if words.facts else {}
    return {**texts, "not_protected": list(words.not_protected), **facts}


def files_of_contract(share: Share, contract: Contract) -> Check:
    """Data files are the contract's, in its order; each Parquet file or none has a CSV copy after it; no other
    folders."""
    listed = share.paths
    wanted = [Path(path) for path, _ in known_files(share, contract)]
    copied = [each for path in wanted for each in dict.fromkeys((path, path.with_suffix(".csv")))]
    if set(map(str, copied)) - set(map(str, wanted)) & set(listed):
        wanted = copied
    right = [path.as_posix() for path in wanted]
    wrong = len(set(listed) ^ set(right)) or int(listed != right)
    folders = {Path(path).parent for path in listed} | {Path("data")}
    there = {path.relative_to(share.folder) for path in share.folder.rglob("*") if path.is_dir()}
    return of_count(
        "files_of_contract",
        wrong + len(there - folders),
        "The files are those of the contract.",
        "files or folders are missing or not in the contract, or files are listed in the wrong order.",
    )


def known_files(share: Share, contract: Contract) -> list[tuple[str, Table]]:
    """The files of the contract with their forms: as many as the manifest lists, and one more."""
    return list(islice(contract.files_of(share.manifest["parameters"]), len(share.paths) + 1))


def parquet_files(share: Share, contract: Contract) -> list[tuple[Path, Table]]:
    """The Parquet files of the contract that the manifest lists, each with its form."""
    known = [each for each in known_files(share, contract) if each[0] in share.paths]
    return [(share.folder / path, form) for path, form in known if path.endswith(".parquet")]


def columns_of_contract(share: Share, contract: Contract) -> Check:
    """Every data file has the columns and types of the contract, and nulls only where it allows them."""
    parameters = share.manifest["parameters"]
    files = parquet_files(share, contract)
    return of_count(
        "columns_of_contract",
        sum(_wrong_columns(file, table, parameters) for file, table in files),
        "Every file has the columns and types of the contract.",
        "columns are missing, not in the contract, of the wrong type, or hold nulls.",
    )


@unless_readable(1)
def _wrong_columns(file: Path, table: Table, parameters: Mapping[str, Any]) -> int:
    columns, carried = table.columns_of(parameters), payload_of(parameters) if table.payload else []
    if columns is None:
        return 0
    stored = pq.ParquetFile(file)
    schema = stored.schema_arrow
    there = {column: kinds for column, kinds in columns.items() if column in schema.names}
    wrong = sum(_has_nulls(stored, column) for column in there if column not in table.nullable)
    wrong += schema.names != [*columns, *carried]
    wrong += bool(set(carried) & {"record", "visit", "codes", "patient"})
    return wrong + sum(str(schema.field(column).type) not in kinds for column, kinds in there.items())


def rows_in_order(share: Share, contract: Contract) -> Check:
    """Rows stand in the order of their numbers, so that only the numbers can say something."""
    files = parquet_files(share, contract)
    return of_count(
        "rows_in_order",
        sum(
            bool(table.order) and not ascending(file, table.order, begins_of(share, file))
            for file, table in files
        ),
        "Rows are in the order of their numbers.",
        "files have rows that are not in the order of their numbers.",
    )


def begins_of(share: Share, file: Path) -> Longs:
    """The rows of a file with which a batch begins, of a release that grows."""
    path = file.relative_to(share.folder).as_posix()
    rows = [version["rows"].get(path, 0) for version in share.manifest.get("versions", ())]
    return np.cumsum(np.array(rows, np.int64))


@unless_readable(False)
def ascending(file: Path, columns: Sequence[str], begins: Longs) -> bool:
    """Whether rows ascend by whole-number columns, the first one first; equal rows do not; at `begins` they may."""
    stored = pq.ParquetFile(file)
    if not set(columns) <= set(stored.schema_arrow.names):
        return False
    last = [np.empty(0, np.int64)] * len(columns)
    row = 0
    for batch in stored.iter_batches(ROWS_AT_ONCE, columns=list(columns)):
        numbered = np.arange(row + (not row), row + batch.num_rows)
        rises, same = np.isin(numbered, begins), np.ones(1, np.bool_)
        row += batch.num_rows
        for i, column in enumerate(columns):
            numbers = pc.fill_null(batch.column(column).cast(pa.int64()), -1).to_numpy()
            numbers = np.concatenate([last[i], numbers])
            rises = rises | (same & (numbers[1:] > numbers[:-1]))
            same = same & (numbers[1:] == numbers[:-1])
            last[i] = numbers[-1:]
        if not rises.all():
            return False
    return True


def _has_nulls(stored: pq.ParquetFile, column: str) -> bool:
    """Whether a flat column has a null; lists are left to the method's own reader."""
    kind = stored.schema_arrow.field(column).type
    if pa.types.is_list(kind):
        return False
    return any(batch.column(0).null_count for batch in stored.iter_batches(columns=[column]))


def parameters_known(share: Share, contract: Contract) -> Check:
    """Every parameter is one of the method's, has a value that it can have, and is there where it has to be."""
    stated, declared = share.manifest["parameters"], contract.parameters
    wrong = sum(name not in declared or not fits(declared[name], value) for name, value in stated.items())
    if not wrong:  # what follows reads several of them
        wrong = len(differing(visible(declared, contract.completed(stated)), stated))
    if not wrong:
        wrong = int(not contract.rules(stated))
    return of_count(
        "parameters",
        wrong,
        f"All {len(stated)} parameters are the method's, with values that it takes.",
        "parameters are missing, unknown, or have a value that the method does not take.",
    )


def spec_checks(share: Share, contract: Contract) -> list[Check]:
    """The manifest has the parameters that the spec asks for, and no others; no check without a spec."""
    spec = read_spec(share)
    if spec is None:
        return []
    if not spec:
        return [Check("parameters_of_spec", False, "custody/spec.yaml cannot be read as the spec of a run.")]
    given = spec["method"] | {"policy": spec["method"].get("policy") or spec["method"].get("utility")}
    asked = {name: value for name, value in given.items() if value is not None and name != "utility"}
    wrong = differing(visible(contract.parameters, contract.completed(asked)), share.manifest["parameters"])
    defaults = {name: each.get("default") for name, each in contract.parameters.items() if each.get("found")}
    wrong -= {name for name, default in defaults.items() if asked.get(name, default) in (None, default)}
    wrong |= contract.undecided(asked, share.manifest["parameters"])
    versions = spec.get("versions")
    version = versions.get("leeward") if isinstance(versions, dict) else None
    run = {
        "leeward": version or share.manifest["leeward"],
        "method": str(asked.get("name")),
        "seeded": spec.get("seed") is not None,
    }
    wrong |= differing(run, {name: share.manifest.get(name, False) for name in run})
    return [
        of_count(
            "parameters_of_spec",
            len(wrong),
            "The parameters are those of the custodian's spec.",
            f"parameters are not those of the custodian's spec: {', '.join(sorted(wrong))}.",
        )
    ]


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    pairs = [
        {(name, json.dumps(value, default=str)) for name, value in each.items()} for each in (one, other)
    ]
    return {name for name, _ in pairs[0] ^ pairs[1]}


def visible(declared: Mapping[str, Schema], given: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest shows of the parameters given; of those not given the defaults."""
    values = {name: given.get(name, each.get("default")) for name, each in declared.items()}
    return {
        name: as_shown(each, values[name])
        for name, each in declared.items()
        if is_beside(each, values) and not is_left_out(each, values[name])
    }


def is_beside(schema: Schema, values: Mapping[str, Any]) -> bool:
    """Whether another parameter has the value that this one needs."""
    if "when" not in schema:
        return True
    name, wanted = schema["when"]
    return bool(values[name]) if wanted is True else bool(values[name] == wanted)


def is_left_out(schema: Schema, value: Any) -> bool:
    """Whether a manifest does not show such a value."""
    empty = value is None or value is False or value in ([], {}, schema.get("default"))
    return empty and schema["shown"] != "always"


def as_shown(schema: Schema, value: Any) -> Any:
    """A value as a manifest shows it: a file by a word or by its name."""
    if isinstance(value, dict):
        items = (
            sorted(value.items(), key=lambda item: str(item[0])) if schema.get("ascending") else value.items()
        )
        return {str(name): as_shown(schema, each) for name, each in items}
    if isinstance(value, list):
        return sorted(value, key=str) if schema.get("ascending") else value
    if not isinstance(value, str) or text_fits(schema, value, schema.get("form")):
        return value
    kind, _, path = value.partition(":")
    return schema.get("word", f"{kind}:{Path(path).name}")


def fits(schema: Schema, value: Any, form: str | None = None) -> bool:
    """Whether a value fits a JSON Schema of `contracts/parameters.json`, and all its texts the `form`."""
    form = schema.get("form", form)
    if "anyOf" in schema:
        return any(fits(each, value, form) for each in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return isinstance(value, str) and value in schema.get("enum", [schema.get("const")])
    if "type" not in schema:
        return True
    kinds, judge = TYPES[schema["type"]]
    return type(value) in kinds and judge(schema, value, form)


def text_fits(schema: Schema, value: str, form: str | None) -> bool:
    return form is None or re.fullmatch(form, value) is not None


def number_fits(schema: Schema, value: float, form: str | None) -> bool:
    """Whether a number is in its range, and finite."""
    inside = all(compare(value, schema[key]) for key, compare in LIMITS.items() if key in schema)
    return inside and abs(value) <= LARGEST


def list_fits(schema: Schema, value: list[Any], form: str | None) -> bool:
    """Whether a list has so many items, which fit; of texts each is there once."""
    inner = schema.get("prefixItems") or [schema["items"]] * len(value)
    texts = [each for each in value if isinstance(each, str)]
    items = len(inner) == len(value) and len(set(texts)) == len(texts)
    return items and all(fits(one, each, form) for one, each in zip(inner, value, strict=True))


LIMITS = {"minimum": op.ge, "maximum": op.le, "exclusiveMinimum": op.gt, "exclusiveMaximum": op.lt}
TYPES: dict[str, tuple[tuple[type, ...], Callable[[Schema, Any, str | None], bool]]] = {
    "null": ((type(None),), lambda schema, value, form: True),
    "boolean": ((bool,), lambda schema, value, form: True),
    "integer": ((int,), number_fits),
    "number": ((int, float), number_fits),
    "string": ((str,), text_fits),
    "array": ((list,), list_fits),
    "object": (
        (dict,),
        lambda schema, value, form: all(
            fits(schema["additionalProperties"], v, form) for v in value.values()
        ),
    ),
}
"""Type of JSON Schema -> Python's types of it, and what else has to be true."""
