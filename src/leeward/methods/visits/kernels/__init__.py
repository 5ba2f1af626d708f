"""Compiled steps of anonymizing visits."""
