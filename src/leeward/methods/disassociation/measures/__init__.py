"""Measures of disassociation: ARE, MRE, placement of codes, risk (Loukides et al. 2014, sections 3.3 and 6.1)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.demographics.joint import WholePatient
from leeward.analysis.demographics.released import Concerned, ReleasedClasses
from leeward.analysis.figures import Measures, figures_of
from leeward.analysis.itemsets import supports_of
from leeward.analysis.risk import LARGEST_M, SEED, risk_before
from leeward.analysis.workloads import (
    NO_POLICY,
    WORKLOAD_SEED,
    average_relative_error,
    constraints_of,
    matching_errors,
    matching_records,
    policy_of,
    shares_within,
    workloads_of,
)
from leeward.arrays import AnyArray
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.disassociation.measures.estimates import (
    DEFAULT,
    PRIORS,
    Estimates,
    check_prior,
    estimates_in,
    estimates_of_numbers,
    matching,
    spread,
)
from leeward.methods.disassociation.measures.pieces import published_of
from leeward.methods.disassociation.measures.placement import placement
from leeward.methods.disassociation.measures.published import Published
from leeward.methods.disassociation.measures.risk import Knowledge, knowledge_of, risk_after
from leeward.methods.disassociation.rules import rename_repeats
from leeward.release import Release

MRE_PRIOR = "graded"
"""Most constraints of a fine policy are about rare codes, which the cubic prior counts too high; the figures under
every prior are reported too."""

RANDOM_CHAINS = 250
"""Records that W2 draws from: about 1,000 queries in all, as in the paper."""

DEFAULTS = (
    {"are": {"workload": "frequent", "min_support": 0.0125}},
    {"are": {"workload": "frequent", "min_support": 0.00625}},
    {"are": {"workload": "random"}},
    "mre",
    "placement",
    "demographics",
    "risk",
)


def measure(release: Release, cohort: Cohort, wanted: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """The figures of disassociated records, for the custodian only. BadInput for an unknown measure or option."""
    published, sets = published_of(release), name_codes(release, cohort)
    if release.parameters.get("demographics"):  # a slow import, needed for demographics only
        from leeward.analysis.demographics.joint import records_in_release

        sets = records_in_release(release, cohort, sets)
    facts = (release.custody_json("measures.json") or {}).get("method", {})  # for the custodian
    measures: Measures = {
        "are": partial(are, published, sets),
        "mre": partial(mre, published, sets, policy_of(release)),
        "placement": lambda: placement(published, sets, facts),
        "demographics": partial(demographics, release, published, cohort, sets),
        "risk": lambda largest_m=LARGEST_M: risk(knowledge_of(release, published, cohort, sets), largest_m),
    }
    return figures_of(release, measures, wanted, apart="risk")  # the kernels release the interpreter lock


def risk(attacker: Knowledge, largest_m: int = LARGEST_M) -> dict[str, Any]:
    """Patients singled out by some of their codes in the source, and candidates in the release."""
    before = risk_before(attacker.sets, attacker.published.k, seed=SEED, largest_m=largest_m)
    after = risk_after(attacker, seed=WORKLOAD_SEED)
    return {**before, "after": after}


def demographics(release: Release, published: Published, cohort: Cohort, sets: CodeSets) -> WholePatient:
    """Errors of queries on demographics and codes and of the baseline, loss per column, risk before and after
    (docs/methods/whole-patient.md#measures)."""
    from leeward.analysis.demographics.joint import whole_patient

    numbers = ReleasedClasses.read(release).number
    translate = np.array([published.number.get(code, -1) for code in sets.codes], np.int32)

    def estimating(concerned: Concerned, queries: list[AnyArray]) -> tuple[AnyArray, AnyArray, AnyArray]:
        found = estimates_in(published, concerned, numbers, [translate[query] for query in queries])
        return found.low, found.expected, found.high

    def counting(concerned: Concerned, queries: list[AnyArray]) -> AnyArray:
        known = [np.sort(translate[query]) for query in queries]
        return estimates_in(published, concerned, numbers, known, "one").high

    return whole_patient(release, cohort, sets, int(release.guarantee["m"]), estimating, counting)


def name_codes(release: Release, cohort: Cohort) -> CodeSets:
    """The cohort's code sets with codes named as the release names them (repeats as `code#i`)."""
    return (
        rename_repeats(cohort.require_events()) if release.parameters.get("repeats") else cohort.code_sets()
    )


def are(
    published: Published,
    sets: CodeSets,
    *,
    workload: str = "frequent",
    min_support: int | float = 0.0125,
    max_size: int | None = None,
    prior: str = DEFAULT,
    queries: int | None = None,
) -> dict[str, Any]:
    """Average relative error of COUNT queries: mean of |estimate - true| / true over queries with a true count > 0
    (workloads: `leeward.analysis.workloads`)."""
    check_prior(prior)

    def errors(drawn: list[AnyArray]) -> dict[str, Any]:
        found = estimate_queries(published, sets, drawn, prior)
        return average_relative_error(supports_of(sets, drawn), found.expected, found.low, found.high)

    workloads = workloads_of(
        sets,
        errors,
        workload=workload,
        min_support=min_support,
        max_size=max_size,
        queries=queries,
        chains=RANDOM_CHAINS,
    )
    return {"prior": prior, "workloads": workloads}


def estimate_queries(published: Published, sets: CodeSets, queries: list[AnyArray], prior: str) -> Estimates:
    """Estimates of queries given as indices into the cohort's codes; codes that were not released count 0."""
    translate = np.array([published.number.get(code, -1) for code in sets.codes], np.int32)
    numbered = [translate[query] for query in queries]
    known = np.array([bool((query >= 0).all()) for query in numbered], np.bool_)
    found = estimates_of_numbers(published, [q for q, k in zip(numbered, known, strict=True) if k], prior)
    return spread(found, known)


def mre(
    published: Published, sets: CodeSets, policy: pl.DataFrame | None, *, prior: str = MRE_PRIOR
) -> dict[str, Any]:
    """Matching relative error, (true - estimate) / true, of each constraint of the policy; a record matches a
    constraint when it has at least one of its codes. `by_prior` has the shares under every prior."""
    if policy is None:
        return {**NO_POLICY, "prior": prior}
    names, members = constraints_of(policy)
    true = matching_records(sets, members)
    asked = true > 0

    def narrow(each: str) -> dict[str, float]:
        estimated = np.asarray(matching(published, members, each))
        return shares_within(((true - estimated) / np.maximum(true, 1))[asked])

    estimated = np.asarray(matching(published, members, prior))
    return {
        **matching_errors(names, members, true, estimated.tolist()),
        "prior": prior,
        "by_prior": {each: narrow(each) for each in PRIORS},
    }
