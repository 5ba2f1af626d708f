"""PheWAS of a plan: the associations of the original that a release still shows, and how far their intervals overlap.

An association is a phecode whose logistic coefficient has p below 0.05 over the number of phecodes tested (Bonferroni).
The floor is the same of bootstrap resamples of the patients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from leeward.advise.plan import Phewas
from leeward.advise.utility.models import overlaps
from leeward.advise.utility.verdicts import Kept, judge
from leeward.analysis.phewas import associations
from leeward.analysis.phewas.phenotypes import phecodes_of_tree, phenotypes_of
from leeward.analysis.regression import Z
from leeward.errors import BadInput
from leeward.vocabulary.hierarchy import Hierarchy

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.release import Release
    from leeward.vocabulary.phecode import PhecodeMap

ROUNDS = 5
SEED = 20261122
ALPHA = 0.05
FIGURE = "share of the original's associations that are still significant"


@dataclass(frozen=True)
class Scanned:
    """The scan of the original. floor : the share of its associations that a resample shows."""

    line: Phewas
    mapping: PhecodeMap
    original: pl.DataFrame
    floor: float | None


def scan_original(line: Phewas, cohort: Cohort) -> Scanned:
    """Test every phecode against the exposure in the source and its resamples. BadInput without the column or a map."""
    mapping = associations.mapping_of(line.map)
    mentions, people = _of_cohort(cohort, [line.exposure, *line.covariates])
    original = _scan(line, mapping, mentions, people)
    random = np.random.Generator(np.random.Philox(SEED))
    shares = []
    before = hits(original)
    for _ in range(ROUNDS if before else 0):
        drawn = random.integers(0, people.height, people.height)
        again = pl.DataFrame({"person": drawn, "place": np.arange(people.height)})
        resampled = mentions.join(again, on="person", how="inner").drop("person").rename({"place": "person"})
        found = hits(_scan(line, mapping, resampled.select("person", "visit", "code"), people[drawn]))
        shares.append(len(before & found) / len(before))
    return Scanned(line, mapping, original, float(np.mean(shares)) if shares else None)


def compare(scanned: Scanned, release: Release) -> Kept:
    line = scanned.line
    found = _of_release(release, [line.exposure, *line.covariates])
    if isinstance(found, str):
        return judge(line, FIGURE, None, scanned.floor, reason=found)
    before = hits(scanned.original)
    if not before:
        return judge(line, FIGURE, None, None, reason="the original has no association to keep")
    told = None
    if release.method == "trajectories":
        tree = Hierarchy.from_csv(release.path("code_hierarchy.csv"))
        told = phecodes_of_tree(tree, scanned.mapping, tuple(scanned.mapping.codes))
    after = _scan(line, scanned.mapping, *found, told)
    now = hits(after)
    detail = {"associations": len(before), "kept": len(before & now), "new": len(now - before),
              "mean_overlap_of_intervals": _overlap(scanned.original, after, before)}  # fmt: skip
    return judge(line, FIGURE, len(before & now) / len(before), scanned.floor, detail=detail)


def hits(scan: pl.DataFrame) -> set[str]:
    """The phecodes with p below 0.05 over the number tested."""
    tested = scan.filter(pl.col("p").is_not_null())
    return set(tested.filter(pl.col("p") < ALPHA / max(1, tested.height))["phecode"])


def _overlap(before: pl.DataFrame, after: pl.DataFrame, phecodes: set[str]) -> float:
    both = before.filter(pl.col("phecode").is_in(sorted(phecodes))).join(
        after, on="phecode", how="left", suffix="_after"
    )
    ends = both.select(
        (pl.col(f"beta{side}") + sign * Z * pl.col(f"error{side}"))
        .cast(pl.Float64)
        .fill_null(np.nan)
        .alias(f"{sign}{side}")
        for side in ("", "_after")
        for sign in (-1, 1)
    )
    low, high, other_low, other_high = (each.to_numpy() for each in ends)
    return float(np.mean(np.nan_to_num(overlaps(low, high, other_low, other_high), nan=0.0)))


def _scan(
    line: Phewas,
    mapping: PhecodeMap,
    mentions: pl.DataFrame,
    people: pl.DataFrame,
    told: Mapping[str, frozenset[str]] | None = None,
) -> pl.DataFrame:
    phenotypes = phenotypes_of(mentions, people.height, mapping, tuple(mapping.codes), told=told)
    return associations.scan(
        phenotypes, people, [line.exposure], list(line.covariates), min_cases=line.min_cases
    )


def _of_cohort(cohort: Cohort, names: list[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`person`, `visit`, `code` of the events, and the columns of the patients in the order of their numbers."""
    events = cohort.require_events()
    if cohort.patients is None or any(name not in cohort.patients.columns for name in names):
        raise BadInput(
            f"{cohort.name} has no patients' columns {', '.join(names)}; name them in `source.columns.patients`."
        )
    order = events.select("patient").unique().sort("patient").with_row_index("person")
    mentions = events.join(order, on="patient").select(
        pl.col("person").cast(pl.Int64), pl.lit(0, pl.Int64).alias("visit"), "code"
    )
    people = order.join(
        cohort.patients.select("patient", *names), on="patient", how="left", maintain_order="left"
    )
    return mentions, people.select(names)


def _of_release(release: Release, names: list[str]) -> tuple[pl.DataFrame, pl.DataFrame] | str:
    """The same of a release; a text says why it cannot be had."""
    data = release.share / "data"
    if not (data / "records.parquet").is_file():
        return "the release has no records that an exposure could travel with"
    records = release.table("records.parquet").collect().sort("record")
    if any(name not in records.columns for name in names):
        return f"the release does not carry {', '.join(names)}"
    held = next((name for name in ("visits", "trajectories") if (data / f"{name}.parquet").is_file()), None)
    rows = records if held is None else release.table(f"{held}.parquet").collect()
    column = "code" if held == "trajectories" else "codes"
    if column not in rows.columns:
        return "the release has no codes"
    mentions = rows.select(person="record", visit=pl.lit(0, pl.Int64), code=column)
    if column == "codes":
        mentions = mentions.explode("code", empty_as_null=True).drop_nulls()
    return mentions.with_columns(pl.col("code").cast(pl.String)), records.select(names)
