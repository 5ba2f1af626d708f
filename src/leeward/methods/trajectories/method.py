"""The way from a cohort to a release."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.trajectories import Trajectories as Lens
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.trajectories import classed, hierarchies, release, space
from leeward.methods.trajectories.space import Space
from leeward.methods.whole_patient import release_in_classes
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

if TYPE_CHECKING:
    from leeward.analysis.demographics import Classes
    from leeward.arrays import Int64s
    from leeward.engine import Engine
    from leeward.methods.trajectories.parameters import Trajectories
    from leeward.methods.trajectories.records import Group, Records
    from leeward.methods.trajectories.run import Settings
    from leeward.vocabulary.age import AgeTree
    from leeward.vocabulary.hierarchy import Hierarchy


def protect(
    parameters: Trajectories,
    cohort: Cohort,
    engine: Engine | None = None,
    *,
    randomness: Randomness | None = None,
    population: object = None,
) -> Anonymized:
    """Cluster the cohort's trajectories and publish each cluster as one trajectory.

    Raises
    ------
    BadInput
        No ages, odd ages (`odd_ages: refuse`), codes that the hierarchy lacks.
    GuaranteeUnreachable
        Fewer than k patients, or a sensitive value that is too frequent for the diversity wanted.
    """
    from leeward.engine import make

    engine = make(engine)
    randomness = randomness or Randomness.of(None)
    prepared = _prepare(parameters, cohort)
    patients, records = prepared.lens.patients, prepared.records

    def run(classes: Classes | None, kept: Int64s) -> Anonymized:
        own = prepared
        if len(kept) < len(records):
            own = _prepare(parameters, classed.of_patients(cohort, patients.gather(kept)))
        notices = _notices(prepared.lens)
        return _release(parameters, own, str(parameters.hierarchy or cohort.vocabulary), notices, classes, engine,
                        randomness)  # fmt: skip

    lost = classed.lost_in(records, prepared.spaces, _settings(parameters), engine.threads)
    return release_in_classes(
        parameters, cohort, patients, records.lengths(), lost, run, randomness, classed.SEARCHED,
        classes_last=True,
    )  # fmt: skip


def _release(
    parameters: Trajectories,
    prepared: Prepared,
    named: str,
    notices: list[str],
    classes: Classes | None,
    engine: Engine,
    randomness: Randomness,
) -> Anonymized:
    """The release of prepared records; `named`: the hierarchy of codes."""
    from leeward.methods.trajectories import losses

    lens, tree, records, spaces = prepared.lens, prepared.tree, prepared.records, prepared.spaces
    groups, facts = _groups(parameters, records, spaces, engine, classes)
    lost = losses.of(groups, records.lengths(), spaces)
    facts |= {"ilm": lost.ilm, "alm": lost.alm, "total": lost.total, "kept_pairs": lost.kept}
    facts |= {"levels": losses.by_level(groups, records.lengths(), spaces)}
    facts |= release.facts_of(groups, records, spaces)
    notices += release.search_notices(facts)
    listed = release.common_nodes(tree, records, parameters.k) if prepared.found_in_data else None
    if listed is not None:
        hidden = tree.n_leaves - int(listed[tree.leaves].sum())
        notices.append(
            f"No list of codes was stated: losses are shares of the {tree.n_leaves:,} codes that occur, and "
            f"the released code hierarchy lists those that at least k = {parameters.k} patients have ({hidden:,} have "
            "fewer). State a list with --hierarchy-codes, or a hierarchy file with --vocabulary, if it should not "
            "depend on the data."
        )
    order = randomness.stream("trajectories", "records").permutation(len(records))
    read = dict(zip(lens.labels, np.bincount(lens.codes, minlength=len(lens.labels)).tolist(), strict=True))
    return release.release_of(
        parameters, groups, spaces, order, prepared.payload, facts, notices, randomness.seeded, read, named, listed,
        classes,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Prepared:
    """A cohort ready to be clustered; `found_in_data`: its hierarchy of codes is made of the codes that occur."""

    lens: Lens
    tree: Hierarchy
    found_in_data: bool
    spaces: Space
    records: Records
    payload: pl.DataFrame | None


def _prepare(parameters: Trajectories, cohort: Cohort) -> Prepared:
    from leeward.methods.trajectories.records import Records

    years = hierarchies.age_tree(parameters.ages)
    lens = cohort.trajectories(years.first, years.last)
    _refuse_odd(parameters, cohort, lens)
    tree, found_in_data = _code_tree(parameters, cohort, lens)
    if found_in_data and parameters.sensitive:
        raise BadInput(
            f"{cohort.name}: `sensitive` bounds the share of sensitive codes below a value, so the codes of the "
            "hierarchy must be stated: give --hierarchy-codes, or a hierarchy file with --vocabulary."
        )
    spaces = _space(parameters, cohort, lens, tree, years)
    payload = cohort.payload(parameters.payload, lens.patients)
    values = (
        None if parameters.sensitive_column is None else _number_payload(payload, parameters.sensitive_column)
    )
    records = Records(lens.offsets, tree.nodes_of(lens.labels)[lens.codes], years.nodes(lens.ages), values)
    if len(records) < parameters.k:
        raise GuaranteeUnreachable(
            f"{cohort.name}: {len(records):,} patients with a trajectory are fewer than k = {parameters.k}; "
            "no group of k can be made. Give more patients or a smaller k."
        )
    return Prepared(lens, tree, found_in_data, spaces, records, payload)


def _refuse_odd(parameters: Trajectories, cohort: Cohort, lens: Lens) -> None:
    odd = [notice for notice in lens.odd if notice.kind != "no trajectory"]
    if odd and parameters.odd_ages == "refuse":
        raise BadInput(
            f"{cohort.name}: {'; '.join(str(notice) for notice in odd)}. Correct the ages, choose a wider age "
            "hierarchy with --age-hierarchy, or leave these rows out with --odd-ages 'leave out'."
        )


def _notices(lens: Lens) -> list[str]:
    return [f"{notice}." if notice.kind == "no trajectory" else f"Left out: {notice}." for notice in lens.odd]


def _code_tree(parameters: Trajectories, cohort: Cohort, lens: Lens) -> tuple[Hierarchy, bool]:
    try:
        return hierarchies.code_tree(parameters.hierarchy or cohort.vocabulary, parameters.codes, lens.labels)
    except BadInput as problem:
        raise BadInput(f"{cohort.name}: {problem}") from None


def _space(parameters: Trajectories, cohort: Cohort, lens: Lens, tree: Hierarchy, years: AgeTree) -> Space:
    constraint = _constraints(parameters, cohort, tree) if parameters.policy is not None else None
    shown = None
    if parameters.sensitive or constraint is not None:
        share = 1 / parameters.diversity if parameters.diversity else 1.0
        shown = space.publishable_codes(tree, parameters.sensitive, share, constraint)
    narrow = None if parameters.widest_age is None else space.narrow_ages(years, parameters.widest_age)
    return space.make(
        tree, years, (float(parameters.weights[0]), float(parameters.weights[1])), shown, narrow
    )


def _constraints(parameters: Trajectories, cohort: Cohort, tree: Hierarchy) -> NDArray[np.int32]:
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


def _settings(parameters: Trajectories) -> Settings:
    from leeward.methods.trajectories import run

    return run.Settings(
        parameters.k,
        parameters.joining,
        max(1, parameters.k // parameters.diversity)
        if parameters.sensitive_column and parameters.diversity
        else 1 << 30,
        parameters.improve,
        seconds=parameters.improve_seconds,
        diversity=parameters.diversity if parameters.sensitive_column and parameters.diversity else 0,
        clustering=parameters.clustering,
        in_order=parameters.order == "kept",
    )


def _groups(
    parameters: Trajectories, records: Records, spaces: Space, engine: Engine, classes: Classes | None
) -> tuple[list[Group], dict[str, Any]]:
    from leeward.methods.trajectories import cells, diversity, improvement, run

    settings = _settings(parameters)
    members = None if classes is None else classes.members
    if records.group is not None and parameters.diversity is not None:
        for inside in members or [np.arange(len(records))]:
            diversity.require_reachable(records.group[inside], parameters.diversity)
    largest = parameters.partition
    if parameters.clustering == "cells" and largest:
        largest = min(largest, max(cells.PART, 4 * parameters.k))
    parts = ceil(len(records) / largest) if largest else 1
    facts: dict[str, Any] = {"partitions": 1}
    searched: list[improvement.Progress] = []
    if members is not None:
        part = classed.parts_of(members, records, spaces, largest)
        groups = run.in_parts(records, part, spaces, settings, engine, searched)
        facts["partitions"] = int(part.max()) + 1
    elif parts == 1 and engine.name == "local":
        groups = run.clustered(
            records, spaces, settings, engine.threads, run.reporter_of(engine), searched=searched
        )
    elif parts == 1:
        groups = run.in_parts(records, np.zeros(len(records), np.int32), spaces, settings, engine, searched)
    else:
        part = run.describe_parts(records, spaces, largest)
        groups = run.in_parts(records, part, spaces, settings, engine, searched)
        facts["partitions"] = int(part.max()) + 1
        if parameters.clustering == "alignment":
            facts["one_halving_costs"] = run.cost_of_halving(records, spaces, settings, engine.threads)
    if records.group is not None:
        assert parameters.diversity is not None  # for the types: goes with the column
        merging = diversity.diversify
        if classes is None:
            groups = merging(groups, records, spaces, parameters.diversity, parameters.k)
        else:
            groups = [
                group
                for inside in classed.by_class(groups, classes)
                for group in merging(inside, records, spaces, parameters.diversity, parameters.k)
            ]
        if parameters.clustering == "cells":
            groups = cells.publish([g.members for g in groups], records, spaces, settings.in_order)
    if parameters.improve:
        facts["search"] = release.search_of(searched, facts["partitions"])
    return groups, facts


def _number_payload(payload: pl.DataFrame | None, column: str) -> NDArray[np.int32]:
    """The values of a payload column as numbers; a missing value is a value of its own."""
    assert payload is not None  # for the types: the column is one of the payload's
    ranks = payload[column].rank("dense").fill_null(0).cast(pl.Int32)
    return ranks.to_numpy().astype(np.int32)
