"""The rules of a run: the parameters over the code numbers of one data set, used by every step and kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from leeward.analysis.itemsets import owners_of
from leeward.arrays import Bools, Int32s, distinct_of, offsets_of
from leeward.cohort.lenses.code_sets import CodeSets, code_sets_of
from leeward.engine import available_threads, over_blocks, pool
from leeward.errors import BadInput

if TYPE_CHECKING:
    from leeward.analysis.policies import Constraints
    from leeward.methods.disassociation.parameters import Disassociation

NO_LIMIT = 2**62

FITTED_PASSES = 100
"""Later passes find few joins; HorPart as published goes on until nothing changes."""


class Rules(NamedTuple):
    """Parameters of the steps and kernels (a tuple, so that compiled code accepts it).

    k : the least number of patients who share a code that is counted, or the codes of a chunk
    constraint_of : int32[codes], each code's utility constraint, -1 for none
    sensitive : bool[codes]
    max_cluster : parts of at least this many records are split further
    max_joint : largest joint cluster in records
    max_passes : of Refine over all clusters
    weight : w of fitted partitioning; 0 for the one that its start asks for
    alone : publish chunks of one code each (`held_back`)
    """

    k: int
    m: int
    constraint_of: Int32s
    n_constraints: int
    sensitive: Bools
    max_cluster: int
    nested: bool = False
    safe: bool = False
    fit: bool = False
    recut: bool = False
    max_joint: int = NO_LIMIT
    max_passes: int = NO_LIMIT
    weight: float = 0.0
    alone: bool = False

    @property
    def n_codes(self) -> int:
        return len(self.constraint_of)


def rules_of(parameters: Disassociation, sets: CodeSets, policy: Constraints, name: str) -> Rules:
    """The rules of `parameters` for the codes of `sets`; `name` is the cohort's, for messages. Raises BadInput for a
    sensitive code that the data lacks."""
    sensitive = np.zeros(len(sets.codes), np.bool_)
    base = [code.rsplit(MARK, 1)[0] for code in sets.codes] if parameters.repeats else list(sets.codes)
    for wanted in parameters.sensitive:
        hits = [i for i, code in enumerate(base) if code == wanted]
        if not hits:
            raise BadInput(
                f"`sensitive`: entry {parameters.sensitive.index(wanted) + 1} is not a code of {name}; write codes "
                "as the data has them after normalisation (`leeward profile` lists the most frequent)."
            )
        sensitive[hits] = True
    m, alone = parameters.m, parameters.attacker == "rules"  # whose m no length of a record may tell
    return Rules(
        k=parameters.counted_from,
        m=m if alone else min(m, int(sets.lengths().max(initial=1))),  # no record has larger sets
        constraint_of=policy.of_code,
        n_constraints=len(policy),
        sensitive=sensitive,
        max_cluster=parameters.cluster_limit,
        nested=parameters.nested,
        safe=parameters.safe,
        fit=parameters.chosen_partitioning == "fitted",
        recut=parameters.chosen_partitioning != "paper",
        max_passes=FITTED_PASSES if parameters.chosen_partitioning == "fitted" else NO_LIMIT,
        alone=alone,
    )


SMALLEST_BLOCK = 2048


class Workers:
    """Runs kernels over blocks of an index range in threads (the kernels release the interpreter lock). The number of
    threads changes no result: the result of a block does not depend on the thread that computes it."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or available_threads()

    def blocks(self, n: int, run: Callable[[int, int], object]) -> list[Any]:
        """Call `run(lo, hi)` over blocks of 0…n-1; returns the results in block order."""
        return over_blocks(run, n, threads=self.threads, smallest=SMALLEST_BLOCK) if n else []

    def tasks(self, runs: list[Callable[[], object]]) -> None:
        with pool(min(self.threads, len(runs))) as threads:
            for done in [threads.submit(run) for run in runs]:
                done.result()


MARK = "#"


def rename_repeats(events: pl.DataFrame) -> CodeSets:
    """Code sets in which every mention of a code in a patient is a separate code (`code#i`). Without a `visit` column
    each row is a mention; with one, each (visit, code) counts once."""
    mentions = events.unique(["patient", "visit", "code"]) if "visit" in events.columns else events
    counts = mentions.group_by("patient", "code").agg(instance=pl.int_range(1, pl.len() + 1))
    numbered = pl.format("{}" + MARK + "{}", pl.col("code").cast(pl.String), pl.col("instance"))
    named = counts.explode("instance", empty_as_null=False).select("patient", code=numbered)
    domain = named["code"].unique().sort()
    return code_sets_of(named.with_columns(pl.col("code").cast(pl.Enum(domain))))


def base_codes(sets: CodeSets) -> CodeSets:
    """The same records over the codes before renaming (to apply a policy or a list of sensitive codes)."""
    base = [code.rsplit(MARK, 1)[0] for code in sets.codes]
    domain = sorted(set(base))
    number = {code: i for i, code in enumerate(domain)}
    values = np.array([number[code] for code in base], np.int32)[sets.values]
    keys = distinct_of(owners_of(sets.offsets) * len(domain) + values)
    offsets = offsets_of(np.bincount(keys // len(domain), minlength=len(sets)))
    return CodeSets(offsets, (keys % len(domain)).astype(np.int32), tuple(domain), sets.patients)
