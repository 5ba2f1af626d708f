"""Gal et al. 2014, Section 4, again: what seven methods leave of linear, logistic and Cox models at K = 100.

    python benchmarks/study_condensation.py --data DIR [--repetitions 40] [--sets prostate,lung] [--keep FILE]

`DIR/survival/` holds public registries: `ProstateSurvival_df.csv` (R package asaur, SEER-Medicare based), `nafld1.csv`,
`rotterdam.csv` and `colon.csv` (R package survival), `support2.csv.gz` (SUPPORT2, UCI). Lung and colon registries with
the paper's nine variables are made up (`leeward synth registry`, seed 1; a table of other seeds). Every set goes
through seven methods, each repeated with another seed; the original's bootstrap is beside them. FILE keeps each set's
figures, so that a run can go on in pieces. Writes docs/studies/condensation.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import pyarrow as pa
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import commit, machine, save, table
from leeward.analysis.plan import Model, design_of, median_time, models_of
from leeward.analysis.regression import Fit, fit
from leeward.cohort import Cohort
from leeward.cohort.lenses.table import Table
from leeward.cohort.readers import read
from leeward.methods.condensation import Condensation
from leeward.methods.condensation import grouping as groupings
from leeward.methods.condensation import method as condensing
from leeward.methods.condensation.condense import GROUPINGS
from leeward.methods.condensation.measures import attacks
from leeward.methods.condensation.measures.attacks import privacy
from leeward.methods.condensation.measures.columns import Both, Groups
from leeward.methods.condensation.measures.models import Metrics, compare, mean_metrics
from leeward.methods.k_anonymity import KAnonymity
from leeward.randomness import Randomness
from leeward.release import Anonymized, Release
from leeward.synthetic.registry import SITES, registry
from mdav import mdav
from objections import ended
from study_condensation_figures import bars

PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies" / "condensation.md"
K = 100
REGISTRY = ("DiagAge", "Gender", "Race", "Appalachia", "Stage", "TobaccoUse", "PrimaryPayor")
SUPPORT = ["age", "sex", "dzgroup", "num.co", "diabetes", "dementia", "scoma"]
SUPPORT += ["meanbp", "hrt", "resp", "temp", "crea", "sod"]
METHODS: dict[str, dict[str, Any]] = {
    "balanced": {"algorithm": "balanced"},
    "improved": {"algorithm": "improved"},
    "improved, halving": {"algorithm": "improved", "grouping": {"improved": "halving"}},
    "condensation": {"algorithm": "condensation"},
    "tfrp": {"algorithm": "tfrp"},
    "mdav": {"algorithm": "tfrp", "groups": mdav},
    "k-anonymity": {},
}
CLASSES = ("tfrp", "mdav", "k-anonymity")
"""Methods that release equal rows."""
KINDS = ("cox", "linear", "logistic")
"""The models of every plan, in its order."""
WEIGHTS = ["set", "algorithm", "weight (chosen how often)", *KINDS]
WEIGHED = ("balanced", "improved")
"""Algorithms whose weight a pilot can choose."""
DRAWS = range(1, 11)
"""Seeds of the made-up registries in the table of other seeds."""


@dataclass(frozen=True)
class Set:
    """A table, its plan, and what to call it."""

    cohort: Cohort
    plan: tuple[dict[str, Any], ...]


def plan_of(
    when: str, event: str, value: Any, covariates: Sequence[str], without: Sequence[str] = ()
) -> tuple[dict[str, Any], ...]:
    """Cox on all covariates; linear and logistic models of the time on those not in `without`, among the events."""
    outcome = {"time": when, "event": event, "event_value": value}
    fewer = [name for name in covariates if name not in without]
    return (
        {"cox": {**outcome, "covariates": list(covariates)}},
        {"linear": {**outcome, "covariates": fewer}},
        {"logistic": {**outcome, "covariates": fewer}},
    )


def real(data: Path, file: str, plan: tuple[dict[str, Any], ...], only: pl.Expr | None = None) -> Set:
    """A real registry: the columns of the plan, complete rows."""
    frame = read(data / "survival" / file, format="table").patients
    assert frame is not None
    if only is not None:
        frame = frame.filter(only)
    names = list(dict.fromkeys(name for model in models_of(plan) for name in model.columns()))
    return Set(read(frame.select(names).drop_nulls(), format="table"), plan)


def made_up(site: str, seed: int = 1) -> Set:
    plan = plan_of("SurvInterval", "VitalStat", 0, REGISTRY, ["DiagAge"])
    return Set(read(registry(SITES[site], site, 9, seed=seed), format="table"), plan)


def sets(data: Path) -> dict[str, Callable[[], Set]]:
    rotterdam = ["age", "meno", "size", "grade", "nodes", "pgr", "er", "hormon", "chemo"]
    colon = ["rx", "sex", "age", "obstruct", "perfor", "adhere", "nodes", "differ", "extent", "surg"]
    return {
        "prostate": lambda: real(
            data, "ProstateSurvival_df.csv", plan_of("survTime", "status", 1, ["grade", "stage", "ageGroup"])
        ),
        "rotterdam": lambda: real(data, "rotterdam.csv", plan_of("dtime", "death", 1, rotterdam, ["age"])),
        "support2": lambda: real(data, "support2.csv.gz", plan_of("d.time", "death", 1, SUPPORT, ["age"])),
        "lung": lambda: made_up("lung"),
        "colon": lambda: made_up("colon"),
        "nafld1": lambda: real(
            data,
            "nafld1.csv",
            plan_of("futime", "status", 1, ["age", "male", "weight", "height", "bmi"], ["age"]),
        ),
        "colon trial": lambda: real(
            data, "colon.csv", plan_of("time", "status", 1, colon, ["age"]), pl.col("etype") == 2
        ),
    }


def protected(each: Set, parameters: dict[str, Any], seed: int) -> Anonymized:
    """A release of the set; `groups` takes the place of the two fixed points of TFRP, which publishes centroids too,
    `grouping` that of an algorithm's own grouping."""
    given = dict(parameters)
    groups, grouping = given.pop("groups", groupings.two_points), given.pop("grouping", {})
    method: Any = Condensation(k=K, plan=each.plan, **given) if given else KAnonymity(k=K, plan=each.plan)
    with (
        mock.patch.object(groupings, "two_points", groups),
        mock.patch.object(condensing, "REPETITIONS", 1),
        mock.patch.dict(GROUPINGS, grouping),
    ):
        made: Anonymized = method.protect(each.cohort, randomness=Randomness.of(seed))
    return made


