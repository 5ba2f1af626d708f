"""Tables larger than memory are cut by patient; the releases of the parts are the release of the whole."""

from __future__ import annotations

import secrets
import stat
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leeward as lw
from leeward.errors import BadInput

CODES = ("250.00", "401.9", "272.4")
ROWS = pl.DataFrame(
    {
        "pid": [f" {n % 90} " if n % 7 == 0 else str(n % 90) for n in range(270)],
        "icd": [CODES[n // 90] for n in range(270)],
        "day": [f"2020-01-{n % 27 + 1:02d}" for n in range(270)],
    }
)


@pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
def test_every_row_is_in_one_part_with_its_patient(tmp_path: Path, ending: str) -> None:
    source = tmp_path / f"events.{ending}"
    if ending == "parquet":
        ROWS.write_parquet(source)
    else:
        ROWS.write_csv(source, compression="gzip" if ending.endswith("gz") else "uncompressed")
    rows = lw.split(source, tmp_path / "parts", 4, "pid")
    parts = [pl.read_parquet(file) for file in sorted((tmp_path / "parts").iterdir())]
    assert [part.height for part in parts] == rows and sum(rows) == ROWS.height
    assert pl.concat(parts).sort(pl.all()).equals(ROWS.sort(pl.all()))
    people = [set(part["pid"].str.strip_chars()) for part in parts]
    assert sum(map(len, people)) == 90 and sum(bool(each) for each in people) > 1
    assert stat.S_IMODE((tmp_path / "parts").stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "parts").iterdir()} == {0o600}


def test_each_part_is_a_release_and_together_they_are_everybody(tmp_path: Path) -> None:
    source = tmp_path / "events.csv"
    ROWS.write_csv(source)
    lw.split(source, tmp_path / "parts", 2, "pid")
    records = 0
    for number in (1, 2):
        file = tmp_path / "parts" / f"part-{number:03d}.parquet"
        part = lw.read(file, columns={"patient": "pid", "code": "icd"})
        records += lw.protect(part, lw.Disassociation(k=3, m=2), tmp_path / str(number)).release.records
        assert lw.verify(tmp_path / str(number), part).passed
    assert records == 90


def test_rows_of_a_table_of_patients_are_drawn_one_by_one(tmp_path: Path) -> None:
    pl.DataFrame({"age": range(400)}).write_parquet(tmp_path / "table.parquet")
    rows = lw.split(tmp_path / "table.parquet", tmp_path / "parts", 2)
    assert sum(rows) == 400 and min(rows) > 120  # 120: below it once in 10^15


def test_nothing_stays_of_a_table_that_cannot_be_cut(tmp_path: Path) -> None:
    (tmp_path / "broken.csv").write_text("pid,icd\n1,250.00\n2\n")
    (tmp_path / "empty.csv").write_text("pid,icd\n")
    for name, patient, words in (
        ("broken.csv", "pid", "row 2"),
        ("broken.csv", "pit", "Did you mean 'pid'"),
        ("empty.csv", "pid", "no rows"),
    ):
        with pytest.raises(BadInput, match=words):
            lw.split(tmp_path / name, tmp_path / "parts", 2, patient)
    with pytest.raises(BadInput, match="--parts must be between 2 and"):
        lw.split(tmp_path / "empty.csv", tmp_path / "parts", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.csv", "empty.csv"]


def _folder(tmp_path: Path, *frames: pl.DataFrame) -> Path:
    """A folder of Parquet files, one for each frame."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for number, frame in enumerate(frames):
        frame.write_parquet(folder / f"{number}.parquet")
    return folder


def _people(folder: Path, column: str = "patient") -> list[set[object]]:
    """The patients of each part."""
    return [set(pl.read_parquet(file)[column]) for file in sorted(folder.iterdir())]


def test_a_patient_whose_identifiers_are_whole_and_decimal_numbers_is_in_one_part(tmp_path: Path) -> None:
    whole = pl.DataFrame({"patient": range(200), "code": ["401.9"] * 200})
    decimal = pl.DataFrame({"patient": [float(n) for n in range(200)], "code": ["428.0"] * 200})
    for name, frames in (("a", (whole, decimal)), ("b", (decimal, whole))):
        (tmp_path / name).mkdir()
        folder = _folder(tmp_path / name, *frames)
        lw.split(folder, tmp_path / f"{name}-parts", 2, "patient")
        first, second = _people(tmp_path / f"{name}-parts")
        assert first | second == set(range(200)) and not first & second
        assert lw.read(folder).require_events()["patient"].n_unique() == 200


def test_identifiers_that_may_be_one_patients_are_in_one_part(tmp_path: Path) -> None:
    who = [f"{n}" for n in range(60)] + [f"0{n}" for n in range(60)] + [f"{n}.0" for n in range(60)]
    pl.DataFrame({"patient": who, "code": ["401.9"] * 180}).write_parquet(tmp_path / "events.parquet")
    lw.split(tmp_path / "events.parquet", tmp_path / "parts", 2, "patient")
    parts = [{float(str(each)) for each in part} for part in _people(tmp_path / "parts")]
    assert len(parts[0] | parts[1]) == 60 and not parts[0] & parts[1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([250.0, 401.0], ["250.00", "401.9"]),
        (["250.00", "401.9"], [250.0, 401.0]),
        ([8, 250], ["008", "250.00"]),
        (["008", "250.00"], [8, 250]),
    ],
)
def test_codes_of_unlike_types_are_refused(tmp_path: Path, first: list[object], second: list[object]) -> None:
    folder = _folder(
        tmp_path,
        pl.DataFrame({"patient": [1, 2], "code": first}),
        pl.DataFrame({"patient": [3, 4], "code": second}),
    )
    with pytest.raises(BadInput, match=r"1\.parquet: column 'code' holds .*, in 0\.parquet .*: save them"):
        lw.split(folder, tmp_path / "parts", 2, "patient")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]


@pytest.mark.parametrize("kind", [pa.string_view(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_text_of_every_encoding_is_cut(tmp_path: Path, kind: pa.DataType) -> None:
    table = pa.table(
        {"patient": pa.array(["1", "2", "3"]).cast(kind), "code": pa.array(["a", "008", None]).cast(kind)}
    )
    pq.write_table(table, tmp_path / "e.parquet")
    assert sum(lw.split(tmp_path / "e.parquet", tmp_path / "parts", 2, "patient")) == 3
    parts = pl.read_parquet(tmp_path / "parts" / "*.parquet").cast(pl.String).sort("patient")
    assert parts.rows() == [("1", "a"), ("2", "008"), ("3", None)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_fractions_beside_whole_numbers_are_refused(tmp_path: Path, order: tuple[int, int]) -> None:
    frames = [pl.DataFrame({"patient": [1, 2], "age": age}) for age in ([33.5, 40.0], [33, 40])]
    folder = _folder(tmp_path, *(frames[number] for number in order))
    with pytest.raises(BadInput, match=rf"{order.index(0)}\.parquet: column 'age' holds fractions"):
        lw.split(folder, tmp_path / "parts", 2, "patient")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]


def test_files_alike_but_for_width_order_and_encoding_are_cut(tmp_path: Path) -> None:
    codes = ["008", "250.00", "401.9"]
    frames = (
        pl.DataFrame({"patient": [1, 2, 3], "code": codes, "visit": [1, 2, 3]}),
        pl.DataFrame({"code": codes, "visit": [1.0, None, 3.0], "patient": [1, 2, 3]}),
        pl.DataFrame({"patient": [4, 5, 6], "code": codes, "visit": [1, 2, 3]}).cast(
            {"code": pl.Categorical, "patient": pl.Int16, "visit": pl.UInt8}
        ),
        pl.DataFrame({"patient": [7, 8, 9], "code": codes, "visit": [None] * 3}),
    )
    folder = _folder(tmp_path, *frames)
    rows = lw.split(folder, tmp_path / "parts", 2, "patient")
    assert sum(rows) == 12
    whole, parts = lw.read(folder).require_events(), lw.read(tmp_path / "parts").require_events()
    columns = ["patient", "code", "visit"]
    texts = [each.select(pl.col(columns).cast(pl.String)).sort(columns) for each in (whole, parts)]
    assert texts[0].equals(texts[1])


def test_a_row_without_a_patient_is_named(tmp_path: Path) -> None:
    pl.DataFrame({"patient": ["1", None, " "], "code": ["401.9"] * 3}).write_parquet(tmp_path / "e.parquet")
    with pytest.raises(BadInput, match=r"e\.parquet: column 'patient' names no patient in rows 2, 3;"):
        lw.split(tmp_path / "e.parquet", tmp_path / "parts", 2, "patient")


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    one = pa.array(["1", "2"])
    table = pa.Table.from_arrays([one, one, one], names=["patient", "code", "code"])
    pq.write_table(table, tmp_path / "e.parquet")
    with pytest.raises(BadInput, match=r"e\.parquet: 2 columns are named 'code'"):
        lw.split(tmp_path / "e.parquet", tmp_path / "parts", 2, "patient")


def test_a_folder_that_came_meanwhile_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ROWS.write_csv(tmp_path / "events.csv")
    parts = tmp_path / "parts"
    draw = secrets.randbits

    def draw_late(bits: int) -> int:
        parts.mkdir(exist_ok=True)
        (parts / "part-001.parquet").touch()
        return draw(bits)

    monkeypatch.setattr(secrets, "randbits", draw_late)
    with pytest.raises(BadInput, match="parts: exists by now, another run wrote it"):
        lw.split(tmp_path / "events.csv", parts, 2, "pid")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.csv", "parts"]
