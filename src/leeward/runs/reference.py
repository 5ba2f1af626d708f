"""What is generated from the declarations: the JSON Schema of a spec, and commented specs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from leeward.fields import Declaration, declarations, schema
from leeward.methods import METHODS, Method
from leeward.release.spec import SourceSpec, Spec, plain_of

UNWRITTEN = ("name", "plan")
"""Keys that a commented spec does not offer: of cohorts in memory; of a method that has the spec's own key."""


def spec_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a spec; editors complete and check specs with it."""
    found = schema(Spec, title="A spec of leeward protect")
    methods = [_method_schema(name, method) for name, method in METHODS.items()]
    found["properties"]["method"] = {"oneOf": methods, "description": "The method and its parameters."}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def comment_spec(spec: Spec) -> str:
    """The spec as YAML, each key below its meaning, and the keys that were left out with theirs."""
    content = {each.name: plain_of(getattr(spec, each.name)) for each in declarations(Spec)}
    inner = {
        "source": (SourceSpec, "path"),
        "population": (SourceSpec, "path"),
        "method": (METHODS[spec.method["name"]].parameters_class(), "name"),
    }
    lines = ["# Run it with `leeward protect SPEC.yaml -o OUT`. All keys: docs/reference/spec.md."]
    for each in declarations(Spec):
        value = content[each.name]
        if each.name == "versions" or (value in (None, [], {}) and each.name != "measure"):
            continue
        lines += ["", *_comment(each.parameter.help)]
        if each.name in inner:
            lines += [f"{each.name}:", *_comment_keys(*inner[each.name], value)]
        else:
            lines += _entry(each.name, value) if value else ["# measure: []"]
    if spec.source.path is not None and content["source"]["path"] != spec.source.path:
        lines += ["", "# The password in the database's URL was left out: set PGPASSWORD."]
    return "\n".join(lines) + "\n"


def _comment_keys(cls: type, first: str, given: Mapping[str, Any]) -> Iterator[str]:
    known = {each.name: each for each in declarations(cls)}
    for name, value in sorted(given.items(), key=lambda pair: pair[0] != first):
        yield from _comment(known[name].parameter.help if name in known else "", "  ")
        yield from _entry(name, value, "  ")
    left_out = [each for each in known.values() if each.name not in given and each.name not in UNWRITTEN]
    if left_out:
        yield "  # Left out, so that the default holds:"
    for each in left_out:
        yield from _comment(f"{each.name}: {each.parameter.help} [{describe_default(each)}]", "  ", "  #   ")


def _entry(name: str, value: Any, indent: str = "") -> list[str]:
    text = yaml.safe_dump({name: value}, sort_keys=False, allow_unicode=True)
    return textwrap.indent(text, indent).splitlines()


def _comment(text: str, indent: str = "", mark: str = "") -> list[str]:
    mark = mark or f"{indent}# "
    return textwrap.wrap(
        text, 100, initial_indent=mark, subsequent_indent=f"{mark}  " if mark != f"{indent}# " else mark
    )


def _method_schema(name: str, method: Method) -> dict[str, Any]:
    found = schema(method.parameters_class(), title=name)
    properties = {"name": {"const": name}, **found["properties"]}
    if "policy" in properties:
        properties["utility"] = {**properties["policy"], "description": "The same as `policy`."}
    return {**found, "properties": properties, "required": ["name", *found.get("required", ())]}


def describe_default(each: Declaration) -> str:
    """A declaration's default as a person reads it."""
    if each.required:
        return "required"
    return each.default_text or ("empty" if each.default in ((), {}) else "none")
