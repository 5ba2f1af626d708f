"""Visits, the plain slow way (Heatherly et al. 2013, Methods; docs/methods/visits.md), to be read beside the paper.

Data are `{patient: [visit, …]}`, a visit being a frozenset of codes. A released label is its members joined by `|`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations

Visit = frozenset[str]
Data = Mapping[str, list[Visit]]
SEPARATOR = "|"


def frequency(data: Data, members: Visit) -> int:
    """Patients who hold any of the members in at least one visit."""
    return sum(any(visit & members for visit in visits) for visits in data.values())


def merged(data: Data, k: int, group: Callable[[str], str], rescue: bool = False) -> list[Visit]:
    """The active (generalized) codes after bin merging (#bin-merging), before suppression."""
    active = [
        frozenset([code]) for code in sorted({c for visits in data.values() for v in visits for c in v})
    ]
    width = 1
    while True:
        bins: dict[tuple[int, str], list[Visit]] = {}
        for each in active:
            held = frequency(data, each)
            if held < k:
                bins.setdefault(((held - 1) // width, group(min(each))), []).append(each)
        for key in sorted(bins):
            union: Visit = frozenset().union(*bins[key])
            active = [each for each in active if each not in bins[key]] + [union]
        if width >= k - 1:
            break
        width *= 2
    return rescued(data, k, group, active) if rescue else active


def rescued(data: Data, k: int, group: Callable[[str], str], active: list[Visit]) -> list[Visit]:
    """Left-overs below k join the least frequent sibling of at least k when merging ended (ties: smallest member)."""
    held = {each: frequency(data, each) for each in active}
    result = {each: each for each in active}
    for each in active:
        siblings = [a for a in active if group(min(a)) == group(min(each)) and held[a] >= k]
        if held[each] < k and siblings:
            into = min(siblings, key=lambda a: (held[a], min(a)))
            result[into] |= each
            del result[each]
    return list(result.values())


def label(members: Visit) -> str:
    return SEPARATOR.join(sorted(members))


def mapped(data: Data, k: int, active: list[Visit]) -> dict[str, list[Visit]]:
    """Codes replaced by labels, those below k suppressed; visits keep their places, emptied or not."""
    of_code = {code: label(each) for each in active if frequency(data, each) >= k for code in each}
    return {
        p: [frozenset(of_code[c] for c in v if c in of_code) for v in visits] for p, visits in data.items()
    }


def holders(data: Data, wanted: Visit) -> int:
    """G3: patients with exactly this set in some visit."""
    return sum(wanted in visits for visits in data.values())


def containers(data: Data, wanted: Visit) -> int:
    """G2: patients whose union over visits contains the set."""
    return sum(wanted <= frozenset().union(*visits) for visits in data.values() if visits)


def violating(data: Data, k: int, count: Callable[[Data, Visit], int] = holders) -> set[Visit]:
    """The non-empty visit sets with fewer than k patients."""
    sets = {visit for visits in data.values() for visit in visits if visit}
    return {s for s in sets if count(data, s) < k}


def without(data: Data, wanted: Visit, code: str) -> dict[str, list[Visit]]:
    """The code deleted from every visit equal to the set."""
    return {p: [v - {code} if v == wanted else v for v in visits] for p, visits in data.items()}


def enforced(data: Data, k: int, key: str = "absolute") -> dict[str, list[Visit]]:
    """Level `visit`: delete until every visit set is held exactly by at least k patients; all recounted every time."""
    while bad := violating(data, k):
        s = min(bad, key=lambda v: (-len(v), sorted(v)))
        c = min(s, key=lambda code: cost(data, k, s, code, key))
        data = without(data, s, c)
    return dict(data)


def cost(data: Data, k: int, s: Visit, code: str, key: str) -> tuple[float, float, int, str]:
    """What it costs to delete a code from the visits equal to s: violations, patients who lose it, frequency, code."""
    after = without(data, s, code)
    before = frequency(data, frozenset([code]))
    losing = before - frequency(after, frozenset([code]))
    return (
        len(violating(after, k)),
        losing / before if key == "relative" else losing,
        before,
        code,
    )


def generalized(data: Data, k: int, up: Mapping[str, str]) -> dict[str, list[Visit]]:
    """`enforce: generalize` [ours]: a code climbs to the node above (`up`) before it goes; nodes on top are deleted.

    The set with most codes, then most codes that can climb, goes first; of its codes the one with the fewest
    violations after, one that leaves no new node behind before one that climbs, then as in `cost`.
    """
    while bad := violating(data, k):
        s = min(bad, key=lambda v: (-len(v), -sum(c in up for c in v), sorted(v)))

        costs = {}
        for c in s:
            violations = len(violating(changed(data, s, c, up), k))
            climbs = c in up and up[c] not in s
            costs[c] = (violations, climbs, *cost(data, k, s, c, "absolute")[1:])
        data = changed(data, s, min(s, key=lambda c: costs[c]), up)
    return dict(data)


def changed(data: Data, s: Visit, c: str, up: Mapping[str, str]) -> dict[str, list[Visit]]:
    """Every visit equal to s loses c, or has the node above in its place."""
    t = (s - {c}) | ({up[c]} if c in up else set())
    return {p: [t if v == s else v for v in visits] for p, visits in data.items()}


def shown(data: Data, patient: str, visit: Visit) -> Visit:
    """What the merged record of a patient shows of a visit, by whichever visit it comes."""
    return visit & frozenset().union(*data[patient])


def contained(data: Data, k: int) -> dict[str, list[Visit]]:
    """`containment` on merged visits: rounds; in each, every violating set of the round's start loses one code.

    That code leaves the part that most unions contain (ties: the smallest remaining part), and all visits of each
    patient who has the set; all deletions of a round are chosen against the unions at its start, and every set is
    recounted in the next round. At the end codes are put back.
    """
    source = data
    while bad := violating(data, k, containers):
        choice = {
            s: min((s - {c} for c in s), key=lambda t: (-containers(data, t) if t else -len(data), sorted(t)))
            for s in bad
        }
        gone = {
            p: frozenset().union(*(v - choice[v] for v in visits if v in bad)) for p, visits in data.items()
        }
        data = {p: [v - gone[p] for v in visits] for p, visits in data.items()}
    return put_back(source, data, k)


def put_back(source: Data, data: Data, k: int) -> dict[str, list[Visit]]:
    """Rounds: of each patient the code returns, of those that may, which most unions have (ties: the smallest)."""
    unions = {p: frozenset().union(*visits) for p, visits in data.items()}
    while True:
        back = {}
        for p, visits in source.items():
            allowed = [
                c
                for c in frozenset().union(*visits) - unions[p]
                if all(
                    sum(((v & unions[p]) | {c}) <= union for union in unions.values()) >= k - 1
                    for v in visits
                    if c in v
                )
            ]
            if allowed:
                back[p] = min(allowed, key=lambda c: (-sum(c in union for union in unions.values()), c))
        if not back:
            return {p: [v & unions[p] for v in visits] for p, visits in source.items()}
        unions = {p: union | {back[p]} if p in back else union for p, union in unions.items()}


def subsets(visit: Visit, m: int) -> set[Visit]:
    """The non-empty sets of at most m codes of a visit."""
    return {frozenset(each) for n in range(1, m + 1) for each in combinations(sorted(visit), n)}


def showing(data: Data, wanted: Visit, merged: bool) -> int:
    """Patients who show a set: over all their visits, or in one of them."""
    return containers(data, wanted) if merged else sum(any(wanted <= v for v in vs) for vs in data.values())


def known_codes(
    source: Data, k: int, m: int, merged: bool, alpha: float, order: list[str]
) -> dict[str, list[Visit]]:
    """Level `codes`: a code leaves all visits of a patient until every set of m codes of a visit has k patients.

    Sweeps over the patients until one deletes nothing; then codes return, in passes, until none can.
    """
    shown_of = {p: set().union(*visits) for p, visits in source.items()}
    cut = lambda: {p: [v & shown_of[p] for v in visits] for p, visits in source.items()}  # noqa: E731
    changed = True
    while changed:
        changed = False
        for p in order:
            while (code := worst(cut(), source, p, k, m, merged, alpha)) is not None:
                shown_of[p].discard(code)
                changed = True
    changed = True
    while changed:
        changed = False
        for p in order:
            for code in sorted(set().union(*source[p]) - shown_of[p]):
                shown_of[p].add(code)
                data = cut()
                new = [s for v in data[p] if code in v for s in subsets(v, m) if code in s]
                if all(showing(data, s, merged) >= k for s in new):
                    changed = True
                else:
                    shown_of[p].discard(code)
    return cut()


def worst(data: Data, source: Data, p: str, k: int, m: int, merged: bool, alpha: float) -> str | None:
    """The code that most short sets of fewest codes hold, for its cost; then the fewest patients, then the smallest."""
    mine = {s for v in data[p] for s in subsets(v, m)}
    short = {s for s in mine if showing(data, s, merged) < k}
    if not short:
        return None
    fewest = min(map(len, short))
    short = {s for s in short if len(s) == fewest}
    possible = {s for visits in source.values() for v in visits for s in subsets(v, m)}
    has = mine if not merged else {s for s in possible if s <= frozenset().union(*data[p])}
    costs = dict.fromkeys(sorted({c for s in has for c in s}), 0.0)
    for pair in sorted(sorted(s) for s in has if len(s) == 2):
        support = showing(data, frozenset(pair), merged)
        if k <= support <= k + 7:
            for c in pair:
                costs[c] += 1.0 / (1 + support - k)
    codes = sorted({c for s in short for c in s})
    score = {c: sum(c in s for s in short) / (1.0 + alpha * costs[c]) for c in codes}
    return min(codes, key=lambda c: (-score[c], frequency(data, frozenset([c])), c))


def diagnosis_count(data: Data) -> int:
    """DC: distinct (patient, code) pairs."""
    return sum(len(frozenset().union(*visits)) for visits in data.values() if visits)


def code_count(data: Data) -> int:
    """CC: original codes still there, alone or inside a generalized one."""
    labels = {c for visits in data.values() for v in visits for c in v}
    return len({member for each in labels for member in each.split(SEPARATOR)})
