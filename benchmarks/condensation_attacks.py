"""The exact-time attack on condensed public registries, and what condensing costs their Cox models.

    python benchmarks/condensation_attacks.py --data DIR [--k 2,3,5,10,50] [--sets gbsg,pbc] [--seeds 3]
        [--algorithm balanced] [--relations] [--planted] [--inside]

The attacker (tests/attacks/condensation.py) knows everything but the times: share of right exact times by the nearest
row / by one-to-one matching, beside 1/k. Then the Cox coefficients outside the original's 95 % interval and with
changed significance, and the rows that break a relation which the source has. `--relations` gives the confirmed
relations of `RELATIONS` to the method. `--planted` adds columns to rotterdam that are tied to others by construction.
`--inside` tries an attacker who can tell which rows are of a patient's group, and nothing else.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from tests.attacks.condensation import exact_time, inside_own_group

from common import commit, machine, table
from leeward.analysis.plan import design_of, models_of
from leeward.analysis.regression import fit
from leeward.cohort.readers import read
from leeward.errors import LeewardError
from leeward.methods.condensation import Condensation
from leeward.methods.condensation.measures.models import compare
from leeward.randomness import Randomness
from registries import FURTHER_OUTCOMES, NAMES, Registry, load

BROKEN = {
    "rotterdam": ((pl.col("meno") == 0) & (pl.col("age") > 62))
    | ((pl.col("meno") == 1) & (pl.col("age") < 38)),
    "support2": pl.col("surv6m") > pl.col("surv2m"),
    "colon": pl.col("node4") != (pl.col("nodes") > 4).cast(pl.Int64),
}
"""Rows that cannot be, by registry (colon: but for the source's own exceptions; times, whose order is not kept,
apart)."""
RELATIONS: dict[str, list[str]] = {
    "gbsg": ["meno = 1 => age >= 40", "meno = 0 => age <= 60"],
    "rotterdam": ["meno = 1 => age >= 38", "meno = 0 => age <= 62"],
    "support2": ["surv6m <= surv2m", "dzgroup -> dzclass"],
}
PLANTED = {
    "same": (pl.col("age"), "same = age", pl.col("same") != pl.col("age")),
    "relabelled": (
        pl.col("size").cast(pl.String).str.replace_many({"<=20": "small", "20-50": "middle", ">50": "large"}),
        "size -> relabelled",
        pl.col("relabelled")
        != pl.col("size")
        .cast(pl.String)
        .str.replace_many({"<=20": "small", "20-50": "middle", ">50": "large"}),
    ),
    "total": (pl.col("er") + pl.col("pgr"), "er <= total", pl.col("er") > pl.col("total")),
    "some": (
        pl.col("nodes").clip(upper_bound=3),
        "some = 0 <=> nodes = 0",
        (pl.col("some") == 0) != (pl.col("nodes") == 0),
    ),
}
"""Columns that are planted into rotterdam: what each is, the relation that is confirmed, and what breaks it."""
FURTHER_TIMES = {"rotterdam": ["rtime"], "mgus2": ["ptime"], "support2": ["slos"]}
"""Columns that equal the time in many rows, so that they are outcome times too."""


def condensed(
    registry: Registry, k: int, seed: int, given: argparse.Namespace
) -> tuple[pl.DataFrame, pl.DataFrame, tuple[np.ndarray, np.ndarray]]:
    """The released table, the source's rows that were not withheld, and the groups of both."""
    stated = [*RELATIONS.get(registry.name, ()), *(each[1] for each in PLANTED.values() if given.planted)]
    more = {"relations": ("none", *(stated if given.relations else ()))}
    method = Condensation(
        k=k,
        algorithm=given.algorithm,
        strata=(registry.event,),
        time=(registry.time, *FURTHER_TIMES.get(registry.name, ())),
        rare="keep",
        **more,
    )
    made = method.protect(read(registry.frame, format="table"), randomness=Randomness.of(seed))
    frame = pl.from_arrow(next(iter(made.tables[0].batches())))
    assert isinstance(frame, pl.DataFrame)
    rows, own = (
        pl.DataFrame(pl.from_arrow(list(each.batches()))).sort(name)
        for name, file in (("record", "released_rows.parquet"), ("row", "source_rows.parquet"))
        for each in made.custody_tables
        if each.path == file
    )
    kept = registry.frame[(own["row"] - 1).to_list()]
    return frame, kept, (rows["group"].to_numpy(), own["group"].to_numpy())


