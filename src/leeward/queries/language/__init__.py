"""What may be asked: terms, conditions, and the public vocabularies that resolve them. Holds no data."""
