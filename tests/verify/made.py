"""One small cohort or table a method, with what each method reads."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import polars as pl

from leeward.cohort.cohort import Cohort
from leeward.methods.censoring import Censoring
from leeward.methods.condensation import Condensation
from leeward.methods.constraints import Constraints
from leeward.methods.disassociation import Disassociation
from leeward.methods.k_anonymity import KAnonymity
from leeward.methods.linked import Linked
from leeward.methods.trajectories import Trajectories
from leeward.methods.visits import Visits
from leeward.verify import Source

CODES = [f"{category}.{digit}" for category in (250, 272, 401, 428, 780) for digit in range(3)]


def patients_with_codes(people: int = 160, seed: int = 11) -> Cohort:
    """Patients with one to three visits of one to four codes, an age that grows, and a payload with nulls."""
    draws = np.random.Generator(np.random.Philox(key=seed))
    appeal = 1 / np.arange(1, len(CODES) + 1)
    rows: list[tuple[str, int, str, float]] = []
    visit = 0
    for person in range(people):
        age = float(draws.integers(30, 60))
        for _ in range(draws.integers(1, 4)):
            visit += 1
            age += float(draws.integers(0, 4))
            held = draws.choice(CODES, size=draws.integers(1, 5), p=appeal / appeal.sum())
            rows += [(f"p{person:03d}", visit, code, age + 0.5) for code in held]
    frame = pl.DataFrame(rows, schema=["patient", "visit", "code", "age"], orient="row")
    events = frame.with_columns(
        code=frame["code"].cast(pl.Enum(sorted(set(frame["code"])))),
        row=pl.Series(range(1, frame.height + 1), dtype=pl.UInt32),
    )
    snp = [None if value == 3 else f"G{value}" for value in draws.integers(0, 4, people).tolist()]
    patients = pl.DataFrame(
        {"patient": [f"p{person:03d}" for person in range(people)], "snp": pl.Series(snp, dtype=pl.String)}
    )
    return Cohort(events, patients, name="made up", vocabulary="icd9")


def registry(rows: int = 400, seed: int = 5) -> Cohort:
    """A table with every kind of column, a stratum, a time, and missing cells."""
    draws = np.random.Generator(np.random.Philox(key=seed))
    site = [None if value == 4 else "abcd"[value] for value in draws.integers(0, 5, rows).tolist()]
    dose = [None if gone else round(float(value), 2) for gone, value in
            zip((draws.random(rows) < 0.2).tolist(), draws.normal(20, 5, rows).tolist(), strict=True)]  # fmt: skip
    table = pl.DataFrame(
        {
            "event": draws.integers(0, 2, rows),
            "time": draws.integers(1, 3000, rows),
            "age": draws.integers(20, 90, rows),
            "dose": pl.Series(dose, dtype=pl.Float64),
            "weight": np.round(draws.normal(70, 12, rows), 1),
            "site": pl.Series(site, dtype=pl.String),
        }
    )
    return Cohort(patients=table, name="made up")


@dataclasses.dataclass(frozen=True)
class Case:
    """A method with what it protects; `population` where its model needs one."""

    cohort: Cohort
    method: Any
    population: Cohort | None = None

    def source(self) -> Source:
        """What the verifier compares with."""
        events = self.cohort.events if self.cohort.events is not None else pl.DataFrame()
        people = self.population or Cohort()
        names = {code: (each.name, each.patients) for code, each in self.cohort.names.items()}
        return Source(
            events, self.cohort.patients, people.events, names, self.cohort.vocabulary, people.patients
        )


def sample_of(everyone: Cohort, people: int = 80) -> Cohort:
    """The first patients of a cohort."""
    assert everyone.patients is not None
    few = everyone.patients.head(people)
    events = everyone.require_events().join(few.select("patient"), on="patient", how="semi")
    return dataclasses.replace(everyone, events=events, patients=few, name="sample")


def cases() -> dict[str, Case]:
    """One case a method, and further ones for the parameters that change what is verified."""
    everyone, table = patients_with_codes(), registry()
    sample = sample_of(everyone)
    return {
        "disassociation": Case(everyone, Disassociation(k=3, m=2)),
        "disassociation, diverse and safe": Case(
            everyone, Disassociation(k=3, m=2, sensitive=("272.1",), diversity=3, safe=True)
        ),
        "constraints": Case(everyone, Constraints(k=5, m=2, policy="hierarchy:2")),
        "censoring": Case(sample, Censoring(k=3, scope="global", cap=3, payload=("snp",)), everyone),
        "censoring by record": Case(
            sample, Censoring(k=3, cap=3, scope="record", payload=("snp",)), everyone
        ),
        "trajectories": Case(everyone, Trajectories(k=5, payload=("snp",))),
        "linked": Case(everyone, Linked(k=3)),
        "visits": Case(everyone, Visits(k=3, payload=("snp",))),
        "visits, containment": Case(everyone, Visits(k=3, level="containment", merge_visits=True)),
        "condensation": Case(table, Condensation(k=10, strata=("event",), time=("time",))),
        "k-anonymity": Case(table, KAnonymity(k=5, quasi_identifiers=("age", "site"))),
    }
