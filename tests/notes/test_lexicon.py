"""The project's lexicon: its files, ids and terms."""

from __future__ import annotations

from collections import Counter, defaultdict
from importlib import resources

import pytest
from faker.providers.lorem.en_US import Provider as English

from leeward.errors import BadInput
from leeward.notes.lexicon import Concept, Lexicon, Names, Places, Term
from leeward.notes.lexicon.concepts import concept, keys, plural, text_key
from leeward.notes.lexicon.loaders import load as load_lexicon
from leeward.notes.lexicon.tables import OWN_FILES

OWN = load_lexicon()
DATA = resources.files("leeward.notes.lexicon").joinpath("data")
RANGES = {
    "symptom": range(1, 1000),
    "disease": range(1000, 4000),
    "test": range(4000, 5000),
    "drug": range(5000, 7000),
    "procedure": range(7000, 8000),
}


def test_two_thousand_concepts_of_every_kind() -> None:
    kinds = Counter(c.kind for c in OWN.concepts)
    assert len(OWN) >= 2000
    assert min(kinds[kind] for kind in OWN_FILES.values()) >= 250
    assert sum(len(c.synonyms) for c in OWN.concepts) >= 2 * len(OWN)


def test_ids_are_unique_and_in_the_range_of_their_kind() -> None:
    assert len({c.id for c in OWN.concepts}) == len(OWN)
    assert all(int(c.id.removeprefix("LW")) in RANGES[c.kind] and len(c.id) == 6 for c in OWN.concepts)


@pytest.mark.parametrize(
    ("id_", "name"),
    [
        ("LW0001", "fever"),
        ("LW0099", "sore throat"),
        ("LW1000", "hypertension"),
        ("LW1001", "type 2 diabetes mellitus"),
        ("LW4000", "complete blood count"),
        ("LW5000", "acetaminophen"),
        ("LW7000", "coronary artery bypass graft"),
    ],
)
def test_ids_stay(id_: str, name: str) -> None:
    assert OWN[id_].name == name


def test_no_term_belongs_to_two_concepts_unless_marked() -> None:
    """All but one owner call it ambiguous, or the owners' exact spellings differ."""
    owners: dict[tuple[str, ...], dict[tuple[str, str], bool]] = defaultdict(dict)
    for c in OWN.concepts:
        for term in c.terms:
            spelling = term.text if term.exact else ""
            owners[text_key(term.text)][(c.id, spelling)] = term.ambiguous
    shared = {
        " ".join(key): found
        for key, found in owners.items()
        if len({id_ for id_, _ in found}) > 1
        and sum(not ambiguous for ambiguous in found.values()) > 1
        and len({spelling for (_, spelling), ambiguous in found.items() if not ambiguous}) < len(found)
    }
    assert shared == {}


def test_no_plain_term_is_a_common_word_or_a_name_unless_marked() -> None:
    names = Names.common()
    everyday = set(English.word_list) | names.first | names.last
    plain = {
        term.text
        for c in OWN.concepts
        for term in c.terms
        if not (term.exact or term.ambiguous or term.common) and term.text.casefold() in everyday
    }
    assert plain == set()


def test_flags_stand_only_before_a_term_and_every_term_has_words() -> None:
    texts = [t.text for c in OWN.concepts for t in c.terms]
    assert not [t for t in texts if set("=~!|\t") & set(t)]
    assert all(text_key(t) for t in texts)


def test_files_are_small_and_in_order() -> None:
    for file in OWN_FILES:
        text = DATA.joinpath(f"{file}.tsv").read_text("utf-8")
        ids = [line.split("\t")[0] for line in text.splitlines()[1:]]
        assert len(text.encode()) < 1_000_000
        assert ids == sorted(ids)
        assert all(line.count("\t") == 2 for line in text.splitlines())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("sore throat", "sore throat"),
        ("Throat pain", "sore throat"),
        ("headaches", "headache"),
        ("sob", "shortness of breath"),
        ("HTN", "hypertension"),
        ("dm2", "type 2 diabetes mellitus"),
        ("CABG", "coronary artery bypass graft"),
        ("heart attack", "myocardial infarction"),
        ("MI", "myocardial infarction"),
        ("body pain", "body pain"),
        ("runny nose", "runny nose"),
        ("Tylenol", "acetaminophen"),
        ("a1c", "hemoglobin a1c"),
        ("Crohns disease", "Crohn's disease"),
    ],
)
def test_lay_words_and_abbreviations(text: str, name: str) -> None:
    found = OWN.find(text)
    assert found is not None
    assert found.name.casefold() == name.casefold()


def test_find_knows_nothing_else() -> None:
    assert OWN.find("xyzzy") is None
    assert OWN.find("") is None


def test_find_prefers_names_and_plain_terms() -> None:
    lexicon = Lexicon(
        "small",
        (
            concept("A", "symptom", ["cough", "~cold"]),
            concept("B", "disease", ["cold"]),
            concept("C", "disease", ["flu", "cough"]),
        ),
    )
    assert lexicon.find("cold") == lexicon["B"]
    assert lexicon.find("coughs") == lexicon["A"]


def test_terms_with_flags() -> None:
    assert Term.parse(" ~=MS ") == Term("MS", exact=True, ambiguous=True)
    assert Term.parse("=~MS") == Term.parse("~=MS")
    assert Term.parse("!pain") == Term("pain", common=True)
    assert [str(t) for t in concept("A", "symptom", ["pain", "~=MS", "", "pain"]).terms] == ["pain", "~=MS"]


def test_a_lexicon_needs_names_and_one_concept_an_id() -> None:
    fever = Concept("A", "symptom", (Term("fever"),))
    with pytest.raises(BadInput, match="'A' stands for two concepts"):
        Lexicon("small", (fever, fever))
    with pytest.raises(BadInput, match="'B' has no name"):
        Lexicon("small", (fever, Concept("B", "symptom", ())))


def test_the_digest_tells_lexicons_apart() -> None:
    one = Lexicon("a", (concept("A", "symptom", ["fever"]),))
    assert one.digest == Lexicon("b", (concept("A", "symptom", ["fever"]),)).digest
    assert one.digest != Lexicon("a", (concept("A", "symptom", ["fever", "~hot"]),)).digest
    assert one.digest != Lexicon("a", one.concepts, ("hot air",)).digest


def test_plurals_and_other_spellings() -> None:
    words = ["fever", "biopsy", "abscess", "diagnosis", "rales", "mass", "dm2", "mi"]
    assert [plural(w) for w in words] == [
        "fevers",
        "biopsies",
        "abscesses",
        "diagnoses",
        None,
        "masses",
        None,
        None,
    ]
    assert set(keys("x-ray")) == {("x", "ray"), ("xray",), ("x", "rays"), ("xrays",)}
    assert set(keys("Bell's sign")) == {
        ("bell", "sign"),
        ("bells", "sign"),
        ("bell", "signs"),
        ("bells", "signs"),
    }


def test_names_and_places() -> None:
    names, places = Names.common(), Places.common()
    assert {"mary", "josé".replace("é", "e"), "mildred", "mohammed"} <= names.first
    assert {"smith", "garcia", "nguyen", "o'brien"} <= names.last
    assert {"white", "brown", "may", "will", "long", "day", "crohn"} <= names.ordinary
    assert len(places.states) == 55
    assert ("san", "francisco") in places.names
    assert ("turkey",) in places.doubtful
