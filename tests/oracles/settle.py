"""Settle, plain: records choose, block by block, the cluster in which fewest codes end in item chunks."""

from __future__ import annotations

Rows = list[frozenset[int]]


def item_occurrences(rows: Rows, leaves: list[list[int]], k: int, ignored: frozenset[int]) -> int:
    """Occurrences of codes that fewer than k records of their cluster hold."""
    total = 0
    for leaf in leaves:
        for c in {c for r in leaf for c in rows[r]} - ignored:
            s = sum(1 for r in leaf if c in rows[r])
            total += s if s < k else 0
    return total


def settle(
    rows: Rows,
    leaves: list[list[int]],
    k: int,
    cap: int,
    ignored: frozenset[int],
    block: int,
    rounds: int,
    tries: int,
) -> list[list[int]]:
    """The clusters after the moves, records of a cluster in the order of the original leaves."""
    position = {r: p for p, r in enumerate(r for leaf in leaves for r in leaf)}
    home = {r: i for i, leaf in enumerate(leaves) for r in leaf}
    for first in range(0, len(leaves), block):
        mine = range(first, min(first + block, len(leaves)))
        records = [r for i in mine for r in leaves[i]]

        def members(i: int, records: list[int] = records) -> list[int]:
            return [r for r in records if home[r] == i]

        def cost(i: int, extra: int | None = None, without: int | None = None) -> int:
            inside = [r for r in members(i) if r != without] + ([extra] if extra is not None else [])
            return item_occurrences(rows, [inside], k, ignored)

        for turn in range(rounds):
            hosts = {
                c: [i for i in mine if sum(1 for r in members(i) if c in rows[r]) >= k - 1]
                for c in {c for r in records for c in rows[r]} - ignored
            }
            moved = False
            for r in records:
                at = home[r]
                if len(members(at)) <= k:
                    continue
                gain = cost(at, without=r) - cost(at)
                if gain >= 0:
                    continue
                best, best_change = -1, 0
                for c in sorted(rows[r] - ignored):
                    if sum(1 for q in members(at) if c in rows[q]) >= k:
                        continue
                    n = len(hosts[c])
                    start = ((position[r] + 1) * 2654435761 + turn * 40503) % n if n > tries else 0
                    for q in range(min(tries, n)):
                        there = hosts[c][(start + q) % n]
                        if there == at or len(members(there)) >= cap:
                            continue
                        change = gain + cost(there, extra=r) - cost(there)
                        if change < best_change:
                            best, best_change = there, change
                if best >= 0:
                    home[r] = best
                    moved = True
            if not moved:
                break
    out: list[list[int]] = [[] for _ in leaves]
    for leaf in leaves:
        for r in leaf:
            out[home[r]].append(r)
    return [leaf for leaf in out if leaf]
