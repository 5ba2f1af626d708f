"""The hierarchies of a run, from what a person names: a vocabulary, a file, an age tree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leeward.errors import BadInput
from leeward.vocabulary import VOCABULARIES, Hierarchy, load
from leeward.vocabulary import age as age_trees
from leeward.vocabulary.age import AgeTree
from leeward.vocabulary.trees import CustomVocabulary

Ints = NDArray[np.int32]


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
    """The code hierarchy, and whether its leaves are a list of codes found in the data.

    A file's hierarchy is taken whole; a built-in vocabulary's is the one over `listed`, or over the codes that
    occur. `listed` restricts both. Raises BadInput for codes that the hierarchy lacks (their number only).
    """
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
    """The tree, where every inner node of a kind that records use has a leaf of its own.

    Which levels need it is all that depends on the data: a record may hold 250 where 250.00 exists too.
    """
    nodes = tree.nodes_of(occurring)
    inner = nodes[~tree.is_leaf(nodes)]
    if not len(inner):
        return tree
    leaves = set(tree.leaves.tolist())
    deepest = set(tree.depth[inner].tolist())
    also = [node for node in range(1, len(tree)) if node not in leaves and int(tree.depth[node]) in deepest]
    return tree.restrict([tree.labels[node] for node in sorted(leaves.union(also, inner.tolist()))])


def public_name(named: str) -> str:
    """A hierarchy of codes as a manifest names it: a file or an added vocabulary is `custom`."""
    return named.lower() if is_built_in(named) else "custom"


def is_built_in(named: str | None) -> bool:
    """Whether a name is one of the vocabularies that come with Leeward."""
    return named is not None and named.lower() in VOCABULARIES
