"""Disassociation, plain and slow, to be read side by side with the paper and
docs/methods/disassociation.md.

Records are frozensets of code indices, so that comparing numbers compares codes. Supports are counted anew wherever
they are needed; nothing is cached, nothing is clever.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

Records = list[frozenset[int]]
Chunk = tuple[int, ...]


@dataclass
class Leaf:
    """A cluster: its records (indices into the dataset), its record chunks' codes, its item chunk."""

    ids: list[int]
    chunks: list[Chunk]
    items: set[int]


@dataclass
class Node:
    """A cluster or a joint cluster: the leaves below, the children and the shared chunks of this node."""

    leaves: list[int]
    children: list[Node] = field(default_factory=list)
    shared: list[Chunk] = field(default_factory=list)


@dataclass
class Parameters:
    """Everything that steers the algorithm; `constraint` maps a code to its constraint."""

    k: int
    m: int
    max_cluster: int
    constraint: dict[int, int] = field(default_factory=dict)
    sensitive: frozenset[int] = frozenset()
    nested: bool = False


def supports(rows: Records, ids: list[int], ignore: frozenset[int]) -> dict[int, int]:
    s: dict[int, int] = {}
    for r in ids:
        for a in rows[r] - ignore:
            s[a] = s.get(a, 0) + 1
    return s


def horpart(
    rows: Records, ids: list[int], ignore: frozenset[int], u: int | None, p: Parameters
) -> list[list[int]]:
    """HorPart (paper, Fig. 8) with the parent's ignore set for D2."""
    if len(ids) < p.max_cluster:
        return [ids]
    s = supports(rows, ids, ignore)
    if not s:
        return [ids]
    candidates = [a for a in s if u is not None and p.constraint.get(a) == u]
    candidates = candidates or [a for a in s if a in p.constraint] or list(s)
    a = min(candidates, key=lambda c: (-s[c], c))
    d1 = [r for r in ids if a in rows[r]]
    d2 = [r for r in ids if a not in rows[r]]
    out = horpart(rows, d1, ignore | {a}, p.constraint.get(a), p)
    if d2:
        out += horpart(rows, d2, ignore, None, p)
    return out


def pool_small(leaves: list[list[int]], k: int) -> list[list[int]]:
    """Small leaves (#horizontal-partitioning): pooled in creation order and cut into blocks of k."""
    proper = [list(leaf) for leaf in leaves if len(leaf) >= k]
    pool = [r for leaf in leaves if len(leaf) < k for r in leaf]
    if not proper:
        return [pool]
    if not pool:
        return proper
    if len(pool) < k:
        smallest = min(range(len(proper)), key=lambda i: (len(proper[i]), i))
        proper[smallest] += pool
        return proper
    blocks = len(pool) // k
    return proper + [pool[b * k : (b + 1) * k if b < blocks - 1 else len(pool)] for b in range(blocks)]


def is_km_anonymous(subrecords: Records, k: int, m: int) -> bool:
    for r in subrecords:
        for size in range(1, min(m, len(r)) + 1):
            for s in combinations(sorted(r), size):
                if sum(1 for q in subrecords if set(s) <= q) < k:
                    return False
    return True


def is_k_anonymous(subrecords: Records, k: int) -> bool:
    return all(sum(1 for q in subrecords if q == r) >= k for r in subrecords if r)


def project(rows: Records, codes: set[int]) -> Records:
    return [frozenset(r & codes) for r in rows]


def verpart(
    rows: Records, p: Parameters, strict_codes: frozenset[int] = frozenset()
) -> tuple[list[Chunk], set[int]]:
    """VerPart (paper, Fig. 9) with the erratum of lines 16-17; returns the chunks' codes and the item codes.

    A chunk that holds one of `strict_codes` must be k-anonymous (Property 1, the nested variant).
    """
    everything = range(len(rows))
    s = supports(rows, list(everything), frozenset())
    tt = {t for t in s if s[t] < p.k or t in p.sensitive}
    tp = [t for t in s if t not in tt]
    groups: dict[tuple[str, int], list[int]] = {}
    for t in tp:
        key = ("constraint", p.constraint[t]) if t in p.constraint else ("code", t)
        groups.setdefault(key, []).append(t)
    for group in groups.values():
        group.sort(key=lambda t: (-s[t], t))
    ordered = sorted(groups.items(), key=lambda kv: (-s[kv[1][0]], kv[0][0] != "constraint", kv[1][0]))
    rem = [t for _, group in ordered for t in group]
    chunks: list[Chunk] = []
    while rem:
        cur: list[int] = []
        for t in rem:
            test = project(rows, {*cur, t})
            strict = any(c in strict_codes for c in (*cur, t))
            if is_k_anonymous(test, p.k) if strict else is_km_anonymous(test, p.k, p.m):
                cur.append(t)
        first = p.constraint.get(cur[0])
        for u in {p.constraint[t] for t in cur if t in p.constraint} - {first}:
            of_u = {t for t in rem if p.constraint.get(t) == u}
            if not of_u <= set(cur):
                cur = [t for t in cur if t not in of_u]
        chunks.append(tuple(sorted(cur)))
        rem = [t for t in rem if t not in cur]
    return chunks, tt


