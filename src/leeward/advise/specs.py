"""What to run: the spec of a method in a situation, or for counts with noise the commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leeward.advise.plan import Counts, Phewas
from leeward.advise.rules import noisy_accuracy, total_epsilon
from leeward.advise.situation import Situation
from leeward.analysis.plan import models_of

L_DIVERSITY = 2
"""At most half of a group's records share a sensitive code; more is a choice for people."""

LARGEST_M = 6


def method_of(name: str, situation: Situation, codes: Sequence[str] = ()) -> dict[str, Any]:
    """The `method:` of a spec: k, m, policy and columns from the plan; `codes` of the cohort resolve ranges."""
    own = PARAMETERS[name](situation)
    sensitive = sensitive_codes(situation.plan.sensitive, codes)
    if sensitive and name in ("disassociation", "trajectories"):
        own |= {"sensitive": sensitive, "diversity": L_DIVERSITY}
    return {"name": name, "k": situation.k, **own}


def _m(situation: Situation) -> int:
    return min(situation.m or LARGEST_M, LARGEST_M)


def _of_code_sets(situation: Situation) -> dict[str, Any]:
    return {"m": _m(situation), **_policy(situation)}


def _of_visits(situation: Situation) -> dict[str, Any]:
    policy = _policy(situation) or {"policy": "none"}
    return {**_visits_level(situation), **policy, **_payload(situation)}


def _visits_level(situation: Situation) -> dict[str, Any]:
    """Without visits in the source each patient's codes are one set, which k patients must show as a whole; otherwise
    any m codes of a record (of a visit, where an attacker knows a visit)."""
    if situation.facts.visit_codes is None:
        return {"level": "visit", "merge_visits": True}
    m, known = _m(situation), situation.plan.recipient.knows
    level: dict[str, Any] = {"level": "codes", "m": m} if m >= 2 else {"level": "code"}
    return {**level, "merge_visits": known.visits == 0}


def _of_linked(situation: Situation) -> dict[str, Any]:
    columns = [column for column in situation.plan.keep if column in situation.facts.columns]
    views = ["patients+events+events" if _m(situation) > 1 else "patients+events"]
    return {"views": views, **({"demographics": columns} if columns else {})}


def _of_table(situation: Situation) -> dict[str, Any]:
    recipient, released = situation.plan.recipient, released_columns(situation)
    known = [column for column in recipient.knows.columns if column in released]
    if known and recipient.who == "public":
        known = list(dict.fromkeys([*known, *times_of(situation)]))
    return {"quasi_identifiers": known} if known else {}


def _of_condensation(situation: Situation) -> dict[str, Any]:
    coarse = times_of(situation) and situation.plan.recipient.who == "public"
    return {"coarsen_time": True} if coarse else {}


def times_of(situation: Situation) -> list[str]:
    """The columns of survival times that the plan's models need."""
    return list(dict.fromkeys(each.time for each in models_of(situation.plan.models) if each.time))


def exact_times(method: Mapping[str, Any], situation: Situation) -> list[str]:
    """The times that a release of `method` publishes patient by patient."""
    if method["name"] == "condensation":
        return [] if method.get("coarsen_time") else times_of(situation)
    if method["name"] == "k-anonymity" and "quasi_identifiers" in method:
        return [name for name in times_of(situation) if name not in method["quasi_identifiers"]]
    return []


def released_columns(situation: Situation) -> list[str]:
    """Of a table: the columns that the plan's lines need and those to keep; all where the source cannot drop others."""
    plan, columns = situation.plan, situation.facts.columns
    if plan.source is None or plan.source.path is None:
        return list(columns)
    needed = {name for each in models_of(plan.models) for name in each.columns()} | set(plan.keep)
    return [name for name in columns if name in needed]


def spec_of(name: str, situation: Situation, codes: Sequence[str] = ()) -> dict[str, Any]:
    """The spec without its source: `method`, for models their `plan`, and the columns to `drop` from the source."""
    found: dict[str, Any] = {"method": method_of(name, situation, codes)}
    if name in ("condensation", "k-anonymity") and situation.plan.models:
        released = released_columns(situation)
        found["plan"] = [dict(each) for each in situation.plan.models]
        if others := [column for column in situation.facts.columns if column not in released]:
            found["drop"] = others
    return found


def commands_of(situation: Situation) -> list[str]:
    """How counts with noise are set up: an index with the plan's epsilon, and the price of one count of each line."""
    total = max(total_epsilon(situation), 0.000001)
    source = situation.plan.source
    path = source.path if source is not None and source.path is not None else "COHORT"
    budget = f"{total:.6f}".rstrip("0").rstrip(".")
    found = []
    if situation.facts.kind == "notes":
        found.append(shlex.join(["leeward", "notes", "annotate", path, "-o", "notes"]))
        path = "notes/custody/table.parquet"
    flags = [*_flags(situation), "--epsilon-total", budget, "-o", "index"]
    found.append(shlex.join(["leeward", "index", path, *flags]))
    for line in situation.plan.lines:
        one = noisy_accuracy(situation, line)
        if one is not None:
            found.append(f"leeward query index 'CODE & CODE' --epsilon {one.epsilon:.6f}  # {line.title}")
    return found


ROLES = ("patient", "code", "visit", "date", "age", "birth")


def _flags(situation: Situation) -> list[str]:
    source = situation.plan.source
    if source is None or situation.facts.kind == "notes":
        return []
    named: list[tuple[str, Any]] = [(name, source.columns.get(name)) for name in ROLES]
    named += [("missing", text) for text in source.missing]
    named += [("vocabulary", source.vocabulary), ("code-separator", source.code_separator)]
    flags = []
    for name, value in named:
        if value:
            flags += [f"--{name}", value if isinstance(value, str) else ",".join(value)]
    return [*flags, *(["--accept-unknown"] if source.accept_unknown else []), "--row", "patient"]


def sensitive_codes(asked: Sequence[str], codes: Sequence[str]) -> list[str]:
    """The cohort's codes that the plan calls sensitive: a code with all below it, or a range `F10-F19`."""
    found: list[str] = []
    for text in asked:
        ends = re.fullmatch(r"([A-Z]?\d+)-([A-Z]?\d+)", text)
        low, high = (ends[1], ends[2]) if ends else (text, text)
        found += [code for code in codes if low <= code[: len(low)] and code[: len(high)] <= high]
    return sorted(set(found))


def _policy(situation: Situation) -> dict[str, Any]:
    """The groups that the plan counts; else the first level of a known vocabulary."""
    if situation.facts.vocabulary in (None, "none"):
        return {}
    levels = [
        line.of
        for line in situation.plan.lines
        if isinstance(line, Counts) and isinstance(line.of, str) and line.of.startswith("hierarchy:")
    ]
    return {"policy": min(levels, default="hierarchy:1")}


def _payload(situation: Situation) -> dict[str, Any]:
    """Columns that travel as they are: those to keep, and the exposures with their covariates."""
    wanted = list(situation.plan.keep)
    for line in situation.plan.lines:
        if isinstance(line, Phewas):
            wanted += [line.exposure, *line.covariates]
    there = [name for name in dict.fromkeys(wanted) if name in situation.facts.columns]
    return {"payload": there} if there else {}


PARAMETERS: dict[str, Callable[[Situation], dict[str, Any]]] = {
    "disassociation": _of_code_sets,
    "constraints": _of_code_sets,
    "visits": _of_visits,
    "censoring": _payload,
    "trajectories": _payload,
    "linked": _of_linked,
    "k-anonymity": _of_table,
    "condensation": _of_condensation,
}
"""What a method's spec has beside k and what it does with sensitive codes."""
