"""Disassociation of a cohort on the disk, in partitions: for tables larger than memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from leeward.cohort.lenses.code_sets import CodeSets
from leeward.methods.code_list import with_code_list
from leeward.methods.disassociation.method import assemble, partitions_of, policy_over, require_k
from leeward.methods.disassociation.partitioned import Blocks, protect_partitions
from leeward.methods.disassociation.rules import rules_of

if TYPE_CHECKING:
    from leeward.cohort.stored import StoredCohort
    from leeward.engine import Engine
    from leeward.methods.disassociation.parameters import Disassociation
    from leeward.randomness import Randomness
    from leeward.release.content import Anonymized


def protect_stored(
    parameters: Disassociation,
    cohort: StoredCohort,
    engine: Engine,
    randomness: Randomness,
    where: Path,
) -> Anonymized:
    """As `protect` of the cohort in memory, with the same tables. What becomes of the partitions is below `where`.

    Raises GuaranteeUnreachable with fewer than k records, BadInput for a policy or sensitive code that the data lacks.
    """
    head = cohort.head
    require_k(parameters, cohort.patients, head.name)
    # What policies and rules need of the patients' codes: which there are, and the most that a patient has.
    longest = np.arange(cohort.longest, dtype=np.int32)
    sets = CodeSets(np.array([0, cohort.longest]), longest, cohort.codes, pl.Series([0]))
    policy = policy_over(parameters, sets, head.vocabulary)
    rules = rules_of(parameters, sets, policy, head.name)
    partitions = partitions_of(parameters, cohort.patients, engine.name)
    data = Blocks(cohort.codes, cohort.supports, cohort.blocks)
    tables, facts, clusters = protect_partitions(data, rules, partitions, engine, randomness, where)
    facts["partitions"] = partitions
    made = assemble(
        parameters, cohort.codes, cohort.patients, rules, policy, tables, (clusters,), facts, randomness
    )
    frequent = (code for code, n in zip(cohort.codes, cohort.supports, strict=True) if n >= parameters.k)
    return with_code_list(made, head, frozenset(frequent))
