"""Synthetic clinical notes with gold spans, for training, evaluation and trials of Leeward."""

from leeward.synthetic.notes.people import Split
from leeward.synthetic.notes.writing import NotePlan, SyntheticNote, synthetic_notes, write_notes

__all__ = ["NotePlan", "Split", "SyntheticNote", "synthetic_notes", "write_notes"]
