"""Utility and risk of anonymized visits (Heatherly et al. 2013, Tables 1 to 4).

Measures: `retention` (diagnosis count DC, code count CC, with and without generalization, against the cohort and
against the population), `risk` (visits whose set few patients have, before and after), `phewas` (associations lost
and false).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.demographics.joint import WholePatient, figures_of_records, records_in_release
from leeward.analysis.demographics.released import ReleasedClasses
from leeward.analysis.figures import Measures, figures_of
from leeward.analysis.phewas.measure import Mentions, phewas
from leeward.arrays import Float64s, Int64s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.visits import Visits
from leeward.methods.visits.sets import Distinct, VisitSets
from leeward.methods.visits.visit_lists import (
    SEPARATOR,
    VisitLists,
    lists_apart,
    lists_of,
    read_visit_lists,
)
from leeward.release import Release

DEFAULTS = ("retention", "risk", "demographics")


def measure(release: Release, cohort: Cohort, wanted: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Measure a release of visits against its source; an extract, against the same patients' originals. Raises BadInput
    for an unknown measure or option."""
    measures: Measures = {
        "retention": partial(retention, release, cohort),
        "risk": partial(risk, release, cohort),
        "phewas": partial(phewas, release, cohort, partial(_mentions, release, cohort)),
        "demographics": partial(whole_patient, release, cohort),
    }
    return figures_of(release, measures, wanted)


def retention(release: Release, cohort: Cohort) -> dict[str, Any]:
    """DC and CC, absolute, as a share of the cohort's (local) and of the population's (for extracts).

    DC counts distinct (patient, released code) pairs, CC original codes that are still represented. Without
    generalization: codes of fewer than k patients of the cohort dropped (`suppression_only`), and released codes that
    are single codes (`ungeneralized`).
    """
    codes, supports = cohort.supports().codes, cohort.supports().patients_of
    k = int(release.guarantee["k"])
    visits = lists_of(release)
    held = np.bincount(visits.unite(release.records)[1], minlength=len(visits.labels))
    known = set(codes)
    single = [place for place, label in enumerate(visits.labels) if SEPARATOR not in label and label in known]
    members = {member for label in visits.labels for member in label.split(SEPARATOR)} & known
    dc = {
        "original": int(supports.sum()),
        "released": int(held.sum()),
        "ungeneralized": int(held[single].sum()),
        "suppression_only": int(supports[supports >= k].sum()),
    }
    cc = {
        "original": len(codes),
        "released": len(members),
        "ungeneralized": len(single),
        "suppression_only": int(np.count_nonzero(supports >= k)),
    }
    # DC and CC of the original population of an extract, as its master's measures have them
    population = (release.custody_json("measures.json") or {}).get("method", {}).get("population", {})
    return {
        "dc": _with_shares(dc, population.get("dc")),
        "cc": _with_shares(cc, population.get("cc")),
        "records": {
            "released": release.records,
            "with_codes": int(np.count_nonzero(np.bincount(visits.record))),
        },
    }


def _with_shares(counts: dict[str, int], population: int | None) -> dict[str, Any]:
    """Four counts: `original`, `released`, `ungeneralized` (of codes released as they were), `suppression_only` (had
    rare codes been suppressed); as shares of the original cohort's (`local`) and, for an extract, of the population's.
    """
    shares: dict[str, Any] = dict(counts)
    for name, count in counts.items():
        if name != "original":
            shares[f"{name}_local"] = count / max(1, counts["original"])
    for name, count in counts.items():
        if population:
            shares[f"{name}_population"] = count / population
    return shares


def risk(release: Release, cohort: Cohort) -> dict[str, Any]:
    """Visits (and patients with such a visit) whose set fewer than k patients have exactly, before and after."""
    k = int(release.guarantee["k"])
    lens = cohort.visits(merged=bool(release.parameters.get("merge_visits")))
    before = VisitSets(lens.patient_offsets, lens.offsets, lens.values)
    lists = lists_apart(release)
    return {
        "k": k,
        "before": _few(before, len(lens.codes), k),
        "after": _few(lists.sets(release.records), len(lists.labels), k),
    }


def _few(visits: VisitSets, labels: int, k: int) -> dict[str, Any]:
    """Visits, their distinct sets, and visits (and people with one) whose set fewer than k people, or one, have."""
    distinct, people = Distinct.of(visits, labels), visits.patient_of_visit()
    holders = distinct.holders[distinct.set_of]
    few, alone = holders < k, holders == 1
    n, everyone = max(1, len(visits)), max(1, len(visits.patient_offsets) - 1)
    return {
        "visits": len(visits),
        "sets": len(distinct.first),
        "few": int(few.sum()),
        "few_share": int(few.sum()) / n,
        "alone": int(alone.sum()),
        "alone_share": int(alone.sum()) / n,
        "people_few_share": int(np.count_nonzero(np.bincount(people[few]))) / everyone,
        "people_alone_share": int(np.count_nonzero(np.bincount(people[alone]))) / everyone,
    }


def _mentions(release: Release, cohort: Cohort) -> Mentions:
    lens = cohort.visits(merged=not {"visit", "date"} & set(cohort.require_events().columns))
    return Mentions(
        lens.patients, mentions_of(lens), lists_of(release).entries().rename({"record": "person"})
    )


def mentions_of(lens: Visits) -> pl.DataFrame:
    """`person`, `visit`, `code` of a cohort's visits, for `phenotypes_of`."""
    table = lens.table()
    codes = pl.Series(lens.codes, dtype=pl.Enum(lens.codes)).gather(table["code"])
    return table.select(pl.col("patient").alias("person"), "visit", codes.alias("code"))


def whole_patient(release: Release, cohort: Cohort) -> WholePatient:
    """Errors of queries of demographics and codes next to the baseline, loss per column, risk before. A released
    patient with a merged label counts 1 / its number of members for each of its codes."""
    sets = records_in_release(release, cohort, cohort.code_sets())
    holders = holders_of(read_visit_lists(release.path("visits.parquet")), sets.codes)
    return figures_of_records(
        release, cohort, sets, ReleasedClasses.read(release).of_records(release), holders
    )


def holders_of(visits: VisitLists, codes: Sequence[str]) -> list[tuple[Int64s, Float64s]]:
    """For each code the records with a label that contains it, ascending, and its share of that label."""
    owner = np.repeat(visits.record, visits.sizes())
    number = {code: i for i, code in enumerate(codes)}
    by_label = np.split(owner[np.argsort(visits.values, kind="stable")],
                        np.cumsum(np.bincount(visits.values, minlength=len(visits.labels)))[:-1])  # fmt: skip
    found: list[list[tuple[Int64s, float]]] = [[] for _ in codes]
    for label, records in zip(visits.labels, by_label, strict=True):
        members = label.split(SEPARATOR)
        for member in members:
            if member in number:
                found[number[member]].append((np.unique(records), 1 / len(members)))
    return [join(each) for each in found]


def join(parts: Sequence[tuple[Int64s, float]]) -> tuple[Int64s, Float64s]:
    """Merge the records of several labels, each once, with its greatest share."""
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0)
    records = np.concatenate([each for each, _ in parts])
    share = np.concatenate([np.full(len(each), part) for each, part in parts])
    order = np.lexsort((-share, records))
    distinct, first = np.unique(records[order], return_index=True)
    return distinct, share[order][first]
