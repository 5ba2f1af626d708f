"""Repeated codes by renaming: the second mention of 250.01 becomes the code `250.01#2` (paper, Section 7)."""

from __future__ import annotations

import numpy as np
import polars as pl

from leeward.arrays import distinct_of
from leeward.cohort.lenses.code_sets import CodeSets, code_sets_of

MARK = "#"


def rename_repeats(events: pl.DataFrame) -> CodeSets:
    """Code sets in which every mention of a code in a patient is an instance of its own.

    Without a `visit` column each row is a mention; with one, each (visit, code) counts once.
    """
    keys = ["patient", "visit", "code"] if "visit" in events.columns else None
    mentions = events.unique(keys) if keys else events
    counts = mentions.group_by("patient", "code").len("mentions")
    instances = counts.with_columns(pl.int_ranges(1, pl.col("mentions") + 1).alias("instance")).explode(
        "instance", empty_as_null=False
    )
    named = instances.select(
        "patient",
        pl.format("{}" + MARK + "{}", pl.col("code").cast(pl.String), pl.col("instance")).alias("code"),
    )
    domain = named["code"].unique().sort()
    return code_sets_of(named.with_columns(pl.col("code").cast(pl.Enum(domain))))


def base_codes(sets: CodeSets) -> CodeSets:
    """The same records over the codes before renaming (to apply a policy or a list of sensitive codes)."""
    base = [code.rsplit(MARK, 1)[0] for code in sets.codes]
    domain = sorted(set(base))
    number = {code: i for i, code in enumerate(domain)}
    values = np.array([number[code] for code in base], np.int32)[sets.values]
    records = np.repeat(np.arange(len(sets), dtype=np.int64), np.diff(sets.offsets))
    keys = distinct_of(records * len(domain) + values)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(keys // len(domain), minlength=len(sets)))])
    return CodeSets(
        offsets.astype(np.int64), (keys % len(domain)).astype(np.int32), tuple(domain), sets.patients
    )
