"""The release: its guarantee in plain words, and how to read it."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from leeward.methods import demographics_tables as whole
from leeward.methods import demographics_words as words
from leeward.methods.visits import tables
from leeward.methods.visits.classed import bare
from leeward.methods.visits.outcome import Outcome
from leeward.methods.visits.parameters import Visits
from leeward.randomness import Randomness
from leeward.release.content import Anonymized, Guarantee, stated_facts

NAMES = {
    "visit": "k-anonymous visits",
    "containment": "k-anonymous visits within the union of a patient's visits",
    "codes": "any m codes of a visit shown by at least k patients",
    "code": "codes of at least k patients",
}

ATTACKERS = {
    "visit": (
        "Somebody who knows that a person is a patient of the whole released population{exact} and every code of one "
        "visit of that person: at least {k} patients of the population{same} have a visit with exactly the released "
        "set of codes."
    ),
    "containment": (
        "Somebody who knows that a person is a patient of the whole released population{exact} and every code of one "
        "visit of that person: whatever codes of that visit the person's record shows, by whichever visit, at least "
        "{k} patients of the population{same} have all of them in their record."
    ),
    "code": (
        "Somebody who knows that a person is a patient of the whole released population{exact} and one code of that "
        "person: at least {k} patients of the population{same} have the released code."
    ),
}

ATTACKER_OF_CODES = (
    "Somebody who knows that a person is a patient of the whole released population{exact} and up to {m} codes of one "
    "visit of that person: if {shown} shows them, at least {k} patients of the population{same} have {where} with all "
    "of them."
)

EXACT, SAME = ", the exact {names} of that person,", " with the same released demographics"
"""What an attacker of demographics knows beside, and among whom candidates are counted then."""

KNOWS_THE_ALGORITHM = (
    "Somebody who knows the algorithm can rule out data that it would have turned into something else. Of the patients "
    "that fit, and of the codes that a label stands for, some may then be more likely than others, and at times one "
    "alone is left."
)

NOT_PROTECTED = (
    "Somebody who knows several visits of a person, or how many visits the person had.",
    "What all patients who share a visit's set have in common: it is learnt about each of them.",
    KNOWS_THE_ALGORITHM,
    "Several releases compared: cohorts drawn from one master can be joined by visits, and so can their payloads.",
)
OPEN_PAYLOAD = "The payload columns: they are released as they are."
NOT_AT_LEVEL_VISIT = (
    "Somebody who knows every code of one visit of a person and reads all visits of a record together: a code that "
    "one visit no longer shows may be shown by another visit of the same person, so fewer than {k} patients of the "
    "population{same} may have in their records all that the person's record shows of the known visit. Merged visits "
    "(`merge_visits`), or level `containment`, exclude this."
)
NOT_AT_LEVEL_CODE = (
    "Somebody who knows two or more codes of a person, be it of one visit: a pair of codes may point at one patient.",
)
NOT_AT_LEVEL_CODES = (
    "Somebody who knows more than {m} codes of a visit, or codes of several visits.",
    "Somebody who concludes from a code that the person has and the release does not show.",
)

IN_CLASSES = """
Codes were merged and suppressed in every class by itself: a code that one class shows may be suppressed in another.
`data/records.parquet` has the labels of each record's class.
"""

DRAWN_CLASSES = """
A class has at least k patients of the population that this cohort was drawn from; `records` counts the cohort's, who
may be fewer.
"""

README = """\
`data/visits.parquet` holds one row a {row}: `record`, `visit` (a number without meaning: visits are in no order) and
`codes`, a list of distinct labels, sorted. `data/records.parquet` holds one row a record: `record`{payload}.

- A label such as `401.0|401.1` is a generalized code: one or more of its members were recorded.
{nodes}- Rare codes were suppressed{lost}. A code that is shown was recorded; one that is not shown may have been.
- A visit that lost all its codes has no row, a record that lost all its visits still has its row in
  `records.parquet`: count people there.
