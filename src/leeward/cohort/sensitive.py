"""The codes of a cohort that are on the list of commonly sensitive ones (`vocabulary.sensitive`)."""

from __future__ import annotations

from collections.abc import Iterable

from leeward.cohort.cohort import Cohort
from leeward.cohort.names import ICD_TITLES, names_of
from leeward.vocabulary.sensitive import LISTED, topic_of


def sensitive_of(cohort: Cohort, codes: Iterable[str]) -> dict[str, list[str]] | None:
    """The listed ones among the codes, by topic; None where the list knows no code of their vocabularies."""
    whole = ICD_TITLES.get(cohort.vocabulary or "", "")  # of codes that ICD-10-CM lacks and ICD-10 has
    of = {code: name.vocabulary or whole for code, name in names_of(cohort, codes).items()}
    known = {code: vocabulary for code, vocabulary in of.items() if vocabulary in LISTED}
    found: dict[str, list[str]] = {}
    for code, vocabulary in known.items():
        topic = topic_of(code, vocabulary)
        if topic is not None:
            found.setdefault(topic, []).append(code)
    return found if known else None
