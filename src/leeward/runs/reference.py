"""What is generated from the declarations: the JSON Schema of a spec, and the page of all parameters."""

from __future__ import annotations

from typing import Any

from leeward.fields import Declaration, declarations, schema, wanted
from leeward.methods import METHODS, Method
from leeward.release.spec import SourceSpec, Spec

INTRODUCTION = """\
# Parameters of all methods

Generated from the declarations in `methods/*/parameters.py` by `python scripts/reference.py`; edit them, not this page.

A parameter has the same name in a call, `lw.Censoring(k=5)`, and in a spec, `method: {name: censoring, k: 5}`. Its flag
on the command line is the name with `-` for `_`, unless another one is given in brackets. In a spec `utility` may be
written for `policy`. Values that do not fit are refused alike in all three.
"""


def spec_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a spec; editors complete and check specs with it."""
    found = schema(Spec, title="A spec of leeward protect")
    methods = [_method_schema(name, method) for name, method in METHODS.items()]
    found["properties"]["method"] = {"oneOf": methods, "description": "The method and its parameters."}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def parameters_page() -> str:
    """docs/parameters.md: every parameter of every method, and every key of a spec."""
    parts = [INTRODUCTION]
    for name, method in METHODS.items():
        cls = method.parameters_class()
        parts.append(
            f"## {name}\n\n{' '.join(cls.__doc__.split())}\n\n`lw.{method.class_name}`, `leeward {method.command}`, "
            f"`method: {{name: {name}, …}}`; [definition and guarantee](methods/{name}.md).\n\n{_table(cls)}"
        )
    parts.append(f"## Keys of a spec\n\n{_table(Spec, flags=False)}")
    parts.append(f"## Keys of `source` and `population`\n\n{_table(SourceSpec, flags=False)}")
    return "\n".join(parts)


def _method_schema(name: str, method: Method) -> dict[str, Any]:
    found = schema(method.parameters_class(), title=name)
    properties = {"name": {"const": name}, **found["properties"]}
    if "policy" in properties:
        properties["utility"] = {**properties["policy"], "description": "The same as `policy`."}
    return {**found, "properties": properties, "required": ["name", *found.get("required", ())]}


def _table(cls: type, *, flags: bool = True) -> str:
    rows = ["| parameter | value | default | meaning |", "|---|---|---|---|"]
    for each in declarations(cls):
        cells = (_name(each, flags), wanted(each.hint, each.parameter), _default(each), each.parameter.help)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def _name(each: Declaration, flags: bool) -> str:
    return f"`{each.name}` (`{each.flag}`)" if flags and each.parameter.flag else f"`{each.name}`"


def _default(each: Declaration) -> str:
    if each.required:
        return "required"
    return each.default_text or ("empty" if each.default in ((), {}) else "none")
