"""What anonymized visits keep, and what they hide (Heatherly et al. 2013, Tables 1 to 4).

Measures: `retention` (diagnosis count DC, code count CC, with and without generalization, against the cohort and
against the population), `risk` (visits whose set points at few patients, before and after), `phewas` (associations lost
and false).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl

from leeward.analysis.demographics.released import ReleasedClasses
from leeward.analysis.figures import Measures, figures_of
from leeward.analysis.phewas import associations
from leeward.analysis.phewas.phenotypes import phenotypes_of
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.visits import Visits
from leeward.errors import BadInput
from leeward.methods.visits.measures.figures import (
    Compared,
    Counts,
    FewHolders,
    OnePhecode,
    Phewas,
    Retention,
    Risk,
    Significant,
)
from leeward.methods.visits.measures.whole_patient import whole_patient
from leeward.methods.visits.visit_lists import VisitLists, read_visit_lists
from leeward.release import Release

DEFAULTS = ("retention", "risk", "demographics")
MEMBERS = "|"
PVALUES_KEPT = 20_000
"""At most so many tests are listed one by one for the plots."""


def measure(release: Release, cohort: Cohort, wanted: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of a release of visits against its source; of an extract, against the same patients' originals.

    Raises
    ------
    BadInput
        Unknown measure or option.
    """
    measures: Measures = {
        "retention": partial(retention, release, cohort),
        "risk": partial(risk, release, cohort),
        "phewas": partial(phewas, release, cohort),
        "demographics": partial(whole_patient, release, cohort),
    }
    return figures_of(release, measures, wanted)


def retention(release: Release, cohort: Cohort) -> Retention:
    """DC and CC, absolute, as a share of the cohort's (local) and of the population's (for extracts).

    DC counts distinct (patient, released code) pairs, CC original codes that are still represented. Without
    generalization: codes of fewer than k patients of the cohort dropped (`suppression_only`), and released codes that
    are single codes (`ungeneralized`).
    """
    sets = cohort.code_sets()
    supports = sets.supports()
    k = int(release.guarantee["k"])
    visits = lists_of(release)
    held = np.bincount(visits.united(release.records)[1], minlength=len(visits.labels))
    known = set(sets.codes)
    single = [place for place, label in enumerate(visits.labels) if MEMBERS not in label and label in known]
    members = {member for label in visits.labels for member in label.split(MEMBERS)} & known
    dc = {
        "original": int(supports.sum()),
        "released": int(held.sum()),
        "ungeneralized": int(held[single].sum()),
        "suppression_only": int(supports[supports >= k].sum()),
    }
    cc = {
        "original": len(sets.codes),
        "released": len(members),
        "ungeneralized": len(single),
        "suppression_only": int(np.count_nonzero(supports >= k)),
    }
    population = _population_counts(release)
    return Retention(
        Counts.with_shares(dc, population.get("dc")),
        Counts.with_shares(cc, population.get("cc")),
        {"released": release.records, "with_codes": int(np.count_nonzero(np.bincount(visits.record)))},
    )


def lists_of(release: Release) -> VisitLists:
    """The released visits, those of a record together."""
    return read_visit_lists(release.path("visits.parquet")).by_record()


def lists_apart(release: Release) -> VisitLists:
    """The released visits; with demographics the labels of each class apart, so that counts are inside a class."""
    visits = lists_of(release)
    if not release.parameters.get("demographics"):
        return visits
    return visits.apart(ReleasedClasses.read(release).of_records(release))


def _population_counts(release: Release) -> dict[str, int]:
    """DC and CC of the original population of an extract, as its master's measures have them."""
    method = (release.custody_json("measures.json") or {}).get("method", {})
    population: dict[str, int] = method.get("population", {})
    return population


def risk(release: Release, cohort: Cohort) -> Risk:
    """Visits (and patients with such a visit) whose set fewer than k patients have exactly, before and after."""
    k = int(release.guarantee["k"])
    merged = bool(release.parameters.get("merge_visits"))
    lens = cohort.visits(merged=merged)
    before = _few(lens.patient_of_visit(), lens.offsets, lens.values, len(lens), k)
    visits = lists_apart(release)
    after = _few(visits.record, visits.offsets, visits.values, release.records, k)
    return Risk(k, before, after)


