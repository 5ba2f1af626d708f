"""The list of commonly sensitive codes: what is on it, what is not, and that its ranges are well formed."""

from __future__ import annotations

from importlib import resources

import pytest

from leeward.vocabulary.sensitive import LISTED, topic_of


@pytest.mark.parametrize(
    ("code", "of", "topic"),
    [
        ("042", "ICD-9-CM", "HIV"),
        ("V08", "ICD-9-CM", "HIV"),
        ("B20", "ICD-10-CM", "HIV"),
        ("303.91", "ICD-9-CM", "substance use"),
        ("30391", "ICD-9-CM", "substance use"),  # as some sources write it
        ("305.00", "ICD-9-CM", "substance use"),
        ("305.1", "ICD-9-CM", None),  # tobacco
        ("F17.210", "ICD-10-CM", None),
        ("F11.20", "ICD-10-CM", "substance use"),
        ("311", "ICD-9-CM", "mental health"),
        ("F32.9", "ICD-10-CM", "mental health"),
        ("E950.4", "ICD-9-CM", "mental health"),
        ("E960.0", "ICD-9-CM", None),  # a fight
        ("E960.1", "ICD-9-CM", "abuse and violence"),
        ("995.80", "ICD-9-CM", "abuse and violence"),
        ("995.86", "ICD-9-CM", None),  # malignant hyperthermia
        ("T74.01XA", "ICD-10-CM", "abuse and violence"),
        ("635.92", "ICD-9-CM", "reproductive and sexual health"),
        ("O04.5", "ICD-10-CM", "reproductive and sexual health"),
        ("O80", "ICD-10-CM", None),  # a birth
        ("O9A.32", "ICD-10-CM", "abuse and violence"),
        ("250.00", "ICD-9-CM", None),
        ("290.0", "ICD-9-CM", None),  # dementia
        ("042", "ICD-10-CM", None),
        ("X70", "ICD-10-CM", "mental health"),  # of WHO's ICD-10 alone
    ],
)
def test_topics_of_codes(code: str, of: str, topic: str | None) -> None:
    assert topic_of(code, of) == topic


def test_every_range_is_of_codes_that_the_classification_has() -> None:
    text = resources.files("leeward.vocabulary").joinpath("data", "sensitive.tsv").read_text("utf-8")
    for line in text.splitlines()[1:]:
        topic, of, codes = line.split("\t")
        for span in codes.split():
            low, _, high = span.partition("-")
            assert not high or (len(low) == len(high) and low < high), span
            assert any(LISTED[of].is_known(end) for end in (low, high or low)) or low[0] in "XY", (
                span
            )  # WHO's
            assert topic_of(low, of) == topic_of(high or low, of) == topic, span
