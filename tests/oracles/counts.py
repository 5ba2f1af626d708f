"""Counts over notes, row by row (Li & Qin 2017, section 3), and Apriori's definition of frequent itemsets (their Figure
4, step 3): the plain versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

FIVE_NOTES: list[dict[str, Any]] = [
    {
        "note": 1,
        "patient": "p1",
        "visit_month": "2009-04",
        "age": 24,
        "sex": "M",
        "zip": "12301",
        "terms": ["sore throat", "fever", "headache", "fatigue"],
    },
    {
        "note": 2,
        "patient": "p2",
        "visit_month": "2009-04",
        "age": 9,
        "sex": "F",
        "zip": "12301",
        "terms": ["runny nose", "sore throat", "fever", "headache"],
    },
    {
        "note": 3,
        "patient": "p3",
        "visit_month": "2009-04",
        "age": 9,
        "sex": "F",
        "zip": "12301",
        "terms": ["runny nose", "sore throat", "diarrhea", "fever"],
    },
    {
        "note": 4,
        "patient": "p4",
        "visit_month": "2009-05",
        "age": 17,
        "sex": "F",
        "zip": "12302",
        "terms": ["fever", "joint pain", "nausea", "sore throat"],
    },
    {
        "note": 5,
        "patient": "p5",
        "visit_month": "2009-06",
        "age": 88,
        "sex": "M",
        "zip": "12302",
        "terms": ["chills", "body pain", "sore throat", "fatigue", "fever"],
    },
]
"""Figure 3 of the paper."""

Condition = Callable[[Any], bool]


def count(
    rows: Sequence[Mapping[str, Any]],
    terms: Sequence[set[str]],
    conditions: Mapping[str, Condition],
    unit: str,
) -> int:
    """Rows that hold one term of each set and meet every condition on a known value; or their distinct patients."""
    matching = [
        row
        for row in rows
        if all(set(row["terms"] or ()) & wanted for wanted in terms)
        and all(row[name] is not None and holds(row[name]) for name, holds in conditions.items())
    ]
    return len(matching) if unit == "note" else len({row["patient"] for row in matching})


Itemset = tuple[frozenset[str], tuple[tuple[str, str], ...]]


def itemsets(
    rows: Sequence[Mapping[str, Any]], qids: Sequence[str], least: int, unit: str = "note"
) -> dict[Itemset, int]:
    """All sets of at least one term and at most one value of each quasi-identifier that `least` rows (or patients)
    hold: every candidate of every row is tried."""
    owners: dict[Itemset, set[Any]] = {}
    for r, row in enumerate(rows):
        values = [(qid, str(row[qid])) for qid in qids if row[qid] is not None]
        for size in range(1, len(set(row["terms"] or ())) + 1):
            for terms in combinations(sorted(set(row["terms"] or ())), size):
                for many in range(len(values) + 1):
                    for chosen in combinations(sorted(values), many):
                        owners.setdefault((frozenset(terms), chosen), set()).add(
                            r if unit == "note" else row["patient"]
                        )
    return {itemset: len(held) for itemset, held in owners.items() if len(held) >= least}
