"""Alias tables, from which kernels draw codes, latent conditions and the codes of a condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from leeward.arrays import Float64s, Int32s, Int64s, UInt64s, offsets_of

ONE = 1 << 32


class AliasTables(NamedTuple):
    """Tables of the codes and of the latent conditions; thresholds are uint64, fractions of `ONE`.

    Members of condition g are cells condition_first[g] … condition_first[g + 1] of the member table; `code_of_member`
    names their codes.
    """

    condition_threshold: UInt64s
    condition_alias: Int32s
    condition_first: Int64s
    member_threshold: UInt64s
    member_alias: Int32s
    code_of_member: Int32s
    code_threshold: UInt64s
    code_alias: Int32s


def tables_of(weight: Float64s, members: Sequence[Int64s]) -> AliasTables:
    """The tables of codes with these shares (float64[codes]) and of conditions with these codes."""
    first = offsets_of([len(m) for m in members])
    of_members = [alias_table(weight[m], int(start)) for m, start in zip(members, first, strict=False)]
    return AliasTables(
        *alias_table(np.array([weight[m].sum() for m in members]), 0),
        first,
        np.concatenate([t for t, _ in of_members]),
        np.concatenate([a for _, a in of_members]),
        np.concatenate(members).astype(np.int32),
        *alias_table(weight, 0),
    )


def alias_table(weight: Float64s, offset: int) -> tuple[UInt64s, Int32s]:
    """Walker's alias table (Vose 1991): (thresholds of 2**32, alias cells counted from `offset`)."""
    n = len(weight)
    scaled = weight / weight.sum() * n
    threshold = np.full(n, ONE, np.uint64)
    alias = np.arange(n, dtype=np.int32) + np.int32(offset)
    small = [i for i in range(n) if scaled[i] < 1.0]
    large = [i for i in range(n) if scaled[i] >= 1.0]
    while small and large:
        low, high = small.pop(), large.pop()
        threshold[low] = int(scaled[low] * ONE)
        alias[low] = high + offset
        scaled[high] -= 1.0 - scaled[low]
        (small if scaled[high] < 1.0 else large).append(high)
    return threshold, alias
