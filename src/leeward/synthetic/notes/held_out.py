"""Templates that no shipped model was trained with: other phrasings of the four kinds, and four kinds of their own.

Same signs as in `training.py`; no line stands in both (a test compares them).
"""

from __future__ import annotations

from leeward.synthetic.notes.banks import read_banks
from leeward.synthetic.notes.training import Step

BANKS: dict[str, str] = read_banks("held_out")

_STORY = ("Present complaint", "INTERVAL HISTORY", "Background", "Narrative", "Presentation")
_PAST = ("Prior illnesses", "Problem List", "PAST HISTORY")
_KIN = ("Family Hx", "Familial history", "FAMILY MEDICAL HISTORY")
_LIVING = ("Social Hx", "Personal history", "Lifestyle")
_DRUGS = ("Home Medications", "Drug list", "CURRENT DRUGS")
_SIGNS = ("At the bedside", "O/E", "PHYSICAL FINDINGS")
_STUDIES = ("Investigations", "TESTS", "Work-up")
_OPINION = ("Recommendations", "OPINION", "Summary", "Conclusion")

KINDS: dict[str, tuple[Step, ...]] = {
    "discharge summary": (
        ("header", (), 3, 8, 1.0, "\n"),
        ("when", (), 1, 1, 0.9, "\n"),
        ("begin", _STORY, 1, 1, 1.0, " "),
        ("narrative", (), 2, 5, 1.0, " "),
        ("background", _PAST, 1, 2, 0.7, "\n"),
        ("kin", _KIN, 1, 2, 0.6, " "),
        ("living", _LIVING, 1, 2, 0.5, " "),
        ("studies", _STUDIES, 1, 2, 0.6, " "),
        ("regimen", _DRUGS, 1, 2, 0.7, "\n"),
        ("opinion", _OPINION, 1, 3, 1.0, " "),
        ("close", (), 1, 2, 1.0, "\n"),
    ),
    "visit note": (
        ("header", (), 1, 4, 0.8, "\n"),
        ("when", (), 1, 1, 0.9, "\n"),
        ("begin", _STORY, 1, 1, 1.0, " "),
        ("narrative", (), 2, 5, 1.0, " "),
        ("background", _PAST, 1, 2, 0.6, "\n"),
        ("kin", _KIN, 1, 2, 0.6, " "),
        ("signs", _SIGNS, 1, 3, 0.7, " "),
        ("opinion", _OPINION, 2, 4, 1.0, " "),
        ("close", (), 1, 2, 0.9, "\n"),
    ),
    "pathology report": (
        ("header", (), 2, 5, 1.0, "\n"),
        ("tissue", ("Material", "REPORT", "Slides"), 3, 5, 1.0, " "),
        ("opinion", _OPINION, 1, 1, 0.5, " "),
        ("close", (), 1, 2, 1.0, "\n"),
    ),
    "nursing note": (
        ("when", (), 1, 1, 0.9, "\n"),
        ("ward", (), 3, 7, 1.0, "\n"),
        ("narrative", (), 0, 2, 0.5, " "),
        ("close", (), 0, 1, 0.5, "\n"),
    ),
    "consult letter": (
        ("header", (), 2, 5, 1.0, "\n"),
        ("when", (), 1, 1, 0.7, "\n"),
        ("begin", (), 1, 1, 1.0, " "),
        ("narrative", (), 3, 6, 1.0, " "),
        ("kin", (), 1, 2, 0.7, " "),
        ("living", (), 1, 2, 0.6, " "),
        ("signs", (), 1, 2, 0.6, " "),
        ("opinion", (), 2, 4, 1.0, " "),
        ("close", (), 1, 2, 1.0, "\n"),
    ),
    "emergency note": (
        ("header", (), 1, 4, 1.0, "\n"),
        ("when", (), 1, 1, 1.0, "\n"),
        ("begin", _STORY, 1, 1, 1.0, " "),
        ("narrative", (), 2, 4, 1.0, " "),
        ("background", _PAST, 1, 1, 0.7, "\n"),
        ("regimen", _DRUGS, 1, 1, 0.6, " "),
        ("signs", _SIGNS, 1, 2, 0.9, " "),
        ("studies", _STUDIES, 1, 3, 0.9, " "),
        ("opinion", _OPINION, 1, 2, 1.0, " "),
        ("close", (), 1, 1, 1.0, "\n"),
    ),
    "radiology report": (
        ("header", (), 2, 5, 1.0, "\n"),
        ("when", (), 1, 1, 1.0, "\n"),
        ("begin", ("Indication",), 1, 1, 0.6, " "),
        ("images", (), 2, 5, 1.0, "\n"),
        ("close", (), 1, 2, 1.0, "\n"),
    ),
    "telephone note": (
        ("header", (), 0, 2, 0.7, "\n"),
        ("when", (), 1, 1, 0.8, "\n"),
        ("call", (), 2, 5, 1.0, " "),
        ("close", (), 0, 1, 0.6, "\n"),
    ),
}

WEIGHTS: dict[str, int] = {
    "discharge summary": 20,
    "visit note": 20,
    "pathology report": 10,
    "nursing note": 10,
    "consult letter": 14,
    "emergency note": 12,
    "radiology report": 8,
    "telephone note": 6,
}
