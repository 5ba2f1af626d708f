"""The Spark engine: the same relational steps on PySpark, kernels through `applyInArrow`."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import narwhals as nw
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from leeward.engine.local import (
    Frame,
    Kernel,
    available_threads,
    check_schema,
    order_of,
    plain_frame,
    plain_table,
)
from leeward.errors import BadInput, did_you_mean, require_extra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OLDEST_JAVA = 17
KEY = "__key__"
PLACE = "__place__"

QUIET_AND_SMALL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.session.timeZone": "UTC",
    # Few small rows may be much work (`map_tasks`): they are not put together in one task.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
}
"""Settings that a local run needs; the spec's `config` goes over them."""


ON_THIS_MACHINE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""A local session talks to itself only, whatever the machine's name resolves to."""


@dataclass(frozen=True)
class SparkSettings:
    master: str | None = None
    """Where Spark runs, for example `local[2]` or `spark://host:7077`; None: `local[cores]`."""
    memory: str | None = None
    """Heap of the driver, as Java writes it (`512m`, `4g`); None: a quarter of the machine's memory, at least 2 GB."""
    partitions: int | None = None
    """Partitions after a shuffle; None: as many as cores."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Further Spark settings, by their own names."""

    def __post_init__(self) -> None:
        if self.partitions is not None and self.partitions < 1:
            raise BadInput(f"`partitions` must be at least 1; got {self.partitions}.")

    @staticmethod
    def of(settings: Mapping[str, Any]) -> SparkSettings:
        """Settings from the spec; an unknown key is an error that names the nearest."""
        known = [f.name for f in fields(SparkSettings)]
        for key in settings:
            if key not in known:
                hint = did_you_mean(key, known)
                raise BadInput(
                    f"The Spark engine has no setting '{key}'.{hint} Settings: {', '.join(known)}."
                )
        return SparkSettings(**settings)


