"""The published hierarchies themselves: in depth-first order, and of ages with spans that fit into one another."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from leeward.verify.checks import Check, of_count
from leeward.verify.trajectories.layout import AGE_LABEL, OLDEST, Released, Tree

BUILT_IN = "hipaa"


def tree_checks(released: Released, parameters: Mapping[str, Any]) -> list[Check]:
    """Rows stand depth first; a built-in tree of ages has the range stated, and each age the span of those below."""
    trees = (released.code_tree, released.age_tree)
    checks = [
        of_count(
            "hierarchies_depth_first",
            sum(not depth_first(tree) for tree in trees),
            "The hierarchies' rows stand depth first.",
            "hierarchies have rows in another order than depth first.",
        )
    ]
    stated = str(parameters.get("ages"))
    if stated != "custom":
        root = released.age_tree.labels[int(np.argmax(released.age_tree.high - released.age_tree.low))]
        other = (
            root != stated
            if stated != BUILT_IN
            else not any("+" in each for each in released.age_tree.labels)
        )
        checks.append(
            of_count(
                "spans_of_ages",
                unfit(released.age_tree) + other,
                "Every age has the span of the ages below it, and the tree the range stated.",
                "ages have another span than the ages below them, or the tree another range than stated.",
            )
        )
    return checks


def depth_first(tree: Tree) -> bool:
    """Whether nodes stand by their first leaf, the wider first."""
    order = np.lexsort((np.arange(len(tree.labels)), -tree.high, tree.low))
    return bool(np.array_equal(order, np.arange(len(tree.labels))))


def unfit(tree: Tree) -> int:
    """Nodes whose span is not that of their leaves, which ascend without gaps."""
    spans = {}
    for label in tree.labels:
        found = AGE_LABEL.fullmatch(label)
        assert found is not None  # the layout check has read every label
        spans[label] = (int(found[1]), OLDEST if found[3] else int(found[2] or found[1]))
    leaves = [spans[label] for label in sorted(tree.leaf, key=lambda each: tree.leaf[each])]
    wrong = sum(a[1] + 1 != b[0] for a, b in itertools.pairwise(leaves))
    for label, low, high in zip(tree.labels, tree.low.tolist(), tree.high.tolist(), strict=True):
        wrong += spans[label] != (leaves[low][0], leaves[high - 1][1])
    return wrong
