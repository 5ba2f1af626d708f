"""What the parameters mean for a table: features, strata, the kernel that condenses a cell, and cells' sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from leeward.cohort.lenses.table import Table
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.condensation.cell import CellKernel
from leeward.methods.condensation.grouping import How
from leeward.methods.condensation.layout import layout_of
from leeward.methods.condensation.parameters import STRATIFIED, Condensation
from leeward.methods.condensation.prepare import Prepared, prepare, roles_of
from leeward.methods.condensation.relations import Relation, in_table, of_several_times, relation_of, require
from leeward.randomness import Randomness

GROUPINGS: dict[str, How] = {
    "balanced": "halving",
    "improved": "kmeans",
    "condensation": "seeds",
    "tfrp": "two-points",
}
CELL_ROWS = 1 << 17
"""Halving takes at most about this many rows at a time; the paper's algorithms take a stratum whole."""

REPEATED_ROWS = 50_000
"""Up to this many rows a planned release is measured over `REPETITIONS`, above over itself alone."""
REPETITIONS = 20


def ready(parameters: Condensation, table: Table, randomness: Randomness) -> tuple[Prepared, CellKernel]:
    """The table as features and strata, and the kernel that condenses a cell of it."""
    assert parameters.algorithm != "auto"  # the pilot has chosen
    assert parameters.weight != "pilot"
    own = parameters.algorithm in STRATIFIED
    relations = tuple(relation_of(each) for each in parameters.relations)
    roles = roles_of(parameters.models, parameters.strata, parameters.time, parameters.response)
    prepared = prepare(
        table,
        parameters.models,
        roles,
        parameters.k,
        stratified=own or bool(parameters.strata),
        missing=parameters.missing,
        rare=parameters.rare,
        sided=parameters.algorithm == "balanced",
        exact_times=own and not parameters.coarsen_time,
    )
    _require_relations(relations, prepared)
    relations = in_table(relations, prepared.values)
    features = prepared.features if own else tuple(replace(each, role="other") for each in prepared.features)
    layout = layout_of(features, prepared.values, prepared.stratum >= 0, float(parameters.weight))
    marginals = parameters.marginals or ("group" if parameters.algorithm == "balanced" else "nearest")
    kernel = CellKernel(
        layout,
        parameters.k,
        GROUPINGS[parameters.algorithm],
        "centroid" if parameters.algorithm == "tfrp" else marginals,
        parameters.synthesis,
        parameters.draw,
        own,
        relations,
        parameters.coarsen_time,
        parameters.coarsen_groups or 1,
        randomness,
    )
    return replace(prepared, features=features), kernel


def _require_relations(relations: Sequence[Relation], prepared: Prepared) -> None:
    """BadInput where a relation does not hold in the source, or names a column that is not condensed;
    GuaranteeUnreachable where it names one of several exact times."""
    require(relations, prepared.table)
    condensed = {feature.column.name for feature in prepared.features}
    for relation in relations:
        for name in relation.columns():
            if name not in condensed:
                raise BadInput(
                    f"{prepared.table.name}: the relation '{relation.text}' names '{name}', which is a stratum or has "
                    "no values."
                )
        if of_several_times(relation, prepared.exact):
            raise GuaranteeUnreachable(
                f"{prepared.table.name}: the relation '{relation.text}' names one of {len(prepared.exact):,} times "
                f"that are released as they are ({', '.join(prepared.exact)}): keeping it would lead somebody who "
                "knows one of a patient's times to another one more often than once in k. Leave the relation out, "
                "publish medians of groups (`coarsen_time`), or drop all times but one."
            )


def rows_at_once(parameters: Condensation, rows: int) -> int:
    """Rows that are grouped at a time."""
    return max(CELL_ROWS, 2 * parameters.k) if GROUPINGS[parameters.algorithm] == "halving" else rows


def repeats(parameters: Condensation, rows: int) -> int:
    """Further made tables for the measures."""
    return REPETITIONS - 1 if parameters.plan and rows <= REPEATED_ROWS else 0
