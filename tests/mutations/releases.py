"""The releases that are mutated, and what their parameters could be instead."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
from tests.mutations.definitions import Truth
from tests.verify.made import CODES, Case, patients_with_codes, registry, sample_of

from leeward.cohort.cohort import Cohort
from leeward.methods.censoring import Censoring
from leeward.methods.condensation import Condensation
from leeward.methods.constraints import Constraints
from leeward.methods.disassociation import Disassociation
from leeward.methods.k_anonymity import KAnonymity
from leeward.methods.linked import Linked
from leeward.methods.trajectories import Trajectories
from leeward.methods.visits import Visits
from leeward.verify import Source, verify
from leeward.verify.disassociation import in_parts

IN_PARTS = "disassociation, in parts"
"""Verified as releases of millions are: some trees at a time."""


def verifying(name: str) -> AbstractContextManager[Any]:
    """While a release of this name is verified."""
    small = {"MOST_AT_ONCE": 0, "RECORDS_A_PART": 400}
    return patch.multiple(in_parts, **small) if name == IN_PARTS else nullcontext()


def cases() -> dict[str, Case]:
    """The releases that are mutated: every method, with the parameters that change what is verified."""
    people, table, many = with_people(400), registry(400), with_people(1200)
    sample = sample_of(people, 200)
    asked: dict[str, Any] = {"demographics": ("age", "sex"), "keep": {"age": 20, "sex": "exact"}}
    linked = dated(people)
    return {
        "disassociation": Case(many, Disassociation(k=5, m=2)),
        "disassociation, diverse and safe": Case(
            many, Disassociation(k=5, m=2, sensitive=("272.1",), diversity=3, safe=True)
        ),
        "disassociation, rules known": Case(people, Disassociation(k=5, m=2, attacker="rules")),
        "disassociation, algorithm known": Case(people, Disassociation(k=5, m=2, attacker="algorithm")),
        IN_PARTS: Case(many, Disassociation(k=5, m=2)),
        "disassociation, nested": Case(many, Disassociation(k=5, m=2, nested=True)),
        "disassociation, demographics": Case(
            many, Disassociation(k=5, m=2, payload=("snp", "region"), **asked)
        ),
        "constraints": Case(people, Constraints(k=5, m=2, policy="hierarchy:2")),
        "constraints, cba": Case(people, Constraints(k=5, m=2, policy="hierarchy:2", algorithm="cba")),
        "constraints, demographics": Case(people, Constraints(k=5, m=2, policy="hierarchy:2", **asked)),
        "censoring": Case(sample, Censoring(k=3, scope="global", cap=3, payload=("snp",)), people),
        "censoring by record": Case(sample, Censoring(k=3, cap=3, scope="record", payload=("snp",)), people),
        "censoring by groups": Case(sample, Censoring(k=3, cap=3, payload=("snp",)), people),
        "censoring, raised": Case(sample, Censoring(k=3, cap=3, scope="raise", payload=("snp",)), people),
        "censoring, demographics": Case(
            sample, Censoring(k=3, cap=3, scope="raise", payload=("snp",), **asked), people
        ),
        "trajectories": Case(people, Trajectories(k=5, clustering="alignment", payload=("snp",))),
        "trajectories, cells": Case(people, Trajectories(k=5, payload=("snp",))),
        "trajectories, demographics": Case(people, Trajectories(k=5, payload=("snp",), **asked)),
        "visits": Case(people, Visits(k=3, payload=("snp",))),
        "visits, containment": Case(people, Visits(k=3, level="containment", merge_visits=True)),
        "visits, codes": Case(people, Visits(k=3, level="codes", payload=("snp",))),
        "visits, code": Case(people, Visits(k=3, level="code", rescue=True, payload=("snp",))),
        "visits, generalized": Case(people, Visits(k=3, enforce="generalize", payload=("snp",))),
        "visits, demographics": Case(people, Visits(k=3, payload=("snp",), **asked)),
        "cohort": Case(people, Visits(k=3, payload=("snp",))),
        "condensation": Case(table, Condensation(k=10, strata=("event",), time=("time",))),
        "condensation, coarse times": Case(
            table, Condensation(k=10, strata=("event",), time=("time",), coarsen_time=True)
        ),
        "k-anonymity": Case(table, KAnonymity(k=5, quasi_identifiers=("age", "site"))),
        "linked": Case(linked, Linked(k=3)),
        "linked, days and demographics": Case(
            linked, Linked(k=3, views=("patients+visits+events",), days=180, **asked)
        ),
        "catalogue": Case(people, None),
    }


def with_people(n: int) -> Cohort:
    """Patients with codes, ages, sexes and regions."""
    made = patients_with_codes(n)
    assert made.patients is not None
    draws = np.random.Generator(np.random.Philox(key=3))
    ages, sexes = draws.integers(30, 70, n), np.array(["F", "M"])[draws.integers(0, 2, n)]
    regions = pl.Series("region", [f"R{value}" for value in draws.integers(0, 12, n).tolist()])
    with_values = made.patients.with_columns(regions, age=pl.Series(ages), sex=pl.Series(sexes))
    return replace(made, patients=with_values)


def dated(cohort: Cohort) -> Cohort:
    """The same with a date of each visit."""
    events = cohort.require_events().with_columns(
        date=pl.lit(dt.date(2015, 1, 1)) + pl.duration(days=(pl.col("age") * 365).cast(pl.Int64))
    )
    return replace(cohort, events=events)


OTHERS: dict[str, Sequence[Any]] = {
    "k": (2, 4, 6, 50),
    "m": (1, 3),
    "policy": ("hierarchy:1", "hierarchy:3", "none", "similarity:10"),
    "partitioning": ("fitted", "recut", "paper"),
    "diversity": (2, 1000),
    "sensitive": (["250.0"], ["272.1", "250.0"]),
    "algorithm": ("cba", "apriori", "coat", "improved", "condensation", "tfrp", "auto"),
    "scope": ("global", "raise", "record", "groups"),
    "joining": ("size", "thesis"),
    "weights": ([1.0, 0.0],),
    "ages": ("hipaa", "custom", "0-90"),
    "hierarchy": ("icd9", "icd10", "custom", None),
    "clustering": ("cells", "alignment"),
    "order": ("free", "kept"),
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
    "attacker": ("operation",),
    "demographics": (["age"], ["sex"], ["sex", "age"]),
    "keep": ({"age": 10}, {"age": "all", "sex": "exact"}, {"sex": "exact"}),
    "small": ("suppress", "drop"),
    "recoding": ("local",),
    "views": (["patients+visits"], ["patients+events", "patients+visits"], ["patients+events+events"]),
    "days": (90, 360),
    "membership_is_secret": ("", "nobody was asked"),
    "mechanism": ("Laplace noise",),
    "domains": ({"sex": ["f"]}, {"sex": ["f", "m", "p001"]}, {}),
    "row": ("note", "patient"),
    "levels": ([],),
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
        "population": 10**6,
        "membership_is_secret": "so",
        "payload": ["snp"],
    },
    "condensation": {
        "relations": ["age <= time"],
        "coarsen_groups": 2,
        "response": ["dose"],
        "plan": [{"linear": {"response": "dose", "covariates": ["age"]}}],
    },
    "k-anonymity": {"plan": [{"linear": {"response": "dose", "covariates": ["age"]}}]},
    "linked": {"days": 30, "demographics": ["sex"], "small": "drop", "hierarchies": {"sex": "file"}},
    "notes": {"threshold": 5, "qids": ["age"], "spurious": 0.01},
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
    source: Source

    @property
    def kind(self) -> str:
        """`cohort` or `catalogue`, else the method's name."""
        return self.name if self.name in ("cohort", "catalogue") else str(self.case.method.name)

    @property
    def method(self) -> str:
        """As the manifest names it."""
        return "notes" if self.kind == "catalogue" else str(self.case.method.name)

    @property
    def payload(self) -> list[str]:
        return list(getattr(self.case.method, "payload", ()))

    @property
    def demographics(self) -> tuple[str, ...]:
        return tuple(getattr(self.case.method, "demographics", ()))


