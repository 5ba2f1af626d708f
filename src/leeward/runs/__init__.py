"""The stories, from what is read to the folder that is written: protect, extract, annotate, measure."""
