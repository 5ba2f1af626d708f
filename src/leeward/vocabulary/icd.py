"""ICD-9-CM and ICD-10-CM side by side, for tables from the years of the change: each code by its spelling.

A code with the form and category of one classification alone belongs to it. Two kinds have both:

- V codes of up to five characters (V20.2). Every V code of ICD-10-CM goes on to a seventh character (V20.2XXA), so
  these are of ICD-9-CM.
- E and three digits without a dot (E876): a category of ICD-9-CM, or E87.6 of ICD-10-CM. Where ICD-10-CM codes are
  written with dots it is the former (`ICD`). Where they are not, nobody can tell (`ICD_UNDOTTED`): such a code is of
  neither and stays as written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from leeward.errors import BadInput
from leeward.vocabulary.classification import Classification, Normalised, normalise_each
from leeward.vocabulary.groups import leaf_groups
from leeward.vocabulary.hierarchy import Hierarchy
from leeward.vocabulary.icd9cm import ICD9CM
from leeward.vocabulary.icd10cm import ICD10CM

EITHER = re.compile(r"E\d{3,4}")
"""ICD-9-CM's E codes, and the undotted E codes of ICD-10-CM."""


def is_undotted_e(text: str) -> bool:
    """Whether a text is an E and three or four digits."""
    return bool(EITHER.fullmatch("".join(text.split()).upper()))


def could_be_either(text: str) -> bool:
    """Whether a text is an E code without a dot that both classifications have."""
    return is_undotted_e(text) and ICD9CM.is_known(text) and ICD10CM.is_known(text)


@dataclass(frozen=True)
class Icd:
    """Both classifications as one vocabulary; its hierarchy has a root above theirs."""

    name: str
    undotted: bool

    def of(self, code: str) -> Classification | None:
        """The classification that a code belongs to; None where it is of neither, or could be of both."""
        ninth, tenth = ICD9CM.is_known(code), ICD10CM.is_known(code)
        if ninth and tenth and self.undotted and could_be_either(code):
            return None
        return ICD9CM if ninth else ICD10CM if tenth else None

    def clean(self, code: str) -> tuple[str | None, bool]:
        """The canonical form (None where the code is of neither), and whether leading zeros were put back."""
        found = self.of(code)
        return found.clean(code) if found else (None, False)

    def normalise(self, code: str) -> str | None:
        """The canonical form of a code in its classification, None where it is of neither."""
        return self.clean(code)[0]

    def normalise_all(self, codes: Iterable[str]) -> Normalised:
        """Canonical forms of many codes."""
        return normalise_each(self.clean, codes)

    def is_known(self, code: str) -> bool:
        """Whether one of the classifications has the code."""
        return self.of(code) is not None

    def level(self, code: str, n: int) -> str:
        """The node above the code at policy level `n` of its classification; the code where it is of neither."""
        found = self.of(code)
        if found is None:
            if n not in (0, 1, 2, 3):
                raise BadInput(
                    f"{self.name}: hierarchy level {n}; it is 1 (category), 2 (section) or 3 (chapter)."
                )
            return code
        return self._label(found, found.level(code, n)) if n else found.level(code, 0)

    def title(self, node: str) -> str:
        """The title of a section, chapter or root; other nodes are their own."""
        mark = f" ({ICD10CM.name})"
        if node.endswith(mark):
            return ICD10CM.title(node.removesuffix(mark))
        found = ICD9CM.title(node)
        return found if found != node else ICD10CM.title(node)

    @property
    def level_names(self) -> tuple[str, ...]:
        """The kinds of nodes from codes to root; codes of ICD-9-CM by their number of characters."""
        return (*ICD10CM.digits, "section", "chapter", "classification", "root")

    @property
    def other_label(self) -> str:
        """The node above codes of neither classification."""
        return f"not in {self.name}"

    def hierarchy(self, codes: Iterable[str]) -> Hierarchy:
        """The hierarchy over exactly these codes: below the root the two classifications, and what is of neither.

        Raises BadInput if there is no code.
        """
        distinct = sorted(set(codes), key=self.order)
        if not distinct:
            raise BadInput(f"{self.name}: no code is left to build a hierarchy over; give at least one.")
        top = len(self.level_names) - 1
        pairs: dict[str, str | None] = {self.name: None}
        levels = {self.name: top}
        for code in distinct:
            found, above = self.of(code), self.name
            if found is None:
                steps = [(self.other_label, top - 1), (code, 0)]
            else:
                lift = len(ICD10CM.digits) - len(found.digits)
                inner = [(self._label(found, label), level + lift) for label, level in found.path(code)[:-1]]
                steps = [(found.name, top - 1), *inner, (code, found.path(code)[-1][1] + lift)]
            for label, level in steps:
                pairs.setdefault(label, above)
                levels.setdefault(label, level)
                above = label
        full = Hierarchy.from_pairs(pairs.items(), self.name, levels, self.level_names)
        return full.restrict(distinct)

    def level_groups(self, codes: Iterable[str], n: int) -> dict[str, tuple[str, ...]]:
        """The codes under each node of policy level `n`; groups are disjoint and cover every code."""
        return leaf_groups(sorted(set(codes), key=self.order), lambda code: self.level(code, n))

    def sibling_groups(self, codes: Iterable[str], n: int) -> list[tuple[str, ...]]:
        """Groups of `n` siblings inside each classification; see `Classification.sibling_groups`."""
        by: dict[str, list[str]] = {ICD9CM.name: [], ICD10CM.name: []}
        for code in codes:
            if (found := self.of(code)) is not None:
                by[found.name].append(code)
        return [run for part in (ICD9CM, ICD10CM) for run in part.sibling_groups(by[part.name], n)]

    def order(self, code: str) -> tuple[int, int, str]:
        """Sorts codes by classification, then as that sorts them."""
        found = self.of(code)
        return (2, 0, code) if found is None else (int(found is ICD10CM), *found.order(code))

    def _label(self, of: Classification, node: str) -> str:
        """The node's label; those of ICD-10-CM that ICD-9-CM has too, or could have, say whose they are."""
        return f"{node} ({of.name})" if of is ICD10CM and node.startswith("V") else node


ICD = Icd("ICD-9-CM and ICD-10-CM", undotted=False)
ICD_UNDOTTED = Icd("ICD-9-CM and ICD-10-CM without dots", undotted=True)
