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
    """Describe a cohort: its codes, what its reader noticed, and the risk of releasing it unchanged.

    Parameters
    ----------
    cohort : Cohort
        The data, from `read`.
    k : int, optional
        Patients are at risk if fewer than `k` have some set of their codes.

    Returns
    -------
    dict
        `source`, `notices`, `codes`, `sensitive` and `risk`: for each number `m` of codes that an attacker knows, the
        patients at risk (`below_k`) and those alone with a set of codes (`unique`).

    Raises
    ------
    BadInput
        The cohort has no codes.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> cohort = lw.read("events.csv")
    >>> found = lw.profile(cohort)
    >>> found["source"]["patients"]
    300
    >>> [(row["m"], row["below_k"]) for row in found["risk"]["by_m"]]
    [(1, 32), (2, 91), (3, 106), (4, 108), (5, 108)]
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


def refusals(cohort: Cohort) -> list[str]:
    """Why commands that release the cohort will refuse it, each with what to do."""
    from leeward.cohort.readers import refusals_of

    return [why for _, why in refusals_of(cohort, cohort.require_events().height)]


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
    known = cohort.supports()
    return {
        "name": cohort.name,
        "vocabulary": cohort.vocabulary,
        "patients": known.patients,
        "events": cohort.count_events(),
        "codes": len(known.codes),
    }


def reader_notices(cohort: Cohort) -> list[dict[str, Any]]:
    return [
        {"kind": n.kind, "message": n.message, "count": n.count, "rows": list(n.rows[:NOTICED_ROWS])}
        for n in cohort.notices
    ]
