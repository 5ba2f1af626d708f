"""Gal et al. 2014, Section 4, again: what condensation and its opponents leave of recipients' models at K = 100.

    python benchmarks/study_condensation.py --data DIR [--repetitions 100] [--sets prostate,lung] [--keep FILE]

`DIR/survival/` holds public registries: `ProstateSurvival_df.csv` (R package asaur, SEER-Medicare based), `nafld1.csv`,
`rotterdam.csv` and `colon.csv` (R package survival), `support2.csv.gz` (SUPPORT2, UCI). Lung and colon registries with
the paper's nine variables are made up (`leeward synth registry`, seed 1; a table of other seeds). Every set goes
through every method, each repeated with another seed; the original's bootstrap is beside them. Large sets are repeated
less often (`MOST`). FILE keeps what was found of each ten seeds, so that a run goes on where it stopped. Writes
docs/studies/condensation.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import commit, machine, once
from leeward.analysis.plan import Model, design_of, event_rows, median_time, models_of
from leeward.analysis.regression import Fit, fit
from leeward.cohort.lenses.table import Table
from leeward.cohort.readers import read
from leeward.methods.condensation.measures import attacks
from leeward.methods.condensation.measures.columns import Both
from leeward.methods.condensation.measures.models import Metrics, compare, mean_metrics
from leeward.methods.condensation.measures.utility import discernibility_of
from leeward.release import Release
from leeward.synthetic.registry import SITES
from study_condensation_methods import CLASSES, METHODS, Made, classes_of, frame_of, made_by, protected
from study_condensation_page import KEYS, percents, write_page
from study_condensation_sets import BARS, Set, made_up, plan_of, sets

__all__ = ["Models", "Set", "frame_of", "models_of", "percents", "plan_of", "protected", "sets"]

AT_ONCE = 10
"""Seeds between two moments at which a run can stop."""
MOST = {"colon": 40, "lung": 20, "support2": 20}
"""Repetitions of large sets, at most. `study_condensation_measures.py` has the paper's methods, and no more, 100 times.
"""
FURTHER = {"alone": 10, "unseen": 20, "attacked": 3, "membership": 6}
"""Of how many seeds else than the plan's models are looked at."""
WEIGHED = ("balanced", "improved")
"""Algorithms whose weight a pilot can choose, of which other registries are drawn too."""
PILOTS = 8
"""Repetitions with a pilot, on `PILOTED`."""
PILOTED = ("prostate", "rotterdam")
DRAWS, DRAWN = range(1, 11), 2
"""Seeds of the made-up registries in the table of other seeds, and repetitions of each."""


class Models:
    """Models fitted to the original once. `cuts`: where a logistic model of a time cuts, the median unless given."""

    def __init__(
        self, models: Sequence[Model], original: Table, cuts: Sequence[float | None] | None = None
    ) -> None:
        self.table = original
        found = [median_time(model, original.frame) for model in models] if cuts is None else cuts
        self.models = [*zip(models, found, strict=True)]
        self.before = [self._fit(model, cut, original.frame) for model, cut in self.models]

    def _fit(self, model: Model, cut: float | None, frame: pl.DataFrame) -> Fit:
        return fit(model.kind, design_of(model, frame, self.table.columns, cut))

    def compared(self, frame: pl.DataFrame) -> list[Metrics | None]:
        """The metrics of each model on `frame`."""
        return [
            compare(before, self._fit(model, cut, frame))
            for before, (model, cut) in zip(self.before, self.models, strict=True)
        ]


@dataclass(frozen=True)
class Studied:
    """A set with its models: the plan's, Cox models of one covariate each, and models that no method is given."""

    each: Set
    plan: Models
    alone: Models
    unseen: Models


def ready(each: Set) -> Studied:
    original = each.cohort.table()
    cox = each.cox
    alone = [Model("cox", (name,), None, cox.time, cox.event, cox.event_value) for name in cox.covariates]
    return Studied(
        each, Models(models_of(each.plan), original), Models(alone, original), unseen(each, original)
    )


def unseen(each: Set, original: Table) -> Models:
    """Outcomes that no method is given: whether the time is above the lower, and the upper, quartile of the events'
    times; and the first covariate that is a number, explained by the others."""
    logistic = models_of(each.plan)[2]
    times = (
        original.frame[str(logistic.time)].cast(pl.Float64).to_numpy()[event_rows(original.frame, logistic)]
    )
    models, cuts = [logistic, logistic], [float(np.quantile(times, share)) for share in (0.25, 0.75)]
    covariates = each.cox.covariates
    numbers = [name for name in covariates if not original.column(name).is_categorical]
    if numbers:
        others = tuple(name for name in covariates if name != numbers[0])
        models.append(Model("linear", others, numbers[0]))
    return Models(models, original, [*cuts, *[None] * len(numbers[:1])])


