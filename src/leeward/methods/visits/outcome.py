"""What a run of visits made, before it is arranged for the recipient."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.arrays import Int32s
from leeward.cohort.lenses.visits import Visits as Lens
from leeward.methods.visits.bins import Merging
from leeward.methods.visits.sets import VisitSets


@dataclass(frozen=True)
class Outcome:
    """What a run made, in the lens's order.

    labels : every label that visits may hold. of_code : the label of each code, -1 where it is suppressed.
    up : the node each label climbs to. mapped, enforced : visits after merging, and after enforcement.
    """

    lens: Lens
    merging: Merging
    labels: tuple[str, ...]
    of_code: Int32s
    up: Int32s | None
    mapped: VisitSets
    enforced: VisitSets
    steps: int
