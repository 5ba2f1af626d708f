"""Tables with ICD-9-CM, ICD-10-CM and neither: recognised code by code, said, never rewritten in silence."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from leeward.cohort import Cohort, read
from leeward.errors import BadInput

MIXED = ["250.00", "401.9", "4019", "E11.9", "E119", "I10"]


def cohort_of(codes: list[str], **options: object) -> Cohort:
    return read(pl.DataFrame({"patient": range(len(codes)), "code": codes}), **options)  # type: ignore[arg-type]


def codes_of(cohort: Cohort) -> list[str]:
    return cohort.require_events()["code"].cast(pl.String).to_list()


def notice(cohort: Cohort, kind: str) -> str:
    return next(str(each) for each in cohort.notices if each.kind == kind)


def test_codes_of_both_are_recognised_and_the_split_is_said() -> None:
    cohort = cohort_of(MIXED * 10)
    assert cohort.vocabulary == "icd"
    assert codes_of(cohort)[:6] == ["250.00", "401.9", "401.9", "E11.9", "E11.9", "I10"]
    assert "50.0 % ICD-9-CM codes, 50.0 % ICD-10-CM codes; each is read in its own vocabulary" in notice(
        cohort, "vocabulary recognised"
    )


def test_undotted_e_codes_of_a_mixed_table_are_left_alone() -> None:
    undotted = ["25000", "4019", "E119", "I2510", "J45909", "E876", "E0520"] * 10
    cohort = cohort_of(undotted, accept_unknown=True)
    assert cohort.vocabulary == "icd-undotted"
    assert codes_of(cohort)[:7] == ["250.00", "401.9", "E11.9", "I25.10", "J45.909", "E876", "E05.20"]
    assert "10 entries such as E876 could be either" in notice(cohort, "vocabulary recognised")
    with pytest.raises(BadInput, match="give the column with their vocabulary"):
        cohort_of(undotted)
    dotted = cohort_of(["250.00", "401.9", "E11.9", "I25.10", "E888"] * 10)
    assert dotted.vocabulary == "icd" and codes_of(dotted)[4] == "E888"


def test_the_row_says_of_which_an_undotted_code_is() -> None:
    frame = pl.DataFrame(
        {"patient": [1, 2, 3], "code": ["E876", "E876", "4019"], "vocabulary": ["9", "10", None]}
    )
    cohort = read(frame)
    assert codes_of(cohort) == ["E876", "E87.6", "401.9"] and cohort.vocabulary == "icd"


def test_a_table_read_as_icd9_takes_no_code_of_icd10() -> None:
    codes = ["250.00", "401.9", "428.0", "V45.81"] * 20 + ["E119", "I10", "E876", "E0520"]
    cohort = cohort_of(codes, vocabulary="icd9", accept_unknown=True)
    assert codes_of(cohort)[-4:] == ["E119", "I10", "E876", "E0520"]
    message = notice(cohort, "unknown code")
    assert "4 entries with 4 distinct codes are not ICD-9-CM codes: kept as written" in message
    assert "4 % look like ICD-10-CM: read both with --vocabulary icd" in message


def test_an_unknown_code_is_not_rewritten() -> None:
    assert codes_of(cohort_of(["401.9"] * 30 + ["E0520"], vocabulary="icd9")) == [*["401.9"] * 30, "E0520"]


def test_many_unknown_codes_stop_unless_accepted() -> None:
    codes = ["250.00", "401.9", "E11.9", "I10", "E11.9"] * 18 + ["25O.00", "xyz", "n/a", "NULL", "-"] * 2
    with pytest.raises(BadInput) as error:
        cohort_of(codes)
    message = str(error.value)
    assert "10 entries with 5 distinct codes" in message and "10 % of 100 entries" in message
    assert "--accept-unknown" in message and "xyz" not in message and "25O" not in message
    assert "rows 91, 92" in message
    accepted = cohort_of(codes, accept_unknown=True)
    assert accepted.vocabulary == "icd" and codes_of(accepted)[-5:] == codes[-5:]
    cleaned = cohort_of(codes, missing=["n/a", "NULL", "-"])
    assert cleaned.require_events().height == 94
    assert cohort_of(codes, vocabulary="none").vocabulary is None


def test_texts_that_mean_nothing_are_suggested() -> None:
    cohort = cohort_of(["250.00", "401.9"] * 50 + ["NULL", "n/a", "-"])
    message = notice(cohort, "looks missing")
    assert message.startswith(
        "3 entries say '-', 'NULL', 'n/a', which may mean 'no code' and would be released as codes"
    )
    assert "--missing 'NULL'" in message and "(rows 101, 102, 103)" in message


def test_drugs_of_atc_are_no_diagnoses() -> None:
    codes = ["C09AA05", "J01CA04", "N02BE01", "R03AC02", "C03CA01", "M01AE01"] * 5
    assert cohort_of(codes).vocabulary is None


def test_a_table_of_one_classification_stays_with_it() -> None:
    assert cohort_of(["250.00", "401.9", "V45.81", "E888", "E876"] * 20).vocabulary == "icd9"
    tenth = cohort_of(["E119", "I10", "E876", "J45909"] * 20)
    assert tenth.vocabulary == "icd10" and codes_of(tenth)[2] == "E87.6"


def test_half_of_the_codes_is_said_to_look_like_icd() -> None:
    cohort = cohort_of(["250.00", "401.9", "428.0", "x1", "x2"])
    assert cohort.vocabulary is None
    assert "60 % of the entries look like ICD codes" in notice(cohort, "vocabulary not recognised")


def test_files_too(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("patient,code\n" + "".join(f"{i},{code}\n" for i, code in enumerate(MIXED)))
    assert read(file).vocabulary == "icd"
