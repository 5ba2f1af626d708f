"""Protect a cohort's trajectories: from the cohort to the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.arrays import AnyArray, Bools, Int32s, Int64s, distinct_of, offsets_of, positions_of, ranges_of
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.trajectories import Trajectories as Lens
from leeward.cohort.lenses.trajectories import list_odd
from leeward.cohort.notices import Notice
from leeward.contracts.trajectories import CONTRACT, LISTED, axis_of
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.trajectories import cells, diversity, hierarchies, parts
from leeward.methods.trajectories.hierarchies import Space
from leeward.methods.trajectories.records import Group, Records, losses_of
from leeward.methods.whole_patient import hierarchy_table, records_table, release_in_classes
from leeward.randomness import Randomness
from leeward.release.content import Anonymized, Guarantee, ReleaseTable
from leeward.vocabulary.hierarchy import Hierarchy

if TYPE_CHECKING:
    from leeward.analysis.demographics import Classes
    from leeward.engine import Engine
    from leeward.methods.trajectories.parameters import Trajectories
    from leeward.vocabulary.age import AgeTree

SEARCHED = 4_000
"""Records sampled by the search for levels: the work of clustering grows with the square of their number."""

EXAMPLES = 6
"""Groups shown to the custodian, as in the thesis's Table 4."""


def protect(
    parameters: Trajectories,
    cohort: Cohort,
    engine: Engine | None = None,
    *,
    randomness: Randomness | None = None,
    population: object = None,
) -> Anonymized:
    """Cluster the cohort's trajectories and publish each cluster as one trajectory. Raises BadInput: no ages, odd ages
    (`odd_ages: refuse`), codes that the hierarchy lacks; GuaranteeUnreachable: fewer than k patients, or a sensitive
    value that is too frequent for the diversity wanted."""
    from leeward.engine import make

    engine = make(engine)
    randomness = randomness or Randomness.of(None)
    prepared = _prepare(parameters, cohort)
    patients, records = prepared.lens.patients, prepared.records

    def run(classes: Classes | None, kept: Int64s) -> Anonymized:
        own = prepared
        if len(kept) < len(records):
            own = _prepare(parameters, _select(cohort, patients.gather(kept)))
        named = str(parameters.hierarchy or cohort.vocabulary)
        notices = [
            f"{each}." if each.kind == "no trajectory" else f"Left out: {each}." for each in prepared.left_out
        ]
        return _release(parameters, own, named, notices, classes, engine, randomness)

    def count_lost(classes: Sequence[AnyArray]) -> list[int]:
        """Pairs lost in each class: a published pair counts its weighted mean loss of code and age, others 1."""
        found = []
        for members in classes:
            part = records.take(members.astype(np.int64))
            groups = parts.cluster(part, prepared.space, _settings(parameters), engine.threads)
            kept = sum(len(group.members) * group.saving(prepared.space) for group in groups)
            found.append(round(len(part.codes) - kept / prepared.space.unit))
        return found

    return release_in_classes(
        parameters,
        cohort,
        patients,
        records.lengths(),
        count_lost,
        run,
        randomness,
        SEARCHED,
        classes_last=True,
    )


def _select(cohort: Cohort, patients: pl.Series) -> Cohort:
    inside = pl.col("patient").is_in(patients.implode())
    people = None if cohort.patients is None else cohort.patients.filter(inside)
    return replace(cohort, events=cohort.require_events().filter(inside), patients=people)


