"""Compiled steps of condensation."""
