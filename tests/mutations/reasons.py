"""Why what passes the verifier passes: each survivor of the bench argued, by release and name."""

from __future__ import annotations

import re

from tests.mutations import judging
from tests.mutations.copies import Mutation
from tests.mutations.releases import Made

REASONS: tuple[tuple[str, str, str], ...] = (
    (
        r".*",
        r"custody: digests.json gone .*",
        "earlier versions wrote none, so that it is told under what was not checked",
    ),
    (r".*", r"custody: digests.json: a line more .*", "it lists the same digests"),
    (
        r"cohort",
        r"custody: master.json: a line more .*",
        "the master's place may be corrected, and it names the same",
    ),
    (
        r"cohort",
        r"claims: version is another.*",
        "a cohort has no spec with versions, and no guarantee depends on one",
    ),
    (
        r"trajectories, demographics",
        r"content: codes.parquet: vocabulary: all rows .*",
        "only the row of the tree's root differs, which is the vocabulary itself: no code is said to be of another",
    ),
    (
        r"trajectories, demographics",
        r"content: codes.parquet: vocabulary: .*",
        (
            "rows of a source may name a vocabulary for each code, so that the tree's does not tell; with source, or "
            "for a name that is not the classification's it is refuted"
        ),
    ),
    (
        r"trajectories.*",
        r"content: codes.parquet: (vocabulary|name): .*",
        "codes of a hierarchy from a file: the verifier has no vocabulary or names to compare with",
    ),
    (
        r".*",
        r"content: codes.parquet: vocabulary: .*",
        "which vocabulary a code is of cannot be read from the share; with the source it is refuted",
    ),
    (
        r"disassociation.*demographics",
        r"guarantee: a class of everybody .*",
        "every patient fits the wider labels too, so that less is said and nothing false",
    ),
    (
        r".*demographics",
        r"form: keys of parameters.keep in another order.*",
        "they stand as the custodian gave them",
    ),
    (
        r".*demographics",
        r"claims: parameter keep\b.*",
        (
            "a column not named may have any level, and labels coarser than stated may have been merged; with the "
            "spec at hand it is refuted (`parameters_of_spec`)"
        ),
    ),
    (
        r".*",
        r"order: .*dealt out in turn.*",
        (
            "most records share the column, ties are broken at random, and what is left of the order is less than six "
            "standard deviations"
        ),
    ),
)
"""Release, survivor, reason: the first two as patterns of the whole text."""


PARAMETER = re.compile(r"parameter (\w+)|([km]) [+-]\d everywhere")

OF_BROKEN = {
    "claims": "neither words, files nor rows of the share depend on it",
    "order": "what the order tells is in the source or in custody, and not in the share",
    "list": "how many patients have a code, and what it is called, is in the source",
    "policy": "the utility constraints are in custody",
    "verbatim": "the source's rows are not in the share",
    "near copies": "the source's rows are not in the share",
    "hierarchy": "another hierarchy, or another release with it, would look the same",
}
"""What is broken -> why no share shows it; of all else only the source or custody say what is true."""

OF_THE_SOURCE = (
    "another release of other patients would look the same: only source and custody say what is theirs"
)


def unseen(made: Made, mutation: Mutation, broken: set[str]) -> str:
    """Why nobody can see from the share what a mutation broke."""
    if "claims" in broken and (name := PARAMETER.match(mutation.name)):
        known = {**judging.UNSEEN_ANYWHERE, **judging.UNSEEN[made.method]}
        return known.get(name[1] or name[2], OF_BROKEN["claims"])
    for kind in ("claims", "order", "policy", "near copies", "verbatim", "list", "hierarchy"):
        if kind in broken:
            return OF_BROKEN[kind]
    return OF_THE_SOURCE


def reason(release: str, survivor: str) -> str:
    """The reason of a survivor; empty where there is none."""
    for of, name, why in REASONS:
        if re.fullmatch(of, release) and re.fullmatch(name, survivor):
            return why
    return ""
