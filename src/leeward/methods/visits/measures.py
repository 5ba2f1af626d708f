"""Utility and risk of anonymized visits (Heatherly et al. 2013, Tables 1 to 4).

Measures: `retention` (diagnosis count DC, code count CC, with and without generalization, against the cohort and
against the population), `risk` (visits whose set few patients have, before and after), `phewas` (associations lost
and false).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl

from leeward.analysis.demographics.joint import WholePatient, figures_of_records, records_in_release
from leeward.analysis.demographics.released import ReleasedClasses
from leeward.analysis.figures import Measures, figures_of
from leeward.analysis.phewas import associations
from leeward.analysis.phewas.phenotypes import phenotypes_of
from leeward.arrays import Float64s, Int64s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.visits import Visits
from leeward.errors import BadInput
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
PVALUES_KEPT = 20_000
"""Most tests listed individually for the plots."""


def measure(release: Release, cohort: Cohort, wanted: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Measure a release of visits against its source; an extract, against the same patients' originals. Raises BadInput
    for an unknown measure or option."""
    measures: Measures = {
        "retention": partial(retention, release, cohort),
        "risk": partial(risk, release, cohort),
        "phewas": partial(phewas, release, cohort),
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


def phewas(
    release: Release,
    cohort: Cohort,
    *,
    predictors: str | Sequence[str] = (),
    covariates: str | Sequence[str] = (),
    map: Any = None,  # noqa: A002  # the option's name
    ignored: bool = False,
    min_codes: int = 1,
    min_cases: int = 25,
    test: Literal["allelic", "logistic"] = "allelic",
    vocabularies: str | Sequence[str] = (),
) -> dict[str, Any]:
    """Associations in the original and in the release, with lost and false ones.

    `phecodes`: number tested in each. `regressions`: number in each by outcome
    (`analysis.phewas.associations.OUTCOMES`). `comparison`: significant associations by predictor and rule. `totals`:
    over all predictors, by rule. `tests`: both p of each phecode; `effect` is a log odds ratio, `beta` that of the
    regression. `effects`: how far these moved.
    `predictors`, `covariates`: columns of the patients, and of the release's payload. `map`: one or more phecode files;
    left out: the one added.
    """
    predictors, covariates = _columns(predictors), _columns(covariates)
    if not predictors:
        raise BadInput(
            "`measure: phewas` needs `predictors`, the columns of the patients that hold the SNPs."
        )
    mapping = associations.mapping_of(map, ignored=bool(ignored))
    vocabularies = tuple(_columns(vocabularies) or mapping.codes)
    min_codes, min_cases = int(min_codes), int(min_cases)
    if test not in ("allelic", "logistic"):
        raise BadInput(f"`measure: phewas`: `test` is allelic or logistic; got {test}.")
    lens = cohort.visits(merged=not {"visit", "date"} & set(cohort.require_events().columns))
    people = _people(cohort, lens, [*predictors, *covariates])
    mentions = lists_of(release).entries().rename({"record": "person"})
    before = phenotypes_of(mentions_of(lens), len(lens), mapping, vocabularies, min_codes)
    after = phenotypes_of(mentions, release.records, mapping, vocabularies, min_codes)
    carried = _payload(release, [*predictors, *covariates])
    original = associations.scan(before, people, predictors, covariates, min_cases=min_cases)
    anonymized = associations.scan(after, carried, predictors, covariates, min_cases=min_cases)
    scans = {"original": original, "anonymized": anonymized}
    comparison = associations.compare(original, anonymized, test)
    tests = _pair_tests(original, anonymized, test, mapping)
    tested = pl.col("p" if test == "logistic" else "p_allelic").is_not_null()
    return {
        "test": test,
        "min_codes": min_codes,
        "min_cases": min_cases,
        "phecodes": {name: of.filter(tested)["phecode"].n_unique() for name, of in scans.items()},
        "regressions": {
            name: {outcome: of.filter(regression=outcome).height for outcome in associations.OUTCOMES}
            for name, of in scans.items()
        },
        "comparison": comparison.select("original", "kept", "lost", "false", "predictor", "rule").to_dicts(),
        "totals": associations.totals(comparison),
        "effects": associations.compare_effects(tests),
        "tests": tests.to_dicts(),
    }


def _columns(given: str | Sequence[str] | None) -> list[str]:
    return [given] if isinstance(given, str) else [str(each) for each in given or ()]


def mentions_of(lens: Visits) -> pl.DataFrame:
    """`person`, `visit`, `code` of a cohort's visits, for `phenotypes_of`."""
    table = lens.table()
    codes = pl.Series(lens.codes, dtype=pl.Enum(lens.codes)).gather(table["code"])
    return table.select(pl.col("patient").alias("person"), "visit", codes.alias("code"))


def _people(cohort: Cohort, lens: Visits, names: Sequence[str]) -> pl.DataFrame:
    if cohort.patients is None or any(name not in cohort.patients.columns for name in names):
        raise BadInput(
            f"`measure: phewas`: {cohort.name} has no patients' columns {', '.join(names)}; read them with "
            "`columns: {patients: [...]}`."
        )
    wanted = lens.patients.alias("patient").to_frame()
    return wanted.join(
        cohort.patients.select("patient", *names), on="patient", how="left", maintain_order="left"
    )


def _payload(release: Release, names: Sequence[str]) -> pl.DataFrame:
    records = release.table("records.parquet")
    if any(name not in records.collect_schema().names() for name in names):
        raise BadInput(
            f"`measure: phewas`: the release does not carry {', '.join(names)}; release them with `payload`."
        )
    return records.select("record", *names).collect().sort("record")


def _pair_tests(before: pl.DataFrame, after: pl.DataFrame, test: str, mapping: Any) -> pl.DataFrame:
    """Both p and effects of each test, for the plots: those of the smallest p where there are too many."""
    column = "p" if test == "logistic" else "p_allelic"
    keys, fitted = ["predictor", "phecode"], ["beta", "error"]
    effect = pl.col("beta") if test == "logistic" else pl.col("odds_ratio").log()
    both = (
        before.select(*keys, "cases", *fitted, pl.col(column).alias("p_original"), effect.alias("effect"))
        .join(
            after.select(*keys, *fitted, pl.col(column).alias("p")).rename(
                {name: f"{name}_anonymized" for name in ("p", *fitted)}
            ),
            on=keys,
            how="full",
            coalesce=True,
        )
        .filter(pl.col("p_original").is_not_null() | pl.col("p_anonymized").is_not_null())
        .sort("p_original", *keys, nulls_last=True)
        .head(PVALUES_KEPT)
        .sort(keys)
    )
    rows = both.with_columns(
        pl.col("effect").replace([float("inf"), float("-inf")], None),
        category=pl.col("phecode").replace_strict(
            dict(mapping.categories), default="other", return_dtype=pl.String
        ),
        phenotype=pl.col("phecode").replace_strict(
            dict(mapping.phenotypes), default="", return_dtype=pl.String
        ),
    )
    columns = ("p_original", "effect", "cases", "p_anonymized", "category", "phenotype")
    return rows.select(*keys, *columns, *fitted, "beta_anonymized", "error_anonymized")


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
