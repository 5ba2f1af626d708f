"""The rules: every category of HIPAA's list, quasi-identifiers, and what is neither."""

from __future__ import annotations

import itertools
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.notes.annotators.rules import Rules, dates, demographics
from leeward.notes.spans import EID, Span

RULES = Rules()


def found(text: str) -> set[tuple[str, str, str]]:
    return {(s.kind, s.category, text[s.start : s.end]) for s in RULES.annotate(text)}


def kinds_of(text: str, words: str) -> set[str]:
    start = text.index(words)
    return {s.kind for s in RULES.annotate(text) if s.start < start + len(words) and start < s.end}


@pytest.mark.parametrize(
    ("category", "words", "text"),
    [
        ("name", "Emily Stone", "Patient Name: Emily Stone\nDOB: 1/2/1960"),
        ("name", "STONE, EMILY", "PATIENT: STONE, EMILY"),
        ("name", "Okonkwo", "Dr. Okonkwo was called."),
        ("name", "van der Berg", "Seen with Mrs. van der Berg today."),
        ("name", "Karl", "She came with her son Karl."),
        ("name", "Karen O'Neil", "Electronically signed by: Karen O'Neil, MD"),
        ("name", "Jane Q. Roe", "Discussed with Jane Q. Roe, M.D., by telephone."),
        ("name", "Tomasz", "His brother, Tomasz, is well."),
        ("name", "Amy", "Amy is 17 year old."),
        ("name", "Zubrowski", "Sincerely,\nPiotr Zubrowski"),
        ("name", "brown", "mr. brown came today"),
        ("name", "JS/mk", "End of note.\nJS/mk"),
        ("address", "22 Willow Lane", "lives at 22 Willow Lane, Boulder"),
        ("address", "1409 N. Oak St., Apt 4B", "Address: 1409 N. Oak St., Apt 4B"),
        ("address", "P.O. Box 1234", "mail to P.O. Box 1234"),
        ("facility", "Cedar Ridge Hospital", "transferred to Cedar Ridge Hospital at night"),
        ("facility", "St. Vincent's", "operated at St. Vincent's last spring"),
        ("facility", "University of Ohio Medical Center", "from University of Ohio Medical Center"),
        ("date", "03/04/1931", "DOB: 03/04/1931"),
        ("date", "March 5th, 2019", "She was born on March 5th, 2019 at term."),
        ("age", "92-year-old", "This 92-year-old man fell."),
        ("age", "104", "Age: 104"),
        ("phone", "(555) 123-4567", "call (555) 123-4567"),
        ("phone", "555.123.4567 ext 12", "reach me at 555.123.4567 ext 12"),
        ("phone", "+44 20 7946 0958", "abroad +44 20 7946 0958"),
        ("phone", "45512", "pager 45512"),
        ("fax", "555-123-4568", "Fax: 555-123-4568"),
        ("email", "e.stone@mail.example.com", "write to e.stone@mail.example.com."),
        ("ssn", "123-45-6789", "SSN 123-45-6789"),
        ("record_number", "12-3456-7", "MRN: 12-3456-7"),
        ("record_number", "998877", "(mrn#998877)"),
        ("plan_number", "XKB99812345", "Member ID XKB99812345"),
        ("account_number", "00412-77", "Account number 00412-77"),
        ("licence_number", "D1234-5678", "driver's license number D1234-5678"),
        ("licence_number", "AB1234563", "DEA AB1234563"),
        ("vehicle", "1HGCM82633A004352", "VIN 1HGCM82633A004352"),
        ("vehicle", "7ABC123", "license plate 7ABC123"),
        ("device", "PM-99887", "pacemaker serial number PM-99887"),
        ("url", "https://www.example.org/p/12", "see https://www.example.org/p/12."),
        ("url", "www.mychart.example.org", "at www.mychart.example.org"),
        ("ip", "192.168.1.20", "from 192.168.1.20"),
        ("ip", "2001:db8::8a2e:370:7334", "from 2001:db8::8a2e:370:7334 tonight"),
        ("biometric", "FP-4432", "Fingerprint ID: FP-4432"),
        ("biometric", "voiceprint", "A voiceprint was stored."),
        ("photo", "wound_0412.jpg", "picture wound_0412.jpg"),
        ("photo", "full-face photograph", "A full-face photograph was taken."),
        ("other_id", "S09-12345", "Accession S09-12345"),
        ("other_id", "4419925", "badge 4419925"),
    ],
)
def test_each_category_of_hipaa_is_found(category: str, words: str, text: str) -> None:
    covering = [
        s
        for s in RULES.annotate(text)
        if (s.kind == "EID" and words in text[s.start : s.end]) or words == text[s.start : s.end]
    ]
    assert [s.category for s in covering] == [category], found(text)


