"""Visits: codes of whole populations, each visit's set held by at least k patients (Heatherly et al. 2013)."""

from leeward.methods.visits.parameters import Visits

__all__ = ["Visits"]
