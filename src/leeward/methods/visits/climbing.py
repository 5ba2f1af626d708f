"""Where a label climbs before it is deleted (`enforce: generalize`): the hierarchy's node above all its members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leeward.errors import BadInput
from leeward.methods.visits.bins import SEPARATOR
from leeward.methods.visits.classed import bare
from leeward.methods.visits.visit_lists import MARK
from leeward.vocabulary import Vocabulary, load


@dataclass(frozen=True)
class Climbing:
    """labels : all labels, ascending, nodes above included. up : for each its node above, -1 for none.

    of_code : for each code of the cohort the node above it (suppressed codes climb too), None where there is none.
    """

    labels: tuple[str, ...]
    up: NDArray[np.int32]
    of_code: tuple[str | None, ...]


def climbing(
    labels: Sequence[str], codes: Sequence[str], level: int, vocabulary: str | None, *, classed: bool = False
) -> Climbing:
    """The nodes of policy level `level` above labels and codes; `classed`: these carry the number of their class, and
    so do their nodes.

    Raises
    ------
    BadInput
        No vocabulary, a level that it lacks, or a node whose label is a code of the cohort.
    """
    if vocabulary is None:
        raise BadInput(
            "`enforce: generalize` climbs a hierarchy, so it needs a vocabulary: `icd9`, `icd10` or a hierarchy file."
        )
    known = load(vocabulary)
    of_code = [_above(known, code, level, classed) for code in codes]
    of_label = dict(zip(codes, of_code, strict=True))
    above = {label: _common_node([of_label[member] for member in label.split(SEPARATOR)]) for label in labels}
    nodes = {node for node in (*of_code, *above.values()) if node is not None}
    meant = {bare(n) for n in nodes} & {bare(c) for c in codes} if classed else nodes & set(codes)
    if meant:
        raise BadInput(
            f"`climb_to: {level}`: {len(meant)} nodes of that level have the name of a code of the "
            "cohort, so a recipient could not tell them apart; climb higher."
        )
    every = tuple(sorted({*labels, *nodes}))
    number = {label: place for place, label in enumerate(every)}
    up = np.full(len(every), -1, np.int32)
    for label, node in above.items():
        if node is not None:
            up[number[label]] = number[node]
    return Climbing(every, up, tuple(of_code))


def _above(vocabulary: Vocabulary, code: str, level: int, classed: bool) -> str | None:
    number, mark, own = code.partition(MARK) if classed else ("", "", code)
    node = vocabulary.level(own, level)
    return None if node == own or not vocabulary.is_known(own) else number + mark + node


def _common_node(nodes: Sequence[str | None]) -> str | None:
    """The one node above all members; None where they differ or one has none."""
    return nodes[0] if len(set(nodes)) == 1 else None
