"""Names of codes for people: titles of ICD categories, sections and chapters, and of code systems.

A code that goes on after its category is named by the category: `250.02` is "Diabetes mellitus (category)".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

from leeward.vocabulary.classification import Classification

OF_CATEGORY = " (category)"
"""After a name that is the category's, of a code that goes on after it."""

SYSTEMS = {
    "http://snomed.info/sct": "SNOMED CT",
    "http://loinc.org": "LOINC",
    "http://www.nlm.nih.gov/research/umls/rxnorm": "RxNorm",
    "http://www.whocc.no/atc": "ATC",
    "http://hl7.org/fhir/sid/icd-10": "ICD-10",
}
"""What FHIR's code systems are called."""


def system_name(system: str) -> str:
    return SYSTEMS.get(system, system)


def icd_name(code: str, vocabulary: str) -> str | None:
    """The title of an ICD code or node in `ICD-9-CM` or `ICD-10-CM`; empty for a code whose category has none, None
    for another vocabulary."""
    of = _classifications().get(vocabulary)
    if of is None:
        return None
    plain = code.removesuffix(f" ({vocabulary})")
    title = of.title(plain)
    if title != plain:
        return title
    if not of.is_known(plain):
        return ""
    category = of.category_of(plain)
    name = category_titles(vocabulary).get(category, "")
    return f"{name}{OF_CATEGORY}" if name and plain != category else name


def icd_of(code: str, vocabulary: str | None) -> str | None:
    """The classification (`ICD-9-CM`, `ICD-10-CM` or None) of a code or node in a cohort of `vocabulary` icd9,
    icd10, icd or icd-undotted."""
    from leeward.vocabulary.icd import BY_NAME, Icd

    found = BY_NAME.get(vocabulary or "")
    if isinstance(found, Classification):
        return found.name if found.is_known(code) or found.title(code) != code else None
    if not isinstance(found, Icd):
        return None
    if one := found.of(code):
        return one.name
    for of in _classifications().values():
        node = code.removesuffix(f" ({of.name})")
        if of.title(node) != node:
            return of.name
    return None


@cache
def _classifications() -> Mapping[str, Classification]:
    from leeward.vocabulary.icd import ICD9CM, ICD10CM

    return {ICD9CM.name: ICD9CM, ICD10CM.name: ICD10CM}


@cache
def category_titles(vocabulary: str) -> Mapping[str, str]:
    name = {"ICD-9-CM": "icd9cm", "ICD-10-CM": "icd10cm"}[vocabulary]
    text = resources.files("leeward.vocabulary").joinpath("data", f"{name}_categories.tsv").read_text("utf-8")
    return dict(line.split("\t") for line in text.splitlines()[1:])
