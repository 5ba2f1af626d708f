"""The kernel that draws code sets: each patient from numbers of its own, so that chunks change nothing."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from leeward.arrays import Int32s, Int64s, UInt64s
from leeward.compiled import njit
from leeward.synthetic.alias import AliasTables

Bits: TypeAlias = Any
"""A uint64; typed loosely, because plain Python and Numba disagree on what shifting one gives."""


MAX_TRIES = 400
"""Draws of one patient that meet a code already held, before the next free code is taken instead."""

MAX_CONDITIONS = 3


@njit(inner=True, inline="always")
def _mix(x: Bits) -> Bits:
    """The finalizer of splitmix64: a bijection of 64 bits without visible structure."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(inline="always")
def _draw(u: Bits, first: int, size: int, threshold: UInt64s, alias: Int32s) -> Any:
    """One draw from the alias table at `first` … `first + size`, from the 64 random bits `u`."""
    cell = first + np.int64(((u >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))
    return cell if (u & np.uint64(0xFFFFFFFF)) < threshold[cell] else np.int64(alias[cell])


@njit
def draw_code_sets(
    key: Bits,
    first_patient: int,
    n: int,
    length_upto: UInt64s,
    conditions_upto: UInt64s,
    condition_share: Bits,
    tables: AliasTables,
    planted_patient: Int64s,
) -> tuple[Int32s, Int32s]:
    """The code sets of `n` patients from number `first_patient` (0-based) on.

    key, condition_share : uint64; shares are fractions of 2**32.
    length_upto, conditions_upto : uint64, cumulative distributions (of 2**32) of the length and of the number
        of conditions, both from 1.
    planted_patient : int64[codes] ascending, the patient that holds code c whatever is drawn (-1: none).

    Returns (lengths int32[n], values int32[total]); values of a patient in the order drawn.
    """
    condition_threshold, condition_alias = tables.condition_threshold, tables.condition_alias
    condition_first, code_of_member = tables.condition_first, tables.code_of_member
    member_threshold, member_alias = tables.member_threshold, tables.member_alias
    code_threshold, code_alias = tables.code_threshold, tables.code_alias
    n_codes = code_threshold.shape[0]
    n_conditions = condition_threshold.shape[0]
    cap = length_upto.shape[0]
    lengths = np.empty(n, np.int32)
    values = np.empty(n * 8 + n_codes + cap, np.int32)
    seen = np.full(n_codes, -1, np.int64)
    held = np.empty(MAX_CONDITIONS, np.int64)
    total = 0
    plant = np.searchsorted(planted_patient, first_patient)
    for i in range(n):
        patient = first_patient + i
        counter = _mix(key ^ _mix(np.uint64(patient) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)))
        counter += np.uint64(0x9E3779B97F4A7C15)
        u = _mix(counter)
        length = 1
        while length < cap and (u >> np.uint64(32)) >= length_upto[length - 1]:
            length += 1
        n_held = 1
        while n_held < MAX_CONDITIONS and (u & np.uint64(0xFFFFFFFF)) >= conditions_upto[n_held - 1]:
            n_held += 1
        for g in range(n_held):
            counter += np.uint64(0x9E3779B97F4A7C15)
            held[g] = _draw(_mix(counter), 0, n_conditions, condition_threshold, condition_alias)
        if total + n_codes + cap > values.shape[0]:
            grown = np.empty(values.shape[0] * 2 + n_codes + cap, np.int32)
            grown[:total] = values[:total]
            values = grown
        begin = total
        while plant < planted_patient.shape[0] and planted_patient[plant] == patient:
            seen[plant] = i
            values[total] = plant
            total += 1
            plant += 1
        tries = 0
        while total - begin < length:
            counter += np.uint64(0x9E3779B97F4A7C15)
            which = _mix(counter)
            counter += np.uint64(0x9E3779B97F4A7C15)
            u = _mix(counter)
            if tries < MAX_TRIES:
                if tries < MAX_TRIES // 2 and (which >> np.uint64(32)) < condition_share:
                    g = held[np.int64(which & np.uint64(0xFFFFFFFF)) % n_held]
                    first = condition_first[g]
                    member = _draw(u, first, condition_first[g + 1] - first, member_threshold, member_alias)
                    code = np.int64(code_of_member[member])
                else:
                    code = _draw(u, 0, n_codes, code_threshold, code_alias)
            else:
                code = np.int64(u % np.uint64(n_codes))
                while seen[code] == i:
                    code = (code + 1) % n_codes
            tries += 1
            if seen[code] != i:
                seen[code] = i
                values[total] = code
                total += 1
        lengths[i] = total - begin
    return lengths, values[:total].copy()
