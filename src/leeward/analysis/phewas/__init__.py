"""PheWAS: phenotypes from codes, and a regression for each."""
