"""The tables of the study of condensation, their plans, and who may know what of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from leeward.analysis.plan import Model, models_of
from leeward.cohort import Cohort
from leeward.cohort.readers import read
from leeward.synthetic.registry import SITES, registry

REGISTRY = ("DiagAge", "Gender", "Race", "Appalachia", "Stage", "TobaccoUse", "PrimaryPayor")
SUPPORT = ["age", "sex", "dzgroup", "num.co", "diabetes", "dementia", "scoma"]
SUPPORT += ["meanbp", "hrt", "resp", "temp", "crea", "sod"]
ROTTERDAM = ["age", "meno", "size", "grade", "nodes", "pgr", "er", "hormon", "chemo"]
TRIAL = ["rx", "sex", "age", "obstruct", "perfor", "adhere", "nodes", "differ", "extent", "surg"]

BARS = dict.fromkeys(("prostate", "rotterdam", "colon trial", "nafld1", "colon", "lung"), 0.01) | {
    "support2": 0.09
}
"""The sets, the quickest first; the share of coefficients outside the original interval that is aimed at, at most."""
DEVELOPED_ON = ("prostate", "rotterdam", "lung", "support2")


@dataclass(frozen=True)
class Set:
    """A table, its plan, and the quasi-identifiers other than the outcomes: what people outside may know."""

    cohort: Cohort
    plan: tuple[dict[str, Any], ...]
    known: tuple[str, ...] = ()

    @property
    def cox(self) -> Model:
        """The first model of the plan; its event and time are the outcomes."""
        return models_of(self.plan)[0]


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


def real(
    data: Path,
    file: str,
    plan: tuple[dict[str, Any], ...],
    known: Sequence[str],
    only: pl.Expr | None = None,
) -> Set:
    """A real registry: the columns of the plan, complete rows."""
    frame = read(data / "survival" / file, format="table").patients
    assert frame is not None
    if only is not None:
        frame = frame.filter(only)
    names = list(dict.fromkeys(name for model in models_of(plan) for name in model.columns()))
    return Set(read(frame.select(names).drop_nulls(), format="table"), plan, tuple(known))


def made_up(site: str, seed: int = 1) -> Set:
    plan = plan_of("SurvInterval", "VitalStat", 0, REGISTRY, ["DiagAge"])
    known = tuple(name for name in REGISTRY if name != "Stage")
    return Set(read(registry(SITES[site], site, 9, seed=seed), format="table"), plan, known)


def sets(data: Path) -> dict[str, Callable[[], Set]]:
    prostate, nafld = ["grade", "stage", "ageGroup"], ["age", "male", "weight", "height", "bmi"]
    death = pl.col("etype") == 2
    return {
        "prostate": lambda: real(
            data, "ProstateSurvival_df.csv", plan_of("survTime", "status", 1, prostate), prostate
        ),
        "rotterdam": lambda: real(
            data,
            "rotterdam.csv",
            plan_of("dtime", "death", 1, ROTTERDAM, ["age"]),
            ["age", "meno", "size", "hormon", "chemo"],
        ),
        "support2": lambda: real(
            data, "support2.csv.gz", plan_of("d.time", "death", 1, SUPPORT, ["age"]), SUPPORT[:6]
        ),
        "lung": lambda: made_up("lung"),
        "colon": lambda: made_up("colon"),
        "nafld1": lambda: real(data, "nafld1.csv", plan_of("futime", "status", 1, nafld, ["age"]), nafld),
        "colon trial": lambda: real(
            data,
            "colon.csv",
            plan_of("time", "status", 1, TRIAL, ["age"]),
            ["rx", "sex", "age", "obstruct", "perfor", "surg"],
            death,
        ),
    }
