"""Tables as hospitals have them: ICD-9 and ICD-10 in one column, OMOP, Synthea; every method of codes runs on them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cohort.sources import OMOP, write_csv

CODES = ("250.00", "401.9", "4019", "E11.9", "E119", "I10", "250.00", "401.9", "E11.9", "I10")
"""Ten entries of which three are repairs: 4019 is 401.9, E119 is E11.9."""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 patients with codes of both classifications, with and without dots, and some junk."""
    rows = [
        f"{p},{CODES[(p + i) % len(CODES)]},{p}-{i % 2},{40 + p % 5 + i}"
        for p in range(200)
        for i in range(3)
    ]
    rows += [f"{p},{junk},{p}-0,41" for p, junk in enumerate(("25O.00", "xyz", "n/a", "NULL", "-"))]
    path = tmp_path_factory.mktemp("mixed") / "mixed.csv"
    path.write_text("patient,code,visit,age\n" + "\n".join(rows) + "\n")
    return path


def test_the_split_and_the_junk_are_told(leeward: Run, mixed: Path) -> None:
    shown = leeward("profile", mixed, "--json")
    assert shown.status == 0, shown.err
    figures = shown.json()
    messages = " ".join(notice["message"] for notice in figures["notices"])
    assert "% ICD-9-CM codes" in messages
    assert "% ICD-10-CM codes" in messages
    assert "% neither; each" in messages
    assert "--missing" in messages
    codes = {row["code"]: row["name"] for row in figures["codes"]["frequent"]}
    assert {"401.9", "E11.9"} <= set(codes)
    assert not {"4019", "E119"} & set(codes)
    assert codes["E11.9"] == "Type 2 diabetes mellitus (category)"


@pytest.mark.parametrize(
    "command",
    [
        ("disassociate", "--k", 5, "--m", 2, "--policy", "hierarchy:1"),
        ("constrain", "--k", 5, "--m", 2, "--policy", "hierarchy:1"),
        ("visits", "--visit", "visit", "--k", 5),
        ("trajectories", "--age", "age", "--k", 5),
    ],
    ids=lambda command: str(command[0]),
)
def test_mixed_icd_runs_through_every_method_and_is_verified(
    leeward: Run, mixed: Path, tmp_path: Path, command: tuple[object, ...]
) -> None:
    name, *flags = command
    columns = ["--patient", "patient", "--code", "code"]
    shown = leeward(name, mixed, *columns, *flags, "--missing", "n/a", "--missing", "NULL", "--missing", "-",
                    "-o", tmp_path / "out")  # fmt: skip
    assert shown.status == 0, shown.err
    assert leeward("verify", tmp_path / "out").status == 0
    if name == "disassociate":
        assert "% ICD-10-CM codes" in shown.out


@pytest.mark.parametrize(
    "command", [("visits",), ("trajectories",), ("disassociate", "--m", 1, "--policy", "hierarchy:1")]
)
def test_omop_without_a_hierarchy_runs_and_says_so(
    leeward: Run, tmp_path: Path, command: tuple[object, ...]
) -> None:
    people = 12
    tables = {
        **OMOP,
        "person": {"person_id": list(range(people)), "year_of_birth": [1960] * people, "month_of_birth": [6] * people,
                   "day_of_birth": [15] * people},
        "condition_occurrence": {
            "person_id": [p for p in range(people) for _ in range(2)],
            "condition_concept_id": [201826, 320128] * people,
            "condition_start_date": ["2010-06-14"] * (2 * people),
            "visit_occurrence_id": [p for p in range(people) for _ in range(2)],
        },
    }  # fmt: skip
    for table in ("visit_occurrence", "note", "drug_exposure"):
        tables.pop(table, None)
    source = write_csv(tmp_path / "cdm", tables)
    shown = leeward(command[0], source, "--k", 3, *command[1:], "-o", tmp_path / "out")
    assert shown.status == 0, shown.err
    assert "no hierarchy of these codes is available" in shown.out.replace("\n              ", " ")
    assert leeward("verify", tmp_path / "out").status == 0


def test_codes_without_a_hierarchy_are_indexed_as_they_are_written(leeward: Run, tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text(
        "Id,BIRTHDATE\n" + "".join(f"p{n},1950-01-01\n" for n in range(40))
    )
    rows = "".join(f"2010-01-01,p{n},{44054006 + n % 3}\n" for n in range(40))
    (tmp_path / "conditions.csv").write_text("START,PATIENT,CODE\n" + rows)
    shown = leeward("index", tmp_path, "--epsilon-total", 1, "-o", tmp_path / "I", "--json")
    assert shown.status == 0, shown.err
    assert shown.json()["patients"] == 40


def test_show_says_what_a_folder_is(leeward: Run, mixed: Path, tmp_path: Path) -> None:
    flags = ("--k", 5, "--m", 2, "--measure", "placement", "-o", tmp_path / "out")
    assert leeward("disassociate", mixed, *flags).status == 0
    shown = leeward("show", tmp_path / "out")
    assert shown.status == 0
    assert "Safe against" in shown.out
    assert "stays with you" in " ".join(shown.out.split())
    shutil.copytree(tmp_path / "out/share", tmp_path / "sent")
    assert "as the recipient has it" in leeward("show", tmp_path / "sent").out
    assert leeward("show", tmp_path / "out", "--json").json()["verified"] is True
    assert leeward("show", tmp_path / "nothing").status == 2
