"""The release folder: its files, keys and bytes, and that a failure leaves nothing behind."""

from __future__ import annotations

import errno
import hashlib
import json
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.release.made import CHUNKS, made

from leeward.errors import BadInput
from leeward.release import Release, ReleaseTable, draft, write
from leeward.release import folder as folder_module
from leeward.release import tables as tables_module


def files_under(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_contract_of_the_folder(tmp_path: Path) -> None:
    write(made(), tmp_path / "out", formats=["parquet", "csv"], spec_text="method: {}\n")
    assert files_under(tmp_path / "out") == {
        "share/release.json",
        "share/README.md",
        "share/leeward-read.R",
        "share/data/chunks.parquet",
        "share/data/chunks.csv",
        "share/data/reconstructions/01.parquet",
        "share/data/reconstructions/01.csv",
        "custody/data/policy.parquet",
        "custody/digests.json",
        "custody/measures.json",
        "custody/spec.yaml",
    }


def test_the_manifest_has_the_keys_of_the_contract_and_true_hashes(tmp_path: Path) -> None:
    write(made(), tmp_path / "out", formats=["parquet"])
    manifest = json.loads((tmp_path / "out/share/release.json").read_text())
    assert list(manifest) == ["leeward", "format", "method", "parameters", "guarantee", "records", "files"]
    assert manifest["guarantee"] == {
        "name": "k^m-anonymity",
        "k": 5,
        "m": 2,
        "unit": "patient",
        "attacker": "knows up to 2 codes",
        "not_protected": ["collusion"],
        "risk": {"model": "prosecutor", "maximum": 0.2},
    }
    assert [(f["path"], f["rows"]) for f in manifest["files"]] == [
        ("data/chunks.parquet", 3),
        ("data/reconstructions/01.parquet", 3),
    ]
    for entry in manifest["files"]:
        content = (tmp_path / "out/share" / entry["path"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()


def test_a_seed_is_told_but_never_named(tmp_path: Path) -> None:
    write(made(seeded=True), tmp_path / "out")
    assert json.loads((tmp_path / "out/share/release.json").read_text())["seeded"] is True
    assert "tests and studies only" in (tmp_path / "out/share/README.md").read_text()
    write(made(), tmp_path / "other")
    assert "seeded" not in (tmp_path / "other/share/release.json").read_text()


def test_only_the_custodian_reads_custody(tmp_path: Path) -> None:
    write(made(), tmp_path / "out")
    assert stat.S_IMODE((tmp_path / "out/custody").stat().st_mode) == 0o700


def test_parquet_carries_no_metadata_of_the_source(tmp_path: Path) -> None:
    secret = CHUNKS.replace_schema_metadata({"source": "/ward/patients.csv"})
    write(made(codes=secret), tmp_path / "out")
    metadata = pq.read_metadata(tmp_path / "out/share/data/chunks.parquet")
    assert metadata.metadata is None
    assert metadata.row_group(0).column(0).compression == "ZSTD"


def test_same_rows_same_bytes_however_they_were_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "ROWS_A_GROUP", 64)
    table = pa.table({"node": range(1000), "codes": [[f"c{i % 7}", "x"] for i in range(1000)]})
    hashes = set()
    for size in (1, 63, 64, 65, 1000):
        cut = ReleaseTable("t.parquet", table.schema, lambda size=size: iter(table.to_batches(size)))
        entry = tables_module.write_table(cut, tmp_path / str(size), tmp_path)
        assert entry.rows == 1000
        hashes.add(entry.sha256)
    assert len(hashes) == 1
    assert pl.read_parquet(tmp_path / "65/t.parquet").equals(pl.DataFrame(table))
    assert pq.read_metadata(tmp_path / "65/t.parquet").num_row_groups == 16


def test_in_memory_encodings_are_not_released(tmp_path: Path) -> None:
    encoded = pa.table({"code": pa.array(["b", "a", "b"]).dictionary_encode()})
    tables_module.write_table(ReleaseTable.of("t.parquet", encoded), tmp_path, tmp_path)
    assert pq.read_schema(tmp_path / "t.parquet").field("code").type == pa.string()


def test_an_empty_table_is_a_file_with_columns(tmp_path: Path) -> None:
    empty = ReleaseTable.of("t.parquet", CHUNKS.slice(0, 0))
    entries = tables_module.with_copies([tables_module.write_table(empty, tmp_path, tmp_path)], tmp_path)
    assert [entry.rows for entry in entries] == [0, 0]
    assert pl.read_parquet(tmp_path / "t.parquet").columns == ["node", "codes"]
    assert (tmp_path / "t.csv").read_text() == '"node","codes"\n'


def test_csv_joins_lists_and_tells_empty_from_missing(tmp_path: Path) -> None:
    write(made(), tmp_path / "out", formats=["csv"])
    text = (tmp_path / "out/share/data/chunks.csv").read_text()
    assert text == '"node","codes"\n0,"401.0;a b"\n0,""\n1,\n'
    assert "joined by `;`" in (tmp_path / "out/share/README.md").read_text()


def test_a_code_that_holds_the_separator_is_refused_in_csv(tmp_path: Path) -> None:
    odd = pa.table({"codes": pa.array([["a;b"]])})
    with pytest.raises(BadInput, match=r"holds `;`.*Parquet keeps such codes"):
        write(made(codes=odd), tmp_path / "out", formats=["csv"])
    assert list(tmp_path.iterdir()) == []


def test_csv_is_a_copy_unasked_where_it_is_small_and_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copies(name: str, codes: pa.Table = CHUNKS, formats: Sequence[str] = ()) -> int:
        write(made(codes=codes), tmp_path / name, formats=formats)
        files = files_under(tmp_path / name / "share")
        assert ("leeward-read.R" in files) == any(file.endswith(".csv") for file in files)
        return sum(file.endswith(".csv") for file in files)

    assert (copies("default"), copies("asked", formats=["csv"])) == (2, 2)
    assert (tmp_path / "default/share/release.json").read_bytes() == (
        tmp_path / "asked/share/release.json"
    ).read_bytes()
    assert copies("parquet", formats=["parquet"]) == 0
    size = sum(file.stat().st_size for file in (tmp_path / "default/share/data").rglob("*.csv"))
    monkeypatch.setattr(folder_module, "SMALL", size)
    assert copies("as large as it may be") == 2
    monkeypatch.setattr(folder_module, "SMALL", size - 1)
    assert (copies("too large"), copies("too large, asked", formats=["parquet", "csv"])) == (0, 2)
    monkeypatch.undo()
    assert copies("separator", codes=pa.table({"codes": pa.array([["a;b"]])})) == 0
    assert copies("formula", codes=pa.table({"codes": pa.array([["=1"]])})) == 0
    assert copies("bytes", codes=pa.table({"codes": pa.array([b"\xff"])})) == 0
    assert copies("nested", codes=pa.table({"codes": pa.array([[["a"]]])})) == 0


def test_bytes_are_refused_in_csv(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"chunks\.csv: CSV cannot hold bytes.*Parquet keeps them"):
        write(made(codes=pa.table({"codes": pa.array([b"\xff"])})), tmp_path / "out", formats=["csv"])


def test_a_csv_table_stays_csv(tmp_path: Path) -> None:
    table = ReleaseTable.of("hierarchy.csv", pa.table({"node": ["401.0"], "parent": ["401"]}))
    entry = tables_module.write_table(table, tmp_path, tmp_path)
    assert (entry.path, entry.rows) == ("hierarchy.csv", 1)


def test_the_readme_says_how_to_read_and_what_holds(tmp_path: Path) -> None:
    write(made(), tmp_path / "out", formats=["parquet"])
    text = (tmp_path / "out/share/README.md").read_text()
    for part in (
        "k = 5, m = 2",
        "knows up to 2 codes",
        "- collusion",
        "`data/chunks.parquet` | 3",
        "leeward estimate",
    ):
        assert part in text
    assert "csv" not in text.lower()


# Nothing half-written


def test_an_existing_folder_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(BadInput, match="exists already; a release is never overwritten"):
        write(made(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_a_folder_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="exists already"), draft(tmp_path / "out") as pending:
        pending.write(made())
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine.txt").write_text("mine")
    assert files_under(tmp_path) == {"out/mine.txt"}


def test_nothing_is_visible_before_the_end(tmp_path: Path) -> None:
    with draft(tmp_path / "out") as pending:
        pending.write(made())
        assert not (tmp_path / "out").exists()
        assert pending.folder.parent == tmp_path
        assert pending.folder.name.startswith("out.partial-")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_any_failure_leaves_nothing(tmp_path: Path, failure: type[BaseException]) -> None:
    with pytest.raises(failure), draft(tmp_path / "new" / "deeper" / "out") as pending:
        pending.write(made())
        raise failure
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    def until_full() -> Iterator[pa.RecordBatch]:
        yield CHUNKS.to_batches()[0]
        raise OSError(errno.ENOSPC, "No space left on device")

    full = made()
    full = type(full)(
        **{**full.__dict__, "tables": (ReleaseTable("chunks.parquet", CHUNKS.schema, until_full),)}
    )
    with pytest.raises(BadInput, match=r"no space left on the disk.*Nothing was left behind"):
        write(full, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_really_full_device_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`/dev/full` is a device whose every write fails as a full disk does."""

    def on_full_device(self: Path, text: str, **options: object) -> int:
        with Path("/dev/full").open("w") as device:
            return device.write(text)

    monkeypatch.setattr(Path, "write_text", on_full_device)
    with pytest.raises(BadInput, match="no space left on the disk"):
        write(made(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="this is a file, and a folder is needed"):
        write(made(), tmp_path / "file" / "out")


def test_an_unknown_format_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="`formats`: cannot write `xlsx`; choose from parquet, csv"):
        write(made(), tmp_path / "out", formats=["xlsx"])
    assert list(tmp_path.iterdir()) == []


# Reading back


def test_a_release_opens_whole_or_by_its_share_alone(tmp_path: Path) -> None:
    write(made(), tmp_path / "out", formats=["parquet"])
    whole, shared = Release.open(tmp_path / "out"), Release.open(tmp_path / "out/share")
    assert whole.share == shared.share
    assert whole.custody == tmp_path / "out/custody"
    assert whole.table("chunks.parquet").collect()["codes"].to_list() == [["401.0", "a b"], [], None]
    assert whole.names() == ("chunks.parquet", "reconstructions/01.parquet")
    assert (whole.method, whole.records, whole.seeded, whole.guarantee["k"]) == (
        "disassociation",
        3,
        False,
        5,
    )
    assert "k = 5, m = 2" in repr(whole)
    (tmp_path / "out/custody").rename(tmp_path / "kept")
    assert Release.open(tmp_path / "out/share").custody is None


def damaged(tmp_path: Path, text: str) -> Path:
    (tmp_path / "share").mkdir(parents=True)
    (tmp_path / "share/release.json").write_text(text)
    return tmp_path


MANIFEST = '{"leeward": "%s", "method": "", "parameters": {}, "guarantee": {}, "records": 0, "files": []}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"not valid JSON \(line 1\)"),
        ("[]", "not a manifest"),
        ('{"leeward": "0.1.0", "method": "x"}', "lacks `parameters`, `guarantee`, `records`, `files`"),
        (MANIFEST % "99.0.0", r"written by leeward 99\.0\.0, this is leeward .*; update leeward"),
        (MANIFEST % "new", "is not a version"),
        (MANIFEST % '0.2.0", "format": 99, "x": "', r"written by leeward 0\.2\.0, .*; update leeward"),
    ],
)
def test_a_damaged_manifest_is_told(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Release.open(damaged(tmp_path / "r", text))


def test_what_is_no_release_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    for path, message in (
        (tmp_path / "none", "no such folder"),
        (tmp_path, "not a release"),
        (tmp_path / "a.txt", "not a folder"),
    ):
        with pytest.raises(BadInput, match=message):
            Release.open(path)


def test_a_missing_table_is_told(tmp_path: Path) -> None:
    write(made(), tmp_path / "out")
    (tmp_path / "out/share/data/chunks.parquet").unlink()
    release = Release.open(tmp_path / "out")
    with pytest.raises(BadInput, match="named by the manifest but not there"):
        release.table("chunks.parquet")
    with pytest.raises(BadInput, match=r"names no `nodes.parquet`; it has chunks.parquet"):
        release.table("nodes.parquet")


def test_a_place_where_no_folder_can_be_made_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(out: Path) -> Path:  # as below /proc
        raise FileNotFoundError(errno.ENOENT, "no such file or directory", str(out))

    monkeypatch.setattr("leeward.release.folder.work_beside", refuse)
    with pytest.raises(BadInput, match="no folder can be made there"), draft(tmp_path / "x"):
        pass
