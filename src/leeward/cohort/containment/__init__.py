"""Which records of a population contain a multiset of codes: counting, projecting, and the largest shared part.

Methods and measures both ask this of a population, so the answer lives beside the lenses.
"""

from leeward.cohort.containment.index import Index
from leeward.cohort.containment.largest import Parts, largest_parts
from leeward.cohort.containment.multisets import Multisets, Population

__all__ = ["Index", "Multisets", "Parts", "Population", "largest_parts"]
