"""The measure `phewas` of releases with codes of patients: associations in the original and in the release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from leeward.analysis.phewas import associations
from leeward.analysis.phewas.phenotypes import phecodes_of_tree, phenotypes_of
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.release import Release
from leeward.vocabulary.hierarchy import Hierarchy

PVALUES_KEPT = 20_000
"""Most tests listed individually for the plots."""


@dataclass(frozen=True)
class Mentions:
    """Codes before and after: `person`, `visit`, `code`. Persons are numbers of `patients`, and of released records.
    `tree`: the released hierarchy, whose nodes count where they tell a phecode; None: they count for none."""

    patients: pl.Series
    original: pl.DataFrame
    released: pl.DataFrame
    tree: Hierarchy | None = None


def phewas(
    release: Release,
    cohort: Cohort,
    mentions: Callable[[], Mentions],
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
    both = mentions()
    people = _people(cohort, both.patients, [*predictors, *covariates])
    before = phenotypes_of(both.original, len(both.patients), mapping, vocabularies, min_codes)
    told = phecodes_of_tree(both.tree, mapping, vocabularies) if both.tree else None
    after = phenotypes_of(both.released, release.records, mapping, vocabularies, min_codes, told)
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


def _people(cohort: Cohort, patients: pl.Series, names: Sequence[str]) -> pl.DataFrame:
    if cohort.patients is None or any(name not in cohort.patients.columns for name in names):
        raise BadInput(
            f"`measure: phewas`: {cohort.name} has no patients' columns {', '.join(names)}; read them with "
            "`columns: {patients: [...]}`."
        )
    wanted = patients.alias("patient").to_frame()
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
