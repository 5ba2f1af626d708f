"""Which codes may merge: groups from a utility policy, or from a phecode map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.analysis.policies import Policy, constraints, parse
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.visits import Visits
from leeward.errors import BadInput

Longs = NDArray[np.int64]
PHECODE = "phecode"

PolicyLike = Policy | str | Mapping[str, Any] | None
"""What `policy` may be: any utility policy, `phecode` (the map that was added), `phecode:FILE`, or none."""


def check_policy(policy: PolicyLike) -> Policy | str | None:
    """The policy as kept in the parameters: `phecode` forms as text, others parsed. Raises BadInput."""
    if isinstance(policy, Mapping) and policy.get("policy") == PHECODE:
        path = policy.get("path")
        return PHECODE if path is None else f"{PHECODE}:{path}"
    if isinstance(policy, str) and policy.partition(":")[0] == PHECODE:
        return policy
    return parse(policy)


def groups_of(policy: Policy | str | None, cohort: Cohort, visits: Visits) -> Longs:
    """A group number of each code; codes in no group of the policy are groups by themselves."""
    if isinstance(policy, str):
        labels = phecodes_of(policy, cohort, visits.codes)
        return np.unique(np.array(labels), return_inverse=True)[1].astype(np.int64)
    found = constraints(policy, cohort.code_sets(), cohort.vocabulary)
    own = np.arange(len(visits.codes), dtype=np.int64) + len(found)
    return np.where(found.of_code >= 0, found.of_code, own).astype(np.int64)


def phecodes_of(policy: str, cohort: Cohort, codes: Sequence[str]) -> list[str]:
    """The phecode of each code, or the code itself where the map has none (docs/methods/visits.md#bin-merging)."""
    from leeward.vocabulary import phecode, registry

    _, _, path = policy.partition(":")
    mapping = phecode.load(Path(path) if path else registry.find(PHECODE))
    vocabulary = vocabulary_of(cohort)
    found = []
    for code in codes:
        known = vocabulary.get(code, cohort.vocabulary or "")
        names = [known] if known in mapping.codes else list(mapping.codes)
        group = next((g for name in names if (g := mapping.group(code, name)) is not None), None)
        found.append(f"code {code}" if group is None else f"phecode {group}")
    if all(each.startswith("code ") for each in found):
        raise BadInput(
            f"{mapping.name}: none of the {len(codes):,} codes has a phecode in this map; give the map of the cohort's "
            "vocabulary."
        )
    return found


def vocabulary_of(cohort: Cohort) -> dict[str, str]:
    """The vocabulary of each code where the events say it."""
    events = cohort.require_events()
    if "vocabulary" not in events.columns:
        return {}
    pairs = (
        events.select(pl.col("code").cast(pl.String), pl.col("vocabulary").cast(pl.String))
        .drop_nulls()
        .unique()
    )
    return dict(sorted(pairs.rows(), reverse=True))
