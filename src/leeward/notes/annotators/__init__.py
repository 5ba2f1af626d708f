"""Annotators of notes: rules, a dictionary, learned models, and their ensemble."""
