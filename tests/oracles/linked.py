"""Linked tables, plainly: suppress rows of joined views until k patients share each (docs/methods/linked.md)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

Event = tuple[int, int, int, str]
"""Patient, visit, day, code."""


def rows_of(
    view: str, events: Sequence[Event], visits: Sequence[tuple[int, int, int]]
) -> set[tuple[int, object]]:
    """The distinct rows of a view with their patients: (patient, what is known)."""
    if view == "patients+events":
        return {(patient, code) for patient, _, _, code in events}
    if view == "patients+visits":
        return {(patient, day) for patient, _, day in visits}
    if view == "patients+visits+events":
        return {(patient, (day, code)) for patient, _, day, code in events}
    held: dict[int, set[str]] = {}
    for patient, _, _, code in events:
        held.setdefault(patient, set()).add(code)
    return {(patient, pair) for patient, codes in held.items() for pair in combinations(sorted(codes), 2)}


def holders(rows: set[tuple[int, object]]) -> dict[object, set[int]]:
    """The patients of each row."""
    found: dict[object, set[int]] = {}
    for patient, known in rows:
        found.setdefault(known, set()).add(patient)
    return found


def suppress(
    visits: Sequence[tuple[int, int, int]], events: Sequence[Event], k: int, joins: Sequence[str]
) -> tuple[list[tuple[int, int, int]], list[Event]]:
    """What is left of one class's visits and events."""
    visits, events = list(visits), list(events)

    def few(view: str) -> dict[object, set[int]]:
        return {known: who for known, who in holders(rows_of(view, events, visits)).items() if len(who) < k}

    while True:
        before = len(visits), len(events)
        if "patients+visits" in joins:
            rare = few("patients+visits")
            visits = [each for each in visits if each[2] not in rare]
            kept = {(patient, visit) for patient, visit, _ in visits}
            events = [each for each in events if each[:2] in kept]
        if "patients+events" in joins:
            rare = few("patients+events")
            events = [each for each in events if each[3] not in rare]
        if "patients+visits+events" in joins:
            rare = few("patients+visits+events")
            events = [each for each in events if each[2:] not in rare]
        if "patients+events+events" in joins:
            support = {
                code: len(who) for code, who in holders(rows_of("patients+events", events, visits)).items()
            }
            gone = set()
            for pair, who in few("patients+events+events").items():
                a, b = pair  # type: ignore[misc]  # a pair of codes
                gone |= {(patient, a if support[a] < support[b] else b) for patient in who}
            events = [each for each in events if (each[0], each[3]) not in gone]
        if before == (len(visits), len(events)):
            return visits, events
