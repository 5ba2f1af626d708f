"""Compiled steps of the constraint methods."""
