"""The release in plain words: guarantee, how to read it; and for the custodian what it lost."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from leeward.analysis.policies import NONE
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.constraints.mapping import Mapping
from leeward.release.content import Guarantee, stated_facts

if TYPE_CHECKING:
    from leeward.analysis.policies import Constraints as UtilityConstraints
    from leeward.methods.constraints.parameters import Constraints

ATTACKER_OF_ANY = (
    "Somebody who knows up to {m} codes of a patient and looks for the records that could be theirs: at "
    "least {k} records fit, or the codes known tell nothing because they were suppressed."
)

ATTACKER_OF_LISTED = (
    "Somebody who knows one of the code sets that the custodian listed, or a part of it, of a patient: at "
    "least {k} released records fit, or the codes known tell nothing because they were suppressed."
)

NOT_PROTECTED = (
    "What the fitting records have in common: if all of them hold a label, it is learnt.",
    "Somebody who knows which codes a patient does not have.",
    "That a suppressed code occurs in the data at all: codes.parquet names it.",
    "Several releases of the same people compared with one another, or people who pool what they know.",
)

BEYOND_M = "Somebody who knows more than {m} codes of a patient."
BEYOND_LIST = "Somebody who knows a code set that the custodian did not list."

README = """\
`data/records.parquet` holds one row a patient: `record` (a new number, in an order that says nothing) and
`codes` (a list). A code that reads `(a,b,c)` is generalized: the patient has a, or b, or c, or several of
them. `data/codes.parquet` has one row a released label (`code`, and its `members`) and one a suppressed code
(`suppressed` is true, no members): suppressed codes were taken out of every record. Records that lost all
their codes stay in the file, empty, so that the number of records is the number of patients.

- To count patients with some codes, look up each code's label in `codes.parquet` and count the records that
hold all
  the labels. Where a label has several members that count is an upper bound. A usual estimate takes every
  non-empty subset of the members as equally likely: multiply by (2^(n-t))/(2^n - 1) for t codes asked for
  among n members.
- A count of a whole generalized code, "a or b or c", is exact.
- Nothing can be said of suppressed codes.
"""


def guarantee_of(method: Constraints) -> Guarantee:
    """What holds, against whom."""
    if method.m is None:
        return Guarantee(
            name="protected code sets",
            k=method.k,
            attacker=ATTACKER_OF_LISTED.format(k=method.k),
            not_protected=(BEYOND_LIST, *NOT_PROTECTED),
            facts=stated_facts("listed sets of codes", "release"),
        )
    return Guarantee(
        name="k^m-anonymity",
        k=method.k,
        m=method.m,
        attacker=ATTACKER_OF_ANY.format(k=method.k, m=method.m),
        not_protected=(BEYOND_M.format(m=method.m), *NOT_PROTECTED),
        facts=stated_facts("up to m codes", "release"),
    )


def readme_of(method: Constraints) -> str:
    """How a recipient reads the files; it does not depend on the data."""
    return README


def losses(
    mapping: Mapping, sets: CodeSets, utility: UtilityConstraints, cap: float | None
) -> dict[str, Any]:
    """What generalization and suppression took, for the custodian."""
    supports = sets.supports()
    number = mapping.label_numbers(sets.codes)
    gone = number < 0
    sizes = np.array([len(group) for group in mapping.members] or [1])
    merged = ~gone & (sizes[number] > 1)
    occurrences = int(supports.sum())
    return {
        "codes": len(sets.codes),
        "labels": len(mapping.labels),
        "codes_intact": int((~gone & ~merged).sum()),
        "codes_generalized": int(merged.sum()),
        "codes_suppressed": int(gone.sum()),
        "occurrences": occurrences,
        "occurrences_generalized_share": float(supports[merged].sum() / occurrences),
        "occurrences_suppressed_share": float(supports[gone].sum() / occurrences),
        "records_emptied": _emptied(sets, gone),
        "largest_label": int(sizes.max()),
        "utility_loss": utility_loss(mapping, sets),
        "utility": satisfaction(mapping, sets, utility, cap),
    }


def utility_loss(mapping: Mapping, sets: CodeSets) -> float:
    """UL of the release: Σ over labels (2^|g| - 1)/(2^M - 1) · σ/|D|, suppressed codes σ/|D|
    (docs/methods/constraints.md#loss).
    """
    _, values = mapping.apply(sets)
    supports = np.bincount(values, minlength=len(mapping.labels))
    whole = 2 ** len(sets.codes) - 1
    present = set(sets.codes)
    total = sum(
        (
            Fraction(2 ** len(present.intersection(group)) - 1, whole) * int(support)
            for group, support in zip(mapping.members, supports, strict=True)
        ),
        Fraction(0),
    )
    gone = int(sets.supports()[mapping.label_numbers(sets.codes) < 0].sum())
    return float((total + gone) / len(sets))


def satisfaction(
    mapping: Mapping, sets: CodeSets, utility: UtilityConstraints, cap: float | None
) -> dict[str, Any]:
    """Which utility constraints hold: labels inside one constraint, and at most `cap` of its codes
    suppressed.
    """
    number = mapping.label_numbers(sets.codes)
    crossing = crossing_labels(number, utility.of_code, len(mapping.labels)) if utility.names else 0
    over: list[str] = []
    for name, members in zip(utility.names, utility.members(), strict=True):
        share = float((number[members] < 0).mean())
        if cap is not None and share > cap:
            over.append(name)
    return {
        "constraints": len(utility.names),
        "cap": cap,
        "over_cap": len(over),
        "over_cap_names": over,
        "labels_crossing": crossing,
        "satisfied": crossing == 0 and not over,
    }


def crossing_labels(number: np.ndarray[Any, Any], of_code: np.ndarray[Any, Any], n_labels: int) -> int:
    """Labels of several codes that are not all of one constraint."""
    crossing = 0
    for label in range(n_labels):
        constraints = of_code[number == label]
        crossing += len(constraints) > 1 and (len(np.unique(constraints)) > 1 or int(constraints[0]) == NONE)
    return int(crossing)


def notices(mapping: Mapping, sets: CodeSets, utility: UtilityConstraints, cap: float | None) -> list[str]:
    """What a custodian must not miss."""
    found = []
    if not mapping.labels:
        found.append(
            "Every code was suppressed: the release says how many records there are, and nothing else."
        )
    elif len(mapping.labels) == 1:
        found.append(
            "One label is left: the release distinguishes records with it from records without it, and nothing else."
        )
    over = satisfaction(mapping, sets, utility, cap)["over_cap"]
    if over:
        found.append(
            f"Utility constraint violated: {over:,} of them lost more of their codes than the cap allows."
        )
    return found


def _emptied(sets: CodeSets, gone: np.ndarray[Any, Any]) -> int:
    kept = np.add.reduceat(~gone[sets.values], sets.offsets[:-1], dtype=np.int64)
    return int((kept == 0).sum())
