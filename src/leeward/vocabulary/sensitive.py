"""Codes that people commonly ask to be kept apart: HIV, substance use, mental health, abuse, reproductive health
(data/sensitive.tsv; its sources are in data/README.md)."""

from __future__ import annotations

from functools import cache
from importlib import resources

from leeward.vocabulary.icd import ICD9CM, ICD10CM

STANDARD = "standard"
"""What this list is called where sensitive codes are named."""

LISTED = {each.name: each for each in (ICD9CM, ICD10CM)}
"""The classifications that the list has codes of."""


def topic_of(code: str, classification: str) -> str | None:
    """The topic of a code of ICD-9-CM or ICD-10-CM that is on the list."""
    canonical = LISTED[classification].normalise(code) or code
    for topic, of, low, high in _ranges():
        if of == classification and low <= canonical[: len(low)] and canonical[: len(high)] <= high:
            return topic
    return None


@cache
def _ranges() -> tuple[tuple[str, str, str, str], ...]:
    """Topic, classification, and the first and last beginning of each range of codes."""
    text = resources.files("leeward.vocabulary").joinpath("data", "sensitive.tsv").read_text("utf-8")
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    spans = [(topic, of, *span.split("-")) for topic, of, codes in rows for span in codes.split()]
    return tuple((topic, of, first, (rest or [first])[0]) for topic, of, first, *rest in spans)
