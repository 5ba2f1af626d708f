"""The manifest's parameters against their declarations (`contracts/parameters.json`), by themselves and against the
custodian's spec of the run (`custody/spec.yaml`)."""

from __future__ import annotations

import json
import operator as op
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from leeward.contracts.contract import LARGEST, Contract, Schema
from leeward.verify.checks import Check, of_count
from leeward.verify.manifest import Share


def parameters_known(share: Share, contract: Contract) -> Check:
    """Every parameter is one of the method's, has a value that it can have, and is there where it has to be."""
    stated, declared = share.manifest["parameters"], contract.parameters
    wrong = sum(name not in declared or not fits(declared[name], value) for name, value in stated.items())
    if not wrong:  # what follows reads several of them
        wrong = len(differing(shown(declared, contract.completed(stated)), stated))
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
    file = share.folder.parent / "custody" / "spec.yaml"
    if share.folder.name != "share" or not file.is_file():
        return []
    try:
        spec = yaml.safe_load(file.read_text(encoding="utf-8"))
        method = {("policy" if key == "utility" else key): value for key, value in spec["method"].items()}
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError, AttributeError):
        return [Check("parameters_of_spec", False, "custody/spec.yaml cannot be read as the spec of a run.")]
    asked = {name: value for name, value in method.items() if value is not None}
    wrong = differing(shown(contract.parameters, contract.completed(asked)), share.manifest["parameters"])
    wrong -= {name for name, each in contract.parameters.items() if each.get("found") and not asked.get(name)}
    versions = spec.get("versions")
    run = {
        "leeward": versions.get("leeward") if isinstance(versions, dict) else None,
        "method": str(asked.get("name")),
        "seeded": True if spec.get("seed") is not None else None,
    }
    run["leeward"] = run["leeward"] or share.manifest["leeward"]
    wrong |= differing(run, {name: share.manifest.get(name) for name in run})
    return [
        of_count(
            "parameters_of_spec",
            len(wrong),
            "The parameters are those of the custodian's spec.",
            f"parameters are not those of the custodian's spec: {', '.join(sorted(wrong))}.",
        )
    ]


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    """Names that only one of two objects has, or that have other values."""
    pairs = [
        {(name, json.dumps(value, default=str)) for name, value in each.items()} for each in (one, other)
    ]
    return {name for name, _ in pairs[0] ^ pairs[1]}


def shown(declared: Mapping[str, Schema], given: Mapping[str, Any]) -> dict[str, Any]:
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
    """Whether a value fits a JSON Schema of `fields.schema_of_manifest`, and all its texts the `form`."""
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
    """Whether a text has the form."""
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


def object_fits(schema: Schema, value: dict[str, Any], form: str | None) -> bool:
    """Whether the values of an object fit."""
    return all(fits(schema["additionalProperties"], each, form) for each in value.values())


LIMITS = {"minimum": op.ge, "maximum": op.le, "exclusiveMinimum": op.gt, "exclusiveMaximum": op.lt}
TYPES: dict[str, tuple[tuple[type, ...], Callable[[Schema, Any, str | None], bool]]] = {
    "null": ((type(None),), lambda schema, value, form: True),
    "boolean": ((bool,), lambda schema, value, form: True),
    "integer": ((int,), number_fits),
    "number": ((int, float), number_fits),
    "string": ((str,), text_fits),
    "array": ((list,), list_fits),
    "object": ((dict,), object_fits),
}
"""Type of JSON Schema -> Python's types of it, and what else has to be true."""
