"""Compiled steps of clustering trajectories."""
