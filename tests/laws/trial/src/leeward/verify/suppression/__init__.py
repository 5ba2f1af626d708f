"""Verify releases of suppressed codes."""
