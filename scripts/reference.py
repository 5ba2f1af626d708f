"""Write docs/parameters.md and docs/spec.schema.json from the declarations of all parameters.

python scripts/reference.py
"""

from __future__ import annotations

from pathlib import Path

from leeward.release.manifest import to_json_text
from leeward.runs.reference import parameters_page, spec_schema

DOCS = Path(__file__).resolve().parents[1] / "docs"


def main() -> None:
    """Write both files."""
    (DOCS / "parameters.md").write_text(parameters_page(), encoding="utf-8")
    (DOCS / "spec.schema.json").write_text(to_json_text(spec_schema()), encoding="utf-8")


if __name__ == "__main__":
    main()
