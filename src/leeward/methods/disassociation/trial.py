"""`partitioning: auto` of few patients: try the partitionings, and take the one whose release answers best
(docs/methods/disassociation.md#few-patients)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa

from leeward.analysis.itemsets import supports_of
from leeward.analysis.policies import Constraints
from leeward.analysis.workloads import frequent_queries, random_queries, relative_errors
from leeward.arrays import AnyArray, Int64s
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.disassociation.measures import estimate_queries
from leeward.methods.disassociation.measures.estimates import DEFAULT
from leeward.methods.disassociation.measures.published import index_of
from leeward.methods.disassociation.parameters import Disassociation
from leeward.methods.disassociation.pipeline import disassociate
from leeward.methods.disassociation.publish import chunk_table, node_table, publish
from leeward.methods.disassociation.rules import Workers, rules_of
from leeward.randomness import Randomness

FEW = 5_000
"""Records up to which the partitionings are tried."""

FREQUENT, QUERIES = 0.0125, 250
"""Share of the records that hold a set of W1, and queries drawn of each kind."""

NO_ERROR = 0.001
"""Mean errors below this count as this: their ratios say nothing."""

Way = Literal["fitted", "recut", "paper"]
WAYS: tuple[tuple[Way, bool], ...] = (("fitted", False), ("fitted", True), ("recut", False), ("paper", False))
"""What is tried, the first of equals is taken: a partitioning, and whether its parts are split from 2k records on, as
those of the others are."""

Asked = Sequence[tuple[list[AnyArray], Int64s]]


def choose(
    parameters: Disassociation, sets: CodeSets, policy: Constraints, name: str, workers: Workers
) -> Disassociation:
    """The parameters with the partitioning whose release has the smallest errors: their geometric mean over W1 and W2,
    one workload a size. The same data and parameters give the same choice."""
    queries = [frequent_queries(sets, FREQUENT, queries=QUERIES).queries, *random_queries(sets, QUERIES)]
    asked = [(each, supports_of(sets, each)) for each in queries if each]
    tried = [
        replace(
            parameters,
            partitioning=way,
            max_cluster=2 * parameters.counted_from if small else parameters.max_cluster,
        )
        for way, small in WAYS
        if not small or parameters.max_cluster is None
    ]
    return min(tried, key=lambda each: loss(each, sets, policy, name, asked, workers))


def loss(
    parameters: Disassociation,
    sets: CodeSets,
    policy: Constraints,
    name: str,
    asked: Asked,
    workers: Workers,
) -> float:
    data = disassociate(sets, rules_of(parameters, sets, policy, name), workers)
    order = Randomness.of(0)  # of rows, on which no estimate depends
    made = publish(data, sets.codes, order)
    chunks = pa.Table.from_batches(chunk_table(made, order).batches())
    fitted = parameters.partitioning == "fitted"
    index = index_of(
        node_table(made), chunks, parameters.k, parameters.m, parameters.counted_from, fitted=fitted
    )
    errors = [
        relative_errors(true, estimate_queries(index, sets, queries, DEFAULT).expected).mean()
        for queries, true in asked
    ]
    return round(float(np.log(np.maximum(errors, NO_ERROR)).mean()), 9)
