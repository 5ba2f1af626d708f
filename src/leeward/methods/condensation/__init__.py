"""Condensation: groups of similar patients replaced by synthetic ones (Gal et al. 2014)."""

from leeward.methods.condensation.parameters import Condensation

__all__ = ["Condensation"]
