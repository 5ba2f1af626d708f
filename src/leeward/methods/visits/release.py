"""The release, and what the custodian should know of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leeward.contracts.visits import CONTRACT
from leeward.methods.visits import tables
from leeward.methods.visits.classed import bare
from leeward.methods.visits.outcome import Outcome
from leeward.methods.visits.parameters import Visits
from leeward.randomness import Randomness
from leeward.release.content import Anonymized, Guarantee


def release_of(
    method: Visits,
    outcome: Outcome,
    payload: pl.DataFrame | None,
    vocabulary: str | None,
    randomness: Randomness,
) -> Anonymized:
    """The release: records and the visits of each in an order that says nothing."""
    classes = outcome.classes
    parameters = method.public(vocabulary=None if vocabulary is None else Path(vocabulary).name)
    words = CONTRACT.words(parameters)
    released = tables.shuffle(outcome, method.merge_visits, randomness)
    shared = [released.visits_table(outcome.names), released.records_table(payload, classes)]
    if method.enforce == "generalize":
        shared.append(released.hierarchy_table(outcome))
    return Anonymized(
        method=method.name,
        parameters=parameters,
        guarantee=Guarantee.of(CONTRACT, words, parameters),
        records=len(outcome.lens),
        tables=tuple(shared),
        readme=words.readme,
        custody_tables=tables.custody_tables(method, outcome, released),
        custody=facts(method, outcome),
        notices=notices(outcome),
        seeded=randomness.seeded,
    )


def facts(method: Visits, outcome: Outcome) -> dict[str, Any]:
    """What the custodian should know of the run."""
    return {
        "level": method.level,
        "patients": len(outcome.lens),
        "visits": outcome.lens.n_visits,
        "codes": len(outcome.lens.codes if outcome.classes is None else set(map(bare, outcome.lens.codes))),
        "merged_codes": outcome.merging.merged,
        "suppressed_codes": outcome.merging.suppressed,
        "emptied_by_suppression": outcome.mapped.emptied(),
        "emptied_visits": outcome.enforced.emptied(),
        "steps": outcome.steps,
        "pairs": pairs(outcome),
    }


def pairs(outcome: Outcome) -> dict[str, int]:
    """What became of the (visit, code) pairs: kept as they were, inside a merged code, as a node above, or gone."""
    _, exact, merged, above = np.bincount(outcome.kept_as(), minlength=4).tolist()
    return {"original": len(outcome.lens.values), "exact": exact, "merged": merged, "above": above}


def notices(outcome: Outcome) -> tuple[str, ...]:
    """What a custodian may not expect."""
    found = []
    if outcome.merging.suppressed:
        where = (
            "everywhere" if outcome.classes is None else "in their class (codes are counted class by class)"
        )
        found.append(
            f"{outcome.merging.suppressed:,} of {len(outcome.lens.codes):,} codes are held by too few patients even "
            f"after merging and were suppressed {where}."
        )
    empty = outcome.enforced
    kept = np.add.reduceat(np.diff(empty.offsets), empty.patient_offsets[:-1])
    gone = int(np.count_nonzero(kept == 0))
    if gone:
        found.append(f"{gone:,} of {len(outcome.lens):,} records are released without any code.")
    return tuple(found)
