"""Relations that the manifest says every released row keeps, read and counted from the table alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from leeward.contracts.condensation import COLUMN
from leeward.verify.checks import Check, of_count


def check(relations: Sequence[str], table: pl.DataFrame) -> list[Check]:
    """One check of all stated relations: the rows that break one, and relations that cannot be read."""
    if not relations:
        return []
    unread, wrong = 0, pl.lit(False)
    for text in relations:
        rule = _broken(str(text), table)
        if rule is None:
            unread += 1
        else:
            wrong = wrong | rule.fill_null(False)
    count = int(table.select(wrong.sum()).item()) if unread < len(relations) else 0
    return [
        of_count(
            "relations",
            count + unread,
            f"Every row keeps the {len(relations):,} stated relations.",
            "rows break a stated relation, or relations cannot be read.",
        )
    ]


def _broken(text: str, table: pl.DataFrame) -> pl.Expr | None:
    """True where a row breaks the relation; None where it cannot be read or names no column."""
    condition, _, rest = text.partition("=>") if "<=>" not in text else ("", "", text)
    if not rest:
        condition, rest = "", condition
    inside = pl.lit(True)
    if condition:
        found = _parts(rf"\s*{COLUMN} = {COLUMN}\s*", condition)
        if found is None or found[0] not in table.columns:
            return None
        inside = _parse(table, found[0]) == _number_or_text(table, found[0], found[1])
    found = _parts(rf"\s*{COLUMN} = 0 <=> {COLUMN} = 0\s*", rest)
    if found is not None:
        return _if_columns(table, found, (pl.col(found[0]) == 0) != (pl.col(found[1]) == 0))
    found = _parts(rf"\s*{COLUMN} -> {COLUMN}\s*", rest)
    if found is not None:
        if not set(found) <= set(table.columns):
            return None
        return pl.col(found[1]).drop_nulls().n_unique().over(found[0]) > 1
    found = _parts(rf"\s*{COLUMN} (?:<=|>=|=) {COLUMN}\s*", rest)
    if found is None or found[0] not in table.columns:
        return None
    left = pl.col(found[0])
    right = pl.col(found[1]) if found[1] in table.columns else None
    if right is None:
        try:
            right = pl.lit(float(found[1]))
        except ValueError:
            return None
    sign = re.search(r" (<=|>=|=) ", rest)
    assert sign is not None  # the form has one
    broken = {"<=": left > right, ">=": left < right, "=": left != right}[sign.group(1)]
    return inside & broken


def _parts(form: str, text: str) -> list[str] | None:
    found = re.fullmatch(form, text)
    return None if found is None else [each for each in found.groups() if each is not None]


def _if_columns(table: pl.DataFrame, names: Sequence[str], rule: pl.Expr) -> pl.Expr | None:
    return rule if set(names) <= set(table.columns) else None


def _parse(table: pl.DataFrame, name: str) -> pl.Expr:
    return pl.col(name) if table.schema[name].is_numeric() else pl.col(name).cast(pl.String)


def _number_or_text(table: pl.DataFrame, name: str, value: str) -> pl.Expr:
    if not table.schema[name].is_numeric():
        return pl.lit(value)
    try:
        return pl.lit(float(value))
    except ValueError:
        return pl.lit(None)
