"""Verify k-anonymous tables."""
