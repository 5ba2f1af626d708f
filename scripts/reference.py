"""Write what follows from declarations, in docs/reference: the pages of parameters, the schema of a spec, and the
portal's interface for programs; and what the verifier knows of parameters.

python scripts/reference.py
"""

from __future__ import annotations

from pathlib import Path

from leeward.portal.api import openapi
from leeward.release.manifest import to_json_text
from leeward.runs.reference import parameters_pages, schema_of_manifests, spec_schema

TREE = Path(__file__).resolve().parents[1]


def main() -> None:
    """Write the pages and the three files."""
    for name, page in parameters_pages().items():
        (TREE / f"docs/reference/parameters/{name}.md").write_text(page, encoding="utf-8")
    (TREE / "docs/reference/spec.schema.json").write_text(to_json_text(spec_schema()), encoding="utf-8")
    (TREE / "docs/reference/portal-openapi.json").write_text(to_json_text(openapi()), encoding="utf-8")
    contracts = TREE / "src/leeward/contracts"
    (contracts / "parameters.json").write_text(schema_of_manifests(), encoding="utf-8")


if __name__ == "__main__":
    main()
