"""`share/README.md`: how a recipient reads and analyses the data, and what is guaranteed, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from leeward.release.content import Anonymized, Guarantee
from leeward.release.manifest import FileEntry
from leeward.release.recipients import asking, citing, columns_table, counting_lines, opening
from leeward.version import __version__

SEEDED = (
    "> **For tests and studies only.** A person chose the seed of this release, so its shuffles can be "
    "undone. It must not leave the place where it was made.\n"
)

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


def readme_of(anonymized: Anonymized, files: Sequence[FileEntry], *, with_csv: bool) -> str:
    """The text of `share/README.md`; it depends on nothing but what is released."""
    parts = [
        f"# Released data: {anonymized.method}\n",
        SEEDED if anonymized.seeded else "",
        opening(anonymized.method, anonymized.records, __version__),
        "## What is guaranteed\n",
        _guarantee(anonymized.guarantee),
        "## Files\n",
        _files(files),
        READING,
        CSV if with_csv else "",
        _codes(anonymized),
        columns_table(anonymized.method, [file.path for file in files]),
        "## How to read and analyse it\n",
        anonymized.readme.strip() + "\n",
        counting_lines(anonymized.method),
        citing(anonymized.method, _named(anonymized.guarantee), anonymized.records, __version__),
        "## Please\n",
        asking(anonymized.method),
    ]
    return "\n".join(part for part in parts if part)


def _codes(anonymized: Anonymized) -> str:
    """How to read the list of codes, where there is one."""
    if not _lists_codes(anonymized):
        return ""
    shown_only = anonymized.parameters.get("attacker") == "algorithm"
    return SHOWN_CODES if shown_only else CODES.format(k=anonymized.guarantee.k)


def _lists_codes(anonymized: Anonymized) -> bool:
    """Whether there is a list of codes with names."""
    return any(
        table.path == "codes.parquet" and "vocabulary" in table.schema.names for table in anonymized.tables
    )


def _numbers(guarantee: Guarantee) -> str:
    numbers = {"k": guarantee.k, "m": guarantee.m, "epsilon": guarantee.epsilon, "delta": guarantee.delta}
    return ", ".join(f"{name} = {value:g}" for name, value in numbers.items() if value is not None)


def _named(guarantee: Guarantee) -> str:
    given = _numbers(guarantee)
    return f"{guarantee.name}, {given}" if given else guarantee.name


def _guarantee(guarantee: Guarantee) -> str:
    given = _numbers(guarantee)
    lines = [
        f"**{guarantee.name}**{f' ({given})' if given else ''}, for each {guarantee.unit}.\n",
        f"Against whom: {guarantee.attacker}\n",
    ]
    if guarantee.not_protected:
        lines.append("What it does not protect against:\n")
        lines.extend(f"- {item}" for item in guarantee.not_protected)
        lines.append("")
    return "\n".join(lines)


def _files(files: Sequence[FileEntry]) -> str:
    rows = "\n".join(f"| `{file.path}` | {file.rows:,} |" for file in files)
    return f"| file | rows |\n|---|---:|\n{rows}\n"
