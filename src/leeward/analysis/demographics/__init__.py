"""Demographics of patients: columns over hierarchies, and classes of patients with one generalized vector
(docs/methods/whole-patient.md)."""

from leeward.analysis.demographics.classes import Classes, classes_of
from leeward.analysis.demographics.columns import Column, Columns, columns_of

__all__ = ["Classes", "Column", "Columns", "classes_of", "columns_of"]
