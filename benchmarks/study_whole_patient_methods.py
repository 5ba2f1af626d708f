"""Methods that take demographics, each beside its release without: docs/studies/whole-patient.md.

`study_whole_patient.py --parts methods` runs them. Each release is made by `protect`, so it is written only when
the verifier has found no fault in its files.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from common import table
from leeward.analysis.demographics.joint import APART, IN_CLASSES
from leeward.cohort.cohort import Cohort
from leeward.cohort.readers import read
from leeward.methods.censoring import Censoring
from leeward.methods.constraints import Constraints
from leeward.methods.disassociation import Disassociation
from leeward.methods.linked import Linked
from leeward.methods.trajectories import Trajectories
from leeward.methods.visits import Visits
from leeward.randomness import Randomness
from leeward.runs.protect import protect

KEPT: dict[str, Any] = {"demographics": ("age", "sex"), "keep": {"age": 10, "sex": "exact"}}
Measures = Mapping[str, Any]

FLOOR = 30
"""Questions with a true count of at least so many."""


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
    measures: tuple[str, ...] = ()
    """What is measured where only the loss is wanted: as little as the method allows."""


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


def suppressed_events(found: Measures) -> float:
    """Linked tables: events that are not released."""
    return float(found["method"]["events_suppressed"] / found["method"]["events"])


def generalized(found: Measures) -> float:
    """Trajectories: ILM + ALM."""
    return float(found["method"]["total"])


def tasks(uci: Cohort, sampled: int, aged: Cohort) -> list[Task]:
    """The methods: on UCI, on so many of its patients with UCI as their population, and on codes with ages."""
    sample = part_of(uci, sampled)
    policy = {"m": 2, "policy": "hierarchy:1"}
    return [
        Task(
            "disassociation", Disassociation, {"m": 2}, uci, in_item_chunks, "occurrences in item chunks",
            None, ("risk",),
        ),
        Task("constraints", Constraints, policy, uci, suppressed, "occurrences suppressed", None, ("codes",)),
        *(
            Task(
                f"visits, level {level}", Visits, {"level": level, **more}, uci, deleted, "codes of visits deleted",
                None, ("risk",),
            )
            for level, more in (("visit", {}), ("codes", {}), ("containment", {"merge_visits": True}))
        ),
        *(
            Task(
                f"censoring, {scope}", Censoring, {"scope": scope}, sample, censored, "mentions censored", uci, ("cul",)
            )
            for scope in ("global", "raise", "record", "groups")
        ),
        *(
            Task(
                f"linked, {view}", Linked, {"views": (view,)}, uci, suppressed_events, "codes of visits suppressed",
                None, ("kept",),
            )
            for view in ("patients+events", "patients+events+events")
        ),
        Task(
            "trajectories", Trajectories, {"clustering": "alignment"}, aged, generalized, "loss of codes and ages",
            None, ("usable",),
        ),
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


def lost_by_k(
    wanted: Sequence[Task], folder: Path, ks: Sequence[int], seeds: Sequence[int], store: Path
) -> str:
    """What each method loses without demographics and with them, for each k and seed. Losses are kept in `store`, so
    that the table can be made in several runs of one commit."""
    known: dict[str, float] = json.loads(store.read_text()) if store.is_file() else {}
    for k, seed, task in itertools.product(ks, seeds, wanted):
        for name, kept in (("without", {}), ("with", KEPT)):
            key = f"{task.name}/{k}/{seed}/{name}"
            if key in known:
                continue
            result = protect(
                task.cohort, task.make(k=k, **task.parameters, **kept), folder / key.replace("/", "-"),
                seed=seed, population=task.population, measures=task.measures, tell=lambda *_: None,
            )  # fmt: skip
            known[key] = task.lost(result.measures)
            store.write_text(json.dumps(known, indent=1))
            print(key, f"{known[key]:.4f}", flush=True)
    shown = sorted({int(key.split("/")[1]) for key in known})
    rows = [
        [task.name, task.means, *(_cell(known, task.name, k) for k in shown)]
        for task in wanted
    ]  # fmt: skip
    return table(["method", "lost are", *(f"k = {k}" for k in shown)], rows)


def _cell(known: Mapping[str, float], name: str, k: int) -> str:
    """Lost without, and with; the range over the seeds where they differ."""
    texts = []
    for way in ("without", "with"):
        of = [
            value
            for key, value in known.items()
            if key.startswith(f"{name}/{k}/") and key.endswith(f"/{way}")
        ]
        low, high = (f"{each:.3f}" for each in (min(of, default=np.nan), max(of, default=np.nan)))
        texts.append(low if low == high else f"{low} to {high}")
    return " → ".join(texts)


def trajectories_asked(aged: Cohort, folder: Path, ks: Sequence[int]) -> str:
    """Questions of age, sex and codes of pyPheWAS, answered from trajectories and from chunks in the same classes."""
    rows = []
    ways = {
        "trajectories": (Trajectories, {"clustering": "alignment"}),
        "trajectories, cells": (Trajectories, {"clustering": "cells"}),
        "disassociation": (Disassociation, {"m": 2}),
    }
    for k, (name, (make, more)) in itertools.product(ks, ways.items()):
        out = folder / f"{k}-{name}"
        result = protect(
            aged, make(k=k, **more, **KEPT), out, seed=1, measures=("demographics",), tell=lambda *_: None
        )
        found = result.measures["demographics"]
        for each in found["asked"]:
            if each["codes"] <= 2 and each["at_least"] == FLOOR:
                ares = {error["way"]: error["are"] for error in each["errors"]}
                here, alone = ares[IN_CLASSES], ares[APART]
                rows.append(
                    [
                        k,
                        name,
                        each["codes"],
                        each["questions"],
                        f"{here:.3f}",
                        f"{alone:.3f}",
                        f"{found['outside_bounds']}",
                    ]
                )
                print(*rows[-1], sep=" | ", flush=True)
    head = ["k", "method", "codes", "questions", "in classes", "apart, true counts", "outside bounds"]
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
