"""Generalize a cohort's codes under constraints: find or reapply the mapping, write the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from leeward.analysis.policies import constraints
from leeward.cohort.cohort import Cohort
from leeward.contracts.constraints import CONTRACT
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.constraints import greedy, losses
from leeward.methods.constraints.apriori import recode
from leeward.methods.constraints.clusters import Clusters
from leeward.methods.constraints.losses import Task
from leeward.methods.constraints.mapping import Mapping, read_mapping, records_table
from leeward.methods.constraints.weighted import WeightedSets, count_records
from leeward.methods.whole_patient import release_in_classes
from leeward.randomness import Randomness
from leeward.release.content import Anonymized, Guarantee, ReleaseTable

if TYPE_CHECKING:
    from leeward.analysis.demographics import Classes
    from leeward.arrays import Int64s
    from leeward.engine import Engine
    from leeward.methods.constraints.parameters import Constraints
    from leeward.vocabulary.hierarchy import Hierarchy

POLICY = pa.schema([("constraint", pa.string()), ("code", pa.string())])
PRIVACY = pa.schema([("constraint", pa.int64()), ("code", pa.string())])


def protect(
    parameters: Constraints,
    cohort: Cohort,
    engine: Engine | None = None,
    *,
    randomness: Randomness | None = None,
    population: object = None,
) -> Anonymized:
    """Generalize and suppress codes until 0 or at least k records hold every privacy constraint. Raises BadInput for a
    missing vocabulary, a wrong file of constraints or mapping, or a population; GuaranteeUnreachable for fewer than k
    records, or an earlier mapping that does not protect this cohort."""
    if population is not None:
        raise BadInput("constraints needs no population; leave it out.")
    randomness = randomness or Randomness.of(None)
    sets = cohort.code_sets()
    if len(sets) < parameters.k:
        raise GuaranteeUnreachable(
            f"{cohort.name}: {len(sets):,} records, fewer than k = {parameters.k}; nothing was written."
        )
    listed = None if parameters.privacy is None else greedy.read_constraints(parameters.privacy, sets.codes)
    task = Task(sets, constraints(parameters.policy, sets, cohort.vocabulary), listed)

    def find(part: Task, on: Engine | None = None) -> tuple[Mapping, dict[str, Any], list[str]]:
        return _find(parameters, cohort, count_records(part.sets, on), part)

    def run(classes: Classes | None, kept: Int64s) -> Anonymized:
        own = task if len(kept) == len(sets) else task.take(kept)
        order = randomness.stream("constraints", "records").permutation(len(kept))
        custody = _custody_tables(own)
        words = CONTRACT.words(parameters.public())
        if classes is not None:
            parts, facts = losses.generalize(own, classes, lambda part: find(part, engine))
            tables = losses.tables_of(parts, classes, order)
            custody += (losses.custody_table_of(parts),)
            facts |= losses.losses_in_classes(parts, parameters.cap)
            notices = losses.notices_in_classes(parts, parameters.cap)
        else:
            mapping, facts, notices = find(own, engine)
            codes = ReleaseTable.of("codes.parquet", mapping.codes_rows())
            tables = records_table(mapping.labels, *mapping.apply(sets), order), codes
            facts |= losses.losses(mapping, sets, own.utility, parameters.cap)
            notices += losses.notices(mapping, sets, own.utility, parameters.cap)
        return Anonymized(
            method=parameters.name,
            parameters=parameters.public(),
            guarantee=Guarantee.of(CONTRACT, words, parameters.public()),
            records=len(kept),
            tables=tables,
            readme=words.readme,
            custody_tables=custody,
            custody=facts,
            notices=tuple(notices),
            seeded=randomness.seeded,
        )

    lost = losses.count_losses(task, find)
    return release_in_classes(
        parameters, cohort, sets.patients, sets.lengths(), lost, run, randomness, classes_last=True
    )


def _find(
    parameters: Constraints,
    cohort: Cohort,
    weighted: WeightedSets,
    task: Task,
) -> tuple[Mapping, dict[str, Any], list[str]]:
    if parameters.mapping is not None:
        earlier = read_mapping(parameters.mapping)
        mapping, new = earlier.over(weighted.codes), earlier.unknown(weighted.codes)
        if greedy.violates(mapping, weighted, parameters.k, parameters.m, task.listed):
            raise GuaranteeUnreachable(
                f"the mapping does not protect this cohort: fewer than k = {parameters.k} records hold some of its "
                f"labels together. Leave out `mapping` to find a new one. Nothing was written."
            )
        notices = (
            [f"{len(new):,} codes that the earlier mapping does not know were suppressed."] if new else []
        )
        return mapping, {"unknown_codes": len(new)}, notices
    if parameters.algorithm == "apriori":
        found = recode(weighted, _hierarchy(cohort, weighted.codes), parameters.k, parameters.m or 1)
        facts = {"raises": found.raises, "ncp": float(found.ncp)}
        return Mapping.of(found.node_of_code, weighted.codes), facts, []
    hierarchy = None if parameters.weights == "none" else _hierarchy(cohort, weighted.codes)
    clusters = Clusters(weighted, task.utility, parameters.k, hierarchy)
    treated = greedy.run(clusters, greedy.privacy_of(parameters.m, task.listed), parameters.algorithm)
    return Mapping.of(clusters.of_code, weighted.codes), {"treated": treated}, []


def _hierarchy(cohort: Cohort, codes: tuple[str, ...]) -> Hierarchy:
    if cohort.vocabulary is None:
        raise BadInput(
            f"{cohort.name}: a vocabulary to generalize along is missing; say icd9, icd10 or a file."
        )
    from leeward.vocabulary import load

    return load(cohort.vocabulary).hierarchy(codes)


def _custody_tables(task: Task) -> tuple[ReleaseTable, ...]:
    """Tables for the custodian: the policy applied, and the listed privacy constraints, if any."""
    codes = task.sets.codes
    rows = task.utility.rows(codes)
    policy = pa.table({"constraint": [c for c, _ in rows], "code": [c for _, c in rows]}, schema=POLICY)
    tables = [ReleaseTable.of("policy.parquet", policy)]
    if task.listed is not None:
        numbers = [number for number, members in enumerate(task.listed) for _ in members]
        names = [codes[code] for members in task.listed for code in members]
        table = pa.table({"constraint": numbers, "code": names}, schema=PRIVACY)
        tables.append(ReleaseTable.of("privacy.parquet", table))
    return tuple(tables)
