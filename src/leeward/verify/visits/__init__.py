"""The attacker of anonymized visits, of masters and of cohorts drawn from them."""
