"""From a cohort to a disassociated release: lens, rules, kernels, tables, guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from leeward.analysis.policies import Constraints, constraints
from leeward.arrays import Int64s, offsets_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.contracts.disassociation import CONTRACT
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods import demographics_tables as whole
from leeward.methods.disassociation import ranked
from leeward.methods.disassociation.diversity import diversify
from leeward.methods.disassociation.partition import Partition, partition_records
from leeward.methods.disassociation.partitioned import RECORDS_A_PARTITION, Blocks, protect_partitions
from leeward.methods.disassociation.pipeline import disassociate
from leeward.methods.disassociation.publish import chunk_table, facts_of, node_of_records, node_table, publish
from leeward.methods.disassociation.reconstruct import reconstruction
from leeward.methods.disassociation.repeats import MARK, base_codes, renamed_code_sets
from leeward.methods.disassociation.rules import Rules, rules_of
from leeward.methods.disassociation.whole_patient import release_in_classes
from leeward.methods.disassociation.workers import Workers
from leeward.randomness import Randomness
from leeward.release.content import Anonymized, Guarantee, ReleaseTable

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.engine import Engine
    from leeward.methods.disassociation.parameters import Disassociation

POLICY = pa.schema([("constraint", pa.string()), ("code", pa.string())])


def protect(
    parameters: Disassociation,
    cohort: Cohort,
    engine: Engine | None = None,
    *,
    randomness: Randomness | None = None,
    population: object = None,
) -> Anonymized:
    """Disassociate the cohort's code sets.

    Raises GuaranteeUnreachable with fewer than k records or when `diversity` would empty a record, BadInput for
    a policy or sensitive code that the data lacks, and for a population.
    """
    if population is not None:
        raise BadInput("disassociation needs no population; leave `population` out.")
    randomness = randomness or Randomness.of(None)
    sets = renamed_code_sets(cohort.require_events()) if parameters.repeats else cohort.code_sets()
    require_k(parameters, len(sets), cohort.name)
    policy = policy_over(parameters, sets, cohort.vocabulary)
    rules = rules_of(parameters, sets, policy, cohort.name)
    if parameters.attacker == "algorithm":
        return _ranked(parameters, sets, rules, policy, randomness)
    workers = Workers(engine.threads if engine else None)
    if parameters.demographics:
        tables, sets, classes, facts, node = release_in_classes(
            parameters, cohort, sets, rules, engine, workers, randomness
        )
        custody_tables, notices = (
            whole.custody_tables_of(classes),
            whole.notices_of(classes, parameters.small),
        )
        if parameters.diversity is None:  # else the members' codes are not those of the source
            custody_tables += (_clusters(sets, node),)
    else:
        tables, sets, facts, custody_tables = release_codes(
            parameters, cohort, sets, rules, engine, workers, randomness
        )
        notices = ()
    return anonymized(
        parameters, sets.codes, len(sets), rules, policy, tables, custody_tables, facts, notices, randomness
    )


def anonymized(
    parameters: Disassociation,
    codes: tuple[str, ...],
    records: int,
    rules: Rules,
    policy: Constraints,
    tables: tuple[ReleaseTable, ...],
    custody_tables: tuple[ReleaseTable, ...],
    facts: dict[str, Any],
    notices: tuple[str, ...],
    randomness: Randomness,
) -> Anonymized:
    """The result, with what is said of every release of the method."""
    public = parameters.public()
    words = CONTRACT.words(public)
    return Anonymized(
        method=parameters.name,
        parameters=public,
        guarantee=Guarantee.of(CONTRACT, words, public),
        records=records,
        tables=tables,
        readme=words.readme,
        custody_tables=_policy_table(policy, codes) + custody_tables,
        custody=facts,
        notices=_longest(parameters.m, rules.m) + notices,
        seeded=randomness.seeded,
    )


def require_k(parameters: Disassociation, records: int, name: str) -> None:
    """GuaranteeUnreachable with fewer than k records."""
    if records < parameters.k:
        raise GuaranteeUnreachable(
            f"{name}: {records} patients with a code, fewer than k = {parameters.k}; "
            "no group of k can be formed. Lower k or add patients."
        )


def release_codes(
    parameters: Disassociation,
    cohort: Cohort,
    sets: CodeSets,
    rules: Rules,
    engine: Engine | None,
    workers: Workers,
    randomness: Randomness,
) -> tuple[tuple[ReleaseTable, ...], CodeSets, dict[str, Any], tuple[ReleaseTable, ...]]:
    """The data files without demographics, the code sets that are released, facts and files for the custodian."""
    sets, diversity_facts, partition, suppressed = _diversify(parameters, sets, rules, workers, cohort.name)
    partitions = partitions_of(parameters, len(sets), "local" if engine is None else engine.name)
    if partitions > 1:
        tables, facts, clusters = protect_partitions(Blocks.of(sets), rules, partitions, engine, randomness)
    else:
        result = publish(disassociate(sets, rules, workers, partition), sets.codes, randomness)
        tables = (ReleaseTable.of("nodes.parquet", node_table(result)), chunk_table(result, randomness))
        tables += tuple(
            reconstruction(result, n, parameters.k, parameters.prior, randomness)
            for n in range(1, parameters.reconstructions + 1)
        )
        facts, clusters = facts_of(result), _clusters(sets, node_of_records(result))
    custody = (clusters, *suppressed)
    return tables, sets, {**facts, **diversity_facts, "partitions": partitions}, custody


def _longest(m: int, longest: int) -> tuple[str, ...]:
    """A notice where no record has as many codes as an attacker is thought to know."""
    if m <= longest:
        return ()
    notice = (
        f"m = {m} is more than the {longest} codes of the longest record; the run used m = {longest}, which protects "
        "the same."
    )
    return (notice,)


def _ranked(
    parameters: Disassociation, sets: CodeSets, rules: Rules, policy: Constraints, randomness: Randomness
) -> Anonymized:
    """Counts of single codes, which hold against an attacker who knows the algorithm."""
    coins = ranked.coins_of(sets, rules.k, randomness)
    shown = ranked.show(sets, ranked.split(sets, rules, coins), rules.k, coins)
    facts = {**ranked.facts_of(shown), "partitions": 1}
    tables = ranked.tables_of(shown, sets.codes, randomness)
    return anonymized(parameters, sets.codes, len(sets), rules, policy, tables, (), facts, (), randomness)


def policy_over(parameters: Disassociation, sets: CodeSets, vocabulary: str | None) -> Constraints:
    """The utility constraints over the lens's codes; instances of a repeated code share their code's."""
    if not parameters.repeats:
        return constraints(parameters.policy, sets, vocabulary)
    base = base_codes(sets)
    found = constraints(parameters.policy, base, vocabulary)
    number = {code: i for i, code in enumerate(base.codes)}
    return Constraints(found.names, found.of_code[[number[c.rsplit(MARK, 1)[0]] for c in sets.codes]])


def _diversify(
    parameters: Disassociation, sets: CodeSets, rules: Rules, workers: Workers, name: str
) -> tuple[CodeSets, dict[str, Any], Partition | None, tuple[ReleaseTable, ...]]:
    """Partition for ℓ-diversity; codes may be suppressed, which is counted."""
    if parameters.diversity is None:
        return sets, {}, None, ()
    partition = partition_records(sets, rules, workers)
    diverse = diversify(sets.offsets, sets.values, partition, rules.sensitive, parameters.diversity)
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
    thinned = CodeSets(offsets_of(lengths), sets.values[keep], sets.codes, sets.patients)
    facts = {"clusters_merged_for_diversity": diverse.merged, "suppressed_occurrences": int((~keep).sum())}
    gone = pl.DataFrame(
        {
            "patient": sets.patients.gather(diverse.dropped_record),
            "code": pl.Series([sets.codes[code] for code in diverse.dropped_code], dtype=pl.String),
        }
    )
    return thinned, facts, diverse.partition, (ReleaseTable.of("suppressed.parquet", gone.to_arrow()),)


def _clusters(sets: CodeSets, node: Int64s) -> ReleaseTable:
    """For custody: the cluster of each patient, by its released number. The verifier compares chunks with it."""
    frame = pl.DataFrame({"patient": sets.patients, "node": node})
    return ReleaseTable.of("clusters.parquet", frame.to_arrow())


def partitions_of(parameters: Disassociation, records: int, engine: str) -> int:
    """The number of partitions; BadInput where what was asked for needs one."""
    wanted = parameters.partitions
    if wanted is None:
        wanted = -(-records // RECORDS_A_PARTITION) if engine == "spark" else 1
    if wanted > 1 and (parameters.diversity is not None or parameters.reconstructions):
        raise BadInput("`diversity` and `reconstructions` need one partition; set `partitions: 1`.")
    return wanted


def _policy_table(policy: Constraints, codes: tuple[str, ...]) -> tuple[ReleaseTable, ...]:
    if not len(policy):
        return ()
    rows = policy.rows(codes)
    columns: list[NDArray[np.str_] | list[str]] = [[name for name, _ in rows], [code for _, code in rows]]
    return (ReleaseTable.of("policy.parquet", pa.table(columns, schema=POLICY)),)
