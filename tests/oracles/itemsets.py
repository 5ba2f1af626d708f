"""Apriori, plain (Agrawal & Srikant 1994): every candidate is counted by a scan of all records."""

from __future__ import annotations

from itertools import combinations


def support(records: list[frozenset[int]], items: frozenset[int]) -> int:
    return sum(items <= record for record in records)


def apriori(
    records: list[frozenset[int]], least: int, max_size: int | None = None
) -> dict[tuple[int, ...], int]:
    codes = sorted(set().union(*records)) if records else []
    found: dict[tuple[int, ...], int] = {}
    level = [(c,) for c in codes]
    while level and (max_size is None or len(level[0]) <= max_size):
        frequent = {s: n for s in level if (n := support(records, frozenset(s))) >= least}
        found |= frequent
        joined = {
            tuple(sorted(set(a) | set(b)))
            for a in frequent
            for b in frequent
            if len(set(a) | set(b)) == len(a) + 1
        }
        level = sorted(s for s in joined if all(part in frequent for part in combinations(s, len(s) - 1)))
    return found
