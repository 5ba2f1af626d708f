"""The kernel that draws a patient's visits: each patient from numbers of its own, so that chunks change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leeward.arrays import Int32s, Int64s
from leeward.compiled import njit
from leeward.synthetic.alias import AliasTables
from leeward.synthetic.kernels import _draw, _mix

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
    """(row's patient counted from `first_patient`, visit from 1, code) of patients with the given numbers of visits.

    traits : uint8[n, traits], who has which trait; a trait's codes are `trait_codes[trait_first[t]:trait_first[t + 1]]`
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
                person, visit, code = (
                    _grown(person, capacity),
                    _grown(visit, capacity),
                    _grown(code, capacity),
                )
            for j in range(size):
                person[total] = i
                visit[total] = v + 1
                code[total] = here[j]
                total += 1
    return person[:total].copy(), visit[:total].copy(), code[:total].copy()


@njit
def _grown(array: Int32s, capacity: int) -> Int32s:
    larger = np.empty(capacity, np.int32)
    larger[: array.shape[0]] = array
    return larger
