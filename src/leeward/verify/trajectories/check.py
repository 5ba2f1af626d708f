"""The attacker of released trajectories: counts who looks alike, and reads every value against the hierarchies.

Written from Definition 1 of Tamersoy (2011, chapter IV) and the release's contract; shares nothing with the method.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from leeward.verify.checks import Check, Source, failing, of_count
from leeward.verify.classes import demographics_of, place_in_classes
from leeward.verify.flat import Longs
from leeward.verify.manifest import Share
from leeward.verify.trajectories.layout import (
    OLDEST,
    Released,
    check_hierarchy,
    layout,
    tree_checks,
)
from leeward.verify.trajectories.source import against_source


def check(share: Share, source: Source | None = None) -> list[Check]:
    """Every check of released trajectories; with the source, also that each record generalizes a patient's own."""
    checks, released = layout(share)
    if released is None:
        return checks
    placed, parameters = None, share.manifest["parameters"]
    if demographics_of(share):
        found, placed = place_in_classes(share, released.records)
        checks += found
        released = in_classes(released, placed.of_record)
    in_order = ages_in_order if parameters.get("order", "kept") != "free" else check_order
    checks += [
        k_anonymous(released, share.guarantee("k")),
        values_are_nodes(released),
        in_order(released),
        *ages_not_wider(released, parameters),
        *diverse(released, parameters),
    ]
    if source is not None and not failing(checks):
        checks += against_source(released, share, source, placed)
    checks += tree_checks(released, parameters)
    return checks + check_hierarchy(released.code_tree, share, source)


def in_classes(released: Released, of_record: Longs) -> Released:
    """Records are alike only where they are of one class too."""
    _, kind = np.unique(np.stack([released.kind, of_record]), axis=1, return_inverse=True)
    return replace(released, kind=kind.reshape(-1).astype(np.int64))


def k_anonymous(released: Released, k: int) -> Check:
    """Definition 1: each published trajectory is published for at least k records."""
    sizes = np.bincount(released.kind)
    sizes = sizes[sizes > 0]
    smallest = int(sizes.min()) if len(sizes) else 0
    return of_count(
        "k_anonymous",
        int((sizes < k).sum()),
        f"Each of {len(sizes):,} distinct trajectories is shared by at least {smallest:,} records (k = {k}).",
        f"distinct trajectories are shared by fewer than {k} records; the fewest is {smallest}.",
        {"trajectories": len(sizes), "smallest": smallest},
    )


def values_are_nodes(released: Released) -> Check:
    """Every code and age is a node of its published hierarchy."""
    wrong = int((released.codes < 0).sum() + (released.ages < 0).sum())
    return of_count(
        "values_are_nodes",
        wrong,
        "Every value is a node of its hierarchy.",
        "values are not nodes of their hierarchy.",
    )


def _spans(released: Released) -> tuple[Longs, Longs]:
    """First and last year of each pair's age; of one that is no node those of the first node."""
    low, high = released.spans[np.maximum(released.ages, 0)].T
    return low, high


def ages_in_order(released: Released) -> Check:
    """In every record there are ages inside the published spans that never fall."""
    known, (low, high) = released.ages >= 0, _spans(released)
    low, high = np.where(known, low, 0), np.where(known, high, OLDEST)
    owner = np.repeat(np.arange(len(released.offsets) - 1), np.diff(released.offsets))
    # A running maximum a record: records are lifted above one another, so that one pass serves all.
    lift = owner * np.int64(2 * OLDEST)
    reached = np.maximum.accumulate(low + lift) - lift if len(low) else low
    wrong = len(np.unique(owner[reached > high]))
    return of_count(
        "ages_in_order", wrong, "Ages never fall along a record.", "records have ages that must fall."
    )


def check_order(released: Released) -> Check:
    """Where the order of pairs is free they are sorted by first year, last year and code, which tells nothing more."""
    low, high = _spans(released)
    known = (released.ages >= 0) & (released.codes >= 0)
    owner = np.repeat(np.arange(len(released.offsets) - 1), np.diff(released.offsets))
    names = np.argsort(np.argsort(np.array(released.code_tree.labels, dtype=object), kind="stable"))
    code = names[np.maximum(released.codes, 0)]
    order = np.lexsort((code, high, low, owner))
    same = (low[order] == low) & (high[order] == high) & (code[order] == code)
    wrong = len(np.unique(owner[~same | ~known]))
    return of_count(
        "sorted_by_age",
        wrong,
        "Pairs are sorted by age and code.",
        "records have pairs that are not sorted by age and code.",
    )


def ages_not_wider(released: Released, parameters: dict[str, Any]) -> list[Check]:
    """No published age is wider than the parameters allow."""
    widest = parameters.get("widest_age")
    if widest is None:
        return []
    low, high = _spans(released)
    width = np.where(high < OLDEST, high - low + 1, 1) / (12 if "time" in parameters else 1)
    inner = (released.age_tree.high - released.age_tree.low)[np.maximum(released.ages, 0)] > 1
    wrong = int(((width > widest) & inner).sum())
    return [
        of_count(
            "ages_not_wider",
            wrong,
            f"No age spans more than {widest} years.",
            f"ages span over {widest} years.",
        )
    ]


def diverse(released: Released, parameters: dict[str, Any]) -> list[Check]:
    """ℓ-diversity: of the sensitive column in each group, and of the sensitive codes below each published one."""
    most = parameters.get("diversity")
    if most is None:
        return []
    checks = []
    column = parameters.get("sensitive_column")
    if column is not None:
        table = pl.DataFrame({"kind": released.kind, "value": released.records[column]})
        held = table.group_by("kind", "value").len()
        counts = held.group_by("kind").agg(pl.col("len").max(), total=pl.col("len").sum())
        wrong = counts.filter(pl.col("len") * most > pl.col("total")).height
        checks.append(
            of_count(
                "diverse_column",
                wrong,
                f"In every group at most 1 record in {most} has the same sensitive value.",
                f"groups have a sensitive value in more than 1 record in {most}.",
            )
        )
    sensitive = parameters.get("sensitive", [])
    if sensitive:
        tree = released.code_tree
        marked = np.zeros(len(tree.leaf) + 1, np.int64)
        marked[1:] = np.cumsum([label in set(sensitive) for label in tree.leaf])
        nodes = np.unique(released.codes[released.codes >= 0])
        below = marked[tree.high[nodes]] - marked[tree.low[nodes]]
        wrong = int((below * most > tree.high[nodes] - tree.low[nodes]).sum())
        checks.append(
            of_count(
                "diverse_codes",
                wrong,
                f"Of the codes below a published one, at most 1 in {most} is sensitive.",
                f"published codes stand for more than 1 sensitive code in {most}.",
            )
        )
    return checks
