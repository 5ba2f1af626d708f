"""What generalization under constraints cost: ARE, MRE, codes lost, and the risk before
(docs/methods/constraints.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.generalized import Generalized, check_reading, counts, matching, read
from leeward.analysis.itemsets import supports_of
from leeward.analysis.relative_errors import average_relative_error
from leeward.analysis.risk import risk_before
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.errors import BadInput
from leeward.methods.disassociation.measures import (
    RANDOM_SIZES,
    WORKLOAD_SEED,
    frequent_queries,
    intervals,
    matching_records,
    policy_of,
    random_queries,
)
from leeward.methods.disassociation.measures.published import Array
from leeward.release import Release

LARGEST_SHOWN = 30

DEFAULTS: tuple[dict[str, Any], ...] = (
    {"are": {"workload": "frequent", "min_support": 0.0125}},
    {"are": {"workload": "frequent", "min_support": 0.00625}},
    {"are": {"workload": "random"}},
    {"mre": {}},
    {"codes": {}},
    {"risk": {}},
)
OPTIONS: dict[str, frozenset[str]] = {
    "are": frozenset({"workload", "min_support", "max_size", "reading", "queries"}),
    "mre": frozenset({"reading"}),
    "codes": frozenset(),
    "risk": frozenset({"largest_m"}),
}


def measure(release: Release, cohort: Cohort, wanted: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """The figures asked for (see `OPTIONS`), JSON-able, for the custodian only.

    Several `are` add up to several workloads under `are.workloads`. Raises BadInput for an unknown measure
    or option.
    """
    for each in wanted:
        for name, options in each.items():
            _check_options(name, options)
    released, sets = read(release), cohort.code_sets()
    figures: dict[str, Any] = {}
    for each in wanted:
        for name, options in each.items():
            if name == "are":
                one = are(released, sets, **options)
                figures.setdefault("are", {"reading": one["reading"], "workloads": []})
                figures["are"]["workloads"] += one["workloads"]
            elif name == "mre":
                figures["mre"] = mre(released, sets, policy_of(release), **options)
            elif name == "codes":
                figures["codes"] = codes(released, sets)
            else:
                k = int(release.guarantee["k"])
                figures["risk"] = risk_before(sets, k, seed=WORKLOAD_SEED, **options)
    return figures


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    if name not in OPTIONS:
        raise BadInput(f"`measure`: `{name}` is not known for constraints; choose from {', '.join(OPTIONS)}.")
    unknown = sorted(set(options) - OPTIONS[name])
    if unknown:
        known = ", ".join(sorted(OPTIONS[name])) or "none"
        raise BadInput(f"`measure: {name}`: unknown option `{unknown[0]}`; known: {known}.")


def are(
    released: Generalized,
    sets: CodeSets,
    *,
    workload: str = "frequent",
    min_support: int | float = 0.0125,
    max_size: int | None = None,
    reading: str = "subset",
    queries: int | None = None,
) -> dict[str, Any]:
    """Average relative error of COUNT queries, over all queries (suppressed codes estimated 0) and, under
    `kept`, over those on released codes only, as the paper reports it. Workloads as for disassociation.
    """
    check_reading(reading)
    if workload == "frequent":
        drawn, total = frequent_queries(sets, min_support, max_size, queries)
        least = f"{min_support:,}" if isinstance(min_support, int) else f"{100 * min_support:g} % of the"
        label = f"sets that at least {least} patients have"
        found = {"name": "frequent", "label": label, "min_support": min_support, "itemsets": total}
        return {"reading": reading, "workloads": [{**found, **_errors(released, sets, drawn, reading)}]}
    if workload != "random":
        raise BadInput(f"`measure: are`: workload {workload!r} is not known; choose `frequent` or `random`.")
    by_size = random_queries(sets, 1_000 if queries is None else queries)
    return {
        "reading": reading,
        "workloads": [
            {
                "name": "random",
                "label": f"random sets of {size} code{'s' if size > 1 else ''}",
                "size": size,
                **_errors(released, sets, drawn, reading),
            }
            for size, drawn in zip(RANDOM_SIZES, by_size, strict=True)
            if len(drawn)
        ],
    }


def _errors(released: Generalized, sets: CodeSets, queries: list[Array], reading: str) -> dict[str, Any]:
    true = supports_of(sets, [query.tolist() for query in queries])
    found = counts(released, [[sets.codes[c] for c in query] for query in queries], reading)
    kept = found.answerable
    return {
        **average_relative_error(true, found.expected, found.low, found.high),
        "kept": average_relative_error(true[kept], found.expected[kept]),
    }


def mre(
    released: Generalized, sets: CodeSets, policy: pl.DataFrame | None, *, reading: str = "subset"
) -> dict[str, Any]:
    """(true - estimate) / true of the number of records with a code of each utility constraint."""
    check_reading(reading)
    if policy is None:
        return {"policy": "none", "reading": reading, "constraints": [], "intervals": [], "skipped": 0}
    found: list[dict[str, Any]] = []
    skipped = 0
    grouped = policy.group_by("constraint", maintain_order=True).agg(pl.col("code").cast(pl.String))
    listed = grouped.select(pl.col("constraint").cast(pl.String), "code").rows()
    matches = matching_records(sets, [members for _, members in listed])
    for (name, members), true in zip(listed, matches.tolist(), strict=True):
        if true == 0:
            skipped += 1
            continue
        estimate = matching(released, members, reading)
        found.append(
            {
                "name": name,
                "codes": len(members),
                "true": true,
                "estimate": estimate,
                "mre": (true - estimate) / true,
            }
        )
    errors = np.array([each["mre"] for each in found])
    return {
        "policy": f"{len(found)} constraints",
        "reading": reading,
        "constraints": found,
        "skipped": skipped,
        "intervals": intervals(errors),
        "within_2_5_percent": float((np.abs(errors) <= 0.025).mean()) if len(errors) else 0.0,
        "within_5_percent": float((np.abs(errors) <= 0.05).mean()) if len(errors) else 0.0,
    }


def codes(released: Generalized, sets: CodeSets) -> dict[str, Any]:
    """What became of the codes: intact, generalized, suppressed; by codes and by their occurrences."""
    supports = sets.supports()
    size = np.array([_size(released, code) for code in sets.codes])
    occurrences = int(supports.sum())
    parts = {"intact": size == 1, "generalized": size > 1, "suppressed": size == 0}
    largest = sorted(released.members, key=lambda group: (-len(group), group))[:LARGEST_SHOWN]
    return {
        "codes": {"total": len(sets.codes), **{name: int(mask.sum()) for name, mask in parts.items()}},
        "occurrences": {
            "total": occurrences,
            **{name: int(supports[mask].sum()) for name, mask in parts.items()},
        },
        "labels": len(released.members),
        "largest_labels": [
            {"members": len(group), "records": _holders(released, group[0])}
            for group in largest
            if len(group) > 1
        ],
    }


def _size(released: Generalized, code: str) -> int:
    label = released.label_of.get(code)
    return 0 if label is None else len(released.members[label])


def _holders(released: Generalized, code: str) -> int:
    return int(supports_of(released.records, [[released.label_of[code]]])[0])
