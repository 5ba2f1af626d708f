"""The figures of a disassociated release, as `measures.json` has them."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.analysis.code_figures import MatchingErrors, Narrow, RiskBefore, Workload
from leeward.analysis.figures import Figures


@dataclass(frozen=True)
class Are(Figures):
    """Average relative errors, under a prior."""

    prior: str
    workloads: tuple[Workload, ...]


@dataclass(frozen=True)
class ByPrior(Figures):
    """Shares of constraints with a small error under every prior."""

    occupancy: Narrow
    cubic: Narrow
    graded: Narrow
    uniform: Narrow
    one: Narrow


@dataclass(frozen=True, kw_only=True)
class Mre(MatchingErrors):
    """Matching relative errors under a prior, and shares of small ones under every prior."""

    prior: str
    by_prior: ByPrior | None = None


@dataclass(frozen=True)
class Occurrences(Figures):
    """Code occurrences by kind of chunk."""

    record: int
    shared: int
    item: int
    total: int


@dataclass(frozen=True)
class CodePlacement(Figures):
    """A code's occurrences by kind of chunk."""

    code: str
    support: int
    record: int
    shared: int
    item: int


@dataclass(frozen=True)
class Covers(Figures):
    """Pairs of a chunk's codes of which one reveals the other, in `chunks` of `of_chunks` with several codes."""

    pairs: int
    chunks: int
    of_chunks: int


@dataclass(frozen=True, kw_only=True)
class Placement(Figures):
    """Which codes are in which kind of chunk; `item_only_records` where the method's own count is there."""

    occurrences: Occurrences
    item_share: float
    codes: tuple[CodePlacement, ...]
    codes_never_counted: int
    item_only_records_at_least: int
    item_only_records: int | None = None
    covers: Covers | None = None


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
