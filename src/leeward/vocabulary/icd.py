"""ICD-9-CM, ICD-10-CM, and both side by side, for tables from the years of the change: each code by its spelling.

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

from leeward.vocabulary.base import leaf_groups
from leeward.vocabulary.classification import Classification, Diagnoses

_NINTH = re.compile(
    r"(V\d\d)\.?(\d{0,2})|(E\d\d\d)\.?(\d?)|(\d{3})(\d{0,2})|(\d{1,3})\.(\d{0,2})|(\d{1,2})()"
)
_TENTH = re.compile(r"([A-Z][0-9][0-9A-Z])(?:\.?([0-9A-Z]{1,4}))?")
_MARKS = ".-*†+!#"


class Ninth(Classification):
    """ICD-9-CM: codes of three digits with up to two more (250.01), V codes (V10.1) and E codes (E812.0).

    Normalisation gives `250.00`, `V10.1`, `E812.0` from dotted or undotted text in any case, blanks removed. An
    undotted number of three to five digits is read as category plus subdivision (25000 → 250.00, 0381 → 038.1).

    Spreadsheets and number columns drop leading zeros. They are put back where the text cannot be a code
    otherwise: fewer than three digits before a dot (8.0 → 008.0, 38.1 → 038.1), or fewer than three digits and
    no dot (8 → 008). An undotted text that lost zeros and still has three or more digits (381 for 0381) cannot
    be told from a category and is read as one; so are procedure codes (38.1), which this vocabulary does not
    hold: keep them in another column.
    """

    def clean(self, code: str) -> tuple[str | None, bool]:
        text = "".join(code.split()).upper()
        found = _NINTH.fullmatch(text) if text.isascii() else None
        if found is None:
            return None, False
        category, tail = (each for each in found.groups() if each is not None)
        return _add_dot(category.zfill(3), tail), len(category) < 3

    def category_of(self, code: str) -> str:
        return code.partition(".")[0]


class Tenth(Classification):
    """ICD-10-CM: a category of three characters (letter, digit, digit or letter) with up to four more (S72.001A).

    Normalisation gives `S72.001A` from dotted or undotted text in any case, blanks removed; a trailing dot,
    dash (`A00.-`) or ICD-10 mark (dagger, asterisk) is dropped. Codes have a letter first, so no leading zero
    can have been lost. WHO ICD-10 codes have the same form and mostly the same categories: those that ICD-10-CM
    lacks count as unknown but find their section and chapter by range.
    """

    def clean(self, code: str) -> tuple[str | None, bool]:
        found = _TENTH.fullmatch("".join(code.split()).upper().rstrip(_MARKS))
        if found is None:
            return None, False
        category, tail = found.groups()
        return _add_dot(category, tail), False

    def category_of(self, code: str) -> str:
        return code[:3]


def _add_dot(category: str, tail: str | None) -> str:
    return f"{category}.{tail}" if tail else category


ICD9CM = Ninth.read("ICD-9-CM", "icd9cm", ("5-digit", "4-digit", "3-digit"))
ICD10CM = Tenth.read(
    "ICD-10-CM", "icd10cm", ("7-character", "6-character", "5-character", "4-character", "3-character")
)

EITHER = re.compile(r"E\d{3,4}")
"""ICD-9-CM's E codes, and the undotted E codes of ICD-10-CM."""


def is_e_without_dot(text: str) -> bool:
    return bool(EITHER.fullmatch("".join(text.split()).upper()))


def could_be_either(text: str) -> bool:
    """Whether a text is an E code without a dot that both classifications have."""
    return is_e_without_dot(text) and ICD9CM.is_known(text) and ICD10CM.is_known(text)


@dataclass(frozen=True)
class Icd(Diagnoses):
    """Both classifications as one vocabulary; its hierarchy has a root above theirs."""

    undotted: bool

    def of(self, code: str) -> Classification | None:
        """The classification that a code belongs to; None where it is of neither, or could be of both."""
        ninth, tenth = ICD9CM.is_known(code), ICD10CM.is_known(code)
        if ninth and tenth and self.undotted and could_be_either(code):
            return None
        return ICD9CM if ninth else ICD10CM if tenth else None

    def clean(self, code: str) -> tuple[str | None, bool]:
        found = self.of(code)
        return found.clean(code) if found else (None, False)

    def is_known(self, code: str) -> bool:
        return self.of(code) is not None

    def level(self, code: str, n: int) -> str:
        """The node above the code at policy level `n` of its classification; the code where it is of neither."""
        found = self.of(code)
        if n == 0:
            return found.level(code, 0) if found else code
        self._check_level(n)
        return self._label(found, found.level(code, n)) if found else code

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

    def sibling_groups(self, codes: Iterable[str], n: int) -> list[tuple[str, ...]]:
        by = leaf_groups(codes, key=lambda code: found.name if (found := self.of(code)) else "")
        return [run for part in (ICD9CM, ICD10CM) for run in part.sibling_groups(by.get(part.name, ()), n)]

    def path(self, code: str) -> list[tuple[str, int]]:
        """(label, level) from below the root down to the code."""
        top, found = len(self.level_names) - 1, self.of(code)
        if found is None:
            return [(self.other_label, top - 1), (code, 0)]
        lift = len(ICD10CM.digits) - len(found.digits)
        *above, (_, lowest) = found.path(code)
        inner = [(self._label(found, label), level + lift) for label, level in above]
        return [(found.name, top - 1), *inner, (code, lowest + lift)]

    def order(self, code: str) -> tuple[int, int, str]:
        found = self.of(code)
        return (2, 0, code) if found is None else (int(found is ICD10CM), *found.order(code))

    def _label(self, of: Classification, node: str) -> str:
        """The node's label; those of ICD-10-CM that ICD-9-CM has too, or could have, say whose they are."""
        return f"{node} ({of.name})" if of is ICD10CM and node.startswith("V") else node


ICD = Icd("ICD-9-CM and ICD-10-CM", undotted=False)
ICD_UNDOTTED = Icd("ICD-9-CM and ICD-10-CM without dots", undotted=True)

BY_NAME: dict[str, Diagnoses] = {"icd9": ICD9CM, "icd10": ICD10CM, "icd": ICD, "icd-undotted": ICD_UNDOTTED}
"""The built-in vocabularies by the name that the command line uses."""
