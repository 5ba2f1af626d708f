"""The interface for programs, by version."""
