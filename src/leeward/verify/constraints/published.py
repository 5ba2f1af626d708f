"""Published records of generalized codes, laid out for checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from leeward.verify.checks import Check, of_count

MOST_WRITTEN = 50
"""Labels of more members are written with the first, the last and their number."""


@dataclass(frozen=True)
class Published:
    """A release that could be laid out.

    holds : records × labels, 1 where a record holds a label.
    labels, members : the released labels with their codes; number : the label of each code, -1 suppressed.
    """

    holds: Any
    labels: list[str]
    members: list[list[str]]
    number: dict[str, int]

    def image(self, codes: Iterable[str]) -> list[int]:
        """The labels of some codes; suppressed and unknown ones vanish."""
        return sorted({self.number[code] for code in codes if self.number.get(code, -1) >= 0})


def entries_of(lists: pl.Series) -> pl.Series:
    """The entries of all lists in a row."""
    return lists.explode(empty_as_null=False, keep_nulls=False)


def no_other_codes(codes: pl.DataFrame, held: Sequence[str]) -> Check:
    """The mapping names codes of the source only, which `held` lists; one that was made earlier may name others."""
    named = pl.concat([entries_of(codes["members"]), codes.filter(pl.col("suppressed"))["code"]])
    return of_count(
        "no_other_codes",
        int((~named.is_in(list(held))).sum()),
        "Every code of the mapping is one of the source's.",
        "codes of the mapping are none of the source's.",
    )