def test_every_category_has_its_case() -> None:
    marks = test_each_category_of_hipaa_is_found.pytestmark
    assert {case[0] for case in marks[0].args[1]} == set(EID)


@pytest.mark.parametrize(
    ("category", "words", "text"),
    [
        ("date", "4/5/2009", "Visited on 4/5/2009."),
        ("date", "June 3, 2011", "ADMISSION DATE: June 3, 2011"),
        ("age", "24 year old", "Male, 24 year old."),
        ("age", "sixty-five-year-old", "a sixty-five-year-old gentleman"),
        ("age", "45", "45M with chest pain"),
        ("age", "6-month-old", "this 6-month-old boy"),
        ("sex", "daughter", "Mr. Brown's daughter is 9 year old."),
        ("sex", "man", "the 88 year old man is complaining"),
        ("sex", "F", "45 y/o F with asthma"),
        ("sex", "Female", "Sex: Female"),
        ("race", "African-American", "a 30 year old African-American woman"),
        ("race", "white", "a 54-year-old white male"),
        ("race", "Hispanic", "Ethnicity: Hispanic"),
        ("zip", "62704", "Springfield, IL 62704"),
        ("zip", "12301", "ZIP code 12301"),
        ("place", "Boulder", "She lives in Boulder with her sister."),
        ("place", "Cedar Falls", "from Cedar Falls, IA"),
        ("place", "Ohio", "moved from Ohio last year"),
        ("place", "Fulton County", "a farmer of Fulton County"),
    ],
)
def test_quasi_identifiers_are_found(category: str, words: str, text: str) -> None:
    assert ("QID", category, words) in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "White blood cell count 7.2, hemoglobin 13.1, platelets 250000.",
        "BP 120/80, strength 4/5 in both arms, HR 72, temperature 98.6.",
        "May take 2 tablets. March in place was normal.",
        "Chest X-ray shows no infiltrate. Type 2 diabetes. Stage IV. Hepatitis C.",
        "Aspirin 81 mg, metformin 1000 mg, insulin 10 units at 8:30.",
        "Parkinson disease and Foley catheter; Allen test normal; Kelly clamp.",
        "Black tarry stools for 3 days. Patient denies pain. She agrees.",
    ],
)
def test_medicine_is_nobodys_identity(text: str) -> None:
    assert [f for f in found(text) if f[0] == "EID" or f[1] in ("race", "place", "zip")] == []


def test_white_as_a_name_beats_white_as_a_race() -> None:
    text = "Mrs. White is a 54-year-old white female. White presented with fever."
    names = [(s.start, s.end) for s in RULES.annotate(text) if s.category == "name"]
    assert (text.index("White"), text.index("White") + 5) in names
    assert (text.rindex("White"), text.rindex("White") + 5) in names


def test_a_name_said_once_is_found_again_without_its_title() -> None:
    assert kinds_of("Mr. Gladstone came. On exam Gladstone looks ill.", "Gladstone looks") == {"EID"}


