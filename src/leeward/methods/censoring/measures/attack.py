"""An attacker who knows the rule and the whole population, and that a sample's record is a person's full record.

The k-map counts the people who *contain* a released record. Whoever knows the rule can do more: apply it to each of
them and keep those whose record it turns into exactly the released one. What is left are the *consistent owners*.

`scope: global`, `raise`
    Everybody is cut at the final caps, so the consistent owners are those whose record, cut there, equals the release.
`scope: groups`
    The rule is carried out for the whole population; the consistent owners are those whom it publishes alike.
`scope: record`
    Each record keeps its largest part shared by k people. Most candidates fall by a simple test: if one mention more
    could have been shown for them (k people have that too), the rule would have shown it. For those left the rule is
    carried out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.containment import Index, Multisets, largest_parts
from leeward.arrays import Bools, Int32s, Int64s
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.methods.censoring import groups
from leeward.methods.censoring.measures.records import Inside
from leeward.methods.censoring.parameters import MOST_MENTIONS
from leeward.randomness import Randomness
from leeward.release import Release

MOST_ATTACKED = 500
"""Different released records attacked by default, drawn at random: each costs a look at all its candidates."""


def attack(
    release: Release,
    cohort: Cohort,
    population: Cohort,
    released: Multisets,
    most: int | None = MOST_ATTACKED,
    seed: int = 0,
    inside: Inside | None = None,
) -> dict[str, Any]:
    """Consistent owners of `most` different released records drawn with `seed`; None attacks them all. `inside`: the
    classes of demographics; the attacker knows them, so the owners are among those who fit the class."""
    sample, everyone = cohort.code_counts(), population.code_counts()
    people = Multisets(everyone.offsets, everyone.values, everyone.counts)
    place = np.searchsorted(everyone.codes, sample.codes).astype(np.int32)
    shown = Multisets(released.offsets, place[released.values], released.counts)
    parts: list[tuple[int | None, Int64s, Multisets]] = [(None, np.arange(len(shown)), people)]
    if inside is not None:
        parts = [
            (number, np.flatnonzero(inside.of_record == number), people.take(fitting))
            for number, fitting in enumerate(inside.by_rule or inside.people)
        ]
    owners, exact = [], True
    for number, records, candidates in parts:
        caps = population_caps(release, sample.codes, everyone.codes, sample.most(), everyone.most(), number)
        index = Index(candidates.cap(caps), np.maximum(caps, 1))
        wanted = None if most is None else -(-most * len(records) // max(1, len(shown)))
        found, sure = _of_records(release, index, shown.take(records), wanted, seed)
        owners.append(found)
        exact &= sure
    k = int(release.guarantee["k"])
    return _summary(release.parameters.get("scope"), np.concatenate(owners), exact, k)


def _of_records(
    release: Release, index: Index, shown: Multisets, most: int | None, seed: int
) -> tuple[Int64s, bool]:
    """The consistent owners of records that show one of at most `most` different lists, and whether all are exact."""
    distinct, number = shown.distinct()
    chosen = np.arange(len(distinct))
    if most is not None and most < len(distinct):
        chosen = np.sort(Randomness.of(seed).stream("attack").choice(len(distinct), most, replace=False))
    k, exact, asked = int(release.guarantee["k"]), True, distinct.take(chosen)
    scope = release.parameters.get("scope")
    if scope == "record":
        owners, exact = _by_record_rule(index, asked, k)
    else:  # by the public rule, or all cut at the final caps
        everyone = index.records()
        owners = _alike(groups.publish(everyone, index.caps, k)[0] if scope == "groups" else everyone, asked)
    of_distinct = np.full(len(distinct), -1, np.int64)
    of_distinct[chosen] = owners
    of_records = of_distinct[number]
    return of_records[of_records >= 0], exact


def population_caps(
    release: Release,
    sample: tuple[str, ...],
    codes: tuple[str, ...],
    sample_most: Int64s,
    most: Int64s,
    number: int | None = None,
) -> Int64s:
    """The caps under which the rule acts on the population, int64[codes]: the final ones where all (of the class
    `number`) are cut alike."""
    scope, given, rest = map(release.parameters.get, ("scope", "caps", "cap"))
    known, others = dict(given or {}), int(rest or 0)
    if scope not in ("groups", "record"):
        final = release.custody_table("caps")
        if final is None:
            raise BadInput("this release has no custody/data/caps.parquet, which holds the final caps.")
        final = final if number is None else final.filter(pl.col("class") == number)
        known, others = dict(final.select("code", "final_cap").iter_rows()), 0
    elif given is None and rest is None:
        known = dict(zip(sample, sample_most.tolist(), strict=True)) if scope == "record" else {}
        others = MOST_MENTIONS
    return np.minimum(most, np.array([known.get(code, others) for code in codes], np.int64))


def _alike(records: Multisets, shown: Multisets) -> Int64s:
    people, number = records.distinct()
    sizes = np.bincount(number, minlength=len(people))
    together, place = Multisets.together([people, shown]).distinct()
    held = np.zeros(len(together), np.int64)
    np.add.at(held, place[: len(people)], sizes)
    return held[place[len(people) :]]


def _by_record_rule(index: Index, shown: Multisets, k: int) -> tuple[Int64s, bool]:
    """People whom the record rule turns into each shown record, and whether every search was exact."""
    people = index.records()
    pairs: list[tuple[int, Int64s]] = []
    for r in range(len(shown)):
        codes, counts = shown.record(r)
        candidates = index.owners(codes, counts).astype(np.int64)
        pairs.append((r, candidates[~_could_show_more(people, candidates, codes, counts, k)]))
    suspects = np.unique(np.concatenate([np.zeros(0, np.int64), *(people_of for _, people_of in pairs)]))
    parts = largest_parts(index, people.take(suspects), k)
    _, place = Multisets.together([parts.kept, shown]).distinct()
    outcome, wanted = place[: len(suspects)], place[len(suspects) :]
    owners = [int((outcome[np.searchsorted(suspects, those)] == wanted[r]).sum()) for r, those in pairs]
    return np.array(owners, np.int64), bool(parts.exact.all())


def _could_show_more(people: Multisets, candidates: Int64s, codes: Int32s, counts: Int32s, k: int) -> Bools:
    """Candidates for whom one more mention could have been released: at least k candidates share it."""
    theirs = people.take(candidates)
    width = int(people.values.max()) + 1 if len(people.values) else 1
    already = np.zeros(width, np.int64)
    already[codes] = counts
    extra = theirs.counts > already[theirs.values]
    sharers = np.bincount(theirs.values[extra], minlength=width)
    common = extra & (sharers[theirs.values] >= k)
    return np.bincount(theirs.owners()[common], minlength=len(candidates)) > 0


def _summary(rule: str | None, owners: Int64s, exact: bool, k: int) -> dict[str, Any]:
    found: dict[str, Any] = {"rule": rule, "records": len(owners), "exact": exact}
    if not len(owners):
        return found
    return found | {
        "smallest": int(owners.min()),
        "median": float(np.median(owners)),
        "below_k": float(np.mean(owners < k)),
        "pinned_down": float(np.mean(owners == 1)),
        "no_consistent_owner": float(np.mean(owners == 0)),
        "mean_success": float(np.mean(np.where(owners > 0, 1 / np.maximum(owners, 1), 0.0))),
    }
