"""Numbers about a cohort that no single method owns: itemsets, containment, risk, policies, models, PheWAS."""