def inside(registry: Registry, k: int, given: argparse.Namespace) -> list[str]:
    """An attacker who can tell which rows are of a patient's group."""
    times = (registry.time, *FURTHER_TIMES.get(registry.name, ()))
    seen = [name for name in registry.frame.columns if name not in (*times, registry.event)]
    found = []
    for seed in range(given.seeds):
        frame, kept, groups = condensed(registry, k, seed, given)
        found.append(inside_own_group(frame, kept, registry.time, seen, groups))
    error = float(np.sqrt((1 - 1 / k) / k / registry.frame.height / given.seeds))
    shares = [100 * np.mean(each) for each in ([f.nearest for f in found], [f.matching for f in found])]
    chance = 100 * np.mean([f.chance for f in found])
    return [
        registry.name,
        str(k),
        f"{100 / k:.1f} ± {100 * error:.1f}",
        f"{chance:.1f}",
        *(f"{s:.1f}" for s in shares),
    ]


def released(registry: Registry, k: int, seed: int, given: argparse.Namespace) -> tuple[pl.DataFrame, float]:
    """The released table, and how often a random row of a patient's own group has the patient's time."""
    frame, kept, (_, own) = condensed(registry, k, seed, given)
    rows = pl.DataFrame({"group": own, "time": kept[registry.time]})
    same = rows.select(pl.len().over("group", "time") / pl.len().over("group"))
    return frame, float(same.to_series().mean())  # type: ignore[arg-type]  # a number


def measured(registry: Registry, k: int, given: argparse.Namespace) -> list[str]:
    columns = read(registry.frame, format="table").table().columns
    (model,) = models_of(registry.plan((*FURTHER_OUTCOMES, *PLANTED)))
    before = fit("cox", design_of(model, registry.frame, columns))
    near, linked, compared, broken, tied = [], [], [], [], []
    chance = 0.0
    for seed in range(given.seeds):
        frame, in_group = released(registry, k, seed, given)
        tied.append(in_group)
        found = exact_time(
            frame,
            registry.frame,
            [registry.time, *FURTHER_TIMES.get(registry.name, ())],
            [registry.event],
            not given.no_matching,
        )
        near.append(found.nearest)
        linked.append(found.matching)
        chance = found.chance
        compared.append(compare(before, fit("cox", design_of(model, frame, columns))))
        impossible = [BROKEN[registry.name]] if registry.name in BROKEN else []
        impossible += [each[2] for each in PLANTED.values()] if given.planted else []
        if impossible:
            broken.append(frame.select(pl.any_horizontal(impossible).mean()).item())
    rows = registry.frame.height
    error = float(np.sqrt((1 - 1 / k) / k / rows))
    highest = max(np.mean(near), np.mean(linked) if None not in linked else 0.0)
    kept = [each for each in compared if each is not None]
    return [
        registry.name,
        str(k),
        f"{100 / k:.1f} ± {100 * error:.1f}",
        f"{100 * np.mean(near):.1f}",
        "–" if None in linked else f"{100 * np.mean(linked):.1f}",
        f"{100 * chance:.1f}",
        f"{100 * np.mean(tied):.1f}",
        "ABOVE" if highest > max(1 / k, float(np.mean(tied))) + 2 * error else "–",
        " / ".join(
            f"{100 * np.mean(each):.1f}"
            for each in ([e["outside"] for e in kept], [e["significance"] for e in kept])
        ),
        f"{100 * np.mean(broken):.1f}" if broken else "–",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--k", default="2,3,5,10,50")
    parser.add_argument("--sets", default=",".join(NAMES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--algorithm", default="balanced")
    parser.add_argument("--relations", action="store_true")
    parser.add_argument("--no-matching", action="store_true")
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--inside", action="store_true")
    given = parser.parse_args()
    rows = []
    for name in given.sets.split(","):
        registry = load(given.data, name)
        if given.planted:
            columns = {name: each[0] for name, each in PLANTED.items()}
            registry = replace(registry, frame=registry.frame.with_columns(**columns))
        for k in map(int, given.k.split(",")):
            try:
                rows.append((inside if given.inside else measured)(registry, k, given))
            except LeewardError as error:
                rows.append([name, str(k), f"{100 / k:.1f}", f"refused: {str(error)[:60]}", *["–"] * 6])
            print(*rows[-1], sep=" | ", flush=True)
    print(f"\n{machine()}; commit {commit()}; {given.algorithm}, {given.seeds} seeds\n")
    if given.inside:
        print(
            table(
                [
                    "registry",
                    "k",
                    "1/k ± se, %",
                    "chance in the own group, %",
                    "nearest row, %",
                    "matching, %",
                ],
                rows,
            )
        )
        return
    heads = ["registry", "k", "1/k ± se, %", "nearest row, %", "matching, %", "chance, %"]
    heads += ["chance in the own group, %", "above?"]
    print(table([*heads, "Cox: outside / changed significance, %", "rows broken, %"], rows))


if __name__ == "__main__":
    main()
