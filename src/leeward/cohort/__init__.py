"""The cohort: readers, the frames they fill, and the lenses that kernels look through."""

from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.cohort.notices import Notice
from leeward.cohort.readers import read

__all__ = ["CodeSets", "Cohort", "Notice", "read"]
