"""The categories of spans: what each kind is made of, and what becomes of it in a text.

EID follows the 18 categories of HIPAA's Safe Harbor (45 CFR 164.514(b)(2)); QID are columns of the table (Li & Qin,
Figure 3). Where a thing could be either, the safer reading wins:

- the date of the visit, admission or discharge is a QID (`date`); every other date is an EID, a birth date first;
- an age up to 89 is a QID, above 89 an EID;
- street, post box and building are an EID (`address`); city, county, state and country a QID (`place`); a ZIP code a
  QID;
- a hospital, clinic, school or employer is an EID (`facility`): it locates the patient more closely than a city.
"""

from __future__ import annotations

from leeward.texts import list_words

EID = list_words(
    """name address facility date age phone fax email ssn record_number plan_number account_number licence_number
    vehicle device url ip biometric photo other_id"""
)
"""Explicit identifiers; `address` and `facility` are HIPAA's locations, `date` and `age` its dates."""

QID = ("date", "age", "sex", "race", "zip", "place")
"""Quasi-identifiers, each a column of the table (the date gives two)."""

HMI = ("symptom", "disease", "test", "drug")
"""Health information."""

SAFE_HARBOR_QID = frozenset({"date", "zip", "place"})
"""Quasi-identifiers that Safe Harbor would not leave in a released text either."""
