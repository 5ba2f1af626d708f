"""Disassociation: k^m-anonymity for sets of diagnosis codes, without suppressing or generalizing any."""

from leeward.methods.disassociation.parameters import Disassociation

__all__ = ["Disassociation"]
