"""Visits inside classes of demographics, plain: the oracle of visits for the patients of each class by themselves, and
what must hold of any release, by its definition (docs/methods/whole-patient.md#methods)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from tests.oracles.visits import Data, Visit


def in_each_class(
    data: Data, class_of: Mapping[str, Hashable], run: Callable[[Data], Mapping[str, list[Visit]]]
) -> dict[str, list[Visit]]:
    """What becomes of every patient where each class is protected as a data set of its own."""
    found: dict[str, list[Visit]] = {}
    for each in sorted(set(class_of.values()), key=str):
        found |= run({p: visits for p, visits in data.items() if class_of[p] == each})
    return found


def few(data: Data, class_of: Mapping[str, Hashable], k: int) -> int:
    """Shown sets (a class and a set) that fewer than k patients of the class have in a visit."""
    shown = {(class_of[p], visit) for p, visits in data.items() for visit in visits if visit}
    return sum(
        sum(wanted in visits for p, visits in data.items() if class_of[p] == of) < k for of, wanted in shown
    )
