"""The table of notes: quasi-identifiers in columns, health terms as a set."""
