"""Codes: standard writing, leading zeros, unknown codes, and which vocabulary they are of."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from leeward import BadInput
from leeward.cohort import Cohort, read


def cohort_of(codes: list[str], vocabulary: str | None = None, *, accept_unknown: bool = True) -> Cohort:
    frame = pl.DataFrame({"patient": range(len(codes)), "code": codes})
    return read(frame, vocabulary=vocabulary, accept_unknown=accept_unknown)


def codes_of(cohort: Cohort) -> list[str]:
    return cohort.require_events()["code"].cast(pl.String).to_list()


def notices(cohort: Cohort) -> dict[str, tuple[int, tuple[int, ...]]]:
    return {notice.kind: (notice.count, notice.rows) for notice in cohort.notices}


def test_icd9_leading_zeros_come_back_with_a_notice() -> None:
    cohort = cohort_of(["8", "008", "38.1", "250.01", "8"], "icd9")
    assert codes_of(cohort) == ["008", "008", "038.1", "250.01", "008"]
    assert notices(cohort) == {"restored leading zeros": (3, (1, 3, 5))}
    (notice,) = cohort.notices
    assert notice.message == (
        "3 entries with 2 distinct codes had lost leading zeros, which were restored (8 became 008)"
    )


def test_writings_of_one_code_become_one() -> None:
    cohort = cohort_of(["25000", "250.00", " 250.00 ", "v10.1", "V101", "e8120"], "icd9")
    assert codes_of(cohort) == ["250.00", "250.00", "250.00", "V10.1", "V10.1", "E812.0"]
    assert cohort.require_events()["code"].dtype == pl.Enum(["250.00", "E812.0", "V10.1"])
    assert cohort.vocabulary == "icd9"


def test_icd10() -> None:
    cohort = cohort_of(["e119", "E11.9", "I10"], "ICD-10-CM")
    assert codes_of(cohort) == ["E11.9", "E11.9", "I10"]
    assert cohort.vocabulary == "icd10"


def test_unknown_codes_are_kept_and_reported_by_row() -> None:
    cohort = cohort_of(["401.1", "banana", "401.1", "no  such", "banana"], "icd9")
    assert codes_of(cohort) == ["401.1", "banana", "401.1", "no such", "banana"]
    assert notices(cohort) == {"unknown code": (3, (2, 4, 5))}
    assert str(cohort.notices[0]) == (
        "3 entries with 2 distinct codes are not ICD-9-CM codes (2 codes without the form of a code: "
        "slips, or words for 'none'): "
        "kept as written, and released as codes unless repaired or left out (--missing) (rows 2, 4, 5)"
    )


def test_junk_below_the_limit_is_told_as_what_it_is() -> None:
    cohort = cohort_of(["250.00", "401.9"] * 48 + ["-", "25O.00", "-", "389.99"], None)
    assert codes_of(cohort)[-4:] == ["-", "25O.00", "-", "389.99"]
    told = {notice.kind: str(notice) for notice in cohort.notices}
    assert told["looks missing"].startswith(
        "2 entries say '-', which may mean 'no code' and would be released as codes"
    )
    assert "--missing '-'" in told["looks missing"]
    assert told["unknown code"].startswith(
        "3 entries with 2 distinct codes are not ICD-9-CM codes (2 codes without the form of a code: "
        "slips, or words for 'none')"
    )


def test_icd9_is_recognised_from_codes_that_tell() -> None:
    cohort = cohort_of(["8", "250.01", "401", "V45", "428", "E888", "276", "38"], None)
    assert cohort.vocabulary == "icd9"
    assert notices(cohort)["vocabulary recognised"][0] == 8
    assert "008" in codes_of(cohort)


def test_icd10_is_recognised() -> None:
    assert cohort_of(["E11.9", "I10", "J45.909", "Z00.00"]).vocabulary == "icd10"


@pytest.mark.parametrize(
    "codes",
    [
        [str(i) for i in range(1, 120)],  # plain numbers are no evidence
        ["a", "b", "c"],
        ["4112343", "192671", "28060"],  # OMOP concepts
        ["401.1", "250.00", "x1", "x2", "x3"],  # too few of ICD-9-CM
    ],
)
def test_other_codes_are_taken_as_written(codes: list[str]) -> None:
    cohort = cohort_of(codes)
    assert codes_of(cohort) == codes
    assert cohort.vocabulary is None
    assert cohort.notices == ()


def test_custom_vocabulary_file(tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text("node,parent\nall,\nheart,all\nH1,heart\nH2,heart\n")
    cohort = cohort_of(["H1", "H2", "H9"], str(file))
    assert codes_of(cohort) == ["H1", "H2", "H9"]
    assert notices(cohort) == {"unknown code": (1, (3,))}
    assert "own.csv" in cohort.notices[0].message
    assert cohort.vocabulary == str(file)


def test_a_vocabulary_column_gives_each_row_its_own_rules() -> None:
    frame = pl.DataFrame(
        {
            "patient": [1, 1, 2, 2],
            "code": ["8", "e119", "8", "H1"],
            "vocabulary": ["9", "ICD10CM", None, "own"],
        }
    )
    cohort = read(frame)
    assert codes_of(cohort) == ["008", "E11.9", "8", "H1"]
    assert cohort.require_events()["vocabulary"].cast(pl.String).to_list() == ["icd9", "icd10", None, "own"]


def test_unknown_vocabulary_name() -> None:
    with pytest.raises(BadInput) as error:
        cohort_of(["401.1"], "icd11")
    assert (
        str(error.value)
        == "No vocabulary 'icd11': give icd9, icd10, icd (both), flat, none, one that was added "
        "(`leeward vocabulary list`), or a file with the columns node,parent (CSV)."
    )


def test_whole_numbers_are_codes_and_fractions_are_refused() -> None:
    assert codes_of(read(pl.DataFrame({"patient": [1, 2], "code": [4112343, None]}))) == ["4112343"]
    assert codes_of(read(pl.DataFrame({"patient": [1, 2], "code": [192671.0, float("nan")]}))) == ["192671"]
    with pytest.raises(BadInput) as error:
        read(pl.DataFrame({"patient": [1, 2], "code": [250.1, 401.0]}))
    assert str(error.value) == (
        "frame: column 'code' holds codes as decimal numbers, where 250.1 and 250.10 are the same; "
        "store them as text."
    )
