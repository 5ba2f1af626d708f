"""The table's rows: the paper's Figure 3, sources, disagreements, terms of the lexicon only."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.notes.identities.keys import Keys
from leeward.notes.identities.replacing import MODES, Mode, decrypt
from leeward.notes.lexicon.loaders import load as load_lexicon
from leeward.notes.pipeline import INPUT, KNOWN, Work
from leeward.notes.table import with_disagreements

FIGURE_2 = (
    "Visited on 4/5/2009. Male, 24 year old. Feeling sore throat, fever, headache, fatigue...",
    "Mr. Brown's daughter is 9 year old. Visited on 4/13/2009...Having runny nose, sore throat, fever, headache...",
    "Admitted on 4-21-2009, patient is a 9 year old female. Having runny nose, sore throat, diarrhea, fever.",
    "Amy is 17 year old. Having fever, joint pain, nausea, sore throat...Visited 5/14/2009.",
    "Admitted on 6/7/2009, the 88 year old man is complaining chills, body pain, sore throat, fatigue, fever...",
)
"""The five notes of Li & Qin, Figure 2."""

ZIPS = ("12301", "12301", "12301", "12302", "12302")
"""From the registration, as the paper says."""

FIGURE_3 = (
    (4, 2009, 24, "male", "12301", {"sore throat", "fever", "headache", "fatigue"}),
    (4, 2009, 9, "female", "12301", {"runny nose", "sore throat", "fever", "headache"}),
    (4, 2009, 9, "female", "12301", {"runny nose", "sore throat", "diarrhea", "fever"}),
    (5, 2009, 17, "female", "12302", {"fever", "joint pain", "nausea", "sore throat"}),
    (6, 2009, 88, "male", "12302", {"chills", "body pain", "sore throat", "fatigue", "fever"}),
)


def rows(*notes: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the table of notes, each `text` and metadata."""
    filled = [
        {**dict.fromkeys(KNOWN), "row": i, "patient": "p", **note} for i, note in enumerate(notes, start=1)
    ]
    work = Work(("rules", "dictionary"), secret=b"k" * 32)
    found: list[dict[str, Any]] = work(pa.Table.from_pylist(filled, schema=INPUT)).to_pylist()
    return found


def row(text: str, **known: str) -> dict[str, Any]:
    return rows({"text": text, **known})[0]


def terms(row: dict[str, Any]) -> set[str]:
    """The concepts of a row by the words that a person types."""

    lexicon = load_lexicon("leeward")
    return {lexicon[concept].name.lower() for concept in row["terms"]}


def concepts_of(*words: str) -> set[str]:

    lexicon = load_lexicon("leeward")
    found = {word: lexicon.find(word) for word in words}
    return {concept.id for concept in found.values() if concept is not None}


def test_the_five_notes_of_the_paper_give_its_figure_3() -> None:
    found = rows(*({"text": text, "zip": zip_code} for text, zip_code in zip(FIGURE_2, ZIPS, strict=True)))
    for row, (month, year, age, sex, zip_code, words) in zip(found, FIGURE_3, strict=True):
        assert (row["visit_month"], row["visit_year"], row["age"]) == (month, year, age)
        assert (row["sex"], row["zip"]) == (sex, zip_code)
        assert set(row["terms"]) == concepts_of(*words) and len(row["terms"]) == len(words)
        assert (row["visit_source"], row["zip_source"]) == ("text", "metadata")


def test_mr_browns_daughter_is_a_girl_and_mr_brown_an_identity() -> None:
    (found,) = rows({"text": FIGURE_2[1]})
    assert found["sex"] == "female"
    work = Work(("rules", "dictionary"), text="removed", secret=b"k" * 32)
    note = {**dict.fromkeys(KNOWN), "row": 1, "patient": "p", "text": FIGURE_2[1]}
    (out,) = work(pa.Table.from_pylist([note], schema=INPUT)).to_pylist()
    assert out["text"].startswith("Mr. [NAME]'s daughter is 9 year old. Visited on [DATE]")
    assert out["categories"] == ["name", "date"]


