"""What becomes of identities: removed, surrogates, encrypted; keys."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.errors import BadInput
from leeward.notes.annotators.rules import Rules
from leeward.notes.annotators.rules.dates import read as read_date
from leeward.notes.identities import keys, surrogates
from leeward.notes.identities import replacing as identities
from leeward.notes.identities.keys import Keys
from leeward.notes.identities.surrogates import FARTHEST, days, surrogate
from leeward.notes.spans import EID, Span

KEYS, OTHER = Keys.of(b"k" * 32), Keys.of(b"o" * 32)
TEXT = (
    "Mr. James Brown (MRN 12345678) was seen on 4/5/2009, again on 4/12/2009. Brown, 45 year old white male, lives "
    "in Boulder, CO 80301. Call (555) 123-4567 or james.brown@mail.example.com. Has sore throat."
)
SPANS = Rules().annotate(TEXT)
NO_NUL = st.characters(codec="utf-8", exclude_characters="\0")  # reading refuses it
PATIENTS = [f"p{i}" for i in range(300)]


def out(mode: identities.Mode, patient: str = "p1", with_keys: Keys = KEYS) -> str:
    return identities.replace(TEXT, SPANS, mode, with_keys, patient, "1")[0]


def test_removed_leaves_categories_and_what_may_stay() -> None:
    assert out("removed") == (
        "Mr. [NAME] (MRN [RECORD_NUMBER]) was seen on [DATE], again on [DATE]. [NAME], 45 year old white male, lives "
        "in [PLACE], [PLACE] [ZIP]. Call [PHONE] or [EMAIL]. Has sore throat."
    )


@pytest.mark.parametrize("mode", identities.MODES)
@pytest.mark.parametrize(
    ("written", "zip3", "kept"),
    [
        ("80301", ["hhs"], "803**"),
        ("80301-1234", ["hhs"], "803**"),
        ("03601", ["hhs"], "000**"),  # at most 20,000 people in 2000
        ("20501", ["hhs"], "205**"),
        ("20501", ["hhs", "205"], "000**"),
        ("03601", ["205"], "036**"),
    ],
)
def test_three_digits_of_a_zip_code_stay_on_demand(
    mode: identities.Mode, written: str, zip3: list[str], kept: str
) -> None:
    text = f"Lives at zip code {written}, has fever."
    spans = [Span(18, 18 + len(written), "QID", "zip")]
    restricted = identities.restricted_areas(zip3)
    new, (done,) = identities.replace(text, spans, mode, KEYS, "p1", "1", restricted=restricted)
    assert new == f"Lives at zip code {kept}, has fever."
    assert (new[done.start : done.end], done.category) == (kept, "zip")
    without = identities.replace(text, spans, mode, KEYS, "p1", "1")[0]
    assert written not in without and "**" not in without  # the default keeps no digit


def test_a_postal_code_of_another_form_goes_whole_and_areas_are_checked() -> None:
    spans = [Span(0, 7, "QID", "zip")]
    new = identities.replace("K1A 0B1", spans, "removed", KEYS, "p", "1", restricted=identities.HHS)[0]
    assert new == "[ZIP]"
    assert identities.restricted_areas(()) is None and len(identities.HHS) == 17
    for wrong in ("HHS", "12", "1234", "", "12a"):
        with pytest.raises(BadInput, match="--zip3"):
            identities.restricted_areas(("hhs", wrong))


@pytest.mark.parametrize("mode", identities.MODES)
def test_no_identity_is_left(mode: identities.Mode) -> None:
    new = out(mode)
    for secret in ("James", "Brown", "12345678", "4/5/2009", "80301", "123-4567", "james.brown", "Boulder"):
        assert secret not in new
    assert "45 year old white male" in new and new.endswith("Has sore throat.")


@pytest.mark.parametrize("mode", identities.MODES)
def test_every_replacement_is_told_with_its_place_and_category(mode: identities.Mode) -> None:
    new, done = identities.replace(TEXT, SPANS, mode, KEYS, "p1", "1")
    goes = [s for s in SPANS if identities.goes(s)]
    assert [(d.kind, d.category) for d in done] == [(s.kind, s.category) for s in goes]
    kept_before = re.sub(r"\W+", " ", TEXT[: goes[0].start])
    assert re.sub(r"\W+", " ", new[: done[0].start]) == kept_before
    assert all(new[d.start : d.end] for d in done)


def test_the_same_name_has_the_same_surrogate_in_all_notes_of_a_patient() -> None:
    first = surrogate(KEYS, "p1", "name", "James Brown")
    given_name, last = first.split()
    assert surrogate(KEYS, "p1", "name", "Brown") == last
    assert surrogate(KEYS, "p1", "name", "BROWN") == last.upper()
    assert surrogate(KEYS, "p1", "name", "James") == given_name
    others = {surrogate(KEYS, f"p{i}", "name", "Brown") for i in range(20)}
    assert len(others) > 10  # nobody recognises a name from patient to patient


def test_a_third_of_the_names_are_american_a_third_of_other_countries_and_a_third_in_no_list() -> None:
    last = surrogates.pool("last")
    new = [surrogate(KEYS, patient, "name", "Brown") for patient in PATIENTS]
    american, abroad = (sum(name in listed for name in new) for listed in (last.american, last.abroad))
    assert all(70 < count < 130 for count in (american, abroad, len(new) - american - abroad))
    other = [surrogate(OTHER, patient, "name", "Brown") for patient in PATIENTS]
    assert sum(map(str.__eq__, new, other)) < 3 and len(set(new) & set(other)) < 60


@pytest.mark.parametrize(
    "text", ["Gonzalez R. Foley", "Foley, Gonzalez R.", "FOLEY, GONZALEZ", "Zqvirrow Foley"]
)
def test_the_first_word_of_a_name_gets_a_first_name(text: str) -> None:
    first_names = {*surrogates.pool("female").all, *surrogates.pool("male").all}
    at = 1 if "," in text else 0
    new = [surrogate(KEYS, p, "name", text).replace(",", "").lower().split() for p in PATIENTS]
    firsts = [words[at] for words in new]
    listed = [word for word in firsts if word in first_names or word in surrogates.pool("last").all]
    assert len(listed) > 170 and sum(word in first_names for word in listed) > 0.95 * len(listed)
    lasts = [words[0 if at else -1] for words in new]
    assert sum(word in first_names for word in lasts) < 100


@pytest.mark.parametrize(
    ("text", "kind"), [("Mary Foley", "female"), ("James Foley", "male"), ("José Foley", "male")]
)
def test_a_first_name_of_a_known_sex_gets_one_of_that_sex(text: str, kind: surrogates.Kind) -> None:
    firsts = [surrogate(KEYS, patient, "name", text).split()[0].lower() for patient in PATIENTS]
    listed = [
        word for word in firsts if word in {*surrogates.pool("female").all, *surrogates.pool("male").all}
    ]
    assert len(listed) > 170 and sum(word in surrogates.pool(kind).all for word in listed) > 0.95 * len(
        listed
    )


def test_titles_particles_and_initials_keep_their_form() -> None:
    new = surrogate(KEYS, "p1", "name", "Ludwig van der Berg Jr")
    assert re.fullmatch(r"[A-Z]\S+ van der [A-Z]\S+ Jr", new)
    assert re.fullmatch(r"[A-Z]\. [A-Z]\S+", surrogate(KEYS, "p1", "name", "R. Foley"))


@given(st.sampled_from(["Brown", "Maria", "Li", "Okafor-Jones"]), st.text(max_size=3))
def test_no_name_stands_for_itself(name: str, patient: str) -> None:
    assert surrogate(KEYS, patient, "name", name).lower() != name.lower()


def test_dates_of_a_patient_keep_their_distance() -> None:
    first, second = (read_date(surrogate(KEYS, "p1", "date", d)) for d in ("4/5/2009", "April 12, 2009"))
    assert first is not None and second is not None
    one, two = first.whole(), second.whole()
    assert one is not None and two is not None
    assert (two - one).days == 7


@given(st.text(min_size=1, max_size=20))
def test_a_shift_is_never_none_and_never_far(patient: str) -> None:
    assert 1 <= abs(days(KEYS, patient)) <= FARTHEST


@pytest.mark.parametrize(
    ("category", "text", "form"),
    [
        ("record_number", "12-3456-7", r"\d\d-\d{4}-\d"),
        ("phone", "(555) 123-4567", r"\(\d{3}\) \d{3}-\d{4}"),
        ("ssn", "123-45-6789", r"\d{3}-\d\d-\d{4}"),
        ("vehicle", "7ABC123", r"\d[A-Z]{3}\d{3}"),
        ("zip", "80301", r"\d{5}"),
        ("age", "92 year old", r"over 89"),
        ("email", "a@b.example.com", r"person\d+@example\.org"),
        ("ip", "10.0.0.1", r"192\.0\.2\.\d+"),
        ("facility", "Cedar Ridge Hospital", r"\w+ Hospital"),
        ("address", "22 Willow Lane", r"\d+ \w+ \w+"),
    ],
)
def test_surrogates_keep_the_form(category: str, text: str, form: str) -> None:
    new = surrogate(KEYS, "p", category, text)
    assert re.fullmatch(form, new) and new != text


@given(st.sampled_from(["zip", "ssn", "account_number"]), st.integers(10**8, 10**9 - 1), st.text(max_size=3))
def test_a_surrogate_is_never_the_thing_itself(category: str, number: int, patient: str) -> None:
    assert surrogate(KEYS, patient, category, str(number)) != str(number)


def test_encryption_is_undone_by_its_key_alone() -> None:
    sealed = out("encrypted")
    assert identities.decrypt(sealed, KEYS) == TEXT
    with pytest.raises(BadInput, match="the key does not open"):
        identities.decrypt(sealed, OTHER)


def test_a_changed_token_is_noticed() -> None:
    sealed = out("encrypted").replace("[NAME:", "[PLACE:", 1)
    with pytest.raises(BadInput, match="was changed"):
        identities.decrypt(sealed, KEYS)


def test_equal_texts_at_two_places_have_two_tokens() -> None:
    spans = [Span(0, 3, "EID", "name"), Span(4, 7, "EID", "name")]
    sealed, _ = identities.replace("Amy Amy", spans, "encrypted", KEYS, "p", "1")
    first, second = sealed.split()
    assert first != second
    assert identities.decrypt(sealed, KEYS) == "Amy Amy"


def token(text: str, note: str = "1") -> str:
    return identities.replace(text, [Span(0, len(text), "EID", "name")], "encrypted", KEYS, "p", note)[0]


def test_a_token_tells_the_length_of_a_word_by_steps_of_32_bytes() -> None:
    lengths = [len(token("n" * letters)) for letters in range(1, 97)]
    assert [lengths.count(each) for each in sorted(set(lengths))] == [32, 32, 32]
    assert lengths == sorted(lengths)


def test_equal_words_at_one_place_of_two_notes_have_two_tokens() -> None:
    assert token("Amy", "1") != token("Amy", "2") and token("Amy", "1") == token("Amy", "1")


def test_tokens_of_the_version_before_which_did_not_pad_are_read() -> None:
    old = (
        "Dr. [NAME:YrdcxRvmBzgrghFv975e9C5JTDsYnKpibplqX7Oy7OTA8QH6MAQh] of "
        "[FACILITY:afIE003ikwB1baksG-Oa48gBasYavkzM-vDeGPXtqQFm8mcz574lvPRj2F_FQWT5xoXL4Ibwoh3BVNF9]"
    )
    assert identities.decrypt(old, KEYS) == "Dr. James Brown of " + "À" * 16


def test_patients_are_keyed() -> None:
    assert KEYS.patient("7") == "1c3e6932d09b7b618489ab22" != OTHER.patient("7"), (
        "pseudonyms outlive versions"
    )
    assert KEYS.patient("7") != KEYS.patient("8")
    assert "k" * 8 not in repr(KEYS)


def test_a_key_file_is_made_for_its_owner_alone_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "notes.key"
    secret = keys.read_or_make(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert keys.read_or_make(file) == secret == keys.read(file)


def test_a_key_file_and_its_name_are_on_the_disk_before_the_key_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, flushed = tmp_path / "notes.key", []
    monkeypatch.setattr(os, "fsync", lambda handle: flushed.append(os.fstat(handle).st_ino))
    keys.read_or_make(file)
    assert flushed == [file.stat().st_ino, tmp_path.stat().st_ino]


def test_a_key_that_another_process_makes_meanwhile_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "notes.key"
    secret = keys.read_or_make(file)
    monkeypatch.setattr(Path, "exists", lambda self: False)
    assert keys.read_or_make(file) == secret


@pytest.mark.parametrize("content", ["", "hello", keys.HEAD + "AAAA", "x" * 80])
def test_a_file_that_is_no_key_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "notes.key"
    file.write_text(content)
    with pytest.raises(BadInput, match=r"key file notes\.key: holds no key"):
        keys.read_or_make(file)


def test_only_a_regular_file_is_a_key_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        for take in (keys.read, keys.read_or_make):
            with pytest.raises(BadInput, match="is a pipe or a device, no file"):
                take(path)


def test_of_a_large_key_file_little_is_read(tmp_path: Path) -> None:
    with (tmp_path / "k").open("wb") as file:
        file.truncate(1 << 40)  # with no memory behind it
    with pytest.raises(BadInput, match="holds no key"):
        keys.read(tmp_path / "k")


def test_the_key_may_not_lie_in_what_it_protects(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="may not lie in the folder"):
        keys.read_or_make(tmp_path / "OUT" / "notes.key", tmp_path / "OUT")
    with pytest.raises(BadInput, match="no such file"):
        keys.read(tmp_path / "missing.key")
    with pytest.raises(BadInput, match="is a directory"):
        keys.read_or_make(tmp_path)


@given(
    st.text(NO_NUL, min_size=1, max_size=40),
    st.sampled_from(identities.MODES),
    st.sampled_from(EID),
    st.data(),
)
def test_whatever_is_called_an_identity_can_be_replaced(
    text: str, mode: identities.Mode, category: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    span = Span(start, data.draw(st.integers(start + 1, len(text))), "EID", category)
    new, done = identities.replace(text, [span], mode, KEYS, "p", "1")
    words = text[span.start : span.end]
    assert len(done) == any(map(str.isalnum, words))
    assert new.startswith(text[:start]) and new.endswith(text[span.end :])
    if mode == "encrypted" and "[" not in text:
        assert identities.decrypt(new, KEYS) == text
