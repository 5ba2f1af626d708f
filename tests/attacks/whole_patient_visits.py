"""The attacker of demographics and codes together, for releases of records: knows a person's exact demographics, and
one visit (visits) or all codes with their mentions (censoring).

    python tests/attacks/whole_patient_visits.py share/ known.csv K

Reads `share/` and the background knowledge (`known.csv`: one column a demographic with the exact value, `record`, the
number of the person's record, to judge the outcome, and `codes` of one visit, with blanks between).
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

Codes = frozenset[str]
Known = tuple[Mapping[str, str], int, Codes]
"""Exact demographics, the person's record (to judge the attack), the codes of one visit."""


@dataclass(frozen=True)
class Attack:
    """Of `known` pieces of knowledge, those with fewer than k candidates, and the smallest number of candidates."""

    known: int
    below_k: int
    smallest: int


@dataclass
class Records:
    """What the attacker reads: labels of each record, its visits, and which label has a root above nothing."""

    labels: dict[int, dict[str, str]]
    visits: dict[int, list[Codes]]
    root: dict[str, str]

    def fitting(self, demographics: Mapping[str, str]) -> list[int]:
        """The records whose labels the person may have."""
        return [
            record
            for record, labels in self.labels.items()
            if all(may_be(labels[name], value, self.root[name]) for name, value in demographics.items())
        ]


def may_be(label: str, value: str, root: str) -> bool:
    """Whether a person with this exact value may be released with the label."""
    if label in (value, root):
        return True
    if "(missing)" in (label, value):
        return False
    span, inside = re.fullmatch(r"(\d+)-(\d+)", label), re.search(r"\d+", value)
    if span and inside:
        return int(span[1]) <= int(inside[0]) <= int(span[2])
    return label.endswith("*") and len(label) == len(value) and value.startswith(label.rstrip("*"))


def read(share: Path) -> Records:
    """The files of a release of visits, or of censored records (a visit then is a whole record)."""
    data = share / "data"
    names = [n for n in pl.read_parquet(data / "classes.parquet").columns if n not in ("class", "records")]
    table = pl.read_parquet(data / "records.parquet")
    labels = {row["record"]: {name: row[name] for name in names} for row in table.rows(named=True)}
    visits: dict[int, list[Codes]] = defaultdict(list)
    shown = pl.read_parquet(data / "visits.parquet") if (data / "visits.parquet").is_file() else table
    for record, codes in shown.select("record", "codes").rows():
        visits[record].append(frozenset(f"{code} {n}" for code, n in Counter(codes).items()))
    root = {}
    for name in names:
        with (data / "hierarchies" / f"{name}.csv").open(newline="") as file:
            root[name] = next(row["node"] for row in csv.DictReader(file) if row["parent"] == "")
    return Records(labels, dict(visits), root)


def attack_sets(share: Path, known: Iterable[Known], k: int) -> Attack:
    """Every set that the person's record shows: records that the person may be with exactly this set in a visit."""
    release = read(share)
    counts = []
    for demographics, record, _ in known:
        fitting = release.fitting(demographics)
        assert record in fitting
        mine = release.visits.get(record, [])
        counts += [sum(shown in release.visits.get(other, []) for other in fitting) for shown in mine]
    return Attack(len(counts), sum(n < k for n in counts), min(counts, default=k))


def attack_codes(share: Path, known: Iterable[Known], k: int) -> Attack:
    """What the person's record shows of one visit: records that the person may be that show all of it."""
    release = read(share)
    together = {r: {code for visit in visits for code in visit} for r, visits in release.visits.items()}
    counts = []
    for demographics, record, codes in known:
        mine = together.get(record, set())
        shown = {code for code in mine if codes & set(code.rpartition(" ")[0].split("|"))}
        if shown:
            counts.append(sum(shown <= together.get(other, set()) for other in release.fitting(demographics)))
    return Attack(len(counts), sum(n < k for n in counts), min(counts, default=k))


if __name__ == "__main__":
    with Path(sys.argv[2]).open(newline="") as known_file:
        people = [
            (
                {name: value for name, value in row.items() if name not in ("record", "codes")},
                int(row["record"]),
                frozenset(row["codes"].split()),
            )
            for row in csv.DictReader(known_file)
        ]
    found = attack_sets if (Path(sys.argv[1]) / "data" / "visits.parquet").is_file() else attack_codes
    sys.stdout.write(f"{found(Path(sys.argv[1]), people, int(sys.argv[3]))}\n")
