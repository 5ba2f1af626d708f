"""Released records beside their originals, and the people of the population who fit each one's demographics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from leeward.analysis.containment import Index, Multisets
from leeward.analysis.containment.index import number_records
from leeward.analysis.demographics.joint import exact_columns
from leeward.analysis.demographics.released import ReleasedClasses
from leeward.arrays import Int64s, offsets_of
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeCounts
from leeward.errors import BadInput
from leeward.methods.censoring.release import take
from leeward.release import Release


@dataclass(frozen=True)
class Inside:
    """The place of the class of each released record, in the order of the sample, and the people who fit each class.
    `by_rule`: those whom the rule of `groups` publishes with its labels, empty for the other scopes."""

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


@dataclass(frozen=True)
class Both:
    """The released patients of the sample before and after, record by record and over the sample's codes; and the
    population's index. `inside`: the classes of demographics, where there are."""

    original: Multisets
    capped: Multisets
    released: Multisets
    everyone: Index
    k: int
    sample: CodeCounts
    inside: Inside | None = None

    def counts(self, records: Multisets) -> Int64s:
        """The people of the population who contain each record, and fit its labels of demographics."""
        return self.everyone.counts(records) if self.inside is None else self.inside.counts(records)


def pair_records(release: Release, cohort: Cohort, population: Cohort) -> Both:
    sample = cohort.code_counts()
    places = release.custody_table("records")
    if places is None:
        raise BadInput("this release has no custody/data/records.parquet, which says whose record is whose.")
    shown = release.table("records.parquet").collect().join(places, on="record").sort("place")
    if release.parameters.get("small") == "drop" and shown.height <= len(sample):
        sample = take(sample, shown["place"].to_numpy())
    if shown.height != len(sample):
        raise BadInput(
            f"{cohort.name}: {len(sample):,} patients, the release has {shown.height:,}; not its source."
        )
    original = Multisets(sample.offsets, sample.values, sample.counts)
    everyone = population.code_counts()
    return Both(
        original,
        original.cap(start_caps(sample, release)),
        multisets_of(shown["codes"], sample),
        Index.of(everyone, sample.codes, sample.most()),
        release.guarantee["k"],
        sample,
        match_classes(release, shown, population, everyone, sample),
    )


def match_classes(
    release: Release, shown: pl.DataFrame, population: Cohort, everyone: CodeCounts, sample: CodeCounts
) -> Inside | None:
    """The classes of the released records, and the people who fit them; None without demographics."""
    if not release.demographics:
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
    people = release.custody_table("people")
    assert people is not None  # whose records are whose was read from custody
    said = people.sort("place").select(classes.names).rows()
    return tuple(
        np.array([i for i, own in enumerate(said) if own == mine], np.int64) for mine in classes.labels
    )


def start_caps(sample: CodeCounts, release: Release) -> Int64s:
    """The cap of each code before any censoring, as the manifest states them."""
    given, rest = release.parameters.get("caps"), release.parameters.get("cap")
    if given is None:
        return sample.most() if rest is None else np.minimum(sample.most(), rest)
    return np.minimum(
        sample.most(), np.array([given.get(code, rest or 0) for code in sample.codes], np.int64)
    )


def multisets_of(lists: pl.Series, sample: CodeCounts) -> Multisets:
    """Lists of codes, sorted with repeats, as multisets over the sample's numbering."""
    arrow = lists.rechunk().to_arrow()
    owner = np.repeat(np.arange(len(lists)), lists.list.len().to_numpy())
    flat = pl.DataFrame({"record": owner, "code": pl.Series(pl.from_arrow(arrow.flatten()), dtype=pl.String)})
    counted = flat.group_by("record", "code").len().sort("record", "code")
    number = {code: place for place, code in enumerate(sample.codes)}
    values = (
        counted["code"].cast(pl.String).replace_strict(number, default=-1, return_dtype=pl.Int32).to_numpy()
    )
    if (values < 0).any():
        raise BadInput("the release holds codes that the sample does not have; it is not its source.")
    held = np.bincount(counted["record"].to_numpy(), minlength=len(lists))
    return Multisets(offsets_of(held), values.astype(np.int32), counted["len"].to_numpy().astype(np.int32))
