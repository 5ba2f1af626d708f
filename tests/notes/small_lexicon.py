"""A lexicon of a few concepts, so that tests of notes do not hang on the project's own."""

from __future__ import annotations

from leeward.notes.lexicon import Lexicon
from leeward.notes.lexicon.concepts import concept

SMALL = Lexicon(
    "small",
    (
        concept("S1", "symptom", ["fever", "pyrexia"]),
        concept("S2", "symptom", ["sore throat"]),
        concept("S3", "symptom", ["!cough"]),
        concept("D1", "disease", ["hypertension", "=HTN", "high blood pressure"]),
        concept("D2", "disease", ["asthma"]),
        concept("D3", "disease", ["diabetes mellitus"]),
        concept("T1", "test", ["chest x-ray", "=CXR"]),
        concept("T2", "test", ["urinalysis"]),
        concept("M1", "drug", ["aspirin"]),
        concept("M2", "drug", ["metformin"]),
    ),
)
