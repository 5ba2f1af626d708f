"""ℓ-diversity of a payload column: in no group does one value make up more than 1/ℓ of the records.

Clusters are grown with at most k/ℓ records of a value. What is left at the end may be one-sided; such groups are
dissolved into others that stay diverse, and, if none does, merged whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from leeward.errors import GuaranteeUnreachable
from leeward.methods.trajectories.joining import Joiner
from leeward.methods.trajectories.records import Group, Records
from leeward.methods.trajectories.space import Space

Ints = NDArray[np.int32]


def require_reachable(values: Ints, diversity: int) -> None:
    """Raise GuaranteeUnreachable if one value makes up more than 1/ℓ of all records: then no grouping can help."""
    most = int(np.bincount(values).max())
    if most * diversity > len(values):
        raise GuaranteeUnreachable(
            f"one value of the sensitive column is held by {most:,} of {len(values):,} patients, more than 1 in "
            f"{diversity}: no grouping is {diversity}-diverse. Choose a lower `diversity`, or group the values."
        )


def is_diverse(members: NDArray[np.int64], values: Ints, diversity: int) -> bool:
    """Whether no value makes up more than 1/ℓ of the members."""
    return max(Counter(values[members].tolist()).values()) * diversity <= len(members)


def diversify(groups: Sequence[Group], records: Records, space: Space, diversity: int, k: int) -> list[Group]:
    """The groups of these records, those that are too small or one-sided merged into others."""
    assert records.group is not None  # for the types: the diversity of a column was asked for
    values = records.group
    if all(len(g.members) >= k and is_diverse(g.members, values, diversity) for g in groups):
        return list(groups)
    joiner = Joiner(records, space)
    return repair(
        groups, values, diversity, k, joiner.joined, lambda group: joiner.saving(group) * len(group.members)
    )


def repair(
    groups: Sequence[Group],
    values: Ints,
    diversity: int,
    k: int,
    joined: Callable[[Group, NDArray[np.int64]], Group],
    saving: Callable[[Group], int],
) -> list[Group]:
    """The groups, those below k or not diverse merged with the group that keeps most.

    `joined(group, records)` aligns more records into a group; `saving(group)` is its Σ s times its size.
    """
    good: list[Group] = []
    bad: list[Group] = []
    for group in groups:
        fine = len(group.members) >= k and is_diverse(group.members, values, diversity)
        (good if fine else bad).append(group)
    for group in bad:
        rest = group
        while True:
            fitting = [g for g in good if is_diverse(_add(g, rest), values, diversity)]
            best = _best(fitting or good, rest, joined, saving, values, whole=bool(fitting))
            if best is None:
                break
            good.remove(best)
            rest = joined(best, rest.members)
            if fitting:
                break
        good.append(rest)
    return good


CANDIDATES = 50
"""Groups tried for a merge, those most unlike the rest in their sensitive values first."""


def _add(a: Group, b: Group) -> NDArray[np.int64]:
    return np.concatenate([a.members, b.members])


def _best(
    groups: Sequence[Group],
    rest: Group,
    joined: Callable[[Group, NDArray[np.int64]], Group],
    saving: Callable[[Group], int],
    values: Ints,
    whole: bool,
) -> Group | None:
    if not groups:
        return None
    near = sorted(groups, key=lambda g: abs(len(g.codes) - len(rest.codes)))[:CANDIDATES]
    if not whole:
        # No single group is enough: take the one that dilutes the most frequent value best.
        common = Counter(values[rest.members].tolist()).most_common(1)[0][0]
        return min(groups, key=lambda g: int((values[g.members] == common).sum()) / len(g.members))
    return max(near, key=lambda g: saving(joined(g, rest.members)) - saving(g))
