"""What sample and population must be, and what the custodian is told of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from leeward.analysis.demographics.k_map import Both, columns_of_both
from leeward.arrays import Int64s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeCounts
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.censoring.parameters import MOST_MENTIONS, Censoring

ROWS_SHOWN = 20

PopulationLike = Cohort | str | Path
"""A cohort, or the path of a Parquet population (`patient`, `code`, where known `visit`) to be streamed."""


def require_enough(parameters: Censoring, people: int) -> None:
    if parameters.k > people:
        raise GuaranteeUnreachable(
            f"`k` is {parameters.k:,} and the population has {people:,} people: no record can be hidden among so many. "
            "Choose a smaller k or give the whole population."
        )


def cap_notices(parameters: Censoring, sample: CodeCounts, caps: Int64s) -> list[str]:
    if parameters.caps is None or parameters.cap is not None:
        return []
    without = sum(code not in parameters.caps for code in sample.codes)
    if not without:
        return []
    mentions = int(sample.counts[caps[sample.values] == 0].sum())
    return [
        (
            f"{without:,} code{'s' if without > 1 else ''} of the sample without a cap: cap 0, "
            "all mentions censored "
            f"({mentions:,} mentions of codes with cap 0). Name them in `caps`, or give `cap` for the rest."
        )
    ]


def require_contained(name: str, sample: CodeCounts, owners: Int64s) -> None:
    """Every original must be contained in a population record, or the claim of 1/k counts no true owner
    (docs/methods/censoring.md#guarantee). owners : int64[records], people who contain the original, counted up to 1."""
    lost = np.flatnonzero(owners < 1)
    if not len(lost):
        return
    rows = np.sort(sample.rows[lost])[:ROWS_SHOWN].tolist()
    shown = ", ".join(map(str, rows)) + (", …" if len(lost) > len(rows) else "")
    raise BadInput(
        f"{name}: {len(lost):,} record{'s' if len(lost) > 1 else ''} of the sample that no record of the population "
        f"contains (beginning in rows {shown}). The sample must come from the population: check that both have the "
        "same codes, spelling and visit column, and that the population is complete."
    )


def require_each_once(population: Cohort) -> None:
    """No patient may be twice in the population: two records of one person would hide nobody
    (docs/methods/censoring.md#guarantee)."""
    population.require_one_row_each()
    everyone = population.code_counts()
    if everyone.patients.dtype != pl.String:
        return
    people = pl.DataFrame({"patient": everyone.patients, "row": everyone.rows})
    alike = pl.col("patient").str.strip_chars().str.to_lowercase().is_duplicated()
    twice = people.filter(alike)
    if twice.height:
        rows = ", ".join(map(str, twice["row"].sort().head(ROWS_SHOWN).to_list()))
        raise BadInput(
            f"{population.name}: {twice.height:,} patients differ from another only in blanks or upper and lower case "
            f"(beginning in rows {rows}); one person must have one identifier, or k counts the same person twice."
        )


def notices_of(cohort: Cohort, population: PopulationLike) -> list[str]:
    found = []
    if isinstance(population, Cohort):
        visits = ["visit" in source.columns_of_events() for source in (cohort, population)]
        if visits[0] != visits[1]:
            having, lacking = ("sample", "population") if visits[0] else ("population", "sample")
            found.append(
                f"The {having} has a visit column and the {lacking} has none: mentions are counted unlike."
            )
    return found


def columns_of(
    parameters: Censoring, cohort: Cohort, sample: CodeCounts, population: Cohort, everyone: CodeCounts
) -> Both:
    """The demographics of the sample and of the population, coded in one way."""
    return columns_of_both(
        (cohort.patients, sample.patients, cohort.name),
        (population.patients, everyone.patients, population.name),
        parameters.demographics,
        parameters.hierarchies or {},
        dict(parameters.keep or {}),
    )


def caps_of(parameters: Censoring, lens: CodeCounts) -> Int64s:
    """The cap of each code of sample or population, never above its highest count there."""
    most = lens.most()
    if parameters.caps is None:
        return np.minimum(most, MOST_MENTIONS if parameters.cap is None else parameters.cap)
    given = [parameters.caps.get(code, parameters.cap or 0) for code in lens.codes]
    return np.minimum(most, np.array(given, np.int64))