def test_other_peoples_ages_are_not_the_patients() -> None:
    own = {
        text[s.start : s.end]: s.asserted
        for text in ("She is 40 years old, has a 9-year-old daughter. Her father died at age 70.",)
        for s in RULES.annotate(text)
        if s.category == "age"
    }
    assert own == {"40 years old": True, "9-year-old": False, "70": False}


def test_only_dates_of_visits_are_quasi_identifiers() -> None:
    text = "Seen on 4/5/2009. MRI performed on 3/1/2009. Born 2/2/1970. Admitted May 3, 2008."
    kinds = {text[s.start : s.end]: s.kind for s in RULES.annotate(text)}
    assert kinds == {"4/5/2009": "QID", "3/1/2009": "EID", "2/2/1970": "EID", "May 3, 2008": "QID"}


def test_a_fraction_after_a_whole_number_is_no_date() -> None:
    assert not dates.find("She is 5 feet 7-1/2 inches tall; tube size 3-1/2.")
    assert dates.find("Seen 1/2-1/5, and between 3/4 and 4/1.") and dates.find("Followed on 1/2.")


@pytest.mark.parametrize(
    ("text", "year", "month", "day"),
    [
        ("4/5/2009", 2009, 4, 5),
        ("4-21-2009", 2009, 4, 21),
        ("21.04.2009", 2009, 4, 21),
        ("2009-04-05T10:00:00Z", 2009, 4, 5),
        ("4/5/09", 2009, 4, 5),
        ("April 5, 2009", 2009, 4, 5),
        ("5th of April, 2009", 2009, 4, 5),
        ("05APR2009", 2009, 4, 5),
        ("13-Jan-21", 2021, 1, 13),
        ("Apr '09", 2009, 4, None),
        ("04/2009", 2009, 4, None),
        ("Nov 22nd", None, 11, 22),
    ],
)
def test_dates_are_read(text: str, year: int | None, month: int, day: int | None) -> None:
    (written,) = dates.find(text)
    assert (written.year, written.month, written.day) == (year, month, day)
    assert text[written.start : written.end] == text


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("4/5/2009", "4/15/2009"),
        ("04/05/2009", "04/15/2009"),
        ("April 25, 2009", "May 5, 2009"),
        ("Apr 1st, 2009", "Apr 11th, 2009"),
        ("25APR2009", "5MAY2009"),
        ("12/31/99", "1/10/00"),
    ],
)
def test_a_date_moves_and_keeps_its_form(text: str, moved: str) -> None:
    assert dates.shift(text, 10) == moved


@given(
    st.dates(date(1950, 1, 1), date(2049, 12, 31)),
    st.sampled_from(["%m/%d/%Y", "%Y-%m-%d", "%B %d, %Y", "%d %b %Y"]),
)
def test_every_date_is_read_as_it_was_written(day: date, form: str) -> None:
    (written,) = dates.find(f"on {day.strftime(form)} then")
    assert written.whole() == day


@pytest.mark.parametrize(
    ("phrase", "age"),
    [
        ("24 year old", 24),
        ("6-month-old", 0),
        ("18 month old", 1),
        ("sixty-five-year-old", 65),
        ("88 y/o", 88),
        ("45", 45),
    ],
)
def test_ages_are_read(phrase: str, age: int) -> None:
    assert demographics.age_of(phrase) == age


@given(st.text(max_size=300))
def test_any_text_gives_spans_that_do_not_overlap(text: str) -> None:
    spans = RULES.annotate(text)
    assert all(0 <= s.start < s.end <= len(text) for s in spans)
    assert all(a.end <= b.start for a, b in itertools.pairwise(spans))


def test_annotating_is_a_function_of_the_text() -> None:
    text = (
        "Mr. James T. Kirkwood, 45M, MRN 12345678, seen 4/5/2009 at Cedar Ridge Hospital, Boulder, CO 80301."
    )
    first: list[Span] = RULES.annotate(text)
    assert first == Rules().annotate(text)
    assert {s.source for s in first} == {"rules"}
