"""Counts of single codes that hold against an attacker who knows the algorithm
(docs/proofs.md#algorithm), plainly, with every random draw given from outside; and the data
set of the proof, from which the same files come, with k records of a known set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

Path = tuple[tuple[int, bool], ...]
"""A part: the codes that split it off, and whether its records have them."""
Records = Sequence[frozenset[int]]


@dataclass(frozen=True)
class Draws:
    """The draws of a run: the order of the codes; whether a part passes a code over; by how much more than k records
    a code must have to be shown in a part of a level (0 a cluster, then its joint clusters, smallest first)."""

    order: Sequence[int]
    passes_over: Callable[[Path, int], bool]
    more: Callable[[int, Path, int], int]


@dataclass
class Part:
    """A cluster, or a joint cluster (`clusters` below it): its records' numbers, and the codes that it counts."""

    path: Path
    records: list[int]
    clusters: list[Part] = field(default_factory=list)
    shown: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Made:
    """Clusters and, level by level, joint clusters; the splits by code."""

    clusters: list[Part]
    joints: list[list[Part]]
    splits: set[tuple[Path, int]]

    def files(self) -> list[tuple[int, list[Path], int, list[tuple[int, int]]]]:
        """What is released: level, clusters below, number of records, counts of codes."""
        parts = [(0, part, [part.path]) for part in self.clusters]
        parts += [
            (level, part, sorted(each.path for each in part.clusters))
            for level, joints in enumerate(self.joints, 1)
            for part in joints
        ]
        return [(level, below, len(p.records), sorted(p.shown.items())) for level, p, below in parts]


def make(records: Records, k: int, max_cluster: int, levels: Sequence[int], draws: Draws) -> Made:
    """Split, then count every code in the smallest parts where enough records have it."""
    clusters: list[Part] = []
    parts: list[list[Part]] = [[] for _ in levels]
    splits: set[tuple[Path, int]] = set()

    def grow(part: Part, rank: int, wanted: frozenset[int]) -> None:
        for level in sorted(wanted):
            if len(part.records) < levels[level] * max_cluster:
                parts[level].append(part)
                wanted -= {level}
        first = len(clusters)
        while len(part.records) >= max_cluster and rank < len(draws.order):
            code = draws.order[rank]
            rank += 1
            have = [r for r in part.records if code in records[r]]
            without = [r for r in part.records if code not in records[r]]
            if min(len(have), len(without)) < k or draws.passes_over(part.path, code):
                continue
            splits.add((part.path, code))
            grow(Part((*part.path, (code, True)), have), rank, wanted)
            grow(Part((*part.path, (code, False)), without), rank, wanted)
            break
        else:
            clusters.append(part)
            for level in wanted:
                parts[level].append(part)
        part.clusters = clusters[first:]

    grow(Part((), list(range(len(records)))), 0, frozenset(range(len(levels))))
    for cluster in clusters:
        cluster.clusters = []
    hidden = {part.path: Counter(c for r in part.records for c in records[r]) for part in clusters}
    for part in clusters:
        split_off = {code for code, has in part.path if has}
        for code, count in list(hidden[part.path].items()):
            if code in split_off or count >= k + draws.more(0, part.path, code):
                part.shown[code] = hidden[part.path].pop(code)
    top = {part.path: part.path for part in clusters}
    joints: list[list[Part]] = []
    for level, found in enumerate([*parts, [Part((), list(range(len(records))))]], 1):
        joints.append([])
        for part in found:
            n = len(part.path)
            below = [each for each in clusters if each.path[:n] == part.path]
            if len({top[each.path] for each in below}) < 2:
                continue
            joint = Part(part.path, part.records, below)
            for code, count in sum((hidden[each.path] for each in below), Counter[int]()).items():
                if count >= k + draws.more(level, part.path, code):
                    joint.shown[code] = count
                    for each in below:
                        hidden[each.path].pop(code, None)
            for each in below:
                top[each.path] = (*part.path, (-level, True))
            joints[-1].append(joint)
    return Made(clusters, joints, splits)


def with_k_records(
    records: Records, made: Made, draws: Draws, wanted: frozenset[int], owner: int, k: int
) -> tuple[list[frozenset[int]], Draws]:
    """The proof's data set: k records of the owner's cluster have all of `wanted`, and draws with which it gives the
    same files."""
    changed = [set(each) for each in records]
    (home,) = [part for part in made.clusters if owner in part.records]
    chosen = [owner, *(r for r in home.records if r != owner)][:k]
    hide: set[tuple[Path, int]] = set()
    for code in wanted:
        holders = [r for r in home.records if code in records[r]]
        if code not in home.shown:
            above = [[p for p in level if home in p.clusters] for level in made.joints]
            elsewhere = [
                each.path
                for level in made.joints
                for part in level
                if home not in part.clusters and code in part.shown
                for each in part.clusters
            ]
            donors: list[int] = []
            for part in (found[0] for found in above if found):
                for each in part.clusters:
                    if each is not home and code not in each.shown and each.path not in elsewhere:
                        donors += [r for r in each.records if code in records[r] and r not in donors]
                if code in part.shown:
                    break
            for r in donors[: max(0, k - len(holders))]:
                changed[r].remove(code)
            hide.add((home.path, code))
        kept = [r for r in holders if r not in chosen][: max(0, len(holders) - k)]
        for r in home.records:
            changed[r].discard(code)
        for r in [*chosen, *kept]:
            changed[r].add(code)
    fresh = max((c for each in records for c in each), default=0) + 1
    order = list(draws.order)
    for each in changed:
        if not each:  # a code of nobody else, which is shown nowhere
            each.add(fresh)
            order.append(fresh)
            fresh += 1

    def passes_over(path: Path, code: int) -> bool:
        return (path, code) not in made.splits if code in wanted else draws.passes_over(path, code)

    def more(level: int, path: Path, code: int) -> int:
        hidden = (home.path, code) in hide and home.path[: len(path)] == path
        shown = level > 0 and any(p.path == path and code in p.shown for p in made.joints[level - 1])
        return len(records) if hidden and not shown else draws.more(level, path, code)

    return [frozenset(each) for each in changed], replace(
        draws, order=order, passes_over=passes_over, more=more
    )
