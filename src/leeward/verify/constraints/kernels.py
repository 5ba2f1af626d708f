"""Patients and records with the same set of labels."""

# mypy: allow-untyped-defs
# Numba infers the types of a kernel from its arguments; the wrappers are typed.

from __future__ import annotations

import numpy as np

from leeward.compiled import njit

PARTS = 8
"""Keys are numbered in 2^8 parts: a part's table stays in a core's cache."""

MIXING = np.uint64(0x9E3779B97F4A7C15)


@njit(error_model="numpy")
def write_keys(offsets, values, image, bits, keys, place, pool, used):
    """Writes a key of each list's set of images, and returns how much of `pool` is used then.

    image : int32; a value whose image is below 0 vanishes. bits : images are below 2^bits.
    keys, place : int64[lists]. 0 for the empty set; a set of at most 62 bits is its own key; a larger one has a mixed
    key below 0, and its size and labels are in `pool` (int32[lists + values]) from `place` on.
    """
    most = 0
    for v in range(offsets.shape[0] - 1):
        most = max(most, offsets[v + 1] - offsets[v])
    labels = np.empty(most, np.int32)
    for v in range(offsets.shape[0] - 1):
        size = 0
        for i in range(offsets[v], offsets[v + 1]):
            label = image[values[i]]
            at = size
            while label >= 0 and at > 0 and labels[at - 1] >= label:
                at -= 1
            if label < 0 or (at < size and labels[at] == label):
                continue
            for j in range(size, at, -1):
                labels[j] = labels[j - 1]
            labels[at] = label
            size += 1
        if size * bits <= 62:
            keys[v] = size > 0
            for i in range(size):
                keys[v] = (keys[v] << bits) | labels[i]
            continue
        mixed = np.uint64(size)
        place[v], pool[used] = used, size
        for i in range(size):
            mixed = (mixed ^ np.uint64(labels[i] + 1)) * MIXING
            mixed ^= mixed >> np.uint64(29)
            pool[used + 1 + i] = labels[i]
        keys[v] = np.int64(mixed >> np.uint64(1)) | np.int64(-(2**63))
        used += 1 + size
    return used


@njit(error_model="numpy")
def number_sets(keys, place, pool):
    """int32: a number of each set of `write_keys`, 0 for the empty one; equal sets, equal numbers."""
    n = keys.shape[0]
    ends = np.zeros((1 << PARTS) + 1, np.int64)
    for i in range(n):
        ends[np.int64((np.uint64(keys[i]) * MIXING) >> np.uint64(64 - PARTS)) + 1] += 1
    table = np.empty(4 * max(ends) + 16, np.int32)
    for part in range(1 << PARTS):
        ends[part + 1] += ends[part]
    begin = ends[: 1 << PARTS].copy()
    order = np.empty(n, np.int32)
    for i in range(n):
        own = np.int64((np.uint64(keys[i]) * MIXING) >> np.uint64(64 - PARTS))
        order[begin[own]] = i
        begin[own] += 1
    known = keys[order]
    numbers = np.empty(n, np.int32)
    distinct = 0
    for part in range(1 << PARTS):
        room = 16
        while room < 2 * (ends[part + 1] - ends[part]):
            room *= 2
        table[:room] = -1
        for j in range(ends[part], ends[part + 1]):
            if known[j] == 0:
                numbers[order[j]] = 0
                continue
            at = np.int64((np.uint64(known[j]) * MIXING) >> np.uint64(20)) & (room - 1)
            while table[at] >= 0:
                other = table[at]
                same = known[other] == known[j]
                if same and known[j] < 0:
                    a, b = place[order[other]], place[order[j]]
                    for i in range(pool[a] + 1):
                        if pool[a + i] != pool[b + i]:
                            same = False
                            break
                if same:
                    numbers[order[j]] = numbers[order[other]]
                    break
                at = (at + 1) & (room - 1)
            if table[at] < 0:
                table[at] = j
                distinct += 1
                numbers[order[j]] = distinct
    return numbers
