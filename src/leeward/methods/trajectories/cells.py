"""Clustering by shared cells (docs/methods/trajectories.md#cells): groups that can publish pairs that say something.

A cell is a 3-digit category and an 8-year block of ages. The pairs that a group can publish as usable ones are exactly
the cells that all its members share, so records are grouped by what they share, the heaviest group first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leeward.arrays import Bools, Int32s, Int64s, offsets_of
from leeward.methods.trajectories import levels
from leeward.methods.trajectories.records import Group, Records
from leeward.methods.trajectories.space import Axis, Space

PART = 4_000
"""Records that are clustered at once: the work grows with the square of it."""

WEIGHTS = (4, 1)
"""What a usable cell and a chapter cell count."""

WIDER, ROOT = 2, 3
"""How coarse a node is, after usable (0) and chapter (1)."""


@dataclass(frozen=True)
class Steps:
    """From fine to coarse: the node of every leaf at each level of codes and of ages (-1: none may be published), and
    the pairs of levels in the order in which they are published."""

    code_at: Int32s
    age_at: Int32s
    order: Int32s


def cluster(records: Records, space: Space, k: int, most: int) -> list[Int64s]:
    """Records by group, each of k … 2k − 1; `most` of one sensitive value in a group, as far as the rest allows."""
    from leeward.methods.trajectories.kernels import cells as kernels

    data = _items(records, space, k)
    groups, left = kernels.best_first(k, most, data)
    found = [group.astype(np.int64) for group in groups]
    rest = np.flatnonzero(left)
    rest = rest[np.lexsort((rest, records.lengths()[rest]))]
    if len(rest) >= k or not found:
        cuts = np.arange(k, len(rest) - k + 1, k)
        return found + [each.astype(np.int64) for each in np.split(rest, cuts)]
    table = np.full((len(groups), 2 * k), -1, np.int32)
    table[:, :k] = groups
    sizes = np.full(len(groups), k, np.int64)
    for record in rest.tolist():
        host = kernels.host_of(record, table, sizes, 2 * k, data)
        table[host, sizes[host]] = record
        sizes[host] += 1
    return [row[:size].astype(np.int64) for row, size in zip(table, sizes, strict=True)]


def publish(groups: list[Int64s], records: Records, space: Space, in_order: bool) -> list[Group]:
    """What the members of each group have in common, pair by pair; `in_order`: as far as it comes in one order."""
    from leeward.methods.trajectories.kernels import cells as kernels

    longest = int(records.lengths().max())
    codes, ages = np.empty(longest, np.int32), np.empty(longest, np.int32)
    steps = steps_of(space)
    axes = tuple(kernels.Ordered(*_order(axis, *_coarse(axis, space))) for axis in (space.code, space.age))
    first, last = _years(space.age)
    text = _ranks(space.code)
    found = []
    arrays = _sort_records(records, space)
    for members in groups:
        if in_order:
            n = kernels.publish_in_order(members, *arrays, *axes, codes, ages)
        else:
            n = kernels.publish(members, *arrays, steps.code_at, steps.age_at, steps.order, codes, ages)
        c, a = codes[:n].copy(), ages[:n].copy()
        if not in_order:
            order = np.lexsort((text[c], last[a], first[a]))
            c, a = c[order], a[order]
        found.append(Group(members, c, a))
    return found


def steps_of(space: Space) -> Steps:
    """Levels that may be published, from fine to coarse: usable pairs, chapters, wider ones, the root."""
    tree = space.code.hierarchy
    nodes = np.arange(len(tree))
    codes = _ladder(
        space.code, tree.level, (levels.usable_codes(tree), levels.chapter_codes(tree), nodes > 0, nodes >= 0)
    )
    ages = _ladder(
        space.age,
        space.years,
        (space.years <= levels.USABLE_YEARS, space.years <= levels.CHAPTER_YEARS, space.years > 0),
    )
    pairs = [(c, a) for c in range(len(codes)) for a in range(len(ages))]
    pairs.sort(key=lambda at: (max(codes[at[0]][0], min(ages[at[1]][0], WIDER)), at[0] + at[1], at[0]))
    return Steps(
        np.stack([at for _, at in codes]), np.stack([at for _, at in ages]), np.array(pairs, np.int32)
    )


def _ladder(axis: Axis, level: Int32s | Int64s, classes: tuple[Bools, ...]) -> list[tuple[int, Int32s]]:
    """(class, node of every node) for ever more nodes: those of the first class level by level, then of the next."""
    found: list[tuple[int, Int32s]] = []
    seen: set[bytes] = set()
    for number, allowed in enumerate(classes):
        for top in np.unique(level[allowed]):
            at = _at(axis, allowed & (level <= top))
            if at.tobytes() not in seen:
                seen.add(at.tobytes())
                found.append((number, at))
    return found


def _items(records: Records, space: Space, k: int) -> object:
    """Every record's cells at both levels, each numbered by its occurrence in the record, if k records have it."""
    from leeward.methods.trajectories.kernels import cells as kernels

    owner = np.repeat(np.arange(len(records)), records.lengths())
    tree = space.code.hierarchy
    both = (
        (levels.usable_codes(tree), levels.narrow(space.age.hierarchy, space.years, levels.USABLE_YEARS)),
        (levels.chapter_codes(tree), levels.narrow(space.age.hierarchy, space.years, levels.CHAPTER_YEARS)),
    )
    keys, holders, weights = [], [], []
    for level, (code_allowed, age_allowed) in enumerate(both):
        code = _at(space.code, code_allowed)[records.codes].astype(np.int64)
        age = _at(space.age, age_allowed)[records.ages].astype(np.int64)
        known = (code >= 0) & (age >= 0)
        cell = code[known] * len(space.age.parent) + age[known]
        nth = _occurrence(owner[known], cell)
        keys.append(((cell * (int(nth.max(initial=0)) + 1) + nth) << 1) | level)
        holders.append(owner[known])
        weights.append(np.full(len(cell), WEIGHTS[level], np.int64))
    key, holder, weight = (np.concatenate(each) for each in (keys, holders, weights))
    _, first, number, support = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    common = support >= k
    item_of = np.cumsum(common) - 1
    kept = common[number]
    item, holder = item_of[number[kept]].astype(np.int32), holder[kept]
    by_record, by_item = np.lexsort((item, holder)), np.lexsort((holder, item))
    return kernels.Items(
        offsets_of(np.bincount(holder, minlength=len(records))),
        item[by_record],
        offsets_of(np.bincount(item, minlength=int(common.sum()))),
        holder[by_item].astype(np.int32),
        weight[first[common]],
        records.lengths(),
        np.zeros(len(records), np.int32) if records.group is None else records.group,
    )


