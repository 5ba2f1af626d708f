"""The attacker of disassociated code sets."""