def _release(
    parameters: Trajectories,
    prepared: Prepared,
    named: str,
    notices: list[str],
    classes: Classes | None,
    engine: Engine,
    randomness: Randomness,
) -> Anonymized:
    """Build the release; its record i is the prepared record order[i]; `named`: the hierarchy of codes."""
    lens, tree, records, space = prepared.lens, prepared.tree, prepared.records, prepared.space
    groups, partitions = _groups(parameters, records, space, engine, classes)
    listed = _common_nodes(tree, records, parameters.k) if prepared.found_in_data else None
    if listed is not None:
        hidden = tree.n_leaves - int(listed[tree.leaves].sum())
        notices.append(
            f"No list of codes was stated: losses are shares of the {tree.n_leaves:,} codes that occur, and "
            f"the released code hierarchy lists those that at least k = {parameters.k} patients have ({hidden:,} have "
            "fewer). State a list with --hierarchy-codes, or a hierarchy file with --vocabulary, if it should not "
            "depend on the data."
        )
    order = randomness.stream("trajectories", "records").permutation(len(records))
    public = parameters.public(
        hierarchy=hierarchies.public_name(named),
        listed_codes=None if listed is None else LISTED,
        order="kept" if parameters.in_order else "free",
    )
    words = CONTRACT.words(public)
    # the place of each record's patient in ascending identifiers, for the custodian's measures
    places = pa.table({"record": np.arange(len(order), dtype=np.int64), "place": order})
    return Anonymized(
        method=parameters.name,
        parameters=public,
        guarantee=Guarantee.of(CONTRACT, words, public),
        records=len(order),
        tables=(
            ReleaseTable.of("trajectories.parquet", _trajectories(groups, space, order, axis_of(public))),
            records_table(order, classes, prepared.payload),
            _hierarchy("code_hierarchy.csv", tree, listed),
            _hierarchy(f"{axis_of(public)}_hierarchy.csv", space.age.hierarchy),
        ),
        readme=words.readme,
        custody_tables=(
            ReleaseTable.of("records.parquet", places),
            ReleaseTable.of("codes.parquet", _accounts(groups, tree, lens)),
        ),
        custody={"partitions": partitions, **_facts(groups, records, space)},
        notices=tuple(notices),
        seeded=randomness.seeded,
    )


@dataclass(frozen=True, eq=False)
class Prepared:
    """A cohort ready to be clustered. `left_out`: rows without a usable age, and patients without any other;
    `found_in_data`: the code hierarchy is built from the codes that occur."""

    lens: Lens
    left_out: list[Notice]
    tree: Hierarchy
    found_in_data: bool
    space: Space
    records: Records
    payload: pl.DataFrame | None


def _prepare(parameters: Trajectories, cohort: Cohort) -> Prepared:
    years = hierarchies.time_tree(vars(parameters))
    lens = cohort.trajectories(years.first, years.last, years.dated)
    left_out = list_odd(cohort.parts(), years.first, years.last, years.dated)
    odd = [str(notice) for notice in left_out if notice.kind != "no trajectory"]
    if odd and parameters.odd_ages == "refuse":
        wider = "--time and more years" if years.dated else "--age-hierarchy"
        raise BadInput(
            f"{cohort.name}: {'; '.join(odd)}. Correct them, choose a wider hierarchy with {wider}, or leave these "
            "rows out with --odd-ages 'leave out'."
        )
    tree, found_in_data = _code_tree(parameters, cohort, lens)
    if found_in_data and parameters.sensitive:
        raise BadInput(
            f"{cohort.name}: `sensitive` bounds the share of sensitive codes below a value, so the codes of the "
            "hierarchy must be stated: give --hierarchy-codes, or a hierarchy file with --vocabulary."
        )
    space = _space(parameters, cohort, lens, tree, years)
    payload = cohort.payload(parameters.payload, lens.patients)
    values = None
    if payload is not None and parameters.sensitive_column is not None:  # a missing value counts as a value
        ranks = payload[parameters.sensitive_column].rank("dense").fill_null(0)
        values = ranks.to_numpy().astype(np.int32)
    records = Records(lens.offsets, tree.nodes_of(lens.codes)[lens.values], years.nodes(lens.ages), values)
    if len(records) < parameters.k:
        raise GuaranteeUnreachable(
            f"{cohort.name}: {len(records):,} patients with a trajectory are fewer than k = {parameters.k}; "
            "no group of k can be made. Give more patients or a smaller k."
        )
    return Prepared(lens, left_out, tree, found_in_data, space, records, payload)


