"""ℓ-diversity of a payload column: in no group does one value make up more than 1/ℓ of the records.

Clusters are grown with at most k/ℓ records of a value. The last groups may not be diverse; each is merged
with a group that makes it so or, if there is none, with several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from leeward.arrays import Int32s, Int64s
from leeward.errors import GuaranteeUnreachable
from leeward.methods.trajectories.hierarchies import Space
from leeward.methods.trajectories.records import Group, Records

CANDIDATES = 50
"""Groups tried for a merge, the nearest in length."""


def require_reachable(classes: Sequence[Int32s], diversity: int) -> None:
    """Raise GuaranteeUnreachable if one value makes up more than 1/ℓ of the records of a class: then no grouping can
    help."""
    for values in classes:
        most = int(np.bincount(values).max())
        if most * diversity > len(values):
            raise GuaranteeUnreachable(
                f"one value of the sensitive column is held by {most:,} of {len(values):,} patients, more than 1 in "
                f"{diversity}: no grouping is {diversity}-diverse. Choose a lower `diversity`, or group the values."
            )


def diversify(groups: Sequence[Group], records: Records, space: Space, diversity: int, k: int) -> list[Group]:
    """Merge groups below k or not diverse with the group that keeps most."""
    good: list[Group] = []
    bad: list[Group] = []
    for group in groups:
        fine = len(group.members) >= k and _is_diverse(group.members, records, diversity)
        (good if fine else bad).append(group)
    merger = _Merger(records, space)
    for rest in bad:
        good.append(merger.absorb(rest, good, diversity))
    return good


def _is_diverse(members: Int64s, records: Records, diversity: int) -> bool:
    return max(_counts(members, records).values()) * diversity <= len(members)


def _counts(members: Int64s, records: Records) -> Counter[int]:
    assert records.group is not None  # for the types: the diversity of a column was asked for
    return Counter(records.group[members].tolist())


def _most_diluting(groups: Sequence[Group], rest: Group, records: Records) -> Group:
    common = _counts(rest.members, records).most_common(1)[0][0]
    return min(groups, key=lambda g: _counts(g.members, records)[common] / len(g.members))


class _Merger:
    def __init__(self, records: Records, space: Space) -> None:
        self.records, self.space = records, space
        self.axes, self.pairs = space.axes(), records.in_order(space)
        longest = int(records.lengths().max())
        self.room = np.empty((longest, longest), np.int64), np.empty((longest + 1, longest + 1), np.int64)

    def absorb(self, rest: Group, groups: list[Group], diversity: int) -> Group:
        """Merge `rest` with groups, which are removed from `groups`: with the diverse result that keeps most, else with
        the most diluting ones until the result is diverse."""
        while groups:
            fitting = [
                g for g in groups if _is_diverse(np.append(g.members, rest.members), self.records, diversity)
            ]
            best = self.closest(fitting, rest) if fitting else _most_diluting(groups, rest, self.records)
            groups.remove(best)
            rest = self.merge(best, rest.members)
            if fitting:
                break
        return rest

    def merge(self, group: Group, records: Int64s) -> Group:
        from leeward.methods.trajectories.kernels.alignment import align

        codes, ages, n = group.codes.copy(), group.ages.copy(), len(group.codes)
        for record in records.tolist():
            n = align(codes, ages, n, record, self.pairs, self.axes, *self.room)
        return Group(np.concatenate([group.members, records]), codes[:n], ages[:n])

    def closest(self, groups: Sequence[Group], rest: Group) -> Group:
        near = sorted(groups, key=lambda g: abs(len(g.codes) - len(rest.codes)))[:CANDIDATES]

        def gain(group: Group) -> int:
            changed = self.merge(group, rest.members), group
            after, before = (each.saving(self.space) * len(each.members) for each in changed)
            return after - before

        return max(near, key=gain)
