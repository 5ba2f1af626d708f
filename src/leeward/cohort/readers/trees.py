"""Which hierarchy the codes of a source are in, where it is no classification of diagnoses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from leeward.cohort.cohort import Cohort
from leeward.cohort.names import CodeName
from leeward.cohort.notices import Notice
from leeward.vocabulary import user_tree
from leeward.vocabulary.omop import BY_CODE


def with_tree(
    cohort: Cohort, beside: Path | None = None, kind: str | None = None, *, by_code: bool = False
) -> Cohort:
    """The cohort with a vocabulary: the file found beside its tables, the added one of a `kind`, or none of any code.

    `by_code`: the cohort's codes are those of the CONCEPT beside the file, not concept ids.
    Without a tree every code hangs below one root, and a notice says so; a vocabulary that is known already stays.
    """
    if cohort.vocabulary is not None or cohort.events is None:
        return cohort
    if beside is not None:
        message = f"the codes are generalized along {beside.name}, found beside the tables"
        vocabulary = f"{beside}{BY_CODE if by_code else ''}"
        return replace(cohort, vocabulary=vocabulary).with_notices(Notice("hierarchy", message, 1))
    if kind is not None and user_tree(kind) is not None:
        message = f"the codes are generalized along the vocabulary `{kind}` that was added"
        return replace(cohort, vocabulary=kind).with_notices(Notice("hierarchy", message, 1))
    snomed = user_tree("snomed")
    if snomed is not None and _mostly_of(cohort, snomed):
        message = "the codes are generalized along SNOMED CT, which was added"
        return replace(cohort, vocabulary="snomed").with_notices(Notice("hierarchy", message, 1))
    what = f"leeward vocabulary add {kind or 'snomed'} FOLDER, or a CSV node,parent with --vocabulary"
    message = (
        "no hierarchy of these codes is at hand: policies and generalization know each code alone, below one root; "
        f"give one ({what})"
    )
    return replace(cohort, vocabulary="flat").with_notices(Notice("no hierarchy", message, 1))


def add_concept_names(cohort: Cohort) -> Cohort:
    """The cohort with the names of SNOMED CT that was added, of its codes and of the concepts above them: they are
    public, so they go before names that stand beside patients' rows."""
    from leeward.vocabulary import rf2

    path = user_tree("snomed")
    if cohort.vocabulary != "snomed" or path is None or cohort.events is None:
        return cohort
    called, above = rf2.names(path), rf2.parents(path)
    names = dict(cohort.names)
    for code in cohort.events["code"].cast(pl.String).unique().to_list():
        while code in above:
            if called[code]:
                names[code] = CodeName(called[code], rf2.SYSTEMS[1])
            code = above[code]
    return replace(cohort, names=names)


def _mostly_of(cohort: Cohort, snomed: Path) -> bool:
    """Whether SNOMED CT has most of the distinct codes."""
    from leeward.vocabulary.rf2 import parents

    codes = cohort.require_events()["code"].cast(pl.String).unique().to_list()
    return 2 * sum(code in parents(snomed) for code in codes) > len(codes)
