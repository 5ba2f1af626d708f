"""What a run needs of memory, said before it begins, and refused where there is less."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.errors import BadInput
from leeward.memory import free_memory, used_memory
from leeward.methods import METHODS, Memory

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.release.spec import SourceSpec

READING = Memory(megabytes=250, a_patient=0, a_row=60)
"""What reading a cohort and its lenses needs, from Parquet (benchmarks/memory.py --reading)."""

WAYS = "Run it on Spark (--engine spark), or release fewer patients; --allow-memory runs it here anyway."


def needed(method: str, cohort: Cohort, engine: str = "local") -> int:
    """Bytes that protecting a cohort takes at most, from its patients and rows (of a table: cells).

    On Spark the method's own part is Spark's; the cohort is read here all the same.
    """
    patients, rows = _size(cohort)
    row = METHODS.get(method)
    fit = READING if row is None or engine == "spark" else row.memory
    return fit.bytes(patients, rows)


def require_memory(method: str, cohort: Cohort, engine: str = "local") -> None:
    """BadInput where a run needs more than is free."""
    patients, rows = _size(cohort)
    _require(needed(method, cohort, engine), f"{method} of {patients:,} patients with {rows:,} rows")


def require_memory_to_read(source: SourceSpec) -> None:
    """BadInput where the rows that a Parquet file says it has need more than is free; nothing else says so."""
    path = Path(source.path or "")
    if path.suffix != ".parquet" or not path.is_file():
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_metadata(path).num_rows
    except (pa.ArrowException, OSError):  # the reader says what is wrong with it
        return
    _require(READING.bytes(0, rows), f"reading {rows:,} rows of {path.name}")


def engine_name(engine: Any) -> str:
    """`local` or `spark`, of an engine, its name, or its settings."""
    if isinstance(engine, Mapping):
        return str(next(iter(engine), "local"))
    return engine if isinstance(engine, str) else str(getattr(engine, "name", "local"))


def _require(need: int, what: str) -> None:
    free = free_memory()
    if free is None or need - used_memory() <= free:
        return
    raise BadInput(
        f"{what} needs about {need / 1e9:.1f} GB of memory, and {(free + used_memory()) / 1e9:.1f} GB are free here. "
        f"{WAYS}"
    )


def _size(cohort: Cohort) -> tuple[int, int]:
    """Patients and rows; of a table its rows and its cells."""
    if cohort.events is None:
        table = cohort.patients
        return (0, 0) if table is None else (table.height, table.height * table.width)
    return cohort.events["patient"].n_unique(), cohort.events.height
