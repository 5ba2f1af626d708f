"""What two releases of overlapping patients give away together, measured by the custodian, who holds both sources.

A bound is never below the number of patients who could be meant, so that "fewer than k" is certain; "k or more" says
only that this attack did not get further. A pair without an attack is not measured, which is not the same as safe.
"""

from leeward.composition.bound import Bound
from leeward.composition.pairs import Held, attacks, measure

__all__ = ["Bound", "Held", "attacks", "measure"]
