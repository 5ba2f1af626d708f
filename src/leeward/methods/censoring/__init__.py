"""Censoring repeated codes to a k-map of a population (GCCens; Tamersoy 2011, chapter III)."""

from leeward.methods.censoring.parameters import Censoring

__all__ = ["Censoring"]
