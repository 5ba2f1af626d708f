"""Utility policies: disjoint sets of codes (utility constraints) whose analysis must survive the release.

A method may merge or keep together codes of one constraint; what it does with them is the method's business.
The kinds follow Loukides et al. (2014), Section 6.1:

hierarchy:L
    codes under a common ancestor: L = 1 the 3-digit category, 2 the section, 3 the chapter of ICD; for a
    custom hierarchy the L-th node above the code, never the root.
similarity:N
    groups of N codes that are siblings in the hierarchy (`Classification.sibling_groups`: inside a category
    first, what is left inside the section, then inside the chapter, where the last group may be smaller).
frequency:S
    frequent itemsets with support at least S (a share of the records below 1, else a number of records),
    maximal ones only, in order of support, each taken unless it shares a code with one taken before.
file:PATH
    a user's own: a CSV with the columns `constraint,code`, or one constraint a line, codes between commas.

A constraint of a single code is kept: it allows nothing and forbids nothing, and its error is measured like
the others'.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leeward.cohort.lenses.code_sets import CodeSets
from leeward.errors import BadInput, nearest
from leeward.paths import is_file
from leeward.vocabulary import Vocabulary, load
from leeward.vocabulary._text import read_text

NONE = -1
"""`Constraints.of_code` of a code in no constraint."""

KINDS = {"hierarchy": "level", "similarity": "size", "frequency": "min_support", "file": "path"}
"""Each kind of policy with the name of its value in a mapping."""

LEAST = {"hierarchy": 1, "similarity": 2}
"""The least value of the kinds whose value is a whole number."""

EXAMPLES = "hierarchy:1, similarity:10, frequency:0.0125 or file:PATH"


@dataclass(frozen=True)
class Policy:
    """A utility policy as a user writes it.

    `value`: the level of a hierarchy, 1–3 (custom ones may have more); the size of groups of siblings, ≥ 2; the support
    of itemsets, > 0; or the path of a file.
    """

    kind: str
    value: int | float | str

    def __post_init__(self) -> None:
        _require_kind(self.kind)
        least, value = LEAST.get(self.kind), self.value
        if least is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise BadInput(
                f"policy {self.kind}: `{KINDS[self.kind]}` must be a whole number, at least {least}; got {value}."
            )
        if self.kind == "frequency" and not (isinstance(value, int | float) and value > 0):
            raise BadInput(f"policy `frequency`: the support must be above 0; got {value}.")

    def __str__(self) -> str:
        return f"{self.kind}:{self.value:g}" if isinstance(self.value, float) else f"{self.kind}:{self.value}"


PolicyLike: TypeAlias = Policy | str | Mapping[str, Any] | None
"""What a policy may be given as."""


@dataclass(frozen=True)
class Constraints:
    """Disjoint sets of a cohort's codes.

    names : one a constraint, unique, in the order of the constraints' first codes (of the file, for `file:`).
    of_code : int32[len(codes)], the constraint of each code of the lens, `NONE` (-1) for codes in none.
    """

    names: tuple[str, ...]
    of_code: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.names)

    def members(self) -> list[NDArray[np.int32]]:
        """The codes (indices, ascending) of each constraint."""
        order = np.argsort(self.of_code, kind="stable").astype(np.int32)
        cuts = np.searchsorted(self.of_code[order], np.arange(len(self.names) + 1))
        return [order[a:b] for a, b in itertools.pairwise(cuts)]

    def rows(self, codes: Sequence[str]) -> list[tuple[str, str]]:
        """(constraint, code) pairs for `custody/data/policy.parquet`, by constraint and code."""
        pairs = zip(self.names, self.members(), strict=True)
        return [(name, codes[code]) for name, members in pairs for code in members]

    @staticmethod
    def none(n_codes: int) -> Constraints:
        return Constraints((), np.full(n_codes, NONE, np.int32))


def parse(policy: PolicyLike) -> Policy | None:
    """A policy from `hierarchy:1`, a spec's mapping (`{policy: hierarchy, level: 1}`), a Policy, or None; BadInput
    for an unknown kind (naming the nearest), a wrong or missing parameter."""
    if policy is None or isinstance(policy, Policy):
        return policy
    if isinstance(policy, Mapping):
        return _from_mapping(policy)
    if not isinstance(policy, str):
        raise BadInput(f"a policy is a text such as {EXAMPLES}; got {type(policy).__name__}.")
    if policy.strip().lower() in ("", "none"):
        return None
    kind, _, value = policy.strip().partition(":")
    _require_kind(kind)
    if not value:
        raise BadInput(f"policy {policy!r} lacks its value; write {EXAMPLES}.")
    return _make(kind, value)


def constraints(
    policy: PolicyLike, sets: CodeSets, vocabulary: str | Vocabulary | None = None
) -> Constraints:
    """The utility constraints of `policy` on a cohort's codes. `vocabulary` (of hierarchy and similarity policies)
    is `icd9`, `icd10`, a hierarchy file or a Vocabulary. BadInput: codes or a level that it lacks, an unknown code
    in a file, or one in two constraints."""
    wanted = parse(policy)
    if wanted is None:
        return Constraints.none(len(sets.codes))
    if wanted.kind == "frequency":
        return _of_frequency(float(wanted.value), sets)
    if wanted.kind == "file":
        return _of_file(Path(str(wanted.value)), sets)
    return _of_vocabulary(wanted, sets, vocabulary)


def _from_mapping(mapping: Mapping[str, Any]) -> Policy | None:
    if not mapping:
        return None
    if mapping.get("policy") is None:
        keys = ", ".join(repr(str(key)) for key in mapping)
        raise BadInput(f"a policy needs the key `policy`, as in {{policy: hierarchy, level: 1}}; got {keys}.")
    kind = str(mapping["policy"])
    if kind == "none" or (":" in kind and len(mapping) == 1):
        return parse(kind)
    _require_kind(kind)
    wanted = KINDS[kind]
    for key in mapping:
        if key not in ("policy", wanted):
            raise BadInput(f"policy `{kind}`: unknown key {str(key)!r}; the nearest is `{wanted}`.")
    if mapping.get(wanted) is None:
        raise BadInput(f"policy `{kind}` needs `{wanted}`.")
    return _make(kind, mapping[wanted])


def _require_kind(kind: str) -> None:
    if kind not in KINDS:
        near = nearest(kind, KINDS)
        raise BadInput(
            f"unknown policy {kind!r}: {f'the nearest is {near!r}' if near else f'write {EXAMPLES}'}."
        )


def _make(kind: str, value: object) -> Policy:
    text = str(value).strip()
    if kind == "file":
        return Policy(kind, str(value))
    try:
        number = float(text.rstrip("%"))
    except ValueError:
        raise BadInput(f"policy `{kind}`: {KINDS[kind]} must be a number; got {text!r}.") from None
    if not np.isfinite(number):
        raise BadInput(f"policy `{kind}`: {KINDS[kind]} must be a finite number; got {text!r}.")
    number = number / 100 if text.endswith("%") else number
    if kind in LEAST and number != int(number):
        raise BadInput(f"policy `{kind}`: {KINDS[kind]} must be a whole number; got {value}.")
    return Policy(kind, int(number) if kind in LEAST else number)


def _of_vocabulary(policy: Policy, sets: CodeSets, vocabulary: str | Vocabulary | None) -> Constraints:
    if vocabulary is None:
        raise BadInput(
            f"`policy: {policy.kind}` needs a vocabulary: `icd9`, `icd10`, one that was added (`leeward vocabulary "
            "list`) or a hierarchy file (CSV `node,parent`). Without one: `policy: none`."
        )
    known, value = load(vocabulary) if isinstance(vocabulary, str) else vocabulary, int(policy.value)
    if policy.kind == "hierarchy":
        return _of_groups(known.level_groups(sets.codes, value), sets.codes)
    runs = known.sibling_groups(sets.codes, value)
    return _of_groups({f"{run[0]}–{run[-1]}": run for run in runs}, sets.codes)


def _of_groups(groups: Mapping[str, Sequence[str]], codes: Sequence[str]) -> Constraints:
    number = {code: i for i, code in enumerate(codes)}
    of_code = np.full(len(codes), NONE, np.int32)
    for group, members in enumerate(groups.values()):
        of_code[[number[code] for code in members]] = group
    return Constraints(tuple(groups), of_code)


def _of_frequency(min_support: float, sets: CodeSets) -> Constraints:
    """Disjoint maximal frequent itemsets: highest support first; ties: the longer, then the smaller codes."""
    from leeward.analysis.itemsets import frequent_itemsets

    threshold = min_support if min_support < 1 else int(np.ceil(min_support))
    found = frequent_itemsets(sets, threshold)
    maximal = maximal_itemsets([itemset for itemset, _ in found])
    support = dict(found)
    taken = np.zeros(len(sets.codes), np.bool_)
    groups: dict[str, list[str]] = {}
    for itemset in sorted(maximal, key=lambda s: (-support[s], -len(s), s)):
        members = np.asarray(itemset)
        if not taken[members].any():
            taken[members] = True
            groups[f"itemset {len(groups) + 1}"] = [sets.codes[code] for code in itemset]
    return _of_groups(groups, sets.codes)


def maximal_itemsets(itemsets: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The itemsets of a downward-closed collection that no other one contains."""
    inside = {itemset[:i] + itemset[i + 1 :] for itemset in itemsets for i in range(len(itemset))}
    return [itemset for itemset in itemsets if itemset not in inside]


