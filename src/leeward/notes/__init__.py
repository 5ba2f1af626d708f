"""Clinical notes: spans of identities, quasi-identifiers and health terms, and the table built from them."""
