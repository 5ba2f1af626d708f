"""Generalization under constraints: CBA, UGACLIP, COAT, and Apriori k^m (docs/methods/constraints.md)."""

from leeward.methods.constraints.parameters import Constraints

__all__ = ["Constraints"]
"""The parameter class that a spec's `method: {name: constraints}` builds."""
