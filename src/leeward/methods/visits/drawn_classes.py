"""Classes of demographics in a cohort drawn from a master: the master's labels, unchanged
(docs/methods/whole-patient.md#methods)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from leeward.analysis.demographics.released import ReleasedClasses
from leeward.arrays import Int64s
from leeward.methods.whole_patient import hierarchy_table, labels_of_records
from leeward.release import Release
from leeward.release.content import ReleaseTable


@dataclass(frozen=True)
class DrawnClasses:
    """The classes of a master, and the place of the class of each master record among them: int64[records]."""

    classes: ReleasedClasses
    of_record: Int64s

    @staticmethod
    def of(release: Release) -> DrawnClasses | None:
        """The classes of a master; None without demographics."""
        if not release.parameters.get("demographics"):
            return None
        classes = ReleasedClasses.read(release)
        return DrawnClasses(classes, classes.of_records(release))

    @property
    def names(self) -> tuple[str, ...]:
        """The demographic columns."""
        return self.classes.names

    def labels(self, order: Int64s) -> dict[str, pa.Array]:
        """The labels of some master records, one text column a demographic."""
        return labels_of_records(self.names, self.classes.labels, self.of_record[order])

    def tables(self, order: Int64s) -> list[ReleaseTable]:
        """`classes.parquet` and hierarchies of the classes that some master records are of, and of nothing else."""
        sizes = self._sizes(order)
        used = np.flatnonzero(sizes)
        columns = {
            "class": pa.array(np.arange(len(used), dtype=np.int64)),
            **labels_of_records(self.names, self.classes.labels, used),
            "records": pa.array(sizes[used]),
        }
        found = [ReleaseTable.of("classes.parquet", pa.table(columns))]
        for i, (name, parent) in enumerate(zip(self.names, self.classes.parents, strict=True)):
            shown = {self.classes.labels[c][i] for c in used}
            shown |= {above for label in tuple(shown) for above in self.classes.above(parent, label)}
            pairs = [(node, parent[node]) for node in parent if node in shown]
            found.append(hierarchy_table(f"hierarchies/{name}.csv", pairs))
        return found

    def members(self, order: Int64s, k: int) -> tuple[int, int, int, int]:
        """Members in classes of fewer than k members, members alone in theirs, the smallest class of the cohort, and
        the smallest of these classes in the master."""
        sizes = self._sizes(order)
        own = sizes[self.of_record[order]]
        whole = int(self.classes.records[sizes > 0].min())
        return int((own < k).sum()), int((own == 1).sum()), int(own.min()), whole

    def _sizes(self, order: Int64s) -> Int64s:
        """int64[classes]: the members of each."""
        return np.bincount(self.of_record[order], minlength=len(self.classes.labels)).astype(np.int64)
