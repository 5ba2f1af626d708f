"""Attack on linked tables: somebody knows the exact demographics of a patient and a row of a view
(docs/methods/linked.md#guarantee)."""

from __future__ import annotations

import numpy as np
import polars as pl

from leeward.analysis.reidentification import Tried
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
    fitting, of_class = _fitting(release, cohort, sets.patients.gather(chosen)), holders_in(release)
    attacked = succeeded = 0
    for own, place in zip(fitting, chosen.tolist(), strict=True):
        codes = sets.record(place)
        pairs = [(a, b) for a in codes for b in codes if a < b] if two else []
        for known in [(code,) for code in codes] + pairs:
            shown = [[of_class[n].get(code, frozenset()) for code in known] for n in own]
            candidates = sum(len(frozenset.intersection(*each)) for each in shown)
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


def class_of_record(release: Release) -> pl.DataFrame:
    """`record`, `class`: each patient's class; 0 without demographics."""
    names = list(release.parameters.get("demographics") or ())
    patients = release.table("patients.parquet").collect()
    if names:
        classes = release.table("classes.parquet").collect().select("class", *names)
        patients = patients.join(classes, on=names)
    else:
        patients = patients.with_columns(pl.lit(0, pl.Int64).alias("class"))
    return patients.select("record", "class")


def classes_shown(release: Release) -> pl.DataFrame:
    """`record`, `class`, `code`: each patient's class and codes."""
    events = release.table("events.parquet").select("record", "code").unique().collect()
    return class_of_record(release).join(events, on="record").cast({"code": pl.String})


def holders_in(release: Release) -> list[dict[str, frozenset[int]]]:
    """Of each class, by its number, the records that show each code."""
    names = release.parameters.get("demographics")
    classes = release.table("classes.parquet").collect().height if names else 1
    found: list[dict[str, frozenset[int]]] = [{} for _ in range(classes)]
    rows = classes_shown(release).group_by("class", "code").agg("record").iter_rows()
    for number, code, records in rows:
        found[number][code] = frozenset(records)
    return found


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
