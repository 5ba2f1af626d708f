"""Phenotypes of a phenome-wide study: who is a case of which phecode, and who is neither case nor control.

A case has codes of the phecode in at least `min_codes` visits. A control has none of it, nor of its exclusion range.
Everybody else is left out. A generalized code counts for a phecode only if all its members map there; a node of a
hierarchy counts for none (docs/methods/visits.md#phewas), or by `phecodes_of_tree`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from leeward.arrays import Int64s, offsets_of
from leeward.vocabulary import built_in
from leeward.vocabulary.classification import Diagnoses

if TYPE_CHECKING:
    from leeward.vocabulary.hierarchy import Hierarchy
    from leeward.vocabulary.phecode import PhecodeMap

MEMBERS = "|"


@dataclass(frozen=True)
class Phenotypes:
    """Cases and left-out people of each phecode, as flat arrays.

    names : phecodes, ascending. people : how many people there are.
    case_starts, case_people : the cases of phenotype p are `case_people[case_starts[p]:case_starts[p + 1]]`.
    out_starts, out_people : those who are neither case nor control.
    """

    names: tuple[str, ...]
    people: int
    case_starts: Int64s
    case_people: Int64s
    out_starts: Int64s
    out_people: Int64s

    def cases(self, p: int) -> Int64s:
        return self.case_people[self.case_starts[p] : self.case_starts[p + 1]]

    def others(self, p: int) -> Int64s:
        return self.out_people[self.out_starts[p] : self.out_starts[p + 1]]

    def controls(self, p: int) -> Int64s:
        left = np.ones(self.people, np.bool_)
        left[self.cases(p)] = False
        left[self.others(p)] = False
        return np.flatnonzero(left)


def phecodes_of_label(label: str, mapping: PhecodeMap, vocabularies: Sequence[str]) -> frozenset[str]:
    """The phecodes that a released label counts for: those of all its members."""
    found = [_phecodes(member, mapping, vocabularies) for member in label.split(MEMBERS)]
    return frozenset.intersection(*found)


def phecodes_of_tree(
    tree: Hierarchy, mapping: PhecodeMap, vocabularies: Sequence[str]
) -> dict[str, frozenset[str]]:
    """The phecodes that each label of a released hierarchy tells: those of all codes at or below it, which are those
    that the hierarchy lists and, of a classification, all that the map has (it may not list a node's codes)."""
    known, told = built_in(tree.labels[0]), dict[str, frozenset[str]]()
    listed = {code for name in vocabularies for code in mapping.codes.get(name, ())}
    if isinstance(known, Diagnoses):
        for code in filter(known.is_known, listed):
            own = _phecodes(code, mapping, vocabularies)
            told |= {label: told.get(label, own) & own for label, _ in known.path(code)}
    for leaf in tree.leaves.tolist():
        own = told.setdefault(tree.labels[leaf], _phecodes(tree.labels[leaf], mapping, vocabularies))
        above = [tree.labels[node] for node in tree.ancestors(leaf)]
        told |= {label: told.get(label, own) & own for label in above}
    # a node over a code that is one itself has a star: `250.*`, `250.0*`
    return {
        label: told.get(label.rstrip("*").rstrip("."), told[label]) & told[label] for label in tree.labels
    }


def _phecodes(code: str, mapping: PhecodeMap, vocabularies: Sequence[str]) -> frozenset[str]:
    for name in vocabularies:
        if found := mapping.roll_up(code, name):
            return frozenset(found)
    return frozenset()


def phenotypes_of(
    mentions: pl.DataFrame,
    people: int,
    mapping: PhecodeMap,
    vocabularies: Sequence[str] = ("icd9",),
    min_codes: int = 1,
    told: Mapping[str, frozenset[str]] | None = None,
) -> Phenotypes:
    """The phenotypes of `mentions` (`person` 0 … people - 1, `visit`, `code`: labels as text, Categorical or Enum),
    by `vocabularies` in this order; `told`: the phecodes of each label, where not by `phecodes_of_label`. Phecodes
    without any case are kept where somebody holds them."""
    codes = mentions["code"].unique().cast(pl.String).sort().to_list()
    found = {code: told[code] if told else phecodes_of_label(code, mapping, vocabularies) for code in codes}
    pairs = [(code, phecode) for code, phecodes in found.items() for phecode in sorted(phecodes)]
    table = pl.DataFrame(pairs, schema={"code": pl.String, "phecode": pl.String}, orient="row")
    names = tuple(sorted(set(table["phecode"])))
    table = table.with_columns(
        pl.col("code").cast(mentions.schema["code"]), pl.col("phecode").cast(pl.Enum(names)).to_physical()
    )
    joined = mentions.join(table, on="code", how="inner").select("person", "visit", "phecode")
    counted = joined.unique().group_by("phecode", "person").len().sort("phecode", "person")
    return _phenotypes(names, people, counted, mapping, min_codes)


def _phenotypes(
    names: tuple[str, ...], people: int, counted: pl.DataFrame, mapping: PhecodeMap, min_codes: int
) -> Phenotypes:
    phecode, person = counted["phecode"].to_numpy(), counted["person"].to_numpy().astype(np.int64)
    enough = counted["len"].to_numpy() >= min_codes
    bounds = np.searchsorted(phecode, np.arange(len(names) + 1))
    number = {name: place for place, name in enumerate(names)}
    cases, out = [], []
    mark = np.zeros(people, np.bool_)
    for p, name in enumerate(names):
        mine = person[bounds[p] : bounds[p + 1]]
        case = mine[enough[bounds[p] : bounds[p + 1]]]
        related = [number[each] for each in mapping.exclude_controls(name) if each in number]
        for each in (p, *related):
            mark[person[bounds[each] : bounds[each + 1]]] = True
        mark[case] = False
        left_out = np.flatnonzero(mark)
        mark[left_out] = False
        cases.append(case)
        out.append(left_out)
    return Phenotypes(names, people, *_flat(cases), *_flat(out))


def _flat(parts: Iterable[Int64s]) -> tuple[Int64s, Int64s]:
    listed = list(parts)
    starts = offsets_of([len(each) for each in listed])
    return starts, np.concatenate([np.zeros(0, np.int64), *listed])
