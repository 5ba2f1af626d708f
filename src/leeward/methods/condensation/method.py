"""The way from a table of patients to a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.randomness import Randomness
from leeward.release.content import Anonymized

if TYPE_CHECKING:
    from leeward.engine import Engine
    from leeward.methods.condensation.parameters import Condensation


def protect(
    parameters: Condensation,
    cohort: Cohort,
    engine: Engine | None = None,
    *,
    randomness: Randomness | None = None,
    population: Any = None,
) -> Anonymized:
    """Condense a cohort's table.

    Raises
    ------
    BadInput
        A column that is missing or cannot be released, a missing outcome, text that looks like an identifier.
    GuaranteeUnreachable
        Fewer than k rows, or no stratum of k rows.
    """
    from threadpoolctl import threadpool_limits

    from leeward.engine import make
    from leeward.methods.condensation import release
    from leeward.methods.condensation.proposals import list_unconfirmed
    from leeward.methods.condensation.run import again, condense
    from leeward.methods.condensation.setting import ready, repeats, rows_at_once

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
    at_once = rows_at_once(chosen, len(table))
    repetitions = repeats(chosen, len(table))
    # Kernels work in threads of the engine's; BLAS's own would wait for each other at every small matrix.
    with threadpool_limits(1):
        condensed = condense(prepared, kernel, engine, randomness, at_once)
        further = again(prepared, kernel, engine, repetitions, randomness, at_once) if repetitions else []
    if condensed.facts["broken"]:
        raise GuaranteeUnreachable(
            f"{table.name}: {int(condensed.facts['broken']):,} rows would break one of the `relations`: no exchange "
            "of values inside their groups keeps them all. Leave one of them out."
        )
    proposals = list_unconfirmed(table, condensed.frame, kernel.relations)
    return release.release_of(
        parameters, chosen, prepared, kernel, condensed, further, pilot, proposals, randomness.seeded
    )
