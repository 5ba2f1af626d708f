"""Classes of demographics in a cohort drawn from a master: the master's labels, unchanged
(docs/methods/whole-patient.md#methods)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.arrays import Int64s
from leeward.methods.visits.visit_lists import VisitLists
from leeward.release import Release
from leeward.release.content import ReleaseTable


@dataclass(frozen=True)
class DrawnClasses:
    """The classes of a master, and the place of the class of each master record among them: int64[records]."""

    release: Release
    names: tuple[str, ...]
    classes: pl.DataFrame
    of_record: Int64s

    @staticmethod
    def of(release: Release) -> DrawnClasses | None:
        """The classes of a master; None without demographics."""
        names = tuple(str(name) for name in release.parameters.get("demographics") or ())
        if not names:
            return None
        classes = release.table("classes.parquet").collect().sort("class")
        place = {labels: i for i, labels in enumerate(classes.select(names).iter_rows())}
        records = release.table("records.parquet").collect().sort("record").select(names)
        return DrawnClasses(release, names, classes, np.array([place[row] for row in records.iter_rows()]))

    def apart(self, visits: VisitLists, of_record: Int64s) -> VisitLists:
        """The visits, the labels of codes of each class apart: who counts knows the class."""
        width = max(1, len(visits.labels))
        keys = np.repeat(of_record[visits.record], np.diff(visits.offsets)) * width + visits.values
        used, values = np.unique(keys, return_inverse=True)
        labels = tuple(f"{key // width} {visits.labels[key % width]}" for key in used.tolist())
        return replace(visits, values=values.reshape(-1).astype(np.int32), labels=labels)

    def labels(self, order: Int64s) -> dict[str, pa.Array]:
        """The labels of some master records, one text column a demographic."""
        place = pa.array(self.of_record[order])
        return {name: pa.array(self.classes[name].to_list(), pa.string()).take(place) for name in self.names}

    def tables(self, order: Int64s) -> list[ReleaseTable]:
        """`classes.parquet` and hierarchies of the classes that some master records are of, and of nothing else."""
        sizes = np.bincount(self.of_record[order], minlength=len(self.classes))
        used = np.flatnonzero(sizes)
        shown = self.classes[used]
        columns = {
            "class": pa.array(np.arange(len(used), dtype=np.int64)),
            **{name: pa.array(shown[name].to_list(), pa.string()) for name in self.names},
            "records": pa.array(sizes[used].astype(np.int64)),
        }
        return [
            ReleaseTable.of("classes.parquet", pa.table(columns)),
            *(self._hierarchy(name, set(shown[name])) for name in self.names),
        ]

    def _hierarchy(self, name: str, labels: set[str]) -> ReleaseTable:
        path = f"hierarchies/{name}.csv"
        tree = pl.read_csv(self.release.path(path), infer_schema=False, empty_string_is_null=False)
        parent = dict(tree.select("node", "parent").iter_rows())
        above = {label for label in labels if parent[label]}
        while above:
            above = {parent[label] for label in above if parent[label]} - labels
            labels |= above
        return ReleaseTable.of(path, tree.filter(pl.col("node").is_in(labels)).to_arrow())

    def members(self, order: Int64s, k: int) -> tuple[int, int, int, int]:
        """Members in classes of fewer than k members, members alone in theirs, the smallest class of the cohort, and
        the smallest of these classes in the master."""
        sizes = np.bincount(self.of_record[order], minlength=len(self.classes))
        own, used = sizes[self.of_record[order]], np.flatnonzero(sizes)
        whole = int(self.classes["records"].to_numpy()[used].min())
        return int((own < k).sum()), int((own == 1).sum()), int(own.min()), whole
