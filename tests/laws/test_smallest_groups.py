"""A release whose smallest group has exactly k passes; stated as one of k + 1, it fails by every check that counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sklearn.cluster  # noqa: F401  # importing it draws from Python's own generator, which tests must not do
from tests.forging import FORM, by_method, claim
from tests.laws.cases import Case, cases, method_of_case, people

import leeward as lw
from leeward.methods import METHODS
from leeward.randomness import Randomness
from leeward.release import write

K = 3
BY_SEX = {"demographics": ("sex",), "keep": {"sex": "exact"}}
COUNTING: dict[str, tuple[dict[str, Any], set[str]]] = {
    "censoring": ({}, {"k_map", "published_alike", "public_rule"}),
    "censoring with records": ({"scope": "record"}, {"k_map"}),
    "condensation": ({}, {"groups_of_k"}),
    "constraints": ({}, {"sets_of_2"}),
    "disassociation with counts": (
        {"k": 5, "partitioning": "paper"},
        {"cluster_sizes", "km_anonymous_chunks"},
    ),
    "disassociation": (
        {"k": 5, "partitioning": "paper", "attacker": "operation"},
        {"cluster_sizes", "km_anonymous_chunks", "candidates_of_codes", "candidates_of_pairs"},
    ),
    "k-anonymity": ({}, {"groups_of_k", "k_anonymous_rows"}),
    "linked": ({"k": 5}, {"views_of_k"}),
    "linked with pairs": ({"views": ("patients+events+events",)}, {"views_of_k"}),
    "trajectories": ({}, {"k_anonymous"}),
    "visits": ({}, {"visit_sets"}),
    "visits with code": ({"level": "code", "k": 5}, {"codes"}),
    "visits with codes": ({"level": "codes"}, {"known_codes", "known_codes_of_source_visits"}),
    "visits with containment": (
        {"level": "containment", "merge_visits": True},
        {"contained_sets", "contained_source_visits"},
    ),
    "censoring with sexes": ({**BY_SEX, "scope": "raise"}, {"class_people"}),
    "constraints with sexes": (BY_SEX, {"class_sizes"}),
    "disassociation with sexes": (
        {**BY_SEX, "attacker": "operation"},
        {"class_sizes", "cluster_sizes", "km_anonymous_chunks"},
    ),
    "linked with sexes": (BY_SEX, {"class_sizes"}),
    "trajectories with sexes": (BY_SEX, {"class_sizes", "k_anonymous"}),
    "visits with sexes": (BY_SEX, {"class_sizes"}),
}
"""Case -> parameters with which some group has exactly k, and the checks that count groups."""


def with_k_women(case: Case) -> Case:
    """The same with sexes: of those from whom the groups come, the first K are women."""
    everyone = people(case.population or case.cohort)
    assert everyone.patients is not None
    sex = pl.when(pl.int_range(pl.len()) < K).then(pl.lit("f")).otherwise(pl.lit("m"))
    sexes = everyone.patients.with_columns(sex=sex)
    held = sexes.filter(pl.col("patient").is_in(case.cohort.require_events()["patient"].unique().implode()))
    population = None if case.population is None else replace(everyone, patients=sexes)
    return replace(case, cohort=replace(case.cohort, patients=held), population=population)


def refute_one_more(name: str, further: Mapping[str, Any], out: Path) -> set[str]:
    """The method's own checks that fail on a sound release once it is stated as one of k + 1; its form fits."""
    case = cases()[method_of_case(name)]
    if "demographics" in further:
        case = with_k_women(case)
    method = METHODS[method_of_case(name)].parameters_class()(**{**case.parameters, **further})
    write(method.protect(case.cohort, randomness=Randomness.of(3), population=case.population), out)
    assert lw.verify(out, case.cohort, case.population).passed
    claim(out, method.k + 1)
    found = lw.verify(out, case.cohort, case.population)
    # Only a code of exactly k patients that is shown nowhere is listed against the form.
    assert {check.name for check in found.failures} & FORM <= {"frequent_codes"}
    return by_method(found)


@pytest.mark.parametrize("name", COUNTING)
def test_k_passes_and_one_more_fails(name: str, tmp_path: Path) -> None:
    further, checks = COUNTING[name]
    assert refute_one_more(name, further, tmp_path / "out") == checks


@pytest.mark.parametrize("name", METHODS)
def test_of_every_method_some_release_has_exactly_k(name: str, tmp_path: Path) -> None:
    assert any(refute_one_more(name, {"k": k}, tmp_path / str(k)) for k in range(5, 12))
