"""The page of the study of condensation, from what its runs found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from common import save, table
from objections import ended
from study_condensation_figures import bars
from study_condensation_methods import METHODS, K
from study_condensation_sets import BARS, DEVELOPED_ON
from study_condensation_words import BODY, DRAWS, HEAD, READING

PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies" / "condensation.md"
KEYS = ("significance", "direction", "outside")
"""The paper's three metrics."""
KINDS = ("cox", "linear", "logistic")
"""The models of every plan, in its order."""
ABOVE_BOOTSTRAP = 0.05
MOST_FLIPS = 0.05
"""The share of repetitions with a changed direction that has to be excluded before "none" is reached."""

LEADING = (
    "balanced",
    "balanced, no plan",
    "improved",
    "condensation",
    "r-microhybrid",
    "mdav",
    "k-anonymity, all columns",
    "k-anonymity, known columns",
    "trees, leaf 100",
    "trees, leaf 5",
    "copula",
    "bootstrap",
)
"""Methods of the tables that stand on the page."""
DRAWN = (
    "balanced",
    "improved",
    "condensation",
    "r-microhybrid",
    "tfrp",
    "k-anonymity, known columns",
    "trees, leaf 100",
    "copula",
    "bootstrap",
)
"""Methods of the pictures."""

Runs = Sequence[Sequence[Sequence[float] | None]]
"""By repetition and model: the three metrics, or None where the fit did not converge."""


