"""Vocabularies and their generalization hierarchies as flat arrays.

`load("icd9")`, `load("icd10")`, `load("icd")` (both) or `load("hierarchy.csv")` gives a `Vocabulary`: it
normalises codes, knows which exist, groups them by policy level or by siblings, and builds the `Hierarchy` over a list
of codes.
"""

from __future__ import annotations

from pathlib import Path

from leeward.errors import BadInput
from leeward.paths import is_file
from leeward.vocabulary.base import Vocabulary
from leeward.vocabulary.hierarchy import Hierarchy

__all__ = ["VOCABULARIES", "Hierarchy", "Vocabulary", "built_in", "load"]

VOCABULARIES = ("icd9", "icd10", "icd", "icd-undotted")
"""The built-in vocabularies by the name that the command line uses."""

HIERARCHIES = ("hierarchy", "omop", "snomed")
"""Kinds of added vocabularies that are hierarchies of codes."""


def built_in(title: str) -> Vocabulary | None:
    """The built-in vocabulary that a released hierarchy is of, by its title, which is the name of the root."""
    return next((found for name in VOCABULARIES if (found := load(name)).name == title), None)


def load(name_or_path: str | Path) -> Vocabulary:
    """A built-in vocabulary by name (`icd9`, `icd10`), or one from a file (`trees.read`;
    `…/CONCEPT_ANCESTOR.csv#concept_code` by the codes of the CONCEPT beside it). BadInput for another name, and for
    a file that is no hierarchy."""
    name = str(name_or_path).lower()
    if name in VOCABULARIES:
        from leeward.vocabulary.icd import BY_NAME

        return BY_NAME[name]
    from leeward.vocabulary.omop import BY_CODE, concept_beside, is_concept_ancestor
    from leeward.vocabulary.rf2 import is_tree
    from leeward.vocabulary.trees import FLAT, CustomVocabulary, OpenVocabulary, read

    if name == FLAT:
        return OpenVocabulary(FLAT)

    written = str(name_or_path)
    path = user_tree(name) or Path(written.removesuffix(BY_CODE))
    if not is_file(path):
        raise BadInput(
            f"vocabulary {path.name!r} is neither built in ({', '.join(VOCABULARIES)}) nor a file; "
            "give one of these names or the path of a CSV with the columns node,parent."
        )
    if is_concept_ancestor(path) or is_tree(path):
        by_code = written.endswith(BY_CODE) and is_concept_ancestor(path)
        return OpenVocabulary(path.name, path, concept_beside(path) if by_code else None)
    return CustomVocabulary(path.name, read(path))


def user_tree(name: str) -> Path | None:
    """The file of a hierarchy that was added under this name (`leeward vocabulary add`); None without one."""
    from leeward.vocabulary import registry

    return registry.find(name) if name in HIERARCHIES and registry.has(name) else None
