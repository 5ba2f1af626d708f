"""The classes of a release as a recipient reads them, and which of them a question concerns
(docs/methods/whole-patient.md#estimating-counts)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from leeward.analysis.demographics.columns import MISSING, interval_of
from leeward.arrays import Bools, Float64s, Int64s
from leeward.errors import BadInput, did_you_mean
from leeward.release import Release

LABELS_SHOWN = 12


@dataclass(frozen=True)
class Concerned:
    """What a question concerns: of each class the share of its records that is expected to have the demographics asked
    for (float64, 1 where all have), and whether any can (bool)."""

    share: Float64s
    possible: Bools


@dataclass(frozen=True)
class ReleasedClasses:
    """The classes of a release.

    number, records : int64[classes]
    labels : each class's labels, one a column of `names`
    parents : each column's released hierarchy, a label's parent; "" above the root
    """

    names: tuple[str, ...]
    number: Int64s
    records: Int64s
    labels: tuple[tuple[str, ...], ...]
    parents: tuple[Mapping[str, str], ...]

    @staticmethod
    def read(release: Release) -> ReleasedClasses:
        """The classes of a release. BadInput for a release without demographics."""
        names = tuple(map(str, release.parameters.get("demographics") or ()))
        if not names:
            raise BadInput(f"{release.share}: the release has no demographics.")
        table = pl.read_parquet(release.path("classes.parquet"))
        trees = [
            pl.read_csv(release.path(f"hierarchies/{name}.csv"), infer_schema=False).fill_null("")
            for name in names
        ]
        return ReleasedClasses(
            names,
            table["class"].to_numpy(),
            table["records"].to_numpy(),
            tuple(table.select(names).iter_rows()),
            tuple(dict(tree.select("node", "parent").iter_rows()) for tree in trees),
        )

    def of_records(self, release: Release) -> Int64s:
        """int64[records]: the place among the classes of each record, where `records.parquet` has labels."""
        place = {labels: i for i, labels in enumerate(self.labels)}
        rows = release.table("records.parquet").collect().sort("record").select(self.names)
        return np.array([place[labels] for labels in rows.iter_rows()], np.int64)

    def fitting(self, values: Sequence[str]) -> Bools:
        """bool[classes]: those that a patient with these exact values may be in."""
        return np.logical_and.reduce([self.fitting_value(i, value) for i, value in enumerate(values)])

    def fitting_value(self, i: int, value: str) -> Bools:
        """bool[classes]: those that a patient with this exact value in a column may be in."""
        return self._shares(i, value) != 0

    def part_of(self, where: Mapping[str, str]) -> Concerned:
        """The part of each class that the labels `where` concern; BadInput for an unknown column or label."""
        for name, wanted in where.items():
            if name not in self.names:
                raise BadInput(
                    f"the release has no column `{name}`.{did_you_mean(name, self.names)} Its columns: "
                    f"{', '.join(self.names)}."
                )
            self._require_label(name, wanted)
        return self.find_part(where)

    def find_part(self, where: Mapping[str, str]) -> Concerned:
        """`part_of` for labels that need not be in the release, as the custodian asks."""
        share, possible = np.ones(len(self.labels)), np.ones(len(self.labels), np.bool_)
        for name, wanted in where.items():
            shares = self._shares(self.names.index(name), wanted)
            inside, outside = int(self.records[shares == 1].sum()), int(self.records[shares == 0].sum())
            unknown = inside / (inside + outside) if inside + outside else 0.5
            share *= np.where(np.isnan(shares), unknown, shares)
            possible &= shares != 0
        return Concerned(share, possible)

    def _shares(self, i: int, wanted: str) -> Float64s:
        """float64[classes]: `_share` of each class's label in column i, NaN for None."""
        of_label = {label: self._share(i, label, wanted) for label in {each[i] for each in self.labels}}
        return np.array([of_label[each[i]] for each in self.labels], np.float64)

    def _require_label(self, name: str, wanted: str) -> None:
        known = self.parents[self.names.index(name)]
        prefixed = len(wanted) > 1 and any(each.endswith("*") and len(each) == len(wanted) for each in known)
        if prefixed or wanted in known or interval_of(wanted) is not None or "*" in wanted:
            return
        listed = ", ".join(list(known)[:LABELS_SHOWN]) + (", …" if len(known) > LABELS_SHOWN else "")
        raise BadInput(
            f"no class of the release has the label `{wanted}` of `{name}`.{did_you_mean(wanted, known)} "
            f"Labels: {listed}."
        )

    def _share(self, i: int, label: str, wanted: str) -> float | None:
        """The share of a label's patients that the wanted one has: 1 below it, 0 beside it; None where `wanted` is
        below `label` and nothing says how much of it."""
        parent = self.parents[i]
        if label == wanted or wanted in self.above(parent, label) or parent.get(wanted) == "":
            return 1.0
        if parent.get(label) == "":
            return None
        if MISSING in (label, wanted):
            return 0.0
        have, want = interval_of(label), interval_of(wanted)
        if have is not None and want is not None:
            common = min(have[1], want[1]) - max(have[0], want[0]) + 1
            return max(0, common) / (have[1] - have[0] + 1)
        return None if label in self.above(parent, wanted) else _share_of_prefix(label, wanted)

    @staticmethod
    def above(parent: Mapping[str, str], label: str) -> list[str]:
        """The ancestors of a label, the nearest first."""
        found: list[str] = []
        while parent.get(label) and parent[label] not in found:
            label = parent[label]
            found.append(label)
        return found


def _share_of_prefix(label: str, wanted: str) -> float | None:
    """The share of a label's patients below another label, where both may be prefixes such as `441**`."""
    ours, theirs = label.rstrip("*"), wanted.rstrip("*")
    if len(label) != len(wanted) or (label == ours and wanted == theirs):
        return 0.0
    return 1.0 if ours.startswith(theirs) else None if theirs.startswith(ours) else 0.0
