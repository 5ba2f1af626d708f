"""Utility of released trajectories (Tamersoy 2011, IV.4): ILM and ALM, levels of values, answers to queries.

Measures: `loss` (Definition 8, Figs. 9–11; levels of the published values, Figs. 13 and 14; ILoss), `usable` (the share
of pairs fine enough to be used), `avgre` (Fig. 12), `cm` (the classification metric), `demographics` (questions of
demographics and codes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.demographics.joint import WholePatient, cohort_in_release, whole_patient
from leeward.analysis.demographics.released import Concerned
from leeward.analysis.figures import Measures, figures_of
from leeward.analysis.phewas.measure import Mentions, phewas
from leeward.analysis.record_counts import counts_where, labels_of
from leeward.arrays import (
    AnyArray,
    Bools,
    Int64s,
    distinct_of,
    first_lists,
    occurrences,
    offsets_of,
    positions_of,
)
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import run_starts
from leeward.cohort.lenses.trajectories import Trajectories
from leeward.contracts.trajectories import axis_of
from leeward.errors import BadInput
from leeward.methods.trajectories.hierarchies import (
    chapter_codes,
    highest,
    narrow,
    time_tree,
    usable_codes,
    years_of,
)
from leeward.methods.trajectories.phenotypes import phenotypes
from leeward.release import Release
from leeward.vocabulary import built_in, load
from leeward.vocabulary.age import OPEN_END, AgeTree
from leeward.vocabulary.hierarchy import Hierarchy

DEFAULTS = ("loss", "usable", "avgre", "cm", "demographics")

MIN_SUPPORT = 0.01
"""The thesis's workload: all sets of pairs in at least 1 % of the trajectories."""

SEED = 0
LARGEST_SET = 8
MOST_QUERIES = 20_000


@dataclass(frozen=True)
class Both:
    """A release and its source (`lens`). `place`: each released record's record in the lens. `kind`: its published
    trajectory; trajectory t has the pairs offsets[t]:offsets[t + 1], as nodes. `ages` are of `times`."""

    lens: Trajectories
    place: Int64s
    kind: Int64s
    offsets: Int64s
    code_nodes: Int64s
    age_nodes: Int64s
    codes: Hierarchy
    ages: Hierarchy
    times: AgeTree

    def copies_and_owners(self) -> tuple[Int64s, Int64s]:
        """The records of each distinct trajectory, and the trajectory of each pair."""
        copies = np.bincount(self.kind, minlength=len(self.offsets) - 1)
        return copies, np.repeat(np.arange(len(copies)), np.diff(self.offsets))


