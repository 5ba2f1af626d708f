"""The attacker of linked tables: knows a patient's exact demographics and one row of every table of a view.

    python tests/attacks/linked.py share/

Reads `share/` alone; `attack` takes what is known of each patient. Candidates are the patients of classes that the
demographics fit who show the known row; a row that nobody there shows excludes nobody.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import polars as pl

Row = tuple[int | None, str]
"""Day (where the release has days) and code."""


@dataclass(frozen=True)
class Attack:
    """Of `sets` pieces of knowledge, those with fewer than k candidates, and the smallest number."""

    sets: int
    below_k: int
    smallest: int


def may_be(label: str, value: str) -> bool:
    """Whether a patient with this value may have the label."""
    span, number = re.fullmatch(r"(\d+)-(\d+)", label), re.fullmatch(r"\d+", value)
    if span and number:
        return int(span[1]) <= int(value) <= int(span[2])
    return label in ("*", value)


def pieces(rows: Iterable[Row], view: str, step: int | None) -> set[object]:
    """What somebody who can do the join of a view may know of a patient with these rows."""
    cut = [(day // step * step if step and day is not None else None, code) for day, code in rows]
    if view == "patients+events":
        return {code for _, code in cut}
    if view == "patients+visits":
        return {day for day, _ in cut}
    if view == "patients+visits+events":
        return set(cut)
    return set(combinations(sorted({code for _, code in cut}), 2))


def attack(share: Path, known: Iterable[tuple[Mapping[str, str], list[Row]]], k: int | None = None) -> Attack:
    """Look up every row of every view of each patient."""
    manifest = json.loads((share / "release.json").read_text())
    least = manifest["guarantee"]["k"] if k is None else k
    step, views = manifest["parameters"].get("days"), manifest["parameters"]["views"]
    data = share / "data"
    rows: dict[int, list[Row]] = {}
    events = pl.read_parquet(data / "events.parquet").join(
        pl.read_parquet(data / "visits.parquet"), on=["record", "visit"]
    )
    for row in events.rows(named=True):
        rows.setdefault(row["record"], []).append((row.get("day"), row["code"]))
    people = pl.read_parquet(data / "patients.parquet").rows(named=True)
    shown = {
        view: {each["record"]: pieces(rows.get(each["record"], []), view, step) for each in people}
        for view in views
    }
    counts = []
    for demographics, own in known:
        fitting = [
            each["record"]
            for each in people
            if all(may_be(each[name], value) for name, value in demographics.items())
        ]
        for view in views:
            for piece in pieces(own, view, step):
                holders = sum(piece in shown[view][record] for record in fitting)
                counts.append(holders or len(fitting))
    return Attack(len(counts), sum(n < least for n in counts), min(counts, default=0))
