"""Answers paid from a budget, the catalogue of itemsets, and dry runs."""
