"""The rules of a run: the parameters over the code numbers of one data set, as every step and kernel takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from leeward.arrays import Bools, Int32s
from leeward.errors import BadInput
from leeward.methods.disassociation.repeats import MARK

if TYPE_CHECKING:
    from leeward.analysis.policies import Constraints
    from leeward.cohort.lenses.code_sets import CodeSets
    from leeward.methods.disassociation.parameters import Disassociation

NO_LIMIT = 2**62

FITTED_PASSES = 100
"""Later passes find few joins; HorPart as published goes on until nothing changes."""


class Rules(NamedTuple):
    """What the steps and kernels take of the parameters (a tuple, so that compiled code takes it whole).

    constraint_of : int32[codes], each code's utility constraint, -1 for none
    sensitive : bool[codes]
    max_cluster : parts of at least this many records are split further
    max_joint : largest joint cluster in records
    max_passes : of Refine over all clusters
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

    @property
    def n_codes(self) -> int:
        """The number of distinct codes."""
        return len(self.constraint_of)


def rules_of(parameters: Disassociation, sets: CodeSets, policy: Constraints, name: str) -> Rules:
    """The rules of `parameters` for the codes of `sets`; `name` is the cohort's, for messages.

    Raises BadInput for a sensitive code that the data lacks.
    """
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
    return Rules(
        k=parameters.k,
        m=min(parameters.m, int(sets.lengths().max(initial=1))),  # no record has larger sets
        constraint_of=policy.of_code,
        n_constraints=len(policy),
        sensitive=sensitive,
        max_cluster=parameters.cluster_limit,
        nested=parameters.nested,
        safe=parameters.safe,
        fit=parameters.chosen_partitioning == "fitted",
        recut=parameters.recut,
        max_passes=FITTED_PASSES if parameters.chosen_partitioning == "fitted" else NO_LIMIT,
    )
