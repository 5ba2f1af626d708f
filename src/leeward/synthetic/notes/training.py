"""Templates that the shipped models are trained with. `held_out.py` has others, which training never sees."""

from __future__ import annotations

from leeward.synthetic.notes import ordinary
from leeward.synthetic.notes.banks import read_banks

BANKS: dict[str, str] = {**ordinary.BANKS, **read_banks("training")}

Step = tuple[str, tuple[str, ...], int, int, float, str]
"""Bank, headings (empty: none), fewest and most lines, chance to be there, what stands between lines."""

_CC = ("Chief Complaint", "CC", "Reason for Visit", "CHIEF COMPLAINT")
_HPI = ("History of Present Illness", "HPI", "HISTORY OF PRESENT ILLNESS", "History", "Subjective", "HX")
_PMH = ("Past Medical History", "PMH", "PAST MEDICAL HISTORY", "Medical history")
_FH = ("Family History", "FH", "FAMILY HISTORY", "FHX", "FHx")
_SH = ("Social History", "SH", "SOCIAL HISTORY", "SHX")
_MEDS = ("Medications", "MEDICATIONS", "Current Medications", "Meds", "Discharge Medications")
_ALL = ("Allergies", "ALLERGIES", "Drug allergies")
_PE = ("Objective", "PE", "OBJECTIVE DATA", "General")
_LAB = ("RESULTS", "Data of the day", "Diagnostic Studies", "Data")
_AP = ("Assessment and Plan", "A/P", "ASSESSMENT AND PLAN", "Assessment", "Impression", "Plan")

KINDS: dict[str, tuple[Step, ...]] = {
    "discharge summary": (
        ("identity", (), 3, 8, 1.0, "\n"),
        ("dates_stay", (), 1, 1, 0.9, "\n"),
        ("opening", _HPI, 1, 2, 1.0, " "),
        ("story", (), 1, 4, 0.8, " "),
        ("filler", (), 1, 3, 0.6, " "),
        ("prose", (), 1, 5, 0.8, " "),
        ("past", _PMH, 1, 3, 0.8, "\n"),
        ("family", _FH, 1, 2, 0.6, " "),
        ("social", _SH, 1, 2, 0.6, " "),
        ("exam", _PE, 1, 3, 0.6, " "),
        ("results", _LAB, 1, 3, 0.6, " "),
        ("course", ("Hospital Course", "HOSPITAL COURSE", "Course"), 2, 4, 0.9, " "),
        ("drugs", _MEDS, 1, 3, 0.8, "\n"),
        ("plan", ("Disposition", "Follow-up", "Discharge Plan"), 1, 3, 0.8, " "),
        ("sign", (), 1, 2, 0.9, "\n"),
    ),
    "visit note": (
        ("identity", (), 1, 5, 0.8, "\n"),
        ("date_visit", (), 1, 1, 0.8, "\n"),
        ("opening", (*_CC, *_HPI), 1, 1, 1.0, " "),
        ("story", _HPI, 2, 5, 1.0, " "),
        ("filler", (), 1, 3, 0.6, " "),
        ("prose", (), 1, 5, 0.8, " "),
        ("past", _PMH, 1, 2, 0.7, "\n"),
        ("family", _FH, 1, 2, 0.6, " "),
        ("social", _SH, 1, 2, 0.5, " "),
        ("allergies", _ALL, 1, 1, 0.5, " "),
        ("drugs", _MEDS, 1, 2, 0.6, "\n"),
        ("exam", _PE, 1, 3, 0.7, " "),
        ("filler", (), 1, 3, 0.5, "\n"),
        ("plan", _AP, 2, 4, 1.0, " "),
        ("sign", (), 1, 2, 0.8, "\n"),
    ),
    "pathology report": (
        ("identity", (), 2, 6, 1.0, "\n"),
        ("specimen", (), 1, 2, 1.0, "\n"),
        ("opening", ("Clinical History", "CLINICAL INFORMATION", "Clinical Data"), 1, 1, 0.8, " "),
        ("gross", ("Gross Description", "GROSS", "Gross"), 1, 2, 1.0, " "),
        ("micro", ("Microscopic Description", "MICROSCOPIC", "Diagnosis", "FINAL DIAGNOSIS"), 2, 3, 1.0, " "),
        ("filler", (), 1, 3, 0.6, " "),
        ("prose", (), 1, 5, 0.8, " "),
        ("results", ("Ancillary Studies", "Comment"), 1, 2, 0.5, " "),
        ("sign", (), 1, 2, 1.0, "\n"),
    ),
    "nursing note": (
        ("identity", (), 0, 3, 0.6, "\n"),
        ("date_visit", (), 1, 1, 0.9, "\n"),
        ("shift", (), 3, 8, 1.0, "\n"),
        ("filler", (), 1, 3, 0.6, " "),
        ("prose", (), 1, 5, 0.8, " "),
        ("story", (), 0, 2, 0.5, " "),
        ("drugs", _MEDS, 1, 2, 0.3, "\n"),
        ("sign", (), 0, 1, 0.5, "\n"),
    ),
    "clinical question": (("question", (), 1, 1, 1.0, " "),),
}
"""Kinds of notes, as sections in order."""

WEIGHTS: dict[str, int] = {
    "discharge summary": 30,
    "visit note": 35,
    "pathology report": 12,
    "nursing note": 17,
    "clinical question": 6,
}
"""How often each kind is drawn."""
