"""The releases that are mutated, and what their parameters could be instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutations.definitions import Truth
from tests.verify.made import Case, patients_with_codes, registry, sample_of

from leeward.methods.censoring import Censoring
from leeward.methods.condensation import Condensation
from leeward.methods.constraints import Constraints
from leeward.methods.disassociation import Disassociation
from leeward.methods.k_anonymity import KAnonymity
from leeward.methods.trajectories import Trajectories
from leeward.methods.visits import Visits
from leeward.randomness import Randomness
from leeward.verify import Source, verify


def cases() -> dict[str, Case]:
    """The releases that are mutated: every method, with the parameters that change what is verified."""
    people, table = patients_with_codes(400), registry(400)
    sample = sample_of(people, 200)
    return {
        "disassociation": Case(patients_with_codes(1200), Disassociation(k=5, m=2)),
        "disassociation, diverse and safe": Case(
            patients_with_codes(1200), Disassociation(k=5, m=2, sensitive=("272.1",), diversity=3, safe=True)
        ),
        "constraints": Case(people, Constraints(k=5, m=2, policy="hierarchy:2")),
        "censoring": Case(sample, Censoring(k=3, scope="global", cap=3, payload=("snp",)), people),
        "censoring by record": Case(sample, Censoring(k=3, cap=3, scope="record", payload=("snp",)), people),
        "trajectories": Case(people, Trajectories(k=5, payload=("snp",))),
        "visits": Case(people, Visits(k=3, payload=("snp",))),
        "visits, containment": Case(people, Visits(k=3, level="containment", merge_visits=True)),
        "condensation": Case(table, Condensation(k=10, strata=("event",), time=("time",))),
        "k-anonymity": Case(table, KAnonymity(k=5, quasi_identifiers=("age", "site"))),
    }


OTHERS: dict[str, Sequence[Any]] = {
    "k": (2, 4, 6, 50),
    "m": (1, 3),
    "policy": ("hierarchy:1", "hierarchy:3", "none", "similarity:10"),
    "partitioning": ("fitted", "settled", "paper"),
    "prior": ("one", "uniform"),
    "diversity": (2, 1000),
    "sensitive": (["250.0"], ["272.1", "250.0"]),
    "algorithm": ("cba", "apriori", "coat", "improved", "condensation", "tfrp", "auto"),
    "scope": ("global", "raise", "record", "groups"),
    "joining": ("size", "thesis"),
    "weights": ([1.0, 0.0],),
    "ages": ("hipaa", "custom", "0-90"),
    "hierarchy": ("icd9", None),
    "clustering": ("cells",),
    "order": ("free",),
    "listed_codes": (),
    "level": ("visit", "containment", "code", "codes"),
    "vocabulary": ("icd10",),
    "key": ("relative",),
    "enforce": ("generalize",),
    "payload": ([], ["age"], ["snp", "pid"]),
    "strata": (["site"], ["event", "site"]),
    "time": (["age"], ["time", "age"]),
    "weight": (0.7, "pilot"),
    "synthesis": ("exact",),
    "draw": ("uniform",),
    "missing": ("impute",),
    "rare": ("keep",),
    "quasi_identifiers": (["age"], ["age", "site", "dose"]),
}
"""Other values that a parameter can have, by name; flags are turned over, numbers are one more."""

FURTHER: dict[str, dict[str, Any]] = {
    "disassociation": {"sensitive": ["250.0"], "diversity": 3},
    "constraints": {"cap": 0.1, "weights": "leaves", "privacy": "listed"},
    "censoring": {"caps": {"250.0": 9}, "payload": ["snp"]},
    "trajectories": {
        "diversity": 2,
        "sensitive": ["250.0"],
        "sensitive_column": "snp",
        "widest_age": 3,
        "order": "free",
        "clustering": "cells",
        "codes": ["250.0"],
    },
    "visits": {
        "merge_visits": True,
        "rescue": True,
        "m": 2,
        "alpha": 0.1,
        "climb_to": 2,
        "population": 10**6,
        "membership_is_secret": "so",
        "payload": ["snp"],
    },
    "condensation": {
        "relations": ["age <= time"],
        "marginals": "nearest",
        "grouping": "kmeans",
        "coarsen_groups": 2,
        "response": ["dose"],
        "cell_rows": 5000,
        "plan": [{"linear": {"response": "dose", "covariates": ["age"]}}],
    },
    "k-anonymity": {"plan": [{"linear": {"response": "dose", "covariates": ["age"]}}]},
}
"""Parameters that a release of the method need not have, with a value that it could."""


def choices(name: str, value: Any) -> Sequence[Any]:
    if isinstance(value, bool):
        return (not value,)
    if name in OTHERS:
        return OTHERS[name]
    return (value + 1, value + 7) if isinstance(value, int | float) else ()


@dataclass
class Made:
    """A sound release with all that its mutations need."""

    name: str
    case: Case
    out: Path
    truth: Truth

    @property
    def method(self) -> str:
        return str(self.case.method.name)

    def source(self) -> Source:
        return self.case.source()


def make(name: str, case: Case, out: Path) -> Made:
    """Protect and write a release with its spec; it must pass its own verification."""
    from leeward.release import write
    from leeward.release.spec import to_yaml
    from leeward.runs.protect import in_memory, spec_of

    more = {} if case.population is None else {"population": case.population}
    anonymized = case.method.protect(case.cohort, randomness=Randomness.of(3), **more)
    everyone = in_memory(case.population)
    spec = spec_of(case.cohort, case.method, "local", 3, ("parquet",), (), everyone, None)
    write(anonymized, out, spec_text=to_yaml(spec))
    found = verify(out, case.source())
    if not found.passed:
        raise AssertionError(f"{name}: {found}")
    return Made(name, case, out, Truth(case, out))
