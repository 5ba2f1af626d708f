"""What it saves to publish two values under their common ancestor, as exact integers (Tamersoy 2011, IV.2.6).

With Δ of docs/methods/trajectories.md#loss a matched pair saves s = 1 − w_icd·Δ(code)/|ICD| − w_age·Δ(age)/|Age|
of what
suppressing it costs. Multiplied by |ICD|·|Age|·(denominator of the weights), and divided by what all values
share, s is an integer: sums are exact and ties break alike on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np
from numpy.typing import NDArray

from leeward.errors import BadInput
from leeward.vocabulary.age import AgeTree
from leeward.vocabulary.hierarchy import Hierarchy

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

WEIGHT_DENOMINATOR = 1000
"""Weights are taken as fractions with at most this denominator (0.1, 0.25, 1/3, 0.005)."""


@dataclass(frozen=True)
class Axis:
    """One attribute (codes, or ages): a hierarchy and what publishing each of its nodes saves.

    hierarchy : the published hierarchy.
    parent, end : of its nodes (depth-first numbers), int32.
    published : int32, the node that stands in for a common ancestor: itself; a higher one, if it would tell
        too much; -1, if a policy forbids to generalize that far.
    gain : int64, scaled saving of a match at each node; where `published` is -1, so far below zero that no
        match through it is ever chosen.
    rank : int32, the order of the leaves in ties and inside a trajectory (codes as text, ages as numbers).
    """

    hierarchy: Hierarchy
    parent: Ints
    end: Ints
    published: Ints
    gain: Longs
    rank: Ints


@dataclass(frozen=True)
class Space:
    """Both attributes; `unit`, the scaled saving of an exact match (of suppressing nothing); and `years`, int64, how
    many each node of the ages spans."""

    code: Axis
    age: Axis
    unit: int
    years: Longs


def make(
    codes: Hierarchy,
    ages: AgeTree,
    weights: tuple[float, float] = (0.5, 0.5),
    code_published: Ints | None = None,
    age_published: Ints | None = None,
) -> Space:
    """The space of two hierarchies under the weights (w_icd, w_age).

    Raises BadInput for weights that are negative or do not sum to 1, and for hierarchies without two levels.
    """
    w_code, w_age = exact_weights(weights)
    for tree in (codes, ages.hierarchy):
        if len(tree) < 2:
            raise BadInput(f"{tree.name}: the hierarchy is a single node; a value needs something above it.")
    denominator = w_code.denominator * w_age.denominator // gcd(w_code.denominator, w_age.denominator)
    code_factor = int(w_code * denominator) * ages.hierarchy.n_leaves
    age_factor = int(w_age * denominator) * codes.n_leaves
    code_gain = code_factor * (codes.n_leaves - codes.deltas.astype(np.int64))
    age_gain = age_factor * (ages.hierarchy.n_leaves - ages.hierarchy.deltas.astype(np.int64))
    shared = int(np.gcd.reduce(np.concatenate([code_gain, age_gain])))
    code_ranks = _text_ranks(codes)
    age_ranks = _age_ranks(ages)
    unit = denominator * codes.n_leaves * ages.hierarchy.n_leaves // shared
    return Space(
        _axis(codes, code_gain // shared, code_published, code_ranks, -2 * unit),
        _axis(ages.hierarchy, age_gain // shared, age_published, age_ranks, -2 * unit),
        unit,
        _years(ages),
    )


def exact_weights(weights: tuple[float, float]) -> tuple[Fraction, Fraction]:
    """The weights as fractions. Raises BadInput unless both are at least 0 and they sum to 1."""
    exact = [Fraction(w).limit_denominator(WEIGHT_DENOMINATOR) for w in weights]
    if min(weights) < 0 or abs(sum(weights) - 1) > 1e-9:
        raise BadInput(
            f"the weights of codes and ages must be at least 0 and sum to 1; got {weights[0]} and {weights[1]}."
        )
    return exact[0], 1 - exact[0]


def _axis(tree: Hierarchy, gain: Longs, published: Ints | None, rank: Ints, forbidden: int) -> Axis:
    nodes = np.arange(len(tree), dtype=np.int32)
    shown = nodes if published is None else published
    own = np.where(shown >= 0, gain[np.maximum(shown, 0)], forbidden)
    return Axis(tree, tree.parent, tree.end, shown, own, rank)


def _text_ranks(tree: Hierarchy) -> Ints:
    rank = np.full(len(tree), -1, np.int32)
    leaves = sorted(tree.leaves.tolist(), key=lambda leaf: tree.labels[leaf])
    rank[leaves] = np.arange(len(leaves), dtype=np.int32)
    return rank


def _age_ranks(ages: AgeTree) -> Ints:
    """Leaves by the lowest age that they hold."""
    rank = np.full(len(ages.hierarchy), -1, np.int32)
    leaves, first = np.unique(ages.leaf, return_index=True)
    rank[leaves] = first + ages.first
    return rank


def publishable_codes(
    tree: Hierarchy, sensitive: Sequence[str] = (), share: float = 1.0, constraint_of: Ints | None = None
) -> Ints:
    """The node published in place of each node, int32 (-1: none may be).

    A node is too telling if more than `share` of the codes below it are sensitive; the lowest ancestor that is
    not stands in for it. `constraint_of` gives each leaf's utility constraint (by leaf number; -1: none): a
    node may then be published only if all codes below it lie in one constraint, or it is a leaf.
    """
    nodes = np.arange(len(tree), dtype=np.int32)
    shown = nodes.copy()
    if sensitive:
        marked = np.zeros(tree.n_leaves + 1, np.int64)
        marked[1:] = np.cumsum(np.isin(tree.leaves, tree.nodes_of(sensitive)))
        below = marked[tree.last_leaf + 1] - marked[tree.first_leaf]
        telling = below > share * tree.leaf_count
        for node in nodes:
            if telling[node]:
                shown[node] = shown[tree.parent[node]] if node else -1
    if constraint_of is not None:
        changes = np.zeros(tree.n_leaves, np.int64)
        changes[1:] = np.cumsum((constraint_of[1:] != constraint_of[:-1]) | (constraint_of[1:] < 0))
        mixed = changes[tree.last_leaf] != changes[tree.first_leaf]
        shown = np.where((shown >= 0) & mixed[np.maximum(shown, 0)], -1, shown).astype(np.int32)
    return shown


def narrow_ages(ages: AgeTree, widest: int) -> Ints:
    """The published node of each age node when none may span more than `widest` ages (-1: too wide)."""
    tree = ages.hierarchy
    nodes = np.arange(len(tree), dtype=np.int32)
    return np.where((_years(ages) <= widest) | (tree.end == nodes), nodes, -1).astype(np.int32)


def _years(ages: AgeTree) -> Longs:
    """How many years each node spans, int64."""
    tree = ages.hierarchy
    total = np.concatenate([[0], np.cumsum(np.bincount(ages.leaf, minlength=len(tree)))])
    return np.asarray(total[tree.end + 1] - total[np.arange(len(tree))], np.int64)
