"""Synthetic cancer registry with the nine variables of Gal et al. 2014: colon (9,552 cases) or lung (17,421).

Frequencies are like those of a registry in Kentucky around 2004–2009; survival is Weibull with proportional hazards
(`EFFECTS`, log hazard ratios), censored at the end of follow-up. `VitalStat` is 0 for deceased, as in the paper. All
figures are ours; the paper prints none. Up to four more numeric columns make tables of 13 variables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leeward.arrays import Int64s
from leeward.errors import BadInput
from leeward.randomness import Randomness
from leeward.synthetic.codes import check_target, write_table
from leeward.texts import list_words

SITES = {"colon": 9_552, "lung": 17_421}
"""Site of the tumour and the number of cases in the paper."""

BLOCK = 500_000
MOST_VARIABLES = 13
VARIABLES = list_words(
    "VitalStat SurvInterval DiagAge Gender Race Stage Appalachia TobaccoUse PrimaryPayor "
    "TumorSize NodesPositive Comorbidity Grade"
)
STAGES = ("distant", "local", "regional", "unknown")
PAYORS = ("federal program", "private insurance", "uninsured")
RACES = ("black", "other", "white")

SHARES: dict[str, dict[str, Any]] = {
    "lung": {
        "age": (67.0, 11.0),
        "male": 0.56,
        "race": (0.06, 0.02, 0.92),
        "stage": (0.46, 0.2, 0.26, 0.08),
        "tobacco": 0.87,
        "median": 13.0,
        "shape": 0.85,
    },
    "colon": {
        "age": (69.0, 13.0),
        "male": 0.5,
        "race": (0.07, 0.02, 0.91),
        "stage": (0.19, 0.38, 0.36, 0.07),
        "tobacco": 0.48,
        "median": 70.0,
        "shape": 0.8,
    },
}
EFFECTS: dict[str, dict[str, Any]] = {
    "lung": {
        "age": 0.018,
        "male": 0.15,
        "race": (0.04, -0.15, 0.0),
        "stage": (1.35, 0.0, 0.65, 0.8),
        "appalachia": 0.08,
        "tobacco": 0.14,
        "payor": (0.12, 0.0, 0.25),
    },
    "colon": {
        "age": 0.035,
        "male": 0.1,
        "race": (0.16, -0.1, 0.0),
        "stage": (2.1, 0.0, 0.6, 0.9),
        "appalachia": 0.1,
        "tobacco": 0.16,
        "payor": (0.2, 0.0, 0.3),
    },
}
"""Log hazard ratios by site: age by year; levels in the order of `RACES`, `STAGES`, `PAYORS`."""


def write_registry(
    path: str | Path,
    patients: int | None = None,
    site: str = "lung",
    variables: int = 9,
    seed: int | None = None,
) -> int:
    """Write a registry table to a `.parquet`, `.csv` or `.csv.gz` file and return the number of rows.

    The same seed gives the same rows, whatever the file's kind. Raises BadInput for an unknown site, more than 13 or
    fewer than two variables, or another ending.
    """
    target = Path(path)
    check_target(target)
    count = SITES[site] if patients is None and site in SITES else patients or 0
    table = registry(count, site, variables, seed)
    write_table(table, target)
    return table.height


def registry(patients: int, site: str = "lung", variables: int = 9, seed: int | None = None) -> pl.DataFrame:
    """A registry table in memory; see `write_registry`."""
    return pl.concat(list(registry_blocks(patients, site, variables, seed)), rechunk=True)


def registry_blocks(patients: int, site: str, variables: int, seed: int | None) -> list[pl.DataFrame]:
    """Draw the rows in blocks, each from its own random stream."""
    if site not in SITES:
        raise BadInput(f"`site` must be one of {', '.join(SITES)}; got {site}.")
    if not 2 <= variables <= MOST_VARIABLES:
        raise BadInput(f"`variables` must be between 2 and {MOST_VARIABLES}; got {variables}.")
    if patients < 1:
        raise BadInput(f"`patients` must be at least 1; got {patients}.")
    randomness = Randomness.of(seed)
    starts = range(0, patients, BLOCK)
    return [
        _block(min(BLOCK, patients - start), site, randomness.stream("registry", site, start)).select(
            VARIABLES[:variables]
        )
        for start in starts
    ]


def _block(n: int, site: str, random: np.random.Generator) -> pl.DataFrame:
    shares, effects = SHARES[site], EFFECTS[site]
    age = np.clip(np.round(random.normal(shares["age"][0], shares["age"][1], n)), 20, 99)
    male = random.random(n) < shares["male"]
    race = _levels(random, n, shares["race"])
    appalachia = random.random(n) < np.where(race == 2, 0.31, 0.06)
    tobacco = random.random(n) < np.clip(shares["tobacco"] + 0.05 * male - 0.002 * (age - 67), 0.02, 0.98)
    # Medicare from 65 on; below, private insurance for most, and fewer of them in Appalachia.
    below = np.where(appalachia, 0.55, 0.68)
    draw = random.random(n)
    payor = np.where(
        age >= 65,
        np.where(draw < 0.86, 0, np.where(draw < 0.985, 1, 2)),
        np.where(draw < below, 1, np.where(draw < 0.92, 0, 2)),
    )
    stage = _levels(random, n, shares["stage"])
    # Later stage without insurance.
    worse = (payor == 2) & (random.random(n) < 0.2)
    stage = np.where(worse, 0, stage)
    risk = (
        effects["age"] * (age - shares["age"][0])
        + effects["male"] * male
        + np.array(effects["race"])[race]
        + np.array(effects["stage"])[stage]
        + effects["appalachia"] * appalachia
        + effects["tobacco"] * tobacco
        + np.array(effects["payor"])[payor]
    )
    shape = shares["shape"]
    typical = float(np.dot(effects["stage"], shares["stage"]))
    scale = shares["median"] / np.log(2) ** (1 / shape)
    life = scale * (-np.log(random.random(n)) / np.exp(risk - typical)) ** (1 / shape)
    # Diagnosed evenly over 72 months, followed for 12 months after the last.
    followed = 12 + 72 * random.random(n)
    deceased = life <= followed
    months = np.floor(np.minimum(life, followed)).astype(np.int64)
    size = np.round(np.exp(random.normal(3.3, 0.55, n) + 0.15 * (stage == 0)), 1)
    nodes = random.poisson(np.array([3.5, 0.1, 2.0, 0.8])[stage])
    illnesses = random.poisson(0.5 + 0.015 * np.maximum(age - 40, 0))
    grade = 1 + (random.random((3, n)) < np.array([0.85, 0.6, 0.12])[:, None]).sum(axis=0)
    return pl.DataFrame(
        {
            "VitalStat": np.where(deceased, 0, 1).astype(np.int64),
            "SurvInterval": months,
            "DiagAge": age.astype(np.int64),
            "Gender": _texts(male.astype(np.int64), ("female", "male")),
            "Race": _texts(race, RACES),
            "Stage": _texts(stage, STAGES),
            "Appalachia": _texts(appalachia.astype(np.int64), ("no", "yes")),
            "TobaccoUse": _texts(tobacco.astype(np.int64), ("no", "yes")),
            "PrimaryPayor": _texts(payor, PAYORS),
            "TumorSize": size,
            "NodesPositive": nodes,
            "Comorbidity": illnesses,
            "Grade": grade,
        }
    )


def _levels(random: np.random.Generator, n: int, shares: tuple[float, ...]) -> Int64s:
    return np.minimum(np.searchsorted(np.cumsum(shares), random.random(n)), len(shares) - 1)


def _texts(numbers: Int64s, levels: tuple[str, ...]) -> pl.Series:
    return pl.Series(list(levels)).gather(pl.Series(numbers.astype(np.uint32)))