def frame_of(tables: Sequence[Any], path: str) -> pl.DataFrame:
    (found,) = [each for each in tables if each.path == path]
    frame = pl.from_arrow(pa.Table.from_batches(list(found.batches()), found.schema))
    assert isinstance(frame, pl.DataFrame)
    return frame


class Models:
    """Models fitted to the original once."""

    def __init__(self, models: Sequence[Model], original: Table) -> None:
        self.table = original
        self.models = [(model, median_time(model, original.frame)) for model in models]
        self.before = [self._fit(model, cut, original.frame) for model, cut in self.models]

    def _fit(self, model: Model, cut: float | None, frame: pl.DataFrame) -> Fit:
        return fit(model.kind, design_of(model, frame, self.table.columns, cut))

    def compared(self, frame: pl.DataFrame) -> list[Metrics | None]:
        """The metrics of each model on `frame`."""
        return [
            compare(before, self._fit(model, cut, frame))
            for before, (model, cut) in zip(self.before, self.models, strict=True)
        ]


def univariate(plan: Sequence[Any]) -> list[Model]:
    """Cox models of one covariate each: models that are not in the plan."""
    cox = models_of(plan)[0]
    return [Model("cox", (name,), None, cox.time, cox.event, cox.event_value) for name in cox.covariates]


KEYS = ("significance", "direction", "outside")
"""The paper's three metrics."""


@dataclass
class Figures:
    """What the tables print, and for the pictures one row a set, method (and model)."""

    models: list[dict[str, Any]] = field(default_factory=list)
    privacy: list[dict[str, Any]] = field(default_factory=list)
    weights: list[list[str]] = field(default_factory=list)
    utility: list[list[str]] = field(default_factory=list)
    attack: list[list[str]] = field(default_factory=list)
    described: list[str] = field(default_factory=list)

    def add(
        self, name: str, method: str, kinds: Sequence[str], runs: Sequence[Sequence[Metrics | None]]
    ) -> None:
        for number, kind in enumerate(kinds):
            for key, (mean, half) in intervals([run[number] for run in runs]).items():
                row = {"metric": key, "value": mean, "half": half}
                self.models.append({"set": name, "method": method, "model": kind, **row})

    def of(self, name: str, method: str, metric: str) -> list[tuple[float, float]]:
        """(mean, half of its interval) of each model."""
        return [
            (row["value"], row["half"])
            for row in self.models
            if (row["set"], row["method"], row["metric"]) == (name, method, metric)
        ]


