"""`share/README.md`: how a recipient reads and analyses the data, and what is guaranteed, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leeward.contracts.contract import Contract
from leeward.contracts.recipients import asking, citing, columns_table, counting_lines, opening

SEEDED = """\
> **For tests and studies only.** A person chose the seed of this release, so its shuffles can be undone. It must not \
leave the place where it was made.
"""

READING = """\
Parquet opens in Python (`polars.read_parquet`, `pandas.read_parquet`), R (`arrow::read_parquet`), DuckDB,
Spark and most statistics programs. Files are listed in `release.json` with their number of rows and their
SHA-256, so that you can tell whether they arrived whole (`sha256sum data/*`).
"""

CODES = """\
`data/codes.parquet` names the codes: `code`, `name` (ICD codes are called by their category; empty where no name is
known), `vocabulary`, and `suppressed`. It lists the codes that the files show, alone or inside a generalized code, and
every other code that at least {k} patients have (`suppressed` is true: it was taken out). A code that it does not list
is absent, or fewer than {k} patients have it: its count is unknown, not 0.
"""

SHOWN_CODES = """\
`data/codes.parquet` names the codes: `code`, `name` (ICD codes are called by their category; empty where no name is
known), `vocabulary`, and `suppressed` (never). It lists the codes that the files show. A code that it does not list is
absent, or was suppressed: its count is unknown, not 0.
"""

CSV = """\
Each CSV file repeats the Parquet file of the same name: UTF-8, commas, one header line. A list of codes is
one cell, its codes joined by `;`. An empty cell in quotes is an empty list, an empty cell without quotes is
a missing value.
"""


def readme_of(manifest: Mapping[str, Any], reading: str, contract: Contract | None) -> str:
    """The text of a README; it depends on nothing but what is released.

    Parameters
    ----------
    manifest : the content of `release.json`.
    reading : how the method's files are read (`Words.readme`).
    contract : the method's; a method without one has no tables of codes and columns there, and no lines to count by.
    """
    method, records, version = manifest["method"], manifest["records"], manifest["leeward"]
    guarantee = manifest["guarantee"]
    rows = {str(entry["path"]): entry["rows"] for entry in manifest["files"]}
    copies = any(path.endswith(".csv") and path[:-4] + ".parquet" in rows for path in rows)
    listed = "\n".join(f"| `{path}` | {count:,} |" for path, count in rows.items())
    parts = [
        f"# Released data: {method}\n",
        SEEDED if manifest.get("seeded") else "",
        opening(method, records, version),
        "## What is guaranteed\n",
        _guarantee(guarantee),
        "## Files\n",
        f"| file | rows |\n|---|---:|\n{listed}\n",
        READING,
        CSV if copies else "",
        _codes(manifest) if contract and contract.lists_codes else "",
        columns_table(contract.meanings if contract else (), list(rows)),
        "## How to read and analyse it\n",
        reading.strip() + "\n",
        counting_lines(contract.counting if contract else None),
        citing(method, ", ".join(filter(None, [guarantee["name"], _numbers(guarantee)])), records, version),
        "## Please\n",
        asking(method),
    ]
    return "\n".join(part for part in parts if part)


def _codes(manifest: Mapping[str, Any]) -> str:
    """How to read the list of codes."""
    if manifest["parameters"].get("attacker") == "algorithm":
        return SHOWN_CODES
    return CODES.format(k=manifest["guarantee"].get("k"))


def _numbers(guarantee: Mapping[str, Any]) -> str:
    given = {name: guarantee.get(name) for name in ("k", "m", "epsilon", "delta")}
    return ", ".join(f"{name} = {value:g}" for name, value in given.items() if value is not None)


def _guarantee(guarantee: Mapping[str, Any]) -> str:
    given = _numbers(guarantee)
    lines = [f"**{guarantee['name']}**{f' ({given})' if given else ''}, for each {guarantee['unit']}.\n"]
    lines.append(f"Against whom: {guarantee['attacker']}\n")
    if guarantee["not_protected"]:
        lines += [
            "What it does not protect against:\n",
            *(f"- {each}" for each in guarantee["not_protected"]),
            "",
        ]
    return "\n".join(lines)
