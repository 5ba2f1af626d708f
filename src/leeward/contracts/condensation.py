"""What a release of condensed tables may hold, and what it must say (see `contracts.contract`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from leeward.contracts.contract import (
    LARGEST,
    Contract,
    Counting,
    Table,
    Words,
    declared,
    stated_facts,
    texts_of,
)

TEXT = texts_of("condensation")


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

    algorithm : the one that was run, which `auto` leaves open.
    observed : whether numbers that are not a group's own have columns without a declared domain.
    broken : relations that the source keeps and the table does not, each with its percentage of rows.
    """
    models = models_of(parameters)
    times = distinct(parameters.get("time"), [model.get("time") for _, model in models])
    matched = times if algorithm in MATCHING_TIMES else []
    exact = [] if parameters.get("coarsen_time") else matched
    further = {
        TEXT.own_values: algorithm == "balanced",
        TEXT.rare_kept: parameters.get("rare") == "keep",
        TEXT.observed: observed,
        TEXT.always: bool(parameters.get("relations")),
    }
    left_open = [*_of_times(parameters, matched, exact), *TEXT.not_protected]
    left_open += [sentence for sentence, there in further.items() if there]
    reading = TEXT.readme.format(times=_times(matched, exact), plan=_plan(models))
    kept = [f"- `{each}`" for each in parameters.get("relations") or ()]
    lost = [TEXT.broken.format(relation=relation, percent=percent) for relation, percent in broken]
    reading += _listed(TEXT.keeps, kept) + _listed(TEXT.not_kept, lost)
    return Words(
        "k-indistinguishability (condensation)",
        TEXT.attacker,
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
        found = [
            TEXT.exact_times.format(strata=", ".join(strata) or "none", times=", ".join(exact)),
            TEXT.own_group,
        ]
        return found + ([TEXT.several_times.format(**_several(exact))] if len(exact) > 1 else [])
    several = parameters.get("coarsen_groups")
    groups = f" ({several} neighbouring ones)" if several else ""
    return [TEXT.coarse_times.format(groups=groups)] if matched else []


COLUMN = r"(?:'([^']+)'|([^\s'<>=]+))"
"""A column's name in a relation."""


def columns_of(relations: Sequence[str]) -> set[str]:
    return {"".join(found) for text in relations for found in re.findall(COLUMN, str(text))}


def _of_several_times(parameters: Mapping[str, Any]) -> bool:
    """Whether a relation names one of several exact times, which must not depend on each other."""
    given = [model.get("time") for _, model in models_of(parameters)]
    times = [] if parameters.get("coarsen_time") else distinct(parameters.get("time"), given)
    return len(times) > 1 and not columns_of(parameters["relations"]).isdisjoint(times)


def _times(matched: list[str], exact: list[str]) -> str:
    if not matched:
        return ""
    several = TEXT.not_together.format(**_several(exact)) if len(exact) > 1 else ""
    return f"\nTimes ({', '.join(matched)}) are {TEXT.as_they_were if exact else TEXT.coarse}{several}"


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
    if kind not in ("linear", "logistic", "cox", "poisson", "forest") or not isinstance(model, dict):
        return False
    keys = [key for key in MODEL if key in model]
    return "covariates" in model and list(model) == keys and all(MODEL[key](model[key]) for key in keys)


def together(parameters: Mapping[str, Any]) -> bool:
    """Whether the plan is one, and relations are of groups whose own values are released."""
    if not all(map(is_model, parameters.get("plan", []))):
        return False
    balanced = parameters["algorithm"] in ("balanced", "auto")
    return "relations" not in parameters or (balanced and not _of_several_times(parameters))


COUNTING = Counting(TEXT.intro, TEXT.pandas, TEXT.r)


CONTRACT = Contract(
    tables=(Table("table.parquet", None),),
    parameters=declared("condensation"),
    rules=together,
    words=words,
    records=("table.parquet",),
    owners={"released_rows.parquet": "group"},
    counting=COUNTING,
)
