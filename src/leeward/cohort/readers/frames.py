"""Frames in memory, whoever made them: Polars, pandas, pyarrow, DuckDB, and whatever hands out Arrow's C stream."""

from __future__ import annotations

import os
from typing import Any

import polars as pl
import pyarrow as pa

from leeward.errors import BadInput

KINDS = "a path, or a frame of Polars, pandas, pyarrow or DuckDB, or an object with `__arrow_c_stream__`"


def as_frame(source: Any) -> pl.DataFrame | None:
    """The frame as one of Polars; None for a path.

    A named index of pandas becomes columns. Raises BadInput for anything else, and for columns that Arrow cannot hold.
    """
    if isinstance(source, str | os.PathLike):
        return None
    if isinstance(source, pl.DataFrame):
        return source
    try:
        return _to_polars(source)
    except (BadInput, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # each library has its own, and compiled ones panic outside of Exception
        raise BadInput(
            f"the frame cannot be read ({type(error).__name__}); a column may hold values of several types: make them "
            f"text, numbers or dates."
        ) from None


def _to_polars(source: Any) -> pl.DataFrame:
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if isinstance(source, pa.Table):
        source.validate(full=True)  # offsets and dictionary indexes out of bounds
    if hasattr(source, "reset_index") and any(
        name is not None for name in getattr(source.index, "names", ())
    ):
        source = source.reset_index()
    import narwhals as nw

    native = nw.from_native(source, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        native = native.collect(backend="polars")
    if isinstance(native, nw.DataFrame):
        return native.to_polars()
    if hasattr(source, "__arrow_c_stream__"):
        return pl.DataFrame(source)
    raise BadInput(f"a cohort cannot be read from {type(source).__name__}; give {KINDS}.")