def intervals(found: Sequence[Metrics | None]) -> dict[str, tuple[float, float]]:
    """Mean and half of its 95 % interval (Student's t) over the repetitions whose fits converged; none: nothing."""
    mean = mean_metrics(found)
    if mean is None:
        return {}
    values = {key: [each[key] for each in found if each is not None] for key in KEYS}
    return {key: (mean[key], half_width(each)) for key, each in values.items()}


def half_width(values: Sequence[float]) -> float:
    """Half of the 95 % interval of the mean by Student's t; 0 of one value."""
    n = len(values)
    return float(stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else 0.0


def percents(found: Sequence[Metrics | None], fits: Sequence[Metrics | None] | None = None) -> str:
    """Changed significance / changed direction / outside, in per cent; how many of the `fits` did not converge."""
    shown = [
        f"{100 * mean:.1f}" + (f" ± {100 * half:.1f}" if half > 1e-12 else "")
        for mean, half in intervals(found).values()
    ]
    fits = found if fits is None else fits
    failed = sum(each is None for each in fits)
    return " / ".join(shown or "–") + (f" ({failed} of {len(fits)} did not converge)" if failed else "")


def of_covariates(runs: Sequence[Sequence[Metrics | None]]) -> str:
    """`percents` of models of one covariate each: a repetition's figure is the mean over its covariates."""
    return percents([mean_metrics(run) for run in runs], [each for run in runs for each in run])


def discernibility(released: pl.DataFrame) -> int:
    """Sum of the squared sizes of classes of equal rows (Bayardo and Agrawal 2005): what each row is mistaken for."""
    sizes = released.group_by(released.columns).len()["len"].cast(pl.Int64)
    return int((sizes**2).sum())


def attacked(each: Set, made: Anonymized, classes: bool) -> tuple[list[str], float]:
    """Own-group linkage, its chance, distance to the closest record, conditional privacy of the covariates, and the
    discernibility of a release of `classes` with that of a row.

    Beside the cells: the mean conditional entropy over all columns, in bits (of numbers: h in units of a bin).
    """
    source = frame_of(made.custody_tables, "source_rows.parquet").sort("row")
    released = frame_of(made.custody_tables, "released_rows.parquet").sort("record")
    both = Both(
        Release(Path(), None, {"parameters": {}}),
        each.cohort.table(),
        frame_of(made.tables, "table.parquet"),
        Groups(source["row"].to_numpy() - 1, source["group"].to_numpy(), released["group"].to_numpy()),
    )
    linked, near = attacks.linkage(both), attacks.closest(both)
    hidden = privacy(both)
    assert linked is not None
    assert hidden is not None
    levels = [row["privacy"] for row in hidden["columns"] if row["bin_width"] is None]
    numbers = [row["privacy"] / row["bin_width"] for row in hidden["columns"] if row["bin_width"]]
    entropy = float(np.mean(np.log2([*levels, *numbers])))
    return [
        f"{100 * linked['own_group']:.1f}",
        f"{100 * linked['chance']:.2f}",
        f"{near['released']['median']:.2f} ({100 * near['released']['zero']:.1f})",
        f"{near['original']['median']:.2f} ({100 * near['original']['zero']:.1f})",
        f"{np.mean(levels):.2f}" if levels else "–",
        f"{np.mean(numbers):.1f}" if numbers else "–",
        f"{(found := discernibility(both.made)):,} ({found / len(both.made):,.0f})" if classes else "–",
    ], entropy


def studied(name: str, each: Set, method: str, repetitions: int) -> Figures:
    """What one method, or the bootstrap, leaves of one set."""
    original = each.cohort.table()
    plan, single = Models(models_of(each.plan), original), Models(univariate(each.plan), original)
    figures = Figures(described=about(name, each, plan))
    random = np.random.Generator(np.random.Philox(1))
    seconds, found, alone = 0.0, [], []
    made, moved = None, ["–", "–", "–"]
    last = None
    if method != "bootstrap":  # loaded and compiled before seconds are counted
        last = frame_of(protected(each, METHODS[method], repetitions).tables, "table.parquet")
    for seed in range(repetitions):
        if method == "bootstrap":
            frame = original.frame[random.integers(0, len(original), len(original))]
        else:
            begin = time.process_time()
            made = protected(each, METHODS[method], seed)
            seconds += time.process_time() - begin
            frame = frame_of(made.tables, "table.parquet")
        found.append(plan.compared(frame))
        if seed < max(1, repetitions // 3):
            alone.append(single.compared(frame))
        if last is not None and frame.sort(frame.columns).equals(last.sort(last.columns)):
            break  # the same with another seed: the method draws nothing
    figures.add(name, method, [model.kind for model, _ in plan.models], found)
    if made is not None:
        squares = made.custody.get("sum_of_squares", {})
        change = f"{squares['before_moving']:.0f} → {squares['after_moving']:.0f}" if squares else "–"
        moved = [f"{seconds / len(found):.2f}", f"{made.custody.get('rows_moved', 0):,}", change]
        cells, entropy = attacked(each, made, method in CLASSES)
        figures.attack.append([name, method, *cells])
        figures.privacy.append({"set": name, "method": method, "value": entropy})
    kinds = range(len(plan.models))
    figures.utility.append(
        [
            name,
            method,
            *(percents([run[number] for run in found]) for number in kinds),
            of_covariates(alone),
            *moved,
        ]
    )
    if method in WEIGHED:
        figures.weights += weights(name, method, each, plan, found)
    print(*figures.utility[-1], flush=True)
    return figures


def about(name: str, each: Set, plan: Models) -> list[str]:
    """What the set and its models are."""
    cox = models_of(each.plan)[0]
    counts = [str(len(before.names)) for before in plan.before]
    size = f"{len(plan.table):,} × {len(plan.table.columns)}"
    return [name, size, " / ".join(counts), f"{cox.title} on {', '.join(cox.covariates)}"]


def sections(methods: Sequence[Figures]) -> str:
    """The tables of the sets, from what was found of each method on each."""
    used = [*KINDS, "one covariate at a time", "CPU seconds", "rows moved", "within-group squares"]
    linked = ["own-group linkage, %", "chance, %", "closest record, median (equal, %)"]
    linked += ["original to original", "Π of levels", "Π of numbers, in bins", "discernibility (a row)"]
    named = ["set", "method"]
    described = dict.fromkeys(tuple(figures.described) for figures in methods)
    utility = [row for figures in methods for row in figures.utility]
    attack = [row for figures in methods for row in figures.attack]
    return "\n\n".join(
        [
            "## The sets",
            table(
                ["set", "rows × columns", f"coefficients ({' / '.join(KINDS)})", "Cox model"], [*described]
            ),
            "## Models",
            table([*named, *used], utility),
            "## Linkage",
            table([*named, *linked], attack),
        ]
    )


def weights(
    name: str, method: str, each: Set, plan: Models, usual: Sequence[Sequence[Metrics | None]]
) -> list[list[str]]:
    """Weight 0.5 beside one that a pilot chooses, on a fifth of the repetitions, with the same seeds."""
    usual = usual[: max(2, len(usual) // 5)]
    found, chosen = [], []
    for seed in range(len(usual)):
        made = protected(each, {"algorithm": method, "weight": "pilot"}, seed)
        chosen.append(made.custody["pilot"]["chosen"]["weight"])
        found.append(plan.compared(frame_of(made.tables, "table.parquet")))
    counted = ", ".join(f"{weight} ({chosen.count(weight)})" for weight in sorted(set(chosen)))
    kinds = range(len(plan.models))
    return [
        [name, method, shown, *(percents([run[number] for run in runs]) for number in kinds)]
        for shown, runs in (("0.5", usual), (counted, found))
    ]


def other_draws(site: str, seed: int, repetitions: int) -> dict[str, list[dict[str, float] | None]]:
    """Means of each model's metrics over repetitions, on the made-up registry of another seed; by method."""
    each = made_up(site, seed)
    original = each.cohort.table()
    plan = Models(models_of(each.plan), original)
    random = np.random.Generator(np.random.Philox(seed))
    frames: dict[str, Callable[[int], pl.DataFrame]] = {
        method: lambda number, given=METHODS[method]: frame_of(
            protected(each, given, number).tables, "table.parquet"
        )
        for method in WEIGHED
    }
    frames["bootstrap"] = lambda _: original.frame[random.integers(0, len(original), len(original))]
    found = {}
    for method, frame in frames.items():
        runs = [plan.compared(frame(number)) for number in range(repetitions)]
        found[method] = [mean_metrics([run[number] for run in runs]) for number in range(len(plan.models))]
    return found


def draws_table(found: dict[str, list[dict[str, list[dict[str, float] | None]]]]) -> str:
    """The table of other seeds: by registry, what `other_draws` found of each seed."""
    rows = []
    for site, seeds in found.items():
        for method in seeds[0]:
            models = range(len(seeds[0][method]))
            each = [[seed[method][number] for seed in seeds] for number in models]
            rows.append([site, method, *map(percents, each)])
    return table(["registry", "method", *KINDS], rows)


BARS = dict.fromkeys(("prostate", "rotterdam", "lung", "colon", "nafld1", "colon trial"), 0.01) | {
    "support2": 0.09
}
"""The share of coefficients outside the original interval that is aimed at, at most, in each model."""
ABOVE_BOOTSTRAP = 0.05
DEVELOPED_ON = ("prostate", "rotterdam", "lung", "support2")


def with_half(models: Sequence[tuple[float, float]], sign: str = "") -> str:
    """The largest mean, with half of its interval, in per cent."""
    mean, half = max(models)
    return f"{100 * mean:{sign}.1f} ± {100 * half:.1f}"


def aims(figures: Figures) -> str:
    """What `balanced` is meant to keep, and whether it does, in the model that loses most."""
    rows = []
    for name, outside in BARS.items():
        kept = {key: figures.of(name, "balanced", key) for key in KEYS}
        if not kept["direction"]:
            continue
        above = [
            (own - chance, float(np.hypot(half, spread)))
            for (own, half), (chance, spread) in zip(
                kept["significance"], figures.of(name, "bootstrap", "significance"), strict=True
            )
        ]
        bounded = [(*each, outside) for each in kept["outside"]]
        bounded += [(*each, ABOVE_BOOTSTRAP) for each in above]
        flips = max(mean for mean, _ in kept["direction"])
        if flips == 0 and all(mean + half <= bar for mean, half, bar in bounded):
            reached = "yes"
        elif flips > 0 or any(mean - half > bar for mean, half, bar in bounded):
            reached = "no"
        else:
            reached = "not established"
        rows.append(
            [
                f"{name} ({'development' if name in DEVELOPED_ON else 'evaluation'})",
                f"{100 * flips:.1f} (none)",
                f"{with_half(kept['outside'])} ({100 * outside:.0f})",
                f"{with_half(above, '+')} ({100 * ABOVE_BOOTSTRAP:.0f})",
                reached,
            ]
        )
    return table(
        [
            "set",
            "changed direction, % (aim)",
            "outside, % (at most)",
            "changed significance, points above the bootstrap (at most)",
            "reached",
        ],
        rows,
    )


def pictures(figures: Figures) -> str:
    """Figs. 1–4 of the paper; Figs. 5–8 are drawn by `benchmarks/condensation.py`."""
    keys = {
        "significance": ("fig1", "Fig. 1: coefficients that changed significance"),
        "direction": ("fig2", "Fig. 2: significant coefficients that changed direction"),
        "outside": ("fig3", "Fig. 3: coefficients outside the original 95 % interval"),
    }
    parts = []
    for key, (name, title) in keys.items():
        rows = [row for row in figures.models if row["metric"] == key]
        parts.append(f"**{title}**\n\n{bars(name, rows, title)}")
    title = "Fig. 4: average conditional entropy of a column, bits (numbers: in bins)"
    parts.append(f"**{title}**\n\n{bars('fig4', figures.privacy, 'bits', percent=False)}")
    return "\n\n".join(parts)


HEAD = """# Condensation: Gal et al. 2014 again

Seven methods at K = {k}, {repetitions} repetitions with a seed each (one covariate at a time: {alone}).

- `balanced` is the default, `improved` the paper's algorithm, `improved, halving` the same with halving in place of
  k-means. `mdav` is microaggregation with groups of fixed size (Domingo-Ferrer and Mateo-Sanz 2002) on all columns;
  like `tfrp`, it releases centroids. `k-anonymity` is Mondrian on all columns. These three draw nothing and run once.
- `bootstrap`, a resample of the original, is the floor that no method need beat.
- Models: coefficients that changed significance / significant ones that changed direction / coefficients outside the
  original 95 % interval, in per cent: the mean ± half of its 95 % interval (Student's t). Without ± every repetition
  gave the same; of {repetitions} repetitions without a change, up to {unseen} % of all could have one (95 %,
  one-sided).
- Linkage: 1,000 rows, standardized numbers and dummies. *Own-group linkage* above chance: an attacker with a whole
  original row finds the group, not the patient. *Closest record*: from a released row to the nearest original, then
  between originals. Π: conditional privacy, 20 bins. *Discernibility*: the sum of squared classes of equal rows.

{machine}. Commit {commit}. Command: `{command}`

`balanced` was designed on prostate, rotterdam, support2 and lung, so their figures favour it. Only `balanced` sees the
outcomes of the logistic models. Intervals are over the seeds of a method on one data set; over data sets there are
[other seeds of lung and colon](#other-seeds-of-lung-and-colon).

## What `balanced` is meant to keep

The model (Cox, linear, logistic) that loses most. The aims were set on the development sets. *Reached*: yes where the
interval of every model is within the aim, no where one is beyond it, else not established.

{aims}

## Figs. 1–4

{pictures}

## Figs. 5–8: time

Processor seconds of `protect` ([tables](../benchmarks/condensation-growth.md)). The paper's runs spent most of their
seconds in a database; compare the ratios between methods.

**Fig. 5: varying K, 17,421 × 13**

![Time against K](condensation/fig5.svg)

**Fig. 6: `improved`, steps 2a and 2c, varying K**

![Time of clustering and of moving against K](condensation/fig6.svg)

**Fig. 7: varying m, 17,421 rows, K = {k}**

![Time against the number of columns](condensation/fig7.svg)

**Fig. 8: varying n, 13 columns, K = {k}**

![Time against the number of rows](condensation/fig8.svg)

## Weight of the response: 0.5, or chosen by a pilot

w is 0.5 in all other tables; `weight: pilot` ([how](../methods/condensation.md#pilot)) chooses among 0.3, 0.5 and 0.7.
{pilots} repetitions, the same seeds in both rows.

{weights}

## Other seeds of lung and colon

Ten made-up registries each (seeds 1 to 10), {seed_repetitions} repetitions each: the mean over registries ± half of its
interval.

{draws}
"""


def worked(wanted: tuple[str, str, Path, int]) -> dict[str, Any]:
    """One method on one set, or one seed of a made-up registry, in a process of its own."""
    name, what, data, repetitions = wanted
    if name in SITES and what.isdigit():
        return other_draws(name, int(what), max(1, repetitions // 10))
    return dataclasses.asdict(studied(name, sets(data)[name](), what, repetitions))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--sets", default=",".join(BARS))
    parser.add_argument(
        "--keep", type=Path, help="JSON file of what was found; what it has is not done again"
    )
    given = parser.parse_args()
    names = given.sets.split(",")
    methods, seeds = [*METHODS, "bootstrap"], [str(seed) for seed in DRAWS]
    wanted = [(name, method) for name in names for method in methods]
    wanted += [(site, seed) for site in SITES if site in names for seed in seeds]
    found: dict[str, Any] = json.loads(given.keep.read_text()) if given.keep and given.keep.is_file() else {}
    todo = [each for each in wanted if "/".join(each) not in found]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        tasks = [(*each, given.data, given.repetitions) for each in todo]
        for each, result in zip(todo, pool.map(worked, tasks), strict=True):
            found["/".join(each)] = result
            if given.keep:
                given.keep.write_text(json.dumps(found), encoding="utf-8")
    by_set = {name: [Figures(**found[f"{name}/{method}"]) for method in methods] for name in names}
    every = [each for figures in by_set.values() for each in figures]
    figures = Figures(
        *([row for each in every for row in each[key]] for key in ("models", "privacy", "weights"))
    )
    draws = {site: [found[f"{site}/{seed}"] for seed in seeds] for site in SITES if site in names}
    command = f"python benchmarks/study_condensation.py --data DIR --repetitions {given.repetitions}"
    head = HEAD.format(
        k=K,
        repetitions=given.repetitions,
        alone=max(1, given.repetitions // 3),
        unseen=f"{100 * (1 - 0.05 ** (1 / given.repetitions)):.1f}",
        pilots=max(2, given.repetitions // 5),
        seed_repetitions=max(1, given.repetitions // 10),
        machine=machine(),
        commit=commit(),
        command=command,
        aims=aims(figures),
        pictures=pictures(figures),
        weights=table(WEIGHTS, figures.weights),
        draws=draws_table(draws),
    )
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    save(PAGE, ended(f"{head.strip()}\n\n{sections(every)}", "condensation"))


if __name__ == "__main__":
    main()
