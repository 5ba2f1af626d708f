"""What a release of condensed tables may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from leeward.contracts.contract import LARGEST, Contract, Counting, Table, Words, declared, stated_facts

ATTACKER = (
    "Somebody who knows everything about a patient but the outcome times below, and how the table was made. Each "
    "released row was made from the mean of a group of at least k patients and from the covariance of that group or of "
    "neighbouring ones (and, with `balanced`, from the group's values column by column). Every patient of "
    "a group counts alike: whoever finds the patient's group has found at least k people."
)
NO_K_ANONYMITY = (
    "Released rows are synthetic and mostly different from each other: this is k-indistinguishability of groups, not "
    "k-anonymity of the released rows, and not differential privacy. A released row may by chance equal an original "
    "one."
)
ATTRIBUTES = (
    "What a whole group of patients shares (for example the same stage) can be read from the release: attributes are "
    "not hidden where a group agrees on them. So can about where a group's outcome times lie."
)
MEMBERSHIP = (
    "Membership: whether somebody is in the table can be told better than by chance, the better the smaller k is. A "
    "larger k is the remedy."
)
POOLED = (
    "People who pool what they know: somebody who knows the values of all patients of a group but one can take them "
    "away from what the group's rows show, and is left with about the last patient's (with the very time, where times "
    "are exact)."
)
COARSE_TIMES = (
    "Coarse times: a pair of stratum and time mostly names one group of patients{groups}, whose values can then be "
    "read column by column, the less so the more groups share a time."
)
EXACT_TIMES = (
    "Exact survival times: the published pairs of stratum ({strata}) and time ({times}) are the original ones. "
    "Somebody who knows a patient's exact time finds it in the release; medians of groups (`coarsen_time`) "
    "would prevent this."
)
SEVERAL_TIMES = (
    "Several exact times: somebody who knows one of a patient's times finds it in the release and reads the others "
    "beside it. Only {first} is matched to the other columns; {further} {are} given at random among at least k "
    "patients of a stratum, so that a time read in this way is the patient's in at most one of k cases, or more often "
    "where times tie. Somebody who also knows which times cannot go together (a recurrence after death) can rule rows "
    "out."
)
OWN_VALUES = (
    "Unusual single values: each column keeps its values group by group (levels exactly, numbers to at most half the "
    "gap to a neighbour), so an extreme number that one patient has can show, apart from the rest of that patient's "
    "row."
)
RARE_KEPT = "Rare levels: levels that fewer than k patients have are published (`rare: keep`)."
OBSERVED = (
    "The least and the greatest value of columns without a declared domain are real ones; declare `domains` to hide "
    "them."
)

README = (
    "`table.parquet` has the columns, types and permissible values of the original table, one row a synthetic "
    "patient. Fit models as you would on the original; means, frequencies, correlations and regression "
    "coefficients are close to the original's, and standard errors need no correction of their own. Single rows "
    "are nobody's record.{times}{plan}"
)
COARSE = "medians of groups of patients: survival curves have steps."
AS_THEY_WERE = (  # fmt: skip
    "the original times, given to synthetic patients of the same stratum in the order of their synthetic "
    "times."
)
NOT_TOGETHER = (
    " Only {first} is given in that order; {further} {are} given at random among at least k patients of a stratum. "
    "Analyse each time by itself: which time of a row comes first, and how long it is from one to the other, says "
    "nothing about patients."
)

KEEPS = "\n\nEvery row keeps:\n"

NOT_KEPT = "\n\nThese relations hold in every row of the original, but not of this table:\n"
BROKEN = "- `{relation}`: broken in {percent:.1f} % of the rows"

ALGORITHMS = ("balanced", "improved", "condensation", "tfrp")
MATCHING_TIMES = ("balanced", "improved")
"""Algorithms that keep strata apart and give the original times."""


def words(
    parameters: Mapping[str, Any],
    *,
    algorithm: str,
    observed: bool,
    broken: Sequence[tuple[str, float]] = (),
) -> Words:
    """The wording of a condensed table.

    Parameters
    ----------
    algorithm : the one that was run, which `auto` leaves open.
    observed : whether numbers that are not a group's own have columns without a declared domain.
    broken : relations that the source keeps and the table does not, each with its percentage of rows.
    """
    models = models_of(parameters)
    times = distinct(parameters.get("time"), [model.get("time") for _, model in models])
    matched = times if algorithm in MATCHING_TIMES else []
    exact = [] if parameters.get("coarsen_time") else matched
    further = {
        OWN_VALUES: algorithm == "balanced",
        RARE_KEPT: parameters.get("rare") == "keep",
        OBSERVED: observed,
    }
    left_open = [*_of_times(parameters, matched, exact), NO_K_ANONYMITY, ATTRIBUTES, MEMBERSHIP, POOLED]
    left_open += [sentence for sentence, there in further.items() if there]
    reading = README.format(times=_times(matched, exact), plan=_plan(models))
    kept = [f"- `{each}`" for each in parameters.get("relations") or ()]
    lost = [BROKEN.format(relation=relation, percent=percent) for relation, percent in broken]
    reading += _listed(KEEPS, kept) + _listed(NOT_KEPT, lost)
    return Words(
        "k-indistinguishability (condensation)",
        ATTACKER,
        tuple(left_open),
        reading,
        stated_facts("all columns but the times", "group", **({"exact": exact} if exact else {})),
    )


def _of_times(parameters: Mapping[str, Any], matched: list[str], exact: list[str]) -> list[str]:
    """What times leave open that follow the strata: exact ones, or coarse ones."""
    if exact:
        strata = distinct(
            parameters.get("strata"), [model.get("event") for _, model in models_of(parameters)]
        )
        found = [EXACT_TIMES.format(strata=", ".join(strata) or "none", times=", ".join(exact))]
        return found + ([SEVERAL_TIMES.format(**_several(exact))] if len(exact) > 1 else [])
    several = parameters.get("coarsen_groups")
    groups = f" ({several} neighbouring ones)" if several else ""
    return [COARSE_TIMES.format(groups=groups)] if matched else []


COLUMN = r"(?:'([^']+)'|([^\s'<>=]+))"
"""A column's name in a relation."""