def _code_tree(parameters: Trajectories, cohort: Cohort, lens: Lens) -> tuple[Hierarchy, bool]:
    try:
        return hierarchies.code_tree(parameters.hierarchy or cohort.vocabulary, parameters.codes, lens.codes)
    except BadInput as problem:
        raise BadInput(f"{cohort.name}: {problem}") from None


def _space(parameters: Trajectories, cohort: Cohort, lens: Lens, tree: Hierarchy, years: AgeTree) -> Space:
    constraint = _constraints(parameters, cohort, tree) if parameters.policy is not None else None
    shown = None
    if parameters.sensitive or constraint is not None:
        share = 1 / parameters.diversity if parameters.diversity else 1.0
        shown = hierarchies.publishable_codes(tree, parameters.sensitive, share, constraint)
    narrow = None if parameters.widest_age is None else hierarchies.narrow_ages(years, parameters.widest_age)
    weights = float(parameters.weights[0]), float(parameters.weights[1])
    return hierarchies.make_space(tree, years, weights, shown, narrow)


def _constraints(parameters: Trajectories, cohort: Cohort, tree: Hierarchy) -> Int32s:
    """The constraint of each leaf of the code hierarchy; -1 for codes in none."""
    from leeward.analysis import policies
    from leeward.vocabulary import load

    sets = cohort.code_sets()
    named = parameters.hierarchy or cohort.vocabulary
    vocabulary = load(named) if named else None
    found = policies.constraints(policies.parse(parameters.policy), sets, vocabulary)
    of_leaf = np.full(tree.n_leaves, -1, np.int32)
    leaf_number = {label: number for number, label in enumerate(tree.leaf_labels())}
    for code, constraint in zip(sets.codes, found.of_code.tolist(), strict=True):
        if code in leaf_number:
            of_leaf[leaf_number[code]] = constraint
    return of_leaf


