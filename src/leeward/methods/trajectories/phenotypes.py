"""Phenotypes found on released trajectories (Tamersoy 2011, chapter VI; docs/methods/trajectories.md#measures)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.phewas.associations import mapping_of
from leeward.analysis.phewas.measure import Mentions
from leeward.analysis.phewas.phenotypes import phecodes_of_label, phecodes_of_tree
from leeward.arrays import Int64s
from leeward.vocabulary.age import AgeTree

SHOWN = 20
"""Phecodes that are listed, those of most patients."""


def phenotypes(
    mentions: Callable[[], Mentions],
    place: Int64s,
    times: AgeTree,
    *,
    map: Any = None,  # noqa: A002  # the option's name
    ignored: bool = False,
) -> dict[str, Any]:
    """Who has which phecode, and from which age on. `map`, `ignored`: as in `analysis.phewas.measure.phewas`.

    `cases`: pairs of patient and phecode in the original (`original`), told by the release too (`kept`), by it alone
    (`false`). `phecodes`: those with a case. `onset`: of cases kept, the years between the first age and the first that
    the release tells (its middle), and the share within 1 and 5. `most`: the same of the phecodes with most cases.
    """
    mapping, both = mapping_of(map, ignored=bool(ignored)), mentions()
    vocabularies, codes = tuple(mapping.codes), both.original["code"].unique().cast(pl.String).to_list()
    own = {code: phecodes_of_label(code, mapping, vocabularies) for code in codes}
    told = phecodes_of_tree(both.tree, mapping, vocabularies) if both.tree else {}
    middle = pl.col("age").cast(pl.String).replace_strict(_middles(times), return_dtype=pl.Float64)
    shown = both.released.with_columns(middle, person=pl.Series(place).gather(both.released["person"]))
    found = [_onsets(*each) for each in ((both.original, own, "before"), (shown, told, "after"))]
    cases = found[0].join(found[1], on=["person", "phecode"], how="full", coalesce=True)
    before, after = pl.col("before"), pl.col("after")
    years = (after - before).abs() / times.a_year
    counts = {"original": before.count(), "kept": years.count(), "false": before.is_null().sum()}
    onset = {"median": years.median(), "mean": years.mean()}
    onset |= {f"within_{near}": (years <= near).mean() for near in (1, 5)}
    most = cases.group_by("phecode").agg(**counts, **onset)
    listed = most.sort("original", "phecode", descending=[True, False]).head(SHOWN).to_dicts()
    return {
        "cases": cases.select(**counts).row(0, named=True),
        "phecodes": most.select((pl.col(name) > 0).sum() for name in counts).row(0, named=True),
        "onset": cases.select(**onset).row(0, named=True),
        "most": [{**row, "phenotype": mapping.phenotypes.get(row["phecode"], "")} for row in listed],
    }


def _onsets(pairs: pl.DataFrame, told: Mapping[str, Collection[str]], name: str) -> pl.DataFrame:
    """`person`, `phecode` and, under this name, the first age."""
    rows = [(code, phecode) for code, phecodes in told.items() for phecode in phecodes]
    table = pl.DataFrame(rows, schema={"code": pl.String, "phecode": pl.String}, orient="row")
    first = pl.col("age").min().cast(pl.Float64).alias(name)
    held = pairs.with_columns(pl.col("code").cast(pl.String)).join(table, on="code")
    return held.group_by("person", "phecode").agg(first)


def _middles(times: AgeTree) -> dict[str, float]:
    """The middle of each label, between its first and its last age."""
    tree, ages = times.hierarchy, np.arange(times.first, times.last + 1)
    inside = ((times.leaf >= node) & (times.leaf <= end) for node, end in enumerate(tree.end.tolist()))
    return {label: float(ages[each][[0, -1]].mean()) for label, each in zip(tree.labels, inside, strict=True)}