@dataclass(frozen=True)
class Estimate:
    """A mean and half of its 95 % interval; both NaN of nothing."""

    mean: float
    half: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """By Student's t over independent repetitions; of one value, or equal ones, without an interval."""
        n = len(values)
        if n == 0:
            return cls(np.nan, np.nan)
        half = float(stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else 0.0
        return cls(float(np.mean(values)), half)

    @classmethod
    def over(cls, each: Sequence[Estimate]) -> Estimate:
        """The mean of independent estimates, those of nothing left out."""
        known = [one for one in each if not np.isnan(one.mean)]
        if not known:
            return cls(np.nan, np.nan)
        return cls(
            float(np.mean([one.mean for one in known])),
            float(np.sqrt(sum(one.half**2 for one in known)) / len(known)),
        )

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(self.mean - other.mean, float(np.hypot(self.half, other.half)))

    def shown(self, digits: int = 1, factor: float = 100.0, sign: str = "") -> str:
        if np.isnan(self.mean):
            return "–"
        found = f"{factor * self.mean:{sign},.{digits}f}"
        return f"{found} ± {factor * self.half:.{digits}f}" if factor * self.half > 1e-10 else found


def metric_of(runs: Runs, models: Sequence[int], key: int) -> Estimate:
    """One metric: a repetition's is the mean over the models that converged."""
    values = []
    for run in runs:
        known = [shares[key] for model in models if (shares := run[model]) is not None]
        values += [float(np.mean(known))] if known else []
    return Estimate.of(values)


def percents(runs: Runs, models: Sequence[int] | None = None) -> str:
    """Changed significance / changed direction / outside, in per cent; how many fits did not converge."""
    models = range(len(runs[0])) if models is None else models
    fits = [run[model] for run in runs for model in models]
    found = [metric_of(runs, models, key) for key in range(len(KEYS))]
    failed = sum(each is None for each in fits)
    cell = "–" if np.isnan(found[0].mean) else " / ".join(each.shown() for each in found)
    return cell + (f" ({failed} of {len(fits)} did not converge)" if failed else "")


@dataclass(frozen=True)
class Found:
    """What was found, by the names under which `study_condensation.tasks` keeps it."""

    kept: dict[str, Any]

    @cached_property
    def sets(self) -> list[str]:
        """The sets of which every method's first seeds are there."""
        return [name for name in BARS if all(f"{name}/{method}/0" in self.kept for method in METHODS)]

    def all(self, name: str, method: str, what: str) -> list[Any]:
        """What every repetition found."""
        return [each for chunk in self._chunks.get(f"{name}/{method}", ()) for each in chunk[what]]

    @cached_property
    def _chunks(self) -> dict[str, list[Any]]:
        """By set and method, the runs of ten seeds in their order, in which they were made."""
        found: dict[str, list[Any]] = {}
        for key, value in self.kept.items():
            found.setdefault(key.rpartition("/")[0], []).append(value)
        return found

    def repetitions(self, name: str, method: str = "copula") -> int:
        """How many seeds a method has; unless one is named, as many as every method that draws has at least."""
        return len(self.all(name, method, "plan"))

    def metric(self, name: str, method: str, key: int, models: Sequence[int]) -> Estimate:
        return metric_of(self.all(name, method, "plan"), models, key)

    def attack(self, name: str, method: str, what: str) -> Estimate:
        rows = self.all(name, method, "attacked")
        return Estimate.of([row[what] for row in rows if row.get(what) is not None])

    def membership(self, name: str, method: str) -> Estimate:
        return Estimate.of(self.all(name, method, "membership"))


def glance(found: Found) -> str:
    """The means over all sets and models, and what membership gives away."""
    rows = []
    every = range(len(KINDS))
    for method in LEADING:
        runs = [found.all(name, method, "plan") for name in found.sets]
        fits = [fit for each in runs for run in each for fit in run]
        metrics = [Estimate.over([metric_of(each, every, key) for each in runs]) for key in range(len(KEYS))]
        near = Estimate.over([found.membership(name, method) for name in found.sets])
        failed = f"{100 * float(np.mean([fit is None for fit in fits])):.1f}"
        time = Estimate.over([found.attack(name, method, "time") for name in found.sets])
        rows.append([method, *(each.shown() for each in metrics), failed, near.shown(3, 1.0), time.shown()])
    head = ["method", "changed significance, %", "changed direction, %", "outside, %", "no fit, %"]
    head += ["membership", "times found, %"]
    return table(head, rows)


def rivals(found: Found) -> str:
    """In how many models of all sets each opponent is better, or worse, than `balanced`, beyond the intervals."""
    rows = []
    for method in (*LEADING[1:-1], "bootstrap"):
        cells, unfit = [[0, 0] for _ in KEYS], 0
        for name in found.sets:
            for model in range(len(KINDS)):
                gaps = [
                    found.metric(name, method, key, [model]) - found.metric(name, "balanced", key, [model])
                    for key in range(len(KEYS))
                ]
                unfit += bool(np.isnan(gaps[0].mean))
                for cell, gap in zip(cells, gaps, strict=True):
                    cell[0] += gap.mean < -gap.half
                    cell[1] += gap.mean > gap.half
        for measure in (found.membership, lambda name, method: found.attack(name, method, "time")):
            gaps = [measure(name, method) - measure(name, "balanced") for name in found.sets]
            cells.append(
                [sum(gap.mean < -gap.half for gap in gaps), sum(gap.mean > gap.half for gap in gaps)]
            )
        rows.append([method, *(f"{good} / {bad}" for good, bad in cells), unfit])
    head = ["opponent", "significance", "direction", "outside", "membership (sets)", "times found (sets)"]
    head += ["no fit at all"]
    return table(head, rows)


def aims(found: Found) -> str:
    """What `balanced` is meant to keep, and whether it does, in the model that loses most."""
    rows = []
    for name in BARS:
        own, floor = (found.all(name, method, "plan") for method in ("balanced", "bootstrap"))
        if not own or not floor:
            continue
        judged = verdict(own, floor, BARS[name])
        kind = "development" if name in DEVELOPED_ON else "evaluation"
        rows.append([f"{name} ({kind})", len(own), *judged])
    return table(
        [
            "set",
            "repetitions",
            "repetitions with a changed direction, % (none)",
            "outside, % (at most)",
            "changed significance, points above the bootstrap (at most)",
            "reached",
        ],
        rows,
    )


def verdict(own: Runs, floor: Runs, outside: float) -> list[str]:
    """Cells: repetitions of `balanced` in which a coefficient changed direction, with the limit that none seen leaves;
    the worst model's coefficients outside and above the bootstrap; and whether intervals are within the aims.

    Equal repetitions have no interval: if none had a change, up to `none_seen` of all may have one, in one coefficient.
    """
    models = range(len(own[0]))
    changed = [any(shares is not None and shares[1] > 0 for shares in run) for run in own]
    limit = none_seen(len(own))
    out = [metric_of(own, [model], 2) for model in models]
    above = [metric_of(own, [model], 0) - metric_of(floor, [model], 0) for model in models]
    uppers = [
        (each.mean + each.half, bar)
        for group, bar in ((out, outside), (above, ABOVE_BOOTSTRAP))
        for each in group
    ]
    lowers = [
        (each.mean - each.half, bar)
        for group, bar in ((out, outside), (above, ABOVE_BOOTSTRAP))
        for each in group
    ]
    if any(changed) or any(low > bar for low, bar in lowers):
        reached = "no"
    elif limit <= MOST_FLIPS and all(high <= bar for high, bar in uppers):
        reached = "yes"
    else:
        reached = "not established"
    flips = f"{100 * float(np.mean(changed)):.1f}" if any(changed) else f"0.0 (up to {100 * limit:.1f})"
    worst, most = (max(each, key=lambda one: one.mean + one.half) for each in (out, above))
    return [
        flips,
        f"{worst.shown()} ({100 * outside:.0f})",
        f"{most.shown(sign='+')} ({100 * ABOVE_BOOTSTRAP:.0f})",
        reached,
    ]


def none_seen(repetitions: int) -> float:
    """The largest share of repetitions that could have what none of so many had (95 %, one-sided)."""
    return float(1 - 0.05 ** (1 / repetitions))


def not_given(found: Found) -> str:
    """Outcomes that a method was not given: means over the sets."""
    rows = []
    for method in ("balanced", "balanced, logistic not given", *LEADING[1:5], *LEADING[7:]):
        plans = [found.all(name, method, "plan") for name in found.sets]
        unseen = [found.all(name, method, "unseen") for name in found.sets]
        cells = []
        for runs, models in (
            (plans, [2]),
            (unseen, [0, 1]),
            ([each for each in unseen if len(each[0]) > 2], [2]),
        ):
            metrics = [
                Estimate.over([metric_of(each, models, key) for each in runs]) for key in range(len(KEYS))
            ]
            cells.append(" / ".join(each.shown() for each in metrics))
        rows.append([method, *cells])
    head = ["method", "logistic, the plan's cut", "logistic, other cuts", "linear, a covariate as outcome"]
    return table(head, rows)


def models_table(found: Found) -> str:
    rows = []
    for name in found.sets:
        for method in METHODS:
            runs, moved = found.all(name, method, "plan"), found.all(name, method, "moved")
            squares = found.all(name, method, "squares")[:2]
            unseen = found.all(name, method, "unseen")
            rows.append(
                [
                    name,
                    method,
                    len(runs),
                    *(percents(runs, [model]) for model in range(len(KINDS))),
                    percents(found.all(name, method, "alone")),
                    *(percents(unseen, [model]) if model < len(unseen[0]) else "–" for model in range(3)),
                    Estimate.of(found.all(name, method, "seconds")).shown(2, 1.0),
                    Estimate.of(moved).shown(0, 1.0),
                    " → ".join(f"{value:.0f}" for value in squares) or "–",
                ]
            )
    used = [*KINDS, "one covariate at a time", "lower quartile", "upper quartile", "covariate as outcome"]
    used += ["CPU seconds", "rows moved", "within-group squares"]
    return table(["set", "method", "repetitions", *used], rows)


def linkage_table(found: Found) -> str:
    rows = []
    for name in found.sets:
        for method in METHODS:
            at = {
                what: found.attack(name, method, what)
                for what in ("time", "own group", "chance", "closest", "equal", "original", "original equal")
            }
            rest = [found.attack(name, method, what) for what in ("levels", "numbers", "class")]
            rows.append(
                [
                    name,
                    method,
                    found.membership(name, method).shown(3, 1.0),
                    at["time"].shown(),
                    at["own group"].shown(),
                    at["chance"].shown(2),
                    f"{at['closest'].shown(2, 1.0)} ({at['equal'].shown()})",
                    f"{at['original'].shown(2, 1.0)} ({at['original equal'].shown()})",
                    rest[0].shown(2, 1.0),
                    rest[1].shown(1, 1.0),
                    rest[2].shown(0, 1.0),
                ]
            )
    head = ["set", "method", "membership", "times found, %", "own-group linkage, %", "chance, %"]
    head += [
        "closest record, median (equal, %)",
        "original to original",
        "Π of levels",
        "Π of numbers, in bins",
        "discernibility of a row",
    ]
    return table(head, rows)


def weights_table(found: Found) -> str:
    """Weight 0.5 beside one that a pilot chooses, with the same seeds."""
    rows = []
    for key, tried in found.kept.items():
        kind, name, method = (*key.split("/"), "", "")[:3]
        if kind == "pilot":
            chosen = [each["weight"] for each in tried]
            counted = ", ".join(f"{weight} ({chosen.count(weight)})" for weight in sorted(set(chosen)))
            usual = found.all(name, method, "plan")[: len(tried)]
            for shown, runs in (("0.5", usual), (counted, [each["plan"] for each in tried])):
                rows.append([name, method, shown, *(percents(runs, [model]) for model in range(len(KINDS)))])
    return table(["set", "algorithm", "weight (chosen how often)", *KINDS], rows)


def draws_table(found: Found) -> str:
    """Other seeds of the made-up registries: a registry's figure is the mean over its repetitions."""
    rows = []
    for site in dict.fromkeys(key.split("/")[1] for key in found.kept if key.startswith("draws/")):
        seeds = [value for key, value in found.kept.items() if key.startswith(f"draws/{site}/")]
        for method in seeds[0]:
            runs = [seed[method] for seed in seeds]
            rows.append([site, method, *(percents(runs, [model]) for model in range(len(KINDS)))])
    return table(["registry", "method", *KINDS], rows)


def pictures(found: Found) -> str:
    """Figs. 1–4 of the paper; Figs. 5–8 are drawn by `benchmarks/condensation.py`."""
    titles = {
        "significance": "Fig. 1: coefficients that changed significance",
        "direction": "Fig. 2: significant coefficients that changed direction",
        "outside": "Fig. 3: coefficients outside the original 95 % interval",
    }
    parts = []
    for number, (key, title) in enumerate(titles.items()):
        rows = []
        for name in found.sets:
            for method in DRAWN:
                for model, kind in enumerate(KINDS):
                    at = found.metric(name, method, KEYS.index(key), [model])
                    row = {"set": name, "method": method, "model": kind}
                    rows += [] if np.isnan(at.mean) else [{**row, "value": at.mean, "half": at.half}]
        parts.append(f"**{title}**\n\n{bars(f'fig{number + 1}', rows, title)}")
    title = "Fig. 4: average conditional entropy of a column, bits (numbers: in bins)"
    rows = []
    for name in found.sets:
        for method in DRAWN:
            at = found.attack(name, method, "entropy")
            row = {"set": name, "method": method}
            rows += [] if np.isnan(at.mean) else [{**row, "value": at.mean, "half": at.half}]
    parts.append(f"**{title}**\n\n{bars('fig4', rows, 'bits', percent=False)}")
    return "\n\n".join(parts)


def sets_table(found: Found) -> str:
    head = ["set", "rows × columns", f"coefficients ({' / '.join(KINDS)})", "Cox model", "known columns"]
    rows = [[*found.kept[f"about/{name}"], found.repetitions(name)] for name in found.sets]
    return table([*head, "outcomes not given", "repetitions"], rows)


def page_of(found: Found, command: str) -> str:
    taken = found.kept["taken"]
    seeds = [
        f"{name} {found.repetitions(name)} ({found.repetitions(name, 'balanced')})" for name in found.sets
    ]
    risks = [
        len(found.all(name, "bootstrap", what)) for name in found.sets for what in ("attacked", "membership")
    ]
    head = HEAD.format(
        k=K,
        sets=len(found.sets),
        glance=glance(found),
        machine=taken[0],
        commit=taken[1],
        command=command,
        seeds=", ".join(seeds),
        risks=" to ".join(map(str, sorted({min(risks), max(risks)}))),
    )
    body = BODY.format(
        k=K,
        rivals=rivals(found),
        aims=aims(found),
        not_given=not_given(found),
        pictures=pictures(found),
        sets=sets_table(found),
        models=models_table(found),
        linkage=linkage_table(found),
        weights=weights_table(found),
    )
    registries = {key.rpartition("/")[2] for key in found.kept if key.startswith("draws/")}
    if registries:
        body += DRAWS.format(registries=f"{len(registries)} other seeds", draws=draws_table(found))
    return f"{head.strip()}\n\n{READING.strip()}\n\n{body.strip()}\n"


def write_page(kept: dict[str, Any], command: str) -> None:
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    save(PAGE, ended(page_of(Found(kept), command), "condensation"))
