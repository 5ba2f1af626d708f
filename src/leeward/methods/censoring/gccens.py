"""Greedy Code Censoring (Tamersoy 2011, Algorithm 1) without its loop.

Two facts make the loop go away. A code at its cap c is held by exactly those records of the sample that had at least c
mentions of it, so |r_o| of step 11 is the support of (code, c) *in the sample*, whatever was censored before; and it
can only grow as c falls. So the algorithm censors the (code, level) pairs in one fixed order, by rising support, and
neither the population nor k has a say in it. They only decide where it stops: at the first place where the last
record becomes safe. That place is the furthest of the places where each record by itself does, and a record is safe
from its own place on, so a record needs a second look only if it is not safe where those before it have stopped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leeward.analysis.containment import Index, Multisets, Population, largest_parts
from leeward.analysis.containment.index import levels_of
from leeward.analysis.containment.largest import count_drops, drop_order
from leeward.arrays import Int64s, UInt32s, offsets_of
from leeward.errors import BadInput
from leeward.methods.censoring.release import Outcome

LOOKED_AT_ONCE = 64


@dataclass(frozen=True)
class Censored:
    """The sample as GCCens leaves it. `caps`: int64[codes], at the end. `picked`: the code of each round that removed
    something, in order. `counted`: how many multisets were counted in the population."""

    kept: Multisets
    caps: Int64s
    picked: Int64s
    counted: int


def censor(population: Population, capped: Multisets, k: int) -> Censored:
    """GCCens on records that respect their caps already (step 1); k must not exceed the population."""
    caps = highest(capped, len(population.caps))
    rank, codes = censoring_order(capped, caps)
    distinct, _ = capped.distinct()
    stop, counted = _where_all_are_safe(population, distinct, caps, rank, k)
    final = caps_after(rank, caps, stop)
    return Censored(capped.cap(final), final, codes[:stop], counted)


def censoring_order(capped: Multisets, caps: Int64s) -> tuple[Int64s, Int64s]:
    """The place of each (code, level) in the order of censoring, flat by code and level, and the code at each place.
    Ties: the lower code first, as Algorithm 1's argmin; a code that ties with itself stays the lowest."""
    starts = offsets_of(caps)
    _, item = levels_of(capped, starts)
    support = np.bincount(item, minlength=int(starts[-1]))
    code = np.repeat(np.arange(len(caps)), caps)
    order = np.lexsort((-np.arange(len(code)), code, support))
    rank = np.empty(len(code), np.int64)
    rank[order] = np.arange(len(code))
    return rank, code[order]


def caps_after(rank: Int64s, caps: Int64s, stop: int) -> Int64s:
    """The caps once the first `stop` pairs are censored, int64[codes]."""
    kept = np.concatenate([[0], np.cumsum(rank >= stop)])
    starts = offsets_of(caps)
    return np.asarray(kept[starts[1:]] - kept[starts[:-1]], np.int64)


def _where_all_are_safe(
    population: Population, records: Multisets, caps: Int64s, rank: Int64s, k: int
) -> tuple[int, int]:
    """The first place in the order after which every record is safe, and how many multisets were counted for it."""
    step = max(len(records), 1) if population.asks_at_once else LOOKED_AT_ONCE
    stop = counted = 0
    for first in range(0, len(records), step):
        part = records.take(np.arange(first, min(first + step, len(records)))).cap(
            caps_after(rank, caps, stop)
        )
        if not population.asks_at_once:
            counted += len(part)
            part = part.take(np.flatnonzero(population.counts(part, limit=k) < k))
        if len(part):
            counted += int(part.sizes().sum()) + len(part)
            stop = max(stop, _stop_of(population, part, caps, rank, k))
    return stop, counted


def _stop_of(population: Population, records: Multisets, caps: Int64s, rank: Int64s, k: int) -> int:
    """The furthest place at which one of these records becomes safe."""
    drops = count_drops(population, records, drop_order(records, caps, rank), k)
    owner, item = levels_of(records, offsets_of(caps))
    ranks = rank[item][np.lexsort((rank[item], owner))]
    sizes = records.sizes()
    last = (np.cumsum(sizes) - sizes + drops - 1)[drops > 0]
    return int(ranks[last].max()) + 1 if len(last) else 0


