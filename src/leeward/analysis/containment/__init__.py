"""Which records of a population contain a multiset of codes: counting, projecting, and the largest shared part.

Methods and measures both ask this of a population, so the answer lives beside the lenses.
"""

from leeward.analysis.containment.index import Index, Multisets, Population
from leeward.analysis.containment.largest import Parts, largest_parts

__all__ = ["Index", "Multisets", "Parts", "Population", "largest_parts"]
