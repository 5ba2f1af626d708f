"""Ordinary text of notes that holds no identity and no health term, for training: words and whole lines.

Models that have seen nothing but templates full of names and terms find both in any capitalized word.
"""

from __future__ import annotations

from leeward.synthetic.notes.banks import read_banks

_WORDS = {name: tuple(text.split()) for name, text in read_banks("words").items()}

ORDINARY = _WORDS["ordinary"]
"""Words that begin a sentence or a heading and name nobody."""

EPONYMS = _WORDS["eponyms"]
"""People of medicine's past in names of signs, scores and devices: not identities."""

JOBS = _WORDS["jobs"]
VERBS = _WORDS["verbs"]

BANKS = read_banks("ordinary")
"""Lines in the form of `training.BANKS`."""
