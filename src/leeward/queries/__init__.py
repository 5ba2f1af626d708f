"""Differentially private counts: the count index, the query language, mechanisms and the ledger."""
