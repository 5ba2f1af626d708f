"""Linking: somebody knows up to m codes of a patient, has share/ alone and reads codes.parquet as a recipient does."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, combinations_with_replacement
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from tests.laws.cases import cohort_of_events, events

import leeward as lw
from leeward.randomness import Randomness

Share = tuple[dict[str, str | None], list[set[str]]]


def read_share(share: Path) -> Share:
    """The released label of each code (None: suppressed), and the records."""
    codes = pl.read_parquet(share / "data/codes.parquet")
    label_of: dict[str, str | None] = {}
    for row in codes.iter_rows(named=True):
        for code in row["members"] or [row["code"]]:
            label_of[code] = None if row["suppressed"] else row["code"]
    records = pl.read_parquet(share / "data/records.parquet")["codes"].to_list()
    return label_of, [set(record) for record in records]


def candidates(known: Iterable[str], share: Share) -> int:
    """Records that could be the patient's: those with every known code's label, where it was not suppressed."""
    label_of, records = share
    labels = {label for code in known if (label := label_of[code]) is not None}
    return sum(labels <= record for record in records)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"policy": "hierarchy:1"},
        {"algorithm": "ugaclip", "policy": "hierarchy:2"},
        {"algorithm": "apriori"},
    ],
    ids=str,
)
def test_up_to_m_codes_leave_k_candidates(parameters: dict[str, str], tmp_path: Path) -> None:
    method = lw.Constraints(k=4, m=2, **parameters)  # type: ignore[arg-type]  # parameters by name
    share = read_share(lw.protect(cohort_of_events(), method, tmp_path / "out", seed=1).release.share)
    patients = events().group_by("patient").agg(pl.col("code").unique())["code"].to_list()
    least = min(
        candidates(known, share)
        for codes in patients
        for size in (1, 2)
        for known in combinations(codes, size)
    )
    assert least >= 4
    assert any(share[1])  # something is released at all


def test_somebody_who_knows_the_algorithm_rules_out_records_that_fit() -> None:
    """Why the limits name this attacker: all data of four patients that give one release are counted.

    Three records have the label of `b`. Somebody who knows `b` and `c` (suppressed) of a patient finds one of them
    left: had a patient with `a` and `b` had `c` too, the algorithm would have suppressed another code.
    """
    every = [set(s) for size in (1, 2, 3) for s in combinations("abc", size)]
    share: Share = ({"a": "a", "b": "b", "c": None}, [set(), {"b"}, {"a", "b"}, {"a", "b"}])
    known = {"b", "c"}
    assert candidates(known, share) == 3
    may_be, sources = set(), 0
    for source in combinations_with_replacement(every, 4):
        if released(source) == share:
            sources += 1
            may_be |= {frozenset(patient - {"c"}) for patient in source if known <= patient}
    assert sources > 0
    assert may_be == {frozenset({"b"})}  # not one of the two records with `a`


def released(source: Iterable[set[str]]) -> Share:
    """What all sets of two codes at k = 2 turn patients with these codes into, records in order of their codes."""
    rows = [(number, code) for number, codes in enumerate(source) for code in sorted(codes)]
    cohort = lw.read(pl.DataFrame(rows, schema=["patient", "code"], orient="row"))
    made = lw.Constraints(k=2, m=2, algorithm="ugaclip").protect(cohort, randomness=Randomness.of(1))
    tables = {each.path: pa.Table.from_batches(each.batches()).to_pylist() for each in made.tables}
    label_of = {
        code: None if row["suppressed"] else row["code"]
        for row in tables["codes.parquet"]
        for code in row["members"] or [row["code"]]
    }
    records = [set(row["codes"]) for row in tables["records.parquet"]]
    return label_of, sorted(records, key=lambda codes: (len(codes), sorted(codes)))


def test_the_same_attack_singles_out_patients_of_the_unprotected_data() -> None:
    patients = [set(codes) for codes in events().group_by("patient").agg("code")["code"].to_list()]
    share: Share = ({code: code for record in patients for code in record}, patients)
    alone = sum(
        min(candidates(known, share) for known in combinations(sorted(record), min(2, len(record)))) == 1
        for record in patients
    )
    assert alone > len(patients) / 10
