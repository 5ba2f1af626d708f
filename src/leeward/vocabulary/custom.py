"""Hierarchies that a user brings: CSV `node,parent`, the `leaf;parent;…;*` lines of transaction-anonymization
tools, and OMOP `CONCEPT_ANCESTOR`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leeward.errors import BadInput
from leeward.vocabulary import omop
from leeward.vocabulary._text import read_text
from leeward.vocabulary.classification import Normalised
from leeward.vocabulary.groups import leaf_groups, sibling_runs
from leeward.vocabulary.hierarchy import Hierarchy

ANY = "*"
"""The root's label in the line format."""


@dataclass(frozen=True)
class CustomVocabulary:
    """A user's hierarchy with the interface of a classification (see `leeward.vocabulary.Vocabulary`).

    Codes are compared as written, without outer blanks. Policy level n is the n-th node above a code, never
    the root (a constraint over everything would allow any merge).
    """

    tree: Hierarchy

    @property
    def name(self) -> str:
        """What to call it in messages: the file's name."""
        return self.tree.name

    def normalise(self, code: str) -> str | None:
        """The code without outer blanks; None if nothing is left."""
        return code.strip() or None

    def normalise_all(self, codes: Iterable[str]) -> Normalised:
        """`normalise` for many codes; nothing is ever repaired."""
        values = [self.normalise(code) for code in codes]
        return Normalised(values, np.zeros(len(values), np.bool_))

    def is_known(self, code: str) -> bool:
        """Whether the code is a node of the hierarchy."""
        return code.strip() in self.tree.index

    def level(self, code: str, n: int) -> str:
        """The label of the n-th node above the code, at most the child of the root; unknown codes stay
        themselves.
        """
        if n < 0:
            raise BadInput(f"{self.name}: hierarchy level {n}; it is 0 (the code itself) or more.")
        node = self.tree.index.get(code.strip())
        if node is None:
            return code
        line = [node, *self.tree.ancestors(node)][:-1] or [node]
        return self.tree.labels[line[min(n, len(line) - 1)]]

    def title(self, node: str) -> str:
        """The label: the file holds no titles."""
        return node

    def hierarchy(self, codes: Iterable[str]) -> Hierarchy:
        """The hierarchy over exactly these codes; raises BadInput for codes that the file lacks."""
        return self.tree.restrict(codes)

    def level_groups(self, codes: Iterable[str], n: int) -> dict[str, tuple[str, ...]]:
        """The codes under each node of policy level `n`, in the file's order; disjoint, all codes covered."""
        return leaf_groups(sorted(set(codes), key=self._order), lambda code: self.level(code, n))

    def sibling_groups(self, codes: Iterable[str], n: int) -> list[tuple[str, ...]]:
        """Disjoint groups of `n` siblings: under the lowest common node first, none across children of the
        root.
        """
        known = [c for c in sorted(set(codes), key=self._order) if self.is_known(c)]
        levels = range(1, max(int(self.tree.depth.max()), 2))
        return sibling_runs(known, [tuple(self.level(c, i) for i in levels) for c in known], n)

    def _order(self, code: str) -> tuple[int, str]:
        return self.tree.index.get(code.strip(), len(self.tree)), code


def read(path: str | Path) -> Hierarchy:
    """Read a hierarchy, telling the format by the first line: `node,parent`, `…;…;*`, or OMOP
    CONCEPT_ANCESTOR.
    """
    path = Path(path)
    first = next((line for line in read_text(path).splitlines() if line.strip()), "")
    if ";" in first:
        return from_lines(path)
    if "ancestor_concept_id" in first.lower():
        return omop.from_concept_ancestor(path)
    return Hierarchy.from_csv(path)


def from_lines(path: str | Path) -> Hierarchy:
    """Read `leaf;parent;…;*`: one leaf a line, then its ancestors up to the root.

    A text at different heights (`1;1,3;*` and `1,3;*`) is one node. Raises BadInput with the row when lines
    disagree about a parent, end in different roots, repeat a leaf, or hold an empty cell.
    """
    path = Path(path)
    parent: dict[str, str | None] = {}
    row_of: dict[str, int] = {}
    leaves: set[str] = set()
    for row, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(";")]
        if not all(cells) or len(cells) < 2:
            raise BadInput(f"{path.name}, row {row}: write `leaf;parent;…;{ANY}`, no part empty.")
        if cells[0] in leaves:
            raise BadInput(
                f"{path.name}, row {row}: the leaf {cells[0]!r} appears again (row {row_of[cells[0]]})."
            )
        leaves.add(cells[0])
        chain: list[tuple[str, str | None]] = list(zip(cells, [*cells[1:], None], strict=True))
        for node, above in chain:
            if parent.setdefault(node, above) != above:
                raise BadInput(
                    f"{path.name}, row {row}: {node!r} is under {above or 'nothing'!r} here and under "
                    f"{parent[node] or 'nothing'!r} in row {row_of[node]}; a node has one parent."
                )
            row_of.setdefault(node, row)
    return Hierarchy.from_pairs(parent.items(), path.name, rows=[row_of[node] for node in parent])
