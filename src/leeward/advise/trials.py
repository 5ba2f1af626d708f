"""An advised spec tried on patients of the data, and what that makes of the rules' verdicts.

A rule alone never says that a method serves a line: it was written with other data. What was measured on all patients
replaces it; of a rule and a sample the worse holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leeward.advise.rules import Candidate, Finding
from leeward.advise.utility.verdicts import RANK, Kept, verdict_of
from leeward.analysis.figures import plain

MEASURED = "measured on these data"
EXACT = ("queries",)
"""Methods whose verdicts are no experience but the exact law of their noise: there is nothing to try."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A spec run on `patients` of all the `of` patients.

    kept : what its release keeps of each line of the plan. refused : why there was none.
    """

    patients: int
    of: int
    kept: tuple[Kept, ...] = ()
    refused: str | None = None

    @property
    def people(self) -> str:
        return f"{self.patients:,} of {self.of:,} patients" if self.patients < self.of else "all patients"

    def to_json(self) -> dict[str, Any]:
        lines = plain(self.kept)
        return {"patients": self.patients, "of": self.of, "lines": lines, "refused": self.refused}


def after_trials(found: Sequence[Candidate], trials: Mapping[str, Trial]) -> list[Candidate]:
    """The candidates with what was measured in place of the rules' verdicts, best first."""
    return sorted((_after(each, trials.get(each.name)) for each in found), key=lambda each: each.order)


def _after(candidate: Candidate, trial: Trial | None) -> Candidate:
    if candidate.name in EXACT:
        return candidate
    lines, rest = candidate.findings[: candidate.lines], candidate.findings[candidate.lines :]
    if trial is not None and trial.refused is None:
        told = [_measured(line, kept, trial) for line, kept in zip(lines, trial.kept, strict=True)]
        return replace(candidate, findings=(*told, *rest))
    found = replace(candidate, findings=(*map(_unmeasured, lines), *rest))
    if trial is None:
        return found
    return replace(found, closed=(f"its spec does not run on these data: {trial.refused}", MEASURED))


def _unmeasured(finding: Finding, because: str = "") -> Finding:
    if finding.verdict == "does not":
        return finding
    return replace(
        finding, verdict="with care", reason=f"{finding.reason}; not measured on these data{because}"
    )


def _measured(finding: Finding, kept: Kept, trial: Trial) -> Finding:
    if kept.value is None:
        return _unmeasured(finding, f": {kept.reason}")
    floor = "" if kept.floor is None else f" (a resample of the data {100 * kept.floor:.1f} %)"
    reason = f"{100 * kept.value:.1f} %: {kept.figure}{floor}, on {trial.people}"
    verdict = verdict_of(kept.value, kept.floor)
    # a sample may flatter: fewer sets count
    if trial.patients < trial.of and RANK[finding.verdict] > RANK[verdict]:
        return Finding(finding.line, finding.verdict, f"{finding.reason}; {reason}", finding.source)
    return Finding(finding.line, verdict, reason, MEASURED)
