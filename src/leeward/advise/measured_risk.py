"""How often the attacker of a release's guarantee would be right: maximum, mean, and the share above thresholds.

The chance is 1 / candidates. Candidates are counted from the released files, for what the guarantee's attacker knows of
patients who are in the data: all of a record (k-anonymity, trajectories, condensation), or m codes of a patient, drawn
at random (disassociation, constraints, visits). For censoring candidates are people of the population. The mean over
all records is also the marketer's expected share of right guesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from leeward.analysis.figures import Figures
from leeward.analysis.itemsets import supports_of
from leeward.arrays import AnyArray, Float64s, counted
from leeward.randomness import Randomness

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.release import Release

from dataclasses import dataclass

SEED = 20261122
PATIENTS = 1_000
"""Patients drawn, each with up to m of its codes."""


@dataclass(frozen=True)
class Above(Figures):
    """The share of patients whose risk is above a threshold."""

    threshold: float
    share: float


@dataclass(frozen=True, kw_only=True)
class MeasuredRisk(Figures):
    """What was measured for the attacker of the guarantee.

    model : prosecutor or journalist. knows : in words. maximum, mean : of 1 / candidates. patients : how many were
    looked at. all : whether they are all, or a sample. promised : the guarantee's maximum.
    """

    model: str
    knows: str
    promised: float | None
    maximum: float
    mean: float
    patients: int
    all: bool
    above: tuple[Above, ...] = ()


def measured_risk(
    release: Release, cohort: Cohort, population: Cohort | None = None, thresholds: Sequence[float] = ()
) -> MeasuredRisk | None:
    """The risk measured from the files; None where the method leaves nothing to count (counts with noise)."""
    found = _candidates(release, cohort, population)
    if found is None:
        return None
    knows, candidates, whole = found
    if not len(candidates):
        return None
    # Sorted: classes come in any order, and the last digit of a mean of floats would tell it.
    risks = np.sort(1 / np.maximum(candidates, 1))
    stated: Mapping[str, Any] = release.guarantee.get("risk") or {}
    return MeasuredRisk(
        model=str(stated.get("model", "prosecutor")),
        knows=knows,
        promised=stated.get("maximum"),
        maximum=float(risks.max()),
        mean=float(risks.mean()),
        patients=len(risks),
        all=whole,
        above=tuple(Above(float(each), float(np.mean(risks > each + 1e-12))) for each in thresholds),
    )


def _candidates(
    release: Release, cohort: Cohort, population: Cohort | None
) -> tuple[str, Float64s, bool] | None:
    method = release.method
    if method == "k-anonymity":
        names = list(release.parameters["quasi_identifiers"])
        rows = release.table("table.parquet").select(names).collect()
        return "the quasi-identifiers of a patient", _class_sizes(rows), True
    if method == "linked":
        return "demographics and a code of a patient, as the release shows them", _holders(release), True
    if method == "trajectories":
        return "all codes and ages of a patient", _trajectories(release), True
    if method == "condensation":
        sizes = _groups(release)
        return None if sizes is None else ("everything about a patient but outcome times", sizes, True)
    if method == "censoring":
        if population is None:
            return None
        from leeward.methods.censoring.measures import both_of

        both = both_of(release, cohort, population)
        beside = " and demographics" if both.inside is not None else ""
        return (
            f"all codes{beside} of a person, not who is in the sample",
            both.counts(both.released).astype(float),
            True,
        )
    m = int(release.guarantee.get("m") or (1 if method == "visits" else 2))
    if method == "disassociation":
        return f"{counted('code', m)} of a patient", _chunks(release, cohort, m), False
    if method == "constraints":
        return f"{counted('code', m)} of a patient", _labels(release, cohort, m), False
    if method == "visits":
        beside = "the demographics and " if release.parameters.get("demographics") else ""
        return f"{beside}{counted('code', m)} of a patient that the release shows", _shown(release, m), False
    return None


def _class_sizes(rows: pl.DataFrame) -> Float64s:
    sizes = rows.group_by(rows.columns).len()["len"].to_numpy()
    return np.asarray(np.repeat(sizes, sizes), np.float64)


def _holders(release: Release) -> Float64s:
    """Patients of a class who show a code, for each patient and code; of one who shows none, all."""
    from leeward.methods.linked.attack import classes_shown

    shown = classes_shown(release).with_columns(n=pl.len().over("class", "code"))
    empty = release.records - shown["record"].n_unique()
    return np.concatenate([shown["n"].to_numpy(), np.full(empty, release.records)]).astype(np.float64)


def _trajectories(release: Release) -> Float64s:
    pairs = release.table("trajectories.parquet").collect().sort("record", "position")
    text = pl.concat_str(pl.col("code").cast(pl.String), pl.col("age").cast(pl.String), separator="@")
    whole = pairs.group_by("record").agg(text.str.join("|").alias("all"))
    sizes = whole.group_by("all").len()["len"].to_numpy()
    empty = release.records - whole.height
    return np.asarray(np.concatenate([np.repeat(sizes, sizes), np.full(empty, empty)]), np.float64)


def _groups(release: Release) -> Float64s | None:
    file = None if release.custody is None else release.custody / "data" / "released_rows.parquet"
    if file is None or not file.is_file():
        return None
    sizes = pl.read_parquet(file)["group"].value_counts()["count"].to_numpy()
    return np.asarray(np.repeat(sizes, sizes), np.float64)


def _known(cohort: Cohort, m: int) -> list[list[str]]:
    """Up to m codes of each of some patients, drawn evenly and always the same."""
    sets, stream = cohort.code_sets(), Randomness.of(SEED).stream("known codes", m)
    chosen = stream.integers(0, len(sets), PATIENTS) if len(sets) > PATIENTS else np.arange(len(sets))
    found = []
    for r in chosen:
        codes: AnyArray = sets.values[sets.offsets[r] : sets.offsets[r + 1]]
        found.append([sets.codes[int(c)] for c in stream.permutation(codes)[:m]])
    return found


def _chunks(release: Release, cohort: Cohort, m: int) -> Float64s:
    from leeward.methods.disassociation.measures.estimates import estimates, read_once

    known = [codes for codes in _known(cohort, m) if codes]
    return np.asarray(estimates(read_once(release), known, "one").high, np.float64)


def _labels(release: Release, cohort: Cohort, m: int) -> Float64s:
    """Records with the labels of the known codes; a code that was suppressed says nothing."""
    from leeward.analysis.generalized import read

    labels = read(release)
    images = [
        sorted({labels.label_of[code] for code in codes if code in labels.label_of})
        for codes in _known(cohort, m)
    ]
    held = supports_of(labels.records, [image for image in images if image])
    return np.concatenate([held, np.full(sum(not image for image in images), release.records)]).astype(float)


def _shown(release: Release, m: int) -> Float64s:
    """Records (of the same class of demographics, where there are) that show all of up to m labels of one record; a
    record that shows none has all for candidates."""
    from leeward.cohort.lenses.code_sets import CodeSets
    from leeward.methods.visits.measures import lists_apart

    lists = lists_apart(release)
    offsets, values = lists.united(release.records)
    sets = CodeSets(offsets, values, lists.labels, pl.Series(np.arange(release.records)))
    stream = Randomness.of(SEED).stream("shown codes", m)
    chosen = stream.integers(0, len(sets), PATIENTS) if len(sets) > PATIENTS else np.arange(len(sets))
    queries = [stream.permutation(sets.values[offsets[r] : offsets[r + 1]])[:m] for r in chosen]
    held = supports_of(sets, [query for query in queries if len(query)])
    alike = _alike(release)[[r for r, query in zip(chosen, queries, strict=True) if not len(query)]]
    return np.concatenate([held, alike]).astype(float)


def _alike(release: Release) -> AnyArray:
    """int64[records]: the records of each record's class of demographics; all of them without classes."""
    from leeward.analysis.demographics.released import ReleasedClasses

    if not release.parameters.get("demographics"):
        return np.full(release.records, release.records)
    classes = ReleasedClasses.read(release)
    return classes.records[classes.of_records(release)]
