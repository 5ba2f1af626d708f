"""Methods that take demographics (all but linked), each beside its release without: docs/studies/whole-patient.md.

`study_whole_patient.py --parts methods` runs them. Each release is made by `protect`, so it is written only when
the verifier has found no fault in its files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from common import table
from leeward.cohort.cohort import Cohort
from leeward.cohort.readers import read
from leeward.methods.censoring import Censoring
from leeward.methods.constraints import Constraints
from leeward.methods.disassociation import Disassociation
from leeward.methods.trajectories import Trajectories
from leeward.methods.visits import Visits
from leeward.randomness import Randomness
from leeward.runs.protect import protect

KEPT: dict[str, Any] = {"demographics": ("age", "sex"), "keep": {"age": 10, "sex": "exact"}}
Measures = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """A method with its parameters, what it releases, and what counts as lost (a share, or a sum of two)."""

    name: str
    make: Callable[..., Any]
    parameters: dict[str, Any]
    cohort: Cohort
    lost: Callable[[Measures], float]
    means: str
    population: Cohort | None = None


def in_item_chunks(found: Measures) -> float:
    """Disassociation: occurrences whose association with all other codes is gone."""
    return float(found["method"]["item_occurrences"] / found["method"]["occurrences"])


def suppressed(found: Measures) -> float:
    """Constraints: occurrences that are suppressed."""
    return float(found["method"]["occurrences_suppressed_share"])


def deleted(found: Measures) -> float:
    """Visits: pairs of visit and code that are neither released nor generalized."""
    pairs = found["method"]["pairs"]
    return float(1 - (pairs["exact"] + pairs["merged"] + pairs["above"]) / pairs["original"])


def censored(found: Measures) -> float:
    """Censoring: mentions that are not released."""
    return float(1 - found["cul"]["kept"])


def generalized(found: Measures) -> float:
    """Trajectories: ILM + ALM."""
    return float(found["method"]["total"])


def tasks(uci: Cohort, sampled: int, aged: Cohort) -> list[Task]:
    """The methods: on UCI, on so many of its patients with UCI as their population, and on codes with ages."""
    sample = part_of(uci, sampled)
    policy = {"m": 2, "policy": "hierarchy:1"}
    return [
        Task("disassociation", Disassociation, {"m": 2}, uci, in_item_chunks, "occurrences in item chunks"),
        Task("constraints", Constraints, policy, uci, suppressed, "occurrences suppressed"),
        *(
            Task(f"visits, level {level}", Visits, {"level": level, **more}, uci, deleted, "codes of visits deleted")
            for level, more in (("visit", {}), ("codes", {}), ("containment", {"merge_visits": True}))
        ),
        *(
            Task(f"censoring, {scope}", Censoring, {"scope": scope}, sample, censored, "mentions censored", uci)
            for scope in ("global", "raise", "record")
        ),
        Task("trajectories", Trajectories, {}, aged, generalized, "loss of codes and ages"),
    ]  # fmt: skip


def side_by_side(wanted: Sequence[Task], folder: Path, k: int = 5) -> str:
    """Each method with age in 10 years and sex, and without demographics."""
    rows = []
    for number, task in enumerate(wanted):
        made = []
        for place, kept in enumerate(({}, KEPT)):
            begin = time.process_time()
            result = protect(
                task.cohort, task.make(k=k, **task.parameters, **kept), folder / f"{number}-{place}",
                seed=1, population=task.population, tell=lambda *_: None,
            )  # fmt: skip
            made.append((result, time.process_time() - begin))
        (without, before), (classed, after) = made
        outcome, facts = classed.verification, classed.measures["method"]
        rows.append(
            [
                task.name, f"{classed.release.records:,}", facts["classes"],
                f"{sum(each.passed for each in outcome.checks)} of {len(outcome.checks)}",
                task.means, f"{task.lost(without.measures):.3f}", f"{task.lost(classed.measures):.3f}",
                attacked(without.measures), attacked(classed.measures), f"{before:.1f}", f"{after:.1f}",
            ]
        )  # fmt: skip
        print(*rows[-1], sep=" | ", flush=True)
    head = [
        "method", "records", "classes", "checks passed", "lost are", "lost without", "lost with",
        "attack without", "attack with", "CPU s without", "CPU s with",
    ]  # fmt: skip
    return table(head, rows)


def attacked(found: Measures) -> str:
    """How often the run's own attack on its release succeeded, of how many trials."""
    tried = found.get("tried", [])
    if not tried:
        return "–"
    return f"{sum(t['succeeded'] for t in tried):,} of {sum(t['attacked'] for t in tried):,}"


def part_of(cohort: Cohort, patients: int) -> Cohort:
    """Some patients of a cohort, drawn."""
    everybody = cohort.require_events()["patient"].unique().sort()
    drawn = np.sort(Randomness.of(3).stream("sample").permutation(len(everybody))[:patients])
    chosen = everybody.gather(drawn).implode()
    assert cohort.patients is not None
    return Cohort(
        cohort.require_events().filter(pl.col("patient").is_in(chosen)),
        cohort.patients.filter(pl.col("patient").is_in(chosen)),
        name=f"sample of {cohort.name}",
        vocabulary=cohort.vocabulary,
    )


def with_ages(data: Path) -> Cohort:
    """pyPheWAS (made up): ICD-9 codes with ages; the demographics are the sex and the age at the last visit."""
    people = pl.read_csv(data / "pyphewas-synthetic/group.csv", infer_schema=False)
    rows = pl.read_csv(data / "pyphewas-synthetic/icds.csv.gz", infer_schema=False)
    found = read(
        rows.filter(pl.col("ICD_TYPE") == "9"),
        columns={"patient": "id", "code": "ICD_CODE", "age": "AgeAtICD"},
        vocabulary="icd9",
    )
    held = found.require_events()["patient"].unique()
    patients = people.select(
        patient=pl.col("id").cast(held.dtype),
        age=pl.col("MaxAgeAtVisit").cast(pl.Float64).floor().cast(pl.Int64),
        sex="Sex",
    ).filter(pl.col("patient").is_in(held.implode()))
    return Cohort(found.events, patients, name="pyPheWAS", vocabulary=found.vocabulary)
