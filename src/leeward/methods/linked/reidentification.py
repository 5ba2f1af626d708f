"""Candidates of patients in linked tables: those of their class who show a row of a view; a code more; and an attack by
somebody who knows a patient's exact demographics and such a row (docs/methods/linked.md#guarantee)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations
from typing import Any

import numpy as np
import polars as pl

from leeward.analysis.demographics.joint import fitting_classes
from leeward.analysis.demographics.released import ReleasedClasses
from leeward.analysis.reidentification import Further, Known, Scope, Tried
from leeward.analysis.risk import SEED, risk_before
from leeward.arrays import count_noun, offsets_of
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.contracts.classes import exact
from leeward.contracts.linked import ROWS
from leeward.methods.linked.measures import (
    class_of_record,
    classes_shown,
    count_with,
    holders_in,
    rows_of,
    shown_tables,
    views_of,
)
from leeward.randomness import Randomness
from leeward.release import Release

PATIENTS = 500
"""Patients that are drawn."""

PAIRS = "patients+events+events"
PIECES = {1: "codes", 2: "pairs of codes", 3: "triples of codes"}
NOBODY: dict[str, Any] = {
    "sets": 0, "sets_below_k_share": 0.0, "sets_by_support": [], "below_k": 0, "unique": 0, "patients_exact": True,
}  # fmt: skip
"""Where no patient shows so many codes."""


def scope(release: Release) -> Scope:
    """The guarantee is about one row of a view; who knows more codes reads all rows of a patient by one number."""
    more = codes_beyond(release)
    views = [str(view) for view in release.parameters["views"]]
    before = exact(release.demographics)
    remedy = "" if PAIRS in views else f"The view `{PAIRS}` also covers attackers who know two codes."
    return Scope(
        f"if they know {before}{' or '.join(ROWS[view] for view in views)} of a patient",
        f"if they know {count_noun('code', more)}",
        f"many patients have fewer than {release.guarantee['k']} candidates",
        remedy,
    )


def count_candidates(release: Release, cohort: Cohort, population: Cohort | None = None) -> Known:
    """The patients of the class who show each row of each patient; of one who shows none, all of the class."""
    of_record = class_of_record(release)
    shown = shown_tables(release)
    rows = pl.concat([rows_of(view, *shown) for view in views_of(release) if view != PAIRS])
    silent = of_record.with_columns(holders=pl.len().over("class")).join(rows, on="record", how="anti")
    candidates = np.concatenate([rows["holders"].to_numpy(), silent["holders"].to_numpy()]).astype(np.float64)
    names = release.demographics
    ways = " or ".join(ROWS[view] for view in release.parameters["views"])
    return Known(f"{exact(names)}{ways} of a patient", candidates, further=further_of(release, names))


def further_of(release: Release, names: Sequence[str]) -> Further:
    """What so many codes of a patient tell that no view has them."""
    more, k = codes_beyond(release), int(release.guarantee["k"])
    rows = risk_before(released_sets(release), k, seed=SEED, largest_m=more)["by_m"]
    row = rows[-1] if len(rows) == more else NOBODY
    supports = row["sets_by_support"]
    return Further(
        knows=f"{exact(names)}{count_noun('code', more)} of a patient",
        known=PIECES[more] + (" in a class" if names else ""),
        sets=row["sets"],
        below_k=round(row["sets_below_k_share"] * row["sets"]),
        patients=row["below_k"],
        among=release.records,
        smallest=min(supports[0]["from"], k) if supports else k,
        alone=row["unique"],
        exact=row["patients_exact"],
    )


def released_sets(release: Release) -> CodeSets:
    """The codes that each patient shows; those of different classes are different codes."""
    shown = classes_shown(release)
    tokens = shown.select("class", "code").unique().sort("class", "code").with_row_index("token")
    held = shown.join(tokens, on=["class", "code"]).sort("record", "token")
    lengths = np.bincount(held["record"].to_numpy(), minlength=release.records)
    names = tuple(str(token) for token in range(tokens.height))
    values = held["token"].to_numpy().astype(np.int32)
    return CodeSets(offsets_of(lengths), values, names, pl.Series(np.arange(release.records)))


def codes_beyond(release: Release) -> int:
    """The fewest codes of which the views say nothing: one more than those of a row."""
    views = views_of(release)
    return 3 if PAIRS in views else 2 if "patients+events" in views else 1


def attack(release: Release, cohort: Cohort, population: Cohort | None = None) -> list[Tried]:
    """Look each code and each pair of codes of a patient up, in the classes that the demographics fit; codes that no
    patient of these shows tell nothing."""
    k = int(release.guarantee["k"])
    two = "patients+events+events" in release.parameters["views"]
    sets = cohort.code_sets()
    chosen = np.sort(Randomness.of(0).stream("attack").permutation(len(sets))[:PATIENTS])
    number, fits = fitting_classes(release, cohort, sets.patients.gather(chosen))
    classes = ReleasedClasses.read(release).number if release.demographics else np.zeros(1, np.int64)
    of_class = holders_in(release)
    counts = []
    for vector, place in zip(number.tolist(), chosen.tolist(), strict=True):
        codes, own = sets.record(place), [of_class[n] for n in classes[fits[vector]].tolist()]
        known = chain(combinations(codes, 1), combinations(codes, 2) if two else ())
        counts += [sum(count_with(held, each) for held in own) for each in known]
    return [
        Tried(
            "knows a patient's demographics and " + ("up to two codes" if two else "a code"),
            f"fewer than {k} patients share them in the joined tables",
            len(counts),
            sum(0 < count < k for count in counts),
        )
    ]
