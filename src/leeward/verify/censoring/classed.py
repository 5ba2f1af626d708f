"""A k-map over demographics and counts: who could be a record's owner fits its labels and holds all of it
(docs/methods/whole-patient.md#verifier)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pyarrow as pa

from leeward.verify.censoring.holders import Postings, Shown
from leeward.verify.checks import Check, Source, failing, of_count
from leeward.verify.classes import Placed, code_of_class, exact_values, place_in_classes, together
from leeward.verify.flat import Numbered, distinct
from leeward.verify.manifest import Share


@dataclass(frozen=True)
class People(Placed):
    """The classes of a release, the class of each record in the order of the rows, and the exact values of everybody in
    the population, with their identifiers."""

    people: pl.Series
    values: list[tuple[str, ...]]

    def fitting(self, number: int) -> pl.Series:
        """The people of the population whose exact values fit a class."""
        fits = {each: bool(self.classes.fit(each)[number]) for each in set(self.values)}
        return self.people.filter(pl.Series([fits[each] for each in self.values], dtype=pl.Boolean))


def place_in_population(table: pa.Table, share: Share, source: Source) -> tuple[list[Check], People | None]:
    """The checks of the classes, whose sizes are those in the population; None where they are not as they must be."""
    assert source.population_events is not None  # asked for before
    checks, placed = place_in_classes(share, pl.DataFrame(pl.from_arrow(table.drop(["codes"]))))
    # `class_sizes` is about the records of a class; a k-map needs k people of the population.
    checks = [each for each in checks if each.name != "class_sizes"]
    people = source.population_events["patient"].unique().sort()
    values = exact_values(placed.classes, replace(source, patients=source.population_patients), people)
    if values is None:
        detail = "The population does not have the demographic columns of the release."
        return [*checks, Check("class_people", False, detail)], None
    found = People(placed.classes, placed.of_record, people, values)
    k = share.guarantee("k")
    sizes = [len(found.fitting(number)) for number in range(len(placed.classes.labels))]
    checks.append(
        of_count(
            "class_people",
            sum(size < k for size in sizes),
            f"At least {k} people of the population could have the labels of each of {len(sizes):,} classes.",
            f"classes have labels that fewer than {k} people of the population could have.",
            {"classes": len(sizes), "smallest": min(sizes, default=None)},
        )
    )
    return checks, None if failing(checks) else found


def k_map_of_classes(shown: Shown, placed: People, events: pl.DataFrame, k: int) -> Check:
    """At least k people of the population fit each record's labels and hold all of it."""
    parts = []
    for number in range(len(placed.classes.labels)):
        rows = np.flatnonzero(placed.of_record == number)
        fitting = events.filter(pl.col("patient").is_in(placed.fitting(number).implode()))
        counts = Postings.of(Numbered(fitting)).holders(shown.select(rows), len(rows), k)
        few = int((counts < k).sum())
        parts.append(
            [
                of_count(
                    "k_map",
                    few,
                    f"each record is contained in at least {k} people who fit its labels.",
                    f"of {len(rows):,} records are contained in fewer than {k} people who fit their labels.",
                    {"records": len(rows)},
                )
            ]
        )
    return together(parts)[0]


def split_by_class(shown: Shown, placed: People) -> Shown:
    """The mentions, the codes of each class apart."""
    width = max(1, len(shown.codes))
    keys = placed.of_record[shown.place] * width + shown.code
    used = distinct(keys)
    codes = [code_of_class(key // width, shown.codes[key % width]) for key in used.tolist()]
    return replace(shown, codes=codes, code=np.searchsorted(used, keys))
