"""Generalized records with demographics: exact demographics and up to m codes leave k candidates."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from tests.attacks.test_whole_patient import NAMES, THOROUGH, K, known_of, small_cohort
from tests.attacks.whole_patient_records import attack
from tests.methods.disassociation.test_whole_patient import people

from leeward.cohort.cohort import Cohort
from leeward.methods.constraints import Constraints
from leeward.randomness import Randomness
from leeward.release import write

COHORTS = 100 if THOROUGH else 15


def released(cohort: Cohort, out: Path, seed: int = 7, **parameters: object) -> Path:
    method = Constraints(**{"k": K, "m": 2, "demographics": NAMES, **parameters})  # type: ignore[arg-type]
    return write(method.protect(cohort, randomness=Randomness.of(seed)), out) / "share"


def policy(folder: Path) -> str:
    file = folder / "policy.txt"
    file.write_text("c0,c1,c2\nc3,c4\n")
    return f"file:{file}"


def test_in_small_cohorts_nobody_has_fewer_than_k_candidates(tmp_path: Path) -> None:
    """Exhaustive: every patient, every set of up to m codes; both ways to bring small classes to k. 15
    cohorts, 100 in the thorough profile."""
    sets = suppressed = 0
    named = policy(tmp_path)
    for seed in range(COHORTS):
        cohort = small_cohort(seed)
        codes = set(cohort.require_events()["code"].unique().to_list())
        further = {"policy": named} if {"c0", "c1", "c2", "c3", "c4"} <= codes else {}
        share = released(
            cohort, tmp_path / str(seed), seed, small=("merge", "suppress")[seed % 2],
            algorithm=("ugaclip", "cba")[seed // 2 % 2], keep={"age": 20, "sex": "exact"} if seed % 3 else None,
            **further,
        )  # fmt: skip
        found = attack(share, known_of(cohort))
        assert found.below_k == 0, seed
        sets += found.sets
        suppressed += pl.read_parquet(share / "data/codes.parquet")["suppressed"].sum()
    assert sets > 30 * COHORTS and suppressed > COHORTS


def test_codes_and_demographics_side_by_side_are_found_out(tmp_path: Path) -> None:
    """Deliberately weak: labels over all patients, to which the demographics of their patients are added."""
    cohort = people(300, seed=3)
    share = released(cohort, tmp_path / "out", keep={"age": "all", "sex": "all"})
    assert attack(share, known_of(cohort)).below_k == 0
    shown = pl.DataFrame({"age": ["*", "*"], "sex": ["F", "M"]}).with_row_index("class")
    records = pl.read_parquet(share / "data/records.parquet")
    sexes = ["F" if n % 25 == 0 else "M" for n in range(records.height)]
    records.with_columns(sex=pl.Series(sexes)).write_parquet(share / "data/records.parquet")
    sizes = pl.Series("records", [sexes.count("F"), sexes.count("M")])
    shown.with_columns(sizes).write_parquet(share / "data/classes.parquet")
    (share / "data/hierarchies/sex.csv").write_text("node,parent\n*,\nF,*\nM,*\n")
    codes = pl.read_parquet(share / "data/codes.parquet")
    pl.concat([codes.with_columns(pl.lit(n).alias("class").cast(pl.Int64)) for n in (0, 1)]).write_parquet(
        share / "data/codes.parquet"
    )
    assert attack(share, known_of(cohort)).below_k > 5


def test_a_release_with_a_smaller_k_than_promised_is_found_out(tmp_path: Path) -> None:
    cohort = people(150)
    share = released(cohort, tmp_path / "out", k=2, keep={"age": 5, "sex": "exact"})
    assert attack(share, known_of(cohort), k=5).below_k > 50