def measured(studied: Studied, method: str, first: int) -> dict[str, Any]:
    """What one method leaves with each of `AT_ONCE` seeds from `first` on; of one that draws nothing, with one seed."""
    found: dict[str, Any] = {"plan": [], "alone": [], "unseen": [], "attacked": [], "membership": []}
    found |= {"seconds": [], "moved": [], "squares": []}
    one = made_by(method, studied.each, first + AT_ONCE) if first == 0 else None  # compiles, too
    for seed in range(first, first + AT_ONCE):
        begin = time.process_time()
        made = made_by(method, studied.each, seed)
        found["seconds"].append(time.process_time() - begin)
        found["plan"].append(shares(studied.plan.compared(made.frame)))
        for key, models in (("alone", studied.alone), ("unseen", studied.unseen)):
            if seed < FURTHER[key]:
                found[key].append(shares(models.compared(made.frame)))
        if made.custody:
            squares = made.custody.get("sum_of_squares", {})
            found["moved"].append(made.custody.get("rows_moved", 0))
            found["squares"] = [*squares.values()]
        if seed < FURTHER["attacked"]:
            found["attacked"].append(attacked(studied.each, method, made))
        if seed < FURTHER["membership"]:
            found["membership"].append(membership(studied.each, method, seed))
        if one is not None and made.frame.sort(made.frame.columns).equals(one.frame.sort(one.frame.columns)):
            found["membership"] += [
                membership(studied.each, method, other) for other in range(1, FURTHER["membership"])
            ]
            return {**found, "fixed": True}
    return {**found, "fixed": False}


def shares(found: Sequence[Metrics | None]) -> list[list[float] | None]:
    """The paper's three metrics of each model, none where a fit did not converge."""
    return [None if each is None else [each[key] for key in KEYS] for each in found]


def both_of(each: Set, made: Made, **parameters: Any) -> Both:
    release = Release(Path(), None, {"parameters": parameters})
    return Both(release, each.cohort.table(), made.frame, made.groups)


def hidden(both: Both) -> dict[str, float | None]:
    """Conditional privacy of levels and of numbers, in bins, and the mean conditional entropy; of groups alone."""
    found = attacks.privacy(both, permutations=5)
    if found is None:
        return {}
    levels = [row["privacy"] for row in found["columns"] if row["bin_width"] is None]
    numbers = [row["privacy"] / row["bin_width"] for row in found["columns"] if row["bin_width"]]
    means = {
        name: float(np.mean(of)) if of else None for name, of in (("levels", levels), ("numbers", numbers))
    }
    return {**means, "entropy": float(np.mean(np.log2([*levels, *numbers])))}


def attacked(each: Set, method: str, made: Made) -> dict[str, float | None]:
    """Own-group linkage and its chance, distances to the closest record, conditional privacy, discernibility."""
    both = both_of(each, made)
    linked, near = attacks.linkage(both), attacks.closest(both)
    found: dict[str, float | None] = {
        "time": time_found(each, both),
        "closest": near["released"]["median"],
        "equal": near["released"]["zero"],
        "original": near["original"]["median"],
        "original equal": near["original"]["zero"],
    }
    if linked is not None:
        found |= {"own group": linked["own_group"], "chance": linked["chance"], **hidden(both)}
    if method in CLASSES:
        classes = made.frame.select(classes_of(each, method))
        found["class"] = discernibility_of(classes) / classes.height
    return found


def time_found(each: Set, both: Both) -> float:
    """The share of at most 1,000 patients whose exact time is that of the nearest released row with the same event, for
    somebody who knows all other columns. Nobody has another's event: rows of other events are far away."""
    time, event = str(each.cox.time), str(each.cox.event)
    names, before, after, _ = both.dummies
    known = [place for place, name in enumerate(names) if name != time]
    far = np.float32(1e3) * np.array([name.partition("=")[0] == event for name in names], np.float32)[known]
    rows = np.random.Generator(np.random.Philox(7)).permutation(len(before))[: attacks.SAMPLE]
    nearest = attacks.nearest_rows(before[np.ix_(rows, known)] * (1 + far), after[:, known] * (1 + far))
    _, own, made = both.columns(time)
    return float((own[rows] == made[nearest]).mean())


