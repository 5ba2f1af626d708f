"""Vocabularies and their generalization hierarchies as flat arrays.

`load("icd9")`, `load("icd10")`, `load("icd")` (both) or `load("hierarchy.csv")` gives a `Vocabulary`: it
normalises codes, knows which exist, groups them by policy level or by siblings, and builds the `Hierarchy` over a list
of codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from leeward.errors import BadInput
from leeward.paths import is_file
from leeward.vocabulary.classification import Classification, Normalised
from leeward.vocabulary.custom import CustomVocabulary
from leeward.vocabulary.hierarchy import Hierarchy

__all__ = ["VOCABULARIES", "Hierarchy", "Normalised", "Vocabulary", "built_in", "load"]


class Vocabulary(Protocol):
    """What every vocabulary can do; see `classification.Classification` and `custom.CustomVocabulary`."""

    @property
    def name(self) -> str:
        """What to call it in messages and reports."""

    def normalise(self, code: str) -> str | None:
        """The canonical form of a code, None if the text is no code."""

    def normalise_all(self, codes: Iterable[str]) -> Normalised:
        """Canonical forms of many (distinct) codes."""

    def is_known(self, code: str) -> bool:
        """Whether the vocabulary has the code."""

    def level(self, code: str, n: int) -> str:
        """The node above the code at policy level `n`; 0 is the code."""

    def title(self, node: str) -> str:
        """A text for a node in reports."""

    def hierarchy(self, codes: Iterable[str]) -> Hierarchy:
        """The hierarchy whose leaves are exactly these codes."""

    def level_groups(self, codes: Iterable[str], n: int) -> dict[str, tuple[str, ...]]:
        """The codes under each node of policy level `n`; disjoint, every code covered."""

    def sibling_groups(self, codes: Iterable[str], n: int) -> list[tuple[str, ...]]:
        """Disjoint groups of `n` sibling codes."""


def _icd9() -> Classification:
    from leeward.vocabulary.icd9cm import ICD9CM

    return ICD9CM


def _icd10() -> Classification:
    from leeward.vocabulary.icd10cm import ICD10CM

    return ICD10CM


def _icd() -> Vocabulary:
    from leeward.vocabulary.icd import ICD

    return ICD


def _icd_undotted() -> Vocabulary:
    from leeward.vocabulary.icd import ICD_UNDOTTED

    return ICD_UNDOTTED


VOCABULARIES: dict[str, Callable[[], Vocabulary]] = {
    "icd9": _icd9,
    "icd10": _icd10,
    "icd": _icd,
    "icd-undotted": _icd_undotted,
}
"""The built-in vocabularies by the name that the command line uses."""


HIERARCHIES = ("hierarchy", "omop", "snomed")
"""Kinds of added vocabularies that are hierarchies of codes."""


def built_in(title: str) -> Vocabulary | None:
    """The built-in vocabulary that a released hierarchy is of, by its title, which is the name of the root."""
    return next((made for make in VOCABULARIES.values() if (made := make()).name == title), None)


def load(name_or_path: str | Path) -> Vocabulary:
    """A built-in vocabulary by name (`icd9`, `icd10`), or one from a file (formats: `custom.read`).

    `…/CONCEPT_ANCESTOR.csv#concept_code` is the tree by the codes of the CONCEPT beside it, in place of concept ids.
    Raises BadInput for a name that is neither built in nor a file, and for a file that is not a hierarchy.
    """
    name = str(name_or_path).lower()
    made = VOCABULARIES.get(name)
    if made is not None:
        return made()
    if name == "flat":
        from leeward.vocabulary.open_tree import FLAT, OpenVocabulary

        return OpenVocabulary(FLAT)
    from leeward.vocabulary.omop import BY_CODE, concept_beside, is_concept_ancestor

    written = str(name_or_path)
    path = find_added(name) or Path(written.removesuffix(BY_CODE))
    if not is_file(path):
        raise BadInput(
            f"vocabulary {path.name!r} is neither built in ({', '.join(VOCABULARIES)}) nor a file; "
            "give one of these names or the path of a CSV with the columns node,parent."
        )
    from leeward.vocabulary.rf2 import is_converted

    if is_concept_ancestor(path) or is_converted(path):
        from leeward.vocabulary.open_tree import OpenVocabulary

        by_code = written.endswith(BY_CODE) and is_concept_ancestor(path)
        return OpenVocabulary(path.name, path, concept_beside(path) if by_code else None)
    from leeward.vocabulary.custom import read

    return CustomVocabulary(read(path))


def find_added(name: str) -> Path | None:
    """The file of a hierarchy that was added under this name (`leeward vocabulary add`); None without one."""
    from leeward.vocabulary import registry

    return registry.find(name) if name in HIERARCHIES and registry.has(name) else None
