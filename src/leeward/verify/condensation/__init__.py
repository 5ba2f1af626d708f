"""The attacker of condensed and k-anonymous tables."""
