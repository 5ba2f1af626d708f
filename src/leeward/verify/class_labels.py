"""Labels of demographics as a verifier reads them: what a label says of an exact value
(docs/methods/whole-patient.md#hierarchies). Written for verifiers alone.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

MISSING = "(missing)"
BETWEEN = re.compile(r"(\[|\()?\s*(\d{1,6})\s*(?:-|–|,|to)\s*(\d{1,6})\s*(\]|\))?")


def bounds(text: str) -> tuple[int, int] | None:
    """The whole numbers of `73`, `73.5`, `70-79`, `[70-80)`; None for other texts."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        number = int(text.split(".")[0])
        return number, number
    parts = BETWEEN.fullmatch(text)
    if parts is None:
        return None
    low = int(parts[2]) + (1 if parts[1] == "(" else 0)
    high = int(parts[3]) - (1 if parts[4] == ")" else 0)
    return (low, high) if low <= high else None


@dataclass
class Tree:
    """A released hierarchy: each label's parent, "" for the root; `whole` has the custodian's own, where a file
    brought it; `kind` is what `hierarchies` of the manifest names, None where it names none."""

    parent: Mapping[str, str]
    whole: Mapping[str, str] | None = None
    kind: str | None = None
    _known: dict[tuple[str, str], bool] = field(default_factory=dict)

    @property
    def roots(self) -> list[str]:
        return [label for label, above in self.parent.items() if above == ""]

    def above(self, label: str) -> list[str] | None:
        """The label's ancestors, the nearest first; None for a cycle or an unknown parent."""
        found: list[str] = []
        while (label := self.parent.get(label, "")) != "":
            if label in found or label not in self.parent:
                return None
            found.append(label)
        return found

    def disorder(self) -> int:
        """Rows that are not where writers put them: depth first, siblings in the order of their labels with numbers by
        their value, those of a file in the file's order (docs/methods/whole-patient.md#files)."""
        labels = list(self.parent)
        place = {label: i for i, label in enumerate(self.whole or ())}

        def key(label: str) -> list[tuple[int, int, str]]:
            return [(0, place.get(label, 0), "")] if self.kind == "file" else natural(label)

        children: dict[str, list[str]] = {}
        for label in labels:
            children.setdefault(self.parent[label], []).append(label)
        wanted: list[str] = []
        waiting = children.get("", [])[::-1]
        while waiting:
            wanted.append(label := waiting.pop())
            waiting.extend(sorted(children.get(label, []), key=key)[::-1])
        return sum(a != b for a, b in itertools.zip_longest(wanted, labels))

    def too_fine(self, label: str, level: int | str) -> bool:
        """Whether a published label is finer than the level that `keep` states: a wider one fits the level too."""
        above = self.parent.get(label, "")
        if level == "exact" or above == "":
            return False
        if level == "all" or (self.kind == "exact" and isinstance(level, int)):
            return True
        if label == MISSING or self.parent.get(above, "") == "":
            return False
        if self.kind == "file":
            return len(self.above(label) or ()) > int(level)
        interval, kept = bounds(above), above.rstrip("*")
        if interval is not None:
            return interval[1] - interval[0] < int(level)
        return int(level) <= len(kept) < len(above)

    def covers(self, label: str, value: str) -> bool:
        """Whether a patient with the exact `value` may be released with `label`."""
        key = (label, value)
        if key not in self._known:
            self._known[key] = self._covers(label, value)
        return self._known[key]

    def _covers(self, label: str, value: str) -> bool:
        if label == value or self.parent.get(label) == "":
            return True
        if MISSING in (label, value):
            return False
        if self.whole is not None:
            return label in way_up(self.whole, value)
        inner, outer = bounds(value), bounds(label)
        if inner is not None and outer is not None:
            return outer[0] <= inner[0] and inner[1] <= outer[1]
        kept = label.rstrip("*")
        return 0 < len(kept) < len(label) == len(value) and value.startswith(kept)


def way_up(parent: Mapping[str, str], node: str) -> list[str]:
    """The node and those above it, as far as they are known; a cycle is walked once."""
    found = [node]
    for _ in range(len(parent)):
        node = parent.get(node, "")
        if node == "":
            break
        found.append(node)
    return found


def natural(label: str) -> list[tuple[int, int, str]]:
    """Numbers in a label by their value, before other texts."""
    parts = re.findall(r"\d+|\D+", label)
    return [(0, int(part), "") if re.fullmatch(r"\d+", part) else (1, 0, part) for part in parts]


def read_pairs(file: Path) -> list[tuple[str, str]] | None:
    """The rows of a `node,parent` file; None where it cannot be read as one."""
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.reader(stream))
    except (OSError, UnicodeDecodeError, csv.Error):
        return None
    if not rows or rows[0] != ["node", "parent"] or any(len(row) != 2 for row in rows):
        return None
    return [(node, parent) for node, parent in rows[1:]]


def read_tree(file: Path, custody: Path | None = None, kind: str | None = None) -> Tree | None:
    """A `node,parent` file; None where it cannot be read as one. `custody`: the whole hierarchy, where it is there."""
    pairs = read_pairs(file)
    if pairs is None:
        return None
    parent = dict(pairs)
    if len(parent) < len(pairs) or "" in parent:  # the parent of the root is no node
        return None
    whole = None
    if custody is not None and custody.is_file():
        table = pl.read_parquet(custody)
        whole = dict(zip(table["node"].to_list(), table["parent"].to_list(), strict=True))
    return Tree(parent, whole, kind)


def as_text(values: pl.Series) -> pl.Series:
    """Exact values as labels name them: whole numbers without a point, `(missing)` for no value."""
    if values.dtype.is_float():
        values = values.fill_nan(None)
        known = values.drop_nulls()
        if bool((known == known.floor()).all()):
            values = values.cast(pl.Int64)
    text = values.cast(pl.String).str.strip_chars()
    return pl.select(pl.when(text.is_null() | (text == "")).then(pl.lit(MISSING)).otherwise(text)).to_series()