@pytest.mark.parametrize(
    ("text", "column", "value", "source"),
    [
        ("Admission Date: 3/2/2011\nSeen on 3/9/2011.", "visit_year", 2011, "section"),
        ("Sex: Female\nHe is his own historian.", "sex", "female", "section"),
        ("Age: 61\nA 45 year old brother.", "age", 61, "section"),
        ("DOB: 5/1/1950\nSeen on 4/30/2010.", "age", 59, "section"),
        ("This 95-year-old lady was seen.", "age", 90, "text"),
        ("A 6-month-old boy.", "age", 0, "text"),
        ("She has a 9-year-old daughter. She feels well.", "sex", "female", "text"),
        ("Mr. Gladstone was seen.", "sex", "male", "text"),
        ("A 54-year-old white man.", "race", "White", "text"),
        ("Race: African American", "race", "Black", "section"),
        ("Lives in Chicago with his wife.", "place", "Chicago", "text"),
        ("Springfield, IL 62704", "zip", "62704", "text"),
    ],
)
def test_quasi_identifiers_of_the_text(text: str, column: str, value: object, source: str) -> None:
    found = row(text)
    assert found[column] == value
    assert found[("visit" if column.startswith("visit") else column) + "_source"] == source


def test_a_place_that_no_public_list_knows_is_left_out() -> None:
    assert row("He lives in Hogsmeade.")["place"] is None


def test_other_peoples_data_are_not_the_patients() -> None:
    found = row("Her father died at age 70. She has a 9-year-old daughter.")
    assert found["age"] is None


def test_metadata_come_first_and_disagreement_is_flagged() -> None:
    found = row("A 45 year old man seen on 4/5/2009.", sex="F", age="45", date="2009-04-05")
    assert (found["sex"], found["sex_source"]) == ("female", "metadata")
    assert found["disagrees"] == ["sex"]
    found = row("A 45 year old man seen on 4/5/2009.", date="2009-06-05", birth_date="1930-01-01")
    assert found["disagrees"] == ["age", "visit"]
    assert (found["age"], found["age_source"]) == (79, "metadata")


def test_only_asserted_concepts_of_the_lexicon_are_terms() -> None:
    found = row(
        "Denies fever. Mother had diabetes. Possible pneumonia. Has asthma and a zorblatt of the knee."
    )
    assert set(found["terms"]) == concepts_of("asthma")


def test_a_term_counts_once() -> None:
    assert row("Fever. More fever. Fevers.")["terms"] == sorted(concepts_of("fever"))


def test_notes_of_a_patient_that_disagree_are_flagged() -> None:
    table = pl.DataFrame(
        {
            "patient": ["a", "a", "b", "b", "c", "c"],
            "visit_year": [2009, 2012, 2009, 2011, 2009, None],
            "age": [40, 43, 40, 49, 90, 20],
            "sex": ["male", None, "male", "female", "male", "male"],
            "race": [None, None, "White", "White", "Black", "White"],
            "disagrees": [[], ["visit"], [], ["sex"], [], []],
        },
        schema_overrides={"disagrees": pl.List(pl.String)},
    )
    flagged = with_disagreements(table)
    assert flagged["disagrees"].to_list() == [
        [],
        ["visit"],
        ["age", "sex"],
        ["age", "sex"],
        ["race"],
        ["race"],
    ]
    assert flagged.columns == table.columns


PIECES = (
    *FIGURE_2,
    *(
        "Mr. ",
        "White",
        ", M.D.",
        "St. ",
        "Jr.",
        "DOB: ",
        "Age: ",
        "4/5/2009",
        " 99/99/9999 ",
        "12301",
        "(",
        "F, 9)",
    ),
    *(
        ": ",
        "\n\n",
        "FAMILY HISTORY",
        " - ",
        "mother",
        "'s ",
        "denies ",
        "fever",
        "İ",
        "ß",
        "\t",
        "@x.org",
        "www.",
    ),
    *("1.2.3.4", "::1", "#", "[NAME]"),
)


@given(
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), min_size=1, max_size=25),
    st.sampled_from(MODES),
)
def test_any_text_makes_a_row_and_a_text(pieces: list[str], mode: Mode) -> None:
    text = "".join(pieces)
    note = {**dict.fromkeys(KNOWN), "row": 1, "patient": "p", "text": text}
    work = Work(("rules", "dictionary"), text=mode, secret=b"k" * 32)
    (found,) = work(pa.Table.from_pylist([note], schema=INPUT)).to_pylist()
    assert found["row"] == 1 and found["text"] is not None
    assert all(0 <= a < b <= len(found["text"]) for a, b in zip(found["starts"], found["ends"], strict=True))
    assert found["age"] is None or 0 <= found["age"] <= 90
    if mode == "encrypted" and "[" not in text:
        assert decrypt(found["text"], Keys.of(b"k" * 32)) == text
