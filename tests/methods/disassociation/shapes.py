"""Small data sets, and the fast result in the oracle's shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st
from tests.oracles import disassociation as oracle

from leeward.arrays import Int64s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.disassociation.pipeline import Disassociated, disassociate
from leeward.methods.disassociation.rules import Rules, Workers

RUNNING_EXAMPLE = """
296.00 296.01 296.02 834.0 944.01
296.00 296.01 296.02 692.71 695.10 944.01 401.0
296.00 296.02 692.71 695.10 834.0
296.00 296.01 692.71 401.0
296.00 296.01 296.02 692.71 695.10
296.03 295.04 404.00 480.1
294.10 296.03 834.0 944.01
294.10 295.04 296.03 480.1
294.10 295.04 404.00
294.10 295.04 296.03 834.0 944.01
"""
"""The paper's Fig. 1 as docs/methods/disassociation.md#worked-example transcribes it, r1 … r10."""

POLICY = {
    "u1": "294.10 295.04 296.00 296.01 296.02 296.03",
    "u2": "692.71 695.10",
    "u3": "401.0 404.00",
    "u4": "480.1",
    "u5": "834.0 944.01",
}


def running_example() -> list[tuple[str, ...]]:
    return [tuple(line.split()) for line in RUNNING_EXAMPLE.strip().splitlines()]


def cohort_of(records: list[tuple[str, ...]], vocabulary: str | None = None) -> Cohort:
    """Patients 0, 1, … with these codes."""
    rows = [(patient, code) for patient, codes in enumerate(records) for code in codes]
    domain = sorted({code for _, code in rows})
    events = pl.DataFrame(
        {
            "patient": [patient for patient, _ in rows],
            "code": pl.Series([code for _, code in rows], dtype=pl.Enum(domain)),
            "row": pl.Series(range(1, len(rows) + 1), dtype=pl.UInt32),
        }
    )
    return Cohort(events=events, vocabulary=vocabulary)


def flat(rows: oracle.Records) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
    return offsets, np.array([c for r in rows for c in sorted(r)], np.int32)


def sets_of(rows: oracle.Records, n_codes: int) -> CodeSets:
    """The records as the lens gives them; codes are named by their numbers."""
    offsets, values = flat(rows)
    return CodeSets(offsets, values, tuple(map(str, range(n_codes))), pl.Series(range(len(rows))))


def rules_of(p: oracle.Parameters, n_codes: int, **more: Any) -> Rules:
    constraint = np.full(n_codes, -1, np.int32)
    for code, u in p.constraint.items():
        constraint[code] = u
    sensitive = np.zeros(n_codes, np.bool_)
    sensitive[list(p.sensitive)] = True
    return Rules(
        k=p.k,
        m=p.m,
        constraint_of=constraint,
        n_constraints=int(constraint.max()) + 1,
        sensitive=sensitive,
        max_cluster=p.max_cluster,
        nested=p.nested,
        **more,
    )


def fast(rows: oracle.Records, n_codes: int, p: oracle.Parameters, threads: int = 1) -> Disassociated:
    return disassociate(sets_of(rows, n_codes), rules_of(p, n_codes), Workers(threads))


def shared_of(d: Disassociated) -> dict[int, dict[int, list[int]]]:
    """node → chunk → codes of the shared chunks."""
    found: dict[int, dict[int, set[int]]] = {}
    for node, code, chunk in zip(d.chunks.node, d.chunks.code, d.chunks.chunk, strict=True):
        if node >= d.leaves:
            found.setdefault(int(node), {}).setdefault(int(chunk), set()).add(int(code))
    return {node: {c: sorted(codes) for c, codes in chunks.items()} for node, chunks in found.items()}


def leaf_shapes(d: Disassociated) -> list[tuple[Any, ...]]:
    """(records, record chunks, item codes) of each leaf."""
    out = []
    for leaf in range(d.leaves):
        chunks: dict[int, list[int]] = {}
        items: set[int] = set()
        for i in range(d.chunks.at[leaf], d.chunks.at[leaf + 1]):
            if d.chunks.chunk[i] < 0:
                items.add(int(d.chunks.code[i]))
            elif d.chunks.node[i] == leaf:
                chunks.setdefault(int(d.chunks.chunk[i]), []).append(int(d.chunks.code[i]))
        records = tuple(int(r) for r in d.order[d.records.bounds[leaf] : d.records.bounds[leaf + 1]])
        out.append((records, tuple(tuple(chunks[c]) for c in sorted(chunks)), tuple(sorted(items))))
    return out


def items_left(d: Disassociated) -> Int64s:
    """The number of codes in each leaf's item chunk."""
    items = np.add.reduceat(d.chunks.chunk < 0, d.chunks.at[:-1], dtype=np.int64)
    return np.asarray(items, np.int64)


def tree_shapes(d: Disassociated) -> set[Any]:
    """The top clusters as nested sets of (children, shared chunks)."""
    shared, children = shared_of(d), {}
    for node, parent in enumerate(d.parent):
        children.setdefault(int(parent), []).append(node)

    def shape(node: int) -> Any:
        if node < d.leaves:
            return (node, ())
        chunks = tuple(tuple(sorted(shared[node][c])) for c in sorted(shared[node]))
        return (frozenset(shape(child) for child in children[node]), chunks)

    return {shape(node) for node in children.get(-1, [])}


def oracle_leaf_shapes(leaves: list[oracle.Leaf]) -> list[tuple[Any, ...]]:
    return [(tuple(leaf.ids), tuple(leaf.chunks), tuple(sorted(leaf.items))) for leaf in leaves]


def oracle_tree_shapes(nodes: list[oracle.Node]) -> set[Any]:
    def shape(node: oracle.Node) -> Any:
        below = frozenset(shape(c) for c in node.children) if node.children else node.leaves[0]
        return (below, tuple(node.shared))

    return {shape(node) for node in nodes}


@st.composite
def data_sets(
    draw: st.DrawFn, nested: bool = False, most: int = 40
) -> tuple[oracle.Records, int, oracle.Parameters]:
    """Records that share codes often enough for chunks, joins and the empty-item-chunk condition to occur."""
    n_codes = draw(st.integers(2, 12))
    k = draw(st.integers(2, 4))
    patterns = draw(
        st.lists(st.frozensets(st.integers(0, n_codes - 1), min_size=1, max_size=5), min_size=1, max_size=6)
    )
    record = st.sampled_from(patterns) | st.frozensets(st.integers(0, n_codes - 1), min_size=1, max_size=6)
    rows = draw(st.lists(record, min_size=k, max_size=most))
    constraint = draw(st.dictionaries(st.integers(0, n_codes - 1), st.integers(0, 2), max_size=n_codes))
    p = oracle.Parameters(
        k,
        draw(st.integers(1, 5)),
        draw(st.sampled_from([2 * k, k + 1, 4 * k])),
        constraint,
        draw(st.frozensets(st.integers(0, n_codes - 1), max_size=1)),
        nested,
    )
    return rows, n_codes, p
