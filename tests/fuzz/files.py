"""What the fuzzer feeds to `split`, and to readers in the forms of files that other programs write."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from tests.fuzz.counting import counted, rows_accounted
from tests.fuzz.ending import CODES, ended
from tests.fuzz.making import CELLS, mutated

from leeward.cohort import read

Making = Callable[[list[int]], pa.Array]
WHO: list[Making] = [
    lambda n: pa.array(n), lambda n: pa.array(n, pa.int16()), lambda n: pa.array(n, pa.uint64()),
    lambda n: pa.array([float(i) for i in n]), lambda n: pa.array([float(i) for i in n], pa.float32()),
    lambda n: pa.array(n).cast(pa.decimal128(20, 0)), lambda n: pa.array([str(i) for i in n]),
    lambda n: pa.array([f"{i:03d}" for i in n], pa.large_string()), lambda n: pa.array([f" {i}\t" for i in n]),
    lambda n: pa.array([f"{i}.0" for i in n], pa.string_view()),
    lambda n: pa.array([str(i) for i in n]).dictionary_encode(),
]  # fmt: skip
"""The same patients, written in the ways of hospitals."""

OTHER = ["250.00", "250.0", "250", "008", "8", "E11.9", "", None]
VALUES: list[Making] = [
    lambda n: pa.array([OTHER[i % 8] for i in n]), lambda n: pa.array([OTHER[i % 8] for i in n], pa.string()).dictionary_encode(),
    lambda n: pa.array([250.0 + i % 3 for i in n]), lambda n: pa.array([i % 9 for i in n], pa.int8()),
    lambda n: pa.array([i * 2**55 + 1 for i in n]), lambda n: pa.array([i % 3 / 2 if i % 4 else None for i in n]),
    lambda n: pa.array([bool(i % 2) for i in n]), lambda n: pa.nulls(len(n)),
    lambda n: pa.array(list(n), pa.date32()), lambda n: pa.array([i * 10**9 + 1 for i in n], pa.timestamp("ns")),
    lambda n: pa.array(list(n), pa.timestamp("s", tz="UTC")), lambda n: pa.array([b"\xff" for _ in n]),
    lambda n: pa.array(n).cast(pa.decimal128(25, 3)), lambda n: pa.array([[i] for i in n]),
    lambda n: pa.array([{"a": i} for i in n]), lambda n: pa.array([CELLS[i % len(CELLS)] for i in n]),
]  # fmt: skip
"""Codes and other cells, which no part may change."""


def split(random: Random, folder: Path) -> int:
    """A folder of files whose types differ: no patient in two parts, every row once, no cell changed."""
    place = folder / "tables"
    place.mkdir()
    names, kinds = ["patient", "code", "more"], random.sample([".parquet", ".csv", ".csv.gz", ".tsv"], 2)
    alike, who, values = random.random() < 0.3, random.choice(WHO), [random.choice(VALUES) for _ in range(2)]
    given: dict[int, tuple[int, list[Any]]] = {}
    for number in range(random.randint(1, 3)):
        people = [random.randint(0, 12) for _ in range(random.randint(1, 12))]
        makers = [who, *values] if alike else [random.choice(WHO), *(random.choice(VALUES) for _ in range(2))]
        if random.random() < 0.5:  # text beside numbers is refused, so often only the patients differ
            makers[1:] = values
        columns = [each(people) for each in makers]
        rows = list(range(len(given), len(given) + len(people)))
        _write_table(
            place / f"{number}{kinds[random.random() < 0.2]}", dict(zip(names, columns, strict=True)), rows
        )
        given |= {
            row: (person, [column[i].as_py() for column in columns])
            for i, (row, person) in enumerate(zip(rows, people, strict=True))
        }
    source = str(place if random.random() < 0.7 else place / "*.*")
    status = ended(
        ["split", source, "--patient", "patient", "--parts", "3", "-o", str(folder / "out")], folder
    )
    if status == 0:
        _check_parts(folder / "out", given)
    return status


def _write_table(file: Path, columns: dict[str, pa.Array], rows: list[int]) -> None:
    table = pa.table({"row": rows, **columns})
    if file.suffix == ".parquet":
        pq.write_table(table, file)
        return
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t" if file.suffix == ".tsv" else ",")
    writer.writerows([table.column_names, *(each.values() for each in table.to_pylist())])
    data = out.getvalue().encode("utf-8", "surrogatepass")
    file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)


def _check_parts(out: Path, given: dict[int, tuple[int, list[Any]]]) -> None:
    """AssertionError for a patient in two parts and a changed cell, LostRows for a lost row."""
    found = {
        (int(row["row"]), number): list(row.values())[1:]
        for number, file in enumerate(sorted(out.iterdir()))
        for row in pq.read_table(file, partitioning=None)
        .select(["row", "patient", "code", "more"])
        .to_pylist()
    }
    counted(len(given), len(found))
    part_of: dict[int, int] = {}
    for (row, number), cells in found.items():
        person, before = given[row]
        assert part_of.setdefault(person, number) == number, "a patient is in two parts"
        for old, new in zip(before, cells, strict=True):
            assert _same(old, new), f"a cell was changed from {type(old).__name__} to {type(new).__name__}"


def _same(old: Any, new: Any) -> bool:
    """Whether a value is what was written; of text files, which have no types, whether its text is."""
    if old == new or repr(old) == repr(new) or {repr(old), repr(new)} == {"None", "''"}:
        return True
    return isinstance(new, str) and not isinstance(old, str) and str(old) == new


def forms(random: Random, folder: Path) -> None:
    """Events in every form that is read, in every encoding, perhaps damaged, or as a link: rows are counted."""
    n = random.randint(1, 9)
    frame = pl.DataFrame(
        {"patient": [f"p{i % 3}" for i in range(n)], "code": [random.choice(CODES) for _ in range(n)],
         "age": [random.randint(0, 90) for _ in range(n)]}
    )  # fmt: skip
    name, write = random.choice(FORMS)
    file = folder / name
    write(frame, file)
    whole = random.random() < 0.3
    if not whole:
        file.write_bytes(mutated(file.read_bytes(), random))
    if random.random() < 0.1:
        linked = folder / f"linked{file.suffix}"
        linked.symlink_to(file)
        file = linked
    cohort = read(file, accept_unknown=True)
    if whole:
        rows_accounted(cohort, n)


def _as_text(encoding: str) -> Callable[[pl.DataFrame, Path], Any]:
    return lambda frame, file: file.write_bytes(frame.write_csv().encode(encoding))


def _as_database(frame: pl.DataFrame, file: Path) -> None:
    import duckdb

    with duckdb.connect(str(file)) as database:
        database.execute("CREATE TABLE events (patient VARCHAR, code VARCHAR, age INTEGER)")
        database.executemany("INSERT INTO events VALUES (?, ?, ?)", frame.rows())


def _as_zip(frame: pl.DataFrame, file: Path) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("events.csv", frame.write_csv())


def _with_stat(writer: str) -> Callable[[pl.DataFrame, Path], Any]:
    def write(frame: pl.DataFrame, file: Path) -> None:
        import pyreadstat

        getattr(pyreadstat, writer)(frame.to_pandas(), str(file))

    return write


FORMS: list[tuple[str, Callable[[pl.DataFrame, Path], Any]]] = [
    *(("events.csv", _as_text(each)) for each in ("utf-32", "utf-32-le", "utf-32-be", "utf-16", "utf-16-be", "utf-8-sig")),
    ("events.dta", _with_stat("write_dta")), ("events.sav", _with_stat("write_sav")),
    ("events.zsav", _with_stat("write_sav")), ("events.xpt", _with_stat("write_xport")),
    ("events.feather", lambda frame, file: frame.write_ipc(file, compression="zstd")),
    ("events.arrow", lambda frame, file: frame.write_ipc(file)),
    ("events.arrow", lambda frame, file: frame.write_ipc_stream(file)),
    ("events.duckdb", _as_database), ("events.zip", _as_zip), ("events.parquet", lambda frame, file: frame.write_parquet(file)),
]  # fmt: skip
