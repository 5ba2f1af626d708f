"""What algorithms tell beyond the files, counted over all data of a few patients (docs/studies/algorithm-known.md)."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.attacks.algorithm_known import (
    Told,
    World,
    aged,
    condensed,
    generalized,
    joined,
    mean_groups,
    of_visits,
    owners,
    patients_with_visits,
    populations,
    single_pairs,
    tell,
)
from tests.oracles.constraints import subsets

TOLD = {
    "cba": (lambda: generalized("cba", groups=("ab",)), 3, Fraction(6, 11)),
    "ugaclip": (lambda: generalized("ugaclip"), 1, Fraction(1)),
    "apriori": (lambda: generalized("apriori", groups=("ab",)), 0, Fraction(1, 3)),
    "level code": (lambda: of_visits("code", False, patients_with_visits("ab", 2), 5, 2), 10, Fraction(1)),
    "containment": (
        lambda: of_visits("containment", True, patients_with_visits("ab", 2), 5, 2),
        2,
        Fraction(1),
    ),
    "codes": (lambda: of_visits("codes", False, patients_with_visits("abc", 1), 4, 2), 15, Fraction(1)),
    "one code": (lambda: joined("patients+events"), 12, Fraction(6, 11)),
    "two codes": (lambda: joined("patients+events+events"), 15, Fraction(1)),
    "alignment": (lambda: aged("alignment", single_pairs(["a1", "a2", "b1"], ["1"])), 0, Fraction(1, 3)),
    "cells": (lambda: aged("cells", single_pairs(["a1", "a2", "b1"], ["1"])), 0, Fraction(1, 3)),
    "k-anonymity": (lambda: mean_groups(4, k=3), 0, Fraction(1, 3)),
    "condensation": (lambda: condensed(patients=4, k=2), 72, Fraction(1)),
}
"""World, known sets with fewer than k candidate records, and the surest guess at one."""


@pytest.mark.parametrize(("world", "below_k", "surest"), TOLD.values(), ids=TOLD)
def test_what_each_algorithm_tells_is_what_its_page_says(
    world: World, below_k: int, surest: Fraction
) -> None:
    found: Told = tell(world())  # type: ignore[operator]  # made here, not when tests are collected
    assert (found.below_k, found.surest) == (below_k, surest)
    assert found.below_k_files == 0 and found.pieces > 20


def test_the_count_finds_an_algorithm_that_tells_everything() -> None:
    """Deliberately weak: records as they are, in an operation that might have suppressed any code."""
    honest = generalized("cba", patients=4, k=2)
    weak = World(
        2, 4, honest.kinds, lambda source: [([tuple(sorted(kind)) for kind in source], None)], subsets_of_two,
        lambda kind, record, beside: set(record) <= kind,
    )  # fmt: skip
    assert tell(weak).below_k > 100 * tell(honest).below_k >= 0
    assert tell(weak).surest == 1


def subsets_of_two(kind: frozenset[str]) -> list[frozenset[str]]:
    return subsets(kind, 2)


def of_all(
    scope: str, k: int, people: int = 6, *, frequent_listed: bool = False
) -> tuple[int, int, Fraction]:
    """Records that fewer than k people contain, or can be of by the algorithm, and the surest guess at an owner."""
    found = [
        each
        for population in populations(people)
        for each in owners(scope, population, people // 2, k, frequent_listed=frequent_listed)
    ]
    assert len(found) > 600
    return sum(n < k for n, *_ in found), sum(n < k for _, n, _ in found), max(best for *_, best in found)


def test_groups_of_a_censored_sample_leave_k_owners_to_who_knows_everybody_and_the_algorithm() -> None:
    assert of_all("groups", 2) == (0, 0, Fraction(1, 2))


def test_a_list_of_codes_that_k_of_the_sample_have_told_who_is_in_it() -> None:
    """Why `codes.parquet` of a censored sample lists shown codes alone."""
    assert of_all("groups", 2, frequent_listed=True) == (0, 16, Fraction(1))


@pytest.mark.parametrize("scope", ["global", "raise", "record"])
def test_other_scopes_do_not_as_their_limits_say(scope: str) -> None:
    contain, own, surest = of_all(scope, 2, 5)
    assert contain == 0 and own > 150 and surest == 1
