"""The attacker of generalized trajectories."""
