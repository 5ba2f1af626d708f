"""Groups of codes that may merge, bin merging (Heatherly et al. 2013), and the nodes to which labels climb.

Rare codes are generalized inside their group of a utility policy or of a phecode map. Conventions:
docs/methods/visits.md#bin-merging.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.policies import Policy, constraints, parse
from leeward.arrays import Int32s, Int64s
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.cohort.lenses.visits import Visits
from leeward.errors import BadInput
from leeward.methods.visits.visit_lists import MARK, SEPARATOR, bare
from leeward.vocabulary import Vocabulary, load

PHECODE = "phecode"

CLIMB_TO = 3
"""The level of a hierarchy to which a label climbs, the chapter."""

PolicyLike = Policy | str | Mapping[str, Any] | None
"""Accepted values of `policy`: any utility policy, `phecode` (the installed map), `phecode:FILE`, or None."""


def check_policy(policy: PolicyLike) -> Policy | str | None:
    """The policy as kept in the parameters: `phecode` forms as text, others parsed. Raises BadInput."""
    if isinstance(policy, Mapping) and policy.get("policy") == PHECODE:
        path = policy.get("path")
        return PHECODE if path is None else f"{PHECODE}:{path}"
    if isinstance(policy, str) and policy.partition(":")[0] == PHECODE:
        return policy
    return parse(policy)


def groups_of(policy: Policy | str | None, cohort: Cohort, visits: Visits) -> Int64s:
    """The group number of each code; a code outside the policy's groups forms its own group."""
    if isinstance(policy, str):
        labels = phecodes_of(policy, cohort, visits.codes)
        return np.unique(np.array(labels), return_inverse=True)[1].astype(np.int64)
    # Other policies than that of frequent sets look at the distinct codes alone.
    frequent = policy is not None and policy.kind == "frequency"
    alone = CodeSets(np.zeros(1, np.int64), np.zeros(0, np.int32), visits.codes, visits.patients.clear())
    found = constraints(policy, cohort.code_sets() if frequent else alone, cohort.vocabulary)
    own = np.arange(len(visits.codes), dtype=np.int64) + len(found)
    return np.where(found.of_code >= 0, found.of_code, own).astype(np.int64)


def phecodes_of(policy: str, cohort: Cohort, codes: Sequence[str]) -> list[str]:
    """The phecode of each code, or the code itself where the map has none (docs/methods/visits.md#bin-merging)."""
    from leeward.vocabulary import phecode, registry

    _, _, path = policy.partition(":")
    mapping = phecode.load(Path(path) if path else registry.find(PHECODE))
    vocabulary = vocabulary_of(cohort)
    found = []
    for code in codes:
        known = vocabulary.get(code, cohort.vocabulary or "")
        names = [known] if known in mapping.codes else list(mapping.codes)
        group = next((g for name in names if (g := mapping.group(code, name)) is not None), None)
        found.append(f"code {code}" if group is None else f"phecode {group}")
    if all(each.startswith("code ") for each in found):
        raise BadInput(
            f"{mapping.name}: none of the {len(codes):,} codes has a phecode in this map; give the map of the cohort's "
            "vocabulary."
        )
    return found


def vocabulary_of(cohort: Cohort) -> dict[str, str]:
    """The vocabulary of each code, where the events contain it."""
    events = cohort.require_events()
    if "vocabulary" not in events.columns:
        return {}
    pairs = (
        events.select(pl.col("code").cast(pl.String), pl.col("vocabulary").cast(pl.String))
        .drop_nulls()
        .unique()
    )
    return dict(sorted(pairs.rows(), reverse=True))


Patients = frozenset[int]


@dataclass(frozen=True)
class Merging:
    """The result of merging for each code. `label_of`: code number -> label, or None where the code is suppressed.
    `merged`, `suppressed`: numbers of codes merged into generalized ones, and of suppressed codes."""

    label_of: tuple[str | None, ...]
    merged: int
    suppressed: int

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(sorted({label for label in self.label_of if label is not None}))


@dataclass(frozen=True)
class _Active:
    """A (generalized) code below k: its members ascending, the patients who hold any of them."""

    members: tuple[int, ...]
    patients: Patients

    def join(self, others: Iterable[_Active]) -> _Active:
        every = [self, *others]
        members = sorted(member for each in every for member in each.members)
        return _Active(tuple(members), frozenset().union(*(each.patients for each in every)))


