"""The Spark engine: the same relational steps on PySpark, kernels through `applyInArrow`."""

from __future__ import annotations

import atexit
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import narwhals as nw
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from leeward.engine.local import (
    TASK,
    UNSEEN,
    Frame,
    Kernel,
    Result,
    Task,
    at_most,
    available_threads,
    check_schema,
    order_of,
    part_file,
    plain_frame,
    plain_table,
)
from leeward.engine.servers import check_master, connect
from leeward.errors import BadInput, LeewardError, did_you_mean, require_extra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OLDEST_JAVA = 17
KEY = "__key__"
PLACE = "__place__"
REDUCER = "__reducer__"
FILE = "__file__"
PICKLED = pa.schema([("result", pa.binary())])

OF_PROCESS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.io.encryption.enabled": "true",
    "spark.rpc.message.maxSize": "1024",
    # Java ends where its heap is full; otherwise Spark's scheduler dies in it, and the run waits forever.
    "spark.driver.defaultJavaOptions": "-XX:+ExitOnOutOfMemoryError",
}
"""Settings of a Spark that is started here; the spec's `config` goes over them, and over `OF_SESSION`."""

OF_SESSION = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.session.timeZone": "UTC",
}
"""Settings of a session of its own in a Spark that runs already."""

ON_THIS_MACHINE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""A local session talks to itself only, whatever the machine's name resolves to."""

AUTHENTICATED = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
MAKES_SECRETS = ("local", "yarn", "k8s:")
"""Beginnings of the masters with which Spark makes the secret of authentication; others need one that their workers
have already."""

WORKERS = (
    "Each worker needs a Python with Leeward at the path that PYSPARK_PYTHON names, or an archive of one (see the page "
    "'Release large data' of the documentation)."
)
LARGER = (
    "Set a larger `memory` in the spec's engine, or split the source (leeward split) and release each part."
)
TROUBLES = {
    r"No module named '([\w.]+)'": f"The Python of Spark's workers has no module `{{0}}`. {WORKERS}",
    r'Cannot run program "([^"]+)"': f"Spark's workers cannot run `{{0}}`. {WORKERS}",
    r"(PYTHON_VERSION_MISMATCH)": f"Spark's workers have another version of Python. {WORKERS}",
    r"StatusCode\.(UNAVAILABLE)": "The Spark Connect server does not answer any more ({0}); start the run again.",
    r"(Java heap space|spark\.driver\.maxResultSize|spark\.rpc\.message\.maxSize)": (
        f"What goes between this process and the cluster is larger than Spark allows ({{0}}). {LARGER}"
    ),
}
"""What errors of Spark say that its user can mend, and the sentence for it."""

SENT = 8
"""One in this many bytes of the heap may be sent to a cluster at once: Java holds rows several times on their way."""

REDUCERS_A_CORE = 4
SHUFFLED = "spark.sql.shuffle.partitions"


