"""What the list of codes of a release (codes.parquet) must be, plainly (see `definitions`)."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
from tests.mutations.copies import manifest_of, parquets, read
from tests.mutations.definitions import Broken, Truth
from tests.mutations.paths import tree_of

LISTED = ["code", "name", "vocabulary", "suppressed"]


ICD = ("ICD-9-CM", "ICD-10-CM")
"""Vocabularies whose names everybody has."""


def list_of(out: Path) -> pl.DataFrame | None:
    """The list; None where a release has none of this form."""
    file = out / "share/data/codes.parquet"
    return read(file) if file.is_file() and "name" in read(file).columns else None


def shown(out: Path) -> set[str]:
    """The codes in the data files, members of generalized ones one by one, mentions as their code too."""
    found: set[str] = set()
    for path in parquets(out):
        table = read(out / path)
        if path.endswith("/codes.parquet"):
            continue
        for name in {"code", "codes"} & set(table.columns):
            column = table[name].explode() if isinstance(table.schema[name], pl.List) else table[name]
            found |= {part for code in column.drop_nulls() for part in code.split("|")}
    return found | {re.sub(r"#\d+$", "", code) for code in found}


def shown_only(manifest: dict[str, Any]) -> bool:
    """Whether no suppressed code may be listed: of a censored sample, and for who knows the algorithm."""
    return bool(manifest["method"] == "censoring" or manifest["parameters"].get("attacker") == "algorithm")


def list_share(out: Path, truth: Truth) -> Broken:
    """Distinct, in order, what is shown listed as shown and nothing else, names those of the classification."""
    table, before = list_of(out), list_of(truth.out)
    if before is None:
        return set()
    if table is None or table.columns != LISTED or dict(table.schema) != dict(before.schema):
        return {"list"}
    codes = table["code"].to_list()
    named = dict(before.filter(pl.col("vocabulary").is_in(ICD)).select(LISTED[:2]).iter_rows())
    rows = table.select(LISTED[:2]).iter_rows()
    if codes != sorted(set(codes)) or any(named.get(code, name) != name for code, name in rows):
        return {"list"}
    content = shown(out)
    above = tree_of(out, "code_hierarchy.csv") if (out / "share/data/code_hierarchy.csv").is_file() else {}

    def is_shown(code: str | None) -> bool:
        while code:
            if code in content:
                return True
            code = above.get(code)
        return False

    wrong = any(is_shown(code) == gone for code, gone in table.select("code", "suppressed").iter_rows())
    wrong |= shown_only(manifest_of(truth.out)) and bool(table["suppressed"].any())
    return {"list"} if wrong or content - set(codes) else set()


def list_truth(out: Path, truth: Truth) -> Broken:
    """And every other code that k patients have, none that fewer have, each of its vocabulary and with its name, which
    who has the list alone cannot tell."""
    table, before = list_of(out), list_of(truth.out)
    if before is None or table is None:
        return set()
    of = {code: rest for code, *rest in before.select(LISTED[:3]).iter_rows()}
    if any(of.get(code, rest) != rest for code, *rest in table.select(LISTED[:3]).iter_rows()):
        return {"list"}
    manifest: dict[str, Any] = manifest_of(truth.out)
    if manifest["parameters"].get("extract") or shown_only(manifest):
        return set() if set(table["code"]) == set(before["code"]) else {"list"}
    people = Counter(code for rows in truth.held.values() for code in {code for _, code, _ in rows})
    frequent = {code for code, n in people.items() if n >= manifest["guarantee"]["k"]}
    listed = set(table["code"])
    return {"list"} if frequent - listed or listed - frequent - shown(out) else set()
