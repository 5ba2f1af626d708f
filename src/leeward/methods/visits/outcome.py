"""What a run of visits made, before it is arranged for the recipient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leeward.arrays import Int32s
from leeward.cohort.lenses.visits import Visits as Lens
from leeward.methods.visits.bins import Merging
from leeward.methods.visits.classed import bare
from leeward.methods.visits.kernels import counting
from leeward.methods.visits.sets import VisitSets

if TYPE_CHECKING:
    from leeward.analysis.demographics import Classes


@dataclass(frozen=True)
class Outcome:
    """What a run made, in the lens's order.

    labels : every label that visits may hold. of_code : the label of each code, -1 where it is suppressed.
    up : the node each label climbs to. mapped, enforced : visits after merging, and after enforcement.
    classes : of the released patients, in the lens's order; codes and labels then carry the number of their class.
    """

    lens: Lens
    merging: Merging
    labels: tuple[str, ...]
    of_code: Int32s
    up: Int32s | None
    mapped: VisitSets
    enforced: VisitSets
    steps: int
    classes: Classes | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The labels as they are released."""
        return self.labels if self.classes is None else tuple(map(bare, self.labels))

    def kept_as(self) -> Any:
        """int8: what became of each pair of visit and code of the lens (see `kernels.counting`)."""
        lens = self.lens
        up = np.full(len(self.labels), -1, np.int32) if self.up is None else self.up
        kinds = [
            counting.ABOVE if label is None else counting.EXACT if label == code else counting.MERGED
            for code, label in zip(lens.codes, self.merging.label_of, strict=True)
        ]
        return counting.classify_pairs(
            lens.offsets,
            lens.values,
            self.of_code,
            np.array(kinds, np.int8),
            up,
            self.enforced.offsets,
            self.enforced.values,
        )
