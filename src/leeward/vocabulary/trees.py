"""Trees that a user brings: CSV `node,parent`, the `leaf;parent;…;*` lines of transaction-anonymization tools, OMOP's
CONCEPT_ANCESTOR, SNOMED CT; and none at all.

A hierarchy must have every code. A tree of OMOP or SNOMED CT need not: what it lacks hangs below the root, so that
every method can run on it, and has no group of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import polars as pl

from leeward.errors import BadInput
from leeward.vocabulary import omop, rf2
from leeward.vocabulary._text import read_text
from leeward.vocabulary.base import Vocabulary, leaf_groups, require_codes, sibling_runs
from leeward.vocabulary.hierarchy import Hierarchy

ROOT = omop.ROOT
"""The root's label, in the line format too."""

SMALL_BYTES = 1 << 26
"""A CONCEPT_ANCESTOR up to this size is read whole, as extracts must be; of a larger one, the rows above the codes."""

FLAT = "flat"


@dataclass(frozen=True)
class CustomVocabulary(Vocabulary):
    """A user's hierarchy; codes are compared without outer blanks. Policy level n is the n-th node above a code,
    never the root (a constraint over everything would allow any merge)."""

    tree: Hierarchy

    def is_known(self, code: str) -> bool:
        return code.strip() in self.tree.index

    def level(self, code: str, n: int) -> str:
        return _node_above(self.name, self.tree, code, n)

    def order(self, code: str) -> tuple[int, str]:
        return self.tree.index.get(code.strip(), len(self.tree)), code

    def hierarchy(self, codes: Iterable[str]) -> Hierarchy:
        """The hierarchy over exactly these codes; raises BadInput for codes that the file lacks."""
        return self.tree.restrict(codes)

    def sibling_groups(self, codes: Iterable[str], n: int) -> list[tuple[str, ...]]:
        return _runs_in(self.tree, [c for c in sorted(set(codes), key=self.order) if self.is_known(c)], n)


def _node_above(name: str, tree: Hierarchy | None, code: str, n: int) -> str:
    """The n-th node above the code in a tree, at most the child of the root; a code that the tree lacks stays."""
    if n < 0:
        raise BadInput(f"{name}: hierarchy level {n}; it is 0 (the code itself) or more.")
    node = None if tree is None else tree.index.get(code.strip())
    if tree is None or node is None:
        return code
    line = [node, *tree.ancestors(node)][:-1] or [node]
    return tree.labels[line[min(n, len(line) - 1)]]


def _runs_in(tree: Hierarchy, codes: list[str], n: int) -> list[tuple[str, ...]]:
    levels = range(1, max(int(tree.depth.max()), 2))
    return sibling_runs(codes, [tuple(_node_above(tree.name, tree, c, i) for i in levels) for c in codes], n)


def read(path: str | Path) -> Hierarchy:
    """Read a hierarchy, telling the format by the first line: `node,parent`, `…;…;*`, or OMOP CONCEPT_ANCESTOR."""
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
    for row, cells in _split_lines(path):
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


def _split_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    for row, line in enumerate(read_text(path).splitlines(), 1):
        cells = [cell.strip() for cell in line.split(";")]
        if line.strip() and (not all(cells) or len(cells) < 2):
            raise BadInput(f"{path.name}, row {row}: write `leaf;parent;…;{ROOT}`, with no part empty.")
        if line.strip():
            yield row, cells


