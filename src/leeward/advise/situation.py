"""What is known when a method is chosen: the plan, and facts of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from leeward.advise.plan import Counts, Plan, Query
from leeward.errors import BadInput

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort

LARGEST_M = 3
LEVELS = (1, 2, 3)
"""Policy levels whose groups are counted."""


@dataclass(frozen=True)
class Facts:
    """What matters of a cohort when a method is chosen. All are exact figures: for the custodian.

    kind : `events`, `table` or `notes`. patients, codes, mentions : counts (of a table: rows, columns, rows).
    mean_codes, most_codes : distinct codes of a patient. repeats : share of mentions that repeat a patient's code.
    visit_codes : most distinct codes of a visit; None without visits. unique : share of patients whom m of their codes
    single out, m = 1, 2, …. rare : share of codes that fewer than k patients have. columns : of the patients. groups :
    code groups at policy level 1, 2, … of the vocabulary.
    """

    kind: Literal["events", "table", "notes"]
    patients: int
    codes: int
    mentions: int
    vocabulary: str | None = None
    mean_codes: float = 0.0
    most_codes: int = 0
    repeats: float = 0.0
    ages: bool = False
    visit_codes: int | None = None
    unique: tuple[float, ...] = ()
    rare: float = 0.0
    columns: tuple[str, ...] = ()
    population: int | None = None
    groups: tuple[int, ...] = ()


@dataclass(frozen=True)
class Situation:
    plan: Plan
    facts: Facts

    @property
    def k(self) -> int:
        return self.plan.k

    @property
    def m(self) -> int | None:
        """How many codes of a patient an attacker knows at once; None: all of them."""
        knows = self.plan.recipient.knows
        of_visits = knows.visits * (self.facts.visit_codes or 0)
        return None if knows.codes == "all" else max(knows.codes, of_visits)

    @property
    def groups(self) -> float:
        """Patients over k: how many groups there can be."""
        return self.facts.patients / self.k


def facts_of(plan: Plan, cohort: Cohort, population: Cohort | None = None) -> Facts:
    """The facts of a cohort that matter to a plan; `unique` up to m = `LARGEST_M`."""
    if cohort.notes is not None:
        people = cohort.notes["patient"].n_unique()
        return Facts("notes", people, 0, cohort.notes.height)
    columns = () if cohort.patients is None else tuple(c for c in cohort.patients.columns if c != "patient")
    if cohort.events is None:
        if cohort.patients is None:
            raise BadInput(f"{cohort.name}: neither codes, nor a table, nor notes were read.")
        return Facts("table", cohort.patients.height, len(columns), cohort.patients.height, columns=columns)
    from leeward.analysis.risk import SEED, risk_before

    events, sets, known = cohort.require_events(), cohort.code_sets(), plan.recipient.knows.codes
    lengths, supports = sets.lengths(), sets.supports()
    risk = risk_before(sets, plan.k, seed=SEED, largest_m=1 if known == "all" else min(known, LARGEST_M))
    return Facts(
        "events",
        len(sets),
        len(sets.codes),
        events.height,
        vocabulary=cohort.vocabulary,
        mean_codes=round(float(lengths.mean()), 2),
        most_codes=int(lengths.max()),
        repeats=round(1 - float(lengths.sum()) / events.height, 4),
        ages="age" in events.columns,
        visit_codes=_visit_codes(events),
        unique=tuple(round(float(row["unique_share"]), 4) for row in risk["by_m"]),
        rare=round(float(np.mean(supports < plan.k)), 4),
        columns=columns,
        population=None if population is None else len(population.code_sets()),
        groups=_groups(cohort.vocabulary, sets.codes),
    )


def _groups(vocabulary: str | None, codes: Sequence[str]) -> tuple[int, ...]:
    from leeward.vocabulary import load

    if vocabulary in (None, "none"):
        return ()
    known = load(str(vocabulary))
    return tuple(len(known.level_groups(codes, level)) for level in LEVELS)


def _visit_codes(events: pl.DataFrame) -> int | None:
    """The most distinct codes of a visit (or of a day); None where neither is known."""
    by = "visit" if "visit" in events.columns else "date" if "date" in events.columns else None
    if by is None:
        return None
    codes = events.select("patient", by, pl.col("code").to_physical()).group_by("patient", by)
    most = codes.agg(pl.col("code").n_unique())["code"].max()
    return int(most) if isinstance(most, int) else None


def number_of_counts(line: Counts | Query, facts: Facts) -> int:
    """How many counts a line asks for; a level of a vocabulary that is not known counts as so many codes."""
    if isinstance(line, Query):
        return line.questions
    if isinstance(line.of, tuple):
        return len(line.of)
    if line.of == "codes":
        return facts.codes if line.together == 1 else facts.codes * (facts.codes - 1) // 2
    level = int(line.of.partition(":")[2])
    return facts.groups[level - 1] if level <= len(facts.groups) else max(1, facts.codes)
