"""Linked tables of patients, visits and codes, k-anonymous in every join that an attacker can do."""

from leeward.methods.linked.parameters import Linked

__all__ = ["Linked"]