def _occurrence(owner: Int64s, cell: Int64s) -> Int64s:
    """0, 1, … for the equal cells of an owner."""
    order = np.lexsort((cell, owner))
    same = np.zeros(len(order), np.bool_)
    same[1:] = (np.diff(owner[order]) == 0) & (np.diff(cell[order]) == 0)
    place = np.arange(len(order))
    begin = np.maximum.accumulate(np.where(same, 0, place))
    nth = np.empty(len(order), np.int64)
    nth[order] = place - begin
    return nth


def _at(axis: Axis, allowed: Bools) -> Int32s:
    """The highest node at or above each one that is allowed and may be published as itself; -1: none."""
    tree = axis.hierarchy
    nodes = np.arange(len(tree), dtype=np.int32)
    shown = (allowed | tree.is_leaf(nodes)) & (axis.published == nodes)
    found = np.where(shown, nodes, -1).astype(np.int32)
    for node in range(1, len(tree)):  # parents come first
        above = found[tree.parent[node]]
        if above >= 0:
            found[node] = above
    return found


def _coarse(axis: Axis, space: Space) -> tuple[Int32s, Int32s]:
    """Of each node how coarse it is, and how fine among its like."""
    tree = axis.hierarchy
    nodes = np.arange(len(tree))
    if axis is space.code:
        usable, chapter = levels.usable_codes(tree), levels.chapter_codes(tree)
        fine = (int(tree.level.max()) - tree.level).astype(np.int64)
        last = np.where(nodes == 0, ROOT, WIDER)
    else:
        usable = levels.narrow(tree, space.years, levels.USABLE_YEARS)
        chapter = levels.narrow(tree, space.years, levels.CHAPTER_YEARS)
        widths = np.unique(space.years)
        fine = (len(widths) - np.searchsorted(widths, space.years)).astype(np.int64)
        last = np.full(len(tree), WIDER)
    return np.where(usable, 0, np.where(chapter, 1, last)).astype(np.int32), fine.astype(np.int32)


def _order(axis: Axis, coarse: Int32s, fine: Int32s) -> tuple[Int32s, Int32s, Int32s, Int32s, Int32s]:
    return axis.parent, axis.end, axis.published, coarse, fine


def _sort_records(records: Records, space: Space) -> tuple[Int64s, Int32s, Int32s]:
    """Offsets, codes and ages of the records, each in order of (age, code)."""
    owner = np.repeat(np.arange(len(records)), records.lengths())
    order = np.lexsort((space.code.rank[records.codes], space.age.rank[records.ages], owner))
    return records.offsets, records.codes[order], records.ages[order]


def _years(axis: Axis) -> tuple[Int64s, Int64s]:
    """The places of the first and last leaf below each age node, in order of age."""
    tree = axis.hierarchy
    rank = axis.rank[tree.leaves].astype(np.int64)
    first = [int(rank[a : b + 1].min()) for a, b in zip(tree.first_leaf, tree.last_leaf, strict=True)]
    last = [int(rank[a : b + 1].max()) for a, b in zip(tree.first_leaf, tree.last_leaf, strict=True)]
    return np.array(first, np.int64), np.array(last, np.int64)


def _ranks(axis: Axis) -> Int64s:
    """Nodes in the order of their labels as text."""
    labels = axis.hierarchy.labels
    rank = np.empty(len(labels), np.int64)
    rank[sorted(range(len(labels)), key=labels.__getitem__)] = np.arange(len(labels))
    return rank
