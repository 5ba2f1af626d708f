"""The attacker of several versions of released visits whose records have the same numbers: intersection.

    python tests/attacks/refresh.py K known.csv share-1/ share-2/ …

Knows one visit of a person with all its codes, in which versions it is, and what each version makes of such a visit
(`known.csv`: one line a visit, for each version the codes that it shows of the visit, blanks between, or nothing where
the visit came later). The candidates are the records that show this in every version that has the visit; where it is
new since a version, only rows count that this version does not have, and those of records that it has or has not, as
the person's. Nothing of the product is used.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import polars as pl

Codes = frozenset[str]
Row = tuple[int, Codes]


@dataclass(frozen=True)
class Outcome:
    """Of `known` visits, those that leave fewer than k records, and just one; the persons with one of the former."""

    known: int
    below_k: int
    alone: int
    people_below_k: int


def attack(
    versions: Sequence[Sequence[Row]], known: Sequence[tuple[int, Sequence[Codes]]], k: int
) -> Outcome:
    """versions : (record, codes) of every visit. known : a person's record, and what each version shows of a visit."""
    shown = [index(version) for version in versions]
    people = [{record for record, _ in version} for version in versions]
    bags = [Counter(version) for version in versions]
    pairs = combinations(range(len(versions)), 2)
    added = {(i, j): index(bags[j] - bags[i]) for i, j in pairs}

    @cache
    def count(images: tuple[Codes, ...], there: tuple[bool, ...]) -> int:
        found: set[int] | None = None
        for j, image in enumerate(images):
            if not image:
                continue
            held = shown[j][image]
            for i in range(j):
                if not images[i]:
                    held = held & {
                        record for record in added[i, j][image] if (record in people[i]) == there[i]
                    }
            found = held if found is None else found & held
        return len(found or ())

    counts = [count(tuple(images), tuple(person in each for each in people)) for person, images in known]
    few = {person for (person, _), n in zip(known, counts, strict=True) if n < k}
    return Outcome(len(counts), sum(n < k for n in counts), counts.count(1), len(few))


def index(rows: Iterable[Row]) -> dict[Codes, set[int]]:
    found: dict[Codes, set[int]] = defaultdict(set)
    for record, codes in rows:
        found[codes].add(record)
    return found


def rows_of(share: Path) -> list[Row]:
    table = pl.read_parquet(share / "data" / "visits.parquet").select("record", "codes")
    return [(record, frozenset(codes)) for record, codes in table.rows()]


def main() -> None:
    k, known, *shares = sys.argv[1:]
    with Path(known).open(newline="", encoding="utf-8") as file:
        visits = [(int(line[0]), [frozenset(cell.split()) for cell in line[1:]]) for line in csv.reader(file)]
    found = attack([rows_of(Path(share)) for share in shares], visits, int(k))
    sys.stdout.write(
        f"{found.below_k:,} of {found.known:,} known visits leave fewer than {k} records, {found.alone:,} one.\n"
    )


if __name__ == "__main__":
    main()
