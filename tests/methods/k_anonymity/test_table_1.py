"""Table 1 of Gal and others (2014): six patients, two anonymizations of one level, and what each answers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import polars as pl
import pytest
from tests.cohort.sources import read_table
from tests.oracles.k_anonymity import is_frequent

from leeward.methods.k_anonymity import KAnonymity
from leeward.randomness import Randomness

KNOWN = ("Age", "Insurance", "Zip")
DIAGNOSES = ("HIV", "HEP-B", "SM", "HEP-B", "HEP-B", "Prostate cancer")
SCREENED = tuple("YYNNNN")
ORIGINAL = pl.DataFrame(
    {
        "Age": [54, 55, 60, 60, 62, 62],
        "Insurance": ["No", "No", "HMO", "HMO", "HMO", "PPO"],
        "Zip": [40504, 40509, 40512, 40517, 40524, 40525],
        "Diagnosis": DIAGNOSES,
        "Screening": SCREENED,
    }
)
Label = tuple[tuple[int, int], str, str]
"""An interval of ages, an insurance, a prefix of a post code."""

FIRST = [((54, 55), "No", "4050X"), ((60, 60), "HMO", "4051X"), ((62, 62), "Private", "4052X")]
SECOND = [((54, 60), "Any", "405XX"), ((55, 62), "Any", "405XX"), ((60, 62), "HMO", "405XX")]
TABLES: dict[str, list[Label]] = {
    "A": [FIRST[0], FIRST[0], FIRST[1], FIRST[1], FIRST[2], FIRST[2]],
    "B": [SECOND[0], SECOND[1], SECOND[2], SECOND[0], SECOND[2], SECOND[1]],
}
COVERED = {"Any": {"No", "HMO", "PPO"}, "Private": {"HMO", "PPO"}}


def fits(label: Label, age: int, insurance: str, zip_code: str) -> bool:
    (low, high), insured, prefix = label
    digits = prefix.rstrip("X")
    return low <= age <= high and insurance in COVERED.get(insured, {insured}) and zip_code.startswith(digits)


def groups(labels: list[Label]) -> set[frozenset[int]]:
    return {frozenset(i for i, each in enumerate(labels) if each == label) for label in labels}


def count(labels: list[Label], possible: Callable[[int], bool]) -> tuple[int, int]:
    """The fewest and the most patients whose age may be such a one."""
    ages = [range(low, high + 1) for (low, high), _, _ in labels]
    return sum(all(map(possible, each)) for each in ages), sum(any(map(possible, each)) for each in ages)


@pytest.mark.parametrize("table", ["A", "B"])
def test_both_anonymizations_are_of_one_level(table: str) -> None:
    """Each row's label fits its patient; groups have two patients and two diagnoses."""
    labels = TABLES[table]
    for label, (age, insurance, code, *_) in zip(labels, ORIGINAL.iter_rows(), strict=True):
        assert fits(label, age, insurance, str(code))
    assert [len(group) for group in groups(labels)] == [2, 2, 2]
    assert not any(is_frequent([DIAGNOSES[i] for i in group], 2) for group in groups(labels))


@pytest.mark.parametrize(
    ("table", "under_59", "screened"), [("A", (2, 2), Fraction(1)), ("B", (0, 4), Fraction(1, 2))]
)
def test_the_first_answers_both_queries_and_the_second_neither(
    table: str, under_59: tuple[int, int], screened: Fraction
) -> None:
    """Q1: how many are under 59. Q2: is somebody of 55, without insurance, in 40509, screened."""
    labels = TABLES[table]
    assert count(labels, lambda age: age < 59) == under_59
    candidates = [SCREENED[i] for i, label in enumerate(labels) if fits(label, 55, "No", "40509")]
    assert Fraction(candidates.count("Y"), len(candidates)) == screened


def test_the_product_makes_the_groups_of_the_first() -> None:
    """2-diverse in the diagnosis too; the typical values answer both queries as Table 1(A) does."""
    method = KAnonymity(k=2, quasi_identifiers=KNOWN, sensitive_columns={"Diagnosis": 2})
    made = method.protect(read_table(ORIGINAL), randomness=Randomness.of(1))
    owned, table = (
        pl.from_arrow(next(iter(each.batches()))) for each in (made.custody_tables[0], made.tables[0])
    )
    assert isinstance(owned, pl.DataFrame) and isinstance(table, pl.DataFrame)
    found = owned.group_by("group").agg(pl.col("row") - 1)["row"].to_list()
    assert set(map(frozenset, found)) == groups(TABLES["A"])
    assert (table["Age"] < 59).sum() == 2
    alike = table.filter(pl.col("Age") == 55, pl.col("Insurance") == "No")
    assert alike["Screening"].to_list() == ["Y", "Y"]
