"""What every reader is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from leeward.cohort.readers.columns import ColumnNames
from leeward.cohort.readers.stores import Store
from leeward.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a reader is asked; the fields from `patients` on are options that a format takes or not (`formats.READERS`).

    source : a path, the URL of a database, or a frame (to readers one of Polars), which messages call `name`
    store : the tables, where the format has several or they are a database's
    missing : texts that mean 'no code'
    date_format : how dates are written (strptime)
    patients : a further table of attributes, one row per patient
    drop : columns to leave out
    domains : the kinds of events to read, or permissible values by column
    query : SELECT … or a table's name
    concepts : CONCEPT's code, with its vocabulary, in the place of concept ids
    code_separator : what stands between the codes of a cell
    """

    source: Any
    name: str = "frame"
    store: Store | None = None
    columns: ColumnNames | None = None
    vocabulary: str | None = None
    missing: frozenset[str] = frozenset()
    date_format: str | None = None
    patients: str | Path | None = None
    drop: Sequence[str] = ()
    domains: Any = ()
    query: str | None = None
    concepts: bool = False
    code_separator: str | None = None

    @property
    def path(self) -> str | Path:
        """The path. BadInput for a frame."""
        if isinstance(self.source, pl.DataFrame):
            raise BadInput("a frame is read as `events` or as a `table`; other formats are read from files.")
        path: str | Path = self.source
        return path

    @property
    def tables(self) -> Store:
        assert self.store is not None  # `formats.detect_format` gives these formats one
        return self.store
