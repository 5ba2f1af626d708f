"""Type I and II errors of study_visits_population.py: hits before and after, against the effects that were planted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from leeward.analysis.phewas.associations import CORRECTIONS, significant
from leeward.synthetic.visits import Trait
from leeward.vocabulary.phecode import PhecodeMap

Pair = tuple[str, str]
"""A SNP and a phecode."""


def planted_pairs(traits: Sequence[Trait], mapping: PhecodeMap) -> set[Pair]:
    """All pairs that have an effect: a SNP, and each phecode that a code of a trait that it raises counts for."""
    return {
        (snp, phecode)
        for trait in traits
        for snp, _ in trait.effects
        for code in trait.codes
        for phecode in mapping.roll_up(code)
    }


def hits_of(tests: Sequence[Mapping[str, Any]], column: str) -> tuple[set[Pair], dict[str, set[Pair]]]:
    """The pairs that were tested, and by rule those that are significant."""
    frame = pl.DataFrame(
        [(each["predictor"], each["phecode"], each[column]) for each in tests],
        {"predictor": pl.String, "phecode": pl.String, "p_allelic": pl.Float64},
        orient="row",
    )
    found = significant(frame)
    pairs = found.select("predictor", "phecode")
    return {*pairs.rows()}, {rule: {*pairs.filter(found[rule]).rows()} for rule in CORRECTIONS}


def count_errors(tests: Sequence[Mapping[str, Any]], planted: Collection[Pair]) -> Iterator[dict[str, Any]]:
    """By rule: errors of the original and of the release against what was planted (of the pairs with an effect that the
    original tests, and of the pairs without one that either tests); and errors of the release against the original, as
    the paper has them. A pair that a release has too few cases to test is not found there."""
    (tested, original), (tested_after, release) = (
        hits_of(tests, f"p_{of}") for of in ("original", "release")
    )
    effects = tested & {*planted}
    for rule in CORRECTIONS:
        was, now = original[rule], release[rule]
        yield {
            "rule": rule,
            "effects": len(effects),
            "missed (II): original": len(effects - was),
            "missed (II): release": len(effects - now),
            "more": len(effects - now) - len(effects - was),
            "without effect: original / release": [len(each - {*planted}) for each in (tested, tested_after)],
            "found (I): original": len(was - {*planted}),
            "found (I): release": len(now - {*planted}),
            "against the original: lost (II)": len(was - now),
            "false (I)": len(now - was),
        }
