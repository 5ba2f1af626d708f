"""Attack on linked tables: somebody knows the exact demographics of a patient and a row of a view
(docs/methods/linked.md#guarantee)."""

from __future__ import annotations

import numpy as np
import polars as pl

from leeward.analysis.tried import Tried
from leeward.cohort.cohort import Cohort
from leeward.randomness import Randomness
from leeward.release import Release

PATIENTS = 500
"""Patients that are drawn."""


def attack(release: Release, cohort: Cohort, population: Cohort | None = None) -> list[Tried]:
    """Look each code and each pair of codes of a patient up, in the classes that the demographics fit; codes that no
    patient of these shows tell nothing."""
    k = int(release.guarantee["k"])
    two = "patients+events+events" in release.parameters["views"]
    sets = cohort.code_sets()
    chosen = np.sort(Randomness.of(0).stream("attack").permutation(len(sets))[:PATIENTS])
    shown = classes_shown(release)
    fitting = _fitting(release, cohort, sets.patients.gather(chosen))
    holders = {
        (number, code): frozenset(records)
        for number, code, records in shown.group_by("class", "code")
        .agg(pl.col("record").unique())
        .iter_rows()
    }
    attacked = succeeded = 0
    for own, place in zip(fitting, chosen.tolist(), strict=True):
        codes = sets.record(place)
        pairs = [(a, b) for a in codes for b in codes if a < b] if two else []
        for known in [(code,) for code in codes] + pairs:
            found = [holders.get((number, known[0]), frozenset()) for number in own]
            if len(known) == 2:
                found = [h & holders.get((n, known[1]), frozenset()) for h, n in zip(found, own, strict=True)]
            candidates = sum(map(len, found))
            attacked += 1
            succeeded += 0 < candidates < k
    return [
        Tried(
            "knows a patient's demographics and " + ("up to two codes" if two else "a code"),
            f"fewer than {k} patients share them in the joined tables",
            attacked,
            succeeded,
        )
    ]


def classes_shown(release: Release) -> pl.DataFrame:
    """`record`, `class`, `code`: each patient's class and codes."""
    names = list(release.parameters.get("demographics") or ())
    patients = release.table("patients.parquet").collect()
    if names:
        classes = release.table("classes.parquet").collect().select("class", *names)
        patients = patients.join(classes, on=names)
    else:
        patients = patients.with_columns(pl.lit(0, pl.Int64).alias("class"))
    events = release.table("events.parquet").select("record", "code").unique().collect()
    return patients.select("record", "class").join(events, on="record").cast({"code": pl.String})


def _fitting(release: Release, cohort: Cohort, patients: pl.Series) -> list[list[int]]:
    """The classes that each patient's exact demographics fit."""
    names = tuple(release.parameters.get("demographics") or ())
    if not names:
        return [[0]] * len(patients)
    from leeward.analysis.demographics.columns import texts_of, values_of
    from leeward.analysis.demographics.released import ReleasedClasses

    classes = ReleasedClasses.read(release)
    values = values_of(cohort.patients, patients, names, cohort.name)
    rows = zip(*(texts_of(values[name]).to_list() for name in names), strict=True)
    return [[int(n) for n in classes.number[classes.fitting(row)]] for row in rows]
