"""Adding records to finished groups, one by one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leeward.methods.trajectories import problem, searching
from leeward.methods.trajectories.records import Group, Records
from leeward.methods.trajectories.space import Space

Longs = NDArray[np.int64]


class Joiner:
    """Adds records to groups one by one, for merges that diversity asks for."""

    def __init__(self, records: Records, space: Space) -> None:
        self.problem = problem.make(records.offsets, records.codes, records.ages, space, 2)
        self.data = searching.data_of(self.problem)
        self.entry = np.empty(len(records), np.int32)
        sizes = np.diff(self.problem.record_offsets)
        self.entry[self.problem.records] = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)

    def joined(self, group: Group, records: Longs) -> Group:
        """The group with these records, aligned in the order given."""
        from leeward.methods.trajectories.kernels import improve as _improve

        longest = max(self.problem.longest, len(group.codes))
        xc, xa = np.zeros(longest, np.int32), np.zeros(longest, np.int32)
        m = len(group.codes)
        xc[:m], xa[:m] = group.codes, group.ages
        room = _improve.room_for(longest)
        for record in records.tolist():
            m, _ = _improve.join(self.data, xc, xa, m, self.entry[record], room)
        return Group(np.concatenate([group.members, records]), xc[:m].copy(), xa[:m].copy())

    def saving(self, group: Group) -> int:
        """Σ s of the published pairs."""
        return searching.worth_of(self.problem, group)
