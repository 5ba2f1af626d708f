"""Annotated notes in files: readers of i2b2 XML, brat, CoNLL and JSONL."""

from leeward.notes.corpora.formats import FORMATS, read
from leeward.notes.corpora.labels import Mapping, mapping_of

__all__ = ["FORMATS", "Mapping", "mapping_of", "read"]