def merge(
    codes: Sequence[str],
    frequencies: Sequence[int],
    rare: dict[int, set[int]],
    group_of: Sequence[int],
    k: int,
    *,
    rescue: bool = False,
) -> Merging:
    """Merge codes below `k` along their groups, then suppress those still below.

    `codes`: the codes, ascending. `frequencies`: patients with each code. `rare`: the patients of every code with fewer
    than `k`, by code number. `group_of`: the group of each code; only codes of one group may merge. `rescue`:
    left-overs below `k` join the least frequent code of their group that has `k` (ties: the smallest member), instead
    of being lost.
    """
    active = [_Active((code,), frozenset(rare[code])) for code in sorted(rare)]
    done: list[_Active] = []
    width = 1
    while True:
        active = _one_pass(active, group_of, width, k, done)
        if width >= k - 1:
            break
        width *= 2
    if rescue:
        _rescue(active, done, frequencies, group_of, rare, k)
    return _outcome(codes, done, active)


def _one_pass(
    active: list[_Active], group_of: Sequence[int], width: int, k: int, done: list[_Active]
) -> list[_Active]:
    """Merge the codes of each bin and group; those of at least k patients move to `done`."""
    bins: dict[tuple[int, int], list[_Active]] = {}
    for each in active:
        bins.setdefault(((len(each.patients) - 1) // width, group_of[each.members[0]]), []).append(each)
    left: list[_Active] = []
    for key in sorted(bins):
        first, *others = bins[key]
        union = first.join(others)
        (done if len(union.patients) >= k else left).append(union)
    return left


def _rescue(
    leftovers: list[_Active],
    done: list[_Active],
    frequencies: Sequence[int],
    group_of: Sequence[int],
    rare: dict[int, set[int]],
    k: int,
) -> None:
    takers: dict[int, tuple[int, int, int]] = {}
    offers = [(held, code, -1) for code, held in enumerate(frequencies) if code not in rare and held >= k]
    offers += [(len(a.patients), a.members[0], place) for place, a in enumerate(done)]
    for offer in offers:
        group = group_of[offer[1]]
        takers[group] = min(takers.get(group, offer), offer)
    for each in [a for a in leftovers if group_of[a.members[0]] in takers]:
        leftovers.remove(each)
        group = group_of[each.members[0]]
        held, code, place = takers[group]
        if place < 0:
            place = len(done)
            done.append(_Active((code,), frozenset()))
            takers[group] = held, code, place
        done[place] = done[place].join([each])


def _outcome(codes: Sequence[str], done: list[_Active], lost: list[_Active]) -> Merging:
    label_of: list[str | None] = list(codes)
    for each in lost:
        for code in each.members:
            label_of[code] = None
    for each in done:
        for code in each.members:
            label_of[code] = SEPARATOR.join(sorted(codes[member] for member in each.members))
    merged, gone = (sum(len(each.members) for each in group) for group in (done, lost))
    return Merging(tuple(label_of), merged - sum(len(each.members) == 1 for each in done), gone)


@dataclass(frozen=True)
class Climbing:
    """`labels`: all labels, ascending, with the nodes above. `up`: the node above each, -1 for none. `of_code`: the
    node above each code of the cohort (suppressed codes climb too), None for none."""

    labels: tuple[str, ...]
    up: Int32s
    of_code: tuple[str | None, ...]


def climb(labels: Sequence[str], codes: Sequence[str], vocabulary: str | None) -> Climbing:
    """The chapters above labels and codes; with class numbers where the labels and codes have them. Raises BadInput: no
    vocabulary, or a node whose label is a code of the cohort."""
    if vocabulary is None:
        raise BadInput(
            "`enforce: generalize` climbs a hierarchy, so it needs a vocabulary: `icd9`, `icd10` or a hierarchy file."
        )
    known = load(vocabulary)
    of_code = [_above(known, code) for code in codes]
    of_label = dict(zip(codes, of_code, strict=True))
    members = {label: {of_label[member] for member in label.split(SEPARATOR)} for label in labels}
    above = {label: nodes.pop() for label, nodes in members.items() if len(nodes) == 1}
    nodes = set(filter(None, (*of_code, *above.values())))
    meant = set(map(bare, nodes)) & set(map(bare, codes))
    if meant:
        raise BadInput(
            f"`enforce: generalize`: {len(meant)} nodes above codes have the name of a code of the cohort, "
            "so a recipient could not tell them apart; give a vocabulary with chapters of other names, or leave "
            "`enforce` out."
        )
    every = tuple(sorted({*labels, *nodes}))
    number = {label: place for place, label in enumerate(every)}
    up = np.array([number.get(above.get(label) or "", -1) for label in every], np.int32)
    return Climbing(every, up, tuple(of_code))


def _above(vocabulary: Vocabulary, code: str) -> str | None:
    number, mark, own = code.rpartition(MARK)
    node = vocabulary.level(own, CLIMB_TO)
    return None if node == own or not vocabulary.is_known(own) else number + mark + node
