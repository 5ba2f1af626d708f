"""Fields of a note's header and footer, by their labels."""

from __future__ import annotations

from leeward.notes.annotators.rules.words import words
from leeward.notes.field_labels import Labels, labels_of

FIELDS = labels_of("field_labels.txt")
"""Label, lower case, to what it labels."""

TABLE = Labels(FIELDS)

NUMBERS = words("""ssn record_number plan_number account_number licence_number vehicle device other_id""")
"""Meanings whose value is a number or code."""