@dataclass(frozen=True)
class SparkSettings:
    remote: str | None = None
    """A Spark Connect server, `sc://host:15002`, in the place of `master` and `memory`."""
    master: str | None = None
    """Where Spark runs, for example `local[2]` or `spark://host:7077`; None: `local[cores]`."""
    memory: str | None = None
    """Heap of the driver, as Java writes it (`512m`, `4g`); None: a quarter of the machine's memory, at least 2 GB."""
    partitions: int | None = None
    """Partitions after a shuffle; None: as many as cores, on a cluster as Spark has."""
    shared: bool = False
    """Whether all workers see the folders of the source and of the release, at the same paths: rows of patients stay
    with them then, and none comes to the process that starts the run."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Further Spark settings, by their own names."""

    def __post_init__(self) -> None:
        if self.partitions is not None and self.partitions < 1:
            raise BadInput(f"`partitions` must be at least 1; got {self.partitions}.")
        if self.remote is not None and (self.master or self.memory):
            raise BadInput(
                "`remote` is a server with a master and memory of its own; leave out `master` and `memory`."
            )

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
    ends: bool = False
    exchange: Path | None = None
    reducers: int = REDUCERS_A_CORE
    """Most tasks that groups of rows are shared out to."""
    own: bool = True
    """Whether Spark was started here."""
    shared: bool = False

    @staticmethod
    def start(settings: SparkSettings, threads: int | None = None) -> SparkEngine:
        """A session of Leeward's own: on a server, in the Spark that runs in this process already, or in a new one."""
        require_extra("Spark", "spark", "pyspark")
        cores = threads or available_threads()
        server = os.environ.get("SPARK_REMOTE")
        remote = settings.remote or (None if settings.master or settings.memory else server)
        if remote is not None:
            reducers = {SHUFFLED: settings.partitions} if settings.partitions else {}
            session = connect(remote, {**OF_SESSION, **reducers, **settings.config})
            elsewhere = int(session.conf.get(SHUFFLED, "200") or 200)
            return SparkEngine(session, cores, ends=True, reducers=elsewhere, shared=settings.shared)
        if server is not None or "SPARK_CONNECT_MODE_ENABLED" in os.environ:
            raise BadInput(
                "This process works with a Spark Connect server already, and PySpark starts no other Spark in it: name "
                "the server as `remote`, or run Leeward in a process of its own, without SPARK_REMOTE."
            )
        _require_java()
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        running = _running(SparkSession)
        try:
            session = _begin(SparkSession, settings, cores) if running is None else running.newSession()
        except (PySparkException, Py4JError) as error:
            raise BadInput(
                f"Spark did not start ({type(error).__name__}); check Java and the engine's settings."
            ) from error
        here = (session.sparkContext.master or "").startswith("local")
        shuffled = settings.partitions or (cores if here else None)
        partitions = {} if shuffled is None else {SHUFFLED: shuffled}
        for key, value in {**OF_SESSION, **partitions, **settings.config}.items():
            if session.conf.isModifiable(key):
                session.conf.set(key, str(value))
        elsewhere = int(session.conf.get(SHUFFLED, "200") or 200)
        return SparkEngine(
            session,
            cores,
            exchange=_private_folder() if here else None,
            reducers=settings.partitions or (cores * REDUCERS_A_CORE if here else elsewhere),
            own=running is None,
            shared=settings.shared,
        )

    def frame(self, source: pl.DataFrame | pl.LazyFrame | str | Path) -> Frame:
        if isinstance(source, (str, Path)) and self.exchange is None:
            source = pl.scan_parquet(source)
        if isinstance(source, (str, Path)):
            native = self.session.read.parquet(Path(source).resolve().as_uri())
        else:
            rows = plain_frame(source.lazy()).collect()
            if self.exchange is None:
                self._require_heap(int(rows.estimated_size()))
            native = self._spark_frame(rows)
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
        native: DataFrame = (
            self.frame(frame).to_native() if isinstance(frame, pl.DataFrame) else frame.to_native()
        )
        groups = frame[by].n_unique() if isinstance(frame, pl.DataFrame) else self.reducers
        return self._map(
            native, by, kernel, schema, order_of(native.columns, by, order), min(groups, self.reducers)
        )

    def _map(
        self,
        native: DataFrame,
        by: str,
        kernel: Kernel,
        schema: pa.Schema,
        order: Sequence[str],
        reducers: int,
    ) -> pa.Table:
        """Groups that are whole numbers go to the reducers in turn: by a hash, as Spark does it, two long tasks may
        share an executor while another has none."""
        from pyspark.sql.pandas.types import from_arrow_schema

        with _sentences():
            key = pa.field(KEY, plain_table(native.limit(0).toArrow()).schema.field(by).type)
        placed = pa.schema([key, pa.field(PLACE, pa.int64()), *schema])
        column = f"`{by.replace('`', '``')}`"
        number = column if pa.types.is_integer(key.type) else f"hash({column})"
        # In SQL: `pyspark.sql.functions` are not those of a session of Spark Connect.
        spread = native.selectExpr("*", f"cast(pmod({number}, {max(1, reducers)}) AS int) AS {REDUCER}")
        grouped = (
            spread.repartitionById(max(1, reducers), REDUCER)
            .groupBy(REDUCER, by)
            .applyInArrow(_with_place(kernel, schema, placed, by, order), from_arrow_schema(placed))
        )
        # Sorted here: the result comes here anyway, and Spark would run the plan twice to sort it.
        result = plain_table(self._collect(grouped))
        if result.column(KEY).null_count:
            raise ValueError(f"the grouping column '{by}' has nulls")
        result = result.sort_by([(KEY, "ascending"), (PLACE, "ascending")])
        return result.drop_columns([KEY, PLACE]).cast(schema).combine_chunks()

    def map_tasks(
        self,
        numbers: Sequence[int],
        kernel: Task,
        schema: pa.Schema,
        folder: Path,
        takes: Sequence[str],
        gives: Sequence[str],
    ) -> pa.Table:
        """As `LocalEngine.map_tasks`. Workers of a cluster that is not `shared` see no file of this machine: files go
        there and back in rows, as many at a time as the heap bears; BadInput before any is sent where the files of one
        task are more."""
        if self.exchange is not None or self.shared:
            tasks = pl.DataFrame({TASK: numbers}, schema={TASK: pl.Int64})
            return self._run(tasks, lambda task: kernel(task[TASK][0].as_py(), folder), schema)
        sizes = [sum(part_file(folder, name, number).stat().st_size for name in takes) for number in numbers]
        self._require_heap(max(sizes, default=0))
        sent, done = (
            pa.schema([*schema, *((FILE + name, pa.binary()) for name in gives)]),
            [schema.empty_table()],
        )
        for wave in _waves(numbers, sizes, self._most()):
            files = {
                FILE + name: [part_file(folder, name, number).read_bytes() for number in wave]
                for name in takes
            }
            back = self._run(
                pl.DataFrame({TASK: wave, **files}), _with_files(kernel, takes, gives, sent), sent
            )
            for name in gives:
                for number, body in zip(wave, back[FILE + name], strict=True):
                    part_file(folder, name, number).write_bytes(body.as_buffer())
            done.append(back.select(schema.names))
        return pa.concat_tables(done)

    def there(self, work: Callable[[], Result]) -> Result:
        """As `LocalEngine.there`: a task of Spark's, with the relative paths of this process. What goes there and comes
        back is pickled, so neither may hold rows."""
        if not self.shared:
            return work()
        back = self._run(pl.DataFrame({TASK: [0]}), _pickled(work, Path.cwd()), PICKLED)
        done = pickle.loads(back["result"][0].as_py())
        if isinstance(done, LeewardError):
            raise done
        result: Result = done
        return result

    def _run(self, tasks: pl.DataFrame, kernel: Kernel, schema: pa.Schema) -> pa.Table:
        """The kernel on each row, as a task of Spark's own."""
        return self._map(self._spark_frame(tasks), TASK, kernel, schema, (), tasks.height)

    def close(self) -> None:
        if self.own:
            self.session.stop()
        if self.exchange is not None:
            shutil.rmtree(self.exchange, ignore_errors=True)

    def _most(self) -> int:
        """Bytes that may be sent to a cluster at once."""
        with _sentences():
            heap = self.session.conf.get("spark.driver.memory", "1g") or "1g"
        return _bytes(heap) // SENT

    def _require_heap(self, size: int) -> None:
        if size > self._most():
            raise BadInput(
                f"{size / 1e6:,.0f} MB of rows have to go to the cluster at once, and Spark's heap in this process "
                f"bears {self._most() / 1e6:,.0f} MB (an eighth of it). {LARGER}"
            )

    def _spark_frame(self, frame: pl.DataFrame) -> DataFrame:
        table = plain_table(frame.to_arrow())
        if self.exchange is None:
            with _sentences():
                return self.session.createDataFrame(table)
        file = self.exchange / f"{uuid4().hex}.parquet"
        pq.write_table(table, file, compression="zstd")  # read when the plan runs; removed with the folder
        return self.session.read.parquet(file.as_uri())

    def _collect(self, native: DataFrame) -> pa.Table:
        with _sentences():
            if self.exchange is None:
                return native.toArrow()
            folder = self.exchange / uuid4().hex
            native.write.parquet(folder.as_uri())
            try:
                return pq.read_table(folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _sentences() -> Iterator[None]:
    """BadInput for what a user of Spark can mend."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        for pattern, sentence in TROUBLES.items():
            found = re.search(pattern, str(error))
            if found is not None:
                raise BadInput(sentence.format(found[1])) from None
        raise
    except (Py4JError, ConnectionError, EOFError):  # Java is gone
        raise BadInput(
            f"Spark ended in the middle of the run; its heap may have been full. {LARGER}"
        ) from None


def _running(sessions: type[SparkSession]) -> SparkSession | None:
    from pyspark.errors import PySparkException

    try:
        return sessions.active()
    except PySparkException:
        return None


def _begin(sessions: type[SparkSession], settings: SparkSettings, cores: int) -> SparkSession:
    # Workers must be the Python that has this package; on Unix the daemon reads it from the environment.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master, memory = settings.master or f"local[{cores}]", settings.memory or _quarter_of_memory()
    check_master(master)
    builder = sessions.builder.master(master).appName("leeward")
    defaults = {
        **OF_PROCESS,
        **(ON_THIS_MACHINE if master.startswith("local") else {}),
        **(AUTHENTICATED if master.startswith(MAKES_SECRETS) else {}),
        "spark.driver.memory": memory,
        "spark.driver.maxResultSize": str(_bytes(memory) // 2),
        **settings.config,
    }
    for key, value in defaults.items():
        builder = builder.config(key, str(value))
    session = builder.getOrCreate()
    # Warnings of a cluster say that no worker takes the work; without them, the run would wait and not say why.
    session.sparkContext.setLogLevel("ERROR" if master.startswith("local") else "WARN")
    return session


def _pickled(work: Callable[[], Any], place: Path) -> Kernel:
    """The kernel of a task that does `work`, and returns an error of Leeward's as its result."""

    def run(task: pa.Table) -> pa.Table:
        try:
            if not place.is_dir():
                raise BadInput(f"{place}: {UNSEEN}")
            with chdir(place), at_most(1):
                done = work()
        except LeewardError as error:
            done = error
        return pa.table([[pickle.dumps(done)]], schema=PICKLED)

    return run


def _waves(numbers: Sequence[int], sizes: Sequence[int], most: int) -> Iterator[list[int]]:
    """The numbers in their order, in runs of at most so many bytes."""
    wave: list[int] = []
    filled = 0
    for number, size in zip(numbers, sizes, strict=True):
        if wave and filled + size > most:
            yield wave
            wave, filled = [], 0
        wave.append(number)
        filled += size
    if wave:
        yield wave


def _bytes(size: str) -> int:
    """Memory as Java writes it: `512m`, `4g`; without a letter, MiB."""
    found = re.fullmatch(r"(\d+)([kmgt]?)b*", size.lower())
    if found is None:
        raise BadInput(f"`memory` of the engine is written as `512m` or `4g`; got `{size}`.")
    return int(found[1]) << {"k": 10, "": 20, "m": 20, "g": 30, "t": 40}[found[2]]


def _with_files(kernel: Task, takes: Sequence[str], gives: Sequence[str], schema: pa.Schema) -> Kernel:
    """The kernel of a task with its files in columns, in a folder of the worker's as long as it works."""

    def run(task: pa.Table) -> pa.Table:
        number = task[TASK][0].as_py()
        with tempfile.TemporaryDirectory(prefix="leeward-task-") as place:
            folder = Path(place)
            for name in takes:
                part_file(folder, name, number).write_bytes(task[FILE + name][0].as_buffer())
            result = kernel(number, folder)
            bodies = [[part_file(folder, name, number).read_bytes()] for name in gives]
        return pa.table([*result.columns, *bodies], schema=schema)

    return run


def _with_place(
    kernel: Kernel, schema: pa.Schema, placed: pa.Schema, by: str, sorting: Sequence[str]
) -> Kernel:
    """The kernel with its rows sorted, and its result with the group's key and each row's place."""

    def run(group: pa.Table) -> pa.Table:
        # Temporary files are among Spark's own: it removes what a worker that was killed has left there.
        tempfile.tempdir = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None
        group = group.drop_columns([REDUCER])
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
    found = re.search(r'"(?:1\.)?(\d+)', text)
    return None if found is None else int(found[1])
