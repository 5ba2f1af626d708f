"""The document for the expert who decides: what was measured, what was declared, and what is open."""
