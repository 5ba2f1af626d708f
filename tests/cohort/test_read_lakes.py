"""Folders of Delta, Iceberg and Hudi hold deleted rows too: none is ever read as a folder of files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import leeward as lw
from leeward.cli.main import status_of
from leeward.errors import BadInput

EVENTS = pl.DataFrame({"patient": range(20), "code": ["401.9", "250.00"] * 10})
NAMES = {"delta": "a Delta table", "iceberg": "an Iceberg table", "hudi": "a Hudi table"}


def _lake(folder: Path, kind: str) -> list[Path]:
    """A table of the kind with two files of rows, of which its log says that one is gone."""
    rows = folder / "data" if kind == "iceberg" else folder
    rows.mkdir(parents=True)
    files = [rows / "part-0.parquet", rows / "part-1.parquet"]
    for file in files:
        EVENTS.write_parquet(file)
    log = {
        "delta": "_delta_log/00000000000000000001.json",
        "iceberg": "metadata/v1.metadata.json",
        "hudi": ".hoodie/hoodie.properties",
    }[kind]
    (folder / log).parent.mkdir()
    (folder / log).write_text('{"remove": {"path": "part-0.parquet"}}')
    return files


ENTRIES: dict[str, Callable[[Path, Path], object]] = {
    "read": lambda source, out: lw.read(source),
    "table": lambda source, out: lw.read(source, format="table"),
    "patients": lambda source, out: lw.read(out.parent / "plain.parquet", patients=source),
    "split": lambda source, out: lw.split(source, out, 2, "patient"),
    "index": lambda source, out: lw.index(str(source), out, epsilon_total=1),
    "spark": lambda source, out: lw.index(str(source), out, epsilon_total=1, engine="spark", terms="icd9"),
    "notes": lambda source, out: lw.annotate(source, out),
    "registration": lambda source, out: lw.annotate(out.parent / "notes.csv", out, metadata=source),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("kind", NAMES)
def test_no_table_with_a_log_is_read_as_files(tmp_path: Path, kind: str, entry: str) -> None:
    EVENTS.write_parquet(tmp_path / "plain.parquet")
    (tmp_path / "notes.csv").write_text("patient,text\n1,No fever.\n")
    first, _ = _lake(tmp_path / "events", kind)
    sources = {"notes": [tmp_path / "events", first], "registration": [first]}
    for source in sources.get(entry, [tmp_path / "events", first, first.parent / "*.parquet"]):
        with pytest.raises(BadInput, match=f"events: {NAMES[kind]} .* Export .*current"):
            ENTRIES[entry](source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", NAMES)
def test_parts_of_such_a_table_and_folders_around_it_are_refused(tmp_path: Path, kind: str) -> None:
    _lake(tmp_path / "lake" / "events", kind)
    nested = tmp_path / "lake" / "events" / "year=2024"
    nested.mkdir()
    EVENTS.write_parquet(nested / "part-2.parquet")
    (tmp_path / "link.parquet").symlink_to(nested / "part-2.parquet")
    for source in (tmp_path / "lake", nested, nested / "part-2.parquet", tmp_path / "link.parquet"):
        with pytest.raises(BadInput, match=NAMES[kind]):
            lw.read(source)


@pytest.mark.parametrize("kind", NAMES)
def test_a_database_of_such_tables_is_refused(tmp_path: Path, kind: str) -> None:
    EVENTS.rename({"patient": "person_id"}).write_parquet(tmp_path / "person.parquet")
    _lake(tmp_path / "condition_occurrence", kind)
    with pytest.raises(BadInput, match=f"condition_occurrence: {NAMES[kind]}"):
        lw.read(tmp_path)


@pytest.mark.parametrize("kind", NAMES)
def test_commands_refuse_such_a_source_and_population(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _lake(tmp_path / "lake", kind)
    EVENTS.write_parquet(tmp_path / "plain.parquet")
    lake, plain, out = (str(tmp_path / name) for name in ("lake", "plain.parquet", "out"))
    for arguments in (
        ["profile", lake],
        ["split", lake, "--patient", "patient", "--parts", "2", "-o", out],
        ["disassociate", lake, "--k", "5", "--m", "2", "-o", out],
        ["link", lake, "--k", "5", "-o", out],
        ["censor", plain, "--population", lake, "--k", "5", "-o", out],
    ):
        assert status_of(arguments) == 2, arguments
        assert NAMES[kind] in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
