"""What every vocabulary can do: write codes the standard way, know which exist, group them, build their hierarchy."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from leeward.errors import BadInput
from leeward.vocabulary.hierarchy import Hierarchy

Item = TypeVar("Item")


@dataclass(frozen=True)
class Vocabulary(ABC):
    """Codes and the nodes above them. `name`: what to call it in messages and reports."""

    name: str

    def normalise(self, code: str) -> str | None:
        """The canonical form of a code, None if the text is no code; here the text without outer blanks."""
        return code.strip() or None

    @abstractmethod
    def is_known(self, code: str) -> bool:
        """Whether the vocabulary has the code."""

    @abstractmethod
    def level(self, code: str, n: int) -> str:
        """The node above the code at policy level `n`; 0 is the code. BadInput for a level that there is not."""

    def title(self, node: str) -> str:
        """A text for a node in reports; here its label."""
        return node

    def order(self, code: str) -> Any:
        return code

    @abstractmethod
    def hierarchy(self, codes: Iterable[str]) -> Hierarchy:
        """The hierarchy whose leaves are exactly these codes. BadInput if there is none."""

    def level_groups(self, codes: Iterable[str], n: int) -> dict[str, tuple[str, ...]]:
        """The codes under each node of policy level `n`, in their order; disjoint, every code covered."""
        return leaf_groups(sorted(set(codes), key=self.order), lambda code: self.level(code, n))

    @abstractmethod
    def sibling_groups(self, codes: Iterable[str], n: int) -> list[tuple[str, ...]]:
        """Disjoint groups of `n` sibling codes."""


def require_codes(codes: Iterable[str], vocabulary: Vocabulary) -> list[str]:
    """The distinct codes in the vocabulary's order; BadInput if there is none."""
    distinct = sorted(set(codes), key=vocabulary.order)
    if not distinct:
        raise BadInput(f"{vocabulary.name}: no code is left to build a hierarchy over; give at least one.")
    return distinct


def leaf_groups(items: Iterable[Item], key: Callable[[Item], str]) -> dict[str, tuple[Item, ...]]:
    """The items of each key, keys in order of first appearance, items in the order given."""
    groups: dict[str, list[Item]] = {}
    for each in items:
        groups.setdefault(key(each), []).append(each)
    return {label: tuple(members) for label, members in groups.items()}


def sibling_runs(codes: Sequence[str], paths: Sequence[tuple[str, ...]], n: int) -> list[tuple[str, ...]]:
    """Disjoint runs of `n` codes under the lowest common node possible, ordered by their first code's place in `codes`;
    see `Classification.sibling_groups`.

    codes : in the order in which runs are cut.
    paths : for each code its node at each level, lowest level first; the highest is never crossed.
    n : codes a run; the last run of a highest node may have fewer, but at least two.
    """
    if n < 2:
        raise BadInput(f"A group of siblings has at least 2 codes; {n} were asked for.")
    waiting = list(range(len(codes)))
    runs: list[tuple[int, ...]] = []
    rest: list[tuple[int, ...]] = []
    for level in range(len(next(iter(paths), ()))):
        pools = leaf_groups(waiting, key=lambda i: paths[i][level]).values()
        runs += [pool[start : start + n] for pool in pools for start in range(0, len(pool) - n + 1, n)]
        rest = [pool[len(pool) - len(pool) % n :] for pool in pools]
        waiting = sorted(itertools.chain(*rest))
    runs += [pool for pool in rest if len(pool) > 1]  # of the highest nodes
    return [tuple(codes[i] for i in run) for run in sorted(runs)]
