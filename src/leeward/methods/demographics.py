"""The parameters of methods that release demographics beside codes, and the rules between them
(docs/methods/whole-patient.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from leeward.errors import BadInput
from leeward.fields import BadParameter, Parameter
from leeward.methods.base import Parameters

WORDS_OF_LEVELS = ("exact", "all")


OF_CLASSES = ("demographics", True)
"""Shown in a manifest that has demographics, and in no other."""

Hierarchies = Annotated[
    Mapping[str, str] | None,
    Parameter(
        "The hierarchy of a column: intervals, prefix, exact, or a CSV file with the columns node,parent.",
        default="intervals for ages and years, prefix for post codes, else exact",
        metavar="COL:HIERARCHY[,…]",
        form="intervals|prefix|exact|file",
        word="file",
        ascending=True,
        when=OF_CLASSES,
    ),
]


@dataclass(frozen=True, kw_only=True)
class WithDemographics(Parameters):
    """The parameters of a method that can release demographics, however it recodes them."""

    k: int
    demographics: Annotated[
        tuple[str, ...],
        Parameter(
            "Columns of the patients that an attacker may know exactly; released generalized, in classes of "
            "at least k patients who share all of them.",
            metavar="COL[,COL…]",
            form=r"[A-Za-z0-9][A-Za-z0-9_. -]*",
        ),
    ] = ()
    keep: Annotated[
        Mapping[str, int | str] | None,
        Parameter(
            "How finely to release a column: years of an interval (1, 5, 10, 20, 40), characters of a prefix, steps "
            "below the root of a file's hierarchy; or exact, or all (not at all).",
            default="as the search finds",
            metavar="COL:LEVEL[,…]",
            ge=1,
            form="exact|all",
            when=OF_CLASSES,
        ),
    ] = field(default=None, hash=False)
    small: Annotated[
        Literal["merge", "suppress", "drop"],
        Parameter(
            "Classes of fewer than k patients. merge: join the nearest class; suppress: do not release "
            "their demographics; drop: leave these patients out.",
            shown="always",
            when=OF_CLASSES,
        ),
    ] = "merge"

    @property
    def fewest(self) -> int:
        """The least number of patients of a class."""
        return self.k

    def rules(self) -> None:
        names = self.demographics
        if len(set(names)) < len(names):
            raise BadParameter("demographics", "names a column twice; name each once.")
        for given in ("keep", "hierarchies"):
            for name in getattr(self, given) or {}:
                if name not in names:
                    raise BadParameter(
                        given, f"names `{name}`, which is not in `demographics`; add it there."
                    )
        for name, level in (self.keep or {}).items():
            if isinstance(level, str) and level not in WORDS_OF_LEVELS:
                raise BadParameter(f"keep.{name}", "must be a whole number, `exact` or `all`; got text.")
        both = sorted(set(names) & set(getattr(self, "payload", ())))
        if both:
            raise BadInput(
                f"`{both[0]}` is in `demographics` and in `payload`: an attacker knows it, or does not. Keep one."
            )


@dataclass(frozen=True, kw_only=True)
class WithRecoding(WithDemographics):
    """The same with a choice of recoding."""

    recoding: Annotated[
        Literal["full", "local"],
        Parameter(
            "Levels of columns that `keep` does not name. full: one level for everybody; local: classes are "
            "split further if that costs few codes. Both are found by running the method.",
            shown="always",
            when=OF_CLASSES,
        ),
    ] = "full"
    hierarchies: Hierarchies = field(default=None, hash=False)
