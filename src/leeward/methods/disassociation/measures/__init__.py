"""What disassociation cost: ARE, MRE, where codes sit (Loukides et al. 2014, sections 3.3 and 6.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.itemsets import mine, supports_of
from leeward.analysis.risk import risk_before
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.engine import beside
from leeward.errors import BadInput
from leeward.methods.disassociation.measures.covers import covers
from leeward.methods.disassociation.measures.estimates import (
    PRIORS,
    Estimates,
    check_prior,
    estimates_of_numbers,
    matching,
    spread,
)
from leeward.methods.disassociation.measures.placement import placement
from leeward.methods.disassociation.measures.published import Array, Published, read
from leeward.methods.disassociation.measures.risk import risk_after
from leeward.randomness import Randomness
from leeward.release import Release

WORKLOAD_SEED = 20140901
"""W2 and samples are drawn from a fixed stream: the same cohort gives the same queries on every run."""

MRE_PRIOR = "graded"
"""Most constraints of a fine policy are about rare codes, which the cubic prior counts too high; the figures under
every prior stand beside it."""

MRE_BOUNDS = (-0.24, -0.21, -0.10, -0.05, -0.025, 0.025, 0.05, 0.10, 0.21, 0.24)
"""Ends of the intervals of the paper's Figs. 19 to 21 (those it names: [-24 %, 5 %), [-21 %, -10 %), [-5 %,
5 %), [-2.5 %, 2.5 %]) and their mirror images; beyond them two open ones."""

RANDOM_CHAINS = 250
"""Records that W2 draws from: about 1,000 queries in all, as in the paper."""

RANDOM_SIZES = (1, 2, 3, 4, 5)
"""W2: c = 1 … 4 codes and the extension by one more."""

Answers = dict[tuple[str, bytes], tuple[int, int, float, int]]
"""Queries answered already, by prior and codes: the true count, low, expected, high."""

DEFAULTS: tuple[dict[str, Any], ...] = (
    {"are": {"workload": "frequent", "min_support": 0.0125}},
    {"are": {"workload": "frequent", "min_support": 0.00625}},
    {"are": {"workload": "random"}},
    {"mre": {}},
    {"placement": {}},
    {"risk": {}},
)
OPTIONS: dict[str, frozenset[str]] = {
    "are": frozenset({"workload", "min_support", "max_size", "prior", "queries"}),
    "mre": frozenset({"prior"}),
    "placement": frozenset(),
    "risk": frozenset({"largest_m"}),
}


def measure(release: Release, cohort: Cohort, wanted: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """The figures asked for (see `OPTIONS`), JSON-able, for the custodian only.

    Several `are` add up to several workloads under `are.workloads`.
    """
    for each in wanted:
        for name, options in each.items():
            _check_options(name, options)
    published, sets = read(release), released_sets(release, cohort)
    answers: Answers = {}
    figures: dict[str, Any] = {}

    def risk(options: Mapping[str, Any]) -> dict[str, Any]:
        before = risk_before(sets, published.k, seed=WORKLOAD_SEED, **options)
        return {**before, "after": risk_after(published, sets, seed=WORKLOAD_SEED)}

    asked = [(name, options) for each in wanted for name, options in each.items()]
    with beside() as other:  # the kernels release the interpreter lock
        risks = [other.submit(risk, options) for name, options in asked if name == "risk"]
        for name, options in asked:
            if name == "are":
                one = are(published, sets, **options, answers=answers)
                figures.setdefault("are", {"prior": one["prior"], "workloads": []})["workloads"] += one[
                    "workloads"
                ]
            elif name == "mre":
                figures["mre"] = mre(published, sets, policy_of(release), **options)
            elif name == "placement":
                figures["placement"] = {
                    **placement(published, sets, custody_facts(release)),
                    "covers": covers(published),
                }
        for found in risks:
            figures["risk"] = found.result()
    return figures


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    if name not in OPTIONS:
        raise BadInput(
            f"`measure`: `{name}` is not known for disassociation; choose from {', '.join(OPTIONS)}."
        )
    unknown = sorted(set(options) - OPTIONS[name])
    if unknown:
        known = ", ".join(sorted(OPTIONS[name])) or "none"
        raise BadInput(f"`measure: {name}`: unknown option `{unknown[0]}`; known: {known}.")


def released_sets(release: Release, cohort: Cohort) -> CodeSets:
    """The cohort's code sets with codes named as the release names them (repeats as `code#i`)."""
    if not release.parameters.get("repeats"):
        return cohort.code_sets()
    from leeward.cohort.lenses.code_sets import code_sets_of

    events = cohort.require_events()
    if "visit" in events.columns:  # a code counts once a visit
        events = events.unique(["patient", "visit", "code"])
    events = events.select("patient", pl.col("code").cast(pl.String))
    instance = pl.int_range(1, pl.len() + 1).over("patient", "code").cast(pl.String)
    renamed = events.with_columns(code=pl.col("code") + "#" + instance)
    names = renamed["code"].unique().sort()
    return code_sets_of(renamed.with_columns(pl.col("code").cast(pl.Enum(names))))


