"""What is in a cohort: its size, its notices, its codes, and the risk of releasing it as it is."""

from __future__ import annotations

from typing import Any

from leeward.analysis.itemsets import owners_of
from leeward.analysis.risk import SEED, risk_before
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.cohort.names import names_of
from leeward.cohort.sensitive import sensitive_of

NOTICED_ROWS = 20
"""Row numbers kept of a notice."""

PROFILED_CODES = 50


def profile(cohort: Cohort, *, k: int = 5) -> dict[str, Any]:
    """What is in a cohort, what its reader noticed, its codes' frequencies, and the risk of releasing it as
    it is.

    `risk` has a row for each number m of codes that an attacker knows: the patients with a set of m codes
    that fewer than `k` patients, or nobody else, have.
    """
    import numpy as np

    sets = cohort.code_sets()
    lengths, supports = sets.lengths(), sets.supports()
    top = np.argsort(-supports, kind="stable")[:PROFILED_CODES]
    names = names_of(cohort, [sets.codes[c] for c in top])
    return {
        "k": k,
        "source": source_facts(cohort),
        "notices": reader_notices(cohort),
        "codes": {
            "mean": float(lengths.mean()),
            "median": float(np.median(lengths)),
            "most": int(lengths.max()),
            "below_k": int((supports < k).sum()),
            "frequent": [
                {
                    "code": sets.codes[c],
                    "name": names[sets.codes[c]].name,
                    "patients": int(supports[c]),
                    "share": float(supports[c] / len(sets)),
                }
                for c in top
            ],
        },
        "sensitive": sensitive_topics(cohort, sets),
        "risk": risk_before(sets, k, seed=SEED),
    }


def sensitive_topics(cohort: Cohort, sets: CodeSets) -> list[dict[str, Any]] | None:
    """How many codes and patients each topic of the list of commonly sensitive codes has; None without a list."""
    import numpy as np

    listed = sensitive_of(cohort, sets.codes)
    if listed is None:
        return None
    owner, found = owners_of(sets.offsets), []
    for topic, codes in listed.items():
        held = np.isin(sets.codes, codes)[sets.values]
        found.append({"topic": topic, "codes": len(codes), "patients": len(np.unique(owner[held]))})
    return sorted(found, key=lambda row: -int(row["patients"]))


def source_facts(cohort: Cohort) -> dict[str, Any]:
    if cohort.events is None and cohort.patients is not None:
        return {"name": cohort.name, "patients": cohort.patients.height, "columns": cohort.patients.width}
    sets = cohort.code_sets()
    return {
        "name": cohort.name,
        "vocabulary": cohort.vocabulary,
        "patients": len(sets),
        "events": cohort.require_events().height,
        "codes": len(sets.codes),
    }


def reader_notices(cohort: Cohort) -> list[dict[str, Any]]:
    return [
        {"kind": n.kind, "message": n.message, "count": n.count, "rows": list(n.rows[:NOTICED_ROWS])}
        for n in cohort.notices
    ]
