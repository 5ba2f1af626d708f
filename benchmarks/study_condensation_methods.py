"""The methods of the study of condensation: the product's, and the opponents', each as a table with another seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.methods.condensation import Condensation
from leeward.methods.condensation import grouping as groupings
from leeward.methods.condensation import method as condensing
from leeward.methods.condensation.measures.columns import Groups
from leeward.methods.k_anonymity import KAnonymity
from leeward.randomness import Randomness
from leeward.release import Anonymized
from microaggregation import mdav, mst
from study_condensation_sets import Set
from synthesizers import by_copula, by_trees

K = 100
LEAF = 5
"""Patients in a leaf of a tree, at least, unless asked otherwise: synthpop's default."""


@lru_cache(maxsize=1)
def _mdav_of(points: bytes, width: int, k: int) -> Any:
    return mdav(np.frombuffer(points, np.float32).reshape(-1, width), k)


def mdav_once(points: Any, k: int) -> Any:
    """`mdav`, remembered: its groups are the same with every seed."""
    return _mdav_of(np.ascontiguousarray(points, np.float32).tobytes(), points.shape[1], k)


HYBRID = {"algorithm": "condensation", "synthesis": "exact", "draw": "normal"}
RELEASES: dict[str, dict[str, Any]] = {
    "balanced": {"algorithm": "balanced"},
    "balanced, logistic not given": {"algorithm": "balanced", "without": ("logistic",)},
    "balanced, no plan": {"algorithm": "balanced", "without": ("cox", "linear", "logistic")},
    "improved": {"algorithm": "improved"},
    "condensation": {"algorithm": "condensation"},
    "r-microhybrid": {**HYBRID, "groups": mdav_once},
    "tfrp": {"algorithm": "tfrp"},
    "mdav": {"algorithm": "tfrp", "groups": mdav},
    "mst": {"algorithm": "tfrp", "groups": mst},
    "k-anonymity, all columns": {"known": "all"},
    "k-anonymity, known columns": {"known": "covariates"},
    "k-anonymity, known and outcomes": {"known": "outcomes"},
}
"""What the product's methods are given. `without`: models left out of the plan; `groups`: in place of an algorithm's
own groups; `known`: the quasi-identifiers of k-anonymity."""

TABLES: dict[str, Callable[[Set, np.random.Generator], pl.DataFrame]] = {
    "trees, leaf 100": lambda each, random: by_trees(each.cohort.table(), outcomes_last(each), K, random),
    "trees, leaf 5": lambda each, random: by_trees(each.cohort.table(), outcomes_last(each), LEAF, random),
    "copula": lambda each, random: by_copula(each.cohort.table(), str(each.cox.time), random),
    "bootstrap": lambda each, random: resampled(each.cohort.table().frame, random),
}
"""Methods that make no groups."""

METHODS = (*RELEASES, *TABLES)
CLASSES = ("tfrp", "mdav", "mst", *(name for name in RELEASES if name.startswith("k-anonymity")))
"""Methods that release rows that are equal, in all columns or in those that are known."""


@dataclass(frozen=True)
class Made:
    """A released table, its groups where there are some, and what the custodian is told."""

    frame: pl.DataFrame
    groups: Groups | None = None
    custody: dict[str, Any] | None = None


def made_by(method: str, each: Set, seed: int) -> Made:
    """One table by one of `METHODS`."""
    if method in TABLES:
        return Made(TABLES[method](each, np.random.Generator(np.random.Philox(seed))))
    made = protected(each, RELEASES[method], seed)
    source = frame_of(made.custody_tables, "source_rows.parquet").sort("row")
    released = frame_of(made.custody_tables, "released_rows.parquet").sort("record")
    groups = Groups(source["row"].to_numpy() - 1, source["group"].to_numpy(), released["group"].to_numpy())
    return Made(frame_of(made.tables, "table.parquet"), groups, made.custody)


def protected(each: Set, parameters: dict[str, Any], seed: int) -> Anonymized:
    """A release of the set by a method of the product. `groups` takes the place of the two fixed points of TFRP, which
    publishes centroids, or of the seeds of `condensation`."""
    given = dict(parameters)
    groups, without = given.pop("groups", None), given.pop("without", ())
    plan = tuple(entry for entry in each.plan if not set(entry) & set(without))
    known = quasi_identifiers(each, given.pop("known", "all"))
    seeds = (lambda points, k, draws: groups(points, k)) if groups else groupings.seeds
    method: Any = (
        Condensation(k=K, plan=plan, **given)
        if given
        else KAnonymity(k=K, plan=plan, quasi_identifiers=known)
    )
    with (
        mock.patch.object(groupings, "two_points", groups or groupings.two_points),
        mock.patch.object(groupings, "seeds", seeds),
        mock.patch.object(condensing, "REPETITIONS", 1),
    ):
        made: Anonymized = method.protect(each.cohort, randomness=Randomness.of(seed))
    return made


def quasi_identifiers(each: Set, known: str) -> tuple[str, ...]:
    """None for all columns; else the five or six columns that people outside may know, with time and event or not."""
    if known == "all":
        return ()
    outcomes = (str(each.cox.time), str(each.cox.event)) if known == "outcomes" else ()
    return (*each.known, *outcomes)


def classes_of(each: Set, method: str) -> list[str]:
    """The columns in which a release of one of `CLASSES` has equal rows."""
    names = quasi_identifiers(each, RELEASES[method].get("known", "all"))
    return list(names or each.cohort.table().frame.columns)


def outcomes_last(each: Set) -> Sequence[str]:
    """The columns, event and time after the covariates: as much as there is can tell of them."""
    last = [str(each.cox.event), str(each.cox.time)]
    return [*(name for name in each.cohort.table().frame.columns if name not in last), *last]


def resampled(frame: pl.DataFrame, random: np.random.Generator) -> pl.DataFrame:
    """As many rows, drawn with replacement."""
    return frame[random.integers(0, frame.height, frame.height)]


def frame_of(tables: Sequence[Any], path: str) -> pl.DataFrame:
    (found,) = [each for each in tables if each.path == path]
    frame = pl.from_arrow(pa.Table.from_batches(list(found.batches()), found.schema))
    assert isinstance(frame, pl.DataFrame)
    return frame
