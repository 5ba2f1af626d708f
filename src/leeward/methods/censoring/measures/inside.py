"""Classes of demographics in the measures of censoring: who of the population fits them, and what a recipient can tell
of demographics and codes together (docs/methods/whole-patient.md#measures)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import polars as pl

from leeward.analysis.containment import Index, Multisets
from leeward.analysis.containment.index import number_records
from leeward.analysis.demographics.figures import WholePatient
from leeward.analysis.demographics.joint import exact_columns, figures_of_records, select_released_records
from leeward.analysis.demographics.released import ReleasedClasses
from leeward.arrays import Int64s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeCounts
from leeward.methods.censoring.release import PEOPLE
from leeward.release import Release


@dataclass(frozen=True)
class Inside:
    """The place of the class of each released record, in the order of the sample, and the people who fit each class;
    by_rule : whom the rule of `groups` publishes with its labels, empty for the other scopes."""

    of_record: Int64s
    people: tuple[Int64s, ...]
    everyone: Multisets
    most: Int64s
    by_rule: tuple[Int64s, ...] = ()

    def counts(self, records: Multisets) -> Int64s:
        """The people who fit the class of each record and contain it."""
        found = np.zeros(len(records), np.int64)
        for number, people in enumerate(self.people):
            own = np.flatnonzero(self.of_record == number)
            found[own] = Index(self.everyone.take(people), self.most).counts(records.take(own))
        return found


def match_classes(
    release: Release, shown: pl.DataFrame, population: Cohort, everyone: CodeCounts, sample: CodeCounts
) -> Inside | None:
    """The classes of the released records, and the people who fit them; None without demographics."""
    if not release.parameters.get("demographics"):
        return None
    classes = ReleasedClasses.read(release)
    exact = exact_columns(release, population, everyone.patients)
    distinct, number = np.unique(exact.vectors({}), axis=0, return_inverse=True)
    fits = np.stack([classes.fitting(exact.labels(vector)) for vector in distinct])[number.reshape(-1)]
    return Inside(
        classes.of_records(release)[shown["record"].to_numpy()],
        tuple(np.flatnonzero(fits[:, c]).astype(np.int64) for c in range(len(classes.labels))),
        number_records(everyone, sample.codes),
        sample.most(),
        _by_rule(release, classes) if release.parameters.get("scope") == "groups" else (),
    )


def _by_rule(release: Release, classes: ReleasedClasses) -> tuple[Int64s, ...]:
    assert release.custody is not None  # whose records are whose was read from it
    said = pl.read_parquet(release.custody / "data" / PEOPLE).sort("place").select(classes.names).rows()
    return tuple(
        np.array([i for i, own in enumerate(said) if own == mine], np.int64) for mine in classes.labels
    )


def whole_patient(
    release: Release, cohort: Cohort, inside: Inside | None, released: Multisets
) -> WholePatient | None:
    """Errors of questions of demographics and codes; None without classes. released : in the order of the sample, over
    its codes."""
    if inside is None:
        return None
    sets = select_released_records(release, cohort, cohort.code_sets())
    owners = released.owners()[np.argsort(released.values, kind="stable")]
    bounds = np.searchsorted(np.sort(released.values), np.arange(len(sets.codes) + 1))
    holders = [(owners[low:high], np.ones(high - low)) for low, high in itertools.pairwise(bounds)]
    return figures_of_records(release, cohort, sets, inside.of_record, holders)
