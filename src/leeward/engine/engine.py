"""What every engine offers; methods see nothing else of where work runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    import narwhals as nw

    Frame = nw.LazyFrame[Any]
else:  # an annotation only: most commands hand no frame of Narwhals about
    Frame = Any

Kernel = Callable[[pa.Table], pa.Table]
"""A pure function of one group's rows; it never knows where it runs."""


class Engine(Protocol):
    """Relational steps as Narwhals lazy frames, and kernels over groups.

    Frames hold plain types whatever the engine: categories become text and unsigned whole numbers become
    Int64, because not every engine has them. The order of rows in a frame means nothing: sort what you
    collect.
    """

    @property
    def name(self) -> str:
        """'local' or 'spark'."""
        ...

    @property
    def threads(self) -> int:
        """How many kernels run at once on this machine."""
        ...

    def frame(self, source: pl.DataFrame | pl.LazyFrame | str | Path) -> Frame:
        """A lazy frame over a Polars frame or a Parquet path."""
        ...

    def collect(self, frame: Frame) -> pl.DataFrame:
        """The rows of a lazy frame, in no particular order."""
        ...

    def map_groups(
        self,
        frame: Frame | pl.DataFrame,
        by: str,
        kernel: Kernel,
        schema: pa.Schema,
        order: Sequence[str] | None = None,
    ) -> pa.Table:
        """`kernel` on the rows of each value of `by`; results joined in ascending order of `by`.

        The rows of a group come to the kernel sorted by `order`; None sorts by all columns from left to
        right, so that a kernel gives the same on every engine; an empty sequence promises that the kernel
        does not mind. Text arrives as `pa.string()`. What the kernel returns must have `schema`. Raises
        ValueError for a null in `by` and for a result with other columns.
        """
        ...

    @property
    def sees_files(self) -> bool:
        """Whether kernels see the files of this machine."""
        ...

    def map_tasks(self, tasks: pl.DataFrame, kernel: Kernel, schema: pa.Schema) -> pa.Table:
        """`kernel` on each row of a small table, a row a long piece of work; results in ascending order of the first
        column, which tells the rows apart. What the kernel returns must have `schema`."""
        ...

    def close(self) -> None:
        """Let go of what the engine holds."""
        ...
