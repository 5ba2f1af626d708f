"""The figures of a disassociated release, as `measures.json` has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leeward.analysis.code_figures import MatchingErrors, RiskBefore, Workload
from leeward.analysis.figures import Figures


@dataclass(frozen=True)
class Are(Figures):
    """Average relative errors, under a prior."""

    prior: str
    workloads: tuple[Workload, ...]


@dataclass(frozen=True, kw_only=True)
class Mre(MatchingErrors):
    """Matching relative errors under a prior, and shares of small ones under every prior."""

    prior: str
    by_prior: Mapping[str, Mapping[str, float]] | None = None


@dataclass(frozen=True, kw_only=True)
class Placement(Figures):
    """Occurrences of codes (`record`, `shared`, `item`, `total`), and those of each frequent code, by kind of chunk.

    item_only_records : where the method's own count is there. covers : pairs of a chunk's codes of which one reveals
    the other, in `chunks` of `of_chunks` with several codes.
    """

    occurrences: Mapping[str, int]
    item_share: float
    codes: tuple[Mapping[str, Any], ...]
    codes_never_counted: int
    item_only_records_at_least: int
    item_only_records: int | None = None
    covers: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Candidates(Figures):
    """The smallest number of candidate records over code sets of real patients, looked up in the release; also for an
    attacker who knows the algorithm (docs/methods/disassociation.md#the-attacker-who-knows-the-algorithm)."""

    sets: int
    largest_set: int
    smallest_candidates: int
    below_k: int
    smallest_candidates_algorithm_known: int | None = None
    below_k_algorithm_known: int | None = None


@dataclass(frozen=True, kw_only=True)
class Risk(RiskBefore):
    """The risk before, and what an attacker with codes of real patients finds in the release."""

    after: Candidates | None = None
