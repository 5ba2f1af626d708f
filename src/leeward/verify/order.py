"""Whether an order says something: places in a file against what the source, custody or the file itself knows.

A release numbers its records in shuffled order. Then what is known of them (the source's row, the identifier's rank,
the group, the codes, the payload) is a random permutation of the places, ties broken at random. Three statistics of a
random permutation x of n have a known mean and variance; the test is two-sided with `LIMIT` standard deviations each,
which chance exceeds about twice in 10^9:

- trend, the sum of i x(i): rising or falling with the place. Mean n(n + 1)^2 / 4, variance n^2 (n + 1)^2 (n - 1) / 144.
- rises, how often x(i) < x(i + 1): mean (n - 1) / 2, variance (n + 1) / 12.
- steps, the sum of |x(i + 1) - x(i)|: neighbours alike (sorted, grouped, dealt out in turn). Mean (n^2 - 1) / 3,
  variance (n + 1) (n - 2) (4 n - 7) / 90.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.verify.checks import Check
from leeward.verify.numbered import heads_of

LIMIT = 6.0
"""Standard deviations from what chance makes."""

FEWEST = 8
"""Of fewer places nothing can be said."""

Longs = NDArray[np.int64]


def deviations(ranks: Longs) -> dict[str, float]:
    """The three statistics of a permutation of 0 … n-1, in standard deviations."""
    n = len(ranks)
    if n < FEWEST:
        return {}
    x = ranks.astype(np.float64) + 1
    trend = float(np.arange(1, n + 1) @ x) - n * (n + 1) ** 2 / 4
    rises = int((np.diff(ranks) > 0).sum()) - (n - 1) / 2
    steps = float(np.abs(np.diff(x)).sum()) - (n * n - 1) / 3
    return {
        "trend": trend / np.sqrt(float(n) * n * (n + 1) ** 2 * (n - 1) / 144),
        "rises": rises / np.sqrt((n + 1) / 12),
        "steps": steps / np.sqrt((n + 1) * (n - 2) * (4 * n - 7) / 90),
    }


def ranks_of(known: pl.Series) -> Longs:
    """The rank of each value, ties broken at random (in a fixed way); what is missing comes first."""
    values = known
    if isinstance(known.dtype, pl.List):
        values = known.cast(pl.List(pl.String)).list.join("\x1f")
    elif isinstance(known.dtype, pl.Enum | pl.Categorical):
        values = known.cast(pl.String)
    dense = values.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    ranks = np.empty(len(known), np.int64)
    ranks[np.argsort(dense * len(known) + ties_of(len(known)))] = np.arange(len(known))
    return ranks


@lru_cache(maxsize=2)
def ties_of(n: int) -> Longs:
    """A fixed random order of n things."""
    return np.random.Generator(np.random.Philox(key=n)).permutation(n)


def order_check(name: str, known: Mapping[str, pl.Series], what: str) -> Check:
    """A check that the order of `what` says nothing of any of the columns `known`, each in the order of the places."""
    found: dict[str, Any] = {}
    worst = 0.0
    for column, values in known.items():
        for statistic, z in deviations(ranks_of(values)).items():
            found[f"{column}: {statistic}"] = round(float(z), 2)
            worst = max(worst, abs(float(z)))
    telling = sorted({each.split(":")[0] for each, z in found.items() if abs(z) > LIMIT})
    names = ", ".join(telling or known)
    detail = (
        f"The order of {what} says {'something' if telling else 'nothing'} of {names}: at most {worst:.1f} "
    )
    return Check(
        name, not telling, detail + "standard deviations from chance.", {"deviations": found, "limit": LIMIT}
    )


def within_check(name: str, group: pl.Series, known: Mapping[str, pl.Series], what: str) -> Check:
    """A check that the order inside each group (rows in order) says nothing of the columns `known`.

    The statistic is the sum over groups of the covariance of place and rank, against a shuffle inside each group.
    """
    found: dict[str, Any] = {}
    order = np.argsort(places := group.rank("dense").to_numpy().astype(np.int64), kind="stable")
    number = places[order]
    starts = np.flatnonzero(heads_of(number))
    sizes = np.diff(np.append(starts, len(number)))
    begin, several = np.repeat(starts, sizes), sizes > 1
    middle = np.repeat((sizes - 1) / 2, sizes)
    place = np.arange(len(number)) - begin - middle
    for column, values in known.items():
        ranks = ranks_of(values)[order]
        inside = np.empty(len(ranks))
        inside[np.argsort(number * len(ranks) + ranks)] = np.arange(len(ranks)) - begin
        x = inside - middle
        t, p, v = (np.add.reduceat(each, starts)[several] for each in (place * x, place**2, x**2))
        variance = float((p * v / (sizes[several] - 1)).sum())
        found[column] = round(float(t.sum()) / np.sqrt(variance), 2) if variance > 0 else 0.0
    telling = sorted(column for column, z in found.items() if abs(z) > LIMIT)
    detail = (
        f"The order of {what} says {'something' if telling else 'nothing'} of {', '.join(telling or known)}."
    )
    return Check(name, not telling, detail, {"deviations": found, "limit": LIMIT})
