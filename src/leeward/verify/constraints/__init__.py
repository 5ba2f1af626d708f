"""The attacker of generalized code sets."""
