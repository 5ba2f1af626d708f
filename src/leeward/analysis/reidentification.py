"""Risk after release: what a method counts for the attacker of its guarantee and for one who goes further, and attacks
on a finished release, run with its `share/` and the source as background knowledge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from leeward.analysis.itemsets import common, postings
from leeward.arrays import AnyArray, Float64s, Int32s, Int64s
from leeward.randomness import Randomness

if TYPE_CHECKING:
    from leeward.cohort.lenses.code_sets import CodeSets

SEED = 20261122
PATIENTS = 1_000
"""Patients drawn, each with some codes."""


@dataclass(frozen=True)
class Scope:
    """Where the maximum risk of a guarantee holds and where it does not, in words that need no figure.

    within, beyond : "if they do not use the algorithm", "if they do". found : what is so beyond, where it was not
    counted; empty where nothing is said of it. remedy : a sentence on what covers this attacker too.
    """

    within: str
    beyond: str = ""
    found: str = ""
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class Further:
    """What an attacker who goes further than the guarantee's finds in the release.

    knows : what the attacker knows. known : the name of the pieces of knowledge that were counted. sets : how many of
    them the release shows; below_k : those with fewer than k candidates. patients : those of whom one of these is true,
    `among` so many; alone : of them those with a single candidate. exact : False where patients are estimated from a
    sample. smallest : the fewest candidates, or less. tried, tried_below_k : sets and below_k of larger pieces, the
    rarest of those that were drawn; largest : their most codes.
    """

    knows: str
    known: str
    sets: int
    below_k: int
    patients: int
    among: int
    smallest: int
    alone: int = 0
    exact: bool = True
    tried: int = 0
    tried_below_k: int = 0
    largest: int = 0


class Known(NamedTuple):
    """What a guarantee's attacker knows of patients, in words, and the candidates of each: float64[patients].

    whole : whether these are all patients, or a sample. further : what another attacker finds. before : how many
    patients of the source, each patient among them, agree on what the attacker knows: int64[patients].
    """

    knows: str
    candidates: Float64s
    whole: bool = True
    further: Further | None = None
    before: Int64s | None = None


def alike(rows: pl.DataFrame) -> Int64s:
    """How many rows are equal to each one, itself included, in no order: int64[rows]."""
    sizes = rows.group_by(pl.all()).len()["len"].to_numpy().astype(np.int64)
    return np.repeat(sizes, sizes)


def draw_known_codes(sets: CodeSets, m: int, purpose: str) -> tuple[Int64s, list[Int32s]]:
    """Records drawn evenly and always the same (all, where there are few), and up to m codes of each."""
    stream = Randomness.of(SEED).stream(purpose, m)
    chosen = stream.integers(0, len(sets), PATIENTS) if len(sets) > PATIENTS else np.arange(len(sets))
    bounds = zip(sets.offsets[chosen], sets.offsets[chosen + 1], strict=True)
    return chosen, [stream.permutation(sets.values[low:high])[:m] for low, high in bounds]


@dataclass(frozen=True)
class Tried:
    """An attack that was carried out.

    knows : the attacker's knowledge, and what is done with it
    success : what counts as a success
    attacked, succeeded : how many times it was tried, and how many times it worked
    covered : whether the guarantee excludes a success
    remedy : what to choose where it works although nothing excludes it
    """

    knows: str
    success: str
    attacked: int
    succeeded: int
    covered: bool = True
    remedy: str = ""


class Holders:
    """Which records have each label; record r has the distinct values[offsets[r] : offsets[r + 1]]."""

    def __init__(self, offsets: Int64s, values: Int32s, labels: int) -> None:
        self.at, self.record = postings(offsets, values, labels)

    def of(self, label: int) -> AnyArray:
        return self.record[self.at[label] : self.at[label + 1]]

    def count(self, wanted: Iterable[int]) -> int:
        """How many records have all of these labels, at least one label."""
        return len(common(map(self.of, wanted)))