def make(name: str, case: Case, out: Path) -> Made:
    """A release as a run makes it; it must pass its own verification."""
    from leeward.runs.protect import protect

    source = case.source()
    if name == "catalogue":
        source = make_catalogue(case, out)
    elif name == "cohort":
        make_cohort(case, out)
    else:
        protect(case.cohort, case.method, out, seed=3, population=case.population, tell=lambda text: None)
    with verifying(name):
        found = verify(out, source)
    if name == IN_PARTS and "parts" not in found["tree"].figures:
        raise AssertionError(f"{name}: verified as a whole")
    if not found.passed:
        raise AssertionError(f"{name}: {found}")
    return Made(name, case, out, Truth(case, out), source)


def make_cohort(case: Case, out: Path) -> None:
    """A cohort drawn from a master, which stays beside it, with payload that joined."""
    from leeward.runs.extract import extract
    from leeward.runs.protect import protect

    master = out.parent / "master"
    protect(case.cohort, case.method, master, seed=3, tell=lambda text: None)
    names = case.cohort.require_events()["patient"].unique().sort()
    genes = pl.DataFrame({"patient": names, "gene": [f"H{place % 7}" for place in range(len(names))]})
    extract(master, names[::3], out, payload=genes, membership_is_secret="a test", seed=3)


def make_catalogue(case: Case, out: Path) -> Source:
    """A catalogue of itemsets of an index, with noise that is the same each time; the ledger's stored answers."""
    from leeward.queries.privacy import mechanism
    from leeward.queries.privacy.mechanism import Noise
    from leeward.runs.index import index
    from leeward.runs.itemsets import itemsets, read_stored_answers

    def seeded(noise: Noise, size: int) -> list[int]:
        draws = np.random.Generator(np.random.Philox(key=size))
        return [int(a - b) for a, b in draws.geometric(1 - noise.alpha, (size, 2))]

    events, people = case.cohort.require_events(), case.cohort.patients
    assert people is not None
    notes = events.group_by("patient", "visit", maintain_order=True).agg(terms=pl.col("code").cast(pl.String))
    notes = notes.join(people.select("patient", "sex"), on="patient")
    place = out.parent / "index"
    (out.parent / "codes.txt").write_text("\n".join(CODES) + "\n", encoding="utf-8")
    index(
        notes,
        place,
        epsilon_total=100,
        terms=str(out.parent / "codes.txt"),
        domains={"sex": ("F", "M")},
        new_budget="a bench",
    )
    with patch.object(mechanism, "draw", seeded):
        itemsets(place, out, epsilon=20, quasi_identifiers=("sex",))
    return Source(pl.DataFrame(), answers=read_stored_answers(place))
