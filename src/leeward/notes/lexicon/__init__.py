"""Health vocabularies for notes: the project's lexicon, foreign ones, and term matching in text."""

from leeward.notes.lexicon.concepts import KINDS, Concept, Lexicon, Term
from leeward.notes.lexicon.lists import Names, Places
from leeward.notes.lexicon.loaders import load

__all__ = ["KINDS", "Concept", "Lexicon", "Names", "Places", "Term", "load"]
