"""Trajectories inside classes of demographics (docs/methods/whole-patient.md#methods)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import leeward as lw
from leeward.cohort import read
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.trajectories import Trajectories, parts
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

CODES = ("250.00", "250.01", "401.9")
FOUR = [
    ("w1", "250.00", 30, "F"),
    ("w2", "250.01", 31, "F"),
    ("m1", "250.00", 30, "M"),
    ("m2", "250.01", 30, "M"),
]


def cohort_of(rows: list[tuple[str, str, int, str]]) -> Cohort:
    events = pl.DataFrame([row[:3] for row in rows], schema=["patient", "code", "age"], orient="row")
    sexes = pl.DataFrame({"patient": [r[0] for r in rows], "sex": [r[3] for r in rows]}).unique()
    found = read(events, columns={"patient": "patient", "code": "code", "age": "age"}, vocabulary="none")
    return Cohort(found.events, sexes, name="made up", vocabulary="icd9")


def protect(cohort: Cohort, **parameters: Any) -> Anonymized:
    sexes = {"demographics": ("sex",), "keep": {"sex": "exact"}}
    method = Trajectories(**{"k": 2, "clustering": "alignment", **sexes, **parameters})
    return method.protect(cohort, randomness=Randomness.of(7))


def published(made: Anonymized) -> Counter[tuple[str, ...]]:
    """How many records have these demographics and this trajectory (codes and ages, in order)."""
    frames = {t.path: pl.DataFrame(pa.Table.from_batches(t.batches(), t.schema)) for t in made.tables}
    pairs = frames["trajectories.parquet"].sort("record", "position")
    told = pairs.group_by("record").agg(pl.col("code").cast(pl.String), pl.col("age").cast(pl.String))
    rows = frames["records.parquet"].join(told, on="record", how="left").sort("record")
    return Counter(
        (sex, *(f"{c} {a}" for c, a in zip(codes or (), ages or (), strict=True)))
        for sex, codes, ages in rows.select("sex", "code", "age").rows()
    )


def test_worked_example_of_four_patients() -> None:
    """Without demographics w1 and m1 are published as they are; with the sex, women are joined with women alone."""
    made = protect(cohort_of(FOUR))
    assert published(made) == {("F", "250.0 30-31"): 2, ("M", "250.0 30"): 2}
    everybody = protect(cohort_of(FOUR), keep={"sex": "all"})
    assert published(everybody) == {("*", "250.00 30"): 2, ("*", "250.01 30-31"): 2}


def rows_of(seed: int = 3, women: int = 8, men: int = 12) -> list[tuple[str, str, int, str]]:
    draw = Randomness.of(seed).stream("made")
    found = []
    for number in range(women + men):
        for _ in range(int(draw.integers(1, 4))):
            age = int(draw.integers(30, 44))
            found.append(
                (f"p{number:02}", CODES[int(draw.integers(0, 3))], age, "F" if number < women else "M")
            )
    return found


@pytest.mark.parametrize("clustering", ["alignment", "cells"])
def test_each_trajectory_is_shared_by_k_records_of_its_class(clustering: str) -> None:
    made = protect(cohort_of(rows_of()), k=3, clustering=clustering)
    counts = published(made)
    assert min(counts.values()) >= 3
    assert Counter({s: sum(n for key, n in counts.items() if key[0] == s) for s in "FM"}) == {"F": 8, "M": 12}


def test_a_class_larger_than_the_largest_part_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LARGEST", 12)
    made = protect(cohort_of(rows_of(women=20, men=45)), k=3)
    assert made.custody["partitions"] >= 5 and min(published(made).values()) >= 3


def test_levels_that_are_not_kept_are_searched_by_clustering() -> None:
    made = protect(cohort_of(rows_of()), k=3, keep=None)
    points = {each["candidate"]: each for each in made.custody["demographics_search"]}
    assert set(points) == {"sex: exact", "sex: all"}
    assert points["sex: exact"]["loss"] == 0 and points["sex: all"]["loss"] == 1
    assert 0 < points["sex: all"]["lost"] <= points["sex: exact"]["lost"] <= 1
    assert {key[0] for key in published(made)} == {"F", "M"}


def test_patients_left_out_leave_nothing(tmp_path: Path) -> None:
    """The two of unknown sex are not released, nor is the code that only they have; measures and verifier know it."""
    rows = [*rows_of(), ("x1", "585.9", 35, "X"), ("x2", "585.9", 36, "X")]
    cohort = cohort_of(rows)
    method = Trajectories(k=3, demographics=("sex",), keep={"sex": "exact"}, small="drop")
    result = lw.protect(cohort, method, tmp_path / "out", seed=1)
    assert result.release.records == 20 and result.verification.passed
    text = (result.release.share / "data/code_hierarchy.csv").read_text()
    assert "585.9" not in text and result.measures["method"]["patients_left_out"] == 2
    questions = result.measures["demographics"]
    assert questions["outside_bounds"] == 0 and questions["classes"] == 2
    assert "Demographics and codes together" in result.report.read_text(encoding="utf-8")


def test_diversity_holds_in_every_class() -> None:
    rows = rows_of(women=12, men=12)
    cohort = cohort_of(rows)
    assert cohort.patients is not None
    order = cohort.patients.sort("patient")
    people = order.with_columns(stage=pl.Series(["I", "II", "III"] * 8))
    cohort = Cohort(cohort.events, people, name="made up", vocabulary="icd9")
    further = {"payload": ("stage",), "sensitive_column": "stage", "diversity": 2}
    assert min(published(protect(cohort, k=4, **further)).values()) >= 4
    one_sided = people.with_columns(stage=pl.when(pl.col("sex") == "F").then(pl.lit("I")).otherwise("stage"))
    with pytest.raises(GuaranteeUnreachable, match="sensitive column"):
        protect(Cohort(cohort.events, one_sided, name="made up", vocabulary="icd9"), k=4, **further)


def test_a_column_is_known_or_payload() -> None:
    with pytest.raises(BadInput, match="is in `demographics` and in `payload`"):
        Trajectories(k=2, demographics=("sex",), payload=("sex",))
