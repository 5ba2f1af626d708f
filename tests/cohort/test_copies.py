"""Sources by URI, tables in folders `key=value`, and Delta and Iceberg tables: the rows that a table has, no others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.s3_fixture import BUCKET, SECRET, s3  # noqa: F401  # a fixture

import leeward as lw
from leeward import BadInput
from leeward.cohort.readers.copies import copies, local
from leeward.release.spec import SourceSpec
from leeward.runs.writing import files_of

EVENTS = pl.DataFrame(
    {"patient": [1, 1, 2, 3, 4], "code": ["401.9", "250.00", "401.9", "E801", "401.9"], "sex": list("FFMFM")}
)


def put(folder: Path, uri: str) -> None:
    from pyarrow import fs

    store, path = fs.FileSystem.from_uri(uri)
    fs.copy_files(str(folder), path, source_filesystem=fs.LocalFileSystem(), destination_filesystem=store)


def rows_of(path: Any, **options: Any) -> list[tuple[Any, ...]]:
    events = lw.read(path, **options).require_events()
    return sorted(events.drop("row").cast({"code": pl.String}).rows())


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table as Spark writes it: a folder of parts by year, and a mark that it is whole."""
    folder = tmp_path / "events"
    for year, rows in ((2023, EVENTS.head(2)), (2024, EVENTS.tail(3))):
        part = folder / f"date={year}-01-01" / "part-00000.parquet"
        part.parent.mkdir(parents=True)
        rows.write_parquet(part)
    (folder / "_SUCCESS").touch()
    (folder / "date=2024-01-01" / "_SUCCESS").touch()
    return folder


def test_folders_are_columns(table: Path, tmp_path: Path) -> None:
    whole = EVENTS.with_columns(date=pl.Series([f"{year}-01-01" for year in (2023, 2023, 2024, 2024, 2024)]))
    whole.write_csv(tmp_path / "whole.csv")
    assert rows_of(table) == rows_of(tmp_path / "whole.csv")
    assert len(set(lw.read(table).require_events()["date"])) == 2
    named = {each["name"] for each in files_of(SourceSpec(path=str(table)))}
    assert {f"date={year}-01-01/part-00000.parquet" for year in (2023, 2024)} <= named
    people = lw.read(table / "date=2024-01-01", format="table", drop=["code"]).patients
    assert people is not None and people.columns == ["patient", "sex", "date"]


def test_values_of_folders(tmp_path: Path) -> None:
    for name, code in (("date=__HIVE_DEFAULT_PARTITION__", "401.9"), ("date=2024-01-01/ward=A%2FB", "E801")):
        (tmp_path / "t" / name).mkdir(parents=True)
        (tmp_path / "t" / name / "a.csv").write_text(f"patient,code,ward\n1,{code},own\n")
    columns = {"patient": "patient", "code": "code", "date": "date", "patients": ["ward"]}
    cohort = lw.read(tmp_path / "t", columns=columns)
    assert cohort.require_events()["date"].null_count() == 1
    assert cohort.patients is not None and cohort.patients["ward"].to_list() == ["own"], (
        "a file's own column counts"
    )


@pytest.mark.parametrize(
    "path", ["", "/date=2024-01-01", "/date=2024-01-01/part-00000.parquet", "/*/*.parquet"]
)
def test_the_same_rows_from_a_store(path: str, table: Path, s3: str) -> None:  # noqa: F811
    put(table, f"{s3}/in/events")
    assert rows_of(f"{s3}/in/events{path}") == rows_of(f"{table}{path}")
    assert rows_of(f"s3a://{BUCKET}/in/events{path}") == rows_of(f"file://{table}{path}")


def test_the_same_release_and_no_secret(s3: str, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "in").mkdir()
    lw.synth.write_codes(tmp_path / "in" / "events.csv", patients=300, codes=40, seed=1)
    put(tmp_path / "in", f"{s3}/in")
    for name, path in (("near", tmp_path / "in/events.csv"), ("far", f"{s3}/in/events.csv")):
        spec = tmp_path / f"{name}.yaml"
        spec.write_text(
            f"source: {{path: '{path}'}}\nmethod: {{name: disassociation, k: 5, m: 2, partitions: 2}}\nseed: 1\n"
        )
        lw.run(spec, tmp_path / name)
    shares = [sorted((tmp_path / name / "share/data").iterdir()) for name in ("near", "far")]
    assert [file.read_bytes() for file in shares[0]] == [file.read_bytes() for file in shares[1]]
    assert SECRET not in "".join(
        file.read_text(errors="ignore") for file in (tmp_path / "far").rglob("*") if file.is_file()
    )
    known = [(tmp_path / name / "custody/source_files.json").read_text() for name in ("near", "far")]
    assert known[0] == known[1] and "events.csv" in known[0]
    assert f"{s3}/in/events.csv" in (tmp_path / "far/custody/spec.yaml").read_text()
    assert lw.verify(tmp_path / "far", lw.read(f"{s3}/in/events.csv")).passed


