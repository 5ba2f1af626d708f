"""Bin merging: rare codes become generalized ones inside their group (Heatherly et al. 2013).

Conventions: docs/methods/visits.md#bin-merging.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Patients = frozenset[int]
SEPARATOR = "|"
"""Joins the members of a generalized code: `401.0|401.1`."""


@dataclass(frozen=True)
class Merging:
    """What becomes of each code.

    label_of : code number -> label, or None where the code is suppressed.
    merged, suppressed : how many codes are inside a generalized one, and how many are gone.
    """

    label_of: tuple[str | None, ...]
    merged: int
    suppressed: int

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that are left, ascending."""
        return tuple(sorted({label for label in self.label_of if label is not None}))


@dataclass(frozen=True)
class _Active:
    """A (generalized) code below k: its members ascending, the patients who hold any of them."""

    members: tuple[int, ...]
    patients: Patients

    def joined(self, others: Iterable[_Active]) -> _Active:
        every = [self, *others]
        members = sorted(member for each in every for member in each.members)
        return _Active(tuple(members), frozenset().union(*(each.patients for each in every)))


def merge(
    codes: Sequence[str],
    frequencies: Sequence[int],
    rare: dict[int, set[int]],
    group_of: Sequence[int],
    k: int,
    *,
    rescue: bool = False,
) -> Merging:
    """Merge codes below `k` along their groups, then suppress what stays below.

    Parameters
    ----------
    codes : the codes, ascending.
    frequencies : patients with each code.
    rare : the patients of every code with fewer than `k`, by code number.
    group_of : the group of each code; only codes of one group may merge.
    rescue : left-overs below `k` join the least frequent code of their group that has `k` (ties: the smallest
        member), instead of being lost.
    """
    active = [_Active((code,), frozenset(rare[code])) for code in sorted(rare)]
    done: list[_Active] = []
    width = 1
    while True:
        active = _one_pass(active, group_of, width, k, done)
        if width >= k - 1:
            break
        width *= 2
    into = _rescue(active, done, frequencies, group_of, rare, k) if rescue else {}
    return _outcome(codes, rare, done, active, into)


def _one_pass(
    active: list[_Active], group_of: Sequence[int], width: int, k: int, done: list[_Active]
) -> list[_Active]:
    """One snapshot: all members of the same bin and group become one; who reaches k moves to `done`."""
    bins: dict[tuple[int, int], list[_Active]] = {}
    for each in active:
        bins.setdefault(((len(each.patients) - 1) // width, group_of[each.members[0]]), []).append(each)
    left: list[_Active] = []
    for key in sorted(bins):
        first, *others = bins[key]
        union = first.joined(others)
        (done if len(union.patients) >= k else left).append(union)
    return left


def _rescue(
    leftovers: list[_Active],
    done: list[_Active],
    frequencies: Sequence[int],
    group_of: Sequence[int],
    rare: dict[int, set[int]],
    k: int,
) -> dict[int, int]:
    """Give the left-overs of a group to its least frequent code, as merging left the frequencies.

    A generalized code takes them in place; the rest is returned: member -> single code that takes it.
    """
    takers: dict[int, tuple[int, int, int]] = {}
    offers = [(held, code, -1) for code, held in enumerate(frequencies) if code not in rare and held >= k]
    offers += [(len(a.patients), a.members[0], place) for place, a in enumerate(done)]
    for offer in offers:
        group = group_of[offer[1]]
        takers[group] = min(takers.get(group, offer), offer)
    into: dict[int, int] = {}
    for each in [a for a in leftovers if group_of[a.members[0]] in takers]:
        leftovers.remove(each)
        _, code, place = takers[group_of[each.members[0]]]
        if place >= 0:
            done[place] = done[place].joined([each])
        else:
            into |= dict.fromkeys(each.members, code)
    return into


def _outcome(
    codes: Sequence[str],
    rare: dict[int, set[int]],
    done: list[_Active],
    lost: list[_Active],
    into: dict[int, int],
) -> Merging:
    members: dict[int, list[int]] = {}
    for code, target in into.items():
        members.setdefault(target, [target]).append(code)
    groups = [sorted(each) for each in members.values()] + [list(a.members) for a in done]
    label_of: list[str | None] = list(codes)
    for each in lost:
        for code in each.members:
            label_of[code] = None
    for group in groups:
        label = SEPARATOR.join(sorted(codes[code] for code in group))
        for code in group:
            label_of[code] = label
    return Merging(
        tuple(label_of), sum(len(g) for g in groups if len(g) > 1), sum(len(a.members) for a in lost)
    )