def nonempty_subrecords(rows: Records, chunks: list[Chunk]) -> int:
    return sum(1 for c in chunks for r in rows if r & set(c))


def lemma_2_holds(rows: Records, chunks: list[Chunk], k: int, m: int) -> bool:
    """The condition on a cluster whose item chunk is empty (#empty-item-chunks)."""
    v = len(chunks)
    return v > 0 and nonempty_subrecords(rows, chunks) >= len(rows) + k * (min(m, v) - 1)


def make_leaf(rows: Records, ids: list[int], p: Parameters) -> Leaf:
    mine = [rows[r] for r in ids]
    chunks, items = verpart(mine, p)
    if not items and not lemma_2_holds(mine, chunks, p.k, p.m):
        s = supports(mine, list(range(len(mine))), frozenset())
        t = min((t for c in chunks for t in c), key=lambda t: (s[t], -t))
        chunks = [rest for c in chunks if (rest := tuple(x for x in c if x != t))]
        items = {t}
    return Leaf(ids, chunks, items)


def virtual_items(node: Node, leaves: list[Leaf]) -> set[int]:
    return set().union(*(leaves[i].items for i in node.leaves))


def published_below(node: Node, leaves: list[Leaf]) -> set[int]:
    """Codes of a record chunk or shared chunk at or below the node."""
    codes = {t for c in node.shared for t in c}
    for child in node.children:
        codes |= published_below(child, leaves)
    if not node.children:
        codes |= {t for c in leaves[node.leaves[0]].chunks for t in c}
    return codes


def try_join(rows: Records, a: Node, b: Node, leaves: list[Leaf], p: Parameters) -> Node | None:
    ts = (virtual_items(a, leaves) & virtual_items(b, leaves)) - p.sensitive
    below = published_below(a, leaves) | published_below(b, leaves)
    if not p.nested:
        ts -= below
    members = a.leaves + b.leaves
    projected = [(i, frozenset(rows[r] & ts & leaves[i].items)) for i in members for r in leaves[i].ids]
    sub = [q for _, q in projected]
    shared, _ = verpart(sub, Parameters(p.k, p.m, p.max_cluster, p.constraint), frozenset(below))
    t_star = {t for c in shared for t in c}
    if not t_star:
        return None
    s = supports(sub, list(range(len(sub))), frozenset())
    u = {t: sum(1 for i in members if t in leaves[i].items) for t in t_star}
    holding = sum(len(leaves[i].ids) for i in members if leaves[i].items & t_star)
    # sum s / |J| >= sum u / sum |P_i|, in whole numbers
    if sum(s[t] for t in t_star) * holding < sum(u.values()) * len(sub):
        return None
    for i in members:
        leaf = leaves[i]
        if leaf.items and leaf.items <= t_star:
            mine = [rows[r] for r in leaf.ids]
            if not lemma_2_holds(mine, leaf.chunks, p.k, p.m):
                return None
    for i in members:
        leaves[i].items -= t_star
    return Node(members, [a, b], shared)


def refine(rows: Records, leaves: list[Leaf], p: Parameters) -> list[Node]:
    """Refine (#refining): passes until one changes nothing."""
    clusters = [Node([i]) for i in range(len(leaves))]
    while True:
        holders: dict[int, int] = {}
        for leaf in leaves:
            for t in leaf.items:
                holders[t] = holders.get(t, 0) + 1
        rank = {t: i for i, t in enumerate(sorted(holders, key=lambda t: (-holders[t], t)))}
        clusters.sort(key=lambda n: sorted(rank[t] for t in virtual_items(n, leaves)))
        out: list[Node] = []
        i, changed = 0, False
        while i < len(clusters):
            joined = (
                try_join(rows, clusters[i], clusters[i + 1], leaves, p) if i + 1 < len(clusters) else None
            )
            if joined is not None:
                out.append(joined)
                changed = True
                i += 2
            else:
                out.append(clusters[i])
                i += 1
        clusters = out
        if not changed:
            return clusters


def disassociate(rows: Records, p: Parameters, refined: bool = True) -> tuple[list[Leaf], list[Node]]:
    parts = pool_small(horpart(rows, list(range(len(rows))), p.sensitive, None, p), p.k)
    leaves = [make_leaf(rows, ids, p) for ids in parts]
    nodes = refine(rows, leaves, p) if refined else [Node([i]) for i in range(len(leaves))]
    return leaves, nodes


def covers(subrecords: Records, chunk: Chunk) -> set[tuple[int, int]]:
    """All (x, y) of a chunk where knowing x reveals y: s(xy) = s(x) (#cover-problem)."""
    s = {t: sum(1 for r in subrecords if t in r) for t in chunk}
    return {
        (x, y)
        for x in chunk
        for y in chunk
        if x != y and s[x] > 0 and sum(1 for r in subrecords if x in r and y in r) == s[x]
    }


def split_covers(subrecords: Records, chunk: Chunk) -> list[Chunk]:
    """`safe`: until no cover remains, the most-covering code moves into a chunk of its own (tie: first code)."""
    rest, alone = list(chunk), []
    while found := covers(subrecords, tuple(rest)):
        most = min(rest, key=lambda y: (-sum(1 for _, c in found if c == y), y))
        rest.remove(most)
        alone.append((most,))
    return [tuple(rest), *alone]
