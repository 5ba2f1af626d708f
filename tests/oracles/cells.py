"""Clustering by shared cells, with nothing but dicts and Counters (docs/methods/trajectories.md#cells)."""

from __future__ import annotations

from collections import Counter


def items_of(record, cells):
    """Every cell of a record at every level, with its occurrence; `cells(level, pair)` names the cell."""
    found = {}
    for level, weight in enumerate((4, 1)):
        for cell, count in Counter(cells(level, pair) for pair in record).items():
            for nth in range(count):
                found[level, cell, nth] = weight
    return found


def cluster(records, k, cells):
    """Groups of record numbers: the heaviest of all groups grown from a record first."""
    items = [items_of(record, cells) for record in records]
    support = Counter(item for each in items for item in each)
    items = [{item: w for item, w in each.items() if support[item] >= k} for each in items]
    active = set(range(len(records)))

    def shared(common, r):
        return sum(w for item, w in common.items() if item in items[r])

    def grow(seed):
        members, common = [seed], items[seed]
        while len(members) < k:
            worth = {r: shared(common, r) for r in active - set(members)}
            if not any(worth.values()):
                return 0, members
            best = min(worth, key=lambda r: (-worth[r], len(records[r]), r))
            members.append(best)
            common = {item: w for item, w in common.items() if item in items[best]}
        return sum(common.values()), members

    queue = {r: grow(r) for r in active}
    groups = []
    while queue:
        seed = min(queue, key=lambda r: (-queue[r][0], r))
        value, members = queue.pop(seed)
        if value == 0 or seed not in active:
            continue
        if not active.issuperset(members):
            queue[seed] = grow(seed)
            continue
        groups.append(members)
        active -= set(members)
    rest = sorted(active, key=lambda r: (len(records[r]), r))
    if len(rest) >= k or not groups:
        cuts = list(range(0, len(rest) - k + 1, k))
        return groups + [rest[a : (a + k if a != cuts[-1] else None)] for a in cuts]
    for record in rest:
        best = None
        for group in groups:
            if len(group) < 2 * k:
                common = {
                    item: w for item, w in items[group[0]].items() if all(item in items[m] for m in group)
                }
                change = shared(common, record) * (len(group) + 1) - sum(common.values()) * len(group)
                if best is None or change > best[0]:
                    best = change, group
        best[1].append(record)
    return groups


def most_usable(group, records, cells):
    """How many usable pairs a group can publish at most: the multiset of cells that all its members have."""
    common = Counter(cells(0, pair) for pair in records[group[0]])
    for member in group[1:]:
        common &= Counter(cells(0, pair) for pair in records[member])
    return common.total()
