"""Condense a table: the features and strata of its parameters, cells of its strata condensed on an engine, made rows in
shuffled order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.arrays import offsets_of
from leeward.cohort.lenses.table import Floats, Table
from leeward.engine import make, pool
from leeward.methods.condensation.cell import CELL, FACTS, GROUP, ROW, CellKernel, Marginals, group_medians
from leeward.methods.condensation.grouping import How, cells_of
from leeward.methods.condensation.parameters import STRATIFIED, Condensation
from leeward.methods.condensation.prepare import Layout, Prepared, layout_of, prepare, release_columns
from leeward.methods.condensation.proposals import propose
from leeward.methods.condensation.relations import Relation, in_table, relation_of, require_relations
from leeward.methods.condensation.synthesis import Longs
from leeward.randomness import Randomness

if TYPE_CHECKING:
    from leeward.engine import Engine

GROUPINGS: dict[str, How] = {
    "balanced": "halving",
    "improved": "kmeans",
    "condensation": "seeds",
    "tfrp": "two-points",
}
MARGINALS: dict[str, Marginals] = {"balanced": "group", "tfrp": "centroid"}


def ready(parameters: Condensation, table: Table, randomness: Randomness) -> tuple[Prepared, CellKernel]:
    assert parameters.algorithm != "auto"  # the pilot has chosen
    assert parameters.weight != "pilot"
    prepared = prepare(parameters, table)
    relations = tuple(relation_of(each) for each in parameters.stated)
    require_relations(relations, table, {each.column.name for each in prepared.features}, prepared.exact)
    if parameters.finds_relations:
        relations += tuple(
            each for each in propose(table, parameters.k) if _is_kept(each, prepared, parameters.k)
        )
    relations = in_table(dict.fromkeys(relations), prepared.values)
    layout = layout_of(prepared.features, prepared.values, prepared.stratum >= 0, float(parameters.weight))
    kernel = CellKernel(
        layout,
        parameters.k,
        GROUPINGS[parameters.algorithm],
        MARGINALS.get(parameters.algorithm, "nearest"),
        parameters.synthesis,
        parameters.draw,
        parameters.algorithm in STRATIFIED,
        relations,
        parameters.coarsen_time,
        parameters.coarsen_groups or 1,
        randomness,
    )
    return prepared, kernel


def _is_kept(relation: Relation, prepared: Prepared, k: int) -> bool:
    """Whether a relation is kept unasked: it names condensed columns and no exact time, and each level that determines
    another column has k rows."""
    names = set(relation.columns())
    if not names <= set(prepared.values) or not names.isdisjoint(prepared.exact):
        return False
    levels = prepared.values[relation.a]
    _, rows = np.unique(levels[~np.isnan(levels)], return_counts=True)
    return relation.kind != "determines" or int(rows.min()) >= k


@dataclass(frozen=True)
class Condensed:
    """Made rows, in an order that says nothing, and the groups behind them. `group`: int64[made rows]. `source_row`,
    `source_group`: the source rows (from 0) and their groups. `group_stratum`: int64[groups]. `facts`: sums over the
    cells (`cell.FACTS`)."""

    frame: pl.DataFrame
    group: Longs
    source_row: Longs
    source_group: Longs
    group_stratum: Longs
    facts: dict[str, float]
    cells: int


def condense(
    prepared: Prepared,
    kernel: CellKernel,
    engine: Engine,
    randomness: Randomness,
    cell_rows: int,
) -> Condensed:
    cell, stratum_of = _cells(prepared, kernel.layout, kernel.k, randomness, cell_rows)
    kept = np.flatnonzero(cell >= 0)
    names = [feature.column.name for feature in prepared.features]
    columns = {f"v{place}": prepared.values[name][kept] for place, name in enumerate(names)}
    rows = pl.DataFrame({CELL: cell[kept], ROW: kept.astype(np.int64), **columns})
    made = engine.map_groups(rows, CELL, kernel, kernel.schema(), order=[ROW])
    del rows, columns
    return _shuffle(prepared, made, names, stratum_of, randomness)


def _cells(
    prepared: Prepared, layout: Layout, k: int, randomness: Randomness, cell_rows: int
) -> tuple[Longs, Longs]:
    """Each row's cell (−1 withheld), numbered through all strata, and each cell's stratum."""
    cell = np.full(len(prepared.stratum), -1, np.int64)
    stratum_of: list[int] = []
    parts = [
        (number, side)
        for number in range(len(prepared.strata))
        for side in np.unique(prepared.side[prepared.stratum == number]).tolist()
    ]
    for part, (number, side) in enumerate(parts):
        inside = np.flatnonzero((prepared.stratum == number) & (prepared.side == side))
        if len(inside) <= cell_rows:
            cell[inside] = len(stratum_of)
            stratum_of.append(number)
            continue
        points = layout.points({name: values[inside] for name, values in prepared.values.items()})
        found = cells_of(points, cell_rows, k, randomness.stream("condensation", "cells", part))
        cell[inside] = found + len(stratum_of)
        stratum_of += [number] * (int(found.max()) + 1)
    return cell, np.array(stratum_of, np.int64)


def _shuffle(
    prepared: Prepared, made: pa.Table, names: list[str], stratum_of: Longs, randomness: Randomness
) -> Condensed:
    cell = made.column(CELL).to_numpy()
    # Groups numbered through all cells: a cell's rows are together, its groups in ascending order.
    starts = np.concatenate(([True], (cell[1:] != cell[:-1])))
    local = made.column(GROUP).to_numpy()
    first = np.concatenate(([True], (local[1:] != local[:-1]) | starts[1:]))
    group = np.cumsum(first) - 1
    group_stratum = stratum_of[cell[first]]
    order = randomness.stream("condensation", "records").permutation(made.num_rows)
    values: dict[str, Floats] = {
        name: made.column(f"v{place}").to_numpy()[order] for place, name in enumerate(names)
    }
    source_row = made.column(ROW).to_numpy()
    for name in prepared.exact[1:]:
        own = prepared.values[name][source_row]
        generator = randomness.stream("condensation", "times", name)
        values[name] = exchange(own, group, group_stratum, generator)[order]
    frame = release_columns(prepared, values, stratum_of[cell][order])
    facts: dict[str, Any] = {fact: float(np.nansum(made.column(f"__{fact}__").to_numpy())) for fact in FACTS}
    return Condensed(frame, group[order], source_row, group, group_stratum, facts, len(stratum_of))


def exchange(own: Floats, group: Longs, stratum: Longs, generator: np.random.Generator) -> Floats:
    """The times `own` given at random to the rows of two groups with about the same median, whatever else a row holds.

    Whichever row somebody takes for a patient's, by all else that is known of the patient, it shows the patient's time
    in at most one of 2k cases, and in one of k where a stratum has one group only; more often where times tie.
    `own`: float64[rows], the source's times, group by group. `group`: int64[rows], ascending without a gap. `stratum`:
    int64[groups]. Groups of a stratum are taken two and two in the order of their lower medians (equal medians: of
    their numbers); of an odd number the last three are taken together.
    """
    offsets = offsets_of(np.bincount(group))
    medians = group_medians(own, offsets)[offsets[:-1]]
    order = np.lexsort((medians, stratum))
    first = np.searchsorted(stratum[order], stratum[order])
    groups = np.bincount(stratum)[stratum[order]]
    pooled = np.empty(len(order), np.int64)
    pooled[order] = first + np.minimum((np.arange(len(order)) - first) // 2, np.maximum(groups // 2 - 1, 0))
    made = np.empty_like(own)
    drawn = np.lexsort((generator.random(len(own)), pooled[group]))
    made[drawn] = own[np.argsort(pooled[group], kind="stable")]
    return made


def again(
    prepared: Prepared,
    kernel: CellKernel,
    engine: Engine,
    times: int,
    randomness: Randomness,
    cell_rows: int,
) -> list[pl.DataFrame]:
    """Make the table further times, each grouped anew: for the custodian's measures only."""

    def one(number: int) -> pl.DataFrame:
        own = Randomness(randomness.number("condensation", "repetition", number), randomness.seeded)
        mine = replace(kernel, randomness=own)
        return condense(prepared, mine, make("local", threads=1), own, cell_rows).frame

    with pool(engine.threads) as workers:
        return list(workers.map(one, range(times)))
