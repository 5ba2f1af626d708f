"""Kernels of `measure.risk`: the m-subsets of every record as 64-bit keys."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]


@njit(cache=True, nogil=True)
def mix(x: Any) -> Any:
    """SplitMix64's finalizer: a bijection of 64-bit words that looks random."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def subset_keys(offsets: Array, values: Array, m: int, base: Any, exact: bool, salt: Any, threshold: Any, keys: Array, owners: Array) -> Any:
    """Keys of the m-subsets of every record, written to `keys` (and the record to `owners` unless that is empty).

    `exact`: the subset as a number in base `base`; else a 64-bit hash. Only subsets whose two smallest codes (one,
    for m = 1) hash below `threshold` are kept: the same ones in every record, so that their supports stay whole.
    Returns how many; more than fit are counted, not written."""
    found = 0
    chosen = np.zeros(m + 1, np.int64)
    key = np.zeros(m + 1, np.uint64)
    lead = min(m, 2)
    for r in range(len(offsets) - 1):
        first = offsets[r]
        n = offsets[r + 1] - first
        if n < m:
            continue
        depth = 0
        chosen[0] = 0
        while depth >= 0:
            if chosen[depth] > n - (m - depth):
                depth -= 1
                if depth >= 0:
                    chosen[depth] += 1
                continue
            before = key[depth - 1] if depth > 0 else np.uint64(0)
            code = np.uint64(values[first + chosen[depth]])
            if exact:
                key[depth] = before * base + code
            else:
                key[depth] = mix(before ^ mix(code + np.uint64(0x9E3779B97F4A7C15) * np.uint64(depth + 1)))
            if depth + 1 == lead and mix(key[depth] ^ salt) > threshold:
                chosen[depth] += 1
                continue
            if depth + 1 == m:
                if found < len(keys):
                    keys[found] = key[depth]
                    if len(owners):
                        owners[found] = r
                found += 1
                chosen[depth] += 1
            else:
                chosen[depth + 1] = chosen[depth] + 1
                depth += 1
    return found


@njit(cache=True, nogil=True)
def run_lengths(ordered: Array, k: int) -> Any:
    """(runs, runs of one, runs shorter than k, occurrences in all) of sorted keys, and int64[64]: runs by floor of
    the binary logarithm of their length."""
    runs = 0
    ones = 0
    short = 0
    by_size = np.zeros(64, np.int64)
    i = 0
    while i < len(ordered):
        j = i + 1
        while j < len(ordered) and ordered[j] == ordered[i]:
            j += 1
        length = j - i
        runs += 1
        ones += np.int64(length == 1)
        short += np.int64(length < k)
        size = 0
        while length > 1:
            length >>= 1
            size += 1
        by_size[size] += 1
        i = j
    return runs, ones, short, by_size


@njit(cache=True, nogil=True)
def rarest_of_owner(ordered: Array, owners: Array, n: int) -> Any:
    """Smallest run that holds a key of each owner, int64[n]; the largest integer for owners without keys."""
    smallest = np.full(n, np.int64(2**62), np.int64)
    i = 0
    while i < len(ordered):
        j = i + 1
        while j < len(ordered) and ordered[j] == ordered[i]:
            j += 1
        for t in range(i, j):
            smallest[owners[t]] = min(smallest[owners[t]], j - i)
        i = j
    return smallest


@njit(cache=True, nogil=True)
def record_keys(offsets: Array, values: Array) -> Any:
    """Two 64-bit hashes of each record's whole code set."""
    out = np.zeros((len(offsets) - 1, 2), np.uint64)
    for r in range(len(offsets) - 1):
        a = np.uint64(0x243F6A8885A308D3)
        b = np.uint64(0x13198A2E03707344)
        for i in range(offsets[r], offsets[r + 1]):
            a = mix(a ^ np.uint64(values[i] + 1))
            b = mix(b + mix(np.uint64(values[i]) ^ np.uint64(0xA4093822299F31D0)))
        out[r, 0] = a
        out[r, 1] = b
    return out
