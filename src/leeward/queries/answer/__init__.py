"""From a question to its paid, noisy answer; the catalogue of itemsets; dry runs."""