- For a phenotype, count a generalized code only if all its members belong to the phenotype.
"""
NODES = (
    "- A label of `data/code_hierarchy.csv` (`node,parent`) that is no code is a node of the hierarchy: a code below\n"
    "  it was recorded.\n"
)


KNOWN = {
    "visit": "all codes of a visit",
    "containment": "some codes of a visit",
    "codes": "up to m codes of a visit",
    "code": "a code",
}
"""What the attacker knows, by level: a fact of the guarantee."""


def guarantee_of(method: Visits) -> Guarantee:
    """What holds at the method's level, exactly."""
    open_doors = (*not_at_level(method), *NOT_PROTECTED, *(words.limits(()) if method.demographics else ()))
    if method.payload:
        open_doors = (*open_doors, OPEN_PAYLOAD)
    return Guarantee(
        name=NAMES[method.level] + (words.IN_CLASSES if method.demographics else ""),
        k=method.k,
        m=method.m if method.level == "codes" else None,
        attacker=attacker_of(method),
        not_protected=open_doors,
        model="journalist",
        facts=stated_facts(
            KNOWN[method.level], "release", method.payload, **words.known(method.demographics)
        ),
    )


def attacker_of(method: Visits) -> str:
    """What the attacker knows, and what is left of it."""
    names = method.demographics
    exact, same = (EXACT.format(names=words.listed(names)), SAME) if names else ("", "")
    if method.level != "codes":
        return ATTACKERS[method.level].format(k=method.k, exact=exact, same=same)
    shown, where = ("the person's record", "a record") if method.merge_visits else ("a visit", "a visit")
    return ATTACKER_OF_CODES.format(k=method.k, m=method.m, shown=shown, where=where, exact=exact, same=same)


def not_at_level(method: Visits) -> tuple[str, ...]:
    """What the level by itself does not protect; merged visits show no code by another visit."""
    if method.level == "visit" and not method.merge_visits:
        return (NOT_AT_LEVEL_VISIT.format(k=method.k, same=SAME if method.demographics else ""),)
    if method.level == "codes":
        return tuple(each.format(m=method.m) for each in NOT_AT_LEVEL_CODES)
    return NOT_AT_LEVEL_CODE if method.level == "code" else ()


def readme_of(parameters: dict[str, Any], payload: tuple[str, ...]) -> str:
    """How a recipient reads the files."""
    names = tuple(parameters.get("demographics") or ())
    carried = ", and the payload " + ", ".join(f"`{name}`" for name in payload) if payload else ""
    labels = ", the labels " + ", ".join(f"`{name}`" for name in names) if names else ""
    opening = words.readme(names, parameters["small"]) + IN_CLASSES + "\n" if names else ""
    return opening + README.format(
        row="patient (all visits as one set)" if parameters.get("merge_visits") else "visit",
        payload=labels + carried,
        nodes=NODES if parameters.get("enforce") == "generalize" else "",
        lost=", and some codes were taken out of visits whose set was rare"
        if parameters["level"] != "code"
        else "",
    )


def release_of(
    method: Visits,
    outcome: Outcome,
    payload: pl.DataFrame | None,
    vocabulary: str | None,
    randomness: Randomness,
) -> Anonymized:
    """The release: records and the visits of each in an order that says nothing."""
    classes = outcome.classes
    parameters = method.public(vocabulary)
    released = tables.arranged(outcome, method.merge_visits, randomness)
    shared = [] if classes is None else [*whole.tables_of(classes)]
    shared += [released.visits_table(outcome.names), released.records_table(payload, classes)]
    if method.enforce == "generalize":
        shared.append(released.hierarchy_table(outcome))
    return Anonymized(
        method=method.name,
        parameters=parameters,
        guarantee=guarantee_of(method),
        records=len(outcome.lens),
        tables=tuple(shared),
        readme=readme_of(parameters, method.payload),
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
