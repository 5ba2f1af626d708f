"""Attack on generalized codes: somebody knows up to m codes of a patient (docs/methods/constraints.md)."""

from __future__ import annotations

from itertools import chain, combinations, islice

import numpy as np
import polars as pl

from leeward.analysis.tried import Holders, Tried
from leeward.cohort.cohort import Cohort
from leeward.randomness import Randomness
from leeward.release import Release

PATIENTS, SETS = 200, 50
"""Patients that are drawn, and sets of codes of each that are looked up."""


def attack(release: Release, cohort: Cohort, population: Cohort | None = None) -> list[Tried]:
    """Look sets of m codes of patients up, each as the labels that `codes.parquet` gives its codes; suppressed codes
    tell nothing. Where listed sets are protected, those are looked up, patient or not."""
    m, k = release.guarantee.get("m"), int(release.guarantee["k"])
    if not m:
        return []
    codes = release.table("codes.parquet").filter(~pl.col("suppressed")).collect()
    label_of = {
        code: label
        for label, members in codes.select("code", "members").rows()
        for code in members or [label]
    }
    labels = {label: place for place, label in enumerate(sorted(set(label_of.values())))}
    records = release.table("records.parquet").collect()["codes"]
    shown = records.explode(empty_as_null=False).cast(pl.String)
    holders = Holders(
        np.repeat(np.arange(len(records)), records.list.len().to_numpy()),
        shown.replace_strict(labels, return_dtype=pl.Int64).to_numpy(),
        len(labels),
    )
    sets = cohort.code_sets()
    drawn = Randomness.of(0).stream("attack").permutation(len(sets))[:PATIENTS]
    attacked = succeeded = 0
    for patient in drawn.tolist():
        own = sorted({labels[label_of[code]] for code in sets.record(patient) if code in label_of})
        sizes = range(1, min(int(m), len(own)) + 1)
        known = chain.from_iterable(combinations(own, size) for size in reversed(sizes))
        counts = [holders.count(each) for each in islice(known, SETS)]
        attacked += len(counts)
        succeeded += sum(count < k for count in counts)
    words = "one code" if m == 1 else f"up to {m} codes"
    return [
        Tried(
            f"knows {words} of a patient, and reads which labels stand for them",
            f"fewer than {k} records have these labels",
            attacked,
            succeeded,
        )
    ]
