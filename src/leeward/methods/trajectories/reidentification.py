"""Candidates of patients in released trajectories (equal records), and an attack by somebody who knows all codes and
ages of a patient (docs/methods/trajectories.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from leeward.analysis.demographics.classes import group_vectors
from leeward.analysis.demographics.joint import exact_columns
from leeward.analysis.demographics.released import ReleasedClasses
from leeward.analysis.reidentification import Known, Tried, alike
from leeward.arrays import number_lists, offsets_of
from leeward.cohort.cohort import Cohort
from leeward.contracts.classes import exact
from leeward.contracts.trajectories import axis_of
from leeward.methods.trajectories.measures import originals, released_pairs
from leeward.randomness import Randomness
from leeward.release import Release

PATIENTS = 500
"""Patients drawn for the attack."""

Pair = tuple[str, str]
Labels = tuple[str, ...]
Shown = tuple[Labels, tuple[Pair, ...]]
"""A published trajectory with its demographics."""


def count_candidates(release: Release, cohort: Cohort, population: Cohort | None = None) -> Known:
    """Number of records with the same trajectory and released demographics, for each record."""
    names, time = release.demographics, axis_of(release.parameters)
    pairs = released_pairs(release)
    code, age = (pairs[name].to_physical().to_numpy().astype(np.int64) for name in ("code", "age"))
    offsets = offsets_of(np.bincount(pairs["record"].to_numpy(), minlength=release.records))
    whole = number_lists(offsets, code * (int(age.max(initial=0)) + 1) + age)
    records = release.table("records.parquet").select("record", *names).collect().sort("record")
    rows = records.drop("record").with_columns(pl.Series("whole trajectory", whole))
    return Known(
        f"{exact(names)}all codes and {time}s of a patient",
        alike(rows).astype(np.float64),
        before=alike(_originals(release, cohort, names)),
    )


def _originals(release: Release, cohort: Cohort, names: Sequence[str]) -> pl.DataFrame:
    """A row for each released patient: all codes and ages in the source, and the exact demographics."""
    lens = originals(release, cohort)
    pairs = lens.values.astype(np.int64) * (int(lens.ages.max(initial=0)) + 1) + lens.ages
    whole = pl.DataFrame({"whole trajectory": number_lists(lens.offsets, pairs)})
    exact_values = cohort.payload(names, lens.patients)
    return whole if exact_values is None else whole.with_columns(exact_values.get_columns())


def attack(release: Release, cohort: Cohort, population: Cohort | None = None) -> list[Tried]:
    """Find records that can be a patient's: each published pair is a pair of the patient or, in the published
    hierarchies, an ancestor of one. The attacker takes the longest of them and all records equal to it."""
    k = int(release.guarantee["k"])
    names, time = release.demographics, axis_of(release.parameters)
    codes, ages = _above(release, "code_hierarchy.csv"), _above(release, f"{time}_hierarchy.csv")
    published = _published(release, names)
    by_first: dict[Pair, list[Shown]] = defaultdict(list)
    for each in published:
        by_first[each[1][0]].append(each)
    patients = pl.concat([events["patient"].unique().sort() for events in _known_rows(cohort, time)])
    drawn = Randomness.of(0).stream("attack").permutation(len(patients))[:PATIENTS]
    chosen = pl.col("patient").is_in(patients[drawn].implode())
    inside = pl.concat([events.filter(chosen) for events in _known_rows(cohort, time)]).unique()
    people = inside.group_by("patient").agg(pl.col("code").cast(pl.String), "age").sort("patient")
    fits = _classes(release, cohort, people["patient"]) if names else [frozenset({()})] * people.height
    attacked = succeeded = 0
    for labels, (_, own_codes, own_ages) in zip(fits, people.iter_rows(), strict=True):
        explained = {
            (over, years)
            for code, age in zip(own_codes, own_ages, strict=True)
            for over in codes.get(code, {code})
            for years in _years(age, ages)
        }
        found = _longest(explained, len(own_codes), labels, by_first)
        if found is not None:
            attacked += 1
            succeeded += published[found] < k
    demographics = " and the exact demographics" if names else ""
    return [
        Tried(
            f"knows all codes and {time}s{demographics} of a patient, and takes the longest trajectory that can be the "
            "patient's",
            f"fewer than {k} records have this trajectory",
            attacked,
            succeeded,
        )
    ]


def _known_rows(cohort: Cohort, time: str) -> Iterator[pl.DataFrame]:
    """A part of the patients after the other, who ascend; of dates the month, as `age`."""
    age = pl.col("age") if time == "age" else pl.col("date").dt.strftime("%Y-%m").alias("age")
    return (part.select("patient", "code", age).drop_nulls() for part in cohort.parts())


def _longest(
    explained: set[Pair], pairs: int, classes: frozenset[Labels], by_first: Mapping[Pair, Sequence[Shown]]
) -> Shown | None:
    """The longest published trajectory of at most so many pairs, all explained, in one of the classes."""
    fitting = (
        each
        for first in explained
        for each in by_first.get(first, ())
        if len(each[1]) <= pairs and each[0] in classes and explained.issuperset(each[1])
    )
    return max(fitting, key=lambda each: (len(each[1]), each), default=None)


def _published(release: Release, names: Sequence[str]) -> dict[Shown, int]:
    pairs = released_pairs(release)
    # A demographic column may be called code or age, too.
    own = [pl.col(name).cast(pl.String).alias(f"published {name}") for name in ("code", "age")]
    rows = pairs.group_by("record", maintain_order=True).agg(own)
    if names:
        rows = rows.join(release.table("records.parquet").select("record", *names).collect(), on="record")
    # Counted before they become objects: at least k records have each.
    counted = rows.group_by(*names, "published code", "published age").len()
    return {
        (tuple(labels), tuple(zip(code, age, strict=True))): count
        for *labels, code, age, count in counted.iter_rows()
    }


def _classes(release: Release, cohort: Cohort, patients: pl.Series) -> list[frozenset[Labels]]:
    columns, classes = exact_columns(release, cohort, patients), ReleasedClasses.read(release)
    vectors, number = group_vectors(columns.vectors({}))
    found = [
        frozenset(
            label
            for label, may in zip(classes.labels, classes.fitting(columns.labels(vector)), strict=True)
            if may
        )
        for vector in vectors
    ]
    return [found[each] for each in number.tolist()]


def _years(age: object, ages: dict[str, set[str]]) -> set[str]:
    """The nodes at or above an age (a month) as it is written, or as a whole number."""
    text = str(age)
    if text not in ages and not isinstance(age, str):
        text = str(int(float(text)))
    return ages.get(text, {text})


def _above(release: Release, name: str) -> dict[str, set[str]]:
    """Each value of a published hierarchy with all nodes above it."""
    rows = pl.read_csv(release.path(name), infer_schema_length=0).select("node", "parent").rows()
    parent = {node: up or "" for node, up in rows}
    found: dict[str, set[str]] = {}
    for node in parent:
        path = [node]
        while parent.get(path[-1]):
            path.append(parent[path[-1]])
        found[node] = set(path)
    return found
