"""The hierarchies of codes and ages, and the saving of publishing two values as their common ancestor, in exact
integers (Tamersoy 2011, IV.2.6).

With Δ of docs/methods/trajectories.md#loss a matched pair saves s = 1 − w_icd·Δ(code)/|ICD| − w_age·Δ(age)/|Age| of
what suppressing it costs. Multiplied by |ICD|·|Age|·(denominator of the weights), and divided by the common
divisor of all values, s is an integer: sums are exact and ties break alike on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from leeward.arrays import Bools, Int32s, Int64s
from leeward.errors import BadInput
from leeward.vocabulary import VOCABULARIES, Hierarchy, dates, load
from leeward.vocabulary import age as age_trees
from leeward.vocabulary.age import AgeTree
from leeward.vocabulary.trees import CustomVocabulary

WEIGHT_DENOMINATOR = 1000
"""Weights are taken as fractions with at most this denominator (0.1, 0.25, 1/3, 0.005)."""

CHAPTER = "chapter"


def time_tree(parameters: Mapping[str, Any]) -> AgeTree:
    """The hierarchy of ages, or of dates, of a run or of a release."""
    time = str(parameters.get("time", "age"))
    return age_tree(str(parameters["ages"])) if time == "age" else dates.of_years(time)


def age_tree(named: str) -> AgeTree:
    """`0-127` (default), `1-128` (the thesis), `hipaa`, or a CSV with the columns node,parent."""
    if named == "hipaa":
        return age_trees.hipaa()
    low, dash, high = named.partition("-")
    if dash and low.isdigit() and high.isdigit():
        return age_trees.binary(int(low), int(high))
    if not Path(named).is_file():
        raise BadInput(
            f"`ages`: {named!r} is neither 0-127, 1-128, hipaa nor a file; name one of these, or a CSV with the "
            "columns node,parent."
        )
    return age_trees.from_csv(named)


def code_tree(named: str | None, listed: Sequence[str], occurring: Sequence[str]) -> tuple[Hierarchy, bool]:
    """The code hierarchy, and whether its leaves are the codes found in the data. A hierarchy from a file is used
    whole; that of a built-in vocabulary covers `listed`, or the codes that occur. `listed` restricts both. Raises
    BadInput for codes that the hierarchy lacks (their number only)."""
    if named is None:
        raise BadInput(
            "trajectories need a hierarchy of codes; give `hierarchy` (icd9, icd10, or a CSV with the columns "
            "node,parent), or the cohort's vocabulary."
        )
    vocabulary = load(named)
    wanted = sorted(set(listed)) if listed else sorted(set(occurring))
    outside = len(set(occurring) - set(wanted))
    if outside:
        raise BadInput(
            f"{outside:,} of the codes that occur are not among the {len(wanted):,} listed in `codes`; list them, or "
            "take their rows out of the input."
        )
    if isinstance(vocabulary, CustomVocabulary) and not listed:
        return _add_leaves(vocabulary.tree, occurring), False
    return vocabulary.hierarchy(wanted), not listed


def _add_leaves(tree: Hierarchy, occurring: Sequence[str]) -> Hierarchy:
    """Add a leaf below every inner node of the levels that occur as codes in records. Only the choice of levels depends
    on the data: a record may hold 250 where 250.00 exists too."""
    nodes = tree.nodes_of(occurring)
    inner = nodes[~tree.is_leaf(nodes)]
    if not len(inner):
        return tree
    leaves = set(tree.leaves.tolist())
    deepest = set(tree.depth[inner].tolist())
    also = [node for node in range(1, len(tree)) if node not in leaves and int(tree.depth[node]) in deepest]
    return tree.restrict([tree.labels[node] for node in sorted(leaves.union(also, inner.tolist()))])


def public_name(named: str) -> str:
    """Name of a code hierarchy in the manifest; `custom` for a file or an added vocabulary."""
    return named.lower() if named.lower() in VOCABULARIES else "custom"


@dataclass(frozen=True)
class Axis:
    """One attribute (codes, or ages): its hierarchy and the saving of each node.

    hierarchy : the published hierarchy, its nodes numbered depth-first.
    published : int32, the node published for a common ancestor: itself; a higher one, if it is too
        sensitive; -1, if a policy forbids generalizing that far.
    gain : int64, scaled saving of a match at each node; where `published` is -1, so far below zero that no
        match through it is ever chosen.
    rank : int32, the order of the leaves in ties and inside a trajectory (codes as text, ages as numbers).
    """

    hierarchy: Hierarchy
    published: Int32s
    gain: Int64s
    rank: Int32s


@dataclass(frozen=True)
class Space:
    """Both attributes; `unit`, the scaled saving of an exact match; `years`, int64, the width of each age node (of
    dates, in months); `widths`, those of usable and of chapter pairs."""

    code: Axis
    age: Axis
    unit: int
    years: Int64s
    widths: tuple[int, int]

    def axes(self) -> Axes:
        codes, ages = (
            Tree(
                axis.hierarchy.parent,
                axis.hierarchy.end,
                axis.published,
                axis.gain,
                np.zeros(len(axis.gain), np.int32),
            )
            for axis in (self.code, self.age)
        )
        return Axes(codes, ages, np.zeros(1, np.int64))


class Tree(NamedTuple):
    """A hierarchy for kernels: parent, end, published and gain of each node; and its tier, int32."""

    parent: Int32s
    end: Int32s
    published: Int32s
    gain: Int64s
    tier: Int32s


class Axes(NamedTuple):
    """Both trees. The worth of a pair is the gains of its nodes and, with tiers, the weight of the higher tier."""

    codes: Tree
    ages: Tree
    tiers: Int64s


def make_space(
    codes: Hierarchy,
    ages: AgeTree,
    weights: tuple[float, float] = (0.5, 0.5),
    code_published: Int32s | None = None,
    age_published: Int32s | None = None,
) -> Space:
    """The space of two hierarchies under the weights (w_icd, w_age). Raises BadInput for weights that are negative or
    do not sum to 1, and for hierarchies without two levels."""
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
    code_ranks, age_ranks = np.full(len(codes), -1, np.int32), np.full(len(ages.hierarchy), -1, np.int32)
    code_ranks[sorted(codes.leaves.tolist(), key=lambda leaf: codes.labels[leaf])] = np.arange(codes.n_leaves)
    leaves, first = np.unique(ages.leaf, return_index=True)
    age_ranks[leaves] = first + ages.first  # by the lowest age
    unit = denominator * codes.n_leaves * ages.hierarchy.n_leaves // shared
    return Space(
        _axis(codes, code_gain // shared, code_published, code_ranks, -2 * unit),
        _axis(ages.hierarchy, age_gain // shared, age_published, age_ranks, -2 * unit),
        unit,
        years_of(ages),
        ages.widths,
    )


def exact_weights(weights: tuple[float, float]) -> tuple[Fraction, Fraction]:
    exact = [Fraction(w).limit_denominator(WEIGHT_DENOMINATOR) for w in weights]
    if min(weights) < 0 or abs(sum(weights) - 1) > 1e-9:
        raise BadInput(
            f"the weights of codes and ages must be at least 0 and sum to 1; got {weights[0]} and {weights[1]}."
        )
    return exact[0], 1 - exact[0]


def _axis(tree: Hierarchy, gain: Int64s, published: Int32s | None, rank: Int32s, forbidden: int) -> Axis:
    nodes = np.arange(len(tree), dtype=np.int32)
    shown = nodes if published is None else published
    own = np.where(shown >= 0, gain[np.maximum(shown, 0)], forbidden)
    return Axis(tree, shown, own, rank)


def publishable_codes(
    tree: Hierarchy, sensitive: Sequence[str] = (), share: float = 1.0, constraint_of: Int32s | None = None
) -> Int32s:
    """The node published in place of each node, int32 (-1: none may be).

    A node is too sensitive if more than `share` of the codes below it are; its lowest ancestor that is not is published
    instead. `constraint_of` gives each leaf's utility constraint (by leaf number; -1: none): a node may then be
    published only if all codes below it lie in one constraint, or it is a leaf.
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


