"""The attacker of a condensed table: knows everything about a patient but the outcome times, and the algorithm.

    python tests/attacks/condensation.py share/ known.csv [further number known, …]

Reads `share/` and the background knowledge (`known`: the source's rows; the times are only used to count successes).
The attacker guesses that the time of the released row that is nearest in ranks, in the patient's stratum, is the
patient's; or matches all rows of a stratum one to one. Where several times are exact, another attacker knows all but
one of them, finds the rows that show a known one, and reads the other time there. A stated k allows one guess in k to
be right.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

MATCHED = 4_000
"""Rows of a stratum that are matched one to one, at most."""


@dataclass(frozen=True)
class Attack:
    """Shares of right guesses of the exact time among `asked` patients; None where too many rows to match."""

    asked: int
    nearest: float
    matching: float | None
    chance: float

    def exceeds(self, k: int) -> bool:
        """Whether either share is above 1/k by more than two standard errors of a share of 1/k."""
        bound = 1 / k + 2 * float(np.sqrt((1 - 1 / k) / k / max(1, self.asked)))
        return max(self.nearest, self.matching or 0.0) > max(bound, self.chance)


def ranked(frame: pl.DataFrame, levels: dict[str, list[str]]) -> np.ndarray:
    """Numbers as ranks in 0 … 1, levels as dummies: float[rows, columns]."""
    columns = []
    for name in frame.columns:
        if name in levels:
            texts = frame[name].cast(pl.String).to_numpy()
            columns += [(texts == level) * np.sqrt(0.5) for level in levels[name]]
        else:
            values = frame[name].cast(pl.Float64).fill_null(strategy="mean").rank("average").to_numpy()
            columns.append((values - 1) / max(1, frame.height - 1))
    return np.column_stack(columns).astype(float)


def guesses(released: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The nearest released row of each known row."""
    found = np.empty(len(known), np.int64)
    for start in range(0, len(known), 512):
        part = known[start : start + 512]
        gaps = ((part**2).sum(axis=1)[:, None] - 2 * part @ released.T) + (released**2).sum(axis=1)
        found[start : start + 512] = gaps.argmin(axis=1)
    return found


def matched(released: np.ndarray, known: np.ndarray) -> np.ndarray:
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    rows, columns = linear_sum_assignment(cdist(known, released, "sqeuclidean"))
    found = np.full(len(known), -1)
    found[rows] = columns
    return found


def exact_time(
    released: pl.DataFrame, known: pl.DataFrame, times: list[str], strata: list[str], match: bool = True
) -> Attack:
    """Attack the first of `times` with all columns but `times`."""
    seen = [name for name in known.columns if name not in times and name not in strata]
    texts = [name for name in seen if not known[name].dtype.is_numeric()]
    levels = {name: sorted(known[name].cast(pl.String).drop_nulls().unique().to_list()) for name in texts}
    asked, near, linked, chance = 0, 0.0, 0.0, 0.0
    matching = match
    keys = known.select(strata).unique(maintain_order=True).rows() if strata else [()]
    for key in keys:
        here = pl.all_horizontal([pl.lit(True), *(pl.col(n) == v for n, v in zip(strata, key, strict=True))])
        rows, made = known.filter(here), released.filter(here)
        if not made.height:
            continue
        own, theirs = (each[times[0]].to_numpy() for each in (rows, made))
        one, two = ranked(made.select(seen), levels), ranked(rows.select(seen), levels)
        near += float((theirs[guesses(one, two)] == own).sum())
        if rows.height > MATCHED:
            matching = False
        if matching:
            linked += float((theirs[matched(one, two)] == own).sum())
        values, counts = np.unique(theirs, return_counts=True)
        shares = dict(zip(values.tolist(), (counts / len(theirs)).tolist(), strict=True))
        chance += sum(shares.get(value, 0.0) for value in own.tolist())
        asked += rows.height
    return Attack(asked, near / asked, linked / asked if matching else None, chance / asked)