def _of_file(path: Path, sets: CodeSets) -> Constraints:
    number = {code: i for i, code in enumerate(sets.codes)}
    place: dict[str, int] = {}
    of_code = np.full(len(sets.codes), NONE, np.int32)
    row_of: dict[int, int] = {}
    for row, name, code in _read_entries(path):
        if code not in number:
            raise BadInput(
                f"{path.name}, row {row}: constraint {name!r} names a code that the data lack, {code!r}; "
                "correct its spelling or delete it."
            )
        own, index = place.setdefault(name, len(place)), number[code]
        if of_code[index] not in (NONE, own):
            raise BadInput(
                f"{path.name}, rows {row_of[index]} and {row}: constraints {[*place][of_code[index]]!r} and "
                f"{name!r} share a code; utility constraints are disjoint: keep it in one of them."
            )
        of_code[index] = own
        row_of.setdefault(index, row)
    return Constraints(tuple(place), of_code)


def _read_entries(path: Path) -> list[tuple[int, str, str]]:
    """(row, constraint, code) of a policy file in either form."""
    if not is_file(path):
        raise BadInput(
            f"policy file {' '.join(path.name.split())[:200]}: cannot be read; there is no such file."
        )
    lines = [(row, line) for row, line in enumerate(read_text(path).splitlines(), 1) if line.strip()]
    if not lines:
        raise BadInput(
            f"{path.name}: the policy file is empty; give one constraint a line, or rows `constraint,code`."
        )
    header = [cell.lower() for cell in _cells_of(lines[0][1])]
    if {"constraint", "code"} <= set(header):
        return [(row, *_entry(f"{path.name}, row {row}", header, _cells_of(line))) for row, line in lines[1:]]
    return [
        (row, f"line {row}", code)
        for row, line in lines
        for code in _codes_of(line, f"{path.name}, row {row}")
    ]


def _codes_of(line: str, where: str) -> list[str]:
    cells = _cells_of(line.replace(";", ","))
    if not all(cells):
        raise BadInput(f"{where}: an empty code; one constraint a line, codes separated by commas.")
    return cells


def _entry(where: str, header: Sequence[str], cells: Sequence[str]) -> tuple[str, str]:
    given = dict(zip(header, cells, strict=False))
    if len(cells) != len(header) or not given["constraint"] or not given["code"]:
        raise BadInput(f"{where}: {len(cells)} cells or an empty one; each row is `constraint,code`.")
    return given["constraint"], given["code"]


def _cells_of(line: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(",")]
