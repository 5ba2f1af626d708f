"""For the custodian: what generalization and suppression took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from leeward.analysis.policies import NONE
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.constraints.mapping import Mapping

if TYPE_CHECKING:
    from leeward.analysis.policies import Constraints as UtilityConstraints
    from leeward.methods.constraints.classed import Part


def losses_in_classes(parts: Sequence[Part], cap: float | None) -> dict[str, Any]:
    """What generalization and suppression took in all classes, for the custodian: a code is counted in every class that
    has it."""
    found = [losses(p.mapping, p.task.sets, p.task.utility, cap) for p in parts]
    occurrences = np.array([each["occurrences"] for each in found])
    records = np.array([len(part.records) for part in parts])
    counts = ("codes", "labels", "codes_intact", "codes_generalized", "codes_suppressed", "occurrences",
              "records_emptied")  # fmt: skip
    shares = ("occurrences_generalized_share", "occurrences_suppressed_share")
    utility = [each["utility"] for each in found]
    over = sorted({name for each in utility for name in each["over_cap_names"]})
    return {
        **{name: sum(each[name] for each in found) for name in counts},
        **{name: float(np.average([each[name] for each in found], weights=occurrences)) for name in shares},
        "largest_label": max(each["largest_label"] for each in found),
        "utility_loss": float(np.average([each["utility_loss"] for each in found], weights=records)),
        "utility": {
            "constraints": utility[0]["constraints"],
            "cap": cap,
            "over_cap": len(over),
            "over_cap_names": over,
            "labels_crossing": sum(each["labels_crossing"] for each in utility),
            "satisfied": all(each["satisfied"] for each in utility),
        },
    }


def notices_in_classes(parts: Sequence[Part], cap: float | None) -> list[str]:
    """What a custodian must not miss: each sentence once, with the number of classes."""
    said = Counter(
        sentence for p in parts for sentence in notices(p.mapping, p.task.sets, p.task.utility, cap)
    )
    return [f"In {number:,} of {len(parts):,} classes: {sentence}" for sentence, number in said.items()]


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
        share = float((number[members] < 0).mean()) if len(members) else 0.0
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
