"""A small cohort for each method, on which every law is tried.

A new method has the usual case: k = 3 and the cohort of its kind. One that needs more adds a case here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from leeward.cohort import Cohort, read
from leeward.methods import METHODS

CODES = [f"{category}.{n}" for category in (250, 272, 401, 414, 428, 493) for n in range(3)]
PATIENTS = 60


def events(patients: int = PATIENTS) -> pl.DataFrame:
    """One to three visits a patient with one to four codes, the first codes being the most frequent."""
    draws = np.random.Generator(np.random.Philox(1))
    weights = 1 / np.arange(1, len(CODES) + 1)
    rows = []
    for patient in range(patients):
        age = int(draws.integers(30, 80))
        for visit in range(int(draws.integers(1, 4))):
            drawn = draws.choice(len(CODES), int(draws.integers(1, 5)), False, weights / weights.sum())
            rows += [
                (f"p{patient:02}", f"p{patient:02}-{visit}", CODES[int(code)], age + visit) for code in drawn
            ]
    return pl.DataFrame(rows, schema=["patient", "visit", "code", "age"], orient="row")


def table(rows: int = PATIENTS) -> pl.DataFrame:
    """A table of patients with numbers and levels."""
    draws = np.random.Generator(np.random.Philox(2))
    return pl.DataFrame(
        {
            "age": draws.integers(30, 90, rows),
            "sex": draws.choice(["f", "m"], rows),
            "stage": draws.choice(["I", "II", "III"], rows),
            "days": draws.integers(1, 4000, rows),
            "died": draws.integers(0, 2, rows),
        }
    )


def cohort_of_events() -> Cohort:
    """Codes with visits and ages."""
    columns = {"patient": "patient", "code": "code", "visit": "visit", "age": "age"}
    return read(events(), columns=columns, vocabulary="icd9")


def cohort_of_table() -> Cohort:
    """A table of patients."""
    return read(table(), format="table")


def sample() -> Cohort:
    """A third of the patients of `cohort_of_events`."""
    part = events().filter(pl.col("patient") < "p20")
    columns = {"patient": "patient", "code": "code", "visit": "visit", "age": "age"}
    return read(part, columns=columns, vocabulary="icd9")


def people(cohort: Cohort) -> Cohort:
    """The same with an age and a sex of each patient; of one no age is known."""
    patients = cohort.require_events()["patient"].unique().sort()
    draws = np.random.Generator(np.random.Philox(3))
    ages = [None, *draws.integers(20, 80, len(patients) - 1).tolist()]
    sexes = draws.choice(["f", "m"], len(patients)).tolist()
    return replace(cohort, patients=pl.DataFrame({"patient": patients, "age": ages, "sex": sexes}))


@dataclass(frozen=True)
class Case:
    """What a method is run with. `too_many` is a k above the data."""

    cohort: Cohort
    parameters: Mapping[str, Any]
    population: Cohort | None = None
    too_many: Mapping[str, Any] = field(default_factory=lambda: {"k": PATIENTS + 1})


def cases() -> dict[str, Case]:
    """Method -> its case."""
    codes, patients = cohort_of_events(), cohort_of_table()
    usual = {
        name: Case(patients if method.source == "table" else codes, {"k": 3})
        for name, method in METHODS.items()
    }
    return usual | {
        "censoring": Case(sample(), {"k": 3, "cap": 2}, population=codes),
        "condensation": Case(patients, {"k": 5, "strata": ("died",), "time": ("days",)}),
        "constraints": Case(codes, {"k": 3, "m": 2, "policy": "hierarchy:1"}),
        "disassociation": Case(codes, {"k": 3, "m": 2, "reconstructions": 1}),
    }


CLASSED = ("censoring", "constraints", "disassociation", "trajectories", "visits")
"""Methods that release demographics beside codes."""

DEMOGRAPHICS = {"demographics": ("age", "sex"), "keep": {"age": 20, "sex": "exact"}}


def classed_cases() -> dict[str, Case]:
    """`METHOD with demographics` -> the method's case with the demographics of the patients."""
    found = {}
    for name, case in cases().items():
        if name not in CLASSED:
            continue
        everyone = people(case.population or case.cohort)
        own = case.cohort.require_events()["patient"].unique()
        assert everyone.patients is not None
        held = everyone.patients.filter(pl.col("patient").is_in(own.implode()))
        scope = {"scope": "raise"} if name == "censoring" else {}
        found[f"{name} with demographics"] = replace(
            case,
            cohort=replace(case.cohort, patients=held),
            population=None if case.population is None else everyone,
            parameters={**case.parameters, **DEMOGRAPHICS, **scope},
        )
    return found


def method_of_case(name: str) -> str:
    """The method of a case."""
    return name.partition(" with ")[0]
