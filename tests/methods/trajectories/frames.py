"""A small hierarchy, made-up cohorts, and what a release lists."""

from __future__ import annotations

import csv

import numpy as np
import polars as pl

from leeward.cohort.cohort import Cohort

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