def halves_of(each: Set, seed: int) -> tuple[Any, Any]:
    """The rows of two halves, in random order."""
    rows = len(each.cohort.table())
    order = np.random.Generator(np.random.Philox(1_000 + seed)).permutation(rows)
    return order[: rows // 2], order[rows // 2 :]


def half_of(each: Set, rows: Any) -> Set:
    frame = each.cohort.table().frame[np.sort(rows)]
    return Set(read(frame, format="table"), each.plan, each.known)


def membership(each: Set, method: str, seed: int) -> float:
    """A release of one half of the rows: how likely a patient in it is nearer to a released row than one of the other
    half (area under the curve; nothing given away: 0.5). At most 1,000 patients of each half, whole rows."""
    inside, outside = halves_of(each, seed)
    half = half_of(each, inside)
    _, before, after, _ = both_of(each, made_by(method, half, seed)).dummies
    tree = attacks.tree_of(after)
    near, far = (
        np.sort(attacks.two_distances(before[rows[: attacks.SAMPLE]], tree)[:, 0])
        for rows in (inside, outside)
    )
    below, up_to = (np.searchsorted(far, near, side) for side in ("left", "right"))
    return float((1 - (below + up_to) / 2 / len(far)).mean())


def piloted(studied: Studied, method: str) -> list[dict[str, Any]]:
    """The weight that a pilot chooses and what it leaves, with the seeds of the other tables."""
    found = []
    for seed in range(PILOTS):
        made = protected(studied.each, {"algorithm": method, "weight": "pilot"}, seed)
        models = studied.plan.compared(frame_of(made.tables, "table.parquet"))
        found.append({"weight": made.custody["pilot"]["chosen"]["weight"], "plan": shares(models)})
    return found


def other_draws(site: str, seed: int) -> dict[str, list[list[float] | None]]:
    """Means of each model's metrics over repetitions, on the made-up registry of another seed; by method."""
    each = made_up(site, seed)
    plan = Models(models_of(each.plan), each.cohort.table())
    found = {}
    for method in (*WEIGHED, "bootstrap"):
        runs = [plan.compared(made_by(method, each, 10 * seed + number).frame) for number in range(DRAWN)]
        found[method] = shares([mean_metrics(each) for each in zip(*runs, strict=True)])
    return found


def tasks(
    ready_of: Callable[[str], Studied], names: Sequence[str], repetitions: int
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What there is to do and the name under which it is kept: the first seeds of every set, then the next."""
    for name in names:
        yield f"about/{name}", partial(lambda name: about(name, ready_of(name)), name)
    for first in range(0, repetitions, AT_ONCE):
        for name in (name for name in names if first < MOST.get(name, repetitions)):
            for method in METHODS:
                work = partial(lambda *given: measured(ready_of(given[0]), *given[1:]), name, method, first)
                yield f"{name}/{method}/{first}", work
    for name in (name for name in PILOTED if name in names):
        for method in WEIGHED:
            yield (
                f"pilot/{name}/{method}",
                partial(lambda *given: piloted(ready_of(given[0]), given[1]), name, method),
            )
    for site in (site for site in SITES if site in names):
        for seed in DRAWS:
            yield f"draws/{site}/{seed}", partial(other_draws, site, seed)


def found_of(
    ready_of: Callable[[str], Studied], names: Sequence[str], repetitions: int, keep: Path | None
) -> dict[str, Any]:
    """What all tasks found, of this run and of earlier ones that are kept."""
    found: dict[str, Any] = {"taken": once(keep, "taken", lambda: [machine(), commit()])}
    for key, work in tasks(ready_of, names, repetitions):
        before = found.get(f"{key.rpartition('/')[0]}/0", {})
        if not before.get("fixed"):  # a method that draws nothing has no further seeds
            found[key] = once(keep, key, work)
            print(key, flush=True)
    return found


def about(name: str, studied: Studied) -> list[str]:
    """What the set and its models are."""
    cox, table = studied.each.cox, studied.plan.table
    counts = [str(len(before.names)) for before in studied.plan.before]
    further = [model.title for model, _ in studied.unseen.models[2:]]
    return [
        name,
        f"{len(table):,} × {len(table.columns)}",
        " / ".join(counts),
        f"{cox.title} on {', '.join(cox.covariates)}",
        ", ".join(studied.each.known),
        "; ".join(["quartiles of the time", *further]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repetitions", type=int, default=100, help="in steps of ten")
    parser.add_argument("--sets", default=",".join(BARS))
    parser.add_argument("--keep", type=Path, help="JSON file of what was found, which is not done again")
    given = parser.parse_args()
    every = sets(given.data)
    ready_of = lru_cache(lambda name: ready(every[name]()))
    found = found_of(ready_of, given.sets.split(","), given.repetitions, given.keep)
    write_page(found, "python benchmarks/study_condensation.py --data DIR")


if __name__ == "__main__":
    main()
