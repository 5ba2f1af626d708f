"""`share/README.md`: how a recipient reads and analyses the data, what is guaranteed, in plain words; the meaning of
columns, lines that count one code with bounds, how to cite and ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from leeward.contracts.contract import Contract, Counting, lists_shown_only, texts_of

README = texts_of("readme")
"""What the READMEs of all methods say."""


READER = "leeward-read.R"
"""The file beside the README of a release with CSV copies: it reads them in R without packages, and counts."""


def reader() -> bytes:
    return Path(__file__).with_name(READER).read_bytes()


def has_copies(paths: Iterable[str]) -> bool:
    """Whether Parquet files of a release have copies in CSV."""
    known = set(paths)
    return any(path.endswith(".csv") and f"{path[:-4]}.parquet" in known for path in known)


def of_codes(pandas: str, r: str, intro: str = README.bounded) -> Counting:
    """Lines of a release with a list of codes: these find `low` and `high`, from `listed` and a `code` of it."""
    return Counting(intro, README.listed + pandas + README.print, README.r_listed + r + README.r_print)


def columns_table(contract: Contract | None, files: Sequence[str], parameters: Mapping[str, Any]) -> str:
    """The meaning of the columns of the files that are there; empty where nothing is said of them."""
    there = {path.removeprefix("data/").partition(".")[0] for path in files}
    meanings = contract.meanings if contract else ()
    rows = [
        f"| `{name}` | `{column.replace(', ', '`, `')}` | {meaning.replace('|', '&#124;')} |"
        for name, column, meaning in (meanings(parameters) if callable(meanings) else meanings)
        if name in there
    ]
    return README.columns + "\n".join(rows) + "\n" if rows else ""


def counting_lines(contract: Contract | None, files: Sequence[str]) -> str:
    """Lines of pandas and of R that count the patients with a code, or the rows with a value; of R without packages
    first, where there are copies in CSV; and of SQL."""
    counting = None if contract is None else contract.counting
    if counting is None:
        return ""
    needs = "the packages `arrow` and `jsonlite`" if "jsonlite" in counting.r else "the package `arrow`"
    parts = [f"{counting.intro}\n```python\n{counting.pandas}```\n"]
    if has_copies(files):
        counts = README.r_reader_counts if "data/codes.csv" in files else ""
        parts.append(f"{README.r_alone}\n```r\n{README.r_reader}{counts}```\n")
    parts.append(f"The same in R (needs {needs}):\n\n```r\n{counting.r}```\n")
    first = next(path for path in files if path.endswith(".parquet"))
    return "\n".join([*parts, README.sql.format(file=first)])


def readme_of(manifest: Mapping[str, Any], reading: str, contract: Contract | None) -> str:
    """The text of a README; it depends on nothing but what is released.

    manifest : the content of `release.json`.
    reading : how the method's files are read (`Words.readme`).
    contract : the method's; a method without one has no tables of codes and columns there, and no lines to count by.
    """
    method, records, version = manifest["method"], manifest["records"], manifest["leeward"]
    guarantee = manifest["guarantee"]
    said = README.catalogue if method == "notes" else README.records
    title = ", ".join(filter(None, [guarantee["name"], _numbers(guarantee)]))
    what = said["what"].format(records=records)
    rows = {str(entry["path"]): entry["rows"] for entry in manifest["files"]}
    listed = "\n".join(f"| `{path}` | {count:,} |" for path, count in rows.items())
    parts = [
        f"# Released data: {method}\n",
        README.seeded if manifest.get("seeded") else "",
        said["opening"].format(method=method, records=records, version=version),
        "## What is guaranteed\n",
        _guarantee(guarantee),
        "## Files\n",
        f"| file | rows |\n|---|---:|\n{listed}\n",
        README.reading,
        README.csv if has_copies(rows) else "",
        _codes(manifest, contract),
        columns_table(contract, list(rows), manifest["parameters"]),
        "## How to read and analyse it\n",
        reading.strip() + "\n",
        counting_lines(contract, list(rows)),
        README.citing.format(
            what=what, counts=said["counts"], method=method, guarantee=title, version=version
        ),
        "## Please\n",
        said["please"],
    ]
    return "\n".join(part for part in parts if part)


def _codes(manifest: Mapping[str, Any], contract: Contract | None) -> str:
    if contract is None or not contract.lists_codes:
        return ""
    shown_only = lists_shown_only(manifest["method"], manifest["parameters"])
    found: str = README.shown_codes if shown_only else README.codes.format(k=manifest["guarantee"].get("k"))
    return found


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
