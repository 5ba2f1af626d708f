"""`mode: paper`, for the replication study alone: Li & Qin 2017, Figure 4 and Figure 5, as published.

Not private, and therefore no part of the product: itemsets are gated by their exact support, a record is a document,
and each itemset's noise is independent at the full ε whatever was answered before. It gives the paper's relative
errors, their expectation and the month-estimated baseline (docs/methods/queries.md#replication).
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index_itemsets import Item, Itemsets
from leeward.queries.privacy import mechanism
from leeward.queries.privacy.mechanism import Noise

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class MonthItemsets:
    """Frequent itemsets that hold a month.

    `counts` int64[n], `without` int64[n] the same itemset's count without its month, `month` int64[n] the month's place
    in `months`; `held`, the itemsets themselves.
    """

    counts: Counts
    without: Counts
    month: Counts
    months: tuple[str, ...]
    held: tuple[tuple[Item, ...], ...] = ()

    def __len__(self) -> int:
        return len(self.counts)

    def at_least(self, support: int) -> MonthItemsets:
        """Those that pass the exact gate."""
        kept = self.counts >= support
        held = tuple(items for items, passes in zip(self.held, kept, strict=False) if passes)
        return MonthItemsets(self.counts[kept], self.without[kept], self.month[kept], self.months, held)


def with_month(itemsets: Itemsets, qid: str, among: Container[str] | None = None) -> MonthItemsets:
    """The itemsets that hold a value of `qid` (and a term `among` these); their parts without it are frequent too, so
    they are all there."""
    support = {
        items: int(itemsets.supports[i])
        for i, items in enumerate(map(itemsets.__getitem__, range(len(itemsets))))
    }
    months = sorted({value for name, value in itemsets.items if name == qid})
    found: list[tuple[int, int, int]] = []
    held = []
    for items, count in support.items():
        value = next((value for name, value in items if name == qid), None)
        wanted = among is None or any(not name and term in among for name, term in items)
        if value is not None and wanted:
            rest: tuple[Item, ...] = tuple(item for item in items if item[0] != qid)
            found.append((count, support[rest], months.index(value)))
            held.append(items)
    counts, without, month = np.array(found, np.int64).reshape(-1, 3).T
    return MonthItemsets(counts, without, month, tuple(months), tuple(held))


def estimated_by_month(itemsets: MonthItemsets, share: Sequence[float]) -> float:
    """Relative error of the month-estimated Safe Harbor baseline: n̂ = n(without month)·P(month).

    `share` is the share of each of `itemsets.months` in all documents.
    """
    estimate = itemsets.without * np.asarray(share, np.float64)[itemsets.month]
    return float(np.mean(np.abs(estimate - itemsets.counts) / itemsets.counts))


def relative_error(counts: Counts, noise: Noise) -> float:
    """Equation 4 for one run: the mean of |noise|/n, drawn for each itemset by itself."""
    drawn = np.asarray(mechanism.draw(noise, len(counts)), np.float64)
    return float(np.mean(np.abs(drawn) / counts))


def expected_error(counts: Counts, noise: Noise) -> float:
    """The expectation of `relative_error`: E|noise|·mean(1/n)."""
    return mechanism.mean_absolute_noise(noise) * float(np.mean(1 / counts))


def standard_error(counts: Counts, noise: Noise, runs: int) -> float:
    """The standard error of the mean of `runs` relative errors: sd(|noise|)·√(Σ1/n²)/|I|/√runs."""
    deviation = math.sqrt(mechanism.variance(noise) - mechanism.mean_absolute_noise(noise) ** 2)
    return deviation * math.sqrt(float(np.sum(1 / counts**2.0))) / len(counts) / math.sqrt(runs)
