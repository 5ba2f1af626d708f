"""From a cohort to a disassociated release: lens, rules, kernels, tables, guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from leeward.analysis.policies import Constraints, constraints
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.disassociation import core
from leeward.methods.disassociation.diversity import diversify
from leeward.methods.disassociation.layout import layout_of
from leeward.methods.disassociation.parameters import Disassociation
from leeward.methods.disassociation.publish import Published, chunk_table, node_table, published
from leeward.methods.disassociation.reconstruct import reconstruction
from leeward.methods.disassociation.repeats import MARK, base_codes, renamed_code_sets
from leeward.randomness import Randomness
from leeward.release.content import Anonymized, Guarantee, ReleaseTable

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.engine import Engine

POLICY = pa.schema([("constraint", pa.string()), ("code", pa.string())])


def protect(
    parameters: Disassociation, cohort: Cohort, engine: Engine | None, randomness: Randomness | None
) -> Anonymized:
    """See `Disassociation.protect`."""
    randomness = randomness or Randomness.of(None)
    sets = renamed_code_sets(cohort.require_events()) if parameters.repeats else cohort.code_sets()
    if len(sets) < parameters.k:
        raise GuaranteeUnreachable(
            f"{cohort.name}: {len(sets)} patients with a code, fewer than k = {parameters.k}; "
            "no group of k can be formed. Lower k or add patients."
        )
    policy = policy_over(parameters, sets, cohort.vocabulary)
    rules = rules_of(parameters, sets, policy, cohort.name)
    sets, diversity_facts, partition = _diverse(parameters, sets, rules, engine, cohort.name)
    partitions = _partitions(parameters, len(sets), engine)
    if partitions > 1:
        from leeward.methods.disassociation.partitioned import protect_partitions

        tables, facts = protect_partitions(parameters, sets, rules, partitions, engine, randomness)
    else:
        done = disassociated(sets, rules, partition, core.Pool(engine.threads if engine else None))
        result = published(done, layout_of(done, len(sets.codes)), sets.codes, randomness)
        tables = (ReleaseTable.of("nodes.parquet", node_table(result)), chunk_table(result, randomness))
        tables += tuple(
            reconstruction(result, n, parameters.k, parameters.prior, randomness)
            for n in range(1, parameters.reconstructions + 1)
        )
        facts = facts_of(result)
    return Anonymized(
        method=parameters.name,
        parameters=parameters.public(),
        guarantee=guarantee_of(parameters),
        records=len(sets),
        tables=tables,
        readme=README,
        custody_tables=_policy_table(policy, sets),
        custody={**facts, **diversity_facts, "partitions": partitions},
        seeded=randomness.seeded,
    )


def policy_over(parameters: Disassociation, sets: CodeSets, vocabulary: str | None) -> Constraints:
    """The utility constraints over the lens's codes; instances of a repeated code share their code's."""
    if not parameters.repeats:
        return constraints(parameters.policy, sets, vocabulary)
    base = base_codes(sets)
    found = constraints(parameters.policy, base, vocabulary)
    number = {code: i for i, code in enumerate(base.codes)}
    return Constraints(found.names, found.of_code[[number[c.rsplit(MARK, 1)[0]] for c in sets.codes]])


def rules_of(parameters: Disassociation, sets: CodeSets, policy: Constraints, name: str) -> core.Rules:
    """What the kernels need to know."""
    sensitive = np.zeros(len(sets.codes), np.bool_)
    base = [code.rsplit(MARK, 1)[0] for code in sets.codes] if parameters.repeats else list(sets.codes)
    for wanted in parameters.sensitive:
        hits = [i for i, code in enumerate(base) if code == wanted]
        if not hits:
            raise BadInput(
                f"`sensitive`: entry {parameters.sensitive.index(wanted) + 1} is no code of {name}; write codes as the "
                "data has them after normalisation (`leeward profile` lists the most frequent)."
            )
        sensitive[hits] = True
    return core.Rules(
        k=parameters.k,
        m=parameters.m,
        constraint_of=policy.of_code,
        n_constraints=len(policy),
        sensitive=sensitive,
        max_cluster=parameters.cluster_limit,
        nested=parameters.nested,
        safe=parameters.safe,
        refine=parameters.refine,
        settle=parameters.chosen_partitioning == "settled",
        recut=parameters.recut,
        max_joint=parameters.joint_limit or core.NO_LIMIT,
        max_passes=parameters.pass_limit or core.NO_LIMIT,
    )


def partition_of(sets: CodeSets, rules: core.Rules, pool: core.Pool) -> core.Partition:
    """The horizontal partitioning: HorPart, then settle and recut where asked."""
    first = core.horizontal_partition(sets.offsets, sets.values, rules, pool)
    return core.settled(sets.offsets, sets.values, first, rules, pool)


def disassociated(
    sets: CodeSets, rules: core.Rules, partition: core.Partition | None, pool: core.Pool
) -> core.Disassociated:
    """Clusters and chunks of a data set (or one partition of it)."""
    partition = partition or partition_of(sets, rules, pool)
    return core.disassociate(sets.offsets, sets.values, partition, rules, pool)


def facts_of(p: Published) -> dict[str, Any]:
    """What the custodian is told; every figure is a plain sum, so partitions add up."""
    d = p.data
    in_item = np.add.reduceat(p.occurrence_chunk < 0, d.offsets[:-1])
    return {
        "clusters": len(d.leaf_n_codes),
        "joint_clusters": len(d.shared.parent) - len(d.leaf_n_codes),
        "occurrences": len(d.values),
        "item_occurrences": int(in_item.sum()),
        "item_only_records": int((in_item == np.diff(d.offsets)).sum()),
        "empty_item_chunk_condition_fired": d.condition_fired,
    }


def _diverse(
    parameters: Disassociation, sets: CodeSets, rules: core.Rules, engine: Engine | None, name: str
) -> tuple[CodeSets, dict[str, Any], core.Partition | None]:
    """Partition for ℓ-diversity; codes may be suppressed, which is told."""
    if parameters.diversity is None:
        return sets, {}, None
    pool = core.Pool(engine.threads if engine else None)
    diverse = diversify(
        sets.offsets, sets.values, partition_of(sets, rules, pool), rules.sensitive, parameters.diversity
    )
    keep = np.ones(len(sets.values), np.bool_)
    for record, code in zip(diverse.dropped_record, diverse.dropped_code, strict=True):
        begin, end = sets.offsets[record], sets.offsets[record + 1]
        keep[begin + np.searchsorted(sets.values[begin:end], code)] = False
    lengths = np.add.reduceat(keep, sets.offsets[:-1])
    if not lengths.all():
        raise GuaranteeUnreachable(
            f"{name}: diversity = {parameters.diversity} would leave {int((lengths == 0).sum())} patients without any "
            "code, because sensitive codes are too frequent. Lower `diversity` or list fewer sensitive codes."
        )
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    thinned = CodeSets(offsets, sets.values[keep], sets.codes, sets.patients)
    facts = {"clusters_merged_for_diversity": diverse.merged, "suppressed_occurrences": int((~keep).sum())}
    return thinned, facts, diverse.partition


def _partitions(parameters: Disassociation, records: int, engine: Engine | None) -> int:
    from leeward.methods.disassociation.partitioned import RECORDS_A_PARTITION

    wanted = parameters.partitions
    if wanted is None:
        wanted = -(-records // RECORDS_A_PARTITION) if engine is not None and engine.name == "spark" else 1
    if wanted > 1 and (parameters.diversity is not None or parameters.reconstructions):
        raise BadInput("`diversity` and `reconstructions` need one partition; set `partitions: 1`.")
    return wanted


def _policy_table(policy: Constraints, sets: CodeSets) -> tuple[ReleaseTable, ...]:
    if not len(policy):
        return ()
    rows = policy.rows(sets.codes)
    columns: list[NDArray[np.str_] | list[str]] = [[name for name, _ in rows], [code for _, code in rows]]
    return (ReleaseTable.of("policy.parquet", pa.table(columns, schema=POLICY)),)


def guarantee_of(parameters: Disassociation) -> Guarantee:
    """Guarantee 1, its attacker and what it leaves open (docs/methods/disassociation.md#what-it-does-not-protect)."""
    open_ends = [
        (
            "It promises that some data set that could have given these files has k candidate records, not that all "
            "do: an attacker who knows how the method works can exclude some of them."
        ),
        "Within a chunk one code may always come with another, so that knowing the first reveals the second (the "
        "cover problem)." + (" Switched off here: no chunk has such a pair." if parameters.safe else ""),
        f"Knowledge of more than {parameters.m} codes of a patient, or of codes that a patient does not have.",
        (
            "Attackers who pool what they know, who know several patients' records, or who hold an earlier release "
            "of the same patients."
        ),
        "What a patient suffers from, when all candidate records agree on it.",
    ]
    if parameters.sensitive:
        open_ends.append(
            "Sensitive codes are assumed unknown to the attacker; utility constraints that name them are not kept."
        )
    return Guarantee(
        name="k^m-anonymity by disassociation (Guarantee 1)",
        k=parameters.k,
        m=parameters.m,
        attacker=f"knows up to {parameters.m} diagnosis codes of a patient and that the patient is in the data",
        not_protected=tuple(open_ends),
    )


README = """\
`data/nodes.parquet` lists the clusters of patients (`kind` = `cluster`) and the joint clusters made of them
(`joint`; `parent` names the joint cluster above), each with its number of `records`.

`data/chunks.parquet` holds what is published of each node. A *record chunk* (`kind` = `record`) has one row a patient
of the cluster: the codes of that patient that fall in this chunk, an empty list where there is none. Rows of different
chunks are shuffled apart, so nothing tells which subrecords belong to one patient. A *shared chunk* (`shared`) is the
same over all patients of a joint cluster. The *item chunk* (`item`, one row a cluster) lists codes that at least one
patient of the cluster has, without counts.

To count patients with a set of codes, `leeward estimate FOLDER CODE,CODE` gives the least, the expected and the
greatest number. By hand: inside a cluster of N patients the codes of one chunk are counted exactly; for codes in
different chunks multiply their shares of the N patients; an item-chunk code counts once or a little more. Then add up
the clusters. `reconstructions/`, where present, are data sets that could have given these files: analyse several and
report the spread. Pair counts across chunks are estimates; absence of a pair in one reconstruction proves nothing.
"""
