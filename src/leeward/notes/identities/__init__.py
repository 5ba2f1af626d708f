"""Remove, replace or encrypt the identities in a text."""