@dataclass(frozen=True)
class SparkEngine:
    """Work on a Spark session.

    With Spark on this machine rows go to it and back as Parquet files in a private folder; with a cluster, which does
    not see this machine's files, through the driver, whose heap must hold them.
    """

    session: SparkSession
    threads: int
    name: str = "spark"
    exchange: Path | None = None

    @staticmethod
    def start(settings: SparkSettings, threads: int | None = None) -> SparkEngine:
        _require_java()
        require_extra("Spark", "spark", "pyspark")
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        cores = threads or available_threads()
        # Workers must be the Python that has this package; on Unix the daemon reads it from the environment.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        master = settings.master or f"local[{cores}]"
        builder = SparkSession.builder.master(master).appName("leeward")
        defaults = {
            **QUIET_AND_SMALL,
            **(ON_THIS_MACHINE if master.startswith("local") else {}),
            "spark.driver.memory": settings.memory or _quarter_of_memory(),
            "spark.sql.shuffle.partitions": str(settings.partitions or cores),
            **{key: str(value) for key, value in settings.config.items()},
        }
        for key, value in defaults.items():
            builder = builder.config(key, value)
        try:
            session = builder.getOrCreate()
        except PySparkException as error:
            raise BadInput(
                f"Spark did not start ({type(error).__name__}); check Java and the engine's settings."
            ) from error
        session.sparkContext.setLogLevel("ERROR")
        here = (session.sparkContext.master or "").startswith("local")
        return SparkEngine(session, cores, exchange=_private_folder() if here else None)

    def frame(self, source: pl.DataFrame | pl.LazyFrame | str | Path) -> Frame:
        if isinstance(source, (str, Path)):
            native = self.session.read.parquet(Path(source).resolve().as_uri())
        else:
            native = self._spark_frame(plain_frame(source.lazy()).collect())
        return nw.from_native(native)

    def collect(self, frame: Frame) -> pl.DataFrame:
        native: DataFrame = frame.to_native()
        collected = pl.from_arrow(self._collect(native))
        if not isinstance(collected, pl.DataFrame):
            raise TypeError("Spark returned no table")
        return plain_frame(collected.lazy()).collect()

    def map_groups(
        self,
        frame: Frame | pl.DataFrame,
        by: str,
        kernel: Kernel,
        schema: pa.Schema,
        order: Sequence[str] | None = None,
    ) -> pa.Table:
        from pyspark.sql.pandas.types import from_arrow_schema

        native: DataFrame = (
            self.frame(frame).to_native() if isinstance(frame, pl.DataFrame) else frame.to_native()
        )
        key = pa.field(KEY, plain_table(native.limit(0).toArrow()).schema.field(by).type)
        placed = pa.schema([key, pa.field(PLACE, pa.int64()), *schema])
        sorting = order_of(native.columns, by, order)
        grouped = native.groupBy(by).applyInArrow(
            _with_place(kernel, schema, placed, by, sorting), from_arrow_schema(placed)
        )
        # Sorted here: the result comes here anyway, and Spark would run the plan twice to sort it.
        result = plain_table(self._collect(grouped))
        if result.column(KEY).null_count:
            raise ValueError(f"the grouping column '{by}' has nulls")
        result = result.sort_by([(KEY, "ascending"), (PLACE, "ascending")])
        return result.drop_columns([KEY, PLACE]).cast(schema).combine_chunks()

    @property
    def sees_files(self) -> bool:
        """Workers of a local session run on this machine; those of a cluster may not see its files."""
        return self.exchange is not None

    def map_tasks(self, tasks: pl.DataFrame, kernel: Kernel, schema: pa.Schema) -> pa.Table:
        return self.map_groups(tasks, tasks.columns[0], kernel, schema, order=())

    def close(self) -> None:
        self.session.stop()
        if self.exchange is not None:
            shutil.rmtree(self.exchange, ignore_errors=True)

    def _spark_frame(self, frame: pl.DataFrame) -> DataFrame:
        table = plain_table(frame.to_arrow())
        if self.exchange is None:
            return self.session.createDataFrame(table)
        file = self.exchange / f"{uuid4().hex}.parquet"
        pq.write_table(table, file, compression="zstd")  # read when the plan runs; removed with the folder
        return self.session.read.parquet(file.as_uri())

    def _collect(self, native: DataFrame) -> pa.Table:
        if self.exchange is None:
            return native.toArrow()
        folder = self.exchange / uuid4().hex
        native.write.parquet(folder.as_uri())
        try:
            return pq.read_table(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _with_place(
    kernel: Kernel, schema: pa.Schema, placed: pa.Schema, by: str, sorting: Sequence[str]
) -> Kernel:
    """The kernel with its rows sorted, and its result with the group's key and each row's place."""

    def run(group: pa.Table) -> pa.Table:
        key = group.column(by)[0]
        if not key.is_valid:  # told by a row without key or place
            return pa.table([pa.nulls(1, field.type) for field in placed], schema=placed)
        # Polars sorts on every engine, so that ties and text order are the same.
        rows = pl.DataFrame(pl.from_arrow(group))
        group = plain_table(rows.sort(*sorting, maintain_order=True).to_arrow() if sorting else group)
        result = check_schema(kernel(group), schema)
        place = pa.array(range(result.num_rows), pa.int64())
        return pa.table([pa.repeat(key, result.num_rows), place, *result.columns], schema=placed)

    return run


def _private_folder() -> Path:
    """A folder that only its owner can read, removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="leeward-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _quarter_of_memory() -> str:
    """A quarter of the machine's memory, as Java writes it; the kernels work outside of Java and need the rest."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):  # a system that does not say
        whole = 0
    return f"{max(2048, whole // 4 // 2**20)}m"


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        raise BadInput(
            f"Spark needs Java {OLDEST_JAVA} or newer and none was found; install a JRE or set JAVA_HOME."
        )
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = _java_version(answer.stderr + answer.stdout)
    if version is not None and version < OLDEST_JAVA:
        raise BadInput(
            f"Spark needs Java {OLDEST_JAVA} or newer; this is Java {version}. Set JAVA_HOME to a newer one."
        )


def _java_version(text: str) -> int | None:
    """The major version in the answer to `java -version` ('17.0.15' is 17, '1.8.0' is 8)."""
    _, quote, rest = text.partition('"')
    if not quote:
        return None
    parts = rest.split(".")
    major = parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0]
    digits = "".join(sign for sign in major if sign.isdigit())
    return int(digits) if digits else None
