"""The rules (`rules.yaml`), applied to a situation: which methods are open, and what each line of the plan gets.

A rule is data: conditions by name, a verdict, a reason and its source. The conditions are the functions of CONDITIONS.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leeward.advise.accuracy import Accuracy, accuracy_of
from leeward.advise.plan import Counts, Line, Phewas, Query, Regression
from leeward.advise.situation import Situation, number_of_counts
from leeward.advise.utility.verdicts import RANK, Verdict
from leeward.analysis.plan import models_of
from leeward.release.spec import content_of_yaml

FILE = Path(__file__).parent / "rules.yaml"

LARGEST_REASONABLE_M = 6
FEW_GROUPS = 20


@dataclass(frozen=True)
class Finding:
    line: str
    verdict: Verdict
    reason: str
    source: str


@dataclass(frozen=True)
class Candidate:
    """A method beside a situation.

    closed : why it cannot be used, with the source; None: it can. findings : of the plan's `lines` lines, then of the
    columns to keep and of sensitive codes.
    """

    name: str
    title: str
    attacker: str
    closed: tuple[str, str] | None
    findings: tuple[Finding, ...]
    lines: int

    @property
    def order(self) -> tuple[bool, int, int]:
        """Open first, fewer lines unserved, fewer with care."""
        verdicts = [each.verdict for each in self.findings]
        return (self.closed is not None, verdicts.count("does not"), verdicts.count("with care"))

    @property
    def serves_something(self) -> bool:
        of_lines = self.findings[: self.lines]
        return self.closed is None and any(RANK[each.verdict] < 2 for each in of_lines)

    def to_json(self) -> dict[str, Any]:
        return {
            "method": self.name,
            "title": self.title,
            "attacker": self.attacker,
            "closed": None if self.closed is None else {"reason": self.closed[0], "source": self.closed[1]},
            "lines": [asdict(each) for each in self.findings],
        }


def noisy_accuracy(situation: Situation, line: Line | None) -> Accuracy | None:
    """Epsilon of a line's counts: each within the accepted error of the smallest count that matters."""
    if not isinstance(line, Counts | Query):
        return None
    width = int(line.accepted.of(line.least))
    return accuracy_of(width, number_of_counts(line, situation.facts))


def total_epsilon(situation: Situation) -> float:
    """Epsilon of all lines of the plan that can be counts with noise."""
    each = [noisy_accuracy(situation, line) for line in situation.plan.lines]
    return sum(one.total for one in each if one is not None)


def _columns_of(line: Line | None) -> tuple[str, ...]:
    return tuple(models_of([line.model])[0].columns()) if isinstance(line, Regression) else ()


def _counts_from(line: Line | None, least: int) -> bool:
    """Whether the line's smallest count that matters is as large."""
    return isinstance(line, Counts | Query) and line.least >= least


CONDITIONS: dict[str, Callable[[Situation, Line | None], bool]] = {
    "events": lambda s, line: s.facts.kind == "events",
    "table": lambda s, line: s.facts.kind == "table",
    "notes": lambda s, line: s.facts.kind == "notes",
    "no_ages": lambda s, line: not s.facts.ages,
    "no_visits": lambda s, line: s.facts.visit_codes is None,
    "no_population": lambda s, line: s.facts.population is None,
    "in_study": lambda s, line: bool(s.plan.recipient.knows.in_study),
    "knows_all_codes": lambda s, line: s.plan.recipient.knows.codes == "all",
    "knows_visits": lambda s, line: s.plan.recipient.knows.visits > 1,
    "knows_three_codes": lambda s, line: (s.m or 0) > 2,
    "large_m": lambda s, line: (s.m or 0) > LARGEST_REASONABLE_M,
    "keeps_columns": lambda s, line: bool(s.plan.keep),
    "k_above_patients": lambda s, line: s.k > s.facts.patients,
    "k_above_half": lambda s, line: 2 * s.k > s.facts.patients,
    "k_above_population": lambda s, line: s.k > (s.facts.population or 0),
    "few_groups": lambda s, line: s.groups < FEW_GROUPS,
    "at_least_4_k": lambda s, line: _counts_from(line, 4 * s.k),
    "at_least_10_k": lambda s, line: _counts_from(line, 10 * s.k),
    "at_least_20_k": lambda s, line: _counts_from(line, 20 * s.k),
    "pairs": lambda s, line: isinstance(line, Query) or (isinstance(line, Counts) and line.together > 1),
    "within_budget": lambda s, line: total_epsilon(s) <= s.plan.epsilon,
    "exposure_known": lambda s, line: isinstance(line, Phewas) and line.exposure in s.facts.columns,
    "outcome_missing": lambda s, line: bool(set(_columns_of(line)) - set(s.facts.columns)),
    "covariates_unknown": lambda s, line: (
        not set(_columns_of(line)) & set(s.plan.recipient.knows.columns or s.facts.columns)
    ),
    "kept_columns_known": lambda s, line: set(s.plan.keep) <= set(s.facts.columns),
}
"""What a rule's `when` may name."""


@functools.cache
def rules() -> Mapping[str, Any]:
    found: Mapping[str, Any] = content_of_yaml(FILE.read_text(encoding="utf-8"))
    return found


def candidates(situation: Situation) -> list[Candidate]:
    """Every method beside the situation, best first (`order` in `rules.yaml`)."""
    return sorted((_candidate(rule, situation) for rule in rules()["methods"]), key=lambda each: each.order)


def _candidate(rule: Mapping[str, Any], situation: Situation) -> Candidate:
    plan = situation.plan
    asked: list[tuple[str, str, Line | None]] = [(line.kind, line.title, line) for line in plan.lines]
    if plan.keep:
        asked.append(("keep", f"columns {', '.join(plan.keep)}", None))
    if plan.sensitive:
        asked.append(("sensitive", "sensitive codes", None))
    findings = []
    for kind, title, line in asked:
        entry = _first(rule["lines"].get(kind, rule["lines"]["*"]), situation, line)
        if entry is None:
            raise ValueError(f"rules.yaml: no entry decides `{kind}`")
        findings.append(Finding(title, entry["verdict"], entry["reason"], entry["source"]))
    closed = _first(rule["closed"], situation, None)
    why = None if closed is None else (closed["reason"], closed["source"])
    return Candidate(rule["name"], rule["title"], rule["attacker"], why, tuple(findings), len(plan.lines))


def _first(
    entries: Sequence[Mapping[str, Any]], situation: Situation, line: Line | None
) -> Mapping[str, Any] | None:
    """The first entry all of whose conditions hold."""
    holds = (all(CONDITIONS[name](situation, line) for name in each.get("when", ())) for each in entries)
    return next(itertools.compress(entries, holds), None)
