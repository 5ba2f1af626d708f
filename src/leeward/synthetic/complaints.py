"""A table of made-up notes for trying queries: a month, age, sex, ZIP, and terms that come in epidemics."""

from __future__ import annotations

import numpy as np
import polars as pl

from leeward.randomness import Randomness

ILLNESSES: dict[str, tuple[str, ...]] = {
    "influenza": ("fever", "cough", "headache", "fatigue"),
    "tonsillitis": ("sore throat", "fever"),
    "gastroenteritis": ("nausea", "vomiting", "diarrhea"),
    "asthma": ("dyspnea", "cough", "wheezing"),
    "pneumonia": ("fever", "cough", "dyspnea"),
    "hypertension": ("headache", "dizziness"),
    "diabetes mellitus": ("fatigue",),
    "migraine": ("headache", "nausea"),
}
"""Illness -> its frequent complaints; all are terms of the lexicon."""
YEAR = 2025
ZIPS = ("12301", "12302", "12303", "12304", "12305", "12306")


def complaints(patients: int) -> pl.DataFrame:
    """`patient, note, visit_month, age, sex, zip, terms` of made-up patients, one to three notes each."""
    stream = Randomness.of(1).stream("complaints")
    names = tuple(ILLNESSES)
    notes = stream.integers(1, 4, patients)
    of_patient = np.repeat(np.arange(patients), notes)
    size = len(of_patient)
    month = 1 + stream.integers(0, 12, size)
    weights = np.ones((size, len(names)))
    weights[:, 0] += 5.0 * np.isin(month, (1, 2, 12))  # influenza comes in winter
    drawn = stream.random(size) * weights.sum(axis=1)
    illness = (weights.cumsum(axis=1) < drawn[:, None]).sum(axis=1)
    terms = []
    for number in illness.tolist():
        also = [each for each in ILLNESSES[names[number]] if stream.random() < 0.7]
        terms.append([names[number], *also])
    age, sex, place = (
        stream.integers(0, 95, patients),
        stream.integers(0, 2, patients),
        stream.integers(0, len(ZIPS), patients),
    )
    return pl.DataFrame(
        {
            "patient": of_patient,
            "note": np.arange(size),
            "visit_month": [f"{YEAR}-{each:02d}" for each in month.tolist()],
            "age": age[of_patient],
            "sex": [("f", "m")[each] for each in sex[of_patient].tolist()],
            "zip": [ZIPS[each] for each in place[of_patient].tolist()],
            "terms": terms,
        }
    )
