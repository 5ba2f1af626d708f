"""The README of a release as its manifest and its method's words call for it, written again by the verifier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leeward.verify.manifest import Share
from leeward.verify.recipients import asking, citing, columns_table, counting_lines, opening


def stated_facts(knows: str, candidates: str, as_is: Iterable[str] = (), **more: Any) -> dict[str, Any]:
    """The machine-readable facts that a guarantee must carry."""
    return {"attacker_knows": knows, "candidates": candidates, "released_as_is": list(as_is), **more}


@dataclass(frozen=True)
class Words:
    """What the manifest's guarantee and the README must say."""

    name: str
    attacker: str
    not_protected: tuple[str, ...]
    readme: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    tail: str = ""
    """A pattern of what may follow `readme`: sentences with figures that only the source has."""
    numbers: Sequence[str] = ()
    """Which of k, m, epsilon and delta the guarantee may have."""
    lists_codes: bool = False
    """Whether the release has the list of codes of `verify.codes`."""


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


def _codes(share: Share) -> str:
    if share.manifest["parameters"].get("attacker") == "algorithm":
        return SHOWN_CODES
    return CODES.format(k=share.manifest["guarantee"].get("k"))


def readme_of(share: Share, words: Words) -> str:
    """The text that `share/README.md` must have."""
    manifest = share.manifest
    listed = {str(entry["path"]): entry["rows"] for entry in manifest["files"]}
    copies = any(path.endswith(".csv") and path[:-4] + ".parquet" in listed for path in listed)
    rows = "\n".join(f"| `{path}` | {count:,} |" for path, count in listed.items())
    parts = [
        f"# Released data: {manifest['method']}\n",
        SEEDED if manifest.get("seeded") else "",
        opening(manifest["method"], manifest["records"], manifest["leeward"]),
        "## What is guaranteed\n",
        _guarantee(share, words),
        "## Files\n",
        f"| file | rows |\n|---|---:|\n{rows}\n",
        READING,
        CSV if copies else "",
        _codes(share) if words.lists_codes else "",
        columns_table(manifest["method"], list(listed)),
        "## How to read and analyse it\n",
        words.readme.strip() + "\n",
        counting_lines(manifest["method"]),
        citing(manifest["method"], _named(share, words), manifest["records"], manifest["leeward"]),
        "## Please\n",
        asking(manifest["method"]),
    ]
    return "\n".join(part for part in parts if part)


def _numbers(share: Share, words: Words) -> str:
    stated = share.manifest["guarantee"]
    return ", ".join(f"{name} = {stated[name]:g}" for name in words.numbers if name in stated)


def _named(share: Share, words: Words) -> str:
    given = _numbers(share, words)
    return f"{words.name}, {given}" if given else words.name


def _guarantee(share: Share, words: Words) -> str:
    given = _numbers(share, words)
    lines = [f"**{words.name}**{f' ({given})' if given else ''}, for each patient.\n"]
    lines.append(f"Against whom: {words.attacker}\n")
    if words.not_protected:
        lines += ["What it does not protect against:\n", *(f"- {each}" for each in words.not_protected), ""]
    return "\n".join(lines)