def narrow_ages(ages: AgeTree, widest: int) -> Int32s:
    """The published node of each age node when none may span more than `widest` years (-1: too wide)."""
    nodes = np.arange(len(ages.hierarchy), dtype=np.int32)
    return np.where(narrow(ages.hierarchy, years_of(ages), widest * ages.a_year), nodes, -1).astype(np.int32)


def years_of(ages: AgeTree) -> Int64s:
    """Years (of dates, months) that each node spans, int64."""
    tree = ages.hierarchy
    total = np.concatenate([[0], np.cumsum(np.bincount(ages.leaf, minlength=len(tree)))])
    return np.asarray(total[tree.end + 1] - total[np.arange(len(tree))], np.int64)


def usable_codes(tree: Hierarchy) -> Bools:
    """The nodes at 3-digit level (the category of a built-in vocabulary) or finer. Elsewhere the children of the root
    count as chapters, and what is below them is usable; so is every leaf."""
    return _below_chapter(tree, 2, 1)


def chapter_codes(tree: Hierarchy) -> Bools:
    """The nodes at chapter level or finer: all but the root where there are no chapters."""
    return _below_chapter(tree, 0, 0)


def _below_chapter(tree: Hierarchy, levels: int, depth: int) -> Bools:
    """Nodes at least so many levels below the chapters, without chapters deeper than `depth`; leaves always."""
    known = CHAPTER in tree.level_names
    found = tree.level <= tree.level_names.index(CHAPTER) - levels if known else tree.depth > depth
    return np.asarray(found | tree.is_leaf(np.arange(len(tree))))


def narrow(tree: Hierarchy, years: Int64s, widest: int) -> Bools:
    """The age nodes of at most `widest` years; leaves always. `years` is the width of each node."""
    return np.asarray((years <= widest) | tree.is_leaf(np.arange(len(tree))))


def highest(tree: Hierarchy, allowed: Bools) -> Int32s:
    """The highest allowed node at or above each node, int32; -1: none is allowed."""
    found = np.where(allowed, np.arange(len(tree)), -1).astype(np.int32)
    for node in range(1, len(tree)):  # parents come first
        above = found[tree.parent[node]]
        if above >= 0:
            found[node] = above
    return found
