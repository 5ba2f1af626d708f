"""Knowing exact demographics and a row of every table of a view finds k patients, fewer in weak releases."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
from tests.attacks.linked import Row, attack
from tests.forging import write_parquet
from tests.methods.linked.test_linked import people

from leeward.cohort.cohort import Cohort
from leeward.methods.linked import Linked
from leeward.methods.linked.parameters import VIEWS
from leeward.randomness import Randomness
from leeward.release import write

COHORTS = 100 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 8
K = 3


def known_of(cohort: Cohort, names: tuple[str, ...]) -> list[tuple[dict[str, str], list[Row]]]:
    """What a neighbour knows: demographics, and every code with its day since the first visit."""
    assert cohort.patients is not None
    values = {
        row["patient"]: {name: str(row[name]) for name in names} for row in cohort.patients.rows(named=True)
    }
    days = (pl.col("date") - pl.col("date").min().over("patient")).dt.total_days()
    rows: dict[str, list[Row]] = {}
    for patient, day, code in (
        cohort.require_events().select("patient", days, pl.col("code").cast(pl.String)).rows()
    ):
        rows.setdefault(patient, []).append((day, code))
    return [(values[patient], held) for patient, held in rows.items()]


def test_every_row_of_every_view_of_every_patient(tmp_path: Path) -> None:
    for seed in range(COHORTS):
        cohort, names = people(20 + 5 * seed % 40, seed=seed), ("sex", "age")[: 1 + seed % 2]
        method = Linked(k=K, views=VIEWS[seed % 4 :], days=None if seed % 4 == 3 else 60, demographics=names)
        share = write(method.protect(cohort, randomness=Randomness.of(seed)), tmp_path / str(seed)) / "share"
        found = attack(share, known_of(cohort, names))
        assert found.below_k == 0 and found.smallest >= K and found.sets > 20


def test_tables_that_are_each_k_anonymous_but_not_joined(tmp_path: Path) -> None:
    """Deliberately weak: protected without demographics, which are then put beside the patients' numbers."""
    cohort = people(60, seed=2)
    made = Linked(k=K).protect(cohort, randomness=Randomness.of(1))
    out = write(made, tmp_path / "out")
    assert cohort.patients is not None and cohort.patients["sex"].value_counts()["count"].min() >= K  # type: ignore[operator]
    place = pl.read_parquet(out / "custody/data/records.parquet").sort("record")["place"]
    patients = cohort.patients.sort("patient")[place.to_list()].select(
        pl.int_range(pl.len()).alias("record"), "sex", pl.col("age").cast(pl.String)
    )
    assert attack(out / "share", known_of(cohort, ())).below_k == 0
    write_parquet(patients, out / "share/data/patients.parquet")
    assert attack(out / "share", known_of(cohort, ("sex", "age"))).below_k > 20
