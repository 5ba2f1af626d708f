"""Two exact times of condensed public registries: what somebody who knows one of them reads of the other.

    python benchmarks/condensation_times.py --data DIR [--k 5,10,20] [--sets rotterdam,colon] [--seeds 8] [--relations]

The attacker (`time_beside` of tests/attacks/condensation.py) knows one exact time, perhaps the age or all columns but
the other time, and perhaps which time cannot come before the other. Shares of right times, the worse of the two ways,
on average over the seeds and in the worst seed, beside 1/k and beside a random row of the patient's own group, which is
right more often than 1/k where times tie. Then Cox models of both times: coefficients outside the
original's 95 % interval and with changed significance. `--relations` confirms that the one time bounds the other.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from tests.attacks.condensation import time_beside

from common import commit, machine, table
from leeward.analysis.plan import design_of, models_of
from leeward.analysis.regression import Fit, fit
from leeward.cohort.readers import read
from leeward.errors import GuaranteeUnreachable
from leeward.methods.condensation import Condensation
from leeward.methods.condensation.measures.models import compare
from leeward.randomness import Randomness
from registries import load


@dataclass(frozen=True)
class Pair:
    """A registry with two times: the second one never exceeds the first. An event for each."""

    frame: pl.DataFrame
    times: tuple[str, str]
    events: tuple[str, str]


def colon(data: Path) -> Pair:
    """Both rows of each patient of colon beside each other."""
    rows = pl.read_csv(data / "survival" / "colon.csv", null_values=["NA", ""]).drop("rownames", "study")
    deaths = rows.filter(pl.col("etype") == 2).drop("etype").rename({"time": "dtime", "status": "death"})
    relapses = rows.filter(pl.col("etype") == 1).select("id", rtime="time", recur="status")
    both = deaths.join(relapses, on="id").drop("id").drop_nulls()
    return Pair(both, ("dtime", "rtime"), ("death", "recur"))


PAIRS = {
    "rotterdam": lambda data: Pair(load(data, "rotterdam").frame, ("dtime", "rtime"), ("death", "recur")),
    "colon": colon,
    "mgus2": lambda data: Pair(load(data, "mgus2").frame, ("futime", "ptime"), ("death", "pstat")),
    "support2": lambda data: Pair(load(data, "support2").frame, ("d.time", "slos"), ("death", "hospdead")),
}
LATER = ("surv2m", "surv6m")
"""Columns of support2 that are no covariates."""


def released(pair: Pair, k: int, seed: int, related: bool) -> tuple[pl.DataFrame, float]:
    """The released table, and how often a random row of a patient's own group has the patient's time asked for."""
    more = {"relations": ("none", *((f"{pair.times[1]} <= {pair.times[0]}",) if related else ()))}
    method = Condensation(k=k, strata=pair.events, time=pair.times, **more)
    made = method.protect(read(pair.frame, format="table"), randomness=Randomness.of(seed))
    frame = pl.from_arrow(next(iter(made.tables[0].batches())))
    assert isinstance(frame, pl.DataFrame)
    (groups,) = [each for each in made.custody_tables if each.path == "source_rows.parquet"]
    rows = pl.from_arrow(next(iter(groups.batches())))
    assert isinstance(rows, pl.DataFrame)
    own = pair.frame[(rows["row"] - 1).to_list()].with_columns(rows["group"])
    asked = own.filter(pl.col(pair.times[0]) != pl.col(pair.times[1]))
    ties = [
        asked.join(own.group_by("group", time).len("same"), on=["group", time])
        .join(own.group_by("group").len("all"), on="group")
        .select((pl.col("same") / pl.col("all")).mean())
        .item()
        for time in pair.times
    ]
    return frame, max(ties)


def attacked(pair: Pair, frame: pl.DataFrame) -> list[float]:
    """Shares of right times: one time known; age too; all else too; and only where the order is possible."""
    numbers = [each for each in pair.frame.columns if each not in (*pair.times, *pair.events)]
    all_else = tuple(each for each in numbers if pair.frame[each].dtype.is_numeric())
    possible = pl.col(pair.times[1]) <= pl.col(pair.times[0])
    ways = [((), None), (("age",), None), (all_else, None), ((), possible)]
    return [
        max(
            time_beside(frame, pair.frame, told, asked, list(pair.events), further, where).nearest
            for told, asked in permutations(pair.times)
        )
        for further, where in ways
    ]


def models(pair: Pair, frame: pl.DataFrame) -> list[Fit]:
    """A Cox model of each time."""
    columns = read(pair.frame, format="table").table().columns
    covariates = [each for each in pair.frame.columns if each not in (*pair.times, *pair.events, *LATER)]
    found = []
    for time, event in zip(pair.times, pair.events, strict=True):
        outcome = {"time": time, "event": event, "event_value": 1, "covariates": covariates}
        (model,) = models_of(({"cox": outcome},))
        found.append(fit("cox", design_of(model, frame, columns)))
    return found


def measured(pair: Pair, k: int, given: argparse.Namespace) -> list[str]:
    before = models(pair, pair.frame)
    shares, compared, ties = [], [], []
    for seed in range(given.seeds):
        frame, tied = released(pair, k, seed, given.relations)
        ties.append(tied)
        shares.append(attacked(pair, frame))
        compared.append([compare(*each) for each in zip(before, models(pair, frame), strict=True)])
    attacks = [f"{100 * np.mean(each):.1f} ({100 * max(each):.1f})" for each in zip(*shares, strict=True)]
    costs = []
    for fits in zip(*compared, strict=True):
        kept = [each for each in fits if each is not None]
        costs.append(
            " / ".join(
                f"{100 * np.mean(each):.1f}"
                for each in ([e["outside"] for e in kept], [e["significance"] for e in kept])
            )
        )
    return [f"{100 / k:.1f}", f"{100 * np.mean(ties):.1f}", *attacks, *costs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--k", default="5,10,20")
    parser.add_argument("--sets", default=",".join(PAIRS))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--relations", action="store_true")
    given = parser.parse_args()
    rows = []
    for name in given.sets.split(","):
        pair = PAIRS[name](given.data)
        for k in map(int, given.k.split(",")):
            try:
                rows.append([name, str(k), *measured(pair, k, given)])
            except GuaranteeUnreachable as error:
                rows.append([name, str(k), f"refused: {str(error)[:60]}", *["–"] * 7])
            print(*rows[-1], sep=" | ", flush=True)
    print(f"\n{machine()}; commit {commit()}; {given.seeds} seeds\n")
    heads = [
        "registry",
        "k",
        "1/k, %",
        "chance in the own group, %",
        "one time known, %",
        "age too, %",
        "all else too, %",
        "where possible, %",
    ]
    print(table([*heads, "Cox, first time: outside / changed significance, %", "second time"], rows))


if __name__ == "__main__":
    main()
