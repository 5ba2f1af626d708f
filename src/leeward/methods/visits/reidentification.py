"""Candidates of patients in released visits: the records that show a whole visit, or some labels of a record."""

from __future__ import annotations

import numpy as np
import polars as pl

from leeward.analysis.demographics.released import ReleasedClasses
from leeward.analysis.itemsets import supports_of
from leeward.analysis.reidentification import Known, draw_known_codes
from leeward.arrays import AnyArray, Float64s, count_noun
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.contracts.classes import exact
from leeward.methods.visits.measures import lists_apart
from leeward.methods.visits.visit_lists import VisitLists
from leeward.release import Release


def count_candidates(release: Release, cohort: Cohort, population: Cohort | None = None) -> Known | None:
    """Records (of the same class of demographics, where there are) with what the attacker of the level knows, as the
    release shows it. None for an extract: its candidates are those of the population."""
    if release.parameters.get("extract"):
        return None
    lists = lists_apart(release)
    before = exact([str(name) for name in release.parameters.get("demographics") or ()])
    level = str(release.parameters["level"])
    if level in ("visit", "containment"):
        words = f"{before}every code of one visit of a patient that the release shows"
        candidates = (
            with_same_visit(lists) if level == "visit" else with_codes_of_visit(lists, release.records)
        )
        return Known(words, candidates, whole=level == "visit")
    m = int(release.guarantee.get("m") or 1)
    words = f"{before}{count_noun('code', m)} of a patient that the release shows"
    return Known(words, with_labels(release, lists, m), whole=False)


def with_same_visit(lists: VisitLists) -> Float64s:
    """The records with a visit of exactly the same labels, for each visit."""
    holders: dict[bytes, set[int]] = {}
    keys = [
        np.sort(lists.values[low:high]).tobytes()
        for low, high in zip(lists.offsets[:-1], lists.offsets[1:], strict=True)
    ]
    for key, record in zip(keys, lists.record.tolist(), strict=True):
        holders.setdefault(key, set()).add(record)
    return np.array([len(holders[key]) for key in keys], np.float64)


def with_codes_of_visit(lists: VisitLists, records: int) -> Float64s:
    """The records with all labels of a visit, for each visit drawn."""
    offsets, values = lists.united(records)
    visits = CodeSets(lists.offsets, lists.values, lists.labels, pl.Series(lists.record))
    _, drawn = draw_known_codes(visits, len(lists.labels), "visits")
    sets = CodeSets(offsets, values, lists.labels, pl.Series(np.arange(records)))
    return supports_of(sets, drawn).astype(np.float64)


def with_labels(release: Release, lists: VisitLists, m: int) -> Float64s:
    """The records that show all of up to m labels of a record, for each record drawn; for one that shows none, all."""
    offsets, values = lists.united(release.records)
    sets = CodeSets(offsets, values, lists.labels, pl.Series(np.arange(release.records)))
    chosen, queries = draw_known_codes(sets, m, "shown codes")
    held = supports_of(sets, [query for query in queries if len(query)])
    alike = _alike(release)[[r for r, query in zip(chosen, queries, strict=True) if not len(query)]]
    return np.concatenate([held, alike]).astype(np.float64)


def _alike(release: Release) -> AnyArray:
    """int64[records]: the records of each record's class of demographics; all of them without classes."""
    if not release.parameters.get("demographics"):
        return np.full(release.records, release.records)
    classes = ReleasedClasses.read(release)
    return classes.records[classes.of_records(release)]
