"""The attacker of visits: knows codes of one visit of a person who is a patient of the population.

    python tests/attacks/visits.py share/ known.csv K [M]

Reads `share/` and the background knowledge (`known.csv`: one line a known visit, the number of the person's record, to
judge the outcome, then the codes of that visit, commas between). A visit's codes become the labels that name them as a
member. Counted are the records that show what the person's record shows of the visit: any set of at most m codes of it,
or the whole of it.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import polars as pl

Codes = frozenset[str]


@dataclass(frozen=True)
class Attack:
    """Of `known` visits of which the person's record shows anything, those that point at fewer than k records."""

    known: int
    below_k: int
    alone: int


def read(share: Path) -> dict[int, list[Codes]]:
    """The visits of each record."""
    found: dict[int, list[Codes]] = defaultdict(list)
    for record, codes in pl.read_parquet(share / "data" / "visits.parquet").select("record", "codes").rows():
        found[record].append(frozenset(codes))
    return dict(found)


def attack(share: Path, known: Mapping[int, Iterable[Codes]], k: int, m: int | None = None) -> Attack:
    """Look for people by one visit each.

    Parameters
    ----------
    known : the visits that are known, under the record that is the person's (to judge the attack; the attacker only
        compares records with one another).
    m : the attacker knows at most so many codes of the visit; None: all.
    """
    records = {record: frozenset().union(*visits) for record, visits in read(share).items()}
    label_of = {member: label for codes in records.values() for label in codes for member in label.split("|")}
    holders: dict[str, set[int]] = defaultdict(set)
    for record, codes in records.items():
        for code in codes:
            holders[code].add(record)
    counted: dict[tuple[str, ...], int] = {}

    def count(codes: tuple[str, ...]) -> int:
        if codes not in counted:
            counted[codes] = len(set.intersection(*sorted((holders[code] for code in codes), key=len)))
        return counted[codes]

    total = below = alone = 0
    for record, visits in known.items():
        for visit in visits:
            image = frozenset(label_of[code] for code in visit if code in label_of)
            shown = image & records.get(record, frozenset())
            if not shown:
                continue
            sizes = range(1, min(m, len(shown)) + 1) if m else [len(shown)]
            sets = (each for size in sizes for each in combinations(sorted(shown), size))
            fewest = min(map(count, sets))
            total += 1
            below += fewest < k
            alone += fewest == 1
    return Attack(total, below, alone)


def join(one: Path, two: Path) -> list[tuple[int, int]]:
    """Records of two cohorts that are alone in both with all their visits, and have the same: joined one to one."""
    mine, theirs = (_alone(read(share)) for share in (one, two))
    return [(mine[key], theirs[key]) for key in mine.keys() & theirs.keys()]


def _alone(records: Mapping[int, list[Codes]]) -> dict[tuple[tuple[str, ...], ...], int]:
    found: dict[tuple[tuple[str, ...], ...], list[int]] = defaultdict(list)
    for record, visits in records.items():
        found[tuple(sorted(tuple(sorted(visit)) for visit in visits))].append(record)
    return {key: held[0] for key, held in found.items() if len(held) == 1}


def main() -> None:
    share, file, k = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    known: dict[int, list[Codes]] = defaultdict(list)
    for line in file.read_text(encoding="utf-8").splitlines():
        record, *codes = line.split(",")
        known[int(record)].append(frozenset(codes))
    m = int(sys.argv[4]) if len(sys.argv) > 4 else None
    sys.stdout.write(f"{attack(share, known, k, m)}\n")


if __name__ == "__main__":
    main()
