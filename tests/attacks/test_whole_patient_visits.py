"""Exact demographics and a visit leave k records in the product's releases of records, fewer in weak ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.attacks.whole_patient_visits import Known, attack_codes, attack_sets
from tests.methods.visits.frames import cohort

from leeward.cohort.cohort import Cohort
from leeward.methods.visits import Visits
from leeward.randomness import Randomness
from leeward.release import write

K, COHORTS = 3, 100
NAMES = ("age", "sex")


def small_cohort(seed: int) -> Cohort:
    """Nine to sixteen patients of few ages with one or two visits of one to three of five codes."""
    draw = np.random.Generator(np.random.Philox(key=seed))
    n = int(draw.integers(9, 17))
    codes = np.array(["250.0", "250.1", "401.0", "401.1", "428.0"])
    records = {
        f"p{i:02d}": [
            draw.choice(codes, int(draw.integers(1, 4)), False).tolist() for _ in range(draw.integers(1, 3))
        ]
        for i in range(n)
    }
    ages = [None if age == 60 else int(age) for age in draw.integers(3, 7, n) * 10]
    people = pl.DataFrame(
        {"patient": list(records), "age": pl.Series(ages, dtype=pl.Int64), "sex": draw.choice(["F", "M"], n)}
    )
    return cohort(records, people)


def released(source: Cohort, out: Path, **parameters: Any) -> tuple[Path, list[Known]]:
    """The share, and what a neighbour knows: everybody's exact demographics, and each of their visits."""
    method = Visits(**{"k": K, "demographics": NAMES, **parameters})
    write(method.protect(source, randomness=Randomness.of(1)), out)
    record = dict(pl.read_parquet(out / "custody/data/patients.parquet").select("patient", "record").rows())
    assert source.patients is not None
    values = {row["patient"]: row for row in source.patients.rows(named=True)}
    visits = source.require_events().group_by("patient", "visit").agg(pl.col("code").cast(pl.String))
    known = [
        (
            {n: "(missing)" if values[p][n] is None else str(values[p][n]) for n in NAMES},
            record[p],
            frozenset(codes),
        )
        for p, codes in visits.select("patient", "code").rows()
        if p in record
    ]
    return out / "share", known


def test_in_100_small_cohorts_every_visit_has_k_records_of_the_persons_demographics(tmp_path: Path) -> None:
    tried = 0
    for seed in range(COHORTS):
        small = ("merge", "suppress", "merge")[seed % 3]
        share, known = released(small_cohort(seed), tmp_path / str(seed), small=small, keep={"age": 10})
        found = attack_sets(share, known, K)
        assert found.below_k == 0
        tried += found.known
    assert tried > COHORTS


@pytest.mark.parametrize("level", ["containment", "visit"])
def test_what_merged_records_show_of_a_visit_has_k_records(level: str, tmp_path: Path) -> None:
    for seed in range(20):
        share, known = released(
            small_cohort(200 + seed), tmp_path / str(seed), level=level, merge_visits=True, keep={"age": 20}
        )
        assert attack_codes(share, known, K).below_k == 0


def test_demographics_beside_visits_that_were_protected_without_them_are_found_out(tmp_path: Path) -> None:
    """Deliberately weak: the labels are put beside records whose visits k patients of all classes share."""
    few = 0
    for seed in range(10):
        source = small_cohort(300 + seed)
        share, known = released(source, tmp_path / str(seed), keep={"age": "all", "sex": "all"})
        assert attack_sets(share, known, K).below_k == 0
        file = share / "data/records.parquet"
        sexes = {record: person["sex"] for person, record, _ in known}
        table = pl.read_parquet(file)
        table.with_columns(sex=pl.Series([sexes[r] for r in table["record"]])).write_parquet(file)
        few += attack_sets(share, known, K).below_k
    assert few > 10
