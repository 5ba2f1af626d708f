"""Which hierarchy the codes of a source are in, where it is no classification of diagnoses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from leeward.cohort.cohort import CodeName, Cohort
from leeward.cohort.notices import Notice
from leeward.vocabulary import user_tree
from leeward.vocabulary.omop import BY_CODE


def with_tree(
    cohort: Cohort, beside: Path | None = None, kind: str | None = None, *, by_code: bool = False
) -> Cohort:
    """The cohort with a vocabulary, unless it has one: the file found beside its tables (with `by_code` by the codes of
    its CONCEPT), or the added one of a `kind`. Without either every code hangs below one root, and a notice says so."""
    if cohort.vocabulary is not None or cohort.events is None:
        return cohort
    snomed = user_tree("snomed")
    if beside is not None:
        vocabulary, what = f"{beside}{BY_CODE if by_code else ''}", f"{beside.name}, found beside the tables"
    elif kind is not None and user_tree(kind) is not None:
        vocabulary, what = kind, f"the vocabulary `{kind}` that was added"
    elif snomed is not None and _mostly_of(cohort, snomed):
        vocabulary, what = "snomed", "SNOMED CT, which was added"
    else:
        message = (
            "no hierarchy of these codes is available: policies and generalization treat each code "
            f"separately, below one root; give one (leeward vocabulary add {kind or 'snomed'} FOLDER, "
            "or a CSV node,parent with --vocabulary)"
        )
        return replace(cohort, vocabulary="flat").with_notices(Notice("no hierarchy", message, 1))
    notice = Notice("hierarchy", f"the codes are generalized along {what}", 1)
    return replace(cohort, vocabulary=vocabulary).with_notices(notice)


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
    from leeward.vocabulary.rf2 import parents

    codes = cohort.require_events()["code"].cast(pl.String).unique().to_list()
    return 2 * sum(code in parents(snomed) for code in codes) > len(codes)
