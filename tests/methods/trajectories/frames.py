"""A small hierarchy, made-up cohorts, what a release lists, and records beside what is published of them."""

from __future__ import annotations

import csv

import numpy as np
import polars as pl

from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.trajectories import Trajectories
from leeward.methods.trajectories import measures

HIERARCHY = """\
node,parent
Any,
C1,Any
C2,Any
S1,C1
S2,C1
S3,C2
a,S1
b,S1
c,S2
d,S3
e,S3
f,S3
g,C2
"""


def cohort(n=160, seed=1, extra=()):
    rng = np.random.Generator(np.random.Philox(seed))
    rows = []
    for patient in range(n):
        start = int(rng.integers(1, 80))
        for _ in range(1 + min(int(rng.exponential(3)), 7)):
            code = "abcdefg"[min(int(rng.exponential(2)), 6)]
            rows.append((patient, code, start + float(rng.integers(0, 5)) + 0.5))
    rows += extra
    patient, code, age = zip(*rows, strict=True)
    events = pl.DataFrame(
        {
            "patient": patient,
            "code": pl.Series(code, dtype=pl.Enum(sorted(set(code)))),
            "age": pl.Series(age, dtype=pl.Float64),
            "row": np.arange(1, len(rows) + 1, dtype=np.uint32),
        }
    )
    people = sorted(set(patient))
    patients = pl.DataFrame(
        {"patient": people, "sex": [p % 3 for p in people], "dna": [f"GC{p % 7}A" for p in people]}
    )
    return Cohort(events, patients, name="made up")


def with_rare_codes():
    """250.00 and 401.9 for all; 250.01 of two patients, 250.02 of one other, 780.6 of one."""
    rows = [(p, code, 40.0 + p % 3) for p in range(40) for code in ("250.00", "401.9")]
    rows += [(0, "250.01", 50.0), (1, "250.01", 50.0), (2, "250.02", 50.0), (3, "780.6", 60.0)]
    patient, code, age = zip(*rows, strict=True)
    kind = pl.Enum(sorted(set(code)))
    events = pl.DataFrame({"patient": patient, "code": pl.Series(code, dtype=kind), "age": age})
    return Cohort(events.with_row_index("row", 1), name="made up", vocabulary="icd9")


def listed(path):
    with (path / "share" / "data" / "code_hierarchy.csv").open(newline="") as file:
        return {row["node"] for row in csv.DictReader(file)}


def as_released(records, published, codes, times):
    """The records of the source and their published trajectories, as the measures take them."""
    names = sorted({code for T in records for code, _ in T})
    pairs = [pair for T in records for pair in T]
    shown = [pair for T in published for pair in T]
    lens = Trajectories(
        np.cumsum([0, *map(len, records)]),
        np.array([names.index(code) for code, _ in pairs], np.int32),
        np.array([int(v) for _, v in pairs], np.int32),
        tuple(names),
        pl.Series(range(len(records))),
    )
    return measures.Both(
        lens,
        np.arange(len(records)),
        np.arange(len(records)),
        np.cumsum([0, *map(len, published)]).astype(np.int64),
        codes.nodes_of([code for code, _ in shown]).astype(np.int64),
        times.hierarchy.nodes_of([v for _, v in shown]).astype(np.int64),
        codes,
        times.hierarchy,
        times,
    )
