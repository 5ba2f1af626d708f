"""Kernels of the enforcement step: visit sets that too few patients hold become smaller ones, or climb."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leeward.compiled import njit
from leeward.methods.visits.kernels.sets import FREE, Hashes, Ints, Longs, fill_table, slot

DEAD = -1
"""Holders of a set whose visits have all become another set."""


class Sets(NamedTuple):
    """Distinct sets, one entry a set, with room for further ones.

    content, starts, lengths : the codes of set s, ascending, are content[starts[s]:starts[s] + lengths[s]].
    hashes : of its codes. people : patients who hold it (DEAD: gone), at most k where it is safe.
    became : the set that a dead one turned into (-2: empty).
    """

    content: Ints
    starts: Longs
    lengths: Ints
    hashes: Hashes
    people: Ints
    became: Ints


class Lists(NamedTuple):
    """The holders of the sets that too few hold, as linked lists: `patient[e]` has the set in `times[e]` visits.

    head : the first entry of each set, -1 for none. after : the entry that follows.
    """

    head: Ints
    after: Ints
    patient: Ints
    times: Ints


class Codes(NamedTuple):
    """The codes of each patient: `times[e]` visits with `codes[e]`, starts[p] <= e < starts[p + 1], codes ascending.

    frequency : patients with each code.
    """

    starts: Longs
    codes: Ints
    times: Ints
    frequency: Longs


@njit
def list_holders(set_of: Ints, patient_offsets: Longs, count: Ints, k: int) -> tuple[Ints, Ints, Ints, Ints]:
    """The holders of every set with fewer than k: (head of each set, next, patient, visits), linked lists."""
    head = np.full(count.shape[0], -1, np.int32)
    entries = 0
    for s in range(count.shape[0]):
        if count[s] < k:
            entries += count[s]
    after = np.empty(entries, np.int32)
    patient = np.empty(entries, np.int32)
    times = np.empty(entries, np.int32)
    used = 0
    for p in range(patient_offsets.shape[0] - 1):
        for v in range(patient_offsets[p], patient_offsets[p + 1]):
            s = set_of[v]
            if s < 0 or count[s] >= k:
                continue
            e = head[s]
            if e >= 0 and patient[e] == p:
                times[e] += 1
                continue
            patient[used] = p
            times[used] = 1
            after[used] = e
            head[s] = used
            used += 1
    return head, after, patient, times


@njit
def count_codes(patient_offsets: Longs, offsets: Longs, values: Ints, up: Ints) -> tuple[Longs, Ints, Ints]:
    """Each patient's codes and, for every one that can climb, the node above: (offsets, codes, visits with it)."""
    n = patient_offsets.shape[0] - 1
    starts = np.zeros(n + 1, np.int64)
    capacity = values.shape[0] + 16
    codes = np.empty(capacity, np.int32)
    times = np.empty(capacity, np.int32)
    total = 0
    for p in range(n):
        begin, end = offsets[patient_offsets[p]], offsets[patient_offsets[p + 1]]
        wide = np.empty(2 * (end - begin), np.int64)
        size = 0
        for i in range(begin, end):
            wide[size] = np.int64(values[i]) * 2 + 1
            size += 1
            if up[values[i]] >= 0:
                wide[size] = np.int64(up[values[i]]) * 2
                size += 1
        part = np.sort(wide[:size])
        if total + size > capacity:
            capacity = 2 * capacity + size
            grown_codes = np.empty(capacity, np.int32)
            grown_codes[:total] = codes[:total]
            codes = grown_codes
            grown_times = np.empty(capacity, np.int32)
            grown_times[:total] = times[:total]
            times = grown_times
        previous = np.int64(-1)
        for i in range(size):
            code = part[i] // 2
            if code != previous:
                codes[total] = code
                times[total] = 0
                total += 1
                previous = code
            times[total - 1] += part[i] & 1
        starts[p + 1] = total
    return starts, codes[:total].copy(), times[:total].copy()


@njit
def count_patients(codes: Ints, times: Ints, labels: int) -> Longs:
    """Patients who hold each label in at least one visit."""
    found = np.zeros(labels, np.int64)
    for i in range(codes.shape[0]):
        if times[i] > 0:
            found[codes[i]] += 1
    return found


@njit(inline="always")
def _entry(codes: Ints, starts: Longs, p: int, c: int) -> Any:
    """Where patient p's count of code c is."""
    low, high = starts[p], starts[p + 1]
    while low < high:
        middle = (low + high) >> 1
        if codes[middle] < c:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def _replace_code(content: Ints, start: int, length: int, place: int, node: int, out: Ints) -> int:
    """Write the set without its code at `place`, with `node` instead (none if -1), ascending; return its length."""
    size = 0
    pending = node >= 0
    for i in range(length):
        c = content[start + i]
        if pending and node <= c:
            out[size] = node
            size += 1
            pending = False
            if c == node:
                continue
        if i == place:
            continue
        out[size] = c
        size += 1
    if pending:
        out[size] = node
        size += 1
    return size


@njit
def _find(table: Ints, known: Sets, h: Any, wanted: Ints, size: int) -> int:
    """The number of a set, or -1."""
    content, starts, lengths, hashes = known.content, known.starts, known.lengths, known.hashes
    mask = np.uint64(table.shape[0] - 1)
    place = slot(h, mask)
    while True:
        s = table[place]
        if s == FREE:
            return -1
        if hashes[s] == h and lengths[s] == size:
            same = True
            for i in range(size):
                if content[starts[s] + i] != wanted[i]:
                    same = False
                    break
            if same:
                return s
        place = (place + 1) & np.int64(mask)


