"""Lenses: a method's view of a cohort, as flat integer arrays."""
