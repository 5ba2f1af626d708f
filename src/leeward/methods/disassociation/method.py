"""From a cohort to a disassociated release: lens, rules, kernels, tables, guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from leeward.analysis.demographics.classes import (
    Sensitive,
    count_values,
    diversify_classes,
    sensitive_columns,
)
from leeward.analysis.demographics.columns import values_of
from leeward.analysis.itemsets import owners_of
from leeward.analysis.policies import Constraints, constraints
from leeward.arrays import AnyArray, Int64s, offsets_of, positions_of
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.contracts.disassociation import CONTRACT
from leeward.engine import make
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.disassociation import ranked
from leeward.methods.disassociation.fit import with_weight
from leeward.methods.disassociation.held_back import publish_chunks
from leeward.methods.disassociation.horpart import Partition
from leeward.methods.disassociation.parameters import RECORDS_A_PARTITION
from leeward.methods.disassociation.partitioned import Blocks, fill_partitions, protect_partitions
from leeward.methods.disassociation.pipeline import (
    disassociate,
    disassociate_classes,
    partition_records,
)
from leeward.methods.disassociation.publish import (
    Published,
    facts_of,
    node_of_records,
    node_table,
    payload_table,
)
from leeward.methods.disassociation.reconstruct import reconstruction
from leeward.methods.disassociation.recut import diversify
from leeward.methods.disassociation.rules import MARK, Rules, Workers, base_codes, rename_repeats, rules_of
from leeward.methods.disassociation.trial import FEW, choose
from leeward.methods.disassociation.verpart import entries_of
from leeward.methods.whole_patient import release_in_classes
from leeward.randomness import Randomness
from leeward.release.content import Anonymized, Guarantee, ReleaseTable

if TYPE_CHECKING:
    from leeward.analysis.demographics import Classes
    from leeward.analysis.demographics.search import Lost
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
    """Disassociate the cohort's code sets. Raises GuaranteeUnreachable with fewer than k records or when `diversity`
    would empty a record, BadInput for a policy or sensitive code that the data lacks, and for a population."""
    if population is not None:
        raise BadInput("disassociation needs no population; leave `population` out.")
    randomness = randomness or Randomness.of(None)
    if cohort.files:
        return protect_on_disk(parameters, cohort, make(engine), randomness)
    sets = rename_repeats(cohort.require_events()) if parameters.repeats else cohort.code_sets()
    require_k(parameters, len(sets), cohort.name)
    policy = policy_over(parameters, sets, cohort.vocabulary)
    workers = Workers(engine.threads if engine else None)
    if has_choice(parameters, len(sets)):
        parameters = choose(parameters, sets, policy, cohort.name, workers)
    rules = rules_of(parameters, sets, policy, cohort.name)
    if parameters.attacker == "algorithm":  # counts of single codes protect against who knows the algorithm
        coins = ranked.coins_of(sets, rules.k, randomness)
        shown = ranked.show(sets, ranked.split(sets, rules, coins), rules.k, coins)
        facts = {**ranked.facts_of(shown), "partitions": 1}
        tables = ranked.tables_of(shown, sets.codes, randomness)
        return assemble(parameters, sets.codes, len(sets), rules, policy, tables, facts, (), randomness)
    if parameters.demographics and rules.fit:
        rules = with_weight(sets, rules, workers)

    def run(classes: Classes | None, kept: Int64s) -> Anonymized:
        own = sets if len(kept) == len(sets) else sets.take(kept)
        made = _release_codes(parameters, cohort, own, rules, classes, engine, workers, randomness)
        return assemble(parameters, sets.codes, len(own), rules, policy, *made, randomness)

    def join(classes: Classes) -> Classes:
        hidden = _sensitive_columns(parameters, cohort, sets.patients.gather(classes.released))
        return diversify_classes(classes, hidden, frozenset(parameters.keep or {}))

    return release_in_classes(
        parameters,
        cohort,
        sets.patients,
        sets.lengths(),
        count_losses(sets, rules, workers),
        run,
        randomness,
        join=join if parameters.sensitive_columns else None,
    )


def has_choice(parameters: Disassociation, records: int) -> bool:
    """Whether the partitioning is chosen by trial: of few records, of all of them at once."""
    whole = not parameters.demographics and (parameters.partitions or 1) == 1
    return (
        parameters.partitioning == "auto" and parameters.attacker != "algorithm" and whole and records <= FEW
    )


def count_losses(sets: CodeSets, rules: Rules, workers: Workers) -> Lost:
    def count(parts: Sequence[AnyArray]) -> list[int]:
        counts = [0] * len(parts)

        def run(i: int) -> None:
            data = disassociate(sets.take(parts[i]), rules, Workers(1))
            counts[i] = int((data.chunks.chunk[entries_of(data.records, data.chunks)] < 0).sum())

        largest_first = sorted(range(len(parts)), key=lambda i: -len(parts[i]))
        workers.tasks([partial(run, i) for i in largest_first])
        return counts

    return count


def assemble(
    parameters: Disassociation,
    codes: tuple[str, ...],
    records: int,
    rules: Rules,
    policy: Constraints,
    tables: tuple[ReleaseTable, ...],
    facts: dict[str, Any],
    custody_tables: tuple[ReleaseTable, ...],
    randomness: Randomness,
) -> Anonymized:
    """The result, with the guarantee, README and notices of every release of the method."""
    public = parameters.public()
    words = CONTRACT.words(public)
    longest = (
        f"m = {parameters.m} is more than the {rules.m} codes of the longest record; the run used m = {rules.m}, "
        "which protects just as much."
    )
    return Anonymized(
        method=parameters.name,
        parameters=public,
        guarantee=Guarantee.of(CONTRACT, words, public),
        records=records,
        tables=tables,
        readme=words.readme,
        custody_tables=_policy_table(policy, codes) + custody_tables,
        custody=facts,
        notices=(longest,) if parameters.m > rules.m else (),
        seeded=randomness.seeded,
    )


def require_k(parameters: Disassociation, records: int, name: str) -> None:
    least = parameters.counted_from
    if records < least:
        raise GuaranteeUnreachable(
            f"{name}: {records} patients with a code, fewer than {least} (k, or k + 1 by `attacker`); no "
            "cluster can be formed. Lower k or add patients."
        )


def _release_codes(
    parameters: Disassociation,
    cohort: Cohort,
    sets: CodeSets,
    rules: Rules,
    classes: Classes | None,
    engine: Engine | None,
    workers: Workers,
    randomness: Randomness,
) -> tuple[tuple[ReleaseTable, ...], dict[str, Any], tuple[ReleaseTable, ...]]:
    """The data files of the released records, by class if there are any; facts and files for the custodian."""
    place = "local" if engine is None else engine.name
    parts = partitions_of(parameters, len(sets), place) if classes is None else 1
    if parts > 1:
        return protect_partitions(Blocks.of(sets), rules, parts, engine, randomness)
    suppressed: tuple[ReleaseTable, ...] = ()
    partitions: list[Partition] = []
    facts: dict[str, Any] = {}
    if parameters.diversity is not None:
        if place == "spark" and classes is not None:
            raise BadInput("`diversity` needs one partition; set `engine: local`.")
        sets, partitions, facts, gone = _diversify(parameters, sets, classes, rules, workers, cohort.name)
        suppressed = (ReleaseTable.of("suppressed.parquet", gone.to_arrow()),)
    of_node = None
    if classes is None:
        data = disassociate(sets, rules, workers, *partitions)
    else:
        data, of_node = disassociate_classes(sets, classes.of_record, rules, engine, workers, partitions)
    result, chunks = publish_chunks(data, sets.codes, rules, randomness)
    tables = (
        ReleaseTable.of("nodes.parquet", node_table(result, of_node)),
        chunks,
        *_further_tables(parameters, cohort, sets.patients, result, classes, randomness),
    )
    # For the verifier, which compares the chunks with the clusters' patients. In classes with suppressed codes the
    # members' codes are not those of the source.
    clusters = pl.DataFrame({"patient": sets.patients, "node": node_of_records(result)})
    kept = (ReleaseTable.of("clusters.parquet", clusters.to_arrow()), *suppressed)
    custody = () if classes is not None and suppressed else kept
    return tables, {**facts_of(result), **facts, "partitions": 1}, custody


def _further_tables(
    parameters: Disassociation,
    cohort: Cohort,
    patients: pl.Series,
    result: Published,
    classes: Classes | None,
    randomness: Randomness,
) -> list[ReleaseTable]:
    """Tables of payload, values of sensitive columns and reconstructions, if requested."""
    found = []
    if parameters.payload:
        values = values_of(cohort.patients, patients, parameters.payload, cohort.name)
        found.append(payload_table(result, values, randomness))
    if classes is not None and parameters.sensitive_columns:
        counted = count_values(classes, _sensitive_columns(parameters, cohort, patients))
        found.append(ReleaseTable.of("sensitive.parquet", counted.to_arrow()))
    numbers = range(1, parameters.reconstructions + 1)
    found += [reconstruction(result, n, parameters.counted_from, randomness) for n in numbers]
    return found


def _sensitive_columns(
    parameters: Disassociation, cohort: Cohort, patients: pl.Series
) -> tuple[Sensitive, ...]:
    ells = parameters.sensitive_columns or {}
    return sensitive_columns(values_of(cohort.patients, patients, tuple(ells), cohort.name), ells)


def policy_over(parameters: Disassociation, sets: CodeSets, vocabulary: str | None) -> Constraints:
    """The utility constraints over the codes of `sets`; instances of a repeated code have their code's constraint."""
    if not parameters.repeats:
        return constraints(parameters.policy, sets, vocabulary)
    base = base_codes(sets)
    found = constraints(parameters.policy, base, vocabulary)
    number = {code: i for i, code in enumerate(base.codes)}
    return Constraints(found.names, found.of_code[[number[c.rsplit(MARK, 1)[0]] for c in sets.codes]])


