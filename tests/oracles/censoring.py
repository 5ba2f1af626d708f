"""Greedy Code Censoring as the thesis prints it, and the record scope by trying everything.

Tamersoy 2011, chapter III: `dis` is III.4, `gccens` is Algorithm 1 with the conventions of
docs/methods/censoring.md. Plain
lists and Counters, no shortcuts: what the fast code must equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from statistics import mean, median

Codes = Iterable[str]


def contains(whole: Codes, part: Codes) -> bool:
    held = Counter(whole)
    return all(held[code] >= count for code, count in Counter(part).items())


def dis(part: Codes, population: Sequence[Codes]) -> int:
    part = list(part)
    return sum(contains(record, part) for record in population)


def capped(record: Codes, caps: Mapping[str, int]) -> list[str]:
    held = Counter(record)
    return sorted(code for code in held for _ in range(min(held[code], caps.get(code, 0))))


def gccens(
    sample: Sequence[Codes], population: Sequence[Codes], k: int, caps: Mapping[str, int]
) -> tuple[list[list[str]], list[str]]:
    """Algorithm 1: the k-mapped sample, and the code picked in each round that removed something."""
    caps = dict(caps)
    released = [capped(record, caps) for record in sample]  # 1
    picks: list[str] = []
    while any(dis(record, population) < k for record in released):  # 2
        for code in caps:  # convention 2: a cap that no record reaches is lowered first
            caps[code] = min(caps[code], max((record.count(code) for record in released), default=0))
        holders = {
            code: [n for n, record in enumerate(released) if record.count(code) == cap]
            for code, cap in sorted(caps.items())
            if cap >= 1  # convention 1
        }  # 3-10
        chosen = min(holders, key=lambda code: (len(holders[code]), code))  # 11, convention 3
        for n in holders[chosen]:  # 12-14
            released[n].remove(chosen)
        caps[chosen] -= 1  # 15
        picks.append(chosen)
    return released, picks  # 17


def raised(
    sample: Sequence[Codes], population: Sequence[Codes], k: int, caps: Mapping[str, int]
) -> list[list[str]]:
    """GCCens's order backwards, and what fails is passed over (docs/methods/censoring.md#raised-caps)."""
    support = Counter(
        (code, level + 1)
        for record in sample
        for code, count in Counter(capped(record, caps)).items()
        for level in range(count)
    )
    order = sorted(support, key=lambda item: (support[item], item[0], -item[1]), reverse=True)
    final = dict.fromkeys(caps, 0)
    while True:
        before = dict(final)
        for code, level in order:
            if level != final[code] + 1:
                continue
            more = {**final, code: level}
            if all(dis(capped(record, more), population) >= k for record in sample):
                final = more
        if final == before:
            return [capped(record, final) for record in sample]


def largest_safe(record: Codes, population: Sequence[Codes], k: int, caps: Mapping[str, int]) -> list[str]:
    """The largest part of the capped record with dis ≥ k; of equals that with more of the first code, then the next."""
    held = Counter(capped(record, caps))
    codes = sorted(held)
    best: tuple[int, tuple[int, ...]] = (-1, ())
    for counts in product(*(range(held[code] + 1) for code in codes)):
        part = [code for code, count in zip(codes, counts, strict=True) for _ in range(count)]
        if (sum(counts), counts) > best and dis(part, population) >= k:
            best = (sum(counts), counts)
    return [code for code, count in zip(codes, best[1], strict=True) for _ in range(count)]


def consistent_owners(
    shown: Sequence[str], population: Sequence[Codes], k: int, caps: Mapping[str, int]
) -> int:
    """Population records that the record rule would turn into exactly `shown`."""
    return sum(largest_safe(record, population, k, caps) == sorted(shown) for record in population)


def by_groups(population: Sequence[Codes], k: int, caps: Mapping[str, int]) -> list[list[str]]:
    """Scope `groups`: what each person is published as (docs/methods/censoring.md#groups)."""
    people = [capped(person, caps) for person in population]
    items = [
        {(code, n + 1) for code, count in Counter(person).items() for n in range(count)} for person in people
    ]
    groups: list[list[int]] = []

    def split(node: list[int]) -> list[int]:
        while len(node) >= k:
            support = Counter(item for person in node for item in items[person])
            frequent = [item for item, count in support.items() if k <= count < len(node)]
            if not frequent:
                groups.append(node)
                return []
            chosen = min(frequent, key=lambda item: (-support[item], item))
            back = split([person for person in node if chosen in items[person]])
            node = [person for person in node if chosen not in items[person]] + back
        return node

    left = split(list(range(len(people))))
    groups[-1] += left
    shown: dict[int, list[str]] = {}
    for group in groups:
        common = set.intersection(*(items[person] for person in group))
        shown |= {person: sorted(code for code, _ in common) for person in group}
    return [shown[person] for person in range(len(people))]


def cul(original: Codes, released: Codes) -> float:
    """Censoring utility loss of a record; an empty original loses nothing (convention 8)."""
    size = len(list(original))
    return (size - len(list(released))) / size if size else 0.0


def statistics(values: Sequence[float]) -> dict[str, float]:
    """Mean, sd (divisor n), median, and skewness m3 / m2^1.5 (0 where nothing varies)."""
    centre = mean(values)
    second = mean((value - centre) ** 2 for value in values)
    third = mean((value - centre) ** 3 for value in values)
    skewness = third / second**1.5 if second else 0.0
    return {"mean": centre, "sd": second**0.5, "median": median(values), "skewness": skewness}
