"""Write what follows from declarations, in docs/reference: the pages of parameters, the schema of a spec, and the
portal's interface for programs; and what the verifier knows of parameters.

python scripts/reference.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from leeward.fields import adapter_of, declarations, describe_values, stated, text_of
from leeward.methods import METHODS
from leeward.portal.api import openapi
from leeward.release.manifest import to_json_text
from leeward.release.spec import Handover, Refresh, SourceSpec, Spec
from leeward.runs.reference import describe_default, spec_schema

TREE = Path(__file__).resolve().parents[1]

INTRODUCTION = """\
# Parameters

A parameter has the same name in a call, `lw.Censoring(k=5)`, and in a spec, `method: {name: censoring, k: 5}`. Its flag
on the command line is the name with `-` for `_`, unless another one is given in brackets. In a spec `utility` may be
written for `policy`. Values that do not fit are refused alike in all three.

`python scripts/reference.py` writes these pages from the declarations in `methods/*/parameters.py`.
"""


def main() -> None:
    """Write the pages and the three files."""
    for name, page in parameters_pages().items():
        (TREE / f"docs/reference/parameters/{name}.md").write_text(page, encoding="utf-8")
    (TREE / "docs/reference/spec.schema.json").write_text(to_json_text(spec_schema()), encoding="utf-8")
    (TREE / "docs/reference/portal-openapi.json").write_text(to_json_text(openapi()), encoding="utf-8")
    contracts = TREE / "src/leeward/contracts"
    (contracts / "parameters.json").write_text(schema_of_manifests(), encoding="utf-8")


def schema_of_manifests() -> str:
    """contracts/parameters.json: what a manifest of each method can show of its parameters, one a line."""
    methods = []
    for name, method in METHODS.items():
        shown = schema_of_manifest(method.parameters_class())
        lines = [f'  "{each}": {json.dumps(known, ensure_ascii=False)}' for each, known in shown.items()]
        methods.append(f' "{name}": {{\n' + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(methods) + "\n}\n"


def parameters_pages() -> dict[str, str]:
    """docs/reference/parameters/NAME.md: every parameter of each method, every key of a spec, and all pages."""
    pages = {}
    for name, method in METHODS.items():
        cls = method.parameters_class()
        pages[name] = (
            f"# Parameters of {name}\n\n{' '.join(text_of(cls).split())}\n\n"
            f"`lw.{method.class_name}`, `leeward {method.command}`, `method: {{name: {name}, …}}`; "
            f"[definition and guarantee](../../methods/{name}.md).\n\n{_table(cls)}"
        )
    pages["spec"] = (
        f"# Keys of a spec\n\n{_table(Spec, flags=False)}\n"
        f"## Keys of `source` and `population`\n\n{_table(SourceSpec, flags=False)}\n"
        f"## Keys of `release`\n\n{_table(Handover, flags=False)}\n"
        f"## Keys of `refresh`\n\n{_table(Refresh, flags=False)}"
    )
    links = "".join(f"- [{name}]({name}.md)\n" for name in METHODS)
    contents = "\n".join(["```{toctree}", ":hidden:", "", *pages, "```", ""])
    return {"all": f"{INTRODUCTION}\n{links}- [keys of a spec](spec.md)\n\n{contents}", **pages}


MARKERS = ("when", "form", "word", "found", "ascending")
"""What a verifier has to know of a parameter beside its schema; left out where it is the default."""


def schema_of_manifest(cls: type) -> dict[str, Any]:
    """For each field that a manifest can show: JSON Schema of what is shown, its default, and when it is shown."""
    found = {}
    for each in stated(cls):
        shown = adapter_of(cls, each.name).json_schema(mode="serialization")
        if each.parameter.form is not None and "anyOf" in shown:  # mappings and none are shown as texts
            null = {"type": "null"} if each.default is not None else None
            shown["anyOf"] = [
                one for one in shown["anyOf"] if one != null and one.get("additionalProperties") is not True
            ]
        if each.parameter.form is None and each.parameter.word is not None:
            shown["enum"].append(each.parameter.word)
        shown["shown"] = "always" if each.required else each.parameter.shown
        shown |= {name: value for name in MARKERS if (value := getattr(each.parameter, name))}
        found[each.name] = shown if each.required else {**shown, "default": each.default}
    return found


def _table(cls: type, *, flags: bool = True) -> str:
    rows = ["| parameter | value | default | meaning |", "|---|---|---|---|"]
    for each in declarations(cls):
        cells = (
            f"`{each.name}`" + (f" (`{each.parameter.flag}`)" if flags and each.parameter.flag else ""),
            describe_values(each.hint, each.parameter),
            describe_default(each),
            each.parameter.help,
        )
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
