"""The attacker of censored records."""
