"""What becomes of identities in a text: removed, replaced by surrogates, or encrypted."""
