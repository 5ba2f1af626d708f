"""A batch of visits that joins a published master: rows and labels of the master stay, sets are shared within classes.

The class of a patient is what earlier versions show of the record: the batch in which it entered, and the batches in
which it showed visits (docs/methods/refresh.md). In each class every released set has k holders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from leeward.arrays import Bools, Int32s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.visits import Visits as Lens
from leeward.engine import Engine
from leeward.methods.visits.bins import Merging
from leeward.methods.visits.method import enforce_level, map_visits
from leeward.methods.visits.parameters import Visits
from leeward.methods.visits.release import Outcome, release_of
from leeward.methods.visits.sets import Distinct, VisitSets, unions
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

NEAR = 0.4
"""A set waits for more holders where it has this share of k."""


def protect_batch(
    parameters: Visits,
    cohort: Cohort,
    class_of: pl.DataFrame,
    labels: Mapping[str, str],
    engine: Engine,
    randomness: Randomness,
) -> Anonymized:
    """Anonymize the visits of a batch. class_of : `patient`, `class`. labels : those of the first version, by code."""
    lens = cohort.visits()
    merging, of_code = _frozen(lens, labels)
    names = merging.labels
    mapped = map_visits(lens, of_code, len(names))
    apart, width = _apart(lens, mapped, class_of, len(names))
    order = randomness.stream("visits", "known codes").permutation(len(lens))
    held = np.bincount(unions(apart, width).values, minlength=width)
    apart = apart.keep(held[apart.values] >= parameters.k)  # rare codes are suppressed, as in a first version
    enforced, steps = enforce_level(parameters, apart, width, None, engine.threads, order)
    shown = replace(enforced, values=(enforced.values % max(1, len(names))).astype(np.int32))
    outcome = Outcome(lens, merging, names, of_code, None, mapped, shown, steps)
    return release_of(parameters, outcome, None, cohort.vocabulary, randomness)


def find_short(
    parameters: Visits, cohort: Cohort, class_of: pl.DataFrame, labels: Mapping[str, str]
) -> pl.Series:
    """The first source rows of the visits whose set has fewer than k holders in its class, but nearly k."""
    lens = cohort.visits()
    merging, of_code = _frozen(lens, labels)
    names = len(merging.labels)
    apart, width = _apart(lens, map_visits(lens, of_code, names), class_of, names)
    distinct = Distinct.of(apart, width)
    holders = np.append(distinct.holders, 0)[distinct.set_of]
    short: Bools = (holders < parameters.k) & (holders >= np.ceil(NEAR * parameters.k))
    return pl.Series("row", lens.rows[short])


def _frozen(lens: Lens, labels: Mapping[str, str]) -> tuple[Merging, Int32s]:
    """The labels of the first version, and the place of each code's among them; a code that has none there is a label
    of its own."""
    own = tuple(labels.get(code, code) for code in lens.codes)
    merging = Merging(own, sum(label != code for code, label in zip(lens.codes, own, strict=True)), 0)
    place = {label: number for number, label in enumerate(merging.labels)}
    return merging, np.array([place[label] for label in own], np.int32)


def _apart(lens: Lens, visits: VisitSets, class_of: pl.DataFrame, labels: int) -> tuple[VisitSets, int]:
    """The visits with other labels in each class, and the number of these labels."""
    known = lens.patients.alias("patient").to_frame().join(class_of, on="patient", maintain_order="left")
    classes = known["class"].to_numpy().astype(np.int64)
    of_value = np.repeat(classes[visits.patient_of_visit()], np.diff(visits.offsets))
    apart = replace(visits, values=(of_value * labels + visits.values).astype(np.int32))
    return apart, labels * (int(classes.max()) + 1)
