"""Released trajectories as arrays: records, pairs and two hierarchies; whether the hierarchies are as they must be."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leeward.verify.checks import Check, Source, check_numbers, of_count
from leeward.verify.class_labels import read_pairs
from leeward.verify.flat import Longs, offsets_of, preorder
from leeward.verify.kernels import number_lists
from leeward.verify.manifest import Share, read_spec
from leeward.vocabulary import VOCABULARIES, load

AGE_LABEL = re.compile(r"(\d+)(?:-(\d+)|(\+))?")
OLDEST, MOST_YEARS = 200_000, 200
"""Above every age, and above every month of a date, counted from the year 0; the most years of dates."""


def span_of(label: str) -> tuple[int, int]:
    """First and last year of a label, which `layout` has read."""
    found = AGE_LABEL.fullmatch(label)
    assert found is not None
    return int(found[1]), OLDEST if found[3] else int(found[2] or found[1])


COMMON = "of at least k patients"
"""What a release says whose code hierarchy lists the codes of a built-in vocabulary that k patients have."""


@dataclass(frozen=True)
class Tree:
    """A published hierarchy: leaves numbered in the order of the file (`leaf`, by their labels), those of each node the
    interval from `low` to `high`, high excluded."""

    labels: tuple[str, ...]
    index: dict[str, int]
    low: Longs
    high: Longs
    leaf: dict[str, int]

    def equals(self, other: Tree | None) -> bool:
        if other is None or other.labels != self.labels:
            return False
        return np.array_equal(other.low, self.low) and np.array_equal(other.high, self.high)


def tree_of_dates(years: str) -> Tree | None:
    """The tree that dates of the years `2000-2019` must have, depth first; none for another text or above 200."""
    if re.fullmatch(r"\d{4}-\d{4}", years) is None:
        return None
    first, last = map(int, years.split("-"))
    if not 0 <= last - first < MOST_YEARS:
        return None
    whole = f"{first}-{last}" if first < last else str(first)
    rows = {whole: ""}
    for year in range(first, last + 1):
        low, high = max(first, 10 * (year // 10)), min(last, 10 * (year // 10) + 9)
        decade = f"{low}-{high}" if low < high else str(low)
        rows.setdefault(decade, whole)
        rows.setdefault(str(year), decade)
        for quarter in range(1, 5):
            rows[f"{year}-Q{quarter}"] = str(year)
            rows |= {f"{year}-{3 * quarter - left:02}": f"{year}-Q{quarter}" for left in (2, 1, 0)}
    return tree_of(list(rows.items()))[0]


@dataclass(frozen=True)
class Released:
    """Published records: record r has the pairs offsets[r]:offsets[r + 1], as nodes of the trees (-1: no node). `kind`
    is equal for records published alike. `spans`: int64[nodes, 2], first and last year of each age; dates are ages
    here, in months."""

    offsets: Longs
    codes: Longs
    ages: Longs
    kind: Longs
    code_tree: Tree
    age_tree: Tree
    spans: Longs
    records: pl.DataFrame


def layout(share: Share) -> tuple[list[Check], Released | None]:
    """The four files can be read as trajectories: columns, numbers of records and positions, two trees."""
    years = share.manifest["parameters"].get("time")
    time = "date" if years else "age"
    texts = pl.col("code", "age").cast(pl.Categorical)  # a text is held once
    table = pl.scan_parquet(share.data("trajectories.parquet")).rename({time: "age"})
    pairs = table.with_columns(texts).collect(engine="streaming").sort("record", "position")
    records, trees = share.table("records.parquet").sort("record"), []
    for name in ("code_hierarchy.csv", f"{time}_hierarchy.csv"):
        rows = read_pairs(share.data(name))
        tree, fault = (None, "it cannot be read as node,parent.") if rows is None else tree_of(rows)
        if tree is None:
            return [Check("layout", False, f"{name}: {fault}")], None
        trees.append(tree)
    if years:
        bad_ages = 0 if trees[1].equals(tree_of_dates(str(years))) else len(trees[1].labels)
    else:
        bad_ages = sum(AGE_LABEL.fullmatch(label) is None for label in trees[1].labels)
    n = int(share.manifest["records"])
    stray = pairs.filter(~pl.col("record").is_between(0, n - 1)).height
    problem = ""
    if stray or not check_numbers(records["record"], n).passed:
        problem = f"Records are not numbered 0 … {n - 1:,}, or {stray} pairs belong to no record."
    if bad_ages:
        problem = f"{bad_ages} {time} labels are not {time}s{f' in the tree of {years}' if years else ''}."
    if problem:
        return [Check("layout", False, problem)], None
    gaps = pairs.filter(pl.col("position") != pl.int_range(pl.len()).over("record")).height
    checks = [
        Check("layout", True, f"{n:,} records and {pairs.height:,} published pairs, in two hierarchies."),
        of_count(
            "positions", gaps, "Pairs are numbered 0, 1, … in every record.", "pairs break the numbering."
        ),
    ]
    if gaps:
        return checks, None
    offsets = offsets_of(np.bincount(pairs["record"].to_numpy(), minlength=n))
    codes, ages = (_nodes(pairs[name], tree) for name, tree in zip(("code", "age"), trees, strict=True))
    if years:  # months are the leaves, in their order
        spans = np.stack([trees[1].low, trees[1].high - 1]).T + 12 * int(str(years)[:4])
    else:
        spans = np.array([span_of(label) for label in trees[1].labels], np.int64)
    return checks, Released(offsets, codes, ages, _kinds(pairs, offsets), trees[0], trees[1], spans, records)


def tree_of(pairs: Sequence[tuple[str, str]]) -> tuple[Tree | None, str]:
    """The tree of (node, parent) pairs, or what is wrong with them."""
    labels = tuple(label for label, _ in pairs)
    index = {label: number for number, label in enumerate(labels)}
    parent = np.array([index.get(above, -2) if above else -1 for _, above in pairs], np.int32)
    if len(index) < len(labels) or (parent == -1).sum() != 1:
        return None, "a node appears twice, or there is not exactly one root."
    if (parent == -2).any():
        return None, "a parent is not a node."
    order, end = preorder(parent)
    if len(order) < len(labels):
        return None, "some nodes are in a cycle."
    childless = np.ones(len(labels), np.bool_)
    childless[parent[parent >= 0]] = False
    before = offsets_of(childless[order].astype(np.int64))  # leaves before each place of the preorder
    low = np.empty(len(labels), np.int64)
    low[order] = before[:-1]
    leaf = {labels[node]: number for number, node in enumerate(order[childless[order]].tolist())}
    return Tree(labels, index, low, before[end], leaf), ""


def _nodes(values: pl.Series, tree: Tree) -> Longs:
    """The node of each value; -1 where the tree has none."""
    distinct = values.unique()
    numbers = pl.Series([tree.index.get(label, -1) for label in distinct.to_list()], dtype=pl.Int64)
    return values.replace_strict(distinct, numbers).to_numpy().astype(np.int64)


def _kinds(pairs: pl.DataFrame, offsets: Longs) -> Longs:
    """Equal numbers for records whose published trajectories are equal; records without pairs are alike."""
    code, age = (pairs[name].to_physical().to_numpy().astype(np.int64) for name in ("code", "age"))
    return np.asarray(number_lists(offsets, code << 32 | age), np.int64)


BUILT_IN = "hipaa"


def tree_checks(released: Released, parameters: Mapping[str, Any]) -> list[Check]:
    """Rows stand depth first; a built-in tree of ages has the range stated, and each age the span of those below."""
    trees = (released.code_tree, released.age_tree)
    orders = [np.lexsort((-tree.high, tree.low)) for tree in trees]  # by the first leaf, the wider first
    checks = [
        of_count(
            "hierarchies_depth_first",
            sum(bool((order != np.arange(len(order))).any()) for order in orders),
            "The hierarchies' rows are depth first.",
            "hierarchies have rows that are not depth first.",
        )
    ]
    stated = str(parameters.get("ages", OWN))
    if stated != OWN:
        root = released.age_tree.labels[int(np.argmax(released.age_tree.high - released.age_tree.low))]
        other = (
            root != stated
            if stated != BUILT_IN
            else not any("+" in each for each in released.age_tree.labels)
        )
        checks.append(
            of_count(
                "spans_of_ages",
                unfit(released.age_tree) + other,
                "Every age has the span of the ages below it, and the tree the range stated.",
                "ages do not span the ages below them, or the tree does not have the range stated.",
            )
        )
    return checks


def unfit(tree: Tree) -> int:
    """Nodes whose span is not that of their leaves, which ascend without gaps."""
    spans = {label: span_of(label) for label in tree.labels}
    leaves = [spans[label] for label in sorted(tree.leaf, key=lambda each: tree.leaf[each])]
    wrong = sum(a[1] + 1 != b[0] for a, b in itertools.pairwise(leaves))
    for label, low, high in zip(tree.labels, tree.low.tolist(), tree.high.tolist(), strict=True):
        wrong += spans[label] != (leaves[low][0], leaves[high - 1][1])
    return wrong


OWN = "custom"
"""The manifest's word for a hierarchy from a file, or of an added vocabulary."""


