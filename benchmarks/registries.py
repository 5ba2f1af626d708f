"""Public registries as tables ready to be condensed, with one Cox plan each (`DIR/survival/` of `--data DIR`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl


@dataclass(frozen=True)
class Registry:
    """Complete rows of a registry: `frame` holds `time`, `event` (whose `value` means the event) and covariates."""

    name: str
    frame: pl.DataFrame
    time: str
    event: str
    value: int

    @property
    def covariates(self) -> list[str]:
        return [name for name in self.frame.columns if name not in (self.time, self.event)]

    def plan(self, without: tuple[str, ...] = ()) -> tuple[dict[str, dict[str, object]], ...]:
        """One Cox model of the time on everything else (further times left out)."""
        left = [name for name in self.covariates if name not in without]
        outcome = {"time": self.time, "event": self.event, "event_value": self.value}
        return ({"cox": {**outcome, "covariates": left}},)


FURTHER_OUTCOMES = ("rtime", "recur", "ptime", "pstat", "slos", "hospdead", "chapter", "surv2m", "surv6m")
"""Columns that come after the patient's entry and are no covariates of a model of the time."""

DROPPED = {
    "gbsg": ["pid"],
    "rotterdam": ["pid"],
    "mgus2": ["id"],
    "nafld1": ["id", "case.id"],
    "colon": ["id", "study", "etype"],
    "pbc": ["id"],
    "flchain": [],
    "prostate": [],
    "cancer": ["inst"],
    "veteran": [],
}
OUTCOMES = {
    "gbsg": ("rfstime", "status", 1),
    "rotterdam": ("dtime", "death", 1),
    "mgus2": ("futime", "death", 1),
    "support2": ("d.time", "death", 1),
    "flchain": ("futime", "death", 1),
    "nafld1": ("futime", "status", 1),
    "prostate": ("survTime", "status", 1),
    "colon": ("time", "status", 1),
    "pbc": ("time", "status", 2),
    "cancer": ("time", "status", 2),
    "veteran": ("time", "status", 1),
}
SUPPORT = [
    "age",
    "sex",
    "dzgroup",
    "dzclass",
    "num.co",
    "diabetes",
    "dementia",
    "scoma",
    "meanbp",
    "hrt",
    "resp",
]
SUPPORT += ["temp", "crea", "sod", "surv2m", "surv6m", "slos", "hospdead", "d.time", "death"]
FILES = {"prostate": "ProstateSurvival_df.csv", "support2": "support2.csv.gz"}
NAMES = tuple(OUTCOMES)


def load(data: Path, name: str) -> Registry:
    """A registry by name; rows with a missing value are left out, but for flchain's cause of death (a level `none`)."""
    path = data / "survival" / FILES.get(name, f"{name}.csv")
    frame = pl.read_csv(path, null_values=["NA", ""], infer_schema_length=None)
    if name == "colon":  # two rows a patient: death alone
        frame = frame.filter(pl.col("etype") == 2)
    left_out = ["rownames", *DROPPED.get(name, [])]
    frame = frame.select(SUPPORT) if name == "support2" else frame.drop(left_out, strict=False)
    if name == "flchain":
        frame = frame.with_columns(pl.col("chapter").fill_null("none"))
    frame = frame.drop_nulls()
    if name == "pbc":  # transplants left out
        frame = frame.filter(pl.col("status") != 1)
    time, event, value = OUTCOMES[name]
    return Registry(name, frame, time, event, value)


def resample(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    """A bootstrap resample."""
    random = np.random.Generator(np.random.Philox(seed))
    return frame[random.integers(0, frame.height, frame.height)]