def _diversify(
    parameters: Disassociation,
    sets: CodeSets,
    classes: Classes | None,
    rules: Rules,
    workers: Workers,
    name: str,
) -> tuple[CodeSets, list[Partition], dict[str, Any], pl.DataFrame]:
    """Partition each class for ℓ-diversity: code sets, partitions, facts, and the suppressed (patient, code) rows."""
    members = [np.arange(len(sets))] if classes is None else classes.members
    partitions, merged, places = [], 0, []
    for own in members:
        part = sets.take(own)
        first = partition_records(part, rules, workers)
        healed, more, excess = diversify(
            part.offsets, part.values, first, rules.sensitive, parameters.diversity or 1
        )
        partitions.append(healed)
        merged += more
        places.append(positions_of(sets.offsets, own)[excess])
    place = np.concatenate(places)
    record, code = owners_of(sets.offsets)[place], sets.values[place]
    keep = np.ones(len(sets.values), np.bool_)
    keep[place] = False
    lengths = np.add.reduceat(keep, sets.offsets[:-1])
    if not lengths.all():
        where = " in their class" if len(members) > 1 else ""
        raise GuaranteeUnreachable(
            f"{name}: diversity = {parameters.diversity} would leave {int((lengths == 0).sum())} patients without any "
            f"code, because sensitive codes are too frequent{where}. Lower `diversity` or list fewer sensitive codes."
        )
    thinned = CodeSets(offsets_of(lengths), sets.values[keep], sets.codes, sets.patients)
    facts = {"clusters_merged_for_diversity": merged, "suppressed_occurrences": int((~keep).sum())}
    names = pl.Series([sets.codes[c] for c in code], dtype=pl.String)
    gone = pl.DataFrame({"patient": sets.patients.gather(record), "code": names})
    return thinned, partitions, facts, gone