def check_hierarchy(tree: Tree, share: Share, source: Source | None) -> list[Check]:
    """The manifest names the hierarchy that the custodian asked for, and the released tree is that one; one that lists
    the codes of k patients only is compared with the source (`hierarchy_lists_common_codes`)."""
    stated, common = (share.manifest["parameters"].get(name) for name in ("hierarchy", "listed_codes"))
    asked = hierarchy_of_spec(share) or (None if source is None else source.vocabulary)
    right = stated in names_of(tree, asked, common == COMMON)
    detail = (
        "The manifest names the hierarchy of codes." if right else "The hierarchy of codes has another name."
    )
    checks = [Check("hierarchy_named", right, detail)]
    if not right or common == COMMON:
        return checks
    pairs = pairs_of(stated, asked, tree)
    if pairs is not None:
        same = tree.equals(tree_of(pairs)[0])
        said = "is" if same else "is not"
        detail = f"The hierarchy of codes {said} the one named, over the codes that it lists."
        checks.append(Check("hierarchy_as_named", same, detail))
    return checks


def names_of(tree: Tree, asked: str | None, common: bool) -> set[str]:
    """What the manifest may call the hierarchy that was asked for. Without spec and source (None) the name of the root
    is all that tells; a file may have the root of a built-in vocabulary."""
    if asked is not None:
        return {asked.lower() if asked.lower() in VOCABULARIES else OWN}
    of_root = {name for name in VOCABULARIES if load(name).name == tree.labels[0]}
    return of_root if common and of_root else of_root | {OWN}


def hierarchy_of_spec(share: Share) -> str | None:
    """The hierarchy or vocabulary that custody's spec names; None without it (`parameters_of_spec` refutes an
    unreadable one)."""
    spec = read_spec(share)
    if not spec:
        return None
    source = spec.get("source")
    named = source.get("vocabulary") if isinstance(source, dict) else None
    found = spec["method"].get("hierarchy") or named
    return None if found is None else str(found)


def pairs_of(stated: str, asked: str | None, tree: Tree) -> list[tuple[str, str]] | None:
    """(node, parent) of the named hierarchy over the released leaves; None where its file is not at hand."""
    if stated in VOCABULARIES:
        return load(stated).hierarchy(list(tree.leaf)).to_pairs()
    if asked is None or not Path(asked).is_file():
        return None
    named = load(asked)
    known = [code for code in tree.leaf if named.is_known(code)]
    return named.hierarchy(known).to_pairs() if known else []
