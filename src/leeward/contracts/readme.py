"""`share/README.md`: how a recipient reads and analyses the data, what is guaranteed, in plain words; the meaning of
columns, lines that count one code with bounds, how to cite and ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.contracts.contract import Contract, Counting

COLUMNS = """\
| file | column | meaning |
|---|---|---|
"""

BOUNDED = """\
How many patients have a code, with bounds that are certain. Run in this folder:
"""
BOUNDED_BELOW = """\
How many patients have a code, with bounds that are certain. Codes may be missing in any record, so the upper bound is
everybody; `leeward estimate` has the expected number. Run in this folder:
"""
"""What the lines of a method with codes say they do."""

LISTED = """\
import pandas as pd

listed = pd.read_parquet("data/codes.parquet").set_index("code")
code = listed.index[0]  # or another one
assert code in listed.index, "not in this release: unknown, not 0"
"""
PRINT = """\
print(low, "to", high, "patients")
"""

R_LISTED = """\
read <- function(name) arrow::read_parquet(paste0("data/", name, ".parquet"))
has <- function(lists, code) vapply(lists, function(held) code %in% held, NA)
listed <- read("codes")
code <- unlist(listed$code)[1]  # or another one
stopifnot(code %in% unlist(listed$code))  # else not in this release: unknown, not 0
"""
R_PRINT = """\
cat(low, "to", high, "patients\\n")
"""


def of_codes(pandas: str, r: str, intro: str = BOUNDED) -> Counting:
    """Lines of a release with a list of codes: these find `low` and `high`, from `listed` and a `code` of it."""
    return Counting(intro, LISTED + pandas + PRINT, R_LISTED + r + R_PRINT)


def knows_the_algorithm(what: str) -> str:
    """The sentence that no guarantee against it goes without: attackers who know the algorithm, and what of."""
    return (
        "Somebody who knows the algorithm can rule out data that it would have turned into something else. Of "
        f"{what}, some may then be more likely than others, and at times one alone is left."
    )


OPENING = """\
{records:,} records, anonymized with Leeward {version} (method `{method}`). Records are numbered anew; neither numbers \
nor row order mean anything.
"""

CITING = """\
## Citing, terms, questions

Cite the release as: "{what}, method {method} ({guarantee}), made with Leeward {version}; {counts}". Whoever gave you \
this folder states the terms of use and answers questions; quote the first characters of `sha256sum release.json`, \
which name this release.
"""

PLEASE = """\
Do not try to find out who a record belongs to, and do not combine this release with another release of the same \
people: the guarantee holds for this release alone.
"""

OPENING_OF_CATALOGUE = """\
A catalogue of itemsets with noisy counts, made with Leeward {version} (method `{method}`). The order of rows follows \
from the counts and the texts, and means nothing else.
"""

PLEASE_OF_CATALOGUE = """\
Do not try to find out whom a count is about. What another release of the same people tells comes on top: the \
guarantee holds for this release alone.
"""


def columns_table(contract: Contract | None, files: Sequence[str]) -> str:
    """The meaning of the columns of the files that are there; empty where nothing is said of them."""
    there = {path.removeprefix("data/").partition(".")[0] for path in files}
    rows = [
        f"| `{name}` | `{column.replace(', ', '`, `')}` | {meaning.replace('|', '&#124;')} |"
        for name, column, meaning in (contract.meanings if contract else ())
        if name in there
    ]
    return COLUMNS + "\n".join(rows) + "\n" if rows else ""


def counting_lines(contract: Contract | None) -> str:
    """Lines of pandas and of R that count the patients with a code, or the rows with a value."""
    counting = None if contract is None else contract.counting
    if counting is None:
        return ""
    needs = "the packages `arrow` and `jsonlite`" if "jsonlite" in counting.r else "the package `arrow`"
    python, r = f"```python\n{counting.pandas}```", f"```r\n{counting.r}```"
    return f"{counting.intro}\n{python}\n\nThe same in R (needs {needs}):\n\n{r}\n"


def opening(method: str, records: int, version: str) -> str:
    text = OPENING_OF_CATALOGUE if method == "notes" else OPENING
    return text.format(method=method, records=records, version=version)


def citing(method: str, guarantee: str, records: int, version: str) -> str:
    """How to cite the release, on which terms it is used, whom to ask."""
    what, counts = f"{records:,} records", "counts are estimates with bounds"
    if method == "notes":
        what, counts = "catalogue of itemsets", "counts hold noise"
    return CITING.format(what=what, counts=counts, method=method, guarantee=guarantee, version=version)


def asking(method: str) -> str:
    """What a recipient is asked not to do."""
    return PLEASE_OF_CATALOGUE if method == "notes" else PLEASE


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
        _codes(manifest, contract),
        columns_table(contract, list(rows)),
        "## How to read and analyse it\n",
        reading.strip() + "\n",
        counting_lines(contract),
        citing(method, ", ".join(filter(None, [guarantee["name"], _numbers(guarantee)])), records, version),
        "## Please\n",
        asking(method),
    ]
    return "\n".join(part for part in parts if part)


def _codes(manifest: Mapping[str, Any], contract: Contract | None) -> str:
    """How to read the list of codes, where there is one."""
    if contract is None or not contract.lists_codes:
        return ""
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
