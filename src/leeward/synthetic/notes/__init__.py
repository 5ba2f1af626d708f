"""Made-up clinical notes with their spans known: for training, for evaluation, and for trying Leeward out."""

from leeward.synthetic.notes.people import Split
from leeward.synthetic.notes.writing import NotePlan, SyntheticNote, synthetic_notes, write_notes

__all__ = ["NotePlan", "Split", "SyntheticNote", "synthetic_notes", "write_notes"]