def partitions_of(parameters: Disassociation, records: int, engine: str) -> int:
    """The number of partitions; BadInput for several with `diversity` or `reconstructions`."""
    wanted = parameters.partitions or (-(-records // RECORDS_A_PARTITION) if engine == "spark" else 1)
    if wanted > 1 and (parameters.diversity is not None or parameters.reconstructions):
        raise BadInput("`diversity` and `reconstructions` need one partition; set `partitions: 1`.")
    return wanted


def _policy_table(policy: Constraints, codes: tuple[str, ...]) -> tuple[ReleaseTable, ...]:
    if not len(policy):
        return ()
    rows = policy.rows(codes)
    columns: list[NDArray[np.str_] | list[str]] = [[name for name, _ in rows], [code for _, code in rows]]
    return (ReleaseTable.of("policy.parquet", pa.table(columns, schema=POLICY)),)


def protect_on_disk(
    parameters: Disassociation, cohort: Cohort, engine: Engine, randomness: Randomness
) -> Anonymized:
    """Like `protect` for a cohort in memory, with the same tables; what partitions need is in files beside the cohort's
    own."""
    known, where = cohort.supports(), cohort.files[0].parent
    rules, policy = _rules_on_disk(parameters, cohort)
    partitions = partitions_of(parameters, known.patients, engine.name)
    released = protect_partitions(Blocks.stored(cohort), rules, partitions, engine, randomness, where)
    return assemble(parameters, known.codes, known.patients, rules, policy, *released, randomness)


def prepare(parameters: Disassociation, cohort: Cohort, engine: Engine, randomness: Randomness) -> None:
    """Cut the partitions and disassociate each, for `protect_on_disk`."""
    rules, _ = _rules_on_disk(parameters, cohort)
    partitions = partitions_of(parameters, cohort.supports().patients, engine.name)
    where = cohort.files[0].parent
    fill_partitions(Blocks.stored(cohort), rules, partitions, engine, randomness, where)


def _rules_on_disk(parameters: Disassociation, cohort: Cohort) -> tuple[Rules, Constraints]:
    known = cohort.supports()
    require_k(parameters, known.patients, cohort.name)
    # Policies and rules need only the distinct codes and the largest number of codes of a patient.
    longest = np.arange(known.longest, dtype=np.int32)
    sets = CodeSets(np.array([0, known.longest]), longest, known.codes, pl.Series([0]))
    policy = policy_over(parameters, sets, cohort.vocabulary)
    return rules_of(parameters, sets, policy, cohort.name), policy
