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
from leeward.vocabulary import Vocabulary, load

NONE = -1
"""`Constraints.of_code` of a code in no constraint."""

KINDS: Mapping[str, str] = {
    "hierarchy": "level",
    "similarity": "size",
    "frequency": "min_support",
    "file": "path",
}
"""Each kind of policy with the name of its parameter in a mapping."""

EXAMPLES = "hierarchy:1, similarity:10, frequency:0.0125 or file:PATH"


@dataclass(frozen=True)
class Policy:
    """A utility policy as a user writes it; exactly the field of its `kind` is set.

    `level` 1–3 for hierarchies (custom ones may have more), `size` ≥ 2, `min_support` > 0, `path` a file.
    """

    kind: str
    level: int | None = None
    size: int | None = None
    min_support: float | None = None
    path: str | None = None

    def __post_init__(self) -> None:
        wanted = KINDS.get(self.kind)
        if wanted is None:
            raise BadInput(_unknown_kind(self.kind))
        given = [name for name in KINDS.values() if getattr(self, name) is not None]
        if given != [wanted]:
            raise BadInput(
                f"policy `{self.kind}` needs `{wanted}` alone; got {', '.join(given) or 'nothing'}."
            )
        if self.level is not None and (not _is_whole(self.level) or self.level < 1):
            raise BadInput(f"policy hierarchy: `level` must be a whole number, at least 1; got {self.level}.")
        if self.size is not None and (not _is_whole(self.size) or self.size < 2):
            raise BadInput(f"policy similarity: `size` must be a whole number, at least 2; got {self.size}.")
        if self.min_support is not None and not self.min_support > 0:
            raise BadInput(f"policy `frequency`: the support must be above 0; got {self.min_support}.")

    def __str__(self) -> str:
        value = getattr(self, KINDS[self.kind])
        return f"{self.kind}:{value:g}" if isinstance(value, float) else f"{self.kind}:{value}"


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
        return [
            (name, codes[code])
            for name, members in zip(self.names, self.members(), strict=True)
            for code in members
        ]

    @staticmethod
    def none(n_codes: int) -> Constraints:
        """No constraint at all."""
        return Constraints((), np.full(n_codes, NONE, np.int32))


def parse(policy: PolicyLike) -> Policy | None:
    """A policy from `hierarchy:1`, a spec's mapping (`{policy: hierarchy, level: 1}`), a Policy, or None.

    Raises BadInput for an unknown kind (naming the nearest), a wrong or missing parameter.
    """
    if policy is None or isinstance(policy, Policy):
        return policy
    if isinstance(policy, str):
        return _from_text(policy)
    if isinstance(policy, Mapping):
        return _from_mapping(policy)
    raise BadInput(f"a policy is a text such as {EXAMPLES}; got {type(policy).__name__}.")


def constraints(
    policy: PolicyLike, sets: CodeSets, vocabulary: str | Vocabulary | None = None
) -> Constraints:
    """The utility constraints of `policy` on the codes of a cohort.

    `vocabulary` is `icd9`, `icd10`, the path of a hierarchy (CSV `node,parent`) or a Vocabulary; hierarchy
    and similarity policies need one. Raises BadInput: codes or a level that the vocabulary lacks, a file that names an
    unknown code or puts a code in two constraints.
    """
    wanted = parse(policy)
    if wanted is None:
        return Constraints.none(len(sets.codes))
    if wanted.kind == "hierarchy":
        return _of_hierarchy(int(wanted.level or 0), sets.codes, vocabulary)
    if wanted.kind == "similarity":
        return _of_similarity(int(wanted.size or 0), sets.codes, vocabulary)
    if wanted.kind == "frequency":
        return _of_frequency(wanted.min_support or 0, sets)
    return _of_file(Path(wanted.path or ""), sets.codes)


# -- parsing ---------------------------------------------------------------------------------------


def _from_text(text: str) -> Policy | None:
    if text.strip().lower() in ("", "none"):
        return None
    kind, colon, value = text.strip().partition(":")
    if kind not in KINDS:
        raise BadInput(_unknown_kind(kind))
    if not colon or not value:
        raise BadInput(f"policy {text!r} lacks its value; write {EXAMPLES}.")
    return _make(kind, value)


def _from_mapping(mapping: Mapping[str, Any]) -> Policy | None:
    kind = mapping.get("policy")
    if kind is None and not mapping:
        return None
    if kind is None:
        raise BadInput(
            f"a policy needs the key `policy`, as in {{policy: hierarchy, level: 1}}; got {_keys(mapping)}."
        )
    kind = str(kind)
    if kind == "none":
        return None
    if kind not in KINDS:
        if ":" in kind and len(mapping) == 1:
            return _from_text(kind)
        raise BadInput(_unknown_kind(kind))
    wanted = KINDS[kind]
    for key in mapping:
        if key not in ("policy", wanted):
            raise BadInput(f"policy `{kind}`: unknown key {str(key)!r}; the nearest is `{wanted}`.")
    if mapping.get(wanted) is None:
        raise BadInput(f"policy `{kind}` needs `{wanted}`.")
    return _make(kind, mapping[wanted])


def _make(kind: str, value: object) -> Policy:
    if kind == "file":
        return Policy("file", path=str(value))
    if kind == "frequency":
        return Policy("frequency", min_support=_number(kind, value))
    number = _number(kind, value)
    if number != int(number):
        raise BadInput(f"policy `{kind}`: {KINDS[kind]} must be a whole number; got {value}.")
    return (
        Policy("hierarchy", level=int(number))
        if kind == "hierarchy"
        else Policy("similarity", size=int(number))
    )


