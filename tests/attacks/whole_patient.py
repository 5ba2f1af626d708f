"""The attacker of demographics and codes together: knows a patient's exact demographics and up to m codes.

    python tests/attacks/whole_patient.py share/ known.csv

Reads `share/` and the background knowledge (`known.csv`: one column a demographic with the exact value, and `codes`,
with blanks between). For each known set of codes, the empty one too, the candidates are counted plainly in the classes
whose labels hold the exact values: the most records of one data set from which the operation could have made the files.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import polars as pl
from tests.attacks.disassociation import Node, counted_from, known_most

Known = tuple[Mapping[str, str], frozenset[str]]
"""Exact demographics, and codes."""


@dataclass(frozen=True)
class Attack:
    """Of `sets` pieces of knowledge, those with fewer than k candidates, and the smallest number."""

    sets: int
    below_k: int
    smallest: int


@dataclass
class Release:
    """What the attacker reads: each class's labels, records and topmost nodes, and the hierarchies."""

    classes: dict[int, dict[str, str]]
    records: dict[int, int]
    top: dict[int, list[Node]]
    parent: dict[str, dict[str, str]]
    most: int = sys.maxsize
    """The most records of an item code, as far as the guarantee's attacker knows."""

    def may_be(self, column: str, label: str, value: str) -> bool:
        """Whether a patient with this exact value may have the label."""
        if label == value or self.parent[column].get(label) == "":
            return True
        if "(missing)" in (label, value):
            return False
        span, inside = re.fullmatch(r"(\d+)-(\d+)", label), re.search(r"\d+", value)
        if span and inside:
            return int(span[1]) <= int(inside[0]) <= int(span[2])
        return label.endswith("*") and len(label) == len(value) and value.startswith(label.rstrip("*"))

    def fitting(self, demographics: Mapping[str, str]) -> list[int]:
        """The classes that the patient may be in."""
        return [
            number
            for number, labels in self.classes.items()
            if all(self.may_be(column, labels[column], value) for column, value in demographics.items())
        ]

    def candidates(self, demographics: Mapping[str, str], codes: frozenset[str]) -> int:
        """The most records that may be the patient's."""
        fitting = self.fitting(demographics)
        if not codes:
            return sum(self.records[number] for number in fitting)
        return sum(
            node.candidates(codes, self.most) for number in fitting for node in self.top.get(number, [])
        )


def read(share: Path) -> Release:
    """The files of a release."""
    data = share / "data"
    classes = pl.read_parquet(data / "classes.parquet").rows(named=True)
    rows = pl.read_parquet(data / "nodes.parquet").rows(named=True)
    nodes = {row["node"]: Node(row["records"]) for row in rows}
    for row in pl.read_parquet(data / "chunks.parquet").rows(named=True):
        node = nodes[row["node"]]
        if row["kind"] == "item":
            node.items = frozenset(row["codes"])
        else:
            node.chunks.setdefault(row["chunk"], []).append(frozenset(row["codes"]))
    top: dict[int, list[Node]] = {}
    for row in rows:
        if row["parent"] is not None:
            nodes[row["parent"]].below.append(nodes[row["node"]])
        else:
            top.setdefault(row["class"], []).append(nodes[row["node"]])
    for node in (node for roots in top.values() for node in roots):
        node.bound(counted_from(share))
    names = [name for name in classes[0] if name not in ("class", "records")]
    parent = {}
    for name in names:
        with (data / "hierarchies" / f"{name}.csv").open(newline="") as file:
            parent[name] = {row["node"]: row["parent"] for row in csv.DictReader(file)}
    labels = {row["class"]: {name: row[name] for name in names} for row in classes}
    return Release(labels, {row["class"]: row["records"] for row in classes}, top, parent, known_most(share))


def knowledge(codes: frozenset[str], m: int) -> list[frozenset[str]]:
    """Up to m of the codes, none at all too."""
    sizes = range(min(m, len(codes)) + 1)
    return [frozenset(chosen) for size in sizes for chosen in combinations(sorted(codes), size)]


def attack(share: Path, known: Iterable[Known], k: int | None = None) -> Attack:
    """Look up whatever may be known of each patient; `k` in place of the stated one."""
    guarantee = json.loads((share / "release.json").read_text())["guarantee"]
    least = guarantee["k"] if k is None else k
    release = read(share)
    found: dict[tuple[tuple[str, ...], frozenset[str]], int] = {}
    for demographics, codes in known:
        for wanted in knowledge(codes, guarantee["m"]):
            key = (tuple(demographics.values()), wanted)
            if key not in found:
                found[key] = release.candidates(demographics, wanted)
    counts = list(found.values())
    return Attack(len(counts), sum(n < least for n in counts), min(counts, default=0))


if __name__ == "__main__":
    with Path(sys.argv[2]).open(newline="") as known_file:
        people = [
            ({name: value for name, value in row.items() if name != "codes"}, frozenset(row["codes"].split()))
            for row in csv.DictReader(known_file)
        ]
    sys.stdout.write(f"{attack(Path(sys.argv[1]), people)}\n")
