"""Write what follows from the declarations of all parameters: docs/parameters.md, docs/spec.schema.json, and what the
verifier knows of them.

python scripts/reference.py
"""

from __future__ import annotations

from pathlib import Path

from leeward.release.manifest import to_json_text
from leeward.runs.reference import parameters_page, schema_of_manifests, spec_schema

TREE = Path(__file__).resolve().parents[1]


def main() -> None:
    """Write the three files."""
    (TREE / "docs/parameters.md").write_text(parameters_page(), encoding="utf-8")
    (TREE / "docs/spec.schema.json").write_text(to_json_text(spec_schema()), encoding="utf-8")
    contracts = TREE / "src/leeward/contracts"
    (contracts / "parameters.json").write_text(schema_of_manifests(), encoding="utf-8")


if __name__ == "__main__":
    main()