def inside_own_group(
    released: pl.DataFrame,
    known: pl.DataFrame,
    time: str,
    seen: list[str],
    groups: tuple[np.ndarray, np.ndarray],
) -> Attack:
    """Guess exact times where the attacker can tell which rows are of a patient's group: nearest row and one-to-one
    matching inside it, columns standardized by the group.

    `groups`: of every released row, and of every known one. Chance is that of a random row of the group.
    """
    texts = [name for name in seen if not known[name].dtype.is_numeric()]
    levels = {name: sorted(known[name].cast(pl.String).drop_nulls().unique().to_list()) for name in texts}
    columns = pl.concat(
        [released.select(seen), known.select(pl.col(n).cast(released[n].dtype) for n in seen)]
    )
    points = ranked(columns, levels)
    made, own = points[: released.height], points[released.height :]
    theirs, mine = released[time].to_numpy(), known[time].to_numpy()
    near = linked = chance = 0.0
    for group in np.unique(groups[1]):
        rows, people = (np.flatnonzero(each == group) for each in groups)
        spread = np.maximum(own[people].std(axis=0), 1e-9)
        one, two = ((each - each.mean(axis=0)) / spread for each in (made[rows], own[people]))
        near += float((theirs[rows][guesses(one, two)] == mine[people]).sum())
        linked += float((theirs[rows][matched(one, two)] == mine[people]).sum())
        chance += sum(float((theirs[rows] == value).mean()) for value in mine[people])
    asked = len(groups[1])
    return Attack(asked, near / asked, linked / asked, chance / asked)


def time_beside(
    released: pl.DataFrame,
    known: pl.DataFrame,
    told: str,
    asked: str,
    strata: list[str],
    further: tuple[str, ...] = (),
    possible: pl.Expr | None = None,
) -> Attack:
    """Read the time `asked` beside the time `told`, which the attacker knows.

    The attacker looks at the rows of the patient's stratum that show the time `told` (and are `possible`), and among
    them at those that are nearest in the `further` numbers known. Several rows count by their share. Patients whose
    two times are equal are left out: the one tells the other without any release. Patients without such a row are not
    asked.
    """
    patients = known.filter(pl.col(told) != pl.col(asked)).with_row_index("patient")
    rows = released if possible is None else released.filter(possible)
    seen = rows.select(*strata, told, *(pl.col(name).alias(f"made {name}") for name in (asked, *further)))
    beside = patients.join(seen, on=[*strata, told])
    gap = pl.sum_horizontal(pl.lit(0.0), *((pl.col(name) - pl.col(f"made {name}")).abs() for name in further))
    nearest = beside.with_columns(gap=gap).filter(pl.col("gap") == pl.col("gap").min().over("patient"))
    right = nearest.group_by("patient").agg((pl.col(asked) == pl.col(f"made {asked}")).mean().alias("right"))
    counts = rows.group_by(*strata, asked).len("same")
    counts = counts.with_columns(all=pl.col("same").sum().over(strata) if strata else pl.col("same").sum())
    chance = patients.join(counts, on=[*strata, asked], how="left")
    return Attack(
        right.height,
        float(right["right"].sum()) / max(1, right.height),
        None,
        float((chance["same"] / chance["all"]).fill_null(0.0).sum()) / max(1, patients.height),
    )


def roles(manifest: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Times and strata that the manifest names."""
    parameters = manifest["parameters"]
    models = [model for entry in parameters.get("plan", ()) for model in entry.values()]
    times = [*parameters.get("time", ()), *(model["time"] for model in models if model.get("time"))]
    strata = [*parameters.get("strata", ()), *(model["event"] for model in models if model.get("event"))]
    return list(dict.fromkeys(times)), list(dict.fromkeys(strata))


def attack(share: Path, known: pl.DataFrame) -> Attack:
    """The attack on a release."""
    manifest = json.loads((share / "release.json").read_text(encoding="utf-8"))
    times, strata = roles(manifest)
    released = pl.read_parquet(share / "data" / "table.parquet")
    return exact_time(released, known.select(released.columns), times, strata)


def attack_beside(share: Path, known: pl.DataFrame, further: tuple[str, ...] = ()) -> dict[str, Attack]:
    """The attack on each exact time of a release by who knows another one, as `known > asked`."""
    manifest = json.loads((share / "release.json").read_text(encoding="utf-8"))
    times, strata = roles(manifest)
    released = pl.read_parquet(share / "data" / "table.parquet")
    known = known.select(released.columns)
    return {
        f"{told} > {asked}": time_beside(released, known, told, asked, strata, further)
        for told, asked in permutations(times, 2)
    }


if __name__ == "__main__":
    patients = pl.read_csv(sys.argv[2], null_values=["NA", ""])
    sys.stdout.write(f"{attack(Path(sys.argv[1]), patients)}\n")
    for pair, found in attack_beside(Path(sys.argv[1]), patients, tuple(sys.argv[3:])).items():
        sys.stdout.write(f"{pair}: {found}\n")
