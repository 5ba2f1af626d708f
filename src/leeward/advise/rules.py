"""The rules (`rules.yaml`), applied to a situation: which methods are open, and what each line of the plan gets.

A rule is data: conditions by name, a verdict, a reason and its source. The conditions are the functions of CONDITIONS.
"""

from __future__ import annotations

import functools
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
    """What a rule says of a line of the plan."""

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
        """Whether it is open and some line of the plan is served, be it with care."""
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


@dataclass(frozen=True)
class Case:
    """A situation and, where a rule is about one, a line of the plan."""

    situation: Situation
    line: Line | None = None


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


def _knows(case: Case) -> Any:
    return case.situation.plan.recipient.knows


def _columns_of(line: Line | None) -> tuple[str, ...]:
    return tuple(models_of([line.model])[0].columns()) if isinstance(line, Regression) else ()


def _attacker_columns(case: Case) -> tuple[str, ...]:
    return tuple(_knows(case).columns) or case.situation.facts.columns


def _least(case: Case) -> int:
    return case.line.least if isinstance(case.line, Counts | Query) else 0


CONDITIONS: dict[str, Callable[[Case], bool]] = {
    "events": lambda case: case.situation.facts.kind == "events",
    "table": lambda case: case.situation.facts.kind == "table",
    "notes": lambda case: case.situation.facts.kind == "notes",
    "no_ages": lambda case: not case.situation.facts.ages,
    "no_visits": lambda case: case.situation.facts.visit_codes is None,
    "no_population": lambda case: case.situation.facts.population is None,
    "in_study": lambda case: bool(_knows(case).in_study),
    "knows_all_codes": lambda case: _knows(case).codes == "all",
    "knows_visits": lambda case: _knows(case).visits > 1,
    "knows_three_codes": lambda case: (case.situation.m or 0) > 2,
    "large_m": lambda case: (case.situation.m or 0) > LARGEST_REASONABLE_M,
    "keeps_columns": lambda case: bool(case.situation.plan.keep),
    "k_above_patients": lambda case: case.situation.k > case.situation.facts.patients,
    "k_above_half": lambda case: 2 * case.situation.k > case.situation.facts.patients,
    "k_above_population": lambda case: case.situation.k > (case.situation.facts.population or 0),
    "few_groups": lambda case: case.situation.groups < FEW_GROUPS,
    "at_least_4_k": lambda case: _least(case) >= 4 * case.situation.k,
    "at_least_10_k": lambda case: _least(case) >= 10 * case.situation.k,
    "at_least_20_k": lambda case: _least(case) >= 20 * case.situation.k,
    "pairs": lambda case: (
        isinstance(case.line, Query) or (isinstance(case.line, Counts) and case.line.together > 1)
    ),
    "within_budget": lambda case: total_epsilon(case.situation) <= case.situation.plan.epsilon,
    "exposure_known": lambda case: (
        isinstance(case.line, Phewas) and case.line.exposure in case.situation.facts.columns
    ),
    "outcome_missing": lambda case: bool(set(_columns_of(case.line)) - set(case.situation.facts.columns)),
    "covariates_unknown": lambda case: not set(_columns_of(case.line)) & set(_attacker_columns(case)),
    "kept_columns_known": lambda case: set(case.situation.plan.keep) <= set(case.situation.facts.columns),
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
        entry = _first(rule["lines"].get(kind, rule["lines"]["*"]), Case(situation, line))
        if entry is None:
            raise ValueError(f"rules.yaml: no entry decides `{kind}`")
        findings.append(Finding(title, entry["verdict"], entry["reason"], entry["source"]))
    closed = _first(rule["closed"], Case(situation))
    why = None if closed is None else (closed["reason"], closed["source"])
    return Candidate(rule["name"], rule["title"], rule["attacker"], why, tuple(findings), len(plan.lines))


def _first(entries: Sequence[Mapping[str, Any]], case: Case) -> Mapping[str, Any] | None:
    return next(
        (each for each in entries if all(CONDITIONS[name](case) for name in each.get("when", ()))), None
    )
