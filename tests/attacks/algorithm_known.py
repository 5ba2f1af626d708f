"""What the algorithm tells beyond the files: all small data are anonymized, and those that give the same files counted.

The attacker has `share/`, knows something of a patient, and knows the algorithm but not its random draws. By the files
alone a record may be the patient's if the method's operation can have made it of some data that have what is known
(`World.could`). By the algorithm it may only if some data set of the world gives just these files and has what is known
behind that record: whatever the order of steps, ties, stop rules and thresholds tell is used (a minimality attack, Wong
et al. 2007). All data sets of a world, patients told apart, are equally likely beforehand.

Anonymized by the plain versions of tests/oracles/, with which the tests of each method compare the product.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
from tests.oracles import cells, censoring, condensation, constraints, linked, trajectories, visits
from tests.oracles.k_anonymity import mondrian

Kind = Any
"""What one patient has: whatever the method reads of a patient."""
Shown = tuple[list[Hashable], Hashable]
"""What each patient is released as, in the order of the source, and what the files say beside the records."""


@dataclass(frozen=True)
class World:
    """Data of `patients` patients, each of one of `kinds`.

    publish : data -> what each set of random draws, all equally likely, makes of them.
    knows : kind -> what the attacker may know of such a patient.
    could : kind, record, what else the files say -> whether the operation can have made the record of such a patient.
    ordered : the order of the patients in the source counts (ties are broken by it); else it makes no difference.
    """

    k: int
    patients: int
    kinds: Sequence[Kind]
    publish: Callable[[Sequence[Kind]], Iterable[Shown]]
    knows: Callable[[Kind], Iterable[Hashable]]
    could: Callable[[Kind, Any, Any], bool]
    ordered: bool = False

    def sources(self) -> Iterable[tuple[Sequence[Kind], int]]:
        """All data, each with the number of ways in which patients told apart can have them."""
        if self.ordered:
            return ((source, 1) for source in product(self.kinds, repeat=self.patients))
        return ((s, orders(s)) for s in combinations_with_replacement(self.kinds, self.patients))


@dataclass(frozen=True)
class Told:
    """Over all releases of a world and all that may be known of a patient in one of them (`pieces`).

    below_k_files : pieces with fewer than k candidate records by the files, `below_k` and `alone` (one record) by the
        algorithm.
    likely : how often a patient's piece is below k by the algorithm, where all data sets are equally likely.
    above : pieces for which the best guess at the record is right more often than once in k; `surest`: the best of all.
    opened : records of which the files leave open what the patient has, and the algorithm does not; among `shown` ones.
    """

    sources: int
    pieces: int
    below_k_files: int
    below_k: int
    alone: int
    likely: float
    above: int
    surest: Fraction
    opened: int
    shown: int


def orders(source: Sequence[Kind]) -> int:
    """In how many ways patients told apart can have this data set."""
    return math.factorial(len(source)) // math.prod(map(math.factorial, Counter(source).values()))


def tell(world: World) -> Told:
    """Invert the algorithm: every data set is anonymized, and each release judged by all that give it."""
    behind: dict[Any, dict[tuple[Kind, Hashable], Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    sources = 0
    for source, ways in world.sources():
        sources += 1
        outcomes = list(world.publish(source))
        weight = Fraction(ways, len(outcomes))
        for shown, beside in outcomes:
            release = (tuple(sorted(shown, key=repr)), beside)
            for kind, record in zip(source, shown, strict=True):
                behind[release][kind, record] += weight
    pieces = below_files = below = alone = above = opened = records = 0
    surest, mass_below, mass = Fraction(0), Fraction(0), Fraction(0)
    for (shown, beside), pairs in behind.items():
        there = Counter(shown)
        fits = {
            record: {kind for kind in world.kinds if world.could(kind, record, beside)} for record in there
        }
        assert all(kind in fits[record] for kind, record in pairs)
        weights: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
        for (kind, record), weight in pairs.items():
            for piece in world.knows(kind):
                weights[piece][record] += weight  # type: ignore[assignment]  # fractions count too
        for piece, likely in weights.items():
            by_files = sum(n for r, n in there.items() if any(piece in world.knows(kind) for kind in fits[r]))
            left = sum(there[record] for record in likely)
            total = sum(likely.values())
            best = max(Fraction(likely[r]) / total / there[r] for r in likely)
            pieces += 1
            below_files += by_files < world.k
            below += left < world.k
            alone += left == 1
            above += best > Fraction(1, world.k)
            surest = max(surest, best)
            mass += total
            mass_below += total if left < world.k else 0
        for record in there:
            records += 1
            opened += len(fits[record]) > 1 == sum(r == record for _, r in pairs)
    share = float(mass_below / mass)
    return Told(sources, pieces, below_files, below, alone, share, above, surest, opened, records)


def subsets(codes: str, least: int = 1) -> list[frozenset[str]]:
    """The sets of at least so many of these codes."""
    return [frozenset(s) for n in range(least, len(codes) + 1) for s in combinations(codes, n)]


def up_to(m: int) -> Callable[[Kind], list[frozenset[Any]]]:
    return lambda kind: [frozenset(s) for n in range(1, m + 1) for s in combinations(sorted(kind), n)]


def listed(k: int, held: Iterable[Iterable[Hashable]], shown: Iterable[Iterable[Hashable]]) -> Hashable:
    """`codes.parquet`: the shown codes, and the others that at least k patients have."""
    support = Counter(code for each in held for code in set(each))
    there = {code for each in shown for code in each}
    return tuple(sorted((code, code in there) for code in there | {c for c, n in support.items() if n >= k}))  # type: ignore[type-var]  # texts


# -- constraints


def generalized(
    algorithm: str, codes: str = "abc", groups: Sequence[str] = (), patients: int = 6, k: int = 3
) -> World:
    """Sets of codes, m = 2; `groups` of codes that may be merged (apriori: that have a node of their own)."""
    utility = {code: number for number, group in enumerate(groups) for code in group}
    parents: dict[str, str | None] = {"root": None}
    parents |= dict.fromkeys(groups, "root")
    parents |= {code: next((g for g in groups if code in g), "root") for code in codes}

    def labels(source: Sequence[frozenset[str]]) -> dict[str, str | None]:
        """The released label of each code of the data; None: suppressed."""
        every = sorted(frozenset().union(*source))
        if algorithm == "apriori":
            return dict(constraints.apriori(list(source), constraints.Tree(parents), k, 2))
        run = constraints.cba if algorithm == "cba" else constraints.ugaclip  # coat: as ugaclip
        clusters = run(list(source), constraints.subsets(every, 2), utility, k)
        found = {code: "".join(sorted(cluster)) for cluster in clusters for code in cluster}
        return {code: found.get(code) for code in every}

    def publish(source: Sequence[frozenset[str]]) -> Iterable[Shown]:
        label_of = labels(source)
        yield [image(kind, label_of) for kind in source], tuple(sorted(label_of.items()))

    def image(kind: frozenset[str], label_of: dict[str, str | None]) -> tuple[str, ...]:
        return tuple(sorted({label for code in kind if (label := label_of[code]) is not None}))

    def could(kind: frozenset[str], record: Hashable, beside: Any) -> bool:
        label_of = dict(beside)
        return kind <= label_of.keys() and image(kind, label_of) == record

    return World(k, patients, subsets(codes), publish, cache(up_to(2)), could)


# -- visits

Visit = frozenset[str]


def of_visits(level: str, merged: bool, kinds: Sequence[Any], patients: int, k: int, m: int = 2) -> World:
    """Patients with one or two visits; the attacker knows one of them (levels `code` and `codes`: up to m codes)."""

    def publish(source: Sequence[tuple[Visit, ...]]) -> Iterable[Shown]:
        data = {str(place): list(kind) for place, kind in enumerate(source)}
        mapped = visits.mapped(data, k, visits.merged(data, k, lambda code: code))
        if merged and level == "visit":
            mapped = {p: [frozenset().union(*each)] for p, each in mapped.items()}
        draws = list(permutations(mapped)) if level == "codes" else [()]
        for order in draws:
            if level == "codes":
                made = visits.known_codes(mapped, k, m, merged, 0.1, list(order))
            else:
                made = {"visit": visits.enforced, "containment": visits.contained}.get(
                    level, lambda data, k: dict(data)
                )(mapped, k)
            shown = [record_of(made[str(place)]) for place in range(len(source))]
            held = [frozenset().union(*kind) for kind in source]
            labels = [
                [c for visit in record for label in visit for c in label.split("|")] for record in shown
            ]
            yield shown, listed(k, held, labels)

    def record_of(shown: list[Visit]) -> tuple[tuple[str, ...], ...]:
        if merged:
            shown = [frozenset().union(*shown)]
        return tuple(sorted(tuple(sorted(visit)) for visit in shown if visit))

    def could(kind: tuple[Visit, ...], record: Any, beside: Any) -> bool:
        """Whether codes and visits were deleted, nothing else: every released visit is part of a visit of its own."""
        held = [frozenset().union(*kind)] if merged else kind
        return any(
            all(set(part) <= visit for part, visit in zip(record, chosen, strict=True))
            for chosen in permutations(held, len(record))
        )

    def knows(kind: tuple[Visit, ...]) -> list[Hashable]:
        sizes = {"code": 1, "codes": m}
        if level in sizes:
            return [s for visit in kind for s in up_to(sizes[level])(visit)]
        return list(kind)

    return World(k, patients, kinds, publish, cache(lambda kind: frozenset(knows(kind))), could)


def patients_with_visits(codes: str, most: int) -> list[tuple[Visit, ...]]:
    """All patients with up to so many visits over these codes."""
    sets = subsets(codes)
    return [kind for n in range(1, most + 1) for kind in combinations_with_replacement(sets, n)]


# -- linked tables


def joined(view: str, patients: int = 6, k: int = 3) -> World:
    """Patients of one class; codes a, b and c, or with days a and b on day 0 or 1."""
    if "visits" in view:
        slots = [(day, code) for day in (0, 1) for code in "ab"]
        kinds = [frozenset(s) for n in range(1, 5) for s in combinations(slots, n) if min(s)[0] == 0]
    else:
        kinds = [frozenset((0, code) for code in codes) for codes in subsets("abc")]
    parts = {
        "patients+visits+events": ["patients+events", "patients+visits", view],
        "patients+events+events": ["patients+events", view],
    }.get(view, [view])

    def publish(source: Sequence[frozenset[tuple[int, str]]]) -> Iterable[Shown]:
        rows = [(place, day) for place, kind in enumerate(source) for day in sorted({d for d, _ in kind})]
        days = [(place, day, day) for place, day in rows]
        events = [(place, day, day, code) for place, kind in enumerate(source) for day, code in sorted(kind)]
        left, kept = linked.suppress(days, events, k, parts)
        shown = [
            (
                tuple(day for p, _, day in left if p == place and "visits" in view),
                tuple((day, code) for p, _, day, code in kept if p == place),
            )
            for place in range(len(source))
        ]
        yield (
            shown,
            listed(
                k,
                *([[code for _, code in each] for each in rows] for rows in (source, [r[1] for r in shown])),
            ),
        )

    def could(kind: frozenset[tuple[int, str]], record: Any, beside: Any) -> bool:
        return set(record[1]) <= kind and set(record[0]) <= {day for day, _ in kind}

    def knows(kind: frozenset[tuple[int, str]]) -> frozenset[Hashable]:
        codes = sorted({code for _, code in kind})
        rows: dict[str, Iterable[Hashable]] = {
            "patients+events": codes,
            "patients+visits": {day for day, _ in kind},
            "patients+visits+events": kind,
            "patients+events+events": combinations(codes, 2),
        }
        return frozenset(known for part in parts for known in rows[part])

    return World(k, patients, kinds, publish, cache(knows), could)


# -- trajectories

CODES = trajectories.Tree(
    [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b"), ("a", "root"), ("b", "root"), ("root", None)]
)
AGES = trajectories.full_binary(1, 4)  # 1-2, 3-4, 1-4


def aged(clustering: str, kinds: Sequence[Any], patients: int = 6, k: int = 3) -> World:
    """Trajectories of which the attacker knows everything; published by groups."""

    def groups(source: Sequence[Any]) -> list[tuple[list[int], Any]]:
        if clustering == "alignment":
            return trajectories.mdav(list(source), k, CODES, AGES, joining="normalised")
        cell = lambda level, pair: (pair[0][0], AGES.parent[pair[1]]) if level == 0 else "all"  # noqa: E731
        made = []
        for members in cells.cluster(list(source), k, cell):
            published = source[members[0]]
            for other in members[1:]:
                published = trajectories.a_gs(published, source[other], CODES, AGES).pairs
            made.append((members, published))
        return made

    def publish(source: Sequence[Any]) -> Iterable[Shown]:
        shown: dict[int, Hashable] = {}
        for members, published in groups(source):
            shown |= dict.fromkeys(members, tuple(published))
        yield [shown[place] for place in range(len(source))], None

    def could(kind: Any, record: Any, beside: Any) -> bool:
        return any(
            all(
                code in CODES.path(mine) and age in AGES.path(years)
                for (code, age), (mine, years) in zip(record, chosen, strict=True)
            )
            for chosen in permutations(kind, len(record))
        )

    return World(k, patients, kinds, publish, lambda kind: [kind], could, ordered=clustering == "cells")


def single_pairs(codes: Sequence[str], ages: Sequence[str]) -> list[Any]:
    return [((code, age),) for code, age in product(codes, ages)]


# -- k-anonymity


def mean_groups(numbers: int, patients: int = 6, k: int = 2) -> World:
    """One known number, and a level that is published as it is."""

    def publish(source: Sequence[tuple[int, str]]) -> Iterable[Shown]:
        shown: dict[int, Hashable] = {}
        for group in mondrian([(float(number),) for number, _ in source], k):
            mean = Fraction(sum(source[i][0] for i in group), len(group))
            shown |= {i: (mean, source[i][1]) for i in group}
        rows = [shown[place] for place in range(len(source))]
        yield rows, tuple(sorted(Counter(mean for mean, _ in rows).items()))  # type: ignore[misc]  # pairs

    def could(kind: tuple[int, str], record: Any, beside: Any) -> bool:
        """Whether others of the rows with this mean make it up; several groups may have one mean."""
        mean, level = record
        size = dict(beside)[mean]
        rest = mean * size - kind[0]
        return kind[1] == level and 0 <= rest <= (size - 1) * (numbers - 1)

    kinds = list(product(range(numbers), "xy"))
    return World(k, patients, kinds, publish, lambda kind: [kind[0]], could)


# -- condensation


def condensed(values: int = 3, patients: int = 6, k: int = 3) -> World:
    """One known number and an exact time; of a patient's the row counts that shows the patient's time.

    Groups are made of both columns, as the product makes them; a group's own numbers and times are released, put
    together at random (the product puts them together by correlated draws, and moves numbers a little).
    """

    def publish(source: Sequence[tuple[int, int]]) -> Iterable[Shown]:
        points = np.array(source, float)
        spread = points.std(axis=0)
        points = (points - points.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        groups = condensation.halving(points, k)
        for orders_of_groups in product(*(permutations(group) for group in groups)):
            shown: dict[int, Hashable] = {}
            for group, order in zip(groups, orders_of_groups, strict=True):
                shown |= {
                    mine: (source[other][0], source[mine][1])
                    for mine, other in zip(group, order, strict=True)
                }
            yield [shown[place] for place in range(len(source))], None

    kinds = list(product(range(values), repeat=2))
    return World(k, patients, kinds, publish, lambda kind: [kind[0]], lambda kind, row, _: kind[1] == row[1])


# -- censoring


def owners(
    scope: str, population: Sequence[Kind], size: int, k: int, *, frequent_listed: bool = False
) -> list[tuple[int, int, Fraction]]:
    """For each record of each release of a sample of so many people: how many contain it (the k-map), how many can be
    its owner by the algorithm, and the surest guess.

    The attacker has everybody's full record and not the sample; the release as a whole is inverted. `frequent_listed`:
    with the suppressed codes in the list that at least k of the sample have, as releases had it once.
    """
    people = [list(person) for person in population]
    caps = {code: max(p.count(code) for p in people) for code in sorted(set().union(*people))}
    grouped = censoring.by_groups(people, k, caps) if scope == "groups" else []
    behind: dict[Any, dict[Any, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
    for sample in combinations(range(len(people)), size):
        records = [people[i] for i in sample]
        if scope == "groups":
            made = [grouped[i] for i in sample]
        elif scope == "record":
            made = [censoring.largest_safe(record, people, k, caps) for record in records]
        elif scope == "raise":
            made = censoring.raised(records, people, k, caps)
        else:
            made = censoring.gccens(records, people, k, caps)[0]
        shown = [tuple(sorted(record)) for record in made]
        beside = listed(k, records, shown) if frequent_listed else None
        for person, record in zip(sample, shown, strict=True):
            behind[tuple(sorted(shown)), beside][record][person] += 1
    return [
        (
            censoring.dis(record, people),
            len(who),
            Fraction(max(who.values()), sum(who.values())),
        )
        for records_behind in behind.values()
        for record, who in records_behind.items()
    ]


def populations(people: int) -> list[tuple[tuple[str, ...], ...]]:
    """All populations of so many people with up to two mentions of a and one of b, nobody without any."""
    kinds = [("a",) * a + ("b",) * b for a in range(3) for b in range(2)][1:]
    return list(combinations_with_replacement(kinds, people))
