"""Where each code of each cluster is published: record chunk, shared chunk of a joint cluster, or item chunk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leeward.compiled import njit
from leeward.methods.disassociation.pipeline import Disassociated


@dataclass(frozen=True)
class Layout:
    """The published structure, aligned to `Disassociated.leaf_codes`.

    node : int32, the node whose chunk holds the code: the leaf itself or a joint cluster above it
    chunk : int32, the chunk's number inside that node; -1: the leaf's item chunk
    below_at, below : the leaves below node j are `below[below_at[j]:below_at[j + 1]]`, ascending
    n_chunks : int32[nodes], record or shared chunks of each node
    records : int64[nodes], records below each node
    """

    node: NDArray[np.int32]
    chunk: NDArray[np.int32]
    below_at: NDArray[np.int64]
    below: NDArray[np.int32]
    n_chunks: NDArray[np.int32]
    records: NDArray[np.int64]


def layout_of(d: Disassociated, n_codes: int) -> Layout:
    """Follow every item-chunk code up the joint clusters to the shared chunk that took it, if any did."""
    nodes = len(d.shared.parent)
    key = d.shared.shared_node * n_codes + d.shared.shared_code
    by_key = np.argsort(key, kind="stable")
    first_key = np.searchsorted(d.shared.shared_node[by_key], np.arange(nodes + 1))
    node, chunk = _place(
        d.offsets, d.leaf_offsets, d.leaf_codes, d.leaf_chunk, d.leaf_n_codes, d.shared.parent,
        first_key, d.shared.shared_code[by_key], d.shared.shared_chunk[by_key],
    )  # fmt: skip
    below_at, below = _leaves_below(d.shared.parent, len(d.leaf_n_codes))
    n_chunks = np.zeros(nodes, np.int32)
    n_chunks[: len(d.leaf_n_chunks)] = d.leaf_n_chunks
    np.maximum.at(n_chunks, d.shared.shared_node, d.shared.shared_chunk + 1)
    sizes = np.diff(d.leaf_offsets)[below]
    total = np.concatenate([[0], np.cumsum(sizes)])
    return Layout(node, chunk, below_at, below, n_chunks, total[below_at[1:]] - total[below_at[:-1]])


@njit
def _place(
    offsets: NDArray[np.int64],
    leaf_offsets: NDArray[np.int64],
    leaf_codes: NDArray[np.int32],
    leaf_chunk: NDArray[np.int32],
    leaf_n_codes: NDArray[np.int32],
    parent: NDArray[np.int64],
    first_key: NDArray[np.int64],
    shared_code: NDArray[np.int32],
    shared_chunk: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    node = np.full(len(leaf_codes), -1, np.int32)
    chunk = np.full(len(leaf_codes), -1, np.int32)
    for leaf in range(len(leaf_n_codes)):
        base = offsets[leaf_offsets[leaf]]
        for i in range(base, base + leaf_n_codes[leaf]):
            node[i] = leaf
            chunk[i] = leaf_chunk[i]
            if chunk[i] >= 0:
                continue
            above = parent[leaf]
            while above >= 0:
                lo, hi = first_key[above], first_key[above + 1]
                at = lo + np.searchsorted(shared_code[lo:hi], leaf_codes[i])
                if at < hi and shared_code[at] == leaf_codes[i]:
                    node[i] = above
                    chunk[i] = shared_chunk[at]
                    break
                above = parent[above]
    return node, chunk


@njit
def _leaves_below(parent: NDArray[np.int64], leaves: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    nodes = len(parent)
    at = np.zeros(nodes + 1, np.int64)
    for leaf in range(leaves):
        node = leaf
        while node >= 0:
            at[node + 1] += 1
            node = parent[node]
    for j in range(nodes):
        at[j + 1] += at[j]
    fill = at[:-1].copy()
    below = np.empty(at[nodes], np.int32)
    for leaf in range(leaves):
        node = leaf
        while node >= 0:
            below[fill[node]] = leaf
            fill[node] += 1
            node = parent[node]
    return at, below
