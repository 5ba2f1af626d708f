"""Two sections of docs/studies/condensation.md: other measures of utility, and the paper's methods a hundred times.

    python benchmarks/study_condensation_measures.py --data DIR --part measures
    python benchmarks/study_condensation_measures.py --data DIR --part hundred [--sets prostate,lung] [--keep FILE]

Sets and methods are those of `study_condensation.py`. FILE keeps what was found, so that a run goes on where it
stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import once, table, write_section
from leeward.analysis.plan import Model, median_time, models_of
from leeward.methods.condensation.measures.utility import (
    discernibility_of,
    generalization,
    mutual_information,
    range_counts,
    score_of,
)
from objections import HEADING
from study_condensation import Models, both_of, half_of, halves_of, hidden, shares
from study_condensation_methods import CLASSES, METHODS, classes_of, made_by
from study_condensation_page import KINDS, LEADING, PAGE, Estimate, percents
from study_condensation_sets import BARS, Set, sets

SETS = tuple(name for name in BARS if name != "support2")
"""Those of the tables of `study_condensation.py`."""
SEEDS = 3
REPETITIONS, AT_ONCE = 100, 10
REPEATED = ("improved", "condensation", "r-microhybrid")
"""Methods of the paper that draw; `balanced` and the bootstrap are on the page."""
PREDICTED = ("logistic", "forest")


@dataclass(frozen=True, eq=False)
class Halved:
    """A set, and the areas under the curve that its halves reach, by seed."""

    each: Set
    areas: Callable[[int], list[float | None]]


def halved(each: Set) -> Halved:
    return Halved(
        each,
        lru_cache(
            lambda seed: predicted(each, each.cohort.table().frame[np.sort(halves_of(each, seed)[0])], seed)
        ),
    )


def predicted(each: Set, trained: pl.DataFrame, seed: int) -> list[float | None]:
    """The areas under the curve of the plan's logistic model and of a forest of the same outcome and covariates,
    trained on some rows, for the half of patients that was left out."""
    original = each.cohort.table()
    logistic = models_of(each.plan)[2]
    cut, asked = median_time(logistic, original.frame), original.frame[np.sort(halves_of(each, seed)[1])]
    kinds: list[Model] = [replace(logistic, kind=kind) for kind in PREDICTED]
    return [score_of(model, original, trained, asked, cut) for model in kinds]


def measured(known: Halved, method: str) -> dict[str, list[float | None]]:
    """Every measure with each of `SEEDS`; of a method that draws nothing, those of the whole table once."""
    each, found = known.each, {name: [] for name in MEASURED}
    for seed in range(SEEDS):
        made = made_by(method, each, seed)
        if seed == 0 or method not in CLASSES:
            generalized = classes_of(each, method) if method in CLASSES else []
            both = both_of(each, made, quasi_identifiers=generalized)
            told, left = mutual_information(both), generalization(both) or {}
            found["counts off, %"].append(range_counts(both)["are"])
            found["information off, bits"].append(told and told["mean_difference"])
            found["loss metric, %"].append(left.get("loss"))
            found["height"].append(left.get("height"))
            found["ambiguity, log10"].append(left.get("ambiguity"))
            rows = made.frame.select(generalized)
            found["discernibility of a row"].append(
                discernibility_of(rows) / rows.height if generalized else None
            )
        half = made_by(method, half_of(each, halves_of(each, seed)[0]), seed).frame
        for name, own, after in zip(PREDICTED, known.areas(seed), predicted(each, half, seed), strict=True):
            found[f"AUC lost, {name}"].append(None if own is None or after is None else own - after)
    return found


MEASURED = {
    "counts off, %": (1, 100.0),
    "information off, bits": (3, 1.0),
    "AUC lost, logistic": (3, 1.0),
    "AUC lost, forest": (3, 1.0),
    "loss metric, %": (1, 100.0),
    "height": (2, 1.0),
    "ambiguity, log10": (1, 1.0),
    "discernibility of a row": (0, 1.0),
}
"""Columns of the tables of measures: decimals, and what a figure is multiplied by."""


def estimates(found: dict[str, list[float | None]]) -> list[Estimate]:
    return [Estimate.of([value for value in found[name] if value is not None]) for name in MEASURED]


def measures_of(found: dict[str, Any], names: Sequence[str]) -> str:
    """Means over the sets, areas of the halves themselves, and every set."""
    by = {(name, method): estimates(found[f"{name}/{method}"]) for name in names for method in METHODS}
    means = []
    for method in LEADING:
        over = [Estimate.over(column) for column in zip(*(by[name, method] for name in names), strict=True)]
        means.append(
            [method, *(each.shown(*MEASURED[name]) for each, name in zip(over, MEASURED, strict=True))]
        )
    rows = [
        [*key, *(each.shown(*MEASURED[name]) for each, name in zip(cells, MEASURED, strict=True))]
        for key, cells in by.items()
    ]
    areas = [
        [
            name,
            *(Estimate.of([run[place] for run in found[f"{name}/areas"]]).shown(3, 1.0) for place in (0, 1)),
        ]
        for name in names
    ]
    return MEASURES.format(
        seeds=SEEDS,
        means=table(["method", *MEASURED], means),
        areas=table(["set", *PREDICTED], areas),
        sets=table(["set", "method", *MEASURED], rows),
    )


MEASURES = """
For uses that nobody planned ([definitions](../methods/condensation.md#other-measures-of-utility)); means over the
sets, ± half of a 95 % interval over {seeds} seeds. *Counts*: mean relative error of 200 counts by ranges of up to
three columns. *Information*: mean difference of the bits that two columns tell of each other. *AUC lost*: one half of
the patients is released, the other half is asked whether its time is above the cut of the logistic model; the area
under the curve reached from the half itself less that from its release. *Loss metric*, *height* and *ambiguity* are
what a row's group leaves open, of all columns, or of those alone that `k-anonymity` generalizes; trees, copula and
bootstrap have no groups. *Discernibility* is of methods that release equal rows. A mean leaves out sets where a model
could not be fitted, one or two of six for the AUC of `improved`, `mdav` and `k-anonymity` of all columns; – where it
fits in none.

{means}

The areas that the halves themselves reach:

{areas}

By set:

{sets}
"""


def repeated(each: Set, method: str, first: int) -> dict[str, list[Any]]:
    """What a method leaves of the plan's models with some seeds, and the mean conditional entropy of a column."""
    models = Models(models_of(each.plan), each.cohort.table())
    found: dict[str, list[Any]] = {"plan": [], "entropy": []}
    for seed in range(first, first + AT_ONCE):
        made = made_by(method, each, seed)
        found["plan"].append(shares(models.compared(made.frame)))
        found["entropy"].append(hidden(both_of(each, made))["entropy"])
    return found


def hundred_of(found: dict[str, Any], names: Sequence[str]) -> str:
    rows = []
    for name in names:
        for method in REPEATED:
            chunks = [value for key, value in found.items() if key.startswith(f"{name}/{method}/")]
            plan, entropy = ([run for chunk in chunks for run in chunk[what]] for what in ("plan", "entropy"))
            cells = [percents(plan, [model]) for model in range(len(KINDS))]
            rows.append([name, method, len(plan), *cells, Estimate.of(entropy).shown(3, 1.0)])
    head = ["set", "method", "repetitions", *KINDS, "conditional entropy, bits"]
    return HUNDRED.format(table=table(head, rows))


HUNDRED = """
The methods of the paper's kind that draw, with so many seeds each: changed significance / changed direction / outside,
in per cent, and the mean conditional entropy of a column, ± half of the 95 % interval. TFRP, MDAV, MST and
`k-anonymity` draw nothing; `balanced` and the bootstrap have their own counts [above](#the-sets).

{table}
"""


def tasks(part: str, names: Sequence[str], ready: Callable[[str], Halved]) -> dict[str, Callable[[], Any]]:
    """What there is to do, by the name under which it is kept."""
    if part == "measures":
        areas = {f"{name}/areas": partial(areas_of, ready, name) for name in names}
        both = {f"{n}/{m}": partial(lambda n, m: measured(ready(n), m), n, m) for n in names for m in METHODS}
        return {**areas, **both}
    return {
        f"{name}/{method}/{first}": partial(
            lambda n, *rest: repeated(ready(n).each, *rest), name, method, first
        )
        for name in names
        for first in range(0, REPETITIONS, AT_ONCE)
        for method in REPEATED
    }


def areas_of(ready: Callable[[str], Halved], name: str) -> list[list[float | None]]:
    return [ready(name).areas(seed) for seed in range(SEEDS)]


PARTS = {
    "measures": ("Other measures of utility", measures_of),
    "hundred": ("A hundred repetitions", hundred_of),
}


def write(part: str, names: Sequence[str], found: dict[str, Any], page: Path = PAGE) -> None:
    """The section, before what the study cannot say."""
    title, body_of = PARTS[part]
    command = f"python benchmarks/study_condensation_measures.py --data DIR --part {part}"
    write_section(part, title, command, body_of(found, names), page, before=HEADING)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--part", choices=PARTS, required=True)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--keep", type=Path, help="JSON file of what was found, which is not done again")
    given = parser.parse_args()
    every, names = sets(given.data), given.sets.split(",")
    ready = lru_cache(lambda name: halved(every[name]()))
    found = {}
    for key, work in tasks(given.part, names, ready).items():
        found[key] = once(given.keep, key, work)
        print(key, flush=True)
    write(given.part, names, found)


if __name__ == "__main__":
    main()
