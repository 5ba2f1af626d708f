"""The language of a note: English, another one, or too little to say."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.notes.language import (
    ENGLISH,
    LATIN,
    LEAST,
    LETTER,
    LETTERS,
    OTHER,
    TIMES,
    WORD,
    _languages,
    foreign_notes,
    language_of,
)

SAMPLES = {
    ENGLISH: "The patient was seen in the clinic and was given aspirin for her headache, which had not gone.",
    "Spanish": "Paciente de 40 años con fiebre desde ayer, sin tos, que acude por dolor y una erupción en los brazos.",
    "German": "Die Patientin wurde mit einer Fraktur eingeliefert und nach der Operation auf die Station verlegt.",
    "French": "Le patient est une personne de 40 ans qui se plaint de douleurs dans les jambes depuis une semaine.",
    "Italian": "Il paziente di 40 anni è stato ricoverato per una febbre che non è passata dopo la terapia.",
    "Portuguese": "Paciente com 40 anos foi internado por dor, não apresenta febre nas últimas semanas, mas tem tosse.",
    "Dutch": "De patiënt is 40 jaar en werd opgenomen met koorts, die niet over ging met het middel van de arts.",
    OTHER: "Пациент поступил с жалобами на боль в груди и одышку в течение двух дней.",
}


@pytest.mark.parametrize("language", SAMPLES)
def test_a_sentence_is_known(language: str) -> None:
    assert language_of(SAMPLES[language]) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "WBC 7.1 Hgb 13.2 Plt 210 Na 140 K 4.1",
        "Dr. Maria de los Santos, El Paso, Las Cruces. BP 120/80. Aspirin 81 mg p.o. daily.",
    ],
)
def test_too_little_is_undecided(text: str) -> None:
    assert language_of(text) is None


def test_english_with_foreign_names_and_words_stays_english() -> None:
    text = (
        "Mr. de la Cruz, who lives on Calle del Sol in Los Angeles with his wife, said 'no me siento bien' and was "
        "seen by Dr. van den Berg for the pain that he has had since the fall."
    )
    assert language_of(text) == ENGLISH


def test_rows_are_counted_from_one() -> None:
    texts = [SAMPLES[ENGLISH], SAMPLES["German"], "", SAMPLES["German"], SAMPLES["Spanish"]]
    assert foreign_notes(texts) == {"German": [2, 4], "Spanish": [5]}


def plain(text: str) -> str | None:
    """`language_of` letter by letter and word by word."""
    letters = LETTER.findall(text)
    if len(letters) >= LETTERS and 2 * len(LATIN.findall(text)) < len(letters):
        return OTHER
    hits = Counter(language for word in WORD.findall(text.lower()) for language in _languages().get(word, ()))
    best = max((name for name in hits if name != ENGLISH), key=lambda name: hits[name], default=ENGLISH)
    if hits and hits[best] >= LEAST and hits[best] > TIMES * hits[ENGLISH]:
        return best
    return ENGLISH if hits[ENGLISH] >= LEAST else None


WORDS_OF_ALL = [*sorted(_languages())[::7], "fever", "Müller", "Лечение", "проводится", "患者", "12"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(WORDS_OF_ALL), max_size=40))
def test_counting_words_once_names_the_same_language(words: list[str]) -> None:
    assert language_of(" ".join(words)) == plain(" ".join(words))