def _settings(parameters: Trajectories) -> parts.Settings:
    settings = parts.Settings(
        parameters.k,
        parameters.joining == "normalised",
        parameters.clustering == "cells",
        parameters.in_order,
    )
    if parameters.sensitive_column is None or parameters.diversity is None:
        return settings
    return replace(settings, most=max(1, parameters.k // parameters.diversity))


def _groups(
    parameters: Trajectories, records: Records, space: Space, engine: Engine, classes: Classes | None
) -> tuple[list[Group], int]:
    """Groups, each inside one class of demographics, and the number of parts."""
    settings = _settings(parameters)
    members, class_of = [np.arange(len(records))], np.zeros(len(records), np.int32)
    if classes is not None:
        members, class_of = list(classes.members), classes.of_record
    values, diverse = records.group, parameters.diversity
    if values is None or diverse is None:
        part = parts.parts_of(members, records, space, settings.largest)
        return parts.cluster_parts(records, part, space, settings, engine), int(part.max()) + 1
    diversity.require_reachable([values[inside] for inside in members], diverse)
    part = parts.parts_of(members, records, space, settings.largest)
    inside_class: list[list[Group]] = [[] for _ in members]
    for group in parts.cluster_parts(records, part, space, settings, engine):
        inside_class[class_of[group.members[0]]].append(group)
    diversified = (diversity.diversify(own, records, space, diverse, parameters.k) for own in inside_class)
    groups = list(chain.from_iterable(diversified))
    if settings.cells:
        groups = cells.publish([g.members for g in groups], records, space, settings.in_order)
    return groups, int(part.max()) + 1


def _trajectories(groups: Sequence[Group], space: Space, order: Int64s, axis: str) -> pa.Table:
    group_of = np.empty(len(order), np.int64)
    for number, group in enumerate(groups):
        group_of[group.members] = number
    pairs = np.array([len(group.codes) for group in groups], np.int64)
    shown = group_of[order]
    position = ranges_of(np.zeros(len(order), np.int64), pairs[shown])
    at = positions_of(offsets_of(pairs), shown)
    codes = np.concatenate([group.codes for group in groups])[at]
    ages = np.concatenate([group.ages for group in groups])[at]
    return pa.table(
        {
            "record": pa.array(np.repeat(np.arange(len(order)), pairs[shown])),
            "position": pa.array(position),
            "code": _labels(space.code.hierarchy, codes),
            axis: _labels(space.age.hierarchy, ages),
        }
    )


def _labels(tree: Hierarchy, nodes: Int32s) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(nodes), pa.array(tree.labels, pa.string()))


def _accounts(groups: Sequence[Group], tree: Hierarchy, lens: Lens) -> pa.Table:
    """Number of pairs of each code in the source, and of pairs released with that code or node."""
    read = dict(zip(lens.codes, np.bincount(lens.values, minlength=len(lens.codes)).tolist(), strict=True))
    counted = np.zeros(len(tree), np.int64)
    for group in groups:
        np.add.at(counted, group.codes, len(group.members))
    shown = {tree.labels[node]: int(counted[node]) for node in np.flatnonzero(counted)}
    names = sorted({*read, *shown})
    return pa.table(
        {
            "code": pa.array(names, pa.string()),
            "read": pa.array([read.get(name, 0) for name in names], pa.int64()),
            "shown": pa.array([shown.get(name, 0) for name in names], pa.int64()),
        }
    )


def _common_nodes(tree: Hierarchy, records: Records, k: int) -> Bools:
    """The nodes that at least k records have a code below. They include all published values, since k records share
    each. A hierarchy built from the codes in the data must not show others: that somebody has a rare code is not
    covered by k-anonymity."""
    owner = np.repeat(np.arange(len(records), dtype=np.int64), records.lengths())
    held = distinct_of(owner * len(tree) + records.codes)
    node = (held % len(tree)).astype(np.int32)
    common = np.bincount(node, minlength=len(tree)) >= k
    owner, node = held[~common[node]] // len(tree), node[~common[node]]
    for deep in range(int(tree.depth.max()), 0, -1):  # rare nodes count for the node above
        node = np.where(tree.depth[node] == deep, tree.parent[node], node)
        held = distinct_of(owner * len(tree) + node)
        common |= np.bincount(held % len(tree), minlength=len(tree)) >= k
        common[tree.parent[common & (tree.depth == deep)]] = True
    return common


def _hierarchy(path: str, tree: Hierarchy, listed: Bools | None = None) -> ReleaseTable:
    names = {label for place, label in enumerate(tree.labels) if listed is None or listed[place]}
    return hierarchy_table(path, [pair for pair in tree.to_pairs() if pair[0] in names])


def _facts(groups: Sequence[Group], records: Records, space: Space) -> dict[str, Any]:
    """Facts of the run for the custodian: losses, sizes of groups, lengths, and examples."""
    sizes = np.array([len(group.members) for group in groups])
    published = np.array([len(group.codes) for group in groups])
    lost = losses_of(groups, records.lengths(), space)
    return {
        "ilm": lost.ilm,
        "alm": lost.alm,
        "total": lost.total,
        "kept_pairs": lost.kept,
        "groups": len(groups),
        "sizes": {str(size): int(n) for size, n in zip(*np.unique(sizes, return_counts=True), strict=True)},
        "pairs": int(records.offsets[-1]),
        "published_pairs": int(sizes @ published),
        "empty_records": int(sizes[published == 0].sum()),
        "examples": _examples(groups, space),
    }


def _examples(groups: Sequence[Group], space: Space) -> list[dict[str, Any]]:
    """Example groups by loss per pair, ascending; those with at least three pairs if there are any."""
    code, age = space.code.hierarchy, space.age.hierarchy
    long = [group for group in groups if len(group.codes) >= 3] or list(groups)
    code_loss, age_loss = code.losses, age.losses
    lost = [
        float(np.mean(code_loss[g.codes]) + np.mean(age_loss[g.ages])) if len(g.codes) else 2.0 for g in long
    ]
    order = np.argsort(np.array(lost), kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, EXAMPLES).astype(int))]
    return [
        {
            "records": len(long[i].members),
            "pairs": [
                f"({code.labels[c]}, {age.labels[v]})"
                for c, v in zip(long[i].codes, long[i].ages, strict=True)
            ],
            "lost_a_pair": lost[i] / 2,
        }
        for i in chosen.tolist()
    ]
