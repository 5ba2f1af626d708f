"""Which hierarchy the codes of a source are in, where it is no classification of diagnoses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from leeward.cohort.cohort import Cohort
from leeward.cohort.notices import Notice
from leeward.vocabulary import added


def with_tree(cohort: Cohort, beside: Path | None = None, kind: str | None = None) -> Cohort:
    """The cohort with a vocabulary: the file found beside its tables, the added one of a `kind`, or none of any code.

    Without a tree every code hangs below one root, and a notice says so; a vocabulary that is known already stays.
    """
    if cohort.vocabulary is not None or cohort.events is None:
        return cohort
    if beside is not None:
        message = f"the codes are generalized along {beside.name}, found beside the tables"
        return replace(cohort, vocabulary=str(beside)).with_notices(Notice("hierarchy", message, 1))
    if kind is not None and added(kind) is not None:
        message = f"the codes are generalized along the vocabulary `{kind}` that was added"
        return replace(cohort, vocabulary=kind).with_notices(Notice("hierarchy", message, 1))
    what = "leeward vocabulary add omop FOLDER" if kind == "omop" else "a CSV node,parent with --vocabulary"
    message = (
        "no hierarchy of these codes is at hand: policies and generalization know each code alone, below one root; "
        f"give one ({what})"
    )
    return replace(cohort, vocabulary="flat").with_notices(Notice("no hierarchy", message, 1))
