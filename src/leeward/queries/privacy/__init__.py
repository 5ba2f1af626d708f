"""Noise mechanisms and privacy accounting. Holds no data and no database."""
