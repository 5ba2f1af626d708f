"""Clinical notes: spans of identities, quasi-identifiers and health terms, and the table that is made of them."""