def _number(kind: str, value: object) -> float:
    text = str(value).strip()
    percent = text.endswith("%")
    try:
        number = float(text.rstrip("%"))
    except ValueError:
        raise BadInput(f"policy `{kind}`: {KINDS[kind]} must be a number; got {text!r}.") from None
    if not np.isfinite(number):
        raise BadInput(f"policy `{kind}`: {KINDS[kind]} must be a finite number; got {text!r}.")
    return number / 100 if percent else number


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _unknown_kind(kind: str) -> str:
    near = nearest(kind, KINDS)
    hint = f"the nearest is {near!r}" if near else f"write {EXAMPLES}"
    return f"unknown policy {kind!r}: {hint}."


def _keys(mapping: Mapping[str, Any]) -> str:
    return ", ".join(repr(str(key)) for key in mapping)


# -- from a vocabulary -----------------------------------------------------------------------------


def _of_hierarchy(level: int, codes: Sequence[str], vocabulary: str | Vocabulary | None) -> Constraints:
    return _of_groups(_vocabulary("hierarchy", vocabulary).level_groups(codes, level), codes)


def _of_similarity(size: int, codes: Sequence[str], vocabulary: str | Vocabulary | None) -> Constraints:
    runs = _vocabulary("similarity", vocabulary).sibling_groups(codes, size)
    return _of_groups({f"{run[0]}–{run[-1]}": run for run in runs}, codes)


def _vocabulary(kind: str, vocabulary: str | Vocabulary | None) -> Vocabulary:
    if vocabulary is None:
        raise BadInput(
            f"policy `{kind}` needs a vocabulary: `icd9`, `icd10`, one that was added (`leeward vocabulary list`) or a "
            "hierarchy file (CSV `node,parent`). Without one: policy `none`."
        )
    return load(vocabulary) if isinstance(vocabulary, str) else vocabulary


def _of_groups(groups: Mapping[str, Sequence[str]], codes: Sequence[str]) -> Constraints:
    number = {code: i for i, code in enumerate(codes)}
    of_code = np.full(len(codes), NONE, np.int32)
    for group, members in enumerate(groups.values()):
        of_code[[number[code] for code in members]] = group
    return Constraints(tuple(groups), of_code)


# -- from the data ---------------------------------------------------------------------------------


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


# -- from a file -----------------------------------------------------------------------------------


def _of_file(path: Path, codes: Sequence[str]) -> Constraints:
    """Read a user's constraints; every complaint names the row."""
    number = {code: i for i, code in enumerate(codes)}
    entries = _read_entries(path)
    names: list[str] = []
    place: dict[str, int] = {}
    of_code = np.full(len(codes), NONE, np.int32)
    row_of: dict[int, int] = {}
    for row, name, code in entries:
        if code not in number:
            raise BadInput(
                f"{path.name}, row {row}: constraint {name!r} names a code that the data lack, {code!r}; "
                "correct its spelling or delete it."
            )
        if name not in place:
            place[name] = len(names)
            names.append(name)
        index = number[code]
        if of_code[index] not in (NONE, place[name]):
            raise BadInput(
                f"{path.name}, rows {row_of[index]} and {row}: constraints {names[of_code[index]]!r} and "
                f"{name!r} share a code; utility constraints are disjoint: keep it in one of them."
            )
        if of_code[index] == NONE:
            of_code[index], row_of[index] = place[name], row
    return Constraints(tuple(names), of_code)


def _read_entries(path: Path) -> list[tuple[int, str, str]]:
    """(row, constraint, code) of a policy file in either form."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{path.name}: not UTF-8 text; save the policy file as UTF-8.") from None
    except (OSError, ValueError) as problem:  # a ValueError: no path at all
        why = getattr(problem, "strerror", None) or "no file has such a name"
        name = " ".join(path.name.split())[:200]
        raise BadInput(f"policy file {name}: cannot be read ({why}).") from None
    lines = [(row, line.strip()) for row, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise BadInput(
            f"{path.name}: the policy file is empty; give one constraint a line, or rows `constraint,code`."
        )
    header = [cell.strip().strip('"').lower() for cell in lines[0][1].split(",")]
    if "constraint" in header and "code" in header:
        return _long_entries(path, lines[1:], header.index("constraint"), header.index("code"), len(header))
    entries: list[tuple[int, str, str]] = []
    for row, line in lines:
        cells = [cell.strip().strip('"') for cell in line.replace(";", ",").split(",")]
        if any(not cell for cell in cells):
            raise BadInput(
                f"{path.name}, row {row}: an empty code; one constraint a line, codes separated by commas."
            )
        entries += [(row, f"line {row}", code) for code in cells]
    return entries


def _long_entries(
    path: Path, lines: Sequence[tuple[int, str]], constraint: int, code: int, width: int
) -> list[tuple[int, str, str]]:
    entries = []
    for row, line in lines:
        cells = [cell.strip().strip('"') for cell in line.split(",")]
        if len(cells) != width or not cells[constraint] or not cells[code]:
            raise BadInput(
                f"{path.name}, row {row}: {len(cells)} cells or an empty one; each row is `constraint,code`."
            )
        entries.append((row, cells[constraint], cells[code]))
    return entries