def columns_of(relations: Sequence[str]) -> set[str]:
    """Every word of the relations, which may name a column."""
    return {"".join(found) for text in relations for found in re.findall(COLUMN, str(text))}


def _of_several_times(parameters: Mapping[str, Any]) -> bool:
    """Whether a relation names one of several exact times, which must not depend on each other."""
    given = [model.get("time") for _, model in models_of(parameters)]
    times = [] if parameters.get("coarsen_time") else distinct(parameters.get("time"), given)
    return len(times) > 1 and not columns_of(parameters["relations"]).isdisjoint(times)


def _times(matched: list[str], exact: list[str]) -> str:
    if not matched:
        return ""
    several = NOT_TOGETHER.format(**_several(exact)) if len(exact) > 1 else ""
    return f"\nTimes ({', '.join(matched)}) are {AS_THEY_WERE if exact else COARSE}{several}"


def _several(exact: list[str]) -> dict[str, str]:
    return {"first": exact[0], "further": ", ".join(exact[1:]), "are": "are" if exact[2:] else "is"}


def _plan(models: list[tuple[str, Mapping[str, Any]]]) -> str:
    lines = [f"- {title(kind, model)} on {', '.join(model['covariates'])}" for kind, model in models]
    return _listed("\n\nIt was shaped to keep these models:\n", lines)


def _listed(head: str, lines: Sequence[str]) -> str:
    return head + "\n".join(lines) if lines else ""


def title(kind: str, model: Mapping[str, Any]) -> str:
    """For example `cox: time, status = 1`."""
    value = "" if model.get("event_value") is None else f" = {model['event_value']}"
    event = f", {model['event']}{value}" if model.get("event") else ""
    return f"{kind}: {model.get('response') or model.get('time')}{event}"


def models_of(parameters: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The plan's models: kind and content."""
    return [(kind, model) for entry in parameters.get("plan") or () for kind, model in entry.items()]


def distinct(*lists: Any) -> list[str]:
    """The names of some lists, each once, in order."""
    return list(dict.fromkeys(str(name) for each in lists for name in each or () if name))


def plain(value: Any) -> bool:
    """A value that a column can have: a text, a number, true or false."""
    return isinstance(value, str | int | float) and abs(0 if isinstance(value, str) else value) <= LARGEST


def texts(value: Any) -> bool:
    fits = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return fits and 0 < len(value) == len(set(value))


MODEL = dict.fromkeys(("response", "time", "event"), lambda value: isinstance(value, str) and value) | {
    "event_value": plain,
    "covariates": texts,
}


def is_model(entry: Any) -> bool:
    if not isinstance(entry, dict) or len(entry) != 1:
        return False
    ((kind, model),) = entry.items()
    if kind not in ("linear", "logistic", "cox") or not isinstance(model, dict):
        return False
    keys = [key for key in MODEL if key in model]
    return "covariates" in model and list(model) == keys and all(MODEL[key](model[key]) for key in keys)


def together(parameters: Mapping[str, Any]) -> bool:
    """Whether the plan is one, and relations are of groups whose own values are released."""
    if not all(map(is_model, parameters.get("plan", []))):
        return False
    balanced = parameters["algorithm"] == "balanced"
    return "relations" not in parameters or (balanced and not _of_several_times(parameters))


COUNTING = Counting(
    intro="""\
How many rows have each value of a column. Rows stand for groups of patients, not for one each, so these are estimates
without certain bounds. Run in this folder:
""",
    pandas="""\
import pandas as pd

table = pd.read_parquet("data/table.parquet")
column = table.columns[0]  # or another one
print(table[column].value_counts(dropna=False))
""",
    r="""\
table <- arrow::read_parquet("data/table.parquet")
column <- names(table)[1]  # or another one
print(table(table[[column]], useNA = "ifany"))
""",
)


CONTRACT = Contract(
    tables=(Table("table.parquet", None),),
    parameters=declared("condensation"),
    rules=together,
    words=words,
    records=("table.parquet",),
    owners={"released_rows.parquet": "group"},
    counting=COUNTING,
)
