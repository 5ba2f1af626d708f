"""The attacker of a catalogue of frequent terms."""
