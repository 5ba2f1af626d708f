"""The k-map over demographics and counts, by its definition, plain (docs/methods/whole-patient.md#methods)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

Person = tuple[tuple[str, ...], Counter[str]]
"""Exact demographics, and mentions of codes."""

MayBe = Callable[[str, str], bool]
"""Whether somebody with an exact value (the second) may have a label (the first)."""


def owners(released: Person, population: Sequence[Person], may_be: MayBe) -> int:
    """People of the population who fit the labels of a released record and have all of its mentions."""
    labels, shown = released
    return sum(
        all(may_be(label, value) for label, value in zip(labels, values, strict=True)) and shown <= held
        for values, held in population
    )


def few(records: Sequence[Person], population: Sequence[Person], may_be: MayBe, k: int) -> int:
    """Released records that fewer than k people could be the owner of."""
    return sum(owners(record, population, may_be) < k for record in records)