def test_a_copy_is_made_once_and_goes(s3: str, table: Path) -> None:  # noqa: F811
    put(table, f"{s3}/events")
    with copies():
        copy = local(f"{s3}/events")
        with copies():
            assert local(f"{s3}/events") is copy
        assert sorted(file.name for file in copy.rglob("*.parquet")) == ["part-00000.parquet"] * 2
        assert copy.parent.parent.stat().st_mode & 0o077 == 0
    assert not copy.exists()


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        (f"s3://{BUCKET}/none.csv", "none.csv: nothing is at this address of s3://; check its bucket and path."),
        (f"s3://{BUCKET}/in/*.csv", "*.csv: nothing is at this address of s3://; check its bucket and path."),
        ("s3://nobody/events.csv", ("events.csv: s3:// does not give it (NO_SUCH_BUCKET); check the address, and "
         "the right to read, which is taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or the "
         "machine's role; AWS_ENDPOINT_URL.")),
        (f"s3://key:{SECRET}@{BUCKET}/x.csv",
         "The address of a source holds a key; leave it out: it is taken from the environment."),
    ],
)  # fmt: skip
def test_what_a_store_does_not_give(uri: str, said: str, s3: str) -> None:  # noqa: F811
    with pytest.raises(BadInput) as refused:
        lw.read(uri)
    assert str(refused.value) == said


def test_without_credentials(s3: str, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    put(table, f"{s3}/events")
    monkeypatch.setattr("moto.core.responses.ActionAuthenticatorMixin.request_count", 1)
    monkeypatch.setattr("moto.settings.INITIAL_NO_AUTH_ACTION_COUNT", 0)
    with pytest.raises(BadInput, match=r"events: s3:// does not give it \(.*\); check .* AWS_ACCESS_KEY_ID"):
        lw.read(f"{s3}/events")


def test_more_than_the_disk_holds(s3: str, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    put(table, f"{s3}/events")
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 10}))
    with pytest.raises(BadInput, match=r"events: copied it has .* GB, and 0\.0 GB are free"):
        lw.read(f"{s3}/events")


def test_a_store_that_is_not_here() -> None:
    with pytest.raises(BadInput, match=r"x\.csv: hdfs:// does not give it \(OSError\); .* from HADOOP_HOME"):
        lw.read("hdfs://localhost:1/x.csv")


@pytest.fixture
def delta(tmp_path: Path) -> Path:
    """A Delta table of which a row was deleted; the file that holds it is still there."""
    from deltalake import DeltaTable, write_deltalake

    write_deltalake(tmp_path / "delta", EVENTS.head(2).to_arrow())
    write_deltalake(tmp_path / "delta", EVENTS.tail(3).to_arrow(), mode="append")
    DeltaTable(tmp_path / "delta").delete("patient = 3")
    return tmp_path / "delta"


@pytest.fixture
def iceberg(tmp_path: Path) -> Path:
    """The metadata, as its catalog knows them, of an Iceberg table of which a row was deleted."""
    from pyiceberg.catalog.sql import SqlCatalog

    place = tmp_path / "warehouse"
    place.mkdir()
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{place}")
    catalog.create_namespace("n")
    made = catalog.create_table("n.events", schema=EVENTS.to_arrow().schema)
    made.append(EVENTS.to_arrow())
    made.delete("patient = 3")
    return Path(made.metadata_location.removeprefix("file://"))


def test_deleted_rows_are_not_read(delta: Path, iceberg: Path) -> None:
    kept = sorted(EVENTS.filter(pl.col("patient") != 3).select("patient", "code").rows())
    assert rows_of(delta, columns={"patient": "patient", "code": "code"}) == kept
    assert rows_of(iceberg, columns={"patient": "patient", "code": "code"}) == kept
    with pytest.raises(BadInput, match="an Iceberg table"):
        lw.read(iceberg.parent.parent)  # only the catalog knows which metadata are current
    for part in (
        next(delta.glob("*.parquet")),
        delta / "*.parquet",
        next(iceberg.parent.parent.glob("data/*.parquet")),
    ):
        with pytest.raises(BadInput, match="keeps deleted and replaced rows in its files"):
            lw.read(part)


def test_a_delta_table_in_a_store(delta: Path, s3: str) -> None:  # noqa: F811
    put(delta, f"{s3}/lake/events")
    assert rows_of(f"{s3}/lake/events") == rows_of(delta)
    assert 3 not in lw.read(f"{s3}/lake/events").require_events()["patient"]


def test_without_the_extra(delta: Path, iceberg: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    for path in (delta, iceberg, iceberg.parent.parent):
        with pytest.raises(
            BadInput, match=r"keeps deleted and replaced .* pip install 'leeward\[lakehouse\]'"
        ):
            lw.read(path)


def test_a_table_with_what_the_library_does_not_know(delta: Path) -> None:
    log = delta / "_delta_log" / "00000000000000000003.json"
    log.write_text('{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors"],'
                   '"writerFeatures":["deletionVectors"]}}\n')  # fmt: skip
    with pytest.raises(BadInput, match=r"delta: a Delta table keeps deleted and replaced rows in its files"):
        lw.read(delta)