def are(
    published: Published,
    sets: CodeSets,
    *,
    workload: str = "frequent",
    min_support: int | float = 0.0125,
    max_size: int | None = None,
    prior: str = "cubic",
    queries: int | None = None,
    answers: Answers | None = None,
) -> dict[str, Any]:
    """Average relative error of COUNT queries: mean of |estimate - true| / true over queries with a true
    count > 0.

    `frequent` (W1): every set of codes that `min_support` of the patients have, at most `queries` of them
    (drawn evenly, all when None). `random` (W2): see `random_queries`, RANDOM_CHAINS records unless `queries` says
    otherwise; one workload a size from 1 to 5. `answers` spares what an earlier workload has answered.
    """
    answers = {} if answers is None else answers
    check_prior(prior)
    if workload == "frequent":
        drawn, total = frequent_queries(sets, min_support, max_size, queries)
        entry = _errors(published, sets, drawn, prior, answers)
        named = {
            "name": "frequent",
            "label": f"sets that at least {_percent(min_support)} of the patients have",
        }
        if isinstance(min_support, int):
            named["label"] = f"sets that at least {min_support:,} patients have"
        found = {**named, "min_support": min_support, "itemsets": total, **entry}
        return {"prior": prior, "workloads": [found]}
    if workload != "random":
        raise BadInput(f"`measure: are`: workload {workload!r} is not known; choose `frequent` or `random`.")
    by_size = random_queries(sets, RANDOM_CHAINS if queries is None else queries)
    return {
        "prior": prior,
        "workloads": [
            {
                "name": "random",
                "label": f"random sets of {size} code{'s' if size > 1 else ''}",
                "size": size,
                **_errors(published, sets, drawn, prior, answers),
            }
            for size, drawn in zip(RANDOM_SIZES, by_size, strict=True)
            if len(drawn)
        ],
    }


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def frequent_queries(
    sets: CodeSets, min_support: int | float, max_size: int | None, queries: int | None
) -> tuple[list[Array], int]:
    """W1, and how many itemsets reach the support (more than were drawn when `queries` is smaller)."""
    found = mine(sets, min_support, max_size)
    chosen = np.arange(len(found))
    if queries is not None and queries < len(found):
        stream = Randomness.of(WORKLOAD_SEED).stream("frequent queries")
        chosen = np.sort(stream.permutation(len(found))[:queries])
    return [found.items[found.offsets[i] : found.offsets[i + 1]] for i in chosen], len(found)


def random_queries(sets: CodeSets, queries: int) -> list[list[Array]]:
    """W2, one list a size: `queries` random records of two codes or more are drawn, the codes of each
    shuffled, and its first c codes are a set of size c, so that each set of c + 1 extends one of c. Records
    shorter than a size give no set of it."""
    stream = Randomness.of(WORKLOAD_SEED).stream("random queries")
    lengths = sets.lengths()
    able = np.flatnonzero(lengths >= min(2, int(lengths.max(initial=0))))
    chains = [
        stream.permutation(sets.values[sets.offsets[r] : sets.offsets[r + 1]])[: RANDOM_SIZES[-1]]
        for r in stream.choice(able, queries)
    ]
    return [[chain[:size] for chain in chains if len(chain) >= size] for size in RANDOM_SIZES]


def _errors(
    published: Published, sets: CodeSets, queries: list[Array], prior: str, answers: Answers
) -> dict[str, Any]:
    """ARE and what it rests on; a query with a true count of 0 has no relative error and is counted as
    skipped."""
    keys = [(prior, query.tobytes()) for query in queries]
    fresh = [query for query, key in zip(queries, keys, strict=True) if key not in answers]
    if fresh:
        new = estimate_queries(published, sets, fresh, prior)
        counts = supports_of(sets, fresh)
        for i, query in enumerate(fresh):
            answers[prior, query.tobytes()] = (counts[i], new.low[i], new.expected[i], new.high[i])
    columns = zip(*(answers[key] for key in keys), strict=True) if keys else ((), (), (), ())
    true, low, expected, high = (np.array(column) for column in columns)
    asked = true > 0
    errors = np.abs(expected[asked] - true[asked]) / true[asked]
    outside = (true < low) | (true > high)
    return {
        "queries": int(asked.sum()),
        "skipped": int((~asked).sum()),
        "are": float(errors.mean()) if len(errors) else 0.0,
        "median": float(np.median(errors)) if len(errors) else 0.0,
        "largest": float(errors.max()) if len(errors) else 0.0,
        "outside_bounds": int(outside.sum()),
    }