def _few(people: Any, offsets: Any, values: Any, everyone: int, k: int) -> FewHolders:
    """How many visits and people have a set that fewer than k people share; how many are alone with one.

    Sets are compared by 64-bit fingerprints: enough for a count (chance that two of a million meet: 1e-7).
    """
    from leeward.methods.visits.measures.kernels import count_people, fingerprints

    draws = np.random.Generator(np.random.Philox(key=1))
    keys = draws.integers(1, 2**63, int(values.max(initial=0)) + 1, dtype=np.uint64)
    prints = fingerprints(offsets, values, keys)
    room = 1 << max(4, (2 * len(prints)).bit_length())
    count = np.zeros(room, np.int64)
    places, distinct = count_people(
        prints,
        people,
        np.zeros(room, np.uint64),
        np.zeros(room, np.bool_),
        np.full(room, -1, np.int64),
        count,
    )
    holders = count[places]
    few, alone = holders < k, holders == 1
    n = max(1, len(prints))
    return FewHolders(
        visits=len(prints),
        sets=int(distinct),
        few=int(few.sum()),
        few_share=int(few.sum()) / n,
        alone=int(alone.sum()),
        alone_share=int(alone.sum()) / n,
        people_few_share=int(np.count_nonzero(np.bincount(people[few]))) / max(1, everyone),
        people_alone_share=int(np.count_nonzero(np.bincount(people[alone]))) / max(1, everyone),
    )


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
) -> Phewas:
    """Associations in the original and in the release, what was lost and what is false.

    Parameters
    ----------
    predictors, covariates : str or sequence of str
        Columns of the patients, and of the release's payload.
    map : path or paths, optional
        A phecode file, or several; left out: the one added.
    test : `allelic` or `logistic`
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
    lens = cohort.visits() if _has_visits(cohort) else cohort.visits(merged=True)
    people = _people(cohort, lens, [*predictors, *covariates])
    before = phenotypes_of(mentions_of(lens), len(lens), mapping, vocabularies, min_codes)
    after = phenotypes_of(_mentions_of_release(release), release.records, mapping, vocabularies, min_codes)
    carried = _payload(release, [*predictors, *covariates])
    original = associations.scan(before, people, predictors, covariates, min_cases=min_cases)
    anonymized = associations.scan(after, carried, predictors, covariates, min_cases=min_cases)
    scans = {"original": original, "anonymized": anonymized}
    comparison = associations.compare(original, anonymized, test)
    return Phewas(
        test=test,
        min_codes=min_codes,
        min_cases=min_cases,
        phecodes={name: _count_tests(of, test) for name, of in scans.items()},
        regressions={name: _regressions(of) for name, of in scans.items()},
        comparison=tuple(Compared(**row) for row in comparison.to_dicts()),
        totals={rule: Significant(**of) for rule, of in associations.totals(comparison).items()},
        tests=_pair_p_values(original, anonymized, test, mapping),
    )


def _columns(given: str | Sequence[str] | None) -> list[str]:
    return [given] if isinstance(given, str) else [str(each) for each in given or ()]


def _has_visits(cohort: Cohort) -> bool:
    columns = cohort.require_events().columns
    return "visit" in columns or "date" in columns


def mentions_of(lens: Visits) -> pl.DataFrame:
    """`person`, `visit`, `code` of a cohort's visits, for `phenotypes_of`."""
    table = lens.table()
    codes = pl.Series(lens.codes, dtype=pl.Enum(lens.codes)).gather(table["code"])
    return table.select(pl.col("patient").alias("person"), "visit", codes.alias("code"))


def _mentions_of_release(release: Release) -> pl.DataFrame:
    return lists_of(release).entries().rename({"record": "person"})


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


def _count_tests(results: pl.DataFrame, test: str) -> int:
    column = "p" if test == "logistic" else "p_allelic"
    return int(results.filter(pl.col(column).is_not_null())["phecode"].n_unique())


def _regressions(results: pl.DataFrame) -> dict[str, int]:
    """What became of the regressions (`associations.OUTCOMES`), over all predictors."""
    counts = dict(results.group_by("regression").len().rows())
    return {name: int(counts.get(name, 0)) for name in associations.OUTCOMES}


def _pair_p_values(
    before: pl.DataFrame, after: pl.DataFrame, test: str, mapping: Any
) -> tuple[OnePhecode, ...]:
    """Both p of each test, for the plots: the smallest where there are too many."""
    column = "p" if test == "logistic" else "p_allelic"
    keys = ["predictor", "phecode"]
    effect = pl.col("beta") if test == "logistic" else pl.col("odds_ratio").log()
    both = (
        before.select(*keys, pl.col(column).alias("p_original"), effect.alias("effect"), "cases")
        .join(after.select(*keys, pl.col(column).alias("p_anonymized")), on=keys, how="full", coalesce=True)
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
    return tuple(OnePhecode(**row) for row in rows.to_dicts())
