"""Linking: somebody knows all codes and ages of a patient, in order, has share/ and reads its hierarchies."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl
import pytest
from tests.laws.cases import cohort_of_events, events

import leeward as lw

Pair = tuple[str, str]


def parents(file: Path) -> dict[str, str]:
    with file.open(newline="", encoding="utf-8") as text:
        return {row["node"]: row["parent"] for row in csv.DictReader(text)}


def above(value: str, parent: dict[str, str]) -> set[str]:
    """A value and all nodes above it."""
    found = {value}
    while value := parent.get(value, ""):
        found.add(value)
    return found


def explains(published: list[Pair], known: list[tuple[set[str], set[str]]]) -> bool:
    """Whether each published pair can be one of the patient's, each of them used once (greedy over few pairs)."""

    def place(rest: list[Pair], left: frozenset[int]) -> bool:
        if not rest:
            return True
        code, age = rest[0]
        fits = (n for n in left if code in known[n][0] and age in known[n][1])
        return any(place(rest[1:], left - {n}) for n in fits)

    return place(published, frozenset(range(len(known))))


@pytest.mark.parametrize(
    "parameters", [{}, {"clustering": "alignment"}, {"clustering": "alignment", "joining": "thesis"}], ids=str
)
def test_every_patient_has_k_records_that_look_alike(parameters: dict[str, object], tmp_path: Path) -> None:
    method = lw.Trajectories(k=4, **parameters)  # type: ignore[arg-type]  # parameters by name
    data = lw.protect(cohort_of_events(), method, tmp_path / "out", seed=1).release.share / "data"
    codes, ages = parents(data / "code_hierarchy.csv"), parents(data / "age_hierarchy.csv")
    pairs = pl.read_parquet(data / "trajectories.parquet").sort("record", "position")
    published = {
        record: list(zip(rows["code"], rows["age"], strict=True))
        for (record,), rows in pairs.group_by("record", maintain_order=True)
    }
    empty = pl.read_parquet(data / "records.parquet").height - len(published)
    for _, rows in events().unique(["patient", "code", "age"]).group_by("patient"):
        known = [
            (above(code, codes), above(str(age), ages))
            for code, age in zip(rows["code"], rows["age"], strict=True)
        ]
        fitting = [tuple(each) for each in published.values() if explains(each, known)]
        assert fitting or empty >= 4
        # Whatever the attacker takes for the patient's trajectory, at least k records are published with it.
        assert all(fitting.count(each) >= 4 for each in set(fitting))


def test_the_same_attack_singles_out_patients_of_the_unprotected_data() -> None:
    rows = events().unique(["patient", "code", "age"]).sort("age", "code")
    whole = [
        tuple(zip(r["code"], r["age"], strict=True)) for _, r in rows.group_by("patient", maintain_order=True)
    ]
    assert sum(whole.count(each) == 1 for each in whole) > len(whole) / 2
