"""From a table to a release: choose by the pilot, condense, and condense again for the custodian's measures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from leeward.cohort.cohort import Cohort
from leeward.engine import make
from leeward.errors import BadInput, GuaranteeUnreachable, require_extra
from leeward.methods.condensation import release
from leeward.methods.condensation.condense import again, condense, ready
from leeward.methods.condensation.parameters import Condensation
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

if TYPE_CHECKING:
    from leeward.cohort.lenses.table import Table
    from leeward.engine import Engine
    from leeward.methods.condensation.cell import CellKernel
    from leeward.methods.condensation.condense import Condensed
    from leeward.methods.condensation.relations import Relation

CELL_ROWS = 1 << 17
"""Halving takes at most about this many rows at a time; the paper's algorithms take a stratum whole."""

REPEATED_ROWS = 50_000
"""Up to this many rows a planned release is measured over `REPETITIONS`, above over itself alone."""
REPETITIONS = 20


def protect(
    parameters: Condensation,
    cohort: Cohort,
    engine: Engine | None = None,
    *,
    randomness: Randomness | None = None,
    population: Any = None,
) -> Anonymized:
    """Condense a cohort's table. Raises BadInput for a column that is missing or cannot be released, a missing outcome,
    or text that looks like an identifier; GuaranteeUnreachable for fewer than k rows, no stratum of k rows, or
    relations that cannot be kept."""
    require_extra("`condense`", "models", "scipy", "sklearn")
    from threadpoolctl import threadpool_limits

    from leeward.methods.condensation.proposals import list_unconfirmed

    if population is not None:
        raise BadInput("condensation needs no population; leave `population` out.")
    randomness = randomness or Randomness.of(None)
    engine = make(engine)
    table = cohort.table()
    chosen: Condensation = parameters
    pilot: dict[str, Any] = {}
    if parameters.needs_pilot:
        from leeward.methods.condensation.pilot import choose

        chosen, pilot = choose(parameters, table, randomness)
    prepared, kernel = ready(chosen, table, randomness)
    at_once = max(CELL_ROWS, 2 * chosen.k) if kernel.how == "halving" else len(table)
    repetitions = REPETITIONS - 1 if chosen.plan and len(table) <= REPEATED_ROWS else 0
    # Kernels work in threads of the engine's; BLAS's own would wait for each other at every small matrix.
    with threadpool_limits(1):
        condensed = condense(prepared, kernel, engine, randomness, at_once)
        while condensed.facts["broken"]:
            kernel = replace(kernel, relations=_keepable(condensed, kernel, chosen, table))
            condensed = condense(prepared, kernel, engine, randomness, at_once)
        further = again(prepared, kernel, engine, repetitions, randomness, at_once) if repetitions else []
    proposals = list_unconfirmed(table, condensed.frame, kernel.relations, chosen.k)
    return release.release_of(
        parameters, chosen, prepared, kernel, condensed, further, pilot, proposals, randomness.seeded
    )


def _keepable(
    condensed: Condensed, kernel: CellKernel, chosen: Condensation, table: Table
) -> tuple[Relation, ...]:
    """The relations but those that the run found and could not keep; GuaranteeUnreachable where it found none."""
    from leeward.methods.condensation.proposals import list_proposals

    stated = tuple(each for each in kernel.relations if each.text in chosen.stated)
    if stated == kernel.relations:
        raise GuaranteeUnreachable(
            f"{table.name}: {int(condensed.facts['broken']):,} rows would break one of the `relations`: no exchange "
            "of values inside their groups keeps them all. Leave one of them out."
        )
    found = list_proposals(table, condensed.frame, kernel.relations)
    left = tuple(each.relation for each in found if each.relation in stated or not each.broken)
    return left if left != kernel.relations else stated