def highest(records: Multisets, codes: int) -> Int64s:
    highest = np.zeros(codes, np.int64)
    np.maximum.at(highest, records.values, records.counts)
    return highest


def raise_caps(population: Index, capped: Multisets, k: int) -> Censored:
    """Scope `raise`: the caps rise from nothing, the codes of most records first, and what fails is passed over
    (docs/methods/censoring.md#raised-caps).

    Each cap rises while every record of the sample stays contained in k people; k must not exceed the population. The
    order is GCCens's, backwards. Records that show the same form a class and share the list of people who contain what
    they show; a cap may rise when that list keeps k people in every class where some record would show more.
    """
    distinct, _ = capped.distinct()
    caps = highest(capped, len(population.caps))
    rank, code_at = censoring_order(capped, caps)
    starts = offsets_of(caps)
    owner, item = levels_of(distinct, starts)
    by_item = np.argsort(item, kind="stable")
    holders, bounds = owner[by_item], offsets_of(np.bincount(item, minlength=int(starts[-1])))
    item_at = np.argsort(rank)[::-1]
    level = item_at - starts[code_at[::-1]] + 1
    final = np.zeros(len(caps), np.int64)
    class_of = np.zeros(len(distinct), np.int64)
    people: list[UInt32s] = [np.arange(population.n, dtype=np.uint32)]
    members = [len(distinct)]
    has = np.zeros(population.n, np.bool_)
    counted = 0
    while True:
        before = int(final.sum())
        for i, c, at in zip(item_at.tolist(), code_at[::-1].tolist(), level.tolist(), strict=True):
            if at != final[c] + 1:
                continue
            those = population.owners(np.array([c], np.int32), np.array([at], np.int32))
            has[those] = True
            records = holders[bounds[i] : bounds[i + 1]]
            rising, place, sizes = np.unique(class_of[records], return_inverse=True, return_counts=True)
            smaller: dict[int, UInt32s] = {}
            for number in sorted(rising.tolist(), key=lambda number: len(people[number])):
                smaller[number] = people[number][has[people[number]]]
                counted += 1
                if len(smaller[number]) < k:
                    break
            else:
                class_of[records] = len(people) + place
                for number, size in zip(rising.tolist(), sizes.tolist(), strict=True):
                    people.append(smaller[number])
                    members.append(size)
                    members[number] -= size
                    if not members[number]:  # nobody shows just that any more
                        people[number] = people[number][:0]
                final[c] = at
            has[those] = False
        if int(final.sum()) == before:
            return Censored(capped.cap(final), final, code_at[:0], counted)


def censor_records(population: Population, originals: Multisets, caps: Int64s, k: int, scope: str) -> Outcome:
    """Censor the originals to a k-map; `k` must not exceed the population."""
    capped = originals.cap(caps)
    if scope in ("global", "raise"):
        if scope == "global":
            result = censor(population, capped, k)
        elif isinstance(population, Index):
            result = raise_caps(population, capped, k)
        else:
            raise BadInput("`scope: raise` needs the population in memory: give a file or a cohort.")
        facts = {
            "rounds": len(result.picked),
            "counted_multisets": result.counted,
            "capped_mentions": int(capped.sizes().sum()),
        }
        return Outcome(result.kept, caps, result.caps, facts, notice_emptied(originals, result.kept))
    parts = largest_parts(population, capped, k)
    greedy = int((~parts.exact).sum())
    facts = {
        "exact_records": int(parts.exact.sum()),
        "greedy_records": greedy,
        "capped_mentions": int(capped.sizes().sum()),
    }
    notices = notice_emptied(originals, parts.kept)
    if greedy:
        notices += (
            (
                f"{greedy:,} records were too large for the exact search and keep the best part found; "
                "custody/data/records.parquet says which."
            ),
        )
    return Outcome(parts.kept, caps, caps, facts, notices, parts.exact)


def notice_emptied(originals: Multisets, kept: Multisets) -> tuple[str, ...]:
    emptied = int(np.count_nonzero((kept.sizes() == 0) & (originals.sizes() > 0)))
    return (f"{emptied:,} of {len(kept):,} records are released without any code.",) if emptied else ()
