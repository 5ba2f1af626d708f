"""Vocabularies and their generalization hierarchies as flat arrays."""

from leeward.vocabulary.hierarchy import Hierarchy

__all__ = ["Hierarchy"]
