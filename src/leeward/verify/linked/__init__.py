"""Verify linked tables."""