def estimate_queries(published: Published, sets: CodeSets, queries: list[Array], prior: str) -> Estimates:
    """Estimates of queries given as indices into the cohort's codes; codes that were not released count 0."""
    number = published.number
    translate = np.array([number.get(code, -1) for code in sets.codes], np.int32)
    numbered = [translate[query] for query in queries]
    known = np.array([bool((query >= 0).all()) for query in numbered], np.bool_)
    found = estimates_of_numbers(published, [q for q, k in zip(numbered, known, strict=True) if k], prior)
    if known.all():
        return found
    return spread(found, known)


def policy_of(release: Release) -> pl.DataFrame | None:
    """The utility policy applied (`constraint`, `code`), from custody; None where there was none."""
    file = None if release.custody is None else release.custody / "data" / "policy.parquet"
    return pl.read_parquet(file) if file is not None and file.is_file() else None


def custody_facts(release: Release) -> Mapping[str, Any]:
    """What the method told its custodian (`method` in `custody/measures.json`), where it is written
    already."""
    import json

    file = None if release.custody is None else release.custody / "measures.json"
    if file is None or not file.is_file():
        return {}
    facts: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8")).get("method", {})
    return facts


def mre(
    published: Published, sets: CodeSets, policy: pl.DataFrame | None, *, prior: str = MRE_PRIOR
) -> dict[str, Any]:
    """Matching relative error, (true - estimate) / true, of each constraint of the policy; a record matches a
    constraint when it has at least one of its codes. `by_prior` has the shares under every prior."""
    if policy is None:
        return {"policy": "none", "prior": prior, "constraints": [], "intervals": [], "skipped": 0}
    grouped = policy.select(pl.col("constraint", "code").cast(pl.String))
    grouped = grouped.group_by("constraint", maintain_order=True).agg("code")
    members: list[list[str]] = grouped["code"].to_list()
    estimated = matching(published, members, prior)
    found: list[dict[str, Any]] = []
    counted = matching_records(sets, members).tolist()
    names = grouped["constraint"].to_list()
    for name, codes, true, estimate in zip(names, members, counted, estimated.tolist(), strict=True):
        if true > 0:
            error = (true - estimate) / true
            found.append(
                {"name": name, "codes": len(codes), "true": true, "estimate": estimate, "mre": error}
            )
    skipped = len(members) - len(found)
    errors = np.array([each["mre"] for each in found])
    return {
        "policy": f"{len(found)} constraints",
        "prior": prior,
        "constraints": found,
        "skipped": skipped,
        "intervals": intervals(errors),
        **_narrow(errors),
        "by_prior": {each: _narrow(_errors_under(published, members, counted, each)) for each in PRIORS},
    }


def _errors_under(published: Published, members: list[list[str]], counted: list[int], prior: str) -> Array:
    true = np.array(counted)
    return ((true - matching(published, members, prior)) / np.maximum(true, 1))[true > 0]


def _narrow(errors: Array) -> dict[str, float]:
    return {
        "within_2_5_percent": _share(np.abs(errors) <= 0.025),
        "within_5_percent": _share(np.abs(errors) <= 0.05),
    }


def _share(mask: Array) -> float:
    return float(mask.mean()) if len(mask) else 0.0


def intervals(errors: Array) -> list[dict[str, Any]]:
    """How many errors lie in each interval [low, high) of `MRE_BOUNDS`; the two beyond have one end None, and
    [-2.5 %, 2.5 %] is closed, as in the paper."""
    ends: list[float | None] = [None, *MRE_BOUNDS, None]
    # Supports are whole numbers: rounding keeps 0.025 itself inside the middle interval.
    rounded = np.round(errors, 12)
    place = np.searchsorted(MRE_BOUNDS, rounded, side="right")
    place[rounded == 0.025] -= 1
    counts = np.bincount(place, minlength=len(MRE_BOUNDS) + 1)
    return [
        {"low": ends[i], "high": ends[i + 1], "count": int(n), "share": float(n / max(len(errors), 1))}
        for i, n in enumerate(counts)
    ]


def matching_records(sets: CodeSets, constraints: list[list[str]]) -> Array:
    """Number of records with at least one code of each constraint; constraints share no code."""
    from leeward.analysis import risk_kernels as kernels

    index = {code: i for i, code in enumerate(sets.codes)}
    constraint_of = np.full(len(sets.codes), -1, np.int64)
    for u, codes in enumerate(constraints):
        constraint_of[[index[code] for code in codes if code in index]] = u
    return np.asarray(kernels.matching_records(sets.offsets, sets.values, constraint_of, len(constraints)))
