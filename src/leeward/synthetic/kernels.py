"""Kernels that draw code sets and visits; each patient has its own random stream, so results ignore chunking."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leeward.arrays import Int32s, Int64s, UInt64s
from leeward.compiled import njit

Bits: TypeAlias = Any
"""A uint64; typed loosely, because plain Python and Numba disagree on what shifting one gives."""


MAX_TRIES = 400
"""Random draws per patient; beyond, a code not yet held is taken instead."""

MAX_CONDITIONS = 3


class AliasTables(NamedTuple):
    """Tables of the codes and of the latent conditions; thresholds are fractions of 2**32. Condition g has the cells
    condition_first[g] … condition_first[g + 1] of the member table; `code_of_member` names their codes."""

    condition_threshold: UInt64s
    condition_alias: Int32s
    condition_first: Int64s
    member_threshold: UInt64s
    member_alias: Int32s
    code_of_member: Int32s
    code_threshold: UInt64s
    code_alias: Int32s


@njit(inner=True, inline="always")
def _mix(x: Bits) -> Bits:
    """The finalizer of splitmix64: a bijection of 64 bits without visible structure."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(inline="always")
def _draw(u: Bits, first: int, size: int, threshold: UInt64s, alias: Int32s) -> Any:
    """Draw from the alias table at `first` … `first + size`, using the 64 random bits `u`."""
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
    """Draw the code sets of `n` patients, starting at patient `first_patient` (0-based); returns lengths and values, a
    patient's values in the order drawn.

    Shares are fractions of 2**32, as are the cumulative distributions `length_upto` and `conditions_upto` (lengths and
    numbers of conditions, both from 1). `planted_patient` ascends: the patient that always holds code c (-1: none).
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


MOST_CONDITIONS = 4
MOST_CODES = 12
"""Codes of a visit, before those of traits."""

STEP = np.uint64(0x9E3779B97F4A7C15)
LOW = np.uint64(0xFFFFFFFF)


@njit
def draw_visits(
    key: Any,
    first_patient: int,
    visits_of: Int32s,
    traits: NDArray[np.uint8],
    trait_first: Int64s,
    trait_codes: Int32s,
    condition_share: Any,
    fall: Any,
    tables: AliasTables,
) -> tuple[Int32s, Int32s, Int32s]:
    """Draw rows (patient counted from `first_patient`, visit from 1, code), given each patient's number of visits.

    traits : uint8[n, traits], per patient; a trait's codes are `trait_codes[trait_first[t]:trait_first[t + 1]]`
        and recur in a third of the visits, at least in one.
    condition_share, fall : of 2**32; the chance that a code is of one of the patient's conditions, and that a visit has
        a further code.
    """
    condition_threshold, condition_alias = tables.condition_threshold, tables.condition_alias
    condition_first, code_of_member = tables.condition_first, tables.code_of_member
    member_threshold, member_alias = tables.member_threshold, tables.member_alias
    code_threshold, code_alias = tables.code_threshold, tables.code_alias
    n = visits_of.shape[0]
    capacity = 4 * int(visits_of.sum()) + 1024
    person = np.empty(capacity, np.int32)
    visit = np.empty(capacity, np.int32)
    code = np.empty(capacity, np.int32)
    held = np.empty(MOST_CONDITIONS, np.int64)
    here = np.empty(MOST_CODES + 64, np.int32)
    total = 0
    n_conditions = condition_threshold.shape[0]
    n_codes = code_threshold.shape[0]
    for i in range(n):
        counter = _mix(key ^ _mix(np.uint64(first_patient + i) * STEP + np.uint64(7)))
        counter += STEP
        n_held = 1 + np.int64(_mix(counter) % np.uint64(MOST_CONDITIONS))
        for g in range(n_held):
            counter += STEP
            held[g] = _draw(_mix(counter), 0, n_conditions, condition_threshold, condition_alias)
        for v in range(visits_of[i]):
            size = 0
            for t in range(traits.shape[1]):
                if traits[i, t] == 0:
                    continue
                counter += STEP
                u = _mix(counter)
                if v == 0 or (u & LOW) < np.uint64(1431655765):
                    span = trait_first[t + 1] - trait_first[t]
                    here[size] = trait_codes[
                        trait_first[t] + np.int64((u >> np.uint64(32)) % np.uint64(span))
                    ]
                    size += 1
            drawn = 0
            while drawn < MOST_CODES:
                counter += STEP
                which = _mix(counter)
                counter += STEP
                u = _mix(counter)
                drawn += 1
                if (which >> np.uint64(32)) < condition_share:
                    g = held[np.int64(which & LOW) % n_held]
                    start = condition_first[g]
                    member = _draw(u, start, condition_first[g + 1] - start, member_threshold, member_alias)
                    c = code_of_member[member]
                else:
                    c = np.int32(_draw(u, 0, n_codes, code_threshold, code_alias))
                new = True
                for j in range(size):
                    if here[j] == c:
                        new = False
                if new:
                    here[size] = c
                    size += 1
                counter += STEP
                if (_mix(counter) & LOW) >= fall:
                    break
            if total + size > capacity:
                capacity *= 2
                person = np.concatenate((person, np.empty_like(person)))
                visit = np.concatenate((visit, np.empty_like(visit)))
                code = np.concatenate((code, np.empty_like(code)))
            for j in range(size):
                person[total] = i
                visit[total] = v + 1
                code[total] = here[j]
                total += 1
    return person[:total].copy(), visit[:total].copy(), code[:total].copy()
