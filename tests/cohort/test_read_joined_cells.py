"""Several codes in one cell are asked about or read apart, never taken for one code."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import leeward as lw
from leeward.cli.main import status_of
from leeward.cohort import Cohort, read
from leeward.errors import BadInput

CELLS = ["401.9, I10", "250.00, E11.9", "401.9, I10", "428.0", "428.0, I50.9", "250.00, E11.9", "V45.81, I10"]


def frame_of(cells: list[str], separator: str = ", ") -> pl.DataFrame:
    return pl.DataFrame(
        {"patient": range(len(cells)), "code": [cell.replace(", ", separator) for cell in cells]}
    )


def codes_of(cohort: Cohort) -> set[tuple[int, str]]:
    return set(cohort.require_events().select("patient", pl.col("code").cast(pl.String)).rows())


def joined(cohort: Cohort) -> list[str]:
    return [str(notice) for notice in cohort.notices if notice.kind == "several codes in a cell"]


@pytest.mark.parametrize("separator", [", ", ",", ";", "; ", "|", " | "])
@pytest.mark.parametrize("vocabulary", [None, "icd", "icd9", "icd10"])
def test_cells_of_several_codes_are_asked_about(separator: str, vocabulary: str | None) -> None:
    with pytest.raises(BadInput) as error:
        read(frame_of(CELLS, separator), vocabulary=vocabulary)
    assert "6 cells in column 'code' hold several codes" in str(error.value)
    assert "(rows 1, 2, 3, 5, 6, 7)" in str(error.value)
    assert f"--code-separator '{separator.strip()}'" in str(error.value)
    assert "401" not in str(error.value)


@pytest.mark.parametrize("separator", [",", ";", "|", "/"])
def test_cells_are_read_apart(separator: str) -> None:
    cohort = read(frame_of([*CELLS, "", "I10" + separator], f" {separator} "), code_separator=separator)
    expected = {(row, code) for row, cell in enumerate(CELLS) for code in cell.split(", ")} | {(8, "I10")}
    assert codes_of(cohort) == expected and cohort.vocabulary == "icd" and not joined(cohort)
    missing = [notice for notice in cohort.notices if notice.kind == "missing code"]
    assert [(notice.count, notice.rows) for notice in missing] == [(1, (8,))]


def test_parts_of_a_cell_may_be_missing() -> None:
    cohort = read(frame_of(["401.9;?", "?;?", "?", "250.00"]), code_separator=";", missing=["?"])
    assert codes_of(cohort) == {(0, "401.9"), (3, "250.00")}
    missing = [notice for notice in cohort.notices if notice.kind == "missing code"]
    assert [(notice.count, notice.rows) for notice in missing] == [(2, (2, 3))]


def test_wide_form_is_read_apart_too() -> None:
    frame = pl.DataFrame({"patient": [1, 2], "a": ["401.9,I10", ""], "b": ["250.00", "428.0,I50.9"]})
    cohort = read(frame, columns={"patient": "patient", "code": ["a", "b"]}, code_separator=",")
    assert codes_of(cohort) == {(1, "401.9"), (1, "I10"), (1, "250.00"), (2, "428.0"), (2, "I50.9")}


def test_a_few_cells_are_told() -> None:
    cohort = read(frame_of(["401.9", "250.00", "428.0", "I10"] * 30 + ["401.9, I10"] * 5))
    assert (120, "401.9, I10") in codes_of(cohort)
    (told,) = joined(cohort)
    assert "5 cells in column 'code' hold several codes" in told and "rows 121" in told


def test_a_row_that_names_its_vocabulary() -> None:
    frame = frame_of(["401.9, 250.00"] * 7).with_columns(vocabulary=pl.lit("icd9"))
    with pytest.raises(BadInput, match="7 cells in column 'code' hold several codes"):
        read(frame)


def test_codes_of_a_hierarchy_file(tmp_path: Path) -> None:
    (tmp_path / "tree.csv").write_text('node,parent\nall,\na,all\nb,all\n"c,d",all\nc,all\nd,all\n')
    tree = str(tmp_path / "tree.csv")
    assert codes_of(read(frame_of(["a", "c,d"] * 9), vocabulary=tree)) >= {(1, "c,d")}
    with pytest.raises(BadInput, match="18 cells in column 'code' hold several codes"):
        read(frame_of(["a|b", "c,d;b"] * 9), vocabulary=tree)


@pytest.mark.parametrize(
    "cells",
    [
        ["(401.9,I10)", "(250.00,E11.9)", "428.0"],
        ["pain, chronic", "cough; fever", "I10 | hypertension"],
        ["1,2", "3,4", "12,5", "7"],
        ["E11.9, poorly controlled", "250.00 or E11.9", "401.9"],
        ["A,B,C", "B,C", "C"],
    ],
)
def test_what_is_no_list_of_codes_stays_as_it_is_written(cells: list[str]) -> None:
    cohort = read(frame_of(cells * 10), accept_unknown=True)
    assert {code for _, code in codes_of(cohort)} >= {cell for cell in cells if not cell[0].isdigit()}
    assert not joined(cohort)


@pytest.mark.parametrize("options", [{"vocabulary": "none"}, {"accept_unknown": True}])
def test_whoever_says_so_keeps_them_as_they_are(options: dict[str, object]) -> None:
    assert (0, "401.9, I10") in codes_of(read(frame_of(CELLS), **options))  # type: ignore[arg-type]


def test_on_the_command_line_and_in_a_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "events.csv", tmp_path / "out"
    frame_of(CELLS * 10).with_columns(patient=pl.int_range(70)).write_csv(file)
    command = ["disassociate", str(file), "--k", "2", "--m", "2", "--seed", "1"]
    assert status_of([*command, "-o", str(out)]) == 2
    assert "--code-separator ','" in capsys.readouterr().err and not out.exists()
    assert status_of([*command, "--code-separator", ",", "-o", str(out)]) == 0
    codes = pl.read_parquet(out / "share" / "data" / "codes.parquet")["code"].to_list()
    assert {"401.9", "I10", "E11.9"} <= set(codes)
    assert lw.run(out / "custody" / "spec.yaml", tmp_path / "again").release.records == 70
    assert status_of(["profile", str(file)]) == 0
    assert "60 cells in column 'code' hold several codes" in capsys.readouterr().out
    assert status_of(["profile", str(file), "--code-separator", ""]) == 2


def test_a_stored_table(tmp_path: Path) -> None:
    from leeward.cohort.readers.stored import store

    frame_of(CELLS).write_csv(tmp_path / "events.csv")
    with pytest.raises(BadInput, match="6 cells in column 'code' hold several codes"):
        store(tmp_path / "events.csv", tmp_path)
    stored = store(tmp_path / "events.csv", tmp_path, code_separator=",")
    assert stored is not None
    known = stored.supports()
    assert known.codes == read(frame_of(CELLS), code_separator=",").code_sets().codes
    assert (known.patients, stored.count_events()) == (7, 13)


def test_lines_are_read_apart(tmp_path: Path) -> None:
    file = tmp_path / "records.txt"
    file.write_text("401.9;I10 250.00\n428.0;I50.9\n" * 4)
    with pytest.raises(BadInput, match="8 cells hold several codes"):
        read(file, lines=True)
    assert read(file, lines=True, code_separator=";").code_sets().codes == (
        "250.00",
        "401.9",
        "428.0",
        "I10",
        "I50.9",
    )


@pytest.mark.parametrize("blank", ["", " ", "\n"])
def test_a_blank_separator_is_refused(blank: str) -> None:
    with pytest.raises(BadInput, match="--code-separator is blank"):
        read(frame_of(CELLS), code_separator=blank)


def test_formats_with_codes_of_their_own_take_no_separator(tmp_path: Path) -> None:
    (tmp_path / "Condition.ndjson").write_text("{}\n")
    with pytest.raises(
        BadInput, match="`code_separator` is for the format events or lines or sql; this is 'fhir'"
    ):
        read(tmp_path, code_separator=",")