def measure(release: Release, cohort: Cohort, wanted: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of released trajectories. Raises BadInput for an unknown measure, another source, or a release
    without its custody folder."""
    both = pair_records(release, select_cohort(release, cohort))
    mentions = partial(_mentions, release, both.lens)
    measures: Measures = {
        "loss": partial(loss, both, weights=release.parameters["weights"]),
        "usable": partial(usable, both, int(release.guarantee["k"])),
        "avgre": partial(avgre, both),
        "cm": partial(cm, release, both),
        "demographics": partial(demographics, release, cohort),
        "phenotypes": partial(phenotypes, mentions, both.place, both.times),
        "phewas": partial(phewas, release, cohort, mentions),
    }
    return figures_of(release, measures, wanted)


def demographics(release: Release, cohort: Cohort) -> WholePatient:
    """Questions of demographics and codes, answered from the records (docs/methods/whole-patient.md#measures)."""
    sets, labelled = select_cohort(release, cohort).code_sets(), labels_of(release)

    def estimating(concerned: Concerned, queries: list[AnyArray]) -> tuple[AnyArray, AnyArray, AnyArray]:
        named = [[sets.codes[code] for code in query] for query in queries]
        found = counts_where(release, labelled, named, concerned)
        return found.low, found.expected, found.high

    return whole_patient(release, cohort, sets, 0, estimating, lambda concerned, queries: np.zeros(0))


def _mentions(release: Release, lens: Trajectories) -> Mentions:
    """Every pair is a mention of its own, with its `age`."""
    before = pl.DataFrame(
        {
            "person": np.repeat(np.arange(len(lens)), lens.lengths()),
            "visit": np.arange(len(lens.values)),
            "code": pl.Series(lens.codes, dtype=pl.Enum(lens.codes)).gather(lens.values),
            "age": lens.ages,
        }
    )
    after = released_pairs(release).rename({"record": "person", "position": "visit"})
    return Mentions(lens.patients, before, after, Hierarchy.from_csv(release.path("code_hierarchy.csv")))


def select_cohort(release: Release, cohort: Cohort) -> Cohort:
    if not release.demographics:
        return cohort
    return cohort_in_release(release, cohort, _lens(release, cohort).patients)


def originals(release: Release, cohort: Cohort) -> Trajectories:
    return _lens(release, select_cohort(release, cohort))


def _lens(release: Release, cohort: Cohort) -> Trajectories:
    tree = _times(release)
    return cohort.trajectories(tree.first, tree.last, tree.dated)


def pair_records(release: Release, cohort: Cohort) -> Both:
    times, lens = _times(release), _lens(release, cohort)
    ages = times.hierarchy
    released = Hierarchy.from_csv(release.path("code_hierarchy.csv"))
    codes = _name_levels(_whole(released, lens, cohort.vocabulary))
    records = release.custody_table("records")
    if records is None:
        raise BadInput("this release has no custody/data/records.parquet, which says whose record is whose.")
    place = records.sort("record")["place"].to_numpy()
    if len(place) != len(lens):
        raise BadInput(
            f"{cohort.name}: {len(lens):,} patients, the release has {len(place):,}; not its source."
        )
    pairs = released_pairs(release)
    code_nodes, age_nodes = _nodes(pairs["code"], codes), _nodes(pairs["age"], ages)
    starts = offsets_of(np.bincount(pairs["record"].to_numpy(), minlength=len(place)))
    keys = code_nodes * len(ages) + age_nodes
    shown, kind = first_lists(starts, keys)
    offsets, at = offsets_of(np.diff(starts)[shown]), positions_of(starts, shown)
    return Both(lens, place, kind, offsets, code_nodes[at], age_nodes[at], codes, ages, times)


def released_pairs(release: Release) -> pl.DataFrame:
    """The published pairs in order, codes and ages (or dates, as `age`) as categories: a text is held once."""
    texts = pl.col("code", "age").cast(pl.Categorical)
    table = release.table("trajectories.parquet").rename({axis_of(release.parameters): "age"})
    pairs = table.with_columns(texts).collect(engine="streaming")
    return pairs.sort("record", "position")


def loss(both: Both, weights: Sequence[float] = (0.5, 0.5)) -> dict[str, Any]:
    """Definition 8: `ilm` of codes, `alm` of ages, their sum; `kept_pairs`, the share of pairs published at all;
    `levels`, for `code` and `age` the share of values by level from the finest to the root (suppressed ones there); and
    `iloss` of `code`, of `age` and, by `weights`, of both (Xiao & Tao 2006).

    Originals are leaves, so ILM(T) = 1 − (1/|T|)·Σ over published pairs of (1 − Δ/|A|)
    (docs/methods/trajectories.md#loss).
    """
    lengths = both.lens.lengths()[both.place]
    n, total = len(lengths), float(lengths.sum())
    copies, owner = both.copies_and_owners()
    lost: dict[str, float] = {}
    iloss: dict[str, float] = {}
    by_level: dict[str, list[dict[str, Any]]] = {}
    for name, tree, nodes in (("code", both.codes, both.code_nodes), ("age", both.ages, both.age_nodes)):
        of_node = (tree.leaf_count - 1) / tree.n_leaves  # ILoss
        for found, losses in ((lost, tree.losses), (iloss, of_node)):
            saved = np.bincount(owner, weights=losses[0] - losses[nodes], minlength=len(copies))
            found[name] = float(losses[0] - (saved[both.kind] / lengths).sum() / n)
        counts = np.bincount(tree.level[nodes], weights=copies[owner], minlength=len(tree.level_names))
        counts[tree.level[0]] += total - counts.sum()
        by_level[name] = [
            {"level": label, "share": float(count / total)}
            for label, count in zip(tree.level_names, counts, strict=True)
        ]
    return {
        "ilm": lost["code"],
        "alm": lost["age"],
        "total": lost["code"] + lost["age"],
        "iloss": {**iloss, "both": weights[0] * iloss["code"] + weights[1] * iloss["age"]},
        "kept_pairs": float(copies @ np.diff(both.offsets)) / total,
        "levels": by_level,
    }


def cm(release: Release, both: Both) -> list[dict[str, Any]] | None:
    """The classification metric (Iyengar 2002) of each payload column, as the class of the patients: `cm`, the share of
    records with another class than most with the same published trajectory, or with nothing published; `shuffled`, the
    same where classes are shuffled among the records, because most of a few fit by chance; `alone`, the share with
    another class than most of all. None without payload."""
    names = release.parameters.get("payload")
    if not names:
        return None
    shown = release.table("records.parquet").select("record", *names).collect().sort("record")
    kind, order = pl.Series(both.kind), np.random.Generator(np.random.Philox(SEED)).permutation(len(shown))
    published = pl.Series((np.diff(both.offsets) > 0)[both.kind])

    def wrong(kind: pl.Series, value: pl.Series, counted: pl.Series | bool = True) -> float:
        counts = pl.DataFrame({"kind": kind, "value": value}).filter(counted).group_by("kind", "value").len()
        return 1 - int(counts.group_by("kind").agg(pl.col("len").max())["len"].sum()) / len(shown)

    return [
        {
            "column": name,
            "cm": wrong(kind, shown[name], published),
            "shuffled": wrong(kind, shown[name].gather(order), published),
            "alone": wrong(kind * 0, shown[name]),
        }
        for name in names
    ]


def usable(both: Both, k: int) -> dict[str, Any]:
    """Tiers of published pairs, as shares of the original pairs (docs/methods/trajectories.md#measures).

    `usable`: code at 3-digit level or finer, age within 8 years. `chapter`: chapter or finer, within 16 years. `root`:
    code at the root. `lost`: not published. `none`: share of patients without a usable pair. `categories`: distinct
    3-digit categories among usable pairs. `at_most`: no release of this k has more usable pairs.
    """
    total = float(both.lens.lengths().sum())
    copies, owner = both.copies_and_owners()
    times = copies[owner].astype(np.float64)
    years = years_of(both.times)
    usable_years, chapter_years = (narrow(both.ages, years, widest) for widest in both.times.widths)
    fine = [usable_codes(both.codes), usable_years]
    broad = [chapter_codes(both.codes), chapter_years]
    is_usable = fine[0][both.code_nodes] & fine[1][both.age_nodes]
    is_chapter = broad[0][both.code_nodes] & broad[1][both.age_nodes]
    having = np.bincount(owner, weights=is_usable, minlength=len(copies)) > 0
    category = highest(both.codes, fine[0])[both.code_nodes]
    return {
        "usable": float(times @ is_usable) / total,
        "chapter": float(times @ is_chapter) / total,
        "root": float(times @ (both.code_nodes == 0)) / total,
        "lost": 1 - float(times.sum()) / total,
        "none": float(copies[~having].sum()) / len(both.kind),
        "categories": len(np.unique(category[is_usable])),
        "at_most": _count_shareable(both, fine, k) / total,
    }


def _count_shareable(both: Both, fine: Sequence[Bools], k: int) -> int:
    """Count source pairs that at least k patients could share as usable ones: the j-th pair of a patient in a cell
    counts if k patients have at least j pairs there."""
    lens = both.lens
    code = highest(both.codes, fine[0])[both.codes.nodes_of(lens.codes)[lens.values]]
    age = highest(both.ages, fine[1])[both.times.leaf[lens.ages - both.times.first]]
    patient = np.repeat(np.arange(len(lens)), lens.lengths())
    cells = len(both.codes) * len(both.ages)
    cell = code * np.int64(len(both.ages)) + age
    items = np.sort(occurrences(patient * cells + cell) * cells + cell)
    people = np.diff(run_starts(items), append=len(items))
    return int(people[people >= k].sum())


def avgre(both: Both, min_support: float = MIN_SUPPORT, years: int = 1) -> dict[str, Any]:
    """The average (`avgre`) and median relative error of COUNT queries for all sets of pairs in at least `min_support`
    trajectories, their number, and the pairs of the largest. A query's ages are ranges of `years` years from 0 on
    (footnote 8 of the thesis). `avgre` is None when no set of pairs is that frequent."""
    from leeward.methods.trajectories.kernels.answers import estimate

    if not 0 < min_support <= 1:
        raise BadInput(f"`avgre`: `min_support` is a share above 0 and at most 1; got {min_support}.")
    if not isinstance(years, int) or isinstance(years, bool) or years < 1:
        raise BadInput(f"`avgre`: `years` is a whole number of years, at least 1; got {years}.")
    lens = both.lens
    codes = both.codes.nodes_of(lens.codes)[lens.values]
    range_of, inside = _ranges(both.times, years)
    ranges = range_of[both.ages.first_leaf[both.times.leaf[lens.ages - both.times.first]]]
    width = inside.shape[1]
    queries = _frequent(lens, codes.astype(np.int64) * width + ranges, ceil(min_support * len(lens)))
    if not queries:
        return {"avgre": None, "queries": 0, "min_support": min_support, "years": years}
    flat = np.array([item for q, _ in queries for item in q], np.int64)
    estimated = np.empty(len(queries))
    estimate(
        offsets_of([len(q) for q, _ in queries]),
        both.codes.first_leaf[flat // width].astype(np.int64),
        flat % width,
        both.offsets,
        both.codes.first_leaf[both.code_nodes].astype(np.int64),
        both.codes.last_leaf[both.code_nodes].astype(np.int64) + 1,
        both.age_nodes,
        both.codes.leaf_count[both.code_nodes].astype(np.int64) * both.ages.leaf_count[both.age_nodes],
        inside,
        both.copies_and_owners()[0].astype(np.int64),
        estimated,
    )
    true = np.array([count for _, count in queries], np.float64)
    errors = np.abs(true - estimated) / true
    return {
        "avgre": float(errors.mean()),
        "queries": len(queries),
        "min_support": min_support,
        "years": years,
        "median": float(np.median(errors)),
        "largest": max(len(q) for q, _ in queries),
    }


def _ranges(times: AgeTree, years: int) -> tuple[Int64s, Int64s]:
    """The range of each leaf, int64[leaves], and how many leaves of each range are below each node, int64[nodes,
    ranges]. A leaf of several years is in the range of its first."""
    ages, leaves = times.hierarchy, times.hierarchy.leaves.tolist()
    first = [(times.first + int(np.argmax(times.leaf == leaf))) // (years * times.a_year) for leaf in leaves]
    found, range_of = np.unique(first, return_inverse=True)
    before = np.zeros((ages.n_leaves + 1, len(found)), np.int64)
    np.cumsum(range_of[:, None] == np.arange(len(found)), axis=0, out=before[1:])
    return range_of, before[ages.last_leaf + 1] - before[ages.first_leaf]


def _frequent(lens: Trajectories, pairs: Int64s, support: int) -> list[tuple[tuple[int, ...], int]]:
    """Sets of pairs, each a number (code node · |ranges| + range of ages), with their true counts."""
    from leeward.analysis.itemsets import frequent_itemsets
    from leeward.cohort.lenses.code_sets import CodeSets

    there = np.zeros(int(pairs.max(initial=-1)) + 1, np.bool_)
    there[pairs] = True
    distinct, item = np.flatnonzero(there), (np.cumsum(there) - 1)[pairs]
    owner = np.repeat(np.arange(len(lens)), lens.lengths())
    keys = distinct_of(owner * np.int64(len(distinct)) + item)
    values = (keys % len(distinct)).astype(np.int32)
    offsets = offsets_of(np.bincount(keys // len(distinct), minlength=len(lens)))
    sets = CodeSets(offsets, values, tuple(str(number) for number in distinct.tolist()), lens.patients)
    found = frequent_itemsets(sets, max(support, 1), LARGEST_SET)
    found = sorted(found, key=lambda each: (-each[1], each[0]))[:MOST_QUERIES]
    return [(tuple(int(distinct[i]) for i in items), int(count)) for items, count in found]


def _whole(tree: Hierarchy, lens: Trajectories, named: str | None) -> Hierarchy:
    """The full tree, to which losses are relative: a released tree omits codes of fewer than k patients. Taken from a
    vocabulary of Leeward, or from the one with which the cohort was read (`named`)."""
    if set(lens.codes) <= set(tree.leaf_labels()):
        return tree
    vocabulary = built_in(tree.labels[0]) or (load(named) if named else None)
    made = None if vocabulary is None else vocabulary.hierarchy(lens.codes)
    return tree if made is None or made.labels[0] != tree.labels[0] else made


def _times(release: Release) -> AgeTree:
    """The tree of dates; or that of ages, its levels named by the years of their blocks."""
    if axis_of(release.parameters) == "date":
        return time_tree(release.parameters)
    tree = Hierarchy.from_csv(release.path("age_hierarchy.csv"))
    widths = [1 << (high - low).bit_length() for low, high in map(_span, tree.labels)]
    steps = sorted(set(widths))
    level = np.array([steps.index(width) for width in widths], np.int32)
    tree = replace(tree, level=level, level_names=tuple(f"{width}-year" for width in steps))
    spans = sorted((*_span(tree.labels[leaf]), leaf) for leaf in tree.leaves.tolist())
    last = min(max(high for _, high, _ in spans), OPEN_END)
    nodes = [leaf for low, high, leaf in spans for _ in range(low, min(high, last) + 1)]
    return AgeTree(tree, spans[0][0], np.array(nodes, np.int32))


def _name_levels(tree: Hierarchy) -> Hierarchy:
    """The tree of codes with readable level names: the kind of ICD node, or the height."""
    vocabulary = built_in(tree.labels[0])
    if vocabulary is not None:
        built = vocabulary.hierarchy(tree.leaf_labels())
        if built == tree:
            return built
    names = ("the code itself", *(f"{i} up" for i in range(1, int(tree.level.max()))), "root")
    return replace(tree, level_names=names[: int(tree.level.max()) + 1])


def _span(label: str) -> tuple[int, int]:
    first, dash, last = label.partition("-")
    if first.endswith("+"):
        return int(first[:-1]), 127
    return int(first), int(last) if dash else int(first)


def _nodes(values: pl.Series, tree: Hierarchy) -> Int64s:
    distinct = values.unique()
    numbers = pl.Series(tree.nodes_of(distinct.to_list()).astype(np.int64))
    return values.replace_strict(distinct, numbers, return_dtype=pl.Int64).to_numpy()
