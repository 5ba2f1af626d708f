"""From a cohort to sets of codes without rare ones."""

from __future__ import annotations

from typing import Any

import polars as pl
from leeward.contracts.suppression import CONTRACT
from leeward.methods.suppression.parameters import Suppression

from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.randomness import Randomness
from leeward.release.content import Anonymized, Guarantee, ReleaseTable


def protect(
    parameters: Suppression,
    cohort: Cohort,
    engine: Any = None,
    *,
    randomness: Randomness | None = None,
    population: object = None,
) -> Anonymized:
    """Suppress codes that fewer than k patients have. GuaranteeUnreachable with fewer than k patients."""
    if population is not None:
        raise BadInput("suppression needs no population; leave `population` out.")
    sets = cohort.code_sets()
    if len(sets) < parameters.k:
        raise GuaranteeUnreachable(f"{len(sets)} patients are fewer than k = {parameters.k}.")
    randomness = randomness or Randomness.of(None)
    frequent = sets.supports() >= parameters.k
    kept = [
        [sets.codes[code] for code in sets.values[a:b] if frequent[code]]
        for a, b in zip(sets.offsets[:-1], sets.offsets[1:], strict=True)
    ]
    order = randomness.stream("suppression", "records").permutation(len(sets))
    frame = pl.DataFrame({"codes": [kept[place] for place in order]}, schema={"codes": pl.List(pl.String)})
    words = CONTRACT.words(parameters.public())
    return Anonymized(
        method=parameters.name,
        parameters=parameters.public(),
        guarantee=Guarantee.of(CONTRACT, words, parameters.public()),
        records=len(sets),
        tables=(ReleaseTable.of("records.parquet", frame.to_arrow()),),
        readme=words.readme,
        custody={"suppressed": int((~frequent).sum())},
        seeded=randomness.seeded,
    )
