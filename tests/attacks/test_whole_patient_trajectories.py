"""Trajectories with demographics: somebody knows the exact demographics, and all codes and ages of a patient."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
from tests.attacks.test_trajectories import above, explains, parents
from tests.attacks.test_whole_patient import THOROUGH
from tests.attacks.whole_patient import Release
from tests.methods.trajectories.test_whole_patient import CODES, cohort_of, rows_of

from leeward.cohort.cohort import Cohort
from leeward.methods.trajectories import Trajectories
from leeward.randomness import Randomness
from leeward.release import write
from leeward.vocabulary import load

COHORTS = 100 if THOROUGH else 15
K = 3


def smallest(share: Path, cohort: Cohort) -> int:
    """Of everybody: the fewest records equal to one that may be the patient's (0: no record may be)."""
    data = share / "data"
    # The published hierarchy lists what k patients have; the vocabulary that it is a part of is public.
    codes = {node: parent or "" for node, parent in load("icd9").hierarchy(CODES).to_pairs()}
    ages = parents(data / "age_hierarchy.csv")
    sexes = Release({}, {}, {}, {"sex": parents(data / "hierarchies/sex.csv")})
    pairs = pl.read_parquet(data / "trajectories.parquet").sort("record", "position")
    told = {
        record: tuple(zip(rows["code"], rows["age"], strict=True))
        for (record,), rows in pairs.group_by("record", maintain_order=True)
    }
    shown = Counter(
        (sex, told.get(record, ())) for record, sex in pl.read_parquet(data / "records.parquet").rows()
    )
    assert cohort.patients is not None
    sex_of = dict(cohort.patients.select("patient", "sex").rows())
    least = sum(shown.values())
    for (patient,), rows in cohort.require_events().group_by("patient"):
        known = [
            (above(str(code), codes), above(str(int(age)), ages))
            for code, age in zip(rows["code"], rows["age"], strict=True)
        ]
        fitting = [
            count
            for (sex, pairs_shown), count in shown.items()
            if sexes.may_be("sex", sex, sex_of[patient]) and explains(list(pairs_shown), known)
        ]
        least = min([least, *fitting]) if fitting else 0
    return least


def released(cohort: Cohort, out: Path, seed: int, **parameters: object) -> Path:
    method = Trajectories(**{"k": K, "demographics": ("sex",), "keep": {"sex": "exact"}, **parameters})  # type: ignore[arg-type]
    return write(method.protect(cohort, randomness=Randomness.of(seed)), out) / "share"


def test_in_small_cohorts_everybody_has_k_records_that_look_alike(tmp_path: Path) -> None:
    """15 cohorts, 100 in the thorough profile; sometimes a class is too small by itself."""
    for seed in range(COHORTS):
        cohort = cohort_of(rows_of(seed, women=2 + seed % 7, men=9))
        further = {"clustering": "cells"} if seed % 3 == 2 else {}
        share = released(
            cohort, tmp_path / str(seed), seed, small=("merge", "suppress")[seed % 2], **further
        )  # fmt: skip
        assert smallest(share, cohort) >= K, seed


def test_demographics_beside_a_release_without_them_are_found_out(tmp_path: Path) -> None:
    """Deliberately weak: groups over all patients, to which the sexes of their patients are added."""
    cohort = cohort_of(rows_of(5, women=20, men=25))
    out = tmp_path / "out"
    share = released(cohort, out, 5, keep={"sex": "all"})
    assert smallest(share, cohort) >= K
    assert cohort.patients is not None
    place = pl.read_parquet(out / "custody/data/records.parquet").sort("record")["place"]
    sexes = cohort.patients.sort("patient")["sex"].gather(place)
    records = pl.read_parquet(share / "data/records.parquet").with_columns(sex=sexes)
    records.write_parquet(share / "data/records.parquet")
    (share / "data/hierarchies/sex.csv").write_text("node,parent\n*,\nF,*\nM,*\n")
    assert smallest(share, cohort) < K
