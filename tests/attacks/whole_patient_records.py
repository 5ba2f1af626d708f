"""The attacker of demographics and codes together, where records are published: knows a patient's exact demographics
and up to m codes.

    python tests/attacks/whole_patient_records.py share/ known.csv

Reads `share/` and the background knowledge as `whole_patient.py` does. The candidates of a set of codes are the records
of the classes that hold the exact values, with the labels that `codes.parquet` gives the codes in that class.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from tests.attacks.whole_patient import Attack, Known, Release, knowledge


@dataclass
class Records:
    """The classes, the label of each code in each class, and each class's records."""

    classes: Release
    label_of: dict[int, dict[str, str]]
    records: dict[int, list[frozenset[str]]]

    def candidates(self, known: Known) -> int:
        """The records that may be the patient's."""
        found = 0
        for number in self.classes.fitting(known[0]):
            labels = {self.label_of[number][code] for code in known[1] if code in self.label_of[number]}
            found += sum(labels <= record for record in self.records[number])
        return found


def read(share: Path) -> Records:
    """The files of a release."""
    data = share / "data"
    rows = pl.read_parquet(data / "classes.parquet").rows(named=True)
    names = [name for name in rows[0] if name not in ("class", "records")]
    parent = {}
    for name in names:
        with (data / "hierarchies" / f"{name}.csv").open(newline="") as file:
            parent[name] = {row["node"]: row["parent"] for row in csv.DictReader(file)}
    labels = {row["class"]: {name: row[name] for name in names} for row in rows}
    label_of: dict[int, dict[str, str]] = {number: {} for number in labels}
    for row in pl.read_parquet(data / "codes.parquet").rows(named=True):
        label_of[row["class"]].update(dict.fromkeys(row["members"], row["code"]))
    number_of = {tuple(each.values()): number for number, each in labels.items()}
    records: dict[int, list[frozenset[str]]] = {number: [] for number in labels}
    for row in pl.read_parquet(data / "records.parquet").rows(named=True):
        records[number_of[tuple(row[name] for name in names)]].append(frozenset(row["codes"]))
    sizes = {row["class"]: row["records"] for row in rows}
    return Records(Release(labels, sizes, {}, parent), label_of, records)


def attack(share: Path, known: Iterable[Known], k: int | None = None) -> Attack:
    """Look up whatever may be known of each patient; `k` in place of the stated one."""
    guarantee = json.loads((share / "release.json").read_text())["guarantee"]
    least = guarantee["k"] if k is None else k
    release = read(share)
    pieces = {
        (tuple(demographics.items()), wanted)
        for demographics, codes in known
        for wanted in knowledge(codes, guarantee["m"])
    }
    counts = [release.candidates((dict(demographics), wanted)) for demographics, wanted in pieces]
    return Attack(len(counts), sum(n < least for n in counts), min(counts, default=0))


if __name__ == "__main__":
    with Path(sys.argv[2]).open(newline="") as known_file:
        people = [
            ({name: value for name, value in row.items() if name != "codes"}, frozenset(row["codes"].split()))
            for row in csv.DictReader(known_file)
        ]
    sys.stdout.write(f"{attack(Path(sys.argv[1]), people)}\n")
