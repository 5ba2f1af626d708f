"""What a run needs of memory, said before it begins, and refused where there is less, with the ways that remain."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward.cohort.readers.copies import local
from leeward.errors import BadInput
from leeward.memory import free_memory, memory_in_use
from leeward.methods import METHODS, Memory

if TYPE_CHECKING:
    from leeward.cohort.cohort import Cohort
    from leeward.release import Release
    from leeward.release.spec import SourceSpec

READING = Memory(megabytes=250, a_patient=0, a_row=60)
"""What reading a cohort and its lenses needs, from Parquet."""

ON_SPARK = Memory(megabytes=600, a_patient=0, a_row=220)
"""What is left here with Spark: reading the cohort, taking the result, verifying and measuring the release; Spark's own
memory besides (one run: disassociation of 1,000,000 patients with 5,000,000 rows, 1.65 GB)."""

BY_PARTS = {"disassociation": METHODS["disassociation"].in_parts}
"""What runs need that go by parts only where they are asked to: it costs utility."""

HALVES = 2
"""Where this many times the need is free, verifier and measures run at once, otherwise one after the other."""


def require_memory(method: str, cohort: Cohort, engine: str = "local", *, on_spark: bool = True) -> None:
    """BadInput where a run needs more than is free. `on_spark`: whether Spark would have work for it."""
    patients, rows = size_of(cohort)
    fit = _fit(method, engine)
    spark = _fit(method, "spark") if on_spark else fit
    what = f"{method} of {patients:,} patients with {rows:,} rows"
    if cohort.files:
        fit = spark = METHODS[method].in_parts or fit
        what = f"{what} in parts"
    _require(fit, patients, rows, what, engine, spark, None if cohort.files else BY_PARTS.get(method))


def fits(method: str, patients: int, rows: int, engine: str = "local", times: int = 1) -> bool:
    """Whether a cohort of this size, its release and the method's work fit in memory so many times. On Spark the
    method's own part is not counted; the cohort is read, and the release verified, here all the same."""
    free = free_memory()
    return free is None or times * _fit(method, engine).bytes(patients, rows) - memory_in_use() <= free


def is_roomy(method: str, cohort: Cohort, engine: str = "local") -> bool:
    """Whether the memory is enough to verify and measure at once."""
    return not cohort.files and fits(method, *size_of(cohort), engine, HALVES)


def _fit(method: str, engine: str) -> Memory:
    row = METHODS.get(method)
    return ON_SPARK if engine == "spark" else READING if row is None else row.memory


def require_memory_to_read(source: SourceSpec, method: str = "") -> None:
    """BadInput where the rows that a Parquet file says it has need more than is free; nothing else says so."""
    path = Path(local(source.path) or "")
    rows = rows_of(path)
    if rows is not None:
        what = f"reading {rows:,} rows of {path.name}"
        _require(READING, 0, rows, what, "spark", READING, BY_PARTS.get(method))


def rows_of(path: Path) -> int | None:
    """The rows that a Parquet file says it has; None for other files."""
    if path.suffix != ".parquet" or not path.is_file():
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(path).num_rows)
    except MemoryError:  # Arrow's is an ArrowException too
        raise
    except (pa.ArrowException, OSError):  # the reader says what is wrong with it
        return None


def require_memory_to_verify(release: Release, source: SourceSpec | None) -> None:
    """BadInput where the rows that the Parquet files of a release and of its source say they have need more than is
    free. What is asked for is less than some methods need: here nobody can say that it may run all the same."""
    files = [*release.share.rglob("*.parquet"), Path("" if source is None else source.path or "")]
    rows = sum(rows_of(each) or 0 for each in files)
    need, free = READING.bytes(0, rows), free_memory()
    if free is not None and need - memory_in_use() > free:
        raise BadInput(
            f"{release.share}: verifying {rows:,} rows of the release and its source needs about {need / 1e9:.1f} GB "
            f"of memory, and {(free + memory_in_use()) / 1e9:.1f} GB are free here: use a machine with more memory."
        )


def engine_name(engine: Any) -> str:
    """`local` or `spark`, of an engine, its name, or its settings."""
    if isinstance(engine, Mapping):
        return str(next(iter(engine), "local"))
    return engine if isinstance(engine, str) else str(getattr(engine, "name", "local"))


def _require(
    fit: Memory,
    patients: int,
    rows: int,
    what: str,
    engine: str,
    spark: Memory,
    by_parts: Memory | None = None,
) -> None:
    need, free = fit.bytes(patients, rows), free_memory()
    if free is None or need - memory_in_use() <= free:
        return
    free += memory_in_use()
    ways = []
    base = fit.bytes(0, 0)
    if free > base:
        parts = -(-(need - base) // (free - base))
        ways.append(f"split the source by patient (leeward split --parts {parts}) and release each part")
    if by_parts is not None and by_parts.bytes(patients, rows) <= free:
        ways.append("process it in parts on disk, as one release (--partitions N)")
    if engine != "spark" and spark.bytes(patients, rows) <= free:
        ways.append("run it on Spark with a cluster (--engine spark)")
    ways.append("use a machine with more memory; --allow-memory runs it here anyway.")
    raise BadInput(
        f"{what} needs about {need / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free here: {', or '.join(ways)}"
    )


def size_of(cohort: Cohort) -> tuple[int, int]:
    """Patients and rows; of a table its rows and its cells."""
    if cohort.files:
        return cohort.supports().patients, cohort.count_events()
    if cohort.events is None:
        table = cohort.patients
        return (0, 0) if table is None else (table.height, table.height * table.width)
    return cohort.events["patient"].n_unique(), cohort.events.height