@dataclass(frozen=True)
class OpenVocabulary(Vocabulary):
    """Codes below a tree that may lack some of them.

    `path`: a CONCEPT_ANCESTOR, or a tree of `rf2.convert`; None: no tree, so that every code hangs below the root.
    `concept`: OMOP's CONCEPT, whose codes the labels are then; None: they are concept ids.
    """

    path: Path | None = None
    concept: Path | None = None

    def is_known(self, code: str) -> bool:
        return bool(code.strip())

    def title(self, node: str) -> str:
        """The name of a concept of SNOMED CT; else the label: the tree holds no titles."""
        if self.path is None or not rf2.is_tree(self.path):
            return node
        return rf2.names(self.path).get(node) or node

    def level(self, code: str, n: int) -> str:
        return _node_above(self.name, self._tree((code,)), code, n)

    def hierarchy(self, codes: Iterable[str]) -> Hierarchy:
        """The hierarchy over exactly these codes. Raises BadInput if there is none."""
        distinct = require_codes(codes, self)
        tree = self._tree(distinct)
        pairs: list[tuple[str, str | None]] = [(ROOT, None)]
        if tree is not None and (known := [code for code in distinct if code in tree.index]):
            pairs += tree.restrict(known).to_pairs()[1:]
            distinct = sorted(set(distinct).difference(known))
        return Hierarchy.from_pairs([*pairs, *((code, ROOT) for code in distinct)], self.name)

    def level_groups(self, codes: Iterable[str], n: int) -> dict[str, tuple[str, ...]]:
        """The codes under each node of policy level `n`; disjoint, all codes covered."""
        distinct = sorted(set(codes))
        tree = self._tree(distinct)
        return leaf_groups(distinct, lambda code: _node_above(self.name, tree, code, n))

    def sibling_groups(self, codes: Iterable[str], n: int) -> list[tuple[str, ...]]:
        distinct = sorted(set(codes))
        tree = self._tree(distinct)
        return [] if tree is None else _runs_in(tree, [code for code in distinct if code in tree.index], n)

    def _tree(self, codes: Iterable[str]) -> Hierarchy | None:
        if self.path is None:
            return None
        if rf2.is_tree(self.path):
            return _lines_above(self.path, codes)
        small = self.path.stat().st_size <= SMALL_BYTES
        asked = None if small else tuple(sorted(set(codes)))
        if self.concept is not None:
            return _label_by_code(self.path, _stamp(self.path), self.concept, _stamp(self.concept), asked)
        return _read_ancestors(self.path, _stamp(self.path), asked)


def _stamp(path: Path) -> int:
    return path.stat().st_mtime_ns


@lru_cache(maxsize=2)
def _read_ancestors(path: Path, stamp: int, codes: tuple[str, ...] | None) -> Hierarchy:
    """The whole tree of a CONCEPT_ANCESTOR, or the part above some concepts."""
    return omop.from_concept_ancestor(path) if codes is None else _above(path, codes)


@lru_cache(maxsize=2)
def _label_by_code(
    path: Path, stamp: int, concept: Path, stamp_of_concept: int, codes: tuple[str, ...] | None
) -> Hierarchy:
    """The same with CONCEPT's codes for labels. What CONCEPT lacks keeps its id, and where several concepts have one
    code the id follows each: nobody can tell which of them such a code is."""
    ids = None
    if codes is not None:
        found = omop.concepts_of(concept, "concept_code", codes)
        ids = tuple(sorted({each for each, _ in found} | set(codes).difference(code for _, code in found)))
    tree = _read_ancestors(path, stamp, ids)
    named = dict(zip(tree.labels, tree.labels, strict=True)) | dict(
        omop.concepts_of(concept, "concept_id", tree.labels)
    )
    shared = Counter(named.values())
    label = {each: code if shared[code] == 1 else f"{code} ({each})" for each, code in named.items()}
    return Hierarchy.from_pairs(
        [(label[node], label.get(above)) for node, above in tree.to_pairs()], tree.name
    )


def _above(path: Path, codes: Iterable[str]) -> Hierarchy:
    """The tree above some concepts, from a complete table: the parent is one level up, the smallest id of several.
    Nothing in it depends on other codes than those asked for."""
    wanted = pl.Series([int(code) for code in codes if code.isdecimal()], dtype=pl.Int64)
    numbers = omop.scan(path).select(
        above=pl.col("ancestor_concept_id").cast(pl.Int64),
        below=pl.col("descendant_concept_id").cast(pl.Int64),
        levels=pl.col("min_levels_of_separation").cast(pl.Int64),
    )
    there = numbers.filter(pl.col("below").is_in(wanted.implode())).collect(engine="streaming")
    inner = pl.concat([there["above"], wanted]).unique().implode()
    steps = numbers.filter(
        (pl.col("levels") == 1) & pl.col("below").is_in(inner) & pl.col("above").is_in(inner)
    )
    parent = dict(steps.group_by("below").agg(pl.col("above").min()).collect(engine="streaming").iter_rows())
    nodes = sorted(set(there["above"].to_list()) | set(there["below"].to_list()))
    pairs: list[tuple[str, str | None]] = [(ROOT, None)]
    pairs += [(str(node), str(parent[node]) if node in parent else ROOT) for node in nodes]
    return Hierarchy.from_pairs(pairs, path.name)


def _lines_above(path: Path, codes: Iterable[str]) -> Hierarchy:
    """The tree above some concepts of SNOMED CT; nothing in it depends on other codes than those asked for."""
    parents = rf2.parents(path)
    found = {ROOT}
    for code in codes:
        while code in parents and code not in found:
            found.add(code)
            code = parents[code]
    return Hierarchy.from_pairs([(node, parents[node] or None) for node in sorted(found)], path.name)
