"""A disassociated release with demographics: classes, clusters inside them, payload shuffled inside clusters
(docs/methods/whole-patient.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.analysis.demographics import Classes
from leeward.analysis.demographics.columns import values_of
from leeward.analysis.demographics.diverse import (
    Sensitive,
    counted_values,
    diversify_classes,
    sensitive_columns,
)
from leeward.analysis.demographics.search import Lost
from leeward.arrays import AnyArray, Int64s, offsets_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods import demographics_tables as whole
from leeward.methods.disassociation.classed import WEIGHT, disassociate_classes, members_of
from leeward.methods.disassociation.diversity import diversify
from leeward.methods.disassociation.partition import Partition, partition_records
from leeward.methods.disassociation.publish import (
    Published,
    chunk_table,
    facts_of,
    node_of_records,
    node_table,
    publish,
)
from leeward.methods.disassociation.reconstruct import reconstruction
from leeward.methods.disassociation.rules import Rules
from leeward.methods.disassociation.workers import Workers
from leeward.randomness import Randomness
from leeward.release.content import ReleaseTable

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.engine import Engine
    from leeward.methods.disassociation.parameters import Disassociation

PAYLOAD = pa.schema([("node", pa.int64()), ("column", pa.string()), ("value", pa.string())])


def release_in_classes(
    parameters: Disassociation,
    cohort: Cohort,
    sets: CodeSets,
    rules: Rules,
    engine: Engine | None,
    workers: Workers,
    randomness: Randomness,
) -> tuple[tuple[ReleaseTable, ...], CodeSets, Classes, dict[str, Any], Int64s]:
    """The data files, the code sets that are released, the classes, the facts for the custodian, and the cluster of
    each record by its released number.

    Raises
    ------
    BadInput
        Columns that are missing or cannot be released; `diversity` on Spark.
    GuaranteeUnreachable
        Fewer than k patients, patients left without any code, or a sensitive value that is too frequent.
    """
    found = whole.find_classes(
        parameters, cohort, sets.patients, sets.lengths(), _lost(sets, rules, workers), randomness
    )
    classes = found.classes
    before = len(classes)
    hidden: tuple[Sensitive, ...] = ()
    if parameters.sensitive_columns:
        released = sets.patients.filter(pl.Series(classes.of_record >= 0))
        values = values_of(cohort.patients, released, tuple(parameters.sensitive_columns), cohort.name)
        hidden = sensitive_columns(values, parameters.sensitive_columns)
        classes = diversify_classes(classes, hidden, frozenset(parameters.keep or {}))
        found = replace(found, classes=classes)
    if classes.left_out:
        sets = sets.take(np.flatnonzero(classes.of_record >= 0))
    class_of = classes.of_record[classes.of_record >= 0]
    facts: dict[str, Any] = whole.facts_of(found)
    if hidden:
        facts["classes_joined_for_diversity"] = before - len(classes)
    partitions: dict[int, Partition] = {}
    if parameters.diversity is not None:
        if engine is not None and engine.name == "spark":
            raise BadInput("`diversity` needs one partition; set `engine: local`.")
        sets, partitions, further = _diversified(
            sets, class_of, rules, parameters.diversity, workers, cohort.name
        )
        facts |= further
    classed = disassociate_classes(sets, class_of, rules, engine, workers, partitions)
    result = publish(classed.data, sets.codes, randomness)
    tables = (
        *whole.tables_of(classes),
        ReleaseTable.of("nodes.parquet", node_table(result, classed.of_node)),
        chunk_table(result, randomness),
    )
    if parameters.payload:
        values = values_of(cohort.patients, sets.patients, parameters.payload, cohort.name)
        tables += (payload_table(result, values, randomness),)
    if hidden:
        tables += (ReleaseTable.of("sensitive.parquet", counted_values(classes, hidden).to_arrow()),)
    tables += tuple(
        reconstruction(result, n, parameters.k, parameters.prior, randomness)
        for n in range(1, parameters.reconstructions + 1)
    )
    return tables, sets, classes, {**facts_of(result), **facts, "partitions": 1}, node_of_records(result)


def _lost(sets: CodeSets, rules: Rules, workers: Workers) -> Lost:
    """Occurrences in item chunks when each of some sets of records is disassociated as a class."""

    def lost(parts: Sequence[AnyArray]) -> list[int]:
        counts = [0] * len(parts)

        def run(i: int) -> Callable[[], object]:
            def task() -> None:
                class_of = np.zeros(len(parts[i]), np.int32)
                classed = disassociate_classes(
                    sets.take(parts[i]), class_of, rules, None, Workers(1), weight=WEIGHT
                )
                counts[i] = facts_of(publish(classed.data, sets.codes, Randomness.of(0)))["item_occurrences"]

            return task

        workers.tasks([run(i) for i in sorted(range(len(parts)), key=lambda i: -len(parts[i]))])
        return counts

    return lost


def payload_table(p: Published, values: pl.DataFrame, randomness: Randomness) -> ReleaseTable:
    """`payload.parquet`: the values of each payload column, shuffled inside every cluster, one row a record and column.

    The column's values are as many as the cluster's records; two columns of a cluster are shuffled apart.
    """
    leaf_of = np.repeat(np.arange(len(p.data.leaf_n_codes)), np.diff(p.data.leaf_offsets))
    node = p.number[leaf_of]
    parts = []
    for name in values.columns:
        keys = randomness.stream("payload", name).permutation(len(node))
        order = np.lexsort((keys, node))
        text = values[name].cast(pl.String).gather(p.data.order[order]).to_arrow().cast(pa.string())
        column = pa.array([name]).take(pa.array(np.zeros(len(node), np.int64)))
        parts.append(pa.table([pa.array(node[order]), column, text], schema=PAYLOAD))
    table = pa.concat_tables(parts)
    both = np.lexsort((table["node"].to_numpy(),))  # stable: by node, then by column, then as shuffled
    return ReleaseTable.of("payload.parquet", table.take(pa.array(both)))


def _diversified(
    sets: CodeSets, class_of: np.ndarray[Any, Any], rules: Rules, ell: int, workers: Workers, name: str
) -> tuple[CodeSets, dict[int, Partition], dict[str, Any]]:
    """ℓ-diversity of sensitive codes in every class; occurrences may be suppressed, which is counted."""
    keep = np.ones(len(sets.values), np.bool_)
    partitions, merged = {}, 0
    for number, records in enumerate(members_of(class_of)):
        part = sets.take(records)
        diverse = diversify(
            part.offsets, part.values, partition_records(part, rules, workers), rules.sensitive, ell
        )
        for local, code in zip(diverse.dropped_record, diverse.dropped_code, strict=True):
            begin, end = sets.offsets[records[local]], sets.offsets[records[local] + 1]
            keep[begin + np.searchsorted(sets.values[begin:end], code)] = False
        partitions[number] = diverse.partition
        merged += diverse.merged
    lengths = np.add.reduceat(keep, sets.offsets[:-1])
    if not lengths.all():
        raise GuaranteeUnreachable(
            f"{name}: diversity = {ell} would leave {int((lengths == 0).sum())} patients without any code, because "
            "sensitive codes are too frequent in their class. Lower `diversity` or list fewer sensitive codes."
        )
    thinned = CodeSets(offsets_of(lengths), sets.values[keep], sets.codes, sets.patients)
    return (
        thinned,
        partitions,
        {"clusters_merged_for_diversity": merged, "suppressed_occurrences": int((~keep).sum())},
    )