@njit
def _count_union(lists: Lists, s: int, t: int) -> int:
    """Distinct patients who hold s or t."""
    head, after, patient = lists.head, lists.after, lists.patient
    found = 0
    e = head[t]
    while e >= 0:
        found += 1
        e = after[e]
    e = head[s]
    while e >= 0:
        other = head[t]
        while other >= 0 and patient[other] != patient[e]:
            other = after[other]
        if other < 0:
            found += 1
        e = after[e]
    return found


@njit
def enforce_bucket(
    chosen: Ints,
    k: int,
    relative: bool,
    up: Ints,
    of_code: Hashes,
    table: Ints,
    known_sets: Sets,
    lists: Lists,
    held_by: Codes,
    sets: int,
    used: int,
) -> tuple[int, int, int]:
    """One step for each set of `chosen` (equally many codes, equally many that climb; in order) that still has too few.

    All visits equal to the set s lose a code c, or have the node above it in its place. The code is the one with the
    fewest violating sets after; then one that leaves no new node behind before one that climbs; then the one that the
    fewest patients lose altogether (`relative`: as a share of its patients); then the lowest frequency; then the
    smallest code.

    Arrays of sets have room for len(chosen) further ones, `content` for their codes.
    Returns (sets, entries of `content` used, steps).
    """
    content, starts, lengths, hashes, count, became = known_sets
    head, after, patient, times = lists
    held_starts, held_codes, held_times, frequency = held_by
    trial = np.empty(0, np.int32)
    best_set = np.empty(0, np.int32)
    steps = 0
    for at in range(chosen.shape[0]):
        s = chosen[at]
        if count[s] >= k or count[s] == DEAD:
            continue
        steps += 1
        length, start = lengths[s], starts[s]
        if trial.shape[0] < length + 1:
            trial = np.empty(length + 1, np.int32)
            best_set = np.empty(length + 1, np.int32)
        best = -1
        best_change, best_climbs, best_loss, best_held = 9, False, np.int64(0), np.int64(0)
        best_size, best_known = 0, -1
        best_hash = np.uint64(0)
        for i in range(length):
            c = content[start + i]
            node = up[c]
            size = _replace_code(content, start, length, i, node, trial)
            h = hashes[s] - of_code[c]
            if node >= 0 and size == length:
                h += of_code[node]
            known = -1
            change = -1
            if size > 0:
                known = _find(table, known_sets, h, trial, size)
                if known < 0:
                    change = 0
                elif count[known] < k and _count_union(lists, s, known) >= k:
                    change = -2
            if change > best_change:
                continue
            loss = np.int64(0)
            e = head[s]
            while e >= 0:
                if held_times[_entry(held_codes, held_starts, patient[e], c)] == times[e]:
                    loss += 1
                e = after[e]
            climbs = node >= 0 and size == length
            held = frequency[c]
            better = change < best_change
            if not better and climbs != best_climbs:
                better = best_climbs
            elif not better:
                mine, theirs = (loss * best_held, best_loss * held) if relative else (loss, best_loss)
                better = bool(mine < theirs or (mine == theirs and held < best_held))
            if better:
                best = i
                best_change, best_climbs, best_loss, best_held = change, climbs, loss, held
                best_size, best_known, best_hash = size, known, h
                best_set[:size] = trial[:size]
        c = content[start + best]
        node = up[c]
        gained = node >= 0 and best_size == length
        e = head[s]
        while e >= 0:
            p = patient[e]
            place = _entry(held_codes, held_starts, p, c)
            held_times[place] -= times[e]
            if held_times[place] == 0:
                frequency[c] -= 1
            if gained:
                place = _entry(held_codes, held_starts, p, node)
                if held_times[place] == 0:
                    frequency[node] += 1
                held_times[place] += times[e]
            e = after[e]
        t = best_known
        if best_size == 0:
            became[s] = -2
        elif t < 0:
            t = sets
            starts[t], lengths[t], hashes[t] = used, best_size, best_hash
            content[used : used + best_size] = best_set[:best_size]
            used += best_size
            count[t], head[t], became[t] = count[s], head[s], t
            sets += 1
            fill_table(table, hashes, t, t + 1)
            became[s] = t
        else:
            became[s] = t
            if count[t] < k:
                together = _count_union(lists, s, t)
                if together < k:
                    _merge_lists(lists, s, t)
                count[t] = together
        count[s] = DEAD
    return sets, used, steps


@njit(inner=True)
def _merge_lists(lists: Lists, s: int, t: int) -> None:
    """Put the holders of s into the list of t."""
    head, after, patient, times = lists
    e = head[s]
    while e >= 0:
        following = after[e]
        other = head[t]
        while other >= 0 and patient[other] != patient[e]:
            other = after[other]
        if other >= 0:
            times[other] += times[e]
        else:
            after[e] = head[t]
            head[t] = e
        e = following


@njit
def follow(set_of: Ints, became: Ints) -> Ints:
    """The last set of each visit, -1 where nothing is left."""
    found = np.empty(set_of.shape[0], np.int32)
    for v in range(set_of.shape[0]):
        s = set_of[v]
        while s >= 0 and became[s] != s:
            s = became[s]
        found[v] = s if s >= 0 else -1
    return found


@njit
def spread(set_of: Ints, starts: Longs, lengths: Ints, content: Ints) -> tuple[Longs, Ints]:
    """(offsets, values) of visits by the sets that they have."""
    n = set_of.shape[0]
    offsets = np.zeros(n + 1, np.int64)
    for v in range(n):
        offsets[v + 1] = offsets[v] + (lengths[set_of[v]] if set_of[v] >= 0 else 0)
    values = np.empty(offsets[n], np.int32)
    for v in range(n):
        if set_of[v] >= 0:
            begin = starts[set_of[v]]
            values[offsets[v] : offsets[v + 1]] = content[begin : begin + lengths[set_of[v]]]
    return offsets, values
