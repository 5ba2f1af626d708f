"""Suppression of rare codes: a method for tests, and the example of CONTRIBUTING."""

from leeward.methods.suppression.parameters import Suppression

__all__ = ["Suppression"]
